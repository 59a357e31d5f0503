/**
 * Goal: columns of every schema that a table took fit it, with the values they had. Method: random schemas and values; each
 * cell before and after, as what it means.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { evolve } from "../../../src/core/schema/evolution.ts";
import { widenColumns } from "../../../src/core/schema/widen-column.ts";
import { builderOf } from "../../../src/core/types/column-builder.ts";
import type { ColumnField, ColumnType, TableColumn } from "../../../src/core/types/table-batch.ts";
import { parseType, typeText } from "../../../src/core/types/type-text.ts";
import type { Value } from "../../../src/core/types/value.ts";
import { cellValue, pushValue } from "../../../src/core/types/value-cells.ts";
import { decimalText } from "../../../src/core/types/value-json.ts";

const NULL: Value = { kind: "null" };

function valuesOf(type: ColumnType): fc.Arbitrary<Value> {
  const some = ((): fc.Arbitrary<Value> => {
    switch (type.id) {
      case "int": {
        const [min, max] = type.signed
          ? [-(2n ** BigInt(type.bits - 1)), 2n ** BigInt(type.bits - 1) - 1n]
          : [0n, 2n ** BigInt(type.bits) - 1n];
        return fc
          .bigInt(min, max)
          .map((v) =>
            type.bits === 64 || !type.signed ? { kind: "long", value: v } : { kind: "int", value: Number(v) },
          );
      }
      case "float":
        return type.bits === 32
          ? fc.float({ noNaN: true }).map((value) => ({ kind: "float", value }))
          : fc.double({ noNaN: true }).map((value) => ({ kind: "double", value }));
      case "decimal": {
        const most = 10n ** BigInt(type.precision) - 1n;
        return fc.bigInt(-most, most).map((unscaled) => ({ kind: "decimal", unscaled, scale: type.scale }));
      }
      case "utf8":
        return fc.string({ unit: "grapheme" }).map((value) => ({ kind: "string", value }));
      case "list":
        return fc.array(valuesOf(type.item.type), { maxLength: 3 }).map((items) => ({ kind: "list", items }));
      case "map":
        return fc
          .array(
            fc.tuple(
              fc.string().map((value): Value => ({ kind: "string", value })),
              valuesOf(type.value.type),
            ),
            { maxLength: 3 },
          )
          .map((entries) => ({ kind: "map", entries }));
      case "struct":
        return fc.tuple(...type.fields.map((f) => valuesOf(f.type))).map((all) => ({
          kind: "record",
          fields: type.fields.map((f, i) => ({ name: f.name, value: all[i]! })),
        }));
      default:
        throw new Error(type.id);
    }
  })();
  return fc.oneof({ weight: 5, arbitrary: some }, { weight: 1, arbitrary: fc.constant(NULL) });
}

/** What a cell means, whatever its type's width; what is null is left out of records. */
function meaning(v: Value): unknown {
  switch (v.kind) {
    case "null":
      return null;
    case "int":
    case "long":
      return String(v.value);
    case "float":
    case "double":
      return v.value;
    case "decimal":
      return decimalText(v.unscaled, v.scale)
        .replace(/(\.\d*?)0*$/, "$1")
        .replace(/\.$/, "");
    case "string":
      return v.value;
    case "list":
      return v.items.map(meaning);
    case "map":
      return v.entries.map(([key, value]) => [meaning(key), meaning(value)]);
    case "record":
      return Object.fromEntries(
        v.fields.map((f) => [f.name, meaning(f.value)] as const).filter(([, m]) => m !== null),
      );
    default:
      throw new Error(v.kind);
  }
}

const leaf = fc
  .constantFrom(
    "int8",
    "int32",
    "uint32",
    "int64",
    "float",
    "double",
    "string",
    "decimal(5,2)",
    "decimal(20,6)",
  )
  .map((t) => parseType(t) as ColumnType);
const { schema } = fc.letrec<{ schema: ColumnField[]; type: ColumnType }>((tie) => ({
  type: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaf,
    tie("schema").map((fields): ColumnType => ({ id: "struct", fields })),
    tie("type").map((t): ColumnType => ({ id: "list", item: { name: "element", type: t, nullable: true } })),
    tie("type").map(
      (t): ColumnType => ({
        id: "map",
        key: { name: "key", type: { id: "utf8" }, nullable: false },
        value: { name: "value", type: t, nullable: true },
      }),
    ),
  ),
  schema: fc.uniqueArray(
    fc.record({ name: fc.constantFrom("a", "b", "c"), type: tie("type"), nullable: fc.constant(true) }),
    { selector: (f) => f.name, minLength: 1, maxLength: 3 },
  ),
}));

function columnOf({ type }: ColumnField, values: readonly Value[]): TableColumn {
  const b = builderOf(type);
  for (const v of values) pushValue(b, v);
  return b.finish();
}

test("cells mean what they meant, columns are those of the table", () => {
  let compared = 0;
  fc.assert(
    fc.property(schema, schema, fc.infiniteStream(fc.nat()), (a, b, seeds) => {
      const table = evolve(a, b, { relax: true, nested: true, widen: () => true });
      if (table.kind === "refused") return;
      for (const fields of [a, b]) {
        const rows = 5;
        const values = fields.map((f) =>
          fc.sample(valuesOf(f.type), { numRuns: rows, seed: seeds.next().value }),
        );
        const columns = fields.map((f, i) => columnOf(f, values[i]!));
        const after = widenColumns(table.fields, fields, columns, rows);
        expect(after.map((c) => typeText(c.type))).toEqual(table.fields.map((f) => typeText(f.type)));
        for (const [i, { name }] of table.fields.entries()) {
          const at = fields.findIndex((f) => f.name === name);
          expect(after[i]!.length).toBe(rows);
          for (let row = 0; row < rows; row++) {
            const before = at < 0 ? NULL : cellValue(columns[at]!, row);
            expect(meaning(cellValue(after[i]!, row))).toEqual(meaning(before));
            compared++;
          }
        }
      }
    }),
    { numRuns: 400 },
  );
  expect(compared).toBeGreaterThan(500);
});

test("numbers of every pair of types that go together", () => {
  const names = [
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint32",
    "float",
    "double",
    "decimal(5,2)",
    "decimal(20,6)",
    "decimal(9,0)",
  ];
  const types = names.map((t) => parseType(t) as ColumnType);
  const column = (type: ColumnType): ColumnField[] => [{ name: "a", type, nullable: true }];
  const widened: string[] = [];
  for (const a of types)
    for (const b of types) {
      const table = evolve(column(a), column(b), { relax: true, nested: true, widen: () => true });
      if (table.kind === "refused") continue;
      const values = fc.sample(valuesOf(b), { numRuns: 8, seed: 1 });
      const before = columnOf(column(b)[0]!, values);
      const [after] = widenColumns(table.fields, column(b), [before], 8);
      if (typeText(after!.type) !== typeText(b)) widened.push(`${typeText(b)} to ${typeText(after!.type)}`);
      for (let row = 0; row < 8; row++)
        expect(meaning(cellValue(after!, row))).toEqual(meaning(cellValue(before, row)));
    }
  expect(new Set(widened)).toContain("decimal(5,2) to decimal(20,6)");
  expect(new Set(widened)).toContain("decimal(9,0) to decimal(11,2)");
  expect(new Set(widened)).toContain("uint32 to int64");
  expect(new Set(widened)).toContain("float to double");
});

test("a column of nulls takes any type", () => {
  const nothing: TableColumn = {
    type: { id: "null" },
    length: 2,
    nullCount: 2,
    validity: null,
    offsets: null,
    data: new Uint8Array(0),
    children: [],
  };
  const [c] = widenColumns(
    [{ name: "a", type: { id: "utf8" }, nullable: true }],
    [{ name: "a", type: { id: "null" }, nullable: true }],
    [nothing],
    2,
  );
  expect([c!.nullCount, cellValue(c!, 1)]).toEqual([2, NULL]);
});
