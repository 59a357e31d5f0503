/**
 * Counters, gauges and histograms, just enough for the Prometheus text format. Label values are given in the order
 * of the label names; a series exists from the first time that it is touched. No I/O and no clock.
 */
import { Failure } from "../failure/failure.ts";

export type MetricType = "counter" | "gauge" | "histogram";

export interface MetricSpec {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
}

export interface Sample {
  /** Appended to the name of the family: empty, `_bucket`, `_sum` or `_count`. */
  readonly suffix: string;
  readonly labels: readonly (readonly [string, string])[];
  readonly value: number;
}

export interface Family extends MetricSpec {
  readonly type: MetricType;
  samples(): readonly Sample[];
}

export type LabelValue = string | number;

/** Series of one family by their label values. */
class SeriesMap<T> {
  readonly #spec: MetricSpec;
  readonly #make: () => T;
  readonly #series = new Map<string, { readonly labels: readonly (readonly [string, string])[]; state: T }>();

  constructor(spec: MetricSpec, make: () => T) {
    this.#spec = spec;
    this.#make = make;
  }

  at(values: readonly LabelValue[]): { state: T } {
    const key = values.length === 1 ? String(values[0]) : values.join("\u0000");
    const found = this.#series.get(key);
    if (found !== undefined) return found;
    const names = this.#spec.labels;
    if (values.length !== names.length) {
      throw new Failure(
        "internal.bug",
        `${this.#spec.name} has labels [${names}], got ${values.length} values`,
      );
    }
    const labels = names.map((name, i) => [name, String(values[i])] as const);
    const made = { labels, state: this.#make() };
    this.#series.set(key, made);
    return made;
  }

  delete(values: readonly LabelValue[]): void {
    this.#series.delete(values.join("\u0000"));
  }

  all(): IterableIterator<{ readonly labels: readonly (readonly [string, string])[]; state: T }> {
    return this.#series.values();
  }
}

abstract class Scalar implements Family {
  abstract readonly type: MetricType;
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  protected readonly series: SeriesMap<number>;

  constructor(spec: MetricSpec) {
    this.name = spec.name;
    this.help = spec.help;
    this.labels = spec.labels;
    this.series = new SeriesMap(spec, () => 0);
  }

  value(...labels: LabelValue[]): number {
    return this.series.at(labels).state;
  }

  /** Forgets one series, for things that ended. */
  remove(...labels: LabelValue[]): void {
    this.series.delete(labels);
  }

  samples(): readonly Sample[] {
    return [...this.series.all()].map((s) => ({ suffix: "", labels: s.labels, value: s.state }));
  }
}

export class Counter extends Scalar {
  readonly type = "counter";

  add(amount: number, ...labels: LabelValue[]): void {
    if (!(amount >= 0)) throw new Failure("internal.bug", `${this.name} can only grow, got ${amount}`);
    this.series.at(labels).state += amount;
  }

  /** For totals whose truth is elsewhere, such as CPU time: follows them, but never down. */
  reach(total: number, ...labels: LabelValue[]): void {
    const series = this.series.at(labels);
    series.state = Math.max(series.state, total);
  }
}

export class Gauge extends Scalar {
  readonly type = "gauge";

  set(value: number, ...labels: LabelValue[]): void {
    this.series.at(labels).state = value;
  }

  add(amount: number, ...labels: LabelValue[]): void {
    this.series.at(labels).state += amount;
  }
}

interface HistogramState {
  /** Per bucket, not cumulative; the last one is +Inf. */
  readonly counts: Float64Array;
  sum: number;
}

export class Histogram implements Family {
  readonly type = "histogram";
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  readonly #bounds: readonly number[];
  readonly #series: SeriesMap<HistogramState>;

  /** `bounds`: upper bounds in rising order, without +Inf. */
  constructor(spec: MetricSpec, bounds: readonly number[]) {
    this.name = spec.name;
    this.help = spec.help;
    this.labels = spec.labels;
    this.#bounds = bounds;
    this.#series = new SeriesMap(spec, () => ({ counts: new Float64Array(bounds.length + 1), sum: 0 }));
  }

  observe(value: number, ...labels: LabelValue[]): void {
    if (!Number.isFinite(value)) throw new Failure("internal.bug", `${this.name} got ${value}`);
    const { state } = this.#series.at(labels);
    let bucket = 0;
    while (bucket < this.#bounds.length && value > (this.#bounds[bucket] ?? 0)) bucket++;
    state.counts[bucket] = (state.counts[bucket] ?? 0) + 1;
    state.sum += value;
  }

  samples(): readonly Sample[] {
    const out: Sample[] = [];
    for (const { labels, state } of this.#series.all()) {
      let seen = 0;
      state.counts.forEach((count, i) => {
        seen += count;
        const bound = this.#bounds[i];
        const le = bound === undefined ? "+Inf" : String(bound);
        out.push({ suffix: "_bucket", labels: [...labels, ["le", le]], value: seen });
      });
      out.push({ suffix: "_sum", labels, value: state.sum });
      out.push({ suffix: "_count", labels, value: seen });
    }
    return out;
  }
}

export class Registry {
  readonly #families = new Map<string, Family>();
  readonly #collectors: (() => void)[] = [];

  counter(name: string, help: string, labels: readonly string[] = []): Counter {
    return this.#add(new Counter({ name, help, labels }));
  }

  gauge(name: string, help: string, labels: readonly string[] = []): Gauge {
    return this.#add(new Gauge({ name, help, labels }));
  }

  histogram(name: string, help: string, labels: readonly string[], bounds: readonly number[]): Histogram {
    return this.#add(new Histogram({ name, help, labels }, bounds));
  }

  /** Runs before every reading, to set gauges whose truth is elsewhere. */
  onCollect(collector: () => void): void {
    this.#collectors.push(collector);
  }

  /** All families in the order in which they were made, whether or not they have a series yet. */
  families(): readonly Family[] {
    for (const collect of this.#collectors) collect();
    return [...this.#families.values()];
  }

  #add<T extends Family>(family: T): T {
    if (this.#families.has(family.name))
      throw new Failure("internal.bug", `metric ${family.name} is declared twice`);
    this.#families.set(family.name, family);
    return family;
  }
}
