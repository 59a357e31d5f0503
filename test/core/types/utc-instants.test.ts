/**
 * Goal: timestamps of UTC in nanoseconds come through DuckDB whole, however nested. Method: the real engine encodes them,
 * hyparquet reads value and meaning of the joined file.
 */
import { expect, test } from "bun:test";
import { parquetMetadata, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { DuckEngine } from "../../../src/adapters/duckdb/engine.ts";
import { ParquetEncoder } from "../../../src/adapters/duckdb/parquet-encode.ts";
import { JoinedFile } from "../../../src/core/formats/parquet/join.ts";
import type {
  ColumnField,
  ColumnType,
  TableBatch,
  TableColumn,
} from "../../../src/core/types/table-batch.ts";
import { parseType } from "../../../src/core/types/type-text.ts";
import { instantLeaves, withoutInstants } from "../../../src/core/types/utc-instants.ts";

const field = (name: string, text: string): ColumnField => ({
  name,
  type: parseType(text) as ColumnType,
  nullable: true,
});
const FIELDS = [
  field("a", "int64"),
  field("t", "timestamptz[ns]"),
  field("l", "list<struct<x int64, t timestamptz[ns]>>"),
  field("u", "timestamptz"),
  field("n", "timestamp[ns]"),
  field("m", "map<string,timestamptz[ns]>"),
];

const plain = (type: ColumnType, data: Uint8Array, rest: Partial<TableColumn> = {}): TableColumn => ({
  type,
  length: 1,
  nullCount: 0,
  validity: null,
  offsets: null,
  data,
  children: [],
  ...rest,
});
const word = (n: bigint) => new Uint8Array(BigInt64Array.of(n).buffer);
const INT64: ColumnType = { id: "int", bits: 64, signed: true };

test("leaves are counted depth first", () => {
  expect([...instantLeaves(FIELDS)]).toEqual([1, 3, 7]);
});

test("what has none is left alone", () => {
  const batch: TableBatch = { fields: [FIELDS[0]!], columns: [plain(INT64, word(1n))], rows: 1 };
  expect(withoutInstants(batch)).toBe(batch);
});

test("nanoseconds survive, and the file says that they are of UTC", async () => {
  const [a, t, l, u, n, m] = FIELDS.map((f) => f.type);
  const inner = (l as Extract<ColumnType, { id: "list" }>).item.type as Extract<ColumnType, { id: "struct" }>;
  const map = m as Extract<ColumnType, { id: "map" }>;
  const one = Int32Array.of(0, 1);
  const none = new Uint8Array(0);
  const columns = [
    plain(a!, word(7n)),
    plain(t!, word(1_700_000_000_123_456_789n)),
    plain(l!, none, {
      offsets: one,
      children: [
        plain(inner, none, { children: inner.fields.map((f, i) => plain(f.type, word(BigInt(i) + 8n))) }),
      ],
    }),
    plain(u!, word(5n)),
    plain(n!, word(6n)),
    plain(m!, none, {
      offsets: one,
      children: [
        plain({ id: "struct", fields: [map.key, map.value] }, none, {
          children: [
            plain(map.key.type, Uint8Array.of(107), { offsets: one }),
            plain(map.value.type, word(11n)),
          ],
        }),
      ],
    }),
  ];
  const batch: TableBatch = { fields: FIELDS, columns, rows: 1 };
  const engine = new DuckEngine({ threads: 1, memoryBytes: 64 << 20, spill: null, allowed: [] });
  const encoder = new ParquetEncoder(engine, { compression: "zstd", level: 1 });
  const joined = new JoinedFile(instantLeaves(FIELDS));
  const parts = [
    JoinedFile.head,
    joined.add(encoder.encode(batch)),
    joined.add(encoder.encode(batch)),
    joined.finish([], "test"),
  ];
  const file = Buffer.concat(parts);
  const bytes = file.buffer.slice(file.byteOffset, file.byteOffset + file.length);
  const types = parquetMetadata(bytes).schema.filter((e) => e.logical_type?.type === "TIMESTAMP");
  expect(types.map((e) => (e.logical_type as { isAdjustedToUTC: boolean }).isAdjustedToUTC)).toEqual([
    true,
    true,
    true,
    false,
    true,
  ]);
  const parsers = {
    timestampFromNanoseconds: (v: bigint) => v,
    timestampFromMicroseconds: (v: bigint) => v,
    timestampFromMilliseconds: (v: bigint) => v,
  };
  const rows = await parquetReadObjects({ file: bytes, compressors, parsers: parsers as never });
  expect(rows).toHaveLength(2);
  expect(rows[1]).toMatchObject({
    a: 7n,
    t: 1_700_000_000_123_456_789n,
    l: [{ x: 8n, t: 9n }],
    u: 5n,
    n: 6n,
    m: { k: 11n },
  });
  encoder.close();
  engine.close();
});
