/**
 * Decoded rows as records of a topic: the row is the value, behind an envelope where the format has one; key, headers and
 * timestamp are those of the record that it was decoded from. In the order of the records, whatever their schemas were.
 *
 * A record without a value and with a key goes along as it is: in a compacted topic it is what deletes the key.
 */
import type { Payloads } from "../../../core/codecs/record-codec.ts";
import type { DerivedBatch } from "../../../core/pipeline/derived.ts";
import { pickRows } from "../../../core/records/pick-rows.ts";
import type { BytesColumn, RawBatch } from "../../../core/records/raw-batch.ts";
import type { TableBatch } from "../../../core/types/table-batch.ts";
import { columnsWith } from "./columns.ts";
import type { LaneTransactions } from "./lane-transactions.ts";
import { type HeaderChoice, metadataHeaders } from "./metadata-headers.ts";
import type { TransactionSetParts } from "./set.ts";
import { type OwnedRecords, TopicWriter } from "./topic-writer.ts";
import type { KafkaWriterOptions } from "./writer.ts";

export interface RowEncoding {
  /** Before each payload. */
  readonly envelope: Uint8Array;
  /** Payload i is row i. */
  readonly encode: (rows: TableBatch) => Payloads;
}

export class KafkaRowWriter extends TopicWriter<DerivedBatch> {
  /** `lane`: shared with the other writers of the lane. */
  constructor(
    options: KafkaWriterOptions,
    parts: TransactionSetParts,
    lane: LaneTransactions,
    encoding: RowEncoding,
  ) {
    super(options, parts, lane, (batch) => rowRecords(batch, encoding, options.headers));
  }
}

export function rowRecords(
  { source, table, tableRows }: Pick<DerivedBatch, "source" | "table" | "tableRows">,
  { envelope, encode }: RowEncoding,
  headers: HeaderChoice,
): OwnedRecords | null {
  const { records, rows } = inOrder(source, tableRows);
  if (records.length === 0) return null;
  const payloads = table === null ? NONE : encode(table);
  const batch = pickRows(source, records, valueColumn(payloads, rows, envelope));
  const { key, value, timestamps } = batch;
  const own = batch.headers.entries === 0 ? null : batch.headers;
  return {
    stream: batch.stream,
    owned: columnsWith(
      { rows: records.length, key, value, headers: own, timestamps },
      metadataHeaders(batch, headers),
    ),
    offsets: batch.offsets,
  };
}

const NONE: Payloads = {
  bytes: new Uint8Array(0),
  starts: new Int32Array(0),
  ends: new Int32Array(0),
  count: 0,
};

const LEFT_OUT = -2;
const TOMBSTONE = -1;

/** Records that the topic gets, ascending, and of each its row in the table, or TOMBSTONE. */
function inOrder(
  source: RawBatch,
  tableRows: Int32Array,
): { readonly records: Int32Array; readonly rows: Int32Array } {
  const rowOf = new Int32Array(source.rows).fill(LEFT_OUT);
  let count = tableRows.length;
  for (let i = 0; i < tableRows.length; i++) rowOf[tableRows[i]!] = i;
  if (source.value.nullCount > 0)
    for (let r = 0; r < source.rows; r++)
      if (isNull(source.value, r) && !isNull(source.key, r) && rowOf[r] === LEFT_OUT) {
        rowOf[r] = TOMBSTONE;
        count++;
      }
  const records = new Int32Array(count);
  const rows = new Int32Array(count);
  for (let r = 0, at = 0; r < source.rows; r++) {
    if (rowOf[r] === LEFT_OUT) continue;
    records[at] = r;
    rows[at++] = rowOf[r]!;
  }
  return { records, rows };
}

function isNull({ validity, nullCount }: BytesColumn, i: number): boolean {
  return nullCount > 0 && ((validity[i >>> 3]! >>> (i & 7)) & 1) === 0;
}

function valueColumn({ bytes, starts, ends }: Payloads, rows: Int32Array, envelope: Uint8Array): BytesColumn {
  const offsets = new Int32Array(rows.length + 1);
  const validity = new Uint8Array((rows.length + 7) >>> 3);
  let nullCount = 0;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!;
    offsets[i + 1] = offsets[i]!;
    if (row === TOMBSTONE) nullCount++;
    else {
      validity[i >>> 3]! |= 1 << (i & 7);
      offsets[i + 1]! += envelope.length + ends[row]! - starts[row]!;
    }
  }
  const data = new Uint8Array(offsets[rows.length]!);
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!;
    if (row === TOMBSTONE) continue;
    const at = offsets[i]!;
    for (let k = 0; k < envelope.length; k++) data[at + k] = envelope[k]!;
    copy(bytes, starts[row]!, ends[row]!, data, at + envelope.length);
  }
  return { offsets, data, validity, nullCount };
}

/** Shorter payloads are copied by a loop: a view for `set` costs more. */
const SHORT = 48;

function copy(from: Uint8Array, start: number, end: number, to: Uint8Array, at: number): void {
  if (end - start > SHORT) to.set(from.subarray(start, end), at);
  else for (let i = start; i < end; i++) to[at + i - start] = from[i]!;
}
