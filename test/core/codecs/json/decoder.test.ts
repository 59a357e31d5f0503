/**
 * Goal: every line of JSON is read right or refused with a code. Method: cases after the public faults of JSON readers
 * (changed integers, duplicate keys, NaN, 1e400), with JSON.parse as the other opinion for random values.
 */
import { expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import fc from "fast-check";
import { JsonDecoder } from "../../../../src/core/codecs/json/decoder.ts";
import { inferFields, parseLines } from "../../../../src/core/codecs/json/infer.ts";
import { scanLines } from "../../../../src/core/codecs/json/lines.ts";
import { typeText } from "../../../../src/core/types/type-text.ts";
import { type Decoded, decodeAll, schema } from "../table.ts";

function read(types: string, text: string | Uint8Array): Decoded {
  const decoded = decodeAll(new JsonDecoder({ isUtf8 }), schema(types), text);
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  const scan = scanLines(bytes, 0, bytes.length, true);
  expect({ counted: scan.records, end: scan.end }).toEqual({ counted: decoded.records, end: bytes.length });
  expect(decoded.rows.length + decoded.rejects.length).toBe(decoded.records);
  return decoded;
}

const codes = (types: string, text: string | Uint8Array) =>
  read(types, text).rejects.map((r) => `${r.row} ${r.code} ${r.column ?? "-"}`);

test("values by key in any order, missing and null alike, blank lines passed over", () => {
  expect(
    read("a int64, b string", '{"a":1,"b":"x"}\n\n {"b" : "y" , "a" : 2 } \r\n{"b":null}\n{}').rows,
  ).toEqual([
    [1n, "x"],
    [2n, "y"],
    [null, null],
    [null, null],
  ]);
});

test("integers above 2^53 keep every digit; a fraction, a boolean and 1e400 are refused", () => {
  const d = read(
    "a int64",
    '{"a":9007199254740993}\n{"a":"9223372036854775807"}\n{"a":1.5}\n{"a":true}\n{"a":18446744073709551615}\n',
  );
  expect(d.rows.flat()).toEqual([9007199254740993n, 9223372036854775807n]);
  expect(d.rejects.map((r) => r.code)).toEqual(["json.kind", "value.precision", "value.range"]);
  expect(read("a uint64", '{"a":18446744073709551615}').rows).toEqual([[18446744073709551615n]]);
  expect(codes("a double", '{"a":1e400}\n{"a":9007199254740993}\n')).toEqual([
    "0 value.range a",
    "1 value.precision a",
  ]);
  expect(read("a decimal(38,9)", '{"a":12345678901234567890.123456789}').rows).toEqual([
    [12345678901234567890123456789n],
  ]);
});

test("a key that comes twice and a key that nobody knows refuse the row", () => {
  expect(codes("a int64", '{"a":1,"a":2}\n{"a":1,"b":2}\n{"a":1,"\\u0061":2}\n')).toEqual([
    "0 json.duplicate_key a",
    "1 json.unknown_key -",
    "2 json.duplicate_key a",
  ]);
});

test("what is no JSON is refused", () => {
  const lines = [
    '{"a":NaN}',
    '{"a":-Infinity}',
    '{"a":1,}',
    "{'a':1}",
    '{"a":01}',
    '{"a":1.}',
    '{"a":1}{"a":2}',
    '{"a":1} x',
    '{"a":1',
    '{"a" 1}',
    "{a:1}",
    '{"a":tru}',
    '{"a":"\\x"}',
    '{"a":"\\ud800"}',
    '{"a":"tab\there"}',
    '{"a":1 /* */}',
    "\ufeff{}",
  ];
  for (const line of lines) expect([line, codes("a double", line)]).toEqual([line, ["0 json.syntax -"]]);
  expect(codes("a double", '[1]\n12\nnull\n"x"\n')).toEqual(
    [0, 1, 2, 3].map((r) => `${r} json.not_object -`),
  );
  expect(codes("a json", `{"a":${"[".repeat(500)}${"]".repeat(500)}}`)).toEqual(["0 json.depth -"]);
});

test("kinds are not mixed up: a number is no text, an object no text either", () => {
  expect(codes("a string", '{"a":12.50}\n{"a":{"x":1}}\n{"a":true}\n')).toEqual(
    [0, 1, 2].map((r) => `${r} json.kind a`),
  );
  expect(codes("a boolean", '{"a":1}\n{"a":"true"}\n')).toEqual([0, 1].map((r) => `${r} json.kind a`));
});

test("escapes and bytes", () => {
  expect(read("a string", '{"a":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00 é"}').rows).toEqual([
    ['"\\/\b\f\n\r\té😀 é'],
  ]);
  const bad = Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff]), Buffer.from('"}\n{"a":"ok"}\n')]);
  expect(codes("a string", bad)).toEqual(["0 row.encoding -"]);
});

test("json columns keep the text of the value", () => {
  expect(read("a json", '{"a":{"x": 1.50, "x": 2}}\n{"a":"t"}\n{"a":null}\n').rows).toEqual([
    ['{"x": 1.50, "x": 2}'],
    ['"t"'],
    [null],
  ]);
});

test("lists, structs and maps, nulls at every level", () => {
  const types = "l list<int64>; s struct<x int64, y list<string>>; m map<string,double>";
  const d = read(
    types,
    '{"l":[1,null,3],"s":{"y":["a\\n",null],"x":1},"m":{"k":1.5}}\n{"l":[],"s":{},"m":{}}\n{"l":null}\n{"s":{"z":1}}\n{"s":{"x":1,"x":2}}\n{"l":[1,"x"]}\n{"m":{"k":1,"k":2}}\n',
  );
  expect(d.rows).toEqual([
    [[1n, null, 3n], { x: 1n, y: ["a\n", null] }, [{ key: "k", value: 1.5 }]],
    [[], { x: null, y: null }, []],
    [null, null, null],
  ]);
  expect(d.rejects.map((r) => `${r.row} ${r.code} ${r.column}`)).toEqual([
    "3 value.type s",
    "4 value.type s",
    "5 value.type l",
    "6 value.type m",
  ]);
});

test("what is required within a column is there where all around it is", () => {
  const sku = { name: "sku", type: { id: "utf8" }, nullable: false } as const;
  const line = { name: "element", type: { id: "struct", fields: [sku] }, nullable: false } as const;
  const fields = [{ name: "lines", type: { id: "list", item: line }, nullable: true } as const];
  const text = ['{"lines":[{"sku":"a"},{"sku":"b"}]}', "{}", '{"lines":null}', '{"lines":[]}', ...BAD_LINES];
  const { rows, rejects } = decodeAll(new JsonDecoder({ isUtf8 }), { fields }, text.join("\n"));
  expect(rows).toEqual([[[{ sku: "a" }, { sku: "b" }]], [null], [null], [[]]]);
  expect(rejects.map((r) => `${r.row} ${r.code} ${r.column}`)).toEqual(
    BAD_LINES.map((_, i) => `${4 + i} value.null lines`),
  );
});

const BAD_LINES = ['{"lines":[{"sku":"a"},{}]}', '{"lines":[{"sku":null}]}', '{"lines":[null]}'];

test("random objects agree with JSON.parse", () => {
  const row = fc.record({
    a: fc.option(fc.integer()),
    b: fc.option(fc.string({ unit: "binary" })),
    c: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true })),
  });
  fc.assert(
    fc.property(fc.array(row, { maxLength: 20 }), (rows) => {
      const text = rows.map((r) => `${JSON.stringify(r)}\n`).join("");
      const want = rows.map((r) => [r.a === null ? null : BigInt(r.a), r.b, r.c === null ? null : r.c + 0]);
      const got = read("a int64, b string, c double", text);
      expect(got.rows.map(([a, b, c]) => [a, b, c === null ? null : (c as number) + 0])).toEqual(want);
    }),
    { numRuns: 200 },
  );
});

test("a schema is inferred as narrow as it holds, and no narrower", () => {
  const lines =
    '{"i":1,"big":12345678901234567890,"f":1.5,"t":"2026-01-01T00:00:00Z","s":"x","o":{"x":1},"l":[1,2.5],"m":1,"n":null}\n' +
    '{"i":2,"f":2,"s":"2026-01-01","o":{"y":"z"},"l":[],"m":"1"}\nnot json\n';
  const found = Object.fromEntries(inferFields(parseLines(lines, 10)).map((f) => [f.name, typeText(f.type)]));
  expect(found).toEqual({
    i: "int64",
    big: "decimal(38,0)",
    f: "double",
    t: "timestamptz",
    s: "string",
    o: "struct<x int64, y string>",
    l: "list<double>",
    m: "json",
    n: "json",
  });
});
