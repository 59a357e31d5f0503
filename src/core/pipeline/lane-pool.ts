/**
 * The control thread's view of its lanes: posts work, takes receipts, and replaces a lane that dies.
 *
 * Epochs: every reset of a lane raises its epoch. A set sealed before the lane saw the reset carries an older
 * epoch and is void, since its streams were moved back meanwhile.
 */
import { asFailure, Failure, type FailureWire, fromWire } from "../failure/failure.ts";
import type {
  FromBranch,
  FromLane,
  LaneCounts,
  LanePort,
  LaneStream,
  SealedSet,
  ToBranch,
} from "../ports/lane.ts";
import type { FrameBundle } from "../records/frame.ts";

/** A lane that died this often without sealing anything in between will not get better. */
const MAX_DEATHS = 5;

export interface LanePoolEvents {
  ready(lane: number): void;
  consumed(lane: number, buffer: ArrayBuffer, bytes: number, counts: LaneCounts): void;
  sealed(set: SealedSet): void;
  /** A set of an older epoch: its staged files are to be discarded. */
  void(set: SealedSet): void;
  refused(lane: number, id: string, reason: string, detail: string): void;
  broken(stream: number, attempt: number, position: bigint, failure: Failure): void;
  sink(lane: number, failure: FailureWire | null): void;
  /** Of a sink beside the primary one. `current` false: the lane was taken back since. */
  branch(lane: number, sink: number, m: FromBranch, current: boolean): void;
  /** The lane is gone with everything it had not sealed; the pool has made a new one already. */
  died(lane: number, failure: Failure, restarts: number): void;
  /** It cannot go on. */
  hopeless(failure: Failure): void;
}

interface Slot {
  port: LanePort;
  epoch: number;
  deaths: number;
  readonly waiting: Map<number, () => void>;
}

export class LanePool {
  readonly #slots: Slot[] = [];
  readonly #spawn: (lane: number) => LanePort;
  readonly #events: LanePoolEvents;
  #token = 0;
  #stopped = false;

  constructor(lanes: number, spawn: (lane: number) => LanePort, events: LanePoolEvents) {
    this.#spawn = spawn;
    this.#events = events;
    for (let lane = 0; lane < lanes; lane++) {
      this.#slots.push({ port: spawn(lane), epoch: 0, deaths: 0, waiting: new Map() });
    }
    for (let lane = 0; lane < lanes; lane++) this.#listen(lane);
  }

  get size(): number {
    return this.#slots.length;
  }

  /** Tells the lane of new streams, or moves known ones; what it holds stays. */
  place(lane: number, streams: readonly LaneStream[]): void {
    this.#slot(lane).port.post({ t: "streams", streams });
  }

  deliver(lane: number, bundle: FrameBundle): void {
    this.#slot(lane).port.post({ t: "frames", bundle }, [bundle.buffer]);
  }

  /** Voids everything that the lane has not sealed, and everything sealed that was not intended yet. */
  reset(lane: number, streams: readonly LaneStream[]): void {
    const slot = this.#slot(lane);
    slot.epoch++;
    slot.port.post({ t: "reset", epoch: slot.epoch, streams });
  }

  /** Resolves when every lane, or the one named, has sealed what it holds; its sets were reported before. */
  async roll(reason: "drain" | "revoke", lane?: number): Promise<void> {
    const slots = lane === undefined ? this.#slots : [this.#slot(lane)];
    await Promise.all(slots.map((slot) => this.#rollOne(slot, reason)));
  }

  /** To the lane's end of a sink beside the primary one. */
  branch(lane: number, sink: number, m: ToBranch): void {
    this.#slot(lane).port.post({ t: "branch", sink, m });
  }

  /** Streams of which nothing comes any more. */
  forget(lane: number, streams: readonly number[]): void {
    this.#slot(lane).port.post({ t: "forget", streams });
  }

  stop(): void {
    this.#stopped = true;
    for (const slot of this.#slots) {
      slot.port.post({ t: "stop" });
      slot.port.kill();
      for (const done of slot.waiting.values()) done();
    }
  }

  #rollOne(slot: Slot, reason: "drain" | "revoke"): Promise<void> {
    const token = ++this.#token;
    return new Promise((resolve) => {
      slot.waiting.set(token, resolve);
      slot.port.post({ t: "roll", token, reason });
    });
  }

  #listen(lane: number): void {
    const port = this.#slot(lane).port;
    port.onMessage((message) => {
      if (this.#stopped || this.#slot(lane).port !== port) return;
      try {
        this.#on(lane, message);
      } catch (e) {
        // A receipt that breaks the order of positions: nothing on this stack could say so.
        this.#events.hopeless(asFailure(e));
      }
    });
  }

  #on(lane: number, m: FromLane): void {
    const slot = this.#slot(lane);
    switch (m.t) {
      case "ready":
        return this.#events.ready(lane);
      case "consumed":
        return this.#events.consumed(lane, m.buffer, m.bytes, m.counts);
      case "sealed":
        slot.deaths = 0;
        return m.set.epoch === slot.epoch ? this.#events.sealed(m.set) : this.#events.void(m.set);
      case "rolled": {
        slot.waiting.get(m.token)?.();
        slot.waiting.delete(m.token);
        return;
      }
      case "refused":
        // Of an older epoch: its streams were moved back already.
        if (m.epoch === slot.epoch) this.#events.refused(lane, m.id, m.reason, m.detail);
        return;
      case "broken":
        return this.#events.broken(m.stream, m.attempt, m.position, fromWire(m.failure));
      case "sink":
        return this.#events.sink(lane, m.failure);
      case "branch":
        return this.#events.branch(lane, m.sink, m.m, epochOf(m.m) === null || epochOf(m.m) === slot.epoch);
      case "dead":
        return this.#died(lane, fromWire(m.failure));
    }
  }

  #died(lane: number, failure: Failure): void {
    const slot = this.#slot(lane);
    slot.port.kill();
    slot.deaths++;
    // A lane that says why it cannot go on (a coded, not retryable reason) would say the same again.
    if (!failure.retry) return this.#events.hopeless(failure);
    if (slot.deaths >= MAX_DEATHS) {
      return this.#events.hopeless(
        new Failure("lane.unstable", `lane ${lane} died ${slot.deaths} times in a row: ${failure.message}`, {
          at: `lane ${lane}`,
          cause: failure,
        }),
      );
    }
    slot.port = this.#spawn(lane);
    slot.epoch++;
    slot.port.post({ t: "reset", epoch: slot.epoch, streams: [] });
    this.#listen(lane);
    for (const done of slot.waiting.values()) done();
    slot.waiting.clear();
    this.#events.died(lane, failure, slot.deaths);
  }

  #slot(lane: number): Slot {
    const slot = this.#slots[lane];
    if (slot === undefined) throw new Failure("internal.bug", `there is no lane ${lane}`);
    return slot;
  }
}

/** Resets that the lane had seen; null: that does not matter. */
function epochOf(m: FromBranch): number | null {
  if (m.t === "sealed") return m.set.epoch;
  return m.t === "closed" || m.t === "refused" || m.t === "missed" ? m.epoch : null;
}
