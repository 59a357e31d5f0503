/**
 * One run: a durable world, its owners, and what has happened so far. What must be true is looked at after each step; where
 * nothing is left to happen a last owner takes everything over, as the next start does, and then each sink must have each
 * record once.
 */
import { containsRange, normalRanges } from "../../src/core/coverage/ranges.ts";
import type { Span, StreamKey } from "../../src/core/records/stream.ts";
import { settleJobs } from "../sim/clock.ts";
import { Operations } from "./operations.ts";
import { Owner, type OwnerOptions } from "./owner.ts";
import { type Canary, Place } from "./places.ts";

export interface Case {
  readonly name: string;
  readonly batches: readonly (readonly Span[])[];
  /** The first one is there from the start, the others begin at any time. */
  readonly owners: readonly Omit<OwnerOptions, "serial">[];
  readonly sinks: 1 | 2;
  /** How many owners may end at any moment. */
  readonly crashes: number;
  /** Whether an owner can be told from a dead one; else it may be taken for one while it works on. */
  readonly life: "known" | "unknown";
}

/** Streams and ranges as the newest state has them, read as plain JSON: not by what is judged. */
interface StateJson {
  readonly streams: readonly {
    readonly stream: StreamKey;
    readonly covered: readonly (readonly [string, string])[];
  }[];
  readonly intents: readonly unknown[];
}

/** How an owner may end whose turn it is not any more. */
const GIVES_UP: ReadonlySet<string> = new Set([
  "coverage.owned",
  "coverage.fenced",
  "coverage.epoch_behind",
  "coverage.unavailable",
]);
const LAST = 9;

export class World {
  readonly #case: Case;
  readonly #operations = new Operations();
  readonly #places: readonly Place[];
  readonly #owners = new Map<number, Owner>();
  readonly #dead = new Set<number>();
  /** Of each owner all that it has seen: with the durable world that is all that decides what comes. */
  readonly #seen = new Map<number, string>();
  readonly #complaints: string[] = [];
  readonly #canary: Canary | null;
  #last = false;

  private constructor(which: Case, canary: Canary | null) {
    this.#case = which;
    this.#canary = canary;
    const names = which.sinks === 1 ? ["raw"] : ["raw", "side"];
    this.#places = names.map((name) => new Place(name, canary));
  }

  static async begin(which: Case, canary: Canary | null): Promise<World> {
    const world = new World(which, canary);
    await world.act("start 0");
    return world;
  }

  get complaints(): readonly string[] {
    return this.#complaints;
  }

  get key(): bigint {
    const owners = this.#case.owners.map((_, n) => {
      const state = this.#dead.has(n) ? "dead" : this.#owners.has(n) ? "there" : "to come";
      return `${state} ${this.#seen.get(n) ?? ""}`;
    });
    return BigInt(Bun.hash([...this.#places.map((p) => p.text), ...owners].join("\n")));
  }

  /** What may happen next. */
  get actions(): readonly string[] {
    const { owners, crashes } = this.#case;
    const actions: string[] = [];
    const { enabled } = this.#operations;
    for (const o of enabled) actions.push(`do ${o.owner} ${o.name}`);
    for (let n = 1; n < owners.length; n++) if (!this.#owners.has(n)) actions.push(`start ${n}`);
    if (this.#dead.size >= crashes) return actions;
    for (const n of new Set(enabled.map((o) => o.owner))) actions.push(`end ${n}`);
    for (const o of enabled) if (o.changes) actions.push(`last ${o.owner} ${o.name}`);
    return actions;
  }

  async act(action: string): Promise<void> {
    const [verb, n, ...rest] = action.split(" ");
    const owner = Number(n);
    const name = rest.join(" ");
    if (verb === "start") this.#start(owner);
    else if (verb !== "end") this.#happen(owner, name, verb === "do");
    if (verb === "end" || verb === "last") {
      this.#operations.end(owner);
      this.#dead.add(owner);
    }
    await settleJobs();
    this.#look();
  }

  #start(n: number): void {
    const options = n === LAST ? this.#lastOptions : this.#case.owners[n]!;
    const { batches } = this.#case;
    const world = {
      ...{ batches, operations: this.#operations, places: this.#places, canary: this.#canary },
      life: (other: number) => this.#life(other),
      acknowledged: (spans: readonly Span[]) => this.#acknowledged(spans),
    };
    this.#owners.set(n, new Owner(world, { ...options, serial: n }));
  }

  get #lastOptions(): Omit<OwnerOptions, "serial"> {
    const { batches, owners } = this.#case;
    const streams = [...new Set(batches.flat().map((s) => s.stream))];
    return { streams, groupEpoch: owners[0]!.groupEpoch === null ? null : 1 + LAST };
  }

  #life(n: number): "alive" | "dead" | "unknown" {
    if (this.#last) return n === LAST ? "alive" : "dead";
    if (this.#case.life === "unknown") return "unknown";
    return !this.#dead.has(n) && this.#owners.get(n)?.outcome === "running" ? "alive" : "dead";
  }

  #happen(owner: number, name: string, replies: boolean): void {
    const operation = this.#operations.enabled.find((o) => o.owner === owner && o.name === name);
    if (operation === undefined) throw new Error(`no ${name} of owner ${owner}: a run is not what it was`);
    this.#operations.take(operation);
    const { seen, reply } = operation.happen();
    this.#seen.set(owner, String(Bun.hash(`${this.#seen.get(owner) ?? ""} ${name} ${seen}`)));
    if (replies) reply();
  }

  // ---- what must be true

  #acknowledged(spans: readonly Span[]): void {
    for (const s of spans) this.#mustLead("the source was told", s, this.#places[0]!);
  }

  #mustLead(who: string, s: Span, place: Place): void {
    const covered = coveredIn(place).get(s.stream) ?? [];
    if (!containsRange(normalRanges(covered), s))
      this.#complaints.push(`${who} of ${s.stream} [${s.from}, ${s.next}) before ${place.name} covers it`);
  }

  /** Never leads: what is covered is there, once, and what comes after another sink is there, too. */
  #look(): void {
    for (const [n, place] of this.#places.entries()) {
      const rows = place.rows;
      const there = new Set(rows);
      if (there.size < rows.length) this.#complaints.push(`${place.name}: a row is there twice`);
      for (const [stream, ranges] of coveredIn(place))
        for (const r of ranges) {
          for (let p = r.from; p < r.next; p++)
            if (!there.has(`${stream}@${p}`))
              this.#complaints.push(`${place.name}: ${stream}@${p} is covered and not there`);
          for (const before of this.#places.slice(0, n))
            this.#mustLead(`${place.name} shows`, { stream, ...r }, before);
        }
    }
    for (const [n, { outcome }] of this.#owners)
      if (typeof outcome !== "string" && !GIVES_UP.has(outcome.code))
        this.#complaints.push(`owner ${n} ends: ${outcome.code}: ${outcome.message}`);
  }

  /** Nothing is left to happen: the next start must bring everything to its end. */
  async finish(): Promise<void> {
    for (const [n, o] of this.#owners)
      if (o.outcome === "running" && !this.#dead.has(n))
        this.#complaints.push(`owner ${n} waits for nothing`);
    this.#last = true;
    await this.act(`start ${LAST}`);
    for (let steps = 0; this.#owners.get(LAST)?.outcome === "running"; steps++) {
      const [next] = this.#operations.enabled.filter((o) => o.owner === LAST);
      if (next === undefined || steps > 1_000) {
        this.#complaints.push("the last owner does not come to its end");
        return;
      }
      await this.act(`do ${LAST} ${next.name}`);
    }
    const wanted = this.#case.batches
      .flat()
      .flatMap((s) =>
        Array.from({ length: Number(s.next - s.from) }, (_, i) => `${s.stream}@${s.from + BigInt(i)}`),
      )
      .sort();
    for (const place of this.#places) {
      if (place.rows.toSorted().join() !== wanted.join())
        this.#complaints.push(`${place.name} has ${place.rows.toSorted()} in the end`);
      if ((stateOf(place)?.intents.length ?? 0) > 0)
        this.#complaints.push(`${place.name}: an intent is left in the end`);
    }
  }
}

function stateOf({ newest }: Place): StateJson | null {
  return newest === null ? null : (JSON.parse(new TextDecoder().decode(newest.bytes)) as StateJson);
}

function coveredIn(place: Place): Map<StreamKey, { readonly from: bigint; readonly next: bigint }[]> {
  const streams = stateOf(place)?.streams ?? [];
  return new Map(
    streams.map((s) => [
      s.stream,
      s.covered.map(([from, next]) => ({ from: BigInt(from), next: BigInt(next) })),
    ]),
  );
}
