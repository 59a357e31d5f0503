/**
 * Records that could not be decoded as records of a topic: key, value and headers as they came, and behind these headers
 * that say why and where. They bear the time at which they were refused, not their own: retention counts from it, and a
 * record that is refused today must not be gone today because it is old. Its own time is a header.
 */
import type { DerivedBatch, RefusedRecord } from "../../../core/pipeline/derived.ts";
import { int64At } from "../../../core/records/int64-at.ts";
import { pickRows } from "../../../core/records/pick-rows.ts";
import type { RawBatch } from "../../../core/records/raw-batch.ts";
import { columnsWith } from "./columns.ts";
import type { LaneTransactions } from "./lane-transactions.ts";
import {
  type AddedHeader,
  constantHeader,
  type HeaderChoice,
  metadataHeaders,
  textHeader,
} from "./metadata-headers.ts";
import type { TransactionSetParts } from "./set.ts";
import { type OwnedRecords, TopicWriter } from "./topic-writer.ts";
import type { KafkaWriterOptions } from "./writer.ts";

export class KafkaRejectWriter extends TopicWriter<DerivedBatch> {
  /** `lane`: shared with the other writers of the lane. */
  constructor(options: KafkaWriterOptions, parts: TransactionSetParts, lane: LaneTransactions) {
    super(options, parts, lane, (batch) => rejectRecords(batch, options.headers, parts.clock.now()));
  }
}

/** The locator is there whatever the choice is: who holds a dead letter wants to know where it was. */
export function rejectRecords(
  { source, refused }: Pick<DerivedBatch, "source" | "refused">,
  headers: HeaderChoice,
  now: number,
): OwnedRecords | null {
  if (refused.length === 0) return null;
  const batch = pickRows(
    source,
    Int32Array.from(refused, (r) => r.row),
  );
  const { rows, key, value } = batch;
  const choice = headers.choice === "none" ? "locator" : headers.choice;
  const added = [
    ...reasonHeaders(refused, headers.prefix),
    ...metadataHeaders(batch, { ...headers, choice }),
    ownTimes(batch, headers.prefix),
  ];
  const own = { rows, key, value, headers: batch.headers.entries === 0 ? null : batch.headers };
  return {
    stream: batch.stream,
    owned: columnsWith({ ...own, timestamps: sameTime(rows, now) }, added),
    offsets: batch.offsets,
  };
}

function reasonHeaders(refused: readonly RefusedRecord[], prefix: string): AddedHeader[] {
  const text = (name: string, of: (r: RefusedRecord) => string | null) =>
    textHeader(`${prefix}${name}`, refused.map(of));
  return [
    constantHeader(`${prefix}reject_stage`, "decode"),
    text("reject_code", (r) => r.code),
    text("reject_path", (r) => r.path),
    text("reject_message", (r) => r.message),
    text("schema_id", (r) => r.schemaId),
  ];
}

/** Milliseconds; records of brokers before 0.10 have none. */
function ownTimes({ rows, timestamps, runs }: RawBatch, prefix: string): AddedHeader {
  let run = 0;
  const texts = Array.from({ length: rows }, (_, row) => {
    while (row >= runs.end[run]!) run++;
    return runs.timestampType[run] === 0 ? null : String(int64At(timestamps, row));
  });
  return textHeader(`${prefix}source_timestamp`, texts);
}

const TWO32 = 0x1_0000_0000;

function sameTime(rows: number, ms: number): Int32Array {
  const pairs = new Int32Array(2 * rows);
  for (let row = 0; row < rows; row++) {
    pairs[2 * row] = ms % TWO32;
    pairs[2 * row + 1] = Math.floor(ms / TWO32);
  }
  return pairs;
}
