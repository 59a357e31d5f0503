/**
 * One run: a durable world, its owners, and what has happened so far. What must be true is looked at after each step; where
 * nothing is left to happen a last owner takes everything over, as the next start does, and then each sink must have each
 * record once.
 */
import { containsRange, normalRanges } from "../../src/core/coverage/ranges.ts";
import type { Span } from "../../src/core/records/stream.ts";
import { settleJobs } from "../sim/clock.ts";
import { leaseComplaints } from "./lease-rules.ts";
import { Operations } from "./operations.ts";
import { Owner, type OwnerOptions } from "./owner.ts";
import { type Canary, coveredIn, Place, type StateJson, stateOf } from "./places.ts";
import { Recoverer } from "./recoverer.ts";

export interface Case {
  readonly name: string;
  readonly batches: readonly (readonly Span[])[];
  /** The first one is there from the start, the others begin at any time. */
  readonly owners: readonly Omit<OwnerOptions, "serial">[];
  /** Those that come to their end before. */
  readonly before?: readonly Omit<OwnerOptions, "serial">[];
  readonly sinks: 1 | 2;
  /** How many owners may end at any moment. */
  readonly crashes: number;
  /** Batches that recovery has filled in every sink before the last owner takes over: those that stay have let go of them. */
  readonly fills?: readonly number[];
  /** Whether an owner can be told from a dead one; else it may be taken for one while it works on. */
  readonly life: "known" | "unknown";
}

/** How an owner may end whose turn it is not any more. */
const GIVES_UP: ReadonlySet<string> = new Set([
  "coverage.owned",
  "coverage.fenced",
  "coverage.epoch_behind",
  "coverage.unavailable",
]);
/** Serial numbers: of owners that come to their end before all others, and of those behind all others. */
const BEFORE = 5;
const LAST = 9;
const LAST_RECOVERY = 10;

export class World {
  readonly #case: Case;
  readonly #operations = new Operations();
  readonly #places: readonly Place[];
  readonly #owners = new Map<number, Owner | Recoverer>();
  readonly #dead = new Set<number>();
  /** Of each owner all that it has seen: with the durable world that is all that decides what comes. */
  readonly #seen = new Map<number, string>();
  readonly #complaints: string[] = [];
  readonly #canary: Canary | null;
  readonly #leases: boolean;
  /** By place, as it was looked at. */
  readonly #states = new Map<Place, StateJson | null>();
  #last = false;

  private constructor(which: Case, canary: Canary | null) {
    this.#case = which;
    this.#canary = canary;
    this.#leases = which.owners.some((o) => o.recovers);
    const names = which.sinks === 1 ? ["raw"] : ["raw", "side"];
    this.#places = names.map((name) => new Place(name, canary));
  }

  static async begin(which: Case, canary: Canary | null): Promise<World> {
    const world = new World(which, canary);
    for (const n of (which.before ?? []).keys()) {
      await world.act(`start ${BEFORE + n}`);
      await world.#runs(BEFORE + n);
    }
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
    const { batches, owners, before = [] } = this.#case;
    const options = n >= LAST ? this.#lastOptions : (owners[n] ?? before[n - BEFORE]!);
    const world = {
      ...{ batches, operations: this.#operations, places: this.#places, canary: this.#canary },
      leases: this.#leases,
      life: (other: number) => this.#life(other),
      acknowledged: (spans: readonly Span[]) => this.#acknowledged(spans),
      overlapped: (who: number, detail: string) => {
        if (this.#leases) this.#complaints.push(`owner ${who} is refused: ${detail}`);
      },
    };
    const recovers = n === LAST_RECOVERY || (n < LAST && options.recovers === true);
    this.#owners.set(n, recovers ? new Recoverer(world, n) : new Owner(world, { ...options, serial: n }));
  }

  get #lastOptions(): Omit<OwnerOptions, "serial"> {
    const { batches, owners } = this.#case;
    const streams = [...new Set(batches.flat().map((s) => s.stream))];
    const groups = owners.find((o) => o.recovers !== true)?.groupEpoch ?? null;
    return { streams, groupEpoch: groups === null ? null : 1 + LAST };
  }

  #life(n: number): "alive" | "dead" | "unknown" {
    if (this.#last) return n >= LAST && this.#owners.get(n)?.outcome === "running" ? "alive" : "dead";
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
      this.#lookAtLeases(place);
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

  #lookAtLeases(place: Place): void {
    const now = stateOf(place);
    if (now !== null) this.#complaints.push(...leaseComplaints(this.#states.get(place) ?? null, now));
    this.#states.set(place, now);
  }

  #stays(n: number): boolean {
    return this.#case.before?.[n - BEFORE]?.stays === true;
  }

  /** Alone, to its end. */
  async #runs(n: number): Promise<void> {
    for (let steps = 0; this.#owners.get(n)?.outcome === "running"; steps++) {
      const [next] = this.#operations.enabled.filter((o) => o.owner === n);
      if (next === undefined && this.#stays(n)) return;
      if (next === undefined || steps > 1_000) {
        this.#complaints.push(`owner ${n} does not come to its end`);
        return;
      }
      await this.act(`do ${n} ${next.name}`);
    }
  }

  /** Nothing is left to happen: the next start must bring everything to its end. */
  async finish(): Promise<void> {
    for (const [n, o] of this.#owners)
      if (o.outcome === "running" && !this.#dead.has(n) && !this.#stays(n))
        this.#complaints.push(`owner ${n} waits for nothing`);
    const filled = rowsOf((this.#case.fills ?? []).map((n) => this.#case.batches[n]!));
    for (const place of this.#places)
      for (const row of filled)
        if (!place.rows.includes(row)) this.#complaints.push(`${place.name} lacks ${row} that was let go of`);
    this.#last = true;
    await this.act(`start ${LAST}`);
    await this.#runs(LAST);
    if (this.#leases) {
      await this.act(`start ${LAST_RECOVERY}`);
      await this.#runs(LAST_RECOVERY);
    }
    const wanted = rowsOf(this.#case.batches).sort();
    for (const place of this.#places) {
      if (place.rows.toSorted().join() !== wanted.join())
        this.#complaints.push(`${place.name} has ${place.rows.toSorted()} in the end`);
      if ((stateOf(place)?.intents.length ?? 0) > 0)
        this.#complaints.push(`${place.name}: an intent is left in the end`);
    }
  }
}

const rowsOf = (batches: readonly (readonly Span[])[]): string[] =>
  batches
    .flat()
    .flatMap((s) =>
      Array.from({ length: Number(s.next - s.from) }, (_, i) => `${s.stream}@${s.from + BigInt(i)}`),
    );
