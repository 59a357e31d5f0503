/**
 * Goal: text becomes exactly the value that it says, or a fault. Method: edges of each type with values derived by
 * BigInt, Date and Number, which share no code with the readers.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { builderOf } from "../../../src/core/types/column-builder.ts";
import { cellReader } from "../../../src/core/types/read-cells.ts";
import { CELL_FAULTS, Faults, type TextCells } from "../../../src/core/types/text-cells.ts";
import { parseType, typeText } from "../../../src/core/types/type-text.ts";
import { cellOf } from "../codecs/table.ts";

function readAll(type: string, texts: readonly (string | null)[]): unknown[] {
  const t = parseType(type);
  if (typeof t === "string") throw new Error(t);
  const bytes = new TextEncoder().encode(texts.map((x) => x ?? "").join(""));
  const starts = new Int32Array(texts.length);
  const ends = new Int32Array(texts.length);
  let at = 0;
  for (const [i, x] of texts.entries()) {
    const n = new TextEncoder().encode(x ?? "").length;
    starts[i] = x === null ? -1 : at;
    at += n;
    ends[i] = x === null ? -1 : at;
  }
  const cells: TextCells = { bytes, starts, ends, stride: 1, rows: texts.length };
  const builder = builderOf(t);
  const faults = new Faults();
  faults.begin(texts.length);
  cellReader(t, builder)!(cells, 0, faults);
  const column = builder.finish();
  return texts.map((_, i) => (faults.codes[i] === 0 ? cellOf(column, i) : CELL_FAULTS[faults.codes[i]!]));
}

const one = (type: string, text: string) => readAll(type, [text])[0];

test("integers of all widths at and beyond their ends", () => {
  for (const [type, min, max] of [
    ["int8", -128n, 127n],
    ["int16", -32768n, 32767n],
    ["int32", -(2n ** 31n), 2n ** 31n - 1n],
    ["int64", -(2n ** 63n), 2n ** 63n - 1n],
    ["uint8", 0n, 255n],
    ["uint16", 0n, 65535n],
    ["uint32", 0n, 2n ** 32n - 1n],
    ["uint64", 0n, 2n ** 64n - 1n],
  ] as const) {
    const asIs = (n: bigint) => (type.endsWith("64") ? n : Number(n));
    expect(readAll(type, [String(min), String(max), null])).toEqual([asIs(min), asIs(max), null]);
    expect(readAll(type, [String(min - 1n), String(max + 1n)])).toEqual(["range", "range"]);
  }
});

test("any int64 comes back", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (n) => one("int64", String(n)) === n),
  );
});

test("any double that is printed comes back", () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true }), (n) => one("double", String(n)) === n),
    { numRuns: 1000 },
  );
});

test("floats: nearest value, but no infinity out of digits and no changed integer", () => {
  expect(
    readAll("double", [
      "0.1",
      "-0",
      "1e400",
      "9007199254740993",
      "9007199254740992",
      "NaN",
      "-inf",
      "1,5",
      "",
    ]),
  ).toEqual([
    0.1,
    -0,
    "range",
    "precision",
    9007199254740992,
    Number.NaN,
    Number.NEGATIVE_INFINITY,
    "type",
    "type",
  ]);
  expect(one("float", "1e39")).toBe("range");
});

test("a whole number that a float of 32 bits does not have is refused, as one of 53 bits is for a double", () => {
  const texts = ["16777216", "16777217", "-16777217", "16777217.0", "16777217.5", "16777218", "2147483647"];
  expect(readAll("float", texts)).toEqual([
    16_777_216,
    "precision",
    "precision",
    16_777_216,
    16_777_218,
    16_777_218,
    "precision",
  ]);
  // Exact, of more digits than a float prints, and in the shortest text of their float.
  expect(
    readAll("float", ["10000000000", "1e10", "1e11", "340282346638528859811704183484516925440"]),
  ).toEqual([1e10, 1e10, Math.fround(1e11), 3.4028234663852886e38]);
  expect(readAll("float", ["3.4028235e38", "3.4028234e38", "123456792", "123456790", "123456789"])).toEqual([
    3.4028234663852886e38,
    3.4028234663852886e38,
    123_456_792,
    123_456_792,
    "precision",
  ]);
});

test("any whole number comes into a float as it is, or not at all", () => {
  fc.assert(
    fc.property(fc.integer({ min: -(2 ** 31), max: 2 ** 31 }), (n) => {
      const got = one("float", String(n));
      const shortest = [6, 7, 8, 9].some((d) => Number(Math.fround(n).toPrecision(d)) === n);
      if (Math.fround(n) === n) expect(got).toBe(n);
      else if (got !== "precision") expect([got, shortest]).toEqual([Math.fround(n), true]);
    }),
    { numRuns: 2000 },
  );
});

test("decimals never round", () => {
  expect(readAll("decimal(10,2)", ["1.5", "-0.01", "1.005", "12345678.90", "123456789", "1e2", "x"])).toEqual(
    [150n, -1n, "precision", 1234567890n, "range", 10000n, "type"],
  );
  const big = "-1234567890123456789012345678.0123456789";
  expect(one("decimal(38,10)", big)).toBe(-12345678901234567890123456780123456789n);
});

test("dates and timestamps agree with Date, where it knows them", () => {
  fc.assert(
    fc.property(
      fc.date({ min: new Date("0001-01-01"), max: new Date("9999-12-31T23:59:59Z"), noInvalidDate: true }),
      (d) => {
        const iso = d.toISOString();
        expect(one("date", iso.slice(0, 10))).toBe(Math.floor(d.getTime() / 86_400_000));
        expect(one("timestamp", iso.slice(0, -1))).toBe(BigInt(d.getTime()) * 1000n);
        expect(one("timestamptz[ms]", iso)).toBe(BigInt(d.getTime()));
      },
    ),
  );
});

test("times of no zone and of a zone are not mixed up, and nothing is cut off", () => {
  expect(
    readAll("timestamp", [
      "2026-01-01T00:00:00+05:00",
      "2026-02-30 00:00:00",
      "2026-01-01 00:00:00.1234567",
      "2026-01-01",
    ]),
  ).toEqual(["zone", "type", "precision", BigInt(Date.UTC(2026, 0, 1)) * 1000n]);
  expect(readAll("timestamptz", ["2026-01-01T05:00:00+05:00", "2026-01-01 00:00:00"])).toEqual([
    BigInt(Date.UTC(2026, 0, 1)) * 1000n,
    "zone",
  ]);
  expect(readAll("timestamptz", ["2026-01-01T18:00:00+18", "2026-01-01T00:00:00+19"])).toEqual([
    BigInt(Date.UTC(2026, 0, 1)) * 1000n,
    "type",
  ]);
  expect(readAll("timestamp[ns]", ["2026-01-01 00:00:00.123456789", "2500-01-01 00:00:00"])).toEqual([
    BigInt(Date.UTC(2026, 0, 1)) * 1_000_000n + 123456789n,
    "range",
  ]);
  expect(readAll("time", ["23:59:59.999999", "24:00:00", "12:30"])).toEqual([
    86_399_999_999n,
    "type",
    45_000_000_000n,
  ]);
});

test("booleans, uuids and bytes", () => {
  expect(readAll("boolean", ["TRUE", "f", "1", "no", "2", "maybe"])).toEqual([
    true,
    false,
    true,
    false,
    "type",
    "type",
  ]);
  const id = "6f1c0f9e-1234-4abc-8def-0123456789ab";
  expect(readAll("uuid", [id, id.slice(1)])).toEqual([id.replaceAll("-", ""), "type"]);
  expect(readAll("binary", ["\\x00ff", "0g", "abc"])).toEqual(["00ff", "type", "type"]);
});

test("type names are read as they are printed", () => {
  for (const text of [
    "list<struct<a int64, b decimal(10,2)>>",
    "map<string,timestamptz[ms]>",
    "uint8",
    "time[ns]",
    "json",
  ]) {
    const type = parseType(text);
    expect(typeof type === "string" ? type : typeText(type)).toBe(text);
  }
  expect(parseType("decimal(39,0)")).toBeString();
  expect(parseType("int64 x")).toBeString();
});

test("numbers of a million digits cost no more than they are long", () => {
  const long = `1${"0".repeat(1_000_000)}1`;
  const types = ["int64", "double", "decimal(38,0)"];
  expect(types.map((type) => one(type, long))).toEqual(["range", "range", "range"]);
  expect(types.map((type) => one(type, `0.${long}`))).toEqual(["precision", 0.1, "precision"]);
  expect(types.map((type) => one(type, `0.${long}e-${long}`))).toEqual(["precision", 0, "precision"]);
});

test("exponents of any length: zero stays zero, and nothing else fits", () => {
  const texts = ["1e9999999999", "-1e99999999999999999999", "1e-9999999999", "0e9999999999"];
  expect(readAll("int64", texts)).toEqual(["range", "range", "precision", 0n]);
  expect(readAll("double", texts)).toEqual(["range", "range", 0, 0]);
  expect(readAll("decimal(5,2)", texts.slice(0, 3))).toEqual(["range", "range", "precision"]);
});

test("nanoseconds to the last one that 64 bits hold", () => {
  const ns = (text: string) => readAll("timestamptz[ns]", [text])[0];
  expect([ns("2262-04-11T23:47:16.854775807Z"), ns("1677-09-21T00:12:43.145224192Z")]).toEqual([
    2n ** 63n - 1n,
    -(2n ** 63n),
  ]);
  expect([ns("2262-04-11T23:47:16.854775808Z"), ns("1677-09-21T00:12:43.145224191Z")]).toEqual([
    "range",
    "range",
  ]);
  expect([ns("2262-04-11T23:47:17Z"), ns("1677-09-21T00:12:42Z")]).toEqual(["range", "range"]);
});
