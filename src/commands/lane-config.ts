/** What a lane's thread is told at its start; plain data, since it crosses a thread. */
import type { ParquetWriterOptions } from "../adapters/parquet/writer.ts";

export interface LaneConfig {
  readonly instance: string;
  readonly root: string;
  readonly staging: string;
  readonly rollBytes: number;
  readonly rollIntervalMs: number;
  readonly maxOpenFiles: number;
  readonly maxDecompressedBytes: number;
  /** Most rows and bytes that are decoded at a time. */
  readonly batchRows: number;
  readonly batchBytes: number;
  readonly writer: ParquetWriterOptions;
}
