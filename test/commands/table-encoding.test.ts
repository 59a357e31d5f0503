/**
 * Goal: a lane's tables are encoded whatever their types are, and both encoders make pieces of one file. Method: the real
 * DuckDB for what the own encoder leaves to it, hyparquet to read.
 */
import { expect, test } from "bun:test";
import { parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { libduckdbPath } from "../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../src/adapters/duckdb/native.ts";
import { tableEncoding } from "../../src/commands/table-encoding.ts";
import { JoinedFile } from "../../src/core/formats/parquet/join.ts";
import type { ColumnType, TableBatch } from "../../src/core/types/table-batch.ts";

const codecs = loadNative(libduckdbPath());

function batch(type: ColumnType, data: ArrayBuffer): TableBatch {
  const column = { type, length: 1, nullCount: 0, validity: null, offsets: null, children: [] };
  const fields = [{ name: "c", type, nullable: true }];
  return { fields, columns: [{ ...column, data: new Uint8Array(data) }], rows: 1 };
}

for (const compression of ["zstd", "none"] as const) {
  test(`pieces of one file, ${compression}`, async () => {
    const encode = tableEncoding({ compression, level: 1 }, codecs);
    const joined = new JoinedFile();
    const int = { id: "int", bits: 64, signed: true } as const;
    const pieces = [7n, 8n].map((v) => joined.add(encode(batch(int, BigInt64Array.of(v).buffer))));
    const file = Buffer.concat([JoinedFile.head, ...pieces, joined.finish([], "twg test")]);
    const read = await parquetReadObjects({ file: new Uint8Array(file).buffer, compressors });
    expect(read).toEqual([{ c: 7n }, { c: 8n }]);
  });
}

test("a type that only DuckDB knows is left to it", async () => {
  const encode = tableEncoding({ compression: "zstd", level: 1 }, codecs);
  const file = encode(batch({ id: "null" }, new ArrayBuffer(0)));
  const read = await parquetReadObjects({ file: new Uint8Array(file).buffer, compressors });
  expect(read).toEqual([{ c: null }]);
});
