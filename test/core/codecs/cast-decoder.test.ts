/**
 * Goal: payloads become rows of a table that is not their writer's: nested fields by name, every value exact or its record refused
 * alone with code and path, both paths alike; what cannot go together is told before. Method: Avro of nested records, resolved
 * to tables that are written out here.
 */
import { expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import { compileAvro } from "../../../src/core/codecs/avro/compile.ts";
import { avroEncoder } from "../../../src/core/codecs/avro/encode-value.ts";
import { castDecoder } from "../../../src/core/codecs/cast-decoder.ts";
import { DecodeError, type DecodeFault } from "../../../src/core/codecs/record-codec.ts";
import { builderOf } from "../../../src/core/types/column-builder.ts";
import type { ColumnField, ColumnType } from "../../../src/core/types/table-batch.ts";
import type { TableField } from "../../../src/core/types/table-schema.ts";
import { parseType } from "../../../src/core/types/type-text.ts";
import type { Value } from "../../../src/core/types/value.ts";
import { cellValue } from "../../../src/core/types/value-cells.ts";
import { valueJson } from "../../../src/core/types/value-json.ts";
import { together } from "./avro/decode.ts";

const LINE = {
  type: "record",
  name: "Line",
  fields: [
    { name: "sku", type: ["null", "string"] },
    { name: "qty", type: "long" },
    { name: "extra", type: "string" },
  ],
};
const WRITER = {
  type: "record",
  name: "Order",
  fields: [
    { name: "id", type: "long" },
    { name: "price", type: { type: "bytes", logicalType: "decimal", precision: 9, scale: 2 } },
    { name: "at", type: { type: "long", logicalType: "timestamp-millis" } },
    { name: "lines", type: { type: "array", items: LINE } },
    { name: "stock", type: { type: "map", values: "int" } },
    { name: "main", type: ["null", "Line"] },
    { name: "dropped", type: "boolean" },
  ],
};
const text = { text: JSON.stringify(WRITER), references: [] };
const encoder = avroEncoder(text);

const type = (t: string): ColumnType => {
  const parsed = parseType(t);
  if (typeof parsed === "string") throw new Error(parsed);
  return parsed;
};
const field = (name: string, t: string | ColumnType, nullable = true): TableField => ({
  ...{ name, nullable },
  type: typeof t === "string" ? type(t) : t,
});
const list = (item: ColumnField): ColumnType => ({ id: "list", item: { ...item, name: "element" } });
const struct = (...fields: ColumnField[]): ColumnType => ({ id: "struct", fields });

const LINES = list(
  field("element", struct(field("qty", "int16"), field("sku", "string"), field("tax", "double"))),
);
const TABLE = [
  field("at", "timestamptz"),
  { ...field("number", "int32"), source: "id" },
  field("price", "decimal(38,9)", false),
  field("lines", LINES),
  field("stock", "map<string,int64>"),
  field("main", struct(field("qty", "int64", false))),
  field("more", "string"),
];

type Line = readonly [sku: string | null, qty: number];
const lineOf = ([sku, qty]: Line): Value => ({
  kind: "record",
  fields: [
    { name: "sku", value: sku === null ? { kind: "null" } : { kind: "string", value: sku } },
    { name: "qty", value: { kind: "long", value: BigInt(qty) } },
    { name: "extra", value: { kind: "string", value: "x" } },
  ],
});

function payload(id: number, lines: readonly Line[] = [["a", 1]], main: Line | null = null): Uint8Array {
  const fields: Record<string, Value> = {
    id: { kind: "long", value: BigInt(id) },
    price: { kind: "decimal", unscaled: 150n, scale: 2 },
    at: { kind: "timestamp", unit: "ms", value: 1000n, zone: "UTC" },
    lines: { kind: "list", items: lines.map(lineOf) },
    stock: {
      kind: "map",
      entries: [
        [
          { kind: "string", value: "k" },
          { kind: "int", value: 7 },
        ],
      ],
    },
    main: main === null ? { kind: "null" } : lineOf(main),
    dropped: { kind: "bool", value: true },
  };
  return encoder.encode({
    kind: "record",
    fields: Object.entries(fields).map(([name, value]) => ({ name, value })),
  });
}

const decoderOf = (table: readonly TableField[]) =>
  castDecoder(compileAvro({ writer: text }, { isUtf8: (b) => isUtf8(b) }), table);

function read(payloads: readonly Uint8Array[], table: readonly TableField[] = TABLE) {
  const decoder = decoderOf(table);
  const columns = decoder.fields.map((f) => builderOf(f.type));
  const faults: DecodeFault[] = [];
  const count = decoder.decode(together(payloads), columns, (f) => faults.push(f));
  const finished = columns.map((c) => c.finish());
  const rows = Array.from({ length: count }, (_, r) =>
    Object.fromEntries(finished.map((c, i) => [table[i]!.name, JSON.parse(valueJson(cellValue(c, r)))])),
  );
  expect(finished.map((c) => c.length)).toEqual(finished.map(() => count));
  return { rows, faults };
}

test("fields by name, nested ones too; what is not there is null, what has no place is left out", () => {
  const { rows, faults } = read([
    payload(1, [
      ["a", 1],
      [null, 2],
    ]),
    payload(2, [], ["m", 9]),
  ]);
  expect(faults).toEqual([]);
  const line = (sku: string | null, qty: number) => ({ qty, sku, tax: null });
  expect(rows).toMatchObject([
    { number: 1, lines: [line("a", 1), line(null, 2)], stock: { k: 7 }, main: null, more: null },
    { number: 2, lines: [], main: { qty: 9 } },
  ]);
  expect(Number(rows[0]!.price)).toBe(1.5);
  expect(rows[0]!.at).toContain("1970-01-01T00:00:01");
});

test("a value that does not fit refuses its record alone, with the place; so does a payload that is none", () => {
  const broken = payload(4).subarray(0, 0);
  const { rows, faults } = read([
    payload(1),
    payload(2 ** 31),
    broken,
    payload(5, [
      ["a", 1],
      ["b", 40_000],
    ]),
    payload(6),
  ]);
  expect(rows.map((r) => r.number)).toEqual([1, 6]);
  // Payloads that are none are told first.
  expect(faults.map(({ row, code, path }) => [row, code, path])).toEqual([
    [2, "decode.truncated", "id"],
    [1, "decode.range", "id"],
    [3, "decode.range", "lines[].qty"],
  ]);
  expect(faults[1]!.reason).toBe("its value does not fit in int32");
});

test("null where a table wants a value refuses the record, unless all around it is null", () => {
  const sku = field("sku", "string", false);
  const table = [
    field("id", "int64"),
    field("main", struct(sku)),
    field("lines", list(field("e", struct(sku)))),
  ];
  const { rows, faults } = read(
    [payload(1), payload(2, [], [null, 1]), payload(3, [[null, 1]]), payload(4, [], ["m", 1])],
    table,
  );
  expect(rows.map((r) => r.id)).toEqual([1, 4]);
  expect(faults.map(({ row, code, path }) => [row, code, path])).toEqual([
    [1, "decode.null", "main.sku"],
    [2, "decode.null", "lines[].sku"],
  ]);
});

test("a Value is what the columns are, and refused where they are", () => {
  const decoder = decoderOf(TABLE);
  for (const p of [payload(1, [["a", 2]], ["m", 3]), payload(2)]) {
    const value = decoder.value(p, 0, p.length);
    expect(JSON.parse(valueJson(value))).toEqual(read([p]).rows[0]!);
  }
  const large = payload(2 ** 40);
  expect(() => decoder.value(large, 0, large.length)).toThrow("its value does not fit in int32");
});

test.each([
  [field("id", "string"), "id: int64 does not go into string of the table"],
  [field("price", "decimal(9,1)"), "price: decimal(9,2) does not go into decimal(9,1) of the table"],
  [
    field("lines", "string"),
    "lines: list<struct<sku string, qty int64, extra string>> does not go into string of the table",
  ],
  [
    field("lines", list(field("e", struct(field("qty", "date"))))),
    "lines[].qty: int64 does not go into date of the table",
  ],
  [field("main", struct(field("new", "date", false))), "main.new: it is required and not there of the table"],
  [field("new", "date", false), "new: it is required, and the writer's schema has none"],
] as const)("%#: what cannot go together is told", (f, why) => {
  try {
    decoderOf([f]);
    throw new Error("it was taken");
  } catch (e) {
    if (!(e instanceof DecodeError)) throw e;
    expect(`${e.path}: ${e.message}`).toBe(why);
    expect(e.code).toBe("decode.schema");
  }
});
