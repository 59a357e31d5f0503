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

export interface TableColumnSpec {
  readonly name: string;
  /** As `format_type` of the server spells it. */
  readonly type: string;
  readonly nullable: boolean;
}

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

export function rawColumns(prefix: string): readonly TableColumnSpec[] {
  const listed = METADATA_COLUMNS.map((c) => ({
    name: metadataName(prefix, c),
    type: TYPES[c.type],
    nullable: c.nullable,
  }));
  return [...listed, { name: prefix + BEYOND, type: "bigint", nullable: true }];
}

/**
 * The columns that records of Kafka fill, in the order in which their rows are encoded (see `RawRows`): what is the
 * same for a batch, for a producer's batch, and for each record. All others stay null.
 */
export const COPIED_COLUMNS = [
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
] as const;
