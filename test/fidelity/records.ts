/** The records of the corpus, in each representation, each time as plain rows by the names of metadata columns. */
import { libduckdbPath } from "../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../src/adapters/duckdb/native.ts";
import { createFrameDecoder } from "../../src/adapters/kafka/wire/records/frame-decoder.ts";
import { copyBatch } from "../../src/core/records/copy-batch.ts";
import { METADATA_COLUMNS } from "../../src/core/records/metadata-columns.ts";
import type { RawBatch } from "../../src/core/records/raw-batch.ts";
import { fillRecordIds, recordIdBase } from "../../src/core/records/record-id.ts";
import type { StreamId } from "../../src/core/records/stream.ts";
import type { TableBatch } from "../../src/core/types/table-batch.ts";
import { frameOf, rowsOf } from "../adapters/kafka/wire/records/rows.ts";
import { cellOf } from "../core/codecs/table.ts";
import golden from "../golden/fidelity/records.json";

/** Bytes in hex, 64 bits and instants as text, smaller numbers as numbers, headers as a list of key and value. */
export type Plain = Readonly<Record<string, unknown>>;

export const codecs = loadNative(libduckdbPath());
export const CORPUS: StreamId = { ...golden.stream, transport: "kafka" };
/** Behind the last of them. */
export const NEXT = 2n ** 63n - 1n;
export const INGEST = golden.ingest_ts;
export const PREFIX = "_twg_";
export const CORPUS_ROWS: readonly Plain[] = golden.rows.map((r) => ({ ...r }));

const TIMESTAMP_TYPES = [null, "CreateTime", "LogAppendTime"];

/** All columns; those that are not named are null. */
export const whole = (row: Plain): Plain =>
  Object.fromEntries(METADATA_COLUMNS.map(({ name }) => [name, row[name] ?? null]));

export function consumed(bytes: Uint8Array, stream: StreamId, next: bigint): RawBatch[] {
  const batches: RawBatch[] = [];
  const decoder = createFrameDecoder({ codecs, maxDecompressedBytes: 1 << 20 });
  decoder.decode(bytes, frameOf(bytes, { next }), stream, INGEST, (b) => batches.push(copyBatch(b)));
  return batches;
}

export const corpusBatches = (): RawBatch[] => consumed(Uint8Array.fromHex(golden.hex), CORPUS, NEXT);

/** What a batch says of its records. */
export function plainBatch(b: RawBatch): Plain[] {
  const ids = new Int32Array(4 * b.rows);
  fillRecordIds(recordIdBase(b.stream), b.stream.partition, b.offsets, 0, b.rows, ids, 0);
  const hex = new Uint8Array(ids.buffer).toHex();
  const known = (n: number) => (n < 0 ? null : n);
  return rowsOf(b).map((r, i) =>
    whole({
      source_transport: b.stream.transport,
      source_cluster: b.stream.cluster,
      source_topic: b.stream.topic,
      source_partition: b.stream.partition,
      source_offset: String(r.offset),
      source_leader_epoch: known(r.run.leaderEpoch),
      source_timestamp: r.run.timestampType === 0 ? null : String(r.timestamp),
      source_timestamp_type: TIMESTAMP_TYPES[r.run.timestampType],
      source_key: r.key,
      source_value: r.value,
      source_headers: r.headers.map(([key, value]) => ({ key, value })),
      source_producer_id: r.run.producerId < 0n ? null : String(r.run.producerId),
      source_producer_epoch: known(r.run.producerEpoch),
      source_base_sequence: known(r.run.baseSequence),
      source_transactional: r.run.transactional,
      record_id: hex.slice(32 * i, 32 * i + 32),
      ingest_ts: String(b.ingestTs),
    }),
  );
}

/** What columns of the list say; others are left out. */
export function plainTable({ fields, columns, rows }: TableBatch): Plain[] {
  return Array.from({ length: rows }, (_, r) =>
    whole(
      Object.fromEntries(
        fields.flatMap((f, i) =>
          f.name.startsWith(PREFIX) ? [[f.name.slice(PREFIX.length), plain(cellOf(columns[i]!, r))]] : [],
        ),
      ),
    ),
  );
}

/** Of a reader: bytes as hex, 64 bits as text. */
export function plain(cell: unknown): unknown {
  if (typeof cell === "bigint") return String(cell);
  if (cell instanceof Uint8Array) return cell.toHex();
  if (Array.isArray(cell)) return cell.map(plain);
  if (typeof cell === "object" && cell !== null)
    return Object.fromEntries(Object.entries(cell).map(([k, v]) => [k, plain(v)]));
  return cell ?? null;
}
