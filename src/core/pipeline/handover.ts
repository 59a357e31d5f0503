/**
 * Streams that change hands: a lane that is taken back to what is covered, streams that go to another member of the
 * group in good order (`release`), and streams that are somebody else's already (`abandon`).
 *
 * A set of files may hold streams that stay and streams that go. In good order it is sealed and published first, so
 * those that stay go on without a pause; what a lost stream has in an open file is dropped with the file, and those
 * that stay are read again from what is covered.
 */
import type { SetCommitter } from "../delivery/committer.ts";
import type { Ledger } from "../delivery/ledger.ts";
import { asFailure, type Failure } from "../failure/failure.ts";
import type { StreamCoverage } from "../ports/coverage.ts";
import type { Observer } from "../ports/observer.ts";
import type { Source } from "../ports/source.ts";
import type { Acknowledger } from "./acknowledger.ts";
import type { LanePool } from "./lane-pool.ts";
import type { LaneRestarts } from "./lane-restarts.ts";
import type { Secondaries } from "./secondaries.ts";
import type { Begun, StreamTable } from "./stream-table.ts";

export interface HandoverParts {
  readonly lanes: () => LanePool;
  readonly committer: SetCommitter;
  readonly secondaries: Secondaries;
  readonly table: StreamTable;
  readonly restarts: LaneRestarts;
  readonly acks: Acknowledger;
  readonly ledger: Ledger;
  readonly source: Source;
  readonly coverage: StreamCoverage;
  readonly observer: Observer;
  readonly finished: () => boolean;
  readonly fail: (failure: Failure) => void;
  /** Of a stream that is gone at the source: what was not delivered is lost. */
  readonly settleGone: (stream: number) => Promise<void>;
}

export class Handover {
  readonly #p: HandoverParts;

  constructor(parts: HandoverParts) {
    this.#p = parts;
  }

  /**
   * Takes all streams of a lane back to what is covered. The lane forgets them first, so whatever it still gets
   * of the old attempts is dropped; sets under way are settled before coverage is read again.
   */
  async restart(lane: number, why: string): Promise<void> {
    const { restarts, table, source } = this.#p;
    if (restarts.has(lane) || this.#p.finished()) return;
    restarts.begin(lane);
    try {
      this.#p.lanes().reset(lane, []);
      this.#p.secondaries.reset(lane);
      await this.#p.committer.settledOf(lane);
      const { taken, epoch } = await this.#reclaim(lane);
      const streams = taken.map((b) => table.placed(b.start.stream));
      await this.#p.secondaries.claim(streams, epoch);
      if (this.#p.finished()) return;
      this.#p.lanes().place(
        lane,
        taken.filter((b) => !table.get(b.start.stream).dropped).map((b) => b.laneStream),
      );
      this.#p.secondaries.place(lane);
      restarts.end(lane);
      for (const { start, laneStream, again } of taken) {
        const { stream, position, attempt } = start;
        if (table.get(stream).dropped) continue;
        if (table.get(stream).ended) {
          this.#p.settleGone(stream).catch((e) => this.#p.fail(asFailure(e)));
          continue;
        }
        const { topic, partition } = laneStream.id;
        this.#p.observer.emit({ e: "stream.rewound", topic, partition, position, attempt, again, why });
        source.seek(stream, position, attempt);
      }
    } catch (e) {
      if (!this.#p.finished()) this.#p.fail(asFailure(e));
    } finally {
      restarts.end(lane);
    }
  }

  /**
   * In a group only a membership that was confirmed since may claim: whoever was evicted, and does not know it yet,
   * would else take back what others own. One that is confirmed and still behind is a member of a group that was
   * deleted and begins to count anew: its claim counts.
   */
  async #reclaim(lane: number): Promise<{ readonly taken: readonly Begun[]; readonly epoch: number | null }> {
    let epoch = await this.#p.source.confirmation();
    for (;;) {
      try {
        return { taken: await this.#p.table.reclaim(lane, epoch), epoch };
      } catch (e) {
        const failure = asFailure(e);
        if (failure.code !== "coverage.epoch_behind" || epoch === null) throw failure;
        await this.#p.source.confirmation();
        epoch = null;
      }
    }
  }

  /** The source does not deliver them any more; what it delivered lands and is acknowledged, then they are forgotten. */
  async release(streams: readonly number[], why = "another member of the group gets it"): Promise<void> {
    const lanes = [...new Set(streams.map((s) => this.#p.table.get(s).lane))];
    await Promise.all(lanes.map((lane) => this.#land(lane)));
    await this.#p.acks.flush();
    await Promise.all(lanes.map((lane) => this.#p.secondaries.idle(Number.POSITIVE_INFINITY, lane)));
    const keys = streams.map((s) => this.#p.table.get(s)).flatMap((s) => (s.dropped ? [] : [s.key]));
    this.#forget(streams, why);
    // Whoever gets them can do without, only less smoothly.
    await Promise.all([this.#p.coverage.release?.(keys).catch(() => {}), this.#p.secondaries.release(keys)]);
  }

  async #land(lane: number): Promise<void> {
    await this.#p.restarts.over(lane);
    await this.#p.lanes().roll("revoke", lane);
    await this.#p.committer.settledOf(lane);
    // A set may have been refused meanwhile.
    await this.#p.restarts.over(lane);
  }

  /** Nothing of them can be written any more once this resolves. */
  async abandon(streams: readonly number[]): Promise<void> {
    const lanes = [...new Set(streams.map((s) => this.#p.table.get(s).lane))];
    this.#forget(streams, "another member of the group has it by now");
    for (const lane of lanes) void this.restart(lane, "partitions of the group were lost");
    await Promise.all(lanes.map((lane) => this.#p.committer.settledOf(lane)));
  }

  #forget(streams: readonly number[], why: string): void {
    for (const stream of streams) {
      const s = this.#p.table.get(stream);
      if (s.dropped) continue;
      this.#p.table.drop(stream);
      this.#p.ledger.end(stream);
      this.#p.lanes().forget(s.lane, [stream]);
      this.#p.secondaries.forget([stream]);
      const { topic, partition } = s.id;
      this.#p.observer.emit({ e: "stream.ended", topic, partition, why });
    }
  }
}
