/**
 * The one list of metadata columns. Whatever writes rows takes names, order, types and nullability from here, so
 * that a table made by one sink can be joined with a table made by another. The list only ever grows at the end.
 *
 * Null means "the transport does not have it" or "this record has none"; where Kafka spells absence as -1
 * (leader epoch, producer id, producer epoch, base sequence) the column says null. A timestamp of -1 is kept, since
 * a broker stores and serves it as a value; null is a timestamp only where the record format has no such field.
 */
export type MetadataType =
  /** UTF-8 text. */
  | "string"
  /** Bytes of any kind, never taken for text. */
  | "bytes"
  /** Exactly 16 bytes. */
  | "bytes16"
  | "int32"
  | "int64"
  | "boolean"
  /** Milliseconds since the epoch, UTC, signed 64 bit. */
  | "timestamp_ms"
  /** List of { key: bytes, value: bytes or null } in the order of the record, duplicates kept. */
  | "headers";

export interface MetadataColumn {
  /** Without prefix. */
  readonly name: string;
  /** Who says so: the source, or we ourselves when the record passes. */
  readonly provenance: "source" | "stamped";
  readonly type: MetadataType;
  readonly nullable: boolean;
  readonly meaning: string;
}

export const DEFAULT_METADATA_PREFIX = "_twg_";

const source = (name: string, type: MetadataType, meaning: string, nullable = true) =>
  ({ name: `source_${name}`, provenance: "source", type, nullable, meaning }) as const;
const stamped = (name: string, type: MetadataType, meaning: string, nullable = false) =>
  ({ name, provenance: "stamped", type, nullable, meaning }) as const;

export const METADATA_COLUMNS: readonly MetadataColumn[] = [
  source("transport", "string", "Where the record came from: kafka, ...", false),
  source("cluster", "string", "Id that the cluster gives itself; null if it gives none."),
  source("topic", "string", "Topic."),
  source("partition", "int32", "Partition of the topic."),
  source("offset", "int64", "Offset within the partition."),
  source("message_id", "bytes", "Message id in the transport's own encoding (Pulsar)."),
  source("leader_epoch", "int32", "Leader epoch under which the batch was appended; null if unknown."),
  source(
    "timestamp",
    "timestamp_ms",
    "Timestamp of the record as the source keeps it, -1 and extremes included.",
  ),
  source(
    "timestamp_type",
    "string",
    "CreateTime or LogAppendTime; null if the record format has no timestamp.",
  ),
  source("key", "bytes", "Key; null and empty are different."),
  source("value", "bytes", "Value exactly as received; null (a tombstone) and empty are different."),
  source("headers", "headers", "Headers in order, with duplicate keys and null values."),
  source("producer_id", "int64", "Id of an idempotent or transactional producer."),
  source("producer_epoch", "int32", "Its epoch."),
  source("base_sequence", "int32", "Sequence number of the first record of the producer's batch."),
  source("transactional", "boolean", "Whether the record was written in a transaction."),
  source("producer_name", "string", "Name of the producer (Pulsar)."),
  source("sequence_id", "int64", "Sequence id given by the producer (Pulsar)."),
  source("event_time", "timestamp_ms", "Event time given by the application (Pulsar)."),
  source("schema_version", "bytes", "Version of the topic's schema (Pulsar)."),
  source("redelivery_count", "int32", "How often the broker had delivered the message before (Pulsar)."),
  source("ordering_key", "bytes", "Ordering key (Pulsar)."),
  stamped("record_id", "bytes16", "Identity of the record: the same on every replay (see record-id.ts)."),
  stamped("ingest_ts", "timestamp_ms", "When its bytes arrived here."),
  stamped("emit_ts", "timestamp_ms", "When it was given to the sink."),
  stamped("pipeline", "string", "Name of the pipeline."),
  stamped(
    "schema_id",
    "string",
    "Id of the schema that the payload names, as text; null in the raw lane.",
    true,
  ),
  stamped("dq", "string", "Verdict of the quality rules as JSON; null where none ran.", true),
];

/** Full column name. */
export function metadataName(prefix: string, column: MetadataColumn): string {
  return prefix + column.name;
}

/** A prefix that every sink can carry as part of an unquoted SQL name. */
export const METADATA_PREFIX_PATTERN = /^[a-z_][a-z0-9_]{0,31}$/;
