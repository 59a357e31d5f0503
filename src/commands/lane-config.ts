/** What a lane's thread is told at its start; plain data, since it crosses a thread. */
import type { KafkaWriterOptions } from "../adapters/kafka/sink/writer.ts";
import type { ParquetWriterOptions } from "../adapters/parquet/writer.ts";
import type { TableGrowth } from "../adapters/postgres/table/grow.ts";
import type { PostgresTableOptions } from "../adapters/postgres/table-writer.ts";
import type { PostgresWriterOptions } from "../adapters/postgres/writer.ts";
import type { DecodeSection } from "../core/config/decode-options.ts";
import type { LaneStore } from "./lane-store.ts";
import type { RowEncode } from "./row-schemas.ts";

export interface ParquetLaneSink {
  readonly kind: "parquet";
  readonly store: LaneStore;
  readonly rollBytes: number;
  readonly rollIntervalMs: number;
  readonly writer: ParquetWriterOptions;
}

export interface PostgresLaneSink {
  readonly kind: "postgres";
  readonly rollBytes: number;
  readonly rollIntervalMs: number;
  readonly writer: PostgresWriterOptions;
  /** See `crashHook`; null outside of tests. */
  readonly crashAt: string | null;
}

/** Of a batch job: rows of files in typed columns. */
interface PostgresTableLaneSink {
  readonly kind: "postgres";
  readonly rollBytes: number;
  readonly writer: PostgresTableOptions;
  readonly crashAt: string | null;
}

export type BatchLaneSink = ParquetLaneSink | PostgresTableLaneSink;

export interface KafkaLaneSink {
  readonly kind: "kafka";
  readonly rollBytes: number;
  readonly rollIntervalMs: number;
  readonly writer: KafkaWriterOptions;
  /** Of decoded rows; null: records stay as they are. */
  readonly encode: LaneEncode | null;
  readonly crashAt: string | null;
}

export type LaneEncode = { readonly format: "json" } | RowEncode;

/** In the place of the primary sink, while raw is read again: it has everything. */
export interface ReplayLaneSink {
  readonly kind: "replay";
  /** Of streams whose records were judged in several ways, one after the other: where each begins. */
  readonly cuts: ReadonlyMap<string, readonly bigint[]>;
  /** Of `LaneDecode`. */
  readonly fixedColumns: boolean;
  /** Of raw files. */
  readonly rowGroupBytes: number;
  readonly rollBytes: number;
  readonly rollIntervalMs: number;
}

export type LaneSink = ParquetLaneSink | PostgresLaneSink | KafkaLaneSink | ReplayLaneSink;

export interface LaneConfig {
  readonly instance: string;
  readonly maxDecompressedBytes: number;
  /** Most rows and bytes that are decoded at a time. */
  readonly batchRows: number;
  readonly batchBytes: number;
  readonly sink: LaneSink;
  readonly branches: readonly LaneBranch[];
  /** Null: nothing is decoded. */
  readonly decode: LaneDecode | null;
  /** Null: no sink leaves duplicates out. */
  readonly dedup: LaneDedup | null;
}

/** How duplicates are found. */
export interface LaneDedup {
  readonly windowRecords: number;
  readonly windowMs: number | null;
  readonly maxBytes: number;
  /** Of raw files. */
  readonly rowGroupBytes: number;
  /** Most of a batch of records that are read again. */
  readonly maxRows: number;
  readonly maxBatchBytes: number;
}

export interface LaneDecode {
  readonly pipeline: string;
  /** Of all metadata columns. */
  readonly prefix: string;
  /** Columns that a table does not take are no fault of the records: none is refused for them, and the sink waits. */
  readonly fixedColumns: boolean;
  /** All rows have the columns of one file of the configuration. */
  readonly oneFile: boolean;
  /** Schemas come from the control thread. */
  readonly options: Omit<DecodeSection, "registry">;
}

/** A sink beside the primary one. */
export interface LaneBranch {
  readonly name: string;
  /** Indexes of those that it comes after, all before it. */
  readonly after: readonly number[];
  /** Others come after it. */
  readonly eager: boolean;
  readonly holdBytes: number;
  readonly receives: "raw" | "decoded" | "rejected";
  readonly metadata: "none" | "locator" | "all";
  /** Records with the natural key of an earlier one are left out. */
  readonly distinct: boolean;
  /** A table that is missing is made. */
  readonly create: boolean;
  /** How a server's table grows; null: it does not. */
  readonly growth: TableGrowth | null;
  readonly sink: LaneSink;
}

/** Secrets that were read again, to a lane that runs: what it connects from now on uses them. */
export interface RenewSink {
  readonly t: "renew";
  readonly sink: LaneSink;
  readonly branches: readonly LaneSink[];
}
