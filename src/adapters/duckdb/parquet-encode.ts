/** A batch of columns as one Parquet file of one row group, in memory. */

import { type ConstantColumn, withConstants } from "../../core/formats/parquet/constant-columns.ts";
import type { ColumnType, TableBatch } from "../../core/types/table-batch.ts";
import { withoutInstants } from "../../core/types/utc-instants.ts";
import { type DuckEngine, sqlName, sqlText } from "./engine.ts";
import { MemoryFile } from "./memory-file.ts";

export interface ParquetEncoding {
  readonly compression: "zstd" | "none";
  readonly level: number;
}

/** More rows than any batch has: one row group a file. */
const ONE_GROUP = 1 << 30;
/** Distinct values up to which a column may have a dictionary. The engine's default follows the rows of a group, and looks long at columns of unique values. */
const DICTIONARY_VALUES = 10_000;

export class ParquetEncoder {
  readonly #engine: DuckEngine;
  readonly #file = new MemoryFile();
  readonly #options: string;

  constructor(engine: DuckEngine, { compression, level }: ParquetEncoding) {
    this.#engine = engine;
    const codec =
      compression === "zstd" ? `codec 'zstd', compression_level ${level}` : "codec 'uncompressed'";
    this.#options = `format parquet, row_group_size ${ONE_GROUP}, dictionary_size_limit ${DICTIONARY_VALUES}, use_tmp_file false, ${codec}`;
  }

  encode(batch: TableBatch): Uint8Array {
    const { constants, varying } = parted(batch);
    const version = varying.fields.some((f) => hasInt32(f.type)) ? "v1" : "v2";
    const columns = varying.fields.map((f) => sqlName(f.name)).join(", ");
    try {
      this.#engine.lend(withoutInstants(varying), (view) =>
        this.#engine.run(
          `COPY (SELECT ${columns} FROM ${view}) TO ${sqlText(this.#file.path)} (${this.#options}, parquet_version ${version})`,
        ),
      );
      return withConstants(this.#file.take(), batch.rows, constants);
    } finally {
      this.#file.clear();
    }
  }

  close(): void {
    this.#file.close();
  }
}

/**
 * DuckDB 1.5 writes deltas of 32-bit integers (DELTA_BINARY_PACKED, which v1 does not use) in 64 bits: where a uint32 is
 * above 2^31, or two int32 differ by that much, Arrow's readers find no end of the page.
 */
function hasInt32(type: ColumnType): boolean {
  switch (type.id) {
    case "int":
      return type.bits === 32;
    case "date32":
      return true;
    case "list":
      return hasInt32(type.item.type);
    case "map":
      return hasInt32(type.key.type) || hasInt32(type.value.type);
    case "struct":
      return type.fields.some((f) => hasInt32(f.type));
    default:
      return false;
  }
}

/** What the engine need not look at, and the rest, of which it needs one column at least. */
function parted(batch: TableBatch): {
  readonly constants: readonly ConstantColumn[];
  readonly varying: TableBatch;
} {
  const { fields, columns, rows } = batch;
  const constants = columns.flatMap(({ constant: value }, at): readonly ConstantColumn[] => {
    const { name, type } = fields[at]!;
    return value === undefined ? [] : [{ at, name, text: type.id === "utf8", value }];
  });
  if (constants.length === fields.length) return { constants: [], varying: batch };
  const varies = (_: unknown, i: number): boolean => columns[i]!.constant === undefined;
  return { constants, varying: { fields: fields.filter(varies), columns: columns.filter(varies), rows } };
}
