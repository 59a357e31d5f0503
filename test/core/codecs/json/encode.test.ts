/**
 * Goal: rows and Values become JSON that says the same, digit by digit. Method: columns of every type are encoded and compared
 * with `valueJson` of each cell, read by JSON.parse, and decoded again into equal columns.
 */
import { expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import fc from "fast-check";
import { jsonRecords } from "../../../../src/core/codecs/json/compile.ts";
import { encodeJsonColumns, jsonEncoder } from "../../../../src/core/codecs/json/encode.ts";
import { builderOf } from "../../../../src/core/types/column-builder.ts";
import type { ColumnField, TableBatch } from "../../../../src/core/types/table-batch.ts";
import type { Value } from "../../../../src/core/types/value.ts";
import { cellValue, pushValue } from "../../../../src/core/types/value-cells.ts";
import { schema } from "../table.ts";

const FIELDS = schema(
  "id int64;u uint64;n int32;s string;b boolean;d decimal(20,2);at timestamptz[ms];day date;x binary;k uuid;l list<struct<a string, b int64>>;m map<string,int32>",
).fields;

function batchOf(fields: readonly ColumnField[], rows: readonly (readonly Value[])[]): TableBatch {
  const columns = fields.map((f) => builderOf(f.type));
  for (const row of rows) for (const [i, v] of row.entries()) pushValue(columns[i]!, v);
  return { fields, columns: columns.map((c) => c.finish()), rows: rows.length };
}

const nothing = fc.constant<Value>({ kind: "null" });
const or = (v: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 1, arbitrary: nothing }, { weight: 4, arbitrary: v });
const long = fc
  .bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
  .map((value): Value => ({ kind: "long", value }));
const text = fc
  .string({ unit: "binary", maxLength: 20 })
  .filter((s) => s.isWellFormed())
  .map((value): Value => ({ kind: "string", value }));
const int = fc.integer().map((value): Value => ({ kind: "int", value }));
const item = fc.tuple(or(text), or(long)).map(
  ([a, b]): Value => ({
    kind: "record",
    fields: [
      { name: "a", value: a },
      { name: "b", value: b },
    ],
  }),
);
const rows = fc.array(
  fc.tuple(
    or(long),
    or(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((value) => ({ kind: "long", value }) as const)),
    or(int),
    or(text),
    or(fc.boolean().map((value) => ({ kind: "bool", value }) as const)),
    or(
      fc
        .bigInt({ min: -(10n ** 19n), max: 10n ** 19n })
        .map((unscaled) => ({ kind: "decimal", unscaled, scale: 2 }) as const),
    ),
    or(
      fc
        .bigInt({ min: 0n, max: 4102444800000n })
        .map((value) => ({ kind: "timestamp", unit: "ms", zone: "UTC", value }) as const),
    ),
    or(fc.integer({ min: -100_000, max: 100_000 }).map((days) => ({ kind: "date", days }) as const)),
    or(fc.uint8Array({ maxLength: 9 }).map((value) => ({ kind: "bytes", value }) as const)),
    or(fc.uint8Array({ minLength: 16, maxLength: 16 }).map((value) => ({ kind: "uuid", value }) as const)),
    or(fc.array(or(item), { maxLength: 3 }).map((items) => ({ kind: "list", items }) as const)),
    or(
      fc.dictionary(fc.string({ maxLength: 3 }), int, { maxKeys: 3 }).map(
        (d): Value => ({
          kind: "map",
          entries: Object.entries(d).map(([k, v]) => [{ kind: "string", value: k }, v]),
        }),
      ),
    ),
  ),
  { maxLength: 5 },
);

test("rows are what valueJson says, and come back as they were", () => {
  const again = FIELDS.map((f) => (f.name === "x" ? { ...f, type: { id: "utf8" } as const } : f));
  fc.assert(
    fc.property(rows, (drawn) => {
      const batch = batchOf(FIELDS, drawn);
      const { bytes, starts, ends, count } = encodeJsonColumns(batch);
      expect(count).toBe(drawn.length);
      const lines = drawn.map((_, i) => new TextDecoder().decode(bytes.subarray(starts[i], ends[i])));
      for (const [r, line] of lines.entries()) {
        JSON.parse(line);
        const record: Value = {
          kind: "record",
          fields: FIELDS.map((f, i) => ({ name: f.name, value: cellValue(batch.columns[i]!, r) })),
        };
        expect(line).toBe(new TextDecoder().decode(jsonEncoder().encode(record)));
      }
      const decoder = jsonRecords(again, { unknown: "reject", reserved: null, maxBytes: 1 << 20, isUtf8 });
      const columns = again.map((f) => builderOf(f.type));
      decoder.decode({ bytes, starts, ends, count }, columns, (f) => {
        throw new Error(`${f.code} ${f.path} ${f.reason}`);
      });
      for (const [i, f] of FIELDS.entries())
        if (f.name !== "x")
          for (let r = 0; r < count; r++)
            expect(cellValue(columns[i]!.finish(), r)).toEqual(cellValue(batch.columns[i]!, r));
    }),
    { numRuns: 80 },
  );
});

test("escapes, an empty table, JSON text as it is", () => {
  const fields = schema("s string;j json").fields;
  const batch = batchOf(fields, [
    [
      { kind: "string", value: '"\\\u0000\u001f\b\t\n\f\r/ä😀' },
      { kind: "string", value: "x" },
    ],
  ]);
  const { bytes } = encodeJsonColumns(batch);
  expect(new TextDecoder().decode(bytes)).toBe('{"s":"\\"\\\\\\u0000\\u001f\\b\\t\\n\\f\\r/ä😀","j":"x"}');
  expect(encodeJsonColumns({ fields: [], columns: [], rows: 1 }).bytes).toEqual(
    new TextEncoder().encode("{}"),
  );
  expect(encodeJsonColumns(batchOf(fields, [])).count).toBe(0);
});
