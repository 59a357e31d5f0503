/** Where the columns of a raw file are, and whether a row group of one is stored as `twg` stores them. */
import { BYTES_ENCODINGS, ID_ENCODINGS, INT64_ENCODINGS } from "../formats/parquet/read-columns.ts";
import type { ChunkInfo, ParquetFooter } from "../formats/parquet/read-footer.ts";
import { PHYSICAL, REPETITION, type SchemaNode } from "../formats/parquet/read-footer.ts";
import { RUN_ENCODINGS } from "../formats/parquet/read-runs.ts";
import { type StoredPages, storedPages } from "../formats/parquet/stored-pages.ts";
import { METADATA_COLUMNS } from "../records/metadata-columns.ts";

/** Number of a column in a raw file. */
export function placeOf(name: string): number {
  return METADATA_COLUMNS.findIndex((c) => c.name === name);
}

const HEADERS = placeOf("source_headers");

/** Number of a column's leaf, or of the first of two: headers are the only column that has more than one. */
export function leafOf(name: string): number {
  const place = placeOf(name);
  return place > HEADERS ? place + 1 : place;
}

interface Shape {
  readonly physical: number;
  readonly encodings: readonly number[];
  readonly required?: boolean;
}

const INT64: Shape = { physical: PHYSICAL.int64, encodings: INT64_ENCODINGS };
const BYTES: Shape = { physical: PHYSICAL.bytes, encodings: BYTES_ENCODINGS };
const runs = (physical: number): Shape => ({ physical, encodings: RUN_ENCODINGS });

export const OWN_SHAPES = {
  source_topic: runs(PHYSICAL.bytes),
  source_partition: runs(PHYSICAL.int32),
  source_offset: INT64,
  source_leader_epoch: runs(PHYSICAL.int32),
  source_timestamp: INT64,
  source_timestamp_type: runs(PHYSICAL.bytes),
  source_key: BYTES,
  source_value: BYTES,
  source_producer_id: runs(PHYSICAL.int64),
  source_producer_epoch: runs(PHYSICAL.int32),
  source_base_sequence: runs(PHYSICAL.int32),
  source_transactional: runs(PHYSICAL.boolean),
  record_id: { physical: PHYSICAL.fixed, encodings: ID_ENCODINGS, required: true },
  ingest_ts: { ...runs(PHYSICAL.int64), required: true },
} satisfies Readonly<Record<string, Shape>>;

export type OwnColumn = keyof typeof OWN_SHAPES;

/** The pages of a flat column. Null: stored otherwise. `file`: where the chunk's positions count from. */
export function ownPages(
  file: Uint8Array,
  { leaves }: Pick<ParquetFooter, "leaves">,
  chunks: readonly ChunkInfo[],
  name: OwnColumn,
): StoredPages | null {
  const leaf = leafOf(name);
  const [node, chunk, shape] = [leaves[leaf], chunks[leaf], OWN_SHAPES[name] as Shape];
  if (node === undefined || chunk === undefined || node.physical !== shape.physical) return null;
  const repetition = shape.required === true ? REPETITION.required : REPETITION.optional;
  if (node.repetition !== repetition) return null;
  return storedPages(file, chunk, shape.encodings);
}

/** Keys and values of headers. */
export function ownHeaderPages(
  file: Uint8Array,
  { columns }: Pick<ParquetFooter, "columns">,
  chunks: readonly ChunkInfo[],
): readonly [StoredPages, StoredPages] | null {
  const [keys, values] = [chunks[HEADERS], chunks[HEADERS + 1]];
  if (keys === undefined || values === undefined || !isHeaders(columns[HEADERS])) return null;
  const [k, v] = [storedPages(file, keys, BYTES_ENCODINGS), storedPages(file, values, BYTES_ENCODINGS)];
  return k === null || v === null ? null : [k, v];
}

function isHeaders(list: SchemaNode | undefined): boolean {
  const [entries] = list?.children ?? [];
  const [entry] = entries?.children ?? [];
  const [key, value] = entry?.children ?? [];
  return (
    list?.repetition === REPETITION.optional &&
    entries?.repetition === REPETITION.repeated &&
    entry?.repetition === REPETITION.required &&
    isBytes(key, REPETITION.required) &&
    isBytes(value, REPETITION.optional)
  );
}

const isBytes = (node: SchemaNode | undefined, repetition: number): boolean =>
  node?.physical === PHYSICAL.bytes && node.repetition === repetition;
