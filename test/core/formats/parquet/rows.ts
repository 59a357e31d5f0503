/** Records as plain objects, for tests: made into a RawBatch, and read back from a file by hyparquet. */
import { parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { PageContext } from "../../../../src/core/formats/parquet/page.ts";
import { RawFile } from "../../../../src/core/formats/parquet/raw-file.ts";
import { SlabPool } from "../../../../src/core/formats/parquet/slabs.ts";
import type { BytesColumn, RawBatch } from "../../../../src/core/records/raw-batch.ts";
import type { StreamId } from "../../../../src/core/records/stream.ts";
import { streamKey } from "../../../../src/core/records/stream.ts";

export interface Row {
  readonly offset: bigint;
  readonly timestamp: bigint;
  /** 0 none, 1 create time, 2 log append time. */
  readonly timestampType: number;
  readonly key: Uint8Array | null;
  readonly value: Uint8Array | null;
  readonly headers: readonly (readonly [key: Uint8Array, value: Uint8Array | null])[];
  readonly leaderEpoch: number;
  readonly producerId: bigint;
  readonly producerEpoch: number;
  readonly baseSequence: number;
  readonly transactional: boolean;
}

const UTF8 = new TextEncoder();
export const bytes = (text: string): Uint8Array => UTF8.encode(text);

/** A row in which only what a test is about is named. */
export function row(offset: bigint | number, rest: Partial<Row> = {}): Row {
  return {
    offset: BigInt(offset),
    timestamp: 1_700_000_000_000n,
    timestampType: 1,
    key: null,
    value: null,
    headers: [],
    leaderEpoch: -1,
    producerId: -1n,
    producerEpoch: -1,
    baseSequence: -1,
    transactional: false,
    ...rest,
  };
}

export const STREAM: StreamId = {
  transport: "kafka",
  cluster: "c1",
  topic: "orders",
  incarnation: 0,
  partition: 3,
};

function column(values: readonly (Uint8Array | null)[]): BytesColumn {
  const offsets = new Int32Array(values.length + 1);
  const validity = new Uint8Array((values.length + 7) >> 3);
  let nullCount = 0;
  values.forEach((v, i) => {
    offsets[i + 1] = offsets[i]! + (v?.length ?? 0);
    if (v === null) nullCount++;
    else validity[i >> 3]! |= 1 << (i & 7);
  });
  const data = new Uint8Array(offsets[values.length]!);
  values.forEach((v, i) => {
    if (v !== null) data.set(v, offsets[i]!);
  });
  return { offsets, data, validity, nullCount };
}

function pairs(values: readonly bigint[]): Int32Array {
  return new Int32Array(BigInt64Array.from(values).buffer);
}

const RUN_FIELDS = [
  "leaderEpoch",
  "producerId",
  "producerEpoch",
  "baseSequence",
  "transactional",
  "timestampType",
] as const;

export function batchOf(
  rows: readonly Row[],
  stream: StreamId = STREAM,
  ingestTs = 1_700_000_000_500,
): RawBatch {
  const ends: number[] = [];
  const first: Row[] = [];
  rows.forEach((r, i) => {
    const before = rows[i - 1];
    if (before !== undefined && RUN_FIELDS.every((f) => before[f] === r[f])) ends[ends.length - 1] = i + 1;
    else {
      ends.push(i + 1);
      first.push(r);
    }
  });
  const headers = rows.flatMap((r) => r.headers);
  const headerOffsets = new Int32Array(rows.length + 1);
  rows.forEach((r, i) => {
    headerOffsets[i + 1] = headerOffsets[i]! + r.headers.length;
  });
  const last = rows[rows.length - 1];
  return {
    stream,
    span: {
      stream: streamKey(stream),
      from: rows[0]?.offset ?? 0n,
      next: last === undefined ? 0n : last.offset + 1n,
    },
    rows: rows.length,
    offsets: pairs(rows.map((r) => r.offset)),
    timestamps: pairs(rows.map((r) => r.timestamp)),
    key: column(rows.map((r) => r.key)),
    value: column(rows.map((r) => r.value)),
    headers: {
      offsets: headerOffsets,
      entries: headers.length,
      keys: column(headers.map(([k]) => k)),
      values: column(headers.map(([, v]) => v)),
    },
    runs: {
      count: ends.length,
      end: Int32Array.from(ends),
      leaderEpoch: Int32Array.from(first.map((r) => r.leaderEpoch)),
      producerId: BigInt64Array.from(first.map((r) => r.producerId)),
      producerEpoch: Int16Array.from(first.map((r) => r.producerEpoch)),
      baseSequence: Int32Array.from(first.map((r) => r.baseSequence)),
      transactional: Uint8Array.from(first.map((r) => (r.transactional ? 1 : 0))),
      timestampType: Uint8Array.from(first.map((r) => r.timestampType)),
    },
    ingestTs,
  };
}

export const EMIT_TS = 1_700_000_000_900;

/** zstd through Bun's own binding: another build of the library than the one that ships. */
export const zstd = {
  name: "zstd",
  bound: (n: number) => n + (n >> 8) + 1024,
  compress(input: Uint8Array, output: Uint8Array): number {
    const frame = Bun.zstdCompressSync(input as Uint8Array<ArrayBuffer>, { level: 1 });
    output.set(frame);
    return frame.length;
  },
} as const;

export interface FileOptions {
  readonly rowGroupBytes?: number;
  readonly compressed?: boolean;
  readonly metadata?: readonly (readonly [string, string])[];
}

/** The bytes of a file that holds the batches in order. */
export function fileOf(batches: readonly RawBatch[], options: FileOptions = {}): Uint8Array<ArrayBuffer> {
  const file = rawFile(options);
  const parts: Uint8Array[] = [];
  for (const b of batches) {
    file.append(b, 0, b.rows, EMIT_TS);
    parts.push(...taken(file));
  }
  file.finish(options.metadata ?? []);
  parts.push(...taken(file));
  return concat(parts);
}

export function rawFile(options: FileOptions = {}): RawFile {
  return new RawFile({
    context: new PageContext(options.compressed === false ? null : zstd, new SlabPool()),
    prefix: "_twg_",
    pipeline: "p",
    version: "9.9.9",
    rowGroupBytes: options.rowGroupBytes ?? 32 * 1024 * 1024,
  });
}

/** Everything that waits, taken out as a writer would. */
export function taken(file: RawFile): Uint8Array[] {
  const parts: Uint8Array[] = [];
  for (let b = file.out.first(); b !== null; b = file.out.first()) {
    parts.push(b.slice());
    file.out.dropFirst();
  }
  return parts;
}

export function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) {
    all.set(p, at);
    at += p.length;
  }
  return all;
}

export type ReadRow = Readonly<Record<string, unknown>>;

/** All rows as hyparquet reads them: bytes as bytes, timestamps as the int64 in the file. */
export async function readBack(file: Uint8Array<ArrayBuffer>): Promise<ReadRow[]> {
  const parsers = { timestampFromMilliseconds: (v: bigint | undefined) => v as unknown as Date };
  return (await parquetReadObjects({
    file: file.buffer.slice(file.byteOffset, file.byteOffset + file.length),
    compressors,
    utf8: false,
    parsers: parsers as never,
  })) as ReadRow[];
}

const KAFKA_NULLS = [
  "message_id",
  "producer_name",
  "sequence_id",
  "event_time",
  "schema_version",
  "redelivery_count",
  "ordering_key",
];

/** What a reader must find for a row, record id apart. */
export function expectedRow(r: Row, stream: StreamId = STREAM, ingestTs = 1_700_000_000_500): ReadRow {
  const source = {
    transport: "kafka",
    cluster: stream.cluster === "" ? null : stream.cluster,
    topic: stream.topic,
    partition: stream.partition,
    offset: r.offset,
    leader_epoch: r.leaderEpoch === -1 ? null : r.leaderEpoch,
    timestamp: r.timestampType === 0 ? null : r.timestamp,
    timestamp_type: [null, "CreateTime", "LogAppendTime"][r.timestampType],
    key: r.key,
    value: r.value,
    headers: r.headers.map(([key, value]) => ({ key, value })),
    producer_id: r.producerId === -1n ? null : r.producerId,
    producer_epoch: r.producerEpoch === -1 ? null : r.producerEpoch,
    base_sequence: r.baseSequence === -1 ? null : r.baseSequence,
    transactional: r.transactional,
    ...Object.fromEntries(KAFKA_NULLS.map((n) => [n, null])),
  };
  return {
    ...Object.fromEntries(Object.entries(source).map(([k, v]) => [`_twg_source_${k}`, v])),
    _twg_ingest_ts: BigInt(ingestTs),
    _twg_emit_ts: BigInt(EMIT_TS),
    _twg_pipeline: "p",
    _twg_schema_id: null,
    _twg_dq: null,
  };
}

/** A read row without its record id, undefined made null: hyparquet uses both for absence. */
export function comparable(r: ReadRow): ReadRow {
  const { _twg_record_id: _, ...rest } = r;
  return normal(rest) as ReadRow;
}

function normal(v: unknown): unknown {
  if (v === undefined || v === null) return null;
  if (v instanceof Uint8Array) return Uint8Array.from(v);
  if (Array.isArray(v)) return v.map(normal);
  if (typeof v === "object") return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, normal(x)]));
  return v;
}
