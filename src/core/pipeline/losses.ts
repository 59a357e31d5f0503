/** Records that nobody can read any more: recorded in coverage first, then settled in the ledger. */
import type { Ledger } from "../delivery/ledger.ts";
import type { LostRange, StreamCoverage } from "../ports/coverage.ts";
import type { Observer } from "../ports/observer.ts";
import type { LaneRestarts } from "./lane-restarts.ts";
import { cutAround } from "./span-set.ts";
import type { StreamTable } from "./stream-table.ts";

export interface LossesParts {
  readonly coverage: StreamCoverage;
  readonly ledger: Ledger;
  readonly observer: Observer;
}

export class Losses {
  readonly #table: StreamTable;
  readonly #restarts: LaneRestarts;
  readonly #p: LossesParts;

  constructor(table: StreamTable, restarts: LaneRestarts, parts: LossesParts) {
    this.#table = table;
    this.#restarts = restarts;
    this.#p = parts;
  }

  /**
   * Records [from, next) as lost, apart from what is covered or was recorded before. False: the stream was moved
   * while that was written, or is about to be: from where it goes on, it will come to the loss again if it must.
   */
  async record(stream: number, from: bigint, next: bigint, reason: LostRange["reason"]): Promise<boolean> {
    const { key, id, lane, laneStream } = this.#table.get(stream);
    const holes = cutAround({ from, next }, laneStream.skip).filter((piece) => !piece.covered);
    const lost = holes.map((h) => ({ from: h.from, next: h.next, reason }));
    await this.#p.coverage.recordLost(lost.map((l) => ({ stream: key, ...l })));
    const { topic, partition } = id;
    for (const l of lost) this.#p.observer.emit({ e: "records.lost", topic, partition, ...l });
    if (
      this.#table.get(stream).dropped ||
      this.#restarts.has(lane) ||
      this.#p.ledger.state(stream).delivered !== from
    )
      return false;
    this.#p.ledger.lose(stream, from, next);
    return true;
  }

  /**
   * True if the stream was moved on, over a loss, while the lane had not yet read what lies at `position` before the
   * loss: nobody would read that any more. A stream that was moved back reads it again by itself.
   */
  passedBy(stream: number, position: bigint): boolean {
    const start = this.#table.get(stream).laneStream.position;
    return this.#p.ledger.state(stream).committed <= position && position < start;
  }
}
