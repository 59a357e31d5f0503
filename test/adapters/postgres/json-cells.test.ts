/**
 * Nested values as JSON text, type by type, and texts that jsonb would refuse. Expected are ISO 8601 (RFC 3339 where a
 * zone is known), RFC 4648 base64 and exact decimal digits.
 */
import { describe, expect, test } from "bun:test";
import { jsonCell, jsonProblem } from "../../../src/adapters/postgres/copy/json-cells.ts";
import type { ColumnType } from "../../../src/core/types/table-batch.ts";
import { column, field, type Plain } from "../../real/postgres/columns.ts";

const int = (bits: 8 | 16 | 32 | 64, signed = true): ColumnType => ({ id: "int", bits, signed });
const timestamp = (unit: "s" | "ms" | "us" | "ns", zone: string | null = null): ColumnType => ({
  id: "timestamp",
  unit,
  zone,
});
const UUID = Uint8Array.from({ length: 16 }, (_, i) => i * 17);

const CASES: readonly [string, ColumnType, Plain, string][] = [
  ["null", { id: "utf8" }, null, "null"],
  ["bool", { id: "bool" }, true, "true"],
  ["int8", int(8), -128, "-128"],
  ["uint8", int(8, false), 255, "255"],
  ["int16", int(16), -5, "-5"],
  ["uint16", int(16, false), 65_535, "65535"],
  ["int32", int(32), -2_147_483_648, "-2147483648"],
  ["uint32", int(32, false), 4_294_967_295, "4294967295"],
  ["int64", int(64), -(2n ** 63n), "-9223372036854775808"],
  ["uint64", int(64, false), 2n ** 64n - 1n, "18446744073709551615"],
  ["float32", { id: "float", bits: 32 }, 0.5, "0.5"],
  ["float64", { id: "float", bits: 64 }, 1e300, "1e+300"],
  ["infinity", { id: "float", bits: 64 }, Number.NEGATIVE_INFINITY, '"-Infinity"'],
  ["decimal", { id: "decimal", precision: 20, scale: 3 }, -1n, "-0.001"],
  ["decimal of scale 0", { id: "decimal", precision: 20, scale: 0 }, 12n, "12"],
  ["text", { id: "utf8" }, 'a"\n', '"a\\"\\n"'],
  ["json", { id: "json" }, '{"a":[1]}', '{"a":[1]}'],
  ["binary", { id: "binary" }, Uint8Array.of(255, 0), '"/wA="'],
  ["fixed", { id: "fixed", bytes: 2 }, Uint8Array.of(255, 0), '"/wA="'],
  ["uuid", { id: "fixed", bytes: 16, as: "uuid" }, UUID, '"00112233-4455-6677-8899-aabbccddeeff"'],
  ["date", { id: "date32" }, -1, '"1969-12-31"'],
  ["date beyond dates", { id: "date32" }, 2_147_483_647, '"2147483647 days since 1970-01-01"'],
  ["time of us", { id: "time64", unit: "us" }, 3_723_000_001n, '"01:02:03.000001"'],
  ["time of ns", { id: "time64", unit: "ns" }, 86_399_000_000_000n, '"23:59:59"'],
  ["timestamp s", timestamp("s"), -1n, '"1969-12-31T23:59:59.000"'],
  ["timestamp ms", timestamp("ms", "UTC"), 1n, '"1970-01-01T00:00:00.001Z"'],
  ["timestamp us", timestamp("us"), -1n, '"1969-12-31T23:59:59.999999"'],
  ["timestamp ns", timestamp("ns"), 1_000_000_001n, '"1970-01-01T00:00:01.000000001"'],
  ["timestamp beyond dates", timestamp("s"), 2n ** 60n, `"${2n ** 60n} s since 1970-01-01"`],
  ["interval", { id: "interval" }, [1, -2, 3n], '{"months":1,"days":-2,"nanoseconds":3}'],
  ["nothing", { id: "null" }, null, "null"],
];

describe("as JSON", () => {
  for (const [name, type, value, expected] of CASES) {
    test(name, () => {
      const cells = column({ id: "list", item: field("item", type) }, [[value, null]]);
      const one = column(type, [value]);
      expect(jsonCell(cells, 0)).toBe(`[${expected},null]`);
      if (value !== null) expect(jsonCell(one, 0)).toBe(expected);
    });
  }

  test("a map whose keys are numbers is pairs", () => {
    const type: ColumnType = { id: "map", key: field("key", int(32)), value: field("value", int(32)) };
    expect(jsonCell(column(type, [[[1, 2]]]), 0)).toBe('[{"key":1,"value":2}]');
    expect(jsonCell(column(type, [[]]), 0)).toBe("[]");
  });
});

describe("jsonb would refuse", () => {
  const problem = (text: string) => jsonProblem(Uint8Array.from(Buffer.from(text, "latin1")));
  test.each([
    ["{}", null],
    ['"\\u0041"', null],
    ['"\\\\u0000"', null],
    ['"\\u0000"', "nul_in_text"],
    ['"\\\\\\u0000"', "nul_in_text"],
    ['"\\uD83D\\uDE00"', null],
    ['"\\ud83d"', "json_invalid"],
    ['"\\ude00"', "json_invalid"],
    ['"\\ud83d\\ud83d\\ude00"', "json_invalid"],
    ["[1e131001]", "out_of_range"],
    ["[1e-16001]", "out_of_range"],
    ["[1e16000]", null],
    ['["1e999999"]', null],
    ["", "json_invalid"],
    ["nul", "json_invalid"],
    ["\xff", "not_utf8"],
  ])("%j: %p", (text, expected) => {
    expect(problem(text)).toBe(expected as never);
  });
});
