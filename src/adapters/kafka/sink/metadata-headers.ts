/** The headers that say where a record was: each a name, and how the bytes of a row's value are written. */
import type { RawBatch } from "../../../core/records/raw-batch.ts";
import { fillRecordIds, recordIdBase } from "../../../core/records/record-id.ts";

export interface HeaderChoice {
  readonly choice: "none" | "locator" | "all";
  /** Of the names. */
  readonly prefix: string;
  readonly pipeline: string;
}

const UTF8 = new TextEncoder();
const TIMESTAMP_TYPES = ["", "CreateTime", "LogAppendTime"] as const;

/** Writes the bytes of a row's header at `at` of `out`, and answers how many there are; -1: the row has none. */
type Cell = (row: number, out: Uint8Array, at: number) => number;

export interface AddedHeader {
  readonly name: Uint8Array;
  readonly most: number;
  readonly cell: Cell;
}

export function constantHeader(name: string, text: string): AddedHeader {
  const bytes = UTF8.encode(text);
  return {
    name: UTF8.encode(name),
    most: bytes.length,
    cell: (_row, out, at) => put(bytes, out, at),
  };
}

/** An int64 in decimal has at most 20 characters. */
const DECIMAL = 20;

function decimal(name: string, number: (row: number) => number | bigint | null): AddedHeader {
  return {
    name: UTF8.encode(name),
    most: DECIMAL,
    cell: (row, out, at) => {
      const n = number(row);
      if (n === null) return -1;
      return typeof n === "number"
        ? digits(n, out, at)
        : UTF8.encodeInto(String(n), out.subarray(at)).written;
    },
  };
}

const ZERO = 48;

/** A whole number that is exact and not negative, without a text in between. */
function digits(n: number, out: Uint8Array, at: number): number {
  let count = 1;
  for (let rest = n; rest >= 10; rest = Math.floor(rest / 10)) count++;
  for (let i = at + count - 1, rest = n; i >= at; i--, rest = Math.floor(rest / 10))
    out[i] = ZERO + (rest % 10);
  return count;
}

const TWO_TO_32 = 4294967296;

/** As a number where that is exact, so that no bigint is made for offsets as they are. */
function offsetOf({ offsets }: RawBatch, row: number): number | bigint {
  const high = offsets[2 * row + 1]!;
  const low = offsets[2 * row]! >>> 0;
  return high < 0x200000 ? high * TWO_TO_32 + low : (BigInt(high) << 32n) | BigInt(low);
}

/** A text of each row's own; null: the row has none. */
export function textHeader(name: string, texts: readonly (string | null)[]): AddedHeader {
  const values = texts.map((t) => (t === null ? null : UTF8.encode(t)));
  return {
    name: UTF8.encode(name),
    most: values.reduce((n, v) => Math.max(n, v?.length ?? 0), 0),
    cell: (row, out, at) => {
      const value = values[row] ?? null;
      return value === null ? -1 : put(value, out, at);
    },
  };
}

export function metadataHeaders(
  batch: RawBatch,
  { choice, prefix, pipeline }: HeaderChoice,
): readonly AddedHeader[] {
  if (choice === "none") return [];
  const { stream } = batch;
  const locator = [
    constantHeader(`${prefix}source_topic`, stream.topic),
    constantHeader(`${prefix}source_partition`, String(stream.partition)),
    decimal(`${prefix}source_offset`, (row) => offsetOf(batch, row)),
  ];
  if (choice !== "all") return locator;
  const run = runAt(batch);
  const known = (of: Int32Array | Int16Array) => (row: number) => {
    const n = of[run(row)]!;
    return n < 0 ? null : n;
  };
  return [
    constantHeader(`${prefix}source_transport`, stream.transport),
    ...(stream.cluster === "" ? [] : [constantHeader(`${prefix}source_cluster`, stream.cluster)]),
    ...locator,
    decimal(`${prefix}source_leader_epoch`, known(batch.runs.leaderEpoch)),
    {
      name: UTF8.encode(`${prefix}source_timestamp_type`),
      most: 16,
      cell: (row, out, at) => {
        const type = TIMESTAMP_TYPES[batch.runs.timestampType[run(row)]!] ?? "";
        return type === "" ? -1 : UTF8.encodeInto(type, out.subarray(at)).written;
      },
    },
    decimal(`${prefix}source_producer_id`, (row) => {
      const id = batch.runs.producerId[run(row)]!;
      return id < 0n ? null : id;
    }),
    decimal(`${prefix}source_producer_epoch`, known(batch.runs.producerEpoch)),
    decimal(`${prefix}source_base_sequence`, known(batch.runs.baseSequence)),
    {
      name: UTF8.encode(`${prefix}source_transactional`),
      most: 5,
      cell: (row, out, at) => put(batch.runs.transactional[run(row)] === 1 ? TRUE : FALSE, out, at),
    },
    recordIds(`${prefix}record_id`, batch),
    constantHeader(`${prefix}ingest_ts`, String(batch.ingestTs)),
    constantHeader(`${prefix}pipeline`, pipeline),
  ];
}

const TRUE = UTF8.encode("true");
const FALSE = UTF8.encode("false");

function put(bytes: Uint8Array, out: Uint8Array, at: number): number {
  out.set(bytes, at);
  return bytes.length;
}

/** Rows are asked for in their order. */
function runAt({ runs }: RawBatch): (row: number) => number {
  let run = 0;
  return (row) => {
    if (run > 0 && row < runs.end[run - 1]!) run = 0;
    while (run < runs.count - 1 && row >= runs.end[run]!) run++;
    return run;
  };
}

const HEX = UTF8.encode("0123456789abcdef");

function recordIds(name: string, batch: RawBatch): AddedHeader {
  const { stream, rows, offsets } = batch;
  const words = new Int32Array(4 * rows);
  fillRecordIds(recordIdBase(stream), stream.partition, offsets, 0, rows, words, 0);
  const bytes = new Uint8Array(words.buffer);
  return {
    name: UTF8.encode(name),
    most: 32,
    cell: (row, out, at) => {
      for (let i = 0; i < 16; i++) {
        const byte = bytes[16 * row + i]!;
        out[at + 2 * i] = HEX[byte >>> 4]!;
        out[at + 2 * i + 1] = HEX[byte & 15]!;
      }
      return 32;
    },
  };
}
