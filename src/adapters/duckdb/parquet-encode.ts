/** A batch of columns as one Parquet file of one row group, in memory. */

import { withoutInstants } from "../../core/types/nanosecond-instants.ts";
import type { ColumnType, TableBatch } from "../../core/types/table-batch.ts";
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
    this.#options = `format parquet, row_group_size ${ONE_GROUP}, use_tmp_file false, ${codec}`;
  }

  encode(batch: TableBatch): Uint8Array {
    const version = batch.fields.some((f) => hasUint32(f.type)) ? "v1" : "v2";
    const columns = batch.fields.map((f) => sqlName(f.name)).join(", ");
    try {
      this.#engine.lend(withoutInstants(batch), (view) =>
        this.#engine.run(
          `COPY (SELECT ${columns} FROM ${view}) TO ${sqlText(this.#file.path)} (${this.#options}, parquet_version ${version})`,
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

/**
 * DuckDB 1.5 begins the deltas of a uint32 above 2^31 (DELTA_BINARY_PACKED, which v1 does not use) with a number of more
 * than 32 bits, and Arrow's readers find no end of the page.
 */
function hasUint32(type: ColumnType): boolean {
  switch (type.id) {
    case "int":
      return type.bits === 32 && !type.signed;
    case "list":
      return hasUint32(type.item.type);
    case "map":
      return hasUint32(type.key.type) || hasUint32(type.value.type);
    case "struct":
      return type.fields.some((f) => hasUint32(f.type));
    default:
      return false;
  }
}
