/**
 * A process of the coverage model: takes the store, claims the streams, lands sets of positions through the real
 * committer until all are landed. Other processes do the same at the same time; each may be killed, stopped and
 * woken between any two steps. What it writes into its files is the positions themselves.
 */
import {
  MemoryVersionedStore,
  type SharedObject,
  type WriteFault,
} from "../../../src/adapters/coverage/memory.ts";
import { CoverageKeeper } from "../../../src/core/coverage/keeper.ts";
import { cutSpan, firstUncovered } from "../../../src/core/coverage/ranges.ts";
import { type CommitListener, Committer } from "../../../src/core/delivery/committer.ts";
import { asFailure, type Failure } from "../../../src/core/failure/failure.ts";
import type { Authority, Range } from "../../../src/core/ports/coverage.ts";
import type { HostId } from "../../../src/core/ports/host-identity.ts";
import type { SealedSet } from "../../../src/core/ports/lane.ts";
import type { ObjectStore, Target } from "../../../src/core/ports/object-store.ts";
import type { Span } from "../../../src/core/records/stream.ts";
import { type Clock, sleep } from "../../../src/core/time/clock.ts";
import type { SeededChance } from "../../sim/chance.ts";
import { SimProcess, type SimTime } from "../../sim/clock.ts";
import type { SimFolder } from "../../sim/store.ts";

export const STREAMS = ["kafka/c/t/0/0", "kafka/c/t/0/1", "kafka/c/t/0/2"] as const;
export const END = 24n;
/** Compacted away: covered by a span, in no file. */
export const isHole = (position: bigint): boolean => position % 7n === 3n;
const IN_FLIGHT = 3;

export interface ModelWorld {
  readonly time: SimTime;
  readonly chance: SeededChance;
  readonly coverage: SharedObject;
  readonly folder: SimFolder;
  readonly actors: Actor[];
  readonly writeFault: () => WriteFault | null;
  /** Owners do not exclude each other: only generations and overlaps keep them apart. */
  readonly shared: boolean;
  /** The source would be told now. */
  readonly acknowledged: (spans: readonly Span[]) => void;
}

interface Held {
  authority: Authority;
  covered: readonly Range[];
  position: bigint;
}

export class Actor implements CommitListener {
  readonly process: SimProcess;
  readonly machine: number;
  outcome: "running" | "done" | Failure = "running";
  readonly #w: ModelWorld;
  readonly #shared: boolean;
  readonly #serial: number;
  readonly #chance: SeededChance;
  readonly #clock: Clock;
  readonly #objects: ObjectStore;
  readonly #keeper: CoverageKeeper;
  readonly #committer: Committer;
  readonly #held = new Map<string, Held>();
  #sets = 0;
  #inFlight = 0;
  #rewind = false;
  #failure: Failure | null = null;

  constructor(world: ModelWorld, machine: number, shared: boolean) {
    this.#w = world;
    this.#shared = shared;
    this.#serial = world.actors.length;
    this.machine = machine;
    this.process = new SimProcess(`actor-${this.#serial}`);
    this.#chance = world.chance.fork();
    this.#clock = world.time.clock(this.process);
    this.#objects = world.folder.handle(this.process);
    const host = {
      hostname: `m${machine}`,
      pid: this.#serial,
      bootId: "b",
      pidNamespace: "n",
      startTime: "1",
    };
    this.#keeper = new CoverageKeeper(
      { instance: `i${this.#serial}`, leaseMs: 2_000, minIntervalMs: 5, shared },
      {
        versions: new MemoryVersionedStore(world.coverage, {
          fault: world.writeFault,
          delay: () => sleep(this.#clock, this.#chance.next() * 20),
        }),
        objects: this.#objects,
        clock: this.#clock,
        host: { self: host, isAlive: (other) => this.#life(other) },
      },
    );
    const observer = { emit: () => {} };
    this.#committer = new Committer({
      sink: "s",
      coverage: this.#keeper,
      objects: this.#objects,
      clock: this.#clock,
      observer,
      listener: this,
    });
    this.#work().then(
      () => {
        this.outcome = "done";
      },
      (e) => {
        this.outcome = asFailure(e);
      },
    );
  }

  get running(): boolean {
    return this.outcome === "running" && this.process.alive;
  }

  #life(other: HostId): "alive" | "dead" | "unknown" {
    if (other.hostname !== `m${this.machine}`) return "unknown";
    return this.#w.actors[other.pid]?.running === true ? "alive" : "dead";
  }

  async #work(): Promise<void> {
    await this.#keeper.open();
    this.#beat();
    await this.#claim();
    // What others have staged and not intended yet is theirs as long as they may live.
    if (!this.#shared) await this.#objects.sweep(this.#keeper.stagedNames());
    for (;;) {
      if (this.#failure !== null) throw this.#failure;
      if (this.#rewind) {
        this.#rewind = false;
        await this.#committer.idle();
        // Two that take the same streams from each other without a pause get nothing done.
        if (this.#shared) await sleep(this.#clock, this.#chance.int(600));
        await this.#claim();
      }
      const spans = this.#inFlight < IN_FLIGHT ? this.#nextSpans() : [];
      if (spans.length > 0) await this.#land(spans);
      else if (this.#inFlight === 0 && !this.#rewind && this.#failure === null) break;
      else await sleep(this.#clock, 5);
    }
    await this.#keeper.close();
  }

  #beat(): void {
    this.#clock.after(400, () => {
      const again = () => {
        if (this.outcome === "running" && this.#keeper.fenced === null) this.#beat();
      };
      this.#keeper.heartbeat().then(again, again);
    });
  }

  async #claim(): Promise<void> {
    for (const c of await this.#keeper.claim(STREAMS, null)) {
      const { authority, covered } = c;
      this.#held.set(c.stream, { authority, covered, position: firstUncovered(covered, 0n) });
    }
  }

  /** Spans of one to three streams, each the next part of what its stream lacks. */
  #nextSpans(): Span[] {
    const open = [...this.#held].filter(([, h]) => h.position < END);
    const chosen = open.filter(() => this.#chance.next() < 0.6);
    return (chosen.length > 0 ? chosen : open.slice(0, 1)).map(([stream, h]) => {
      const far = h.position + BigInt(1 + this.#chance.int(6));
      const [span] = cutSpan({ from: h.position, next: far < END ? far : END }, h.covered);
      h.position = firstUncovered(h.covered, span!.next);
      return { stream, ...span! };
    });
  }

  async #land(spans: readonly Span[]): Promise<void> {
    const id = `i${this.#serial}-${this.#sets++}`;
    const records = spans.flatMap((s) =>
      Array.from({ length: Number(s.next - s.from) }, (_, i) => s.from + BigInt(i))
        .filter((p) => !isHole(p))
        .map((p) => ({ file: Number(p % 2n), text: `${s.stream}@${p}` })),
    );
    const authorities = spans.map((s) => this.#held.get(s.stream)!.authority);
    const targets: Target[] = [];
    for (const file of [0, 1]) {
      const rows = records.filter((r) => r.file === file).map((r) => r.text);
      if (rows.length > 0) targets.push(await this.#file(`${id}-${file}`, rows));
    }
    const rest = {
      lane: 0,
      epoch: 0,
      covered: false,
      rows: records.length,
      bytes: 1,
      reason: "bytes",
      openedAt: 0,
      sealMs: 0,
    } as const;
    const set: SealedSet = { id, targets, spans, ...rest };
    this.#inFlight++;
    this.#committer.submit(set, authorities);
  }

  async #file(key: string, rows: readonly string[]): Promise<Target> {
    for (;;) {
      try {
        const staged = await this.#objects.stage(key);
        await staged.append(new TextEncoder().encode(rows.join("\n")));
        return await staged.seal(rows.length);
      } catch (e) {
        if (!asFailure(e).retry) throw e;
        await sleep(this.#clock, 20);
      }
    }
  }

  // ---- CommitListener

  committed(_id: string, spans: readonly Span[]): void {
    this.#inFlight--;
    this.#w.acknowledged(spans);
  }

  refused(): void {
    this.#inFlight--;
    this.#rewind = true;
  }

  failed(failure: Failure): void {
    this.#failure = failure;
  }

  trouble(): void {}
}
