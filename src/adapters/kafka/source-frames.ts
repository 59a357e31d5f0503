/**
 * From a fetch response to frames: which bytes of the buffer are whole batches of which stream, and where each
 * stream goes on. Only batch headers are read, here on the control thread; everything else is a lane's work.
 */
import { Failure } from "../../core/failure/failure.ts";
import type { AbortedTransaction, Frame } from "../../core/records/frame.ts";
import type { Partition } from "./source-partition.ts";
import { scanBatches } from "./source-scan.ts";
import type { FetchResponsePartition } from "./wire/messages/fetch.ts";

/** A partition as it was when the request was made. */
export interface Asked {
  readonly partition: Partition;
  readonly version: number;
  readonly position: bigint;
}

/**
 * An answer counts only while the partition is where it was. When a leader moves, the loops of the old one and of
 * the new one may both have asked for the same position: the first answer is read, the second would be read twice.
 */
export function isCurrent({ partition, version, position }: Asked): boolean {
  return partition.version === version && partition.position === position;
}

export type Cut =
  /** Whole batches: a frame to deliver, and the epoch of its last batch. */
  | { readonly kind: "frame"; readonly frame: Frame; readonly epoch: number }
  /** Nothing to read. */
  | { readonly kind: "empty" }
  /** The first batch is larger than what was asked for: ask for this much. */
  | { readonly kind: "cut"; readonly need: number }
  /** Batches that all end before the requested position. */
  | { readonly kind: "behind" }
  /** Batches beyond the high watermark that the answer itself tells. */
  | { readonly kind: "ahead"; readonly failure: Failure };

/** Throws a Failure (kafka.corrupt_batch) where the batch headers do not make sense. */
export function cutFrame(asked: Asked, answer: FetchResponsePartition, committedOnly: boolean): Cut {
  const records = answer.records;
  if (records === null || records.length === 0) return { kind: "empty" };
  const scan = scanBatches(records);
  if (scan.end === 0) return { kind: "cut", need: scan.need };
  if (scan.next <= asked.position) return { kind: "behind" };
  if (scan.firstNext <= asked.position) {
    const text = `asked for ${asked.position}, got a batch that ends at ${scan.firstNext}`;
    throw new Failure("kafka.corrupt_batch", text);
  }
  const { highWatermark } = answer;
  if (highWatermark >= 0n && scan.next > highWatermark) {
    const text = `a batch ends at ${scan.next}, the log at ${highWatermark}`;
    return { kind: "ahead", failure: new Failure("kafka.corrupt_batch", text) };
  }
  const { stream, attempt } = asked.partition;
  const at = records.byteOffset;
  const aborted: readonly AbortedTransaction[] = committedOnly ? (answer.abortedTransactions ?? []) : [];
  const frame: Frame = {
    stream,
    attempt,
    from: asked.position,
    next: scan.next,
    start: at,
    end: at + scan.end,
    aborted,
    committedOnly,
  };
  return { kind: "frame", frame, epoch: scan.epoch };
}
