/**
 * The messages between the control thread and the threads of a batch job. A cutter reads files in order and cuts them
 * into pieces of whole records; lanes hash files, turn pieces into columns, and write them. Everything survives a
 * structured clone; buffers are transferred and come back.
 */
import type { ContainerCodec } from "../codecs/avro/container.ts";
import type { CsvDialect } from "../codecs/csv/dialect.ts";
import type { FailureWire } from "../failure/failure.ts";
import type { StreamKey } from "../records/stream.ts";
import type { TableSchema } from "../types/table-schema.ts";
import type { Authority } from "./coverage.ts";
import type { SealedSet } from "./lane.ts";

export type Compression = "none" | "gzip" | "zstd";
export type TextEncoding = "utf-8" | "windows-1252" | "iso-8859-1" | "utf-16le" | "utf-16be";

/** How the rows of one file are found and read. */
export type FileLayout =
  | {
      readonly format: "csv";
      readonly dialect: CsvDialect;
      /** Names of the columns in the order of the file. */
      readonly columns: readonly string[];
      readonly header: boolean;
    }
  | { readonly format: "ndjson" /** One array of objects instead of a line each. */; readonly array: boolean }
  | { readonly format: "parquet" /** Rows of each row group. */; readonly groups: readonly number[] }
  | AvroLayout;

/** An object container file, as its header says it. */
export interface AvroLayout {
  readonly format: "avro";
  readonly codec: ContainerCodec;
  /** The writer's schema, and the one that records are resolved to (null: the writer's), as JSON. */
  readonly schema: string;
  readonly reader: string | null;
  /** What stands behind each block, and bytes before the first. */
  readonly marker: Uint8Array;
  readonly header: number;
}

export interface FileWork {
  /** Number of the file in the job. */
  readonly file: number;
  /** For people and for the locator column. */
  readonly name: string;
  /** Of this machine, or an address. */
  readonly path: string;
  /** Of an address: what the store calls the content that was found; null: a file of this machine. */
  readonly revision: string | null;
  readonly bytes: number;
  readonly compression: Compression;
  readonly encoding: TextEncoding;
  readonly layout: FileLayout;
}

export interface HashTask {
  readonly file: number;
  readonly path: string;
  readonly revision: string | null;
  /** [from, to) of the file; `from` at the begin of a part. */
  readonly from: number;
  readonly to: number;
}

export interface Hashed {
  readonly file: number;
  readonly from: number;
  /** SHA-256 of each part, one after another. */
  readonly parts: Uint8Array;
  /** xxHash64 of each block, to know the bytes again cheaply. */
  readonly blocks: BigUint64Array;
}

/** Whole records of one file. */
export interface PieceMessage {
  readonly file: number;
  readonly buffer: ArrayBuffer;
  /** The records lie in [0, end) of the buffer. */
  readonly end: number;
  readonly firstRow: number;
  /** Counted by the cutter. */
  readonly records: number;
  /** Line of the file, from 1, on which the piece begins. */
  readonly line: number;
  /** The last of its file. */
  readonly last: boolean;
}

/** A row group of a Parquet file, which a lane reads by itself; of a file of none: a range of no rows. */
export interface RowRange {
  readonly file: number;
  readonly group: number;
  readonly firstRow: number;
  readonly rows: number;
  readonly last: boolean;
}

export interface PieceCounts {
  readonly rows: number;
  readonly rejected: number;
  readonly skipped: number;
}

/** A refused row as it is shown at once; all of them are in the rejects file. */
export interface RejectSample {
  readonly file: string;
  readonly line: number;
  readonly row: number;
  readonly code: string;
  readonly column: string | null;
  readonly reason: string;
}

export type ToBatchLane =
  | { readonly t: "hash"; readonly task: HashTask }
  | {
      readonly t: "file";
      readonly work: FileWork;
      readonly stream: StreamKey;
      readonly sha256: string;
      /** Under which its rows are written: a sink that commits by itself proves it in its transaction. */
      readonly authority: Authority | null;
      /** Place of the file in the order in which files came to this sink; null where nothing depends on it. */
      readonly rank: number | null;
      /** Rows that are covered already. */
      readonly covered: readonly { readonly from: bigint; readonly next: bigint }[];
      /** The mark of its end is covered, though rows before it may not be. */
      readonly ended: boolean;
      /** Checks of the blocks as they were hashed, for lanes that read the file themselves; null: it is cut. */
      readonly checks: BigUint64Array | null;
    }
  | { readonly t: "piece"; readonly piece: PieceMessage }
  | { readonly t: "range"; readonly range: RowRange }
  /** Seal what there is; answered by `rolled`. */
  | { readonly t: "roll" };

export type FromBatchLane =
  | { readonly t: "ready" }
  | { readonly t: "hashed"; readonly hashed: Hashed }
  | {
      readonly t: "done";
      readonly file: number;
      /** Of the piece; comes back for the next one. */
      readonly buffer: ArrayBuffer | null;
      readonly counts: PieceCounts;
      readonly samples: readonly RejectSample[];
    }
  /** Rows that were counted as given to the sink, and that its server refused in the end. */
  | { readonly t: "refused"; readonly rows: number; readonly samples: readonly RejectSample[] }
  | { readonly t: "sealed"; readonly set: SealedSet }
  | { readonly t: "rolled" }
  | { readonly t: "sink"; readonly failure: FailureWire | null }
  | { readonly t: "dead"; readonly failure: FailureWire };

export type ToCutter =
  | { readonly t: "cut"; readonly work: FileWork; readonly columns: number }
  /** May send one more piece; `buffer`: one that came back. */
  | { readonly t: "credit"; readonly buffer: ArrayBuffer | null };

export type FromCutter =
  | { readonly t: "ready" }
  | {
      readonly t: "piece";
      readonly piece: PieceMessage /** Blocks read since the piece before. */;
      readonly blocks: BigUint64Array;
    }
  | { readonly t: "cut"; readonly file: number; readonly rows: number; readonly blocks: BigUint64Array }
  | { readonly t: "dead"; readonly failure: FailureWire };

/** One end of a thread. */
export interface ThreadPort<To, From> {
  post(message: To, transfer?: ArrayBuffer[]): void;
  onMessage(handler: (message: From) => void): void;
  kill(): void;
}

export type BatchLanePort = ThreadPort<ToBatchLane, FromBatchLane>;
export type CutterPort = ThreadPort<ToCutter, FromCutter>;

export interface TableSpec {
  readonly schema: TableSchema;
  readonly metadata: "none" | "locator" | "all";
  /** Name of the pipeline. */
  readonly pipeline: string;
  readonly prefix: string;
  /** With a column that orders files: the later one wins. */
  readonly ranked: boolean;
}
