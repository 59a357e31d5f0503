/**
 * Goal: rows have one natural key exactly where their parts are the same, whatever columns and batches they stand in. Method:
 * columns made by builders of random rows; keys are compared with the rows' parts as text; the border between two parts, and
 * types that cannot name a record, by hand.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { keyColumns, NaturalKey } from "../../../src/core/delivery/natural-key.ts";
import type { Failure } from "../../../src/core/failure/failure.ts";
import {
  BoolBuilder,
  BytesBuilder,
  builderOf,
  type FixedBuilder,
} from "../../../src/core/types/column-builder.ts";
import type { ColumnField, ColumnType, TableColumn } from "../../../src/core/types/table-batch.ts";

const SECRET = Int32Array.of(1, 2, 3, 4);
const INT: ColumnType = { id: "int", bits: 32, signed: true };

function ints(values: readonly (number | null)[]): TableColumn {
  const b = builderOf(INT) as FixedBuilder;
  b.reserve(values.length);
  for (const v of values) {
    if (v === null) b.pushNull();
    else b.i32[b.rows++] = v;
  }
  return b.finish();
}

function texts(values: readonly (string | null)[]): TableColumn {
  const b = new BytesBuilder({ id: "utf8" });
  b.reserve(values.length);
  for (const v of values) {
    if (v === null) b.pushNull();
    else b.push(new TextEncoder().encode(v));
  }
  return b.finish();
}

function bools(values: readonly boolean[]): TableColumn {
  const b = new BoolBuilder({ id: "bool" });
  b.reserve(values.length);
  for (const v of values) b.push(v);
  return b.finish();
}

function keysOf(columns: readonly TableColumn[], rows: number): (string | null)[] {
  const key = new NaturalKey(SECRET);
  const places = columns.map((_, i) => i);
  return Array.from({ length: rows }, (_, row) => (key.of(columns, places, row) ? key.hash.join() : null));
}

describe("keys of rows", () => {
  test("property: the same parts, the same key; others, another; a null, none", () => {
    const part = fc.option(fc.string({ maxLength: 100, unit: "binary" }), { freq: 8 });
    const rowOf = fc.tuple(part, fc.option(fc.integer({ min: -3, max: 3 }), { freq: 8 }), part, fc.boolean());
    fc.assert(
      fc.property(fc.array(rowOf, { minLength: 2, maxLength: 60 }), (rows) => {
        // Some rows twice, so that equal ones are common.
        const all = [...rows, ...rows.toReversed()];
        const keys = keysOf(
          [
            texts(all.map((r) => r[0])),
            ints(all.map((r) => r[1])),
            texts(all.map((r) => r[2])),
            bools(all.map((r) => r[3])),
          ],
          all.length,
        );
        const wanted = all.map((r) => (r.includes(null) ? null : JSON.stringify(r)));
        expect(keys.map((k) => k === null)).toEqual(wanted.map((w) => w === null));
        for (const [i, w] of wanted.entries())
          expect(keys.map((k) => k !== null && k === keys[i])).toEqual(
            wanted.map((v) => v !== null && v === w),
          );
      }),
      { numRuns: 50 },
    );
  });

  test("what a part ends with is not what the next one begins with", () => {
    const [a, b] = keysOf([texts(["ab", "a"]), texts(["c", "bc"])], 2);
    expect(a).not.toBe(b);
  });

  test("parts longer than the first room for them", () => {
    const long = "x".repeat(5_000);
    const [a, b, c] = keysOf([texts([long, long, `${long}x`])], 3);
    expect([a === b, a === c]).toEqual([true, false]);
  });
});

describe("the columns of a key", () => {
  const fields: ColumnField[] = [
    { name: "id", type: { id: "utf8" }, nullable: false },
    { name: "price", type: { id: "float", bits: 64 }, nullable: false },
    { name: "at", type: { id: "timestamp", unit: "us", zone: "UTC" }, nullable: false },
  ];
  const code = (names: readonly string[]) => {
    try {
      return keyColumns(fields, names, "shop.yaml");
    } catch (e) {
      return (e as Failure).code;
    }
  };
  test("stand where the contract says; none, a missing one and one of a type that does not compare are refused", () => {
    expect(code(["at", "id"])).toEqual([2, 0]);
    expect(code([])).toBe("dedup.no_key");
    expect(code(["gone"])).toBe("dedup.no_key");
    expect(code(["price"])).toBe("dedup.no_key");
  });
});
