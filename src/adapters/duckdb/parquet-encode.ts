/** A batch of columns as one Parquet file of one row group, in memory. */
import type { TableBatch } from "../../core/types/table-batch.ts";
import { type DuckEngine, sqlName, sqlText } from "./engine.ts";
import { MemoryFile } from "./memory-file.ts";

export interface ParquetEncoding {
  readonly compression: "zstd" | "none";
  readonly level: number;
}

/** More rows than any batch has: one row group a file. */
const ONE_GROUP = 1 << 30;

export class ParquetEncoder {
  readonly #engine: DuckEngine;
  readonly #file = new MemoryFile();
  readonly #options: string;

  constructor(engine: DuckEngine, { compression, level }: ParquetEncoding) {
    this.#engine = engine;
    const codec =
      compression === "zstd" ? `codec 'zstd', compression_level ${level}` : "codec 'uncompressed'";
    this.#options = `format parquet, parquet_version v2, row_group_size ${ONE_GROUP}, use_tmp_file false, ${codec}`;
  }

  encode(batch: TableBatch): Uint8Array {
    const columns = batch.fields.map((f) => sqlName(f.name)).join(", ");
    try {
      this.#engine.lend(batch, (view) =>
        this.#engine.run(
          `COPY (SELECT ${columns} FROM ${view}) TO ${sqlText(this.#file.path)} (${this.#options})`,
        ),
      );
      return this.#file.take();
    } finally {
      this.#file.clear();
    }
  }

  close(): void {
    this.#file.close();
  }
}
