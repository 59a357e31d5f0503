/**
 * An owner: claims streams, lands the batches of the plan that are not covered, tells the source, and leaves. The keeper of the
 * coverage with its claims, settling and compare-and-swaps, the committer and the gate are those of the product; here is only
 * what the runner does between them. A second sink comes after the first, as sinks beside the primary one do.
 */
import { CoverageKeeper } from "../../src/core/coverage/keeper.ts";
import { cutSpan } from "../../src/core/coverage/ranges.ts";
import { type CommitListener, Committer } from "../../src/core/delivery/committer.ts";
import { CoverageGate } from "../../src/core/delivery/coverage-gate.ts";
import { asFailure, type Failure } from "../../src/core/failure/failure.ts";
import { StreamHeads } from "../../src/core/pipeline/stream-heads.ts";
import type { Authority, CoverageStore, Range } from "../../src/core/ports/coverage.ts";
import type { HostId } from "../../src/core/ports/host-identity.ts";
import type { SealedSet } from "../../src/core/ports/lane.ts";
import type { ObjectStore } from "../../src/core/ports/object-store.ts";
import type { Span, StreamKey } from "../../src/core/records/stream.ts";
import type { Clock } from "../../src/core/time/clock.ts";
import type { Operations } from "./operations.ts";
import type { Canary, Place } from "./places.ts";

export interface OwnerWorld {
  readonly operations: Operations;
  /** The primary one first. */
  readonly places: readonly Place[];
  /** Each lands as one set, with a file for each of its streams. */
  readonly batches: readonly (readonly Span[])[];
  readonly canary: Canary | null;
  /** What is known of a process. */
  readonly life: (owner: number) => "alive" | "dead" | "unknown";
  /** The source is told now. */
  readonly acknowledged: (spans: readonly Span[]) => void;
  /** Recovery is beside: batch after batch, the second sink is given what the first takes on the same turn, and heads are told. */
  readonly leases: boolean;
  /** A set was refused since its positions are somebody else's. */
  readonly overlapped: (who: number, detail: string) => void;
}

export interface OwnerOptions {
  readonly serial: number;
  readonly streams: readonly StreamKey[];
  /** Null: without a group one process at a time has the sinks. */
  readonly groupEpoch: number | null;
  /** It fills what the second sink lacks, and reads no source. */
  readonly recovers?: true;
  /** So many batches are there by then; absent: all. */
  readonly batches?: number;
  /** Batches that the second sink does not get from it. */
  readonly misses?: readonly number[];
  /** It does not leave. */
  readonly stays?: true;
}

interface Held {
  readonly authority: Authority;
  covered: readonly Range[];
}

interface Waiting {
  readonly set: SealedSet;
  readonly authorities: readonly Authority[];
}

export const LEASE_MS = 4;

export class Owner {
  outcome: "running" | "done" | Failure = "running";
  readonly serial: number;
  readonly #w: OwnerWorld;
  readonly #o: OwnerOptions;
  readonly #clock: Clock;
  readonly #gate = new CoverageGate();
  /** Of the second sink. */
  readonly #heads = new StreamHeads();
  readonly #sinks: readonly SinkEnd[];
  #wake: () => void = () => {};
  #failure: Failure | null = null;

  constructor(world: OwnerWorld, options: OwnerOptions) {
    this.#w = world;
    this.#o = options;
    this.serial = options.serial;
    this.#clock = world.operations.clock(options.serial);
    this.#sinks = world.places.map((place, n) => this.#sink(place, n));
    this.#work().then(
      () => {
        this.outcome = "done";
      },
      (e) => {
        this.outcome = asFailure(e);
      },
    );
  }

  #sink(place: Place, n: number): SinkEnd {
    const { operations, canary, life } = this.#w;
    const { serial, groupEpoch } = this.#o;
    const self: HostId = {
      ...{ hostname: "h", pid: serial, bootId: "b", pidNamespace: "n", startTime: "1" },
    };
    const objects = place.objects(serial, operations);
    const keeper = new CoverageKeeper(
      { instance: `o${serial}`, leaseMs: LEASE_MS, minIntervalMs: 0, shared: groupEpoch !== null },
      {
        ...{ objects, clock: this.#clock, versions: place.versions(serial, operations) },
        host: { self, isAlive: (other) => life(other.pid) },
      },
    );
    const end: SinkEnd = new SinkEnd(place, keeper, serial, {
      committed: (_id, spans) => {
        end.inFlight--;
        end.covers(spans);
        this.#gate.cover(n, spans);
        if (n === 0) this.#heads.landed(spans);
        else this.#heads.settled(spans);
        if (n === 0 && this.#w.leases) void this.#beat();
        if (n === 0 && canary !== "early_ack") this.#w.acknowledged(spans);
        this.#looks();
      },
      refused: (_id, _lane, reason, detail) => {
        if (reason === "overlap") this.#w.overlapped(this.serial, detail);
        end.inFlight--;

        end.rewind = true;
        this.#looks();
      },
      failed: (failure) => {
        this.#failure = failure;
        this.#looks();
      },
      trouble: () => {},
    });
    end.opens(objects, this.#clock, this.#spoiled(keeper, n));
    return end;
  }

  /** With a planted bug between the committer and the coverage. */
  #spoiled(keeper: CoverageKeeper, n: number): CoverageStore {
    const { canary } = this.#w;
    if (canary !== "early_ack" && canary !== "early_cover") return keeper;
    return Object.assign(Object.create(keeper) as CoverageStore, {
      intend: async (intents: Parameters<CoverageStore["intend"]>[0]) => {
        const answers = await keeper.intend(intents);
        const open = intents.filter((_, i) => answers[i]?.ok === true);
        if (canary === "early_cover") await keeper.cover(open.map((i) => i.id));
        else if (n === 0) for (const i of open) this.#w.acknowledged(i.spans);
        return answers;
      },
      cover: (ids: readonly string[]) => keeper.cover(ids),
      settle: (id: string, outcome: "abandoned") => keeper.settle(id, outcome),
    });
  }

  /** Something came to its end: what waits for it may go, and the owner looks what is left to do. */
  #looks(): void {
    for (const [n, sink] of this.#sinks.entries()) {
      const after = this.#w.canary === "leads" ? [] : Array.from({ length: n }, (_, i) => i);
      sink.submitIf((spans) => this.#gate.answer(after, spans) === "open");
    }
    this.#wake();
  }

  async #work(): Promise<void> {
    for (const sink of this.#sinks) await sink.keeper.open();
    for (const [n, sink] of this.#sinks.entries()) await this.#claim(n, sink, this.#o.streams);
    for (const sink of this.#sinks) if (this.#o.groupEpoch === null) await sink.sweep();
    const batches = this.#w.batches.slice(0, this.#o.batches);
    if (!this.#w.leases) await this.#lands(batches);
    else
      for (const batch of batches) {
        await this.#lands([batch]);
        await this.#beat();
      }
    if (this.#o.stays) await new Promise(() => {});
    for (const sink of this.#sinks) await sink.keeper.close();
  }

  /** Also while sets of the second sink are under way. */
  async #beat(): Promise<void> {
    for (const sink of this.#sinks.slice(1))
      await sink.keeper.heartbeat(this.#toldHeads(sink)).catch((e) => {
        this.#failure ??= asFailure(e);
      });
  }

  #toldHeads(sink: SinkEnd): ReadonlyMap<StreamKey, bigint> {
    const heads = this.#heads.take(new Set(sink.held.keys()));
    const { canary } = this.#w;
    if (canary === "no_heads") return new Map();
    return canary === "high_heads" ? new Map([...heads].map(([s, head]) => [s, head + 1n])) : heads;
  }

  async #lands(batches: readonly (readonly Span[])[]): Promise<void> {
    for (;;) {
      if (this.#failure !== null) throw this.#failure;
      for (const [n, sink] of this.#sinks.entries()) if (sink.rewind) await this.#again(n, sink);
      for (const batch of batches) this.#give(batch);
      this.#looks();
      if (this.#sinks.every((s) => s.inFlight === 0 && !s.rewind)) break;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #give(batch: readonly Span[]): void {
    const [first, ...others] = this.#sinks;
    const taken = first!.land(batch);
    for (const sink of others) {
      // Beside recovery a sink never gets what raw had before.
      const spans = this.#w.leases ? taken : batch;
      const misses = this.#o.misses?.includes(this.#w.batches.indexOf(batch)) === true;
      if (misses) this.#heads.settled(spans);
      else this.#heads.open(sink.land(spans));
    }
  }

  async #claim(n: number, sink: SinkEnd, streams: readonly StreamKey[]): Promise<void> {
    for (const c of await sink.keeper.claim(streams, this.#o.groupEpoch)) {
      sink.held.set(c.stream, { authority: c.authority, covered: c.covered });
      this.#gate.begin(n, c.stream, c.covered);
      // Read on from where the first sink ends.
      if (n === 0) this.#heads.begin(c.stream, c.covered.at(-1)?.next ?? 0n);
    }
  }

  /** A set was refused: its streams are claimed anew, but for those that went to somebody else. */
  async #again(n: number, sink: SinkEnd): Promise<void> {
    // What waits for the primary sink waits for sets that it will not have.
    if (n === 0) for (const other of this.#sinks.slice(1)) other.rewind = true;
    await sink.idle();
    sink.rewind = false;
    const before = [...sink.held.keys()];
    sink.drop();
    for (const stream of before)
      try {
        await this.#claim(n, sink, [stream]);
      } catch (e) {
        if (asFailure(e).code !== "coverage.epoch_behind") throw e;
      }
  }
}

/** One sink of an owner. */
class SinkEnd {
  readonly keeper: CoverageKeeper;
  readonly held = new Map<StreamKey, Held>();
  inFlight = 0;
  rewind = false;
  readonly #place: Place;
  readonly #owner: number;
  readonly #listener: CommitListener;
  #committer: Committer | null = null;
  #objects: ObjectStore | null = null;
  #waiting: Waiting[] = [];
  #sets = 0;

  constructor(place: Place, keeper: CoverageKeeper, owner: number, listener: CommitListener) {
    this.#place = place;
    this.keeper = keeper;
    this.#owner = owner;
    this.#listener = listener;
  }

  opens(objects: ObjectStore, clock: Clock, coverage: CoverageStore): void {
    const observer = { emit: () => {} };
    const listener = this.#listener;
    this.#objects = objects;
    this.#committer = new Committer({ sink: this.#place.name, coverage, objects, clock, observer, listener });
  }

  async sweep(): Promise<void> {
    if (this.keeper.isAlone) await this.#objects?.sweep(this.keeper.stagedNames());
  }

  async idle(): Promise<void> {
    await this.#committer?.idle();
  }

  /** What waits for another sink lands never, and no stream is ours. */
  drop(): void {
    this.inFlight -= this.#waiting.length;
    for (const { set } of this.#waiting) this.#committer?.discard(set);
    this.#waiting = [];
    this.held.clear();
  }

  covers(spans: readonly Span[]): void {
    for (const { stream, from, next } of spans) this.#takes(stream, { from, next });
  }

  #takes(stream: StreamKey, range: Range): void {
    const held = this.held.get(stream);
    if (held === undefined) return;
    held.covered = [...held.covered, range].sort((a, b) => Number(a.from - b.from));
  }

  /** What of the batch is ours and was neither covered nor begun since the claim: it lands, and is the answer. */
  land(batch: readonly Span[]): readonly Span[] {
    if (this.rewind) return [];
    const spans = batch.flatMap((s) => {
      const held = this.held.get(s.stream);
      return held === undefined ? [] : cutSpan(s, held.covered).map((r) => ({ stream: s.stream, ...r }));
    });
    if (spans.length === 0) return [];
    const id = `o${this.#owner}-${this.#sets++}`;
    const targets = spans.map((s, i) =>
      this.#place.stage(
        `${id}-${i}`,
        Array.from({ length: Number(s.next - s.from) }, (_, k) => `${s.stream}@${s.from + BigInt(k)}`),
      ),
    );
    const authorities = [...new Set(spans.map((s) => s.stream))].map((s) => this.held.get(s)!.authority);
    for (const s of spans) this.#takes(s.stream, s);
    const sizes = { rows: targets.length, bytes: 1, openedAt: 0, sealMs: 0 };
    const set: SealedSet = {
      ...{ id, targets, spans, lane: 0, epoch: 0, covered: false, reason: "bytes" },
      ...sizes,
    };
    this.inFlight++;
    this.#waiting.push({ set, authorities });
    return spans;
  }

  submitIf(open: (spans: readonly Span[]) => boolean): void {
    const go = this.#waiting.filter((w) => open(w.set.spans));
    this.#waiting = this.#waiting.filter((w) => !go.includes(w));
    for (const { set, authorities } of go) this.#committer?.submit(set, authorities);
  }
}
