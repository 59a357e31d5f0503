/** One call of decode: where it is in the bytes and in the offsets, and what was emitted. */
import type { Code } from "../../../../core/failure/codes.ts";
import { Failure } from "../../../../core/failure/failure.ts";
import type { Frame } from "../../../../core/records/frame.ts";
import type { RawBatch } from "../../../../core/records/raw-batch.ts";
import type { StreamId } from "../../../../core/records/stream.ts";
import { AbortedFilter } from "./aborted.ts";
import type { RowBuilder } from "./row-builder.ts";

export class FrameRun {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly frame: Frame;
  /** Null: nothing is to be left out as aborted. */
  readonly aborted: AbortedFilter | null;
  /** Index of the next batch. */
  at: number;
  /** Everything below was read, filtered or is a hole. Never above frame.next. */
  position: bigint;
  /** A sink threw: what it throws goes out as it is, and it is not called again. */
  sinkFailed = false;
  /** Offset after the batch before; null before the first. */
  #reached: bigint | null = null;
  readonly #stream: StreamId;
  readonly #receivedAt: number;
  readonly #emit: (batch: RawBatch) => void;
  readonly #rows: RowBuilder;
  /** Everything below was emitted. */
  #from: bigint;
  #emitted = false;

  constructor(
    bytes: Uint8Array,
    frame: Frame,
    stream: StreamId,
    receivedAt: number,
    emit: (batch: RawBatch) => void,
    rows: RowBuilder,
  ) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.frame = frame;
    this.aborted = frame.committedOnly && frame.aborted.length > 0 ? new AbortedFilter(frame.aborted) : null;
    this.at = frame.start;
    this.position = frame.from;
    this.#from = frame.from;
    this.#stream = stream;
    this.#receivedAt = receivedAt;
    this.#emit = emit;
    this.#rows = rows;
  }

  /**
   * A batch from `base` on was found. Its checksum does not cover its base offset; but a log only grows, so one
   * that begins before the end of the one before it is damaged, and reading on would double or lose records.
   */
  meet(base: bigint): void {
    if (this.#reached !== null && base < this.#reached) {
      throw new Failure(
        "kafka.corrupt_batch",
        `a batch at ${base} stands behind one that ends at ${this.#reached}`,
      );
    }
  }

  /** The batch up to `next` was read: the position moves on, never back and never out of the frame. */
  reach(next: bigint): void {
    this.#reached = next;
    if (next > this.position) this.position = smaller(next, this.frame.next);
  }

  /** Hands out the rows, for the span up to `next`, and empties the columns. */
  emit(next: bigint): void {
    const to = smaller(next, this.frame.next);
    this.sinkFailed = true;
    this.#emit(this.#rows.batch(this.#stream, this.#from, to, this.#receivedAt));
    this.sinkFailed = false;
    this.#emitted = true;
    this.#from = to;
    this.#rows.reset();
  }

  /** Emits what is left; an empty frame too has its span. */
  finish(): void {
    if (!this.#emitted || this.#from < this.frame.next) this.emit(this.frame.next);
  }

  /** Hands out what is good before the failure, and gives the failure its place: where to fetch again. */
  fail(cause: Failure): Failure {
    if (this.position > this.#from) this.emit(this.position);
    const { topic, partition } = this.#stream;
    return new Failure(codeOf(cause.code), cause.message, {
      at: `${topic}/${partition}@${this.#from}`,
      hint: cause.hint ?? "If it stays when it is fetched again, the log on the broker's disk is damaged",
      cause,
    });
  }
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

/** Codes of the parts, as the codes of a record batch. */
function codeOf(code: Code): Code {
  if (code === "compression.limit") return "kafka.batch_too_large";
  return code.startsWith("bytes.") || code.startsWith("compression.") ? "kafka.corrupt_batch" : code;
}
