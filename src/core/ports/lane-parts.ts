/** What a lane is made of: a frame decoder of the source's transport, and the primary raw sink's writer. */
import type { Frame } from "../records/frame.ts";
import type { RawBatch } from "../records/raw-batch.ts";
import type { Span, StreamId } from "../records/stream.ts";
import type { Authority } from "./coverage.ts";
import type { RefusalReason, RefusedRows } from "./lane.ts";
import type { Target } from "./object-store.ts";

/**
 * Reads frames into batches. `decode` calls `emit` one or more times, each batch a contiguous part of the frame's
 * span in order, together covering exactly [frame.from, frame.next); an empty frame emits one batch of 0 rows.
 * Records below frame.from or at and above frame.next are left out: a lane narrows a frame to skip covered ranges.
 * Throws a Failure with topic, partition and offset. Batches emitted before it stay valid: the last one's
 * span.next is where to fetch again.
 */
export interface FrameDecoder {
  /**
   * A frame may be larger than what sinks hold: its reading may be left between two batches, and goes on at little cost
   * where it was left.
   */
  readonly resumes?: boolean;
  decode(
    bytes: Uint8Array,
    frame: Frame,
    stream: StreamId,
    receivedAt: number,
    emit: (batch: RawBatch) => void,
  ): void;
}

export interface SetFiles {
  /** What is to be published; none where the sink has committed by itself. */
  readonly targets: readonly Target[];
  /** True for a transactional sink: rows, receipt and coverage are durable, in one transaction. */
  readonly covered: boolean;
  readonly rows: number;
  readonly bytes: number;
  /** How many of the rows the sink had already, each the same, and did not take again; absent: none. */
  readonly there?: number;
  /** Rows that it left out; absent: none. */
  readonly leftOut?: RefusedRows;
}

/** Nothing of the set is or can become visible. */
export interface SetRefusal {
  readonly refused: RefusalReason;
  readonly detail: string;
}

/** One per lane. Holds the open files of the current set. */
export interface RawWriter {
  /**
   * Begins a set of files under this id, unique over all processes that ever write the sink. Objects whose key
   * must be known when their upload begins carry it in their key.
   */
  open(id: string): void;
  /**
   * Takes the rows, synchronously: encodes and compresses into pages; the batch's arrays may be reused on return.
   * Row groups that are complete wait in memory for `flush`. Called several times between two flushes, and while one
   * is under way. Rows before `from` are left out. Answers the row after the last one taken: below the number of rows
   * if the set is full, and then the rest belongs to the next set. `authority`: under which the batch's stream is
   * written now.
   */
  write(batch: RawBatch, authority: Authority, from?: number): number;
  /** Appends what is complete to the staged objects. If it fails with a retryable Failure (full disk, outage) nothing is lost: calling it again goes on. */
  flush(): Promise<void>;
  /** Bytes in memory for open files. */
  readonly held: number;
  /** Bytes staged plus held of the largest open file, against `roll_bytes`. */
  readonly largest: number;
  /**
   * Closes all files of the set, which stand for `spans`, and makes them durable. No rows: no targets. Retryable like
   * flush. `authorities`: one for each stream of the spans. A transactional sink proves them and commits.
   */
  seal(spans: readonly Span[], authorities: readonly Authority[]): Promise<SetFiles | SetRefusal>;
  /** Drops all open files. */
  abort(): Promise<void>;
}
