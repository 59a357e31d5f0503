/**
 * The columns of a raw table: the one list of metadata columns in PostgreSQL's types, and one column more.
 *
 * `source_timestamp_beyond` keeps what timestamptz cannot: Kafka's timestamps are any int64 of milliseconds, and
 * PostgreSQL ends at the years -4713 and 294276. Such a timestamp is infinity or -infinity, its number stands here.
 *
 * Headers are one bytea[] of two dimensions, a pair of key and value for each header: order, duplicates, null values
 * and bytes that are no text all stay, and no type has to be made for it.
 */
import { METADATA_COLUMNS, type MetadataType, metadataName } from "../../../core/records/metadata-columns.ts";
import type { TableColumnSpec } from "./column-specs.ts";
import type { Upsert } from "./upsert.ts";

const TYPES: Readonly<Record<MetadataType, string>> = {
  string: "text",
  bytes: "bytea",
  bytes16: "uuid",
  int32: "integer",
  int64: "bigint",
  boolean: "boolean",
  timestamp_ms: "timestamp with time zone",
  headers: "bytea[]",
};

const BEYOND = "source_timestamp_beyond";

/** How often a topic was made anew under its name: without it positions of two such topics could not be told apart. */
const INCARNATION = "source_incarnation";
const KEY = ["source_topic", "source_key"];

/** `upsert`: the table of the latest record of each key, which needs to know more of a record's position. */
export function rawColumns(prefix: string, upsert: boolean): readonly TableColumnSpec[] {
  const listed = METADATA_COLUMNS.map((c) => {
    const name = metadataName(prefix, c);
    const inKey = upsert && KEY.some((k) => prefix + k === name);
    return { name, type: TYPES[c.type], nullable: c.nullable && !inKey };
  });
  const beyond = { name: prefix + BEYOND, type: "bigint", nullable: true };
  const incarnation = { name: prefix + INCARNATION, type: "integer", nullable: false };
  return upsert ? [...listed, beyond, incarnation] : [...listed, beyond];
}

/** Columns that name a record of an upsert: its key, within its topic. */
export function rawKey(prefix: string): readonly string[] {
  return KEY.map((name) => prefix + name);
}

/**
 * Within a partition the later offset is the later record. A key that moved to another partition has offsets there that
 * say nothing about those before: then the later timestamp decides, and of two the higher partition.
 */
export function rawUpsert(prefix: string): Upsert {
  const named = (names: readonly string[]) => names.map((name) => prefix + name);
  return {
    key: rawKey(prefix),
    order: named([INCARNATION, "source_offset"]),
    across: {
      stream: `${prefix}source_partition`,
      order: named([INCARNATION, "source_timestamp", "source_partition"]),
    },
    columns: named(copiedColumns(true)),
  };
}

/** See COPIED_COLUMNS. */
export function copiedColumns(upsert: boolean): readonly string[] {
  if (!upsert) return COPIED_COLUMNS;
  const at = COPIED_COLUMNS.indexOf("pipeline") + 1;
  return COPIED_COLUMNS.toSpliced(at, 0, INCARNATION);
}

/**
 * The columns that records of Kafka fill, in the order in which their rows are encoded (see `RawRows`): what is the
 * same for a batch, for a producer's batch, and for each record. All others stay null.
 */
const COPIED_COLUMNS: readonly string[] = [
  "source_transport",
  "source_cluster",
  "source_topic",
  "source_partition",
  "ingest_ts",
  "emit_ts",
  "pipeline",
  "source_leader_epoch",
  "source_timestamp_type",
  "source_producer_id",
  "source_producer_epoch",
  "source_base_sequence",
  "source_transactional",
  "source_offset",
  "source_timestamp",
  BEYOND,
  "record_id",
  "source_key",
  "source_value",
  "source_headers",
];
