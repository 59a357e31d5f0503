/**
 * Rates over the last half minute, from samples of the view's totals. The status page and `/stats` show it; the
 * progress line keeps its own, shorter, window.
 */
import type { Clock } from "../time/clock.ts";
import { lagOf, type PartitionView, type PipelineView, type SinkView } from "./pipeline-view.ts";

export const DIGEST_WINDOW_MS = 30_000;
export const DIGEST_STEP_MS = 5_000;

interface Sample {
  readonly at: number;
  readonly records: number;
  readonly bytes: number;
  readonly positions: ReadonlyMap<string, number>;
  readonly rows: ReadonlyMap<string, number>;
}

export interface PartitionDigest {
  readonly topic: string;
  readonly partition: number;
  readonly lane: number;
  /** Positions as decimal strings: JSON numbers end at 2^53. */
  readonly position: string;
  readonly acknowledged: string;
  readonly end: string | null;
  readonly lag: number | null;
  readonly records_per_second: number;
}

export interface SinkDigest {
  readonly sink: string;
  readonly rows: number;
  readonly bytes: number;
  readonly files: number;
  readonly rows_per_second: number;
  /** Of a sink beside the primary one: what it lacks. */
  readonly lacks?: SinkLacks;
}

export interface SinkLacks {
  readonly gaps: number;
  readonly positions: string;
  readonly oldest_ms: number | null;
  readonly parts: readonly {
    readonly topic: string;
    readonly partition: number;
    readonly from: string;
    readonly next: string;
    readonly missing: readonly { readonly from: string; readonly next: string }[];
  }[];
}

export interface DigestReport {
  /** Length of the window that the rates are over; 0 before the second sample. */
  readonly window_ms: number;
  readonly records: number;
  readonly records_per_second: number;
  readonly bytes_per_second: number;
  readonly lag: number | null;
  readonly partitions: readonly PartitionDigest[];
  readonly sinks: readonly SinkDigest[];
}

export class Digest {
  readonly #clock: Clock;
  readonly #view: PipelineView;
  #samples: Sample[] = [];

  constructor(clock: Clock, view: PipelineView) {
    this.#clock = clock;
    this.#view = view;
    this.tick();
  }

  /** Called often; takes a sample every `DIGEST_STEP_MS`. */
  tick(): void {
    const now = this.#clock.monotonic();
    const last = this.#samples.at(-1);
    if (last !== undefined && now - last.at < DIGEST_STEP_MS) return;
    this.#samples.push(this.#sample(now));
    // Keep one sample at or beyond the window, so that the rates are over the whole of it.
    while (now - (this.#samples[1]?.at ?? now) >= DIGEST_WINDOW_MS) this.#samples.shift();
  }

  report(): DigestReport {
    const now = this.#clock.monotonic();
    const first = this.#samples[0];
    const ms = first === undefined ? 0 : now - first.at;
    const per = (total: number, before: number): number =>
      ms > 0 ? Math.max(0, ((total - before) * 1000) / ms) : 0;
    return {
      window_ms: ms,
      records: this.#view.records,
      records_per_second: per(this.#view.records, first?.records ?? 0),
      bytes_per_second: per(this.#view.bytes, first?.bytes ?? 0),
      lag: this.#view.lag(),
      partitions: [...this.#view.partitions].map(([k, p]) =>
        partitionDigest(p, per(p.positions, first?.positions.get(k) ?? 0)),
      ),
      sinks: [...this.#view.sinks].map(([sink, s]) => ({
        sink,
        rows: s.rows,
        bytes: s.bytes,
        files: s.files,
        rows_per_second: per(s.rows, first?.rows.get(sink) ?? 0),
        ...(s.lacks === null ? {} : { lacks: lacksOf(s.lacks) }),
      })),
    };
  }

  #sample(at: number): Sample {
    return {
      at,
      records: this.#view.records,
      bytes: this.#view.bytes,
      positions: new Map([...this.#view.partitions].map(([k, p]) => [k, p.positions])),
      rows: new Map([...this.#view.sinks].map(([k, s]) => [k, s.rows])),
    };
  }
}

function lacksOf({ gaps, positions, oldestMs, parts }: NonNullable<SinkView["lacks"]>): SinkLacks {
  const texts = ({ from, next }: { from: bigint; next: bigint }) => ({
    from: String(from),
    next: String(next),
  });
  return {
    gaps,
    positions: String(positions),
    oldest_ms: oldestMs,
    parts: parts.map((p) => ({
      topic: p.topic,
      partition: p.partition,
      ...texts(p),
      missing: p.missing.map(texts),
    })),
  };
}

function partitionDigest(p: PartitionView, rate: number): PartitionDigest {
  return {
    topic: p.topic,
    partition: p.partition,
    lane: p.lane,
    position: String(p.position),
    acknowledged: String(p.acknowledged),
    end: p.end === null ? null : String(p.end),
    lag: lagOf(p),
    records_per_second: rate,
  };
}
