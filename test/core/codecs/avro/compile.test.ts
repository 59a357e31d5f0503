/**
 * Goal: Avro payloads become the columns and Values of the type map, and a bad one costs only itself. Method: bytes written
 * by hand from the specification's rules (zigzag varints, blocks, branch indexes), expected cells beside them; what Java
 * and fastavro write is in test/real.
 */
import { describe, expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import { avroTarget } from "../../../../scripts/fuzz/avro-target.ts";
import { compileAvro } from "../../../../src/core/codecs/avro/compile.ts";
import { decode, field, refusal, text } from "./decode.ts";
import type { Schema } from "./random-avro.ts";

describe("types", () => {
  const CASES: readonly (readonly [Schema, string, string, string])[] = [
    ["null", "", "null", "null"],
    ["boolean", "01", "boolean", "true"],
    ["int", "0d", "int32", "-7"],
    ["int", "ff ff ff ff 0f", "int32", "-2147483648"],
    ["long", "ff ff ff ff ff ff ff ff ff 01", "int64", "-9223372036854775808"],
    ["long", "fe ff ff ff ff ff ff ff ff 01", "int64", "9223372036854775807"],
    ["float", "00 00 c0 3f", "float", "1.5"],
    ["double", "00 00 00 00 00 00 04 c0", "double", "-2.5"],
    ["bytes", "04 00 ff", "binary", '"AP8="'],
    ["string", "06 61 c3 bc", "string", '"aü"'],
    [{ type: "array", items: "int" }, "03 04 02 04 02 06 00", "list<int32>", "[1,2,3]"],
    [{ type: "map", values: "int" }, "02 02 6b 08 00", "map<string,int32>", '{"k":4}'],
    [{ type: "enum", name: "E", symbols: ["A", "B"] }, "02", "string", '"B"'],
    [{ type: "fixed", name: "F", size: 2 }, "01 02", "fixed(2)", '"AQI="'],
    [["null", "int"], "00", "int32", "null"],
    [["int", "null"], "00 04", "int32", "2"],
    [["null", "int", "string"], "04 02 78", "struct<int int32, string string>", '{"int":null,"string":"x"}'],
    [["null", "int", "string"], "00", "struct<int int32, string string>", "null"],
  ];
  for (const [type, hex, column, cell] of CASES) {
    test(`${JSON.stringify(type)} ${hex}`, () => {
      expect(decode(field(type), [hex])).toEqual({ types: [column], cells: [cell], faults: [] });
    });
  }

  test("a value that is no record is one column", () => {
    expect(decode("string", ["02 61"])).toEqual({ types: ["string"], cells: ['"a"'], faults: [] });
  });
});

test("columns and Values agree on schemas, readers and payloads by chance, damaged or not", async () => {
  let refused = 0;
  // Neighbouring cases have one schema.
  for (let n = 0; n < 400; n++) if (await avroTarget.run(97 * n)) refused++;
  expect(refused).toBeGreaterThan(40);
  expect(refused).toBeLessThan(360);
}, 60_000);

describe("a bad payload costs only itself", () => {
  const nested = field({ type: "array", items: ["null", "string"] });
  test("rows and items that it began are taken back", () => {
    const { cells, faults } = decode(nested, ["02 02 02 61 00", "04 00 02 08 61", "02 00 00"]);
    expect(cells).toEqual(['["a"]', "[null]"]);
    expect(faults).toEqual([
      { row: 1, code: "decode.truncated", path: "f[1]", reason: "4 bytes are wanted, 1 are left" },
    ]);
  });

  test("text that is no UTF-8, even where the next row would complete the character", () => {
    const { cells, faults } = decode(field("string"), ["02 61", "02 c3", "02 a9", "02 62"]);
    expect(cells).toEqual(['"a"', '"b"']);
    expect(faults.map((f) => [f.row, f.code, f.path])).toEqual([
      [1, "decode.encoding", "f"],
      [2, "decode.encoding", "f"],
    ]);
  });

  const BAD: readonly (readonly [string, Schema, string, string])[] = [
    ["nothing", "int", "", "decode.truncated"],
    ["bytes behind the value", "int", "02 02", "decode.trailing"],
    ["an int of 33 bits", "int", "80 80 80 80 10", "decode.range"],
    ["a long of 65 bits", "long", "80 80 80 80 80 80 80 80 80 02", "decode.range"],
    ["a boolean of 2", "boolean", "02", "decode.syntax"],
    ["a length below 0", "string", "01", "decode.syntax"],
    ["a branch that is not there", ["null", "int"], "04", "decode.type"],
    ["a symbol that is not there", { type: "enum", name: "E", symbols: ["A"] }, "02", "decode.type"],
    ["a key that comes twice", { type: "map", values: "null" }, "04 02 61 02 61 00", "decode.duplicate_key"],
    ["a block of other size", { type: "array", items: "int" }, "01 04 02 00", "decode.syntax"],
    ["2^30 items of no bytes", { type: "array", items: "null" }, "80 80 80 80 08 00", "decode.size"],
    ["2^60 items", { type: "array", items: "null" }, "80 80 80 80 80 80 80 80 20 00", "decode.range"],
    ["more items than bytes", { type: "array", items: "string" }, "c8 01 00", "decode.truncated"],
  ];
  for (const [what, type, hex, code] of BAD) {
    test(what, () => {
      const { cells, faults } = decode(field(type), [hex]);
      expect(cells).toEqual([]);
      expect(faults.map((f) => f.code)).toEqual([code as "decode.type"]);
    });
  }
});

test("a table of many columns, which several functions read, is as any other", () => {
  const list = { type: "array", items: ["null", "string"] };
  const inner = {
    type: "record",
    name: "I",
    fields: [
      { name: "x", type: "int" },
      { name: "y", type: list },
    ],
  };
  const fields = Array.from({ length: 150 }, (_, i) => ({
    name: `c${i}`,
    type: i === 0 ? inner : i % 3 === 0 ? "I" : ["null", "long"],
  }));
  const wide = { type: "record", name: "W", fields };
  const row = (n: string) =>
    fields.map((_, i) => (i % 3 === 0 ? `${n} 04 02 02 61 00 00` : `02 ${n}`)).join(" ");
  const { cells, faults } = decode(wide, [row("02"), `${row("04")} 00`, row("06").slice(0, -3), row("08")]);
  const cellsOf = (n: number) =>
    fields.map((_, i) => (i % 3 === 0 ? `{"x":${n},"y":["a",null]}` : n)).join(" ");
  expect(cells).toEqual([cellsOf(1), cellsOf(4)]);
  expect(faults.map((f) => [f.row, f.code as string, f.path])).toEqual([
    [1, "decode.trailing", ""],
    [2, "decode.truncated", "c149"],
  ]);
});

test("a column under the reserved prefix is refused", () => {
  const schema = { type: "record", name: "R", fields: [{ name: "_twg_x", type: "int" }] };
  expect(() => compileAvro({ writer: text(schema) }, { isUtf8, reserved: "_twg_" })).toThrow("reserved");
  expect(refusal(schema)).toBe("");
});
