/**
 * Raw records as rows of a binary COPY, straight from the columns. What is the same for a whole batch and for a run of
 * records is encoded once and copied as bytes; per record come offset, timestamp, record id, key, value and headers.
 *
 *   row    int16 number of fields | field ...
 *   field  int32 length, -1 null | bytes
 *   array  int32 dimensions | int32 has nulls | int32 element oid | { int32 size, int32 lower bound } ... | element ...
 */

import { ByteWriter } from "../../../core/bytes/writer.ts";
import type { BytesColumn, HeadersColumn, RawBatch } from "../../../core/records/raw-batch.ts";
import { fillRecordIds, recordIdBase } from "../../../core/records/record-id.ts";
import { TIMESTAMP_TYPES } from "../../../core/records/timestamp-type.ts";
import { copiedColumns } from "../table/raw-columns.ts";
import type { CopyBlocks } from "./blocks.ts";
import { isBeyond, putMilliseconds } from "./timestamps.ts";

const BYTEA_OID = 17;
const UTF8 = new TextEncoder();
/** offset 4+8, timestamp 4+8, beyond 4, record id 4+16, heads of key, value and headers 3*4. */
const FIXED_BYTES = 12 + 12 + 4 + 20 + 12;
/** An index takes entries of a third of its page, 2,704 bytes; the name of a topic has at most 249 of them. */
const MAX_KEY_BYTES = 2400;
const EMPTY_ARRAY_BYTES = 12;
const ARRAY_HEAD_BYTES = 28;

/** Why a record cannot be upserted; the codes stand in reject lines. */
export type KeyProblem = "key.missing" | "key.too_long";
export type RefusedRecord = (row: number, problem: KeyProblem) => void;

export class RawRows {
  readonly #pipeline: Uint8Array;
  readonly #upsert: boolean;
  #ids = new Int32Array(0);

  constructor(pipeline: string, upsert: boolean) {
    this.#pipeline = UTF8.encode(pipeline);
    this.#upsert = upsert;
  }

  /**
   * Appends the rows of the batch and answers how many: for an upsert, those whose key can be one. `now`: wall time, ms.
   */
  append(batch: RawBatch, now: number, blocks: CopyBlocks, refused: RefusedRecord): number {
    const { stream, rows, runs } = batch;
    if (this.#ids.length < rows * 4) this.#ids = new Int32Array(rows * 4);
    fillRecordIds(recordIdBase(stream), stream.partition, batch.offsets, 0, rows, this.#ids, 0);
    const shared = this.#shared(batch, now);
    let from = 0;
    let appended = 0;
    for (let run = 0; run < runs.count; run++) {
      const to = Math.min(rows, runs.end[run]!);
      const template = new Uint8Array([...shared, ...runFields(batch, run)]);
      // Without an upsert the whole run is one stretch.
      for (let at = from; at < to; ) {
        const end = this.#upsert ? keyedUntil(batch, at, to) : to;
        if (end > at) this.#run(batch, at, end, template, blocks);
        appended += end - at;
        if (end < to) refused(end, isNull(batch.key, end) ? "key.missing" : "key.too_long");
        at = end + 1;
      }
      from = to;
    }
    return appended;
  }

  /** The number of fields, and those that all records of a batch share. */
  #shared({ stream, ingestTs }: RawBatch, now: number): Uint8Array {
    const w = new ByteWriter();
    w.i16(copiedColumns(this.#upsert).length);
    w.sizedBytes(UTF8.encode(stream.transport));
    w.sizedBytes(stream.cluster === "" ? null : UTF8.encode(stream.cluster));
    w.sizedBytes(UTF8.encode(stream.topic));
    w.i32(4).i32(stream.partition);
    w.i32(8).raw(timestamp(ingestTs));
    w.i32(8).raw(timestamp(now));
    w.sizedBytes(this.#pipeline);
    if (this.#upsert) w.i32(4).i32(stream.incarnation);
    return w.copy();
  }

  #run(batch: RawBatch, from: number, to: number, template: Uint8Array, blocks: CopyBlocks): void {
    const { offsets, timestamps, key, value, headers } = batch;
    const ids = new Uint8Array(this.#ids.buffer);
    const hasTimestamp = batch.runs.timestampType[runOf(batch, from)]! > 0;
    for (let i = from; i < to; i++) {
      const tsHigh = timestamps[2 * i + 1]!;
      const tsLow = timestamps[2 * i]!;
      const beyond = hasTimestamp && isBeyond(tsHigh, tsLow);
      const keyBytes = sizeOf(key, i);
      const valueBytes = sizeOf(value, i);
      const headerBytes = arrayBytes(headers, i);
      const size =
        template.length +
        FIXED_BYTES -
        (hasTimestamp ? 0 : 8) +
        (beyond ? 8 : 0) +
        keyBytes +
        valueBytes +
        headerBytes;
      let at = blocks.row(size);
      const { bytes, view } = blocks;
      bytes.set(template, at);
      at += template.length;
      view.setInt32(at, 8);
      view.setInt32(at + 4, offsets[2 * i + 1]!);
      view.setInt32(at + 8, offsets[2 * i]!);
      at += 12;
      view.setInt32(at, hasTimestamp ? 8 : -1);
      at += 4;
      if (hasTimestamp) {
        putMilliseconds(view, at, tsHigh, tsLow);
        at += 8;
      }
      view.setInt32(at, beyond ? 8 : -1);
      at += 4;
      if (beyond) {
        view.setInt32(at, tsHigh);
        view.setInt32(at + 4, tsLow);
        at += 8;
      }
      view.setInt32(at, 16);
      bytes.set(ids.subarray(16 * i, 16 * i + 16), at + 4);
      at += 20;
      at = putField(bytes, view, at, key, i, keyBytes);
      at = putField(bytes, view, at, value, i, valueBytes);
      putHeaders(bytes, view, at, headers, i, headerBytes);
    }
  }
}

/** The first record from `from` on, below `to`, whose key cannot be one; `to`: there is none. */
function keyedUntil({ key }: RawBatch, from: number, to: number): number {
  let i = from;
  while (i < to && !isNull(key, i) && sizeOf(key, i) <= MAX_KEY_BYTES) i++;
  return i;
}

function runOf({ runs }: RawBatch, row: number): number {
  let run = 0;
  while (runs.end[run]! <= row) run++;
  return run;
}

function timestamp(ms: number): Uint8Array {
  const out = new Uint8Array(8);
  putMilliseconds(new DataView(out.buffer), 0, Math.floor(ms / 4_294_967_296), ms | 0);
  return out;
}

/** Fields that all records of a producer's batch share. */
function runFields({ runs }: RawBatch, run: number): Uint8Array {
  const w = new ByteWriter();
  const orNull = (n: number, absent: number, put: (n: number) => void) => {
    if (n === absent) w.i32(-1);
    else put(n);
  };
  const int4 = (n: number) => void w.i32(4).i32(n);
  orNull(runs.leaderEpoch[run]!, -1, int4);
  const type = TIMESTAMP_TYPES[runs.timestampType[run]!] ?? null;
  w.sizedBytes(type === null ? null : UTF8.encode(type));
  const producer = runs.producerId[run]!;
  if (producer === -1n) w.i32(-1);
  else w.i32(8).i64(producer);
  orNull(runs.producerEpoch[run]!, -1, int4);
  orNull(runs.baseSequence[run]!, -1, int4);
  w.i32(1).i8(runs.transactional[run]!);
  return w.copy();
}

function isNull(column: BytesColumn, i: number): boolean {
  return column.nullCount > 0 && (column.validity[i >> 3]! & (1 << (i & 7))) === 0;
}

function sizeOf(column: BytesColumn, i: number): number {
  return column.offsets[i + 1]! - column.offsets[i]!;
}

function putField(
  bytes: Uint8Array,
  view: DataView,
  at: number,
  column: BytesColumn,
  i: number,
  size: number,
): number {
  if (isNull(column, i)) {
    view.setInt32(at, -1);
    return at + 4;
  }
  view.setInt32(at, size);
  if (size > 0) bytes.set(column.data.subarray(column.offsets[i]!, column.offsets[i]! + size), at + 4);
  return at + 4 + size;
}

/** Bytes of the array that holds the record's headers. */
function arrayBytes({ offsets, keys, values }: HeadersColumn, row: number): number {
  const from = offsets[row]!;
  const to = offsets[row + 1]!;
  if (from === to) return EMPTY_ARRAY_BYTES;
  const content = keys.offsets[to]! - keys.offsets[from]! + values.offsets[to]! - values.offsets[from]!;
  return ARRAY_HEAD_BYTES + 8 * (to - from) + content;
}

function putHeaders(
  bytes: Uint8Array,
  view: DataView,
  start: number,
  { offsets, keys, values }: HeadersColumn,
  row: number,
  size: number,
): void {
  const from = offsets[row]!;
  const to = offsets[row + 1]!;
  let at = start;
  view.setInt32(at, size);
  if (from === to) {
    view.setInt32(at + 4, 0);
    view.setInt32(at + 8, 0);
    view.setInt32(at + 12, BYTEA_OID);
    return;
  }
  view.setInt32(at + 4, 2);
  // The server looks at the elements themselves; the flag only has to be one of 0 and 1.
  view.setInt32(at + 8, 1);
  view.setInt32(at + 12, BYTEA_OID);
  view.setInt32(at + 16, to - from);
  view.setInt32(at + 20, 1);
  view.setInt32(at + 24, 2);
  view.setInt32(at + 28, 1);
  at += 4 + ARRAY_HEAD_BYTES;
  for (let h = from; h < to; h++) {
    at = putField(bytes, view, at, keys, h, sizeOf(keys, h));
    at = putField(bytes, view, at, values, h, sizeOf(values, h));
  }
}
