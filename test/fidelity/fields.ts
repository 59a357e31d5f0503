/**
 * The entries of the fidelity corpus: every field that a record of a raw batch has, where it is in the list of metadata
 * columns, and which representation does not keep it, with the reason. A field that is added to the types is an error of tsc
 * here until it has an entry; a column that is added to the list, or a loss that is none, fails fields.test.ts.
 */
import type { BatchRuns, BytesColumn, HeadersColumn, RawBatch } from "../../src/core/records/raw-batch.ts";
import type { StreamId } from "../../src/core/records/stream.ts";

/** The metadata columns that say it, or why it is no property of a record. */
export type Entry = readonly string[] | { readonly none: string };

export const RAW_BATCH = {
  stream: { none: "STREAM has its parts" },
  span: { none: "positions that the batch stands for, records or not" },
  rows: { none: "the number of records" },
  offsets: ["source_offset", "record_id"],
  timestamps: ["source_timestamp"],
  key: ["source_key"],
  value: ["source_value"],
  headers: ["source_headers"],
  runs: { none: "RUNS has its parts" },
  ingestTs: ["ingest_ts"],
} as const satisfies Record<keyof RawBatch, Entry>;

export const RUNS = {
  count: { none: "the number of runs" },
  end: { none: "where runs end" },
  leaderEpoch: ["source_leader_epoch"],
  producerId: ["source_producer_id"],
  producerEpoch: ["source_producer_epoch"],
  baseSequence: ["source_base_sequence"],
  transactional: ["source_transactional"],
  timestampType: ["source_timestamp_type"],
} as const satisfies Record<keyof BatchRuns, Entry>;

export const STREAM = {
  transport: ["source_transport", "record_id"],
  cluster: ["source_cluster", "record_id"],
  topic: ["source_topic", "record_id"],
  incarnation: ["record_id"],
  partition: ["source_partition", "record_id"],
} as const satisfies Record<keyof StreamId, Entry>;

export const HEADERS = {
  offsets: { none: "where a record's headers begin" },
  entries: { none: "the number of headers" },
  keys: ["source_headers"],
  values: ["source_headers"],
} as const satisfies Record<keyof HeadersColumn, Entry>;

export const BYTES = {
  offsets: { none: "where a cell begins" },
  data: ["source_key", "source_value", "source_headers"],
  validity: ["source_key", "source_value", "source_headers"],
  nullCount: { none: "the number of nulls" },
} as const satisfies Record<keyof BytesColumn, Entry>;

export const REPRESENTATIONS = [
  /** As a frame decoder makes it, and copied and picked from. */
  "batch",
  /** A file of the raw sink, read by another's reader. */
  "raw file",
  /** The same file by way of recovery: a batch again. */
  "replay",
  /** Columns in Arrow's layout. */
  "columns",
  /** A table's Parquet file of them, of both encoders. */
  "table file",
  /** A Value: a record of the metadata beside the payload. */
  "value",
  /** What the Kafka sink writes with metadata = "all", consumed again. */
  "topic",
] as const;

export type Representation = (typeof REPRESENTATIONS)[number];

/** What it is that no record of Kafka has. */
export type Source = "record" | "stamp" | "pulsar" | "decode" | "quality";

export interface Field {
  readonly source: Source;
  /** By representation: why it is not there. */
  readonly lost?: Partial<Record<Representation, string>>;
}

const RECORD: Field = { source: "record" };
const PULSAR: Field = { source: "pulsar" };
const OF_A_SINK = "stamped when a sink is given the record, which has not been then";

/** By the names of metadata columns. */
export const FIELDS: Readonly<Record<string, Field>> = {
  source_transport: RECORD,
  source_cluster: RECORD,
  source_topic: RECORD,
  source_partition: RECORD,
  source_offset: RECORD,
  source_message_id: PULSAR,
  source_leader_epoch: RECORD,
  source_timestamp: RECORD,
  source_timestamp_type: RECORD,
  source_key: RECORD,
  source_value: RECORD,
  source_headers: RECORD,
  source_producer_id: RECORD,
  source_producer_epoch: RECORD,
  source_base_sequence: RECORD,
  source_transactional: RECORD,
  source_producer_name: PULSAR,
  source_sequence_id: PULSAR,
  source_event_time: PULSAR,
  source_schema_version: PULSAR,
  source_redelivery_count: PULSAR,
  source_ordering_key: PULSAR,
  record_id: RECORD,
  ingest_ts: RECORD,
  emit_ts: {
    source: "stamp",
    lost: {
      batch: OF_A_SINK,
      replay: "of the run that wrote the file; a sink that is filled from it stamps its own",
      topic: "a transaction that is tried again would not be the same bytes",
    },
  },
  pipeline: {
    source: "stamp",
    lost: { batch: OF_A_SINK, replay: "it is the name of the pipeline whose raw it is" },
  },
  schema_id: { source: "decode" },
  dq: { source: "quality" },
};
