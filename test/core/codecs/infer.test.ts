/**
 * Goal: an inferred type holds every text that it was inferred from, and takes nothing for a quantity that is none.
 * Method: a table of texts and types; then random texts of many kinds, each column read by the real readers with its
 * inferred type, where a single fault fails.
 */
import { expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import fc from "fast-check";
import { CsvDecoder } from "../../../src/core/codecs/csv/decoder.ts";
import { RFC_4180 } from "../../../src/core/codecs/csv/dialect.ts";
import { inferType, temporalType } from "../../../src/core/codecs/infer.ts";
import { typeText } from "../../../src/core/types/type-text.ts";
import { decodeAll } from "./table.ts";

const typeOf = (...texts: (string | null)[]) => typeText(inferType(texts));

/** Codes of the values that the inferred type refuses. */
function refused(texts: readonly string[]): string[] {
  const fields = [{ name: "c", type: inferType(texts), nullable: true }];
  const csv = texts.map((t) => `"${t}"\n`).join("");
  const decoder = new CsvDecoder({ columns: ["c"], dialect: RFC_4180, isUtf8 });
  const { rejects, records } = decodeAll(decoder, { fields }, csv);
  expect(records).toBe(texts.length);
  return rejects.map((r) => `${texts[r.row]}: ${r.code}`);
}

test("the narrowest type that holds them all", () => {
  expect(typeOf("true", "FALSE", null)).toBe("boolean");
  expect(typeOf("0", "-7", "9223372036854775807")).toBe("int64");
  expect(typeOf("-9223372036854775808")).toBe("int64");
  expect(typeOf("9223372036854775808")).toBe("decimal(38,0)");
  expect(typeOf("-9223372036854775809")).toBe("decimal(38,0)");
  expect(typeOf("9".repeat(38))).toBe("decimal(38,0)");
  expect(typeOf("9".repeat(39))).toBe("string");
  expect(typeOf("1", "2.5", "1e3")).toBe("double");
  expect(typeOf("0.1234567890123456")).toBe("decimal(38,16)");
  expect(typeOf("1.5", "12345678901234567")).toBe("decimal(38,1)");
  expect(typeOf("1e300", "12345678901234567.5")).toBe("string");
  expect(typeOf("1e400")).toBe("string");
});

test("what a type would change stays text", () => {
  for (const t of ["007", "+1", "1.", ".5", "0x10", "NaN", "Infinity", "1,5", " 1", "yes", "1_000"])
    expect(`${t} ${typeOf(t, "1")}`).toBe(`${t} string`);
  expect(typeOf("true", "1")).toBe("string");
  expect(typeOf("1", "x")).toBe("string");
});

test("holes and empty texts", () => {
  expect(typeOf()).toBe("string");
  expect(typeOf(null, null)).toBe("string");
  expect(typeOf("1", null)).toBe("int64");
  // An empty text is a value, and no number.
  expect(typeOf("1", "")).toBe("string");
});

test("dates, times and timestamps that exist", () => {
  expect(typeOf("2024-02-29", "1999-12-31")).toBe("date");
  expect(typeOf("0001-01-01", "0099-12-31")).toBe("date");
  for (const day of ["2023-02-29", "2024-13-01", "2024-00-10", "2024-04-31"])
    expect(typeOf(day)).toBe("string");
  expect(typeOf("23:59", "00:00:59.123456")).toBe("time");
  for (const time of ["24:00", "12:60", "12:00:60", "12:00:00.1234567"]) expect(typeOf(time)).toBe("string");
  expect(typeOf("2024-01-01T00:00", "2024-01-01 23:59:59,123456")).toBe("timestamp");
  expect(typeOf("2024-01-01T00:00:00.123456000")).toBe("timestamp");
  expect(typeOf("2024-01-01T00:00:00.123456001")).toBe("timestamp[ns]");
  expect(typeOf("2024-01-01T00:00:00Z", "2024-01-01 00:00:00 +0530")).toBe("timestamptz");
  // Half of them with a zone: neither type holds all.
  expect(typeOf("2024-01-01T00:00:00Z", "2024-01-01T00:00:00")).toBe("string");
  expect(typeOf("2024-01-01", "2024-01-01T00:00:00")).toBe("string");
  for (const bad of [
    "2024-02-30T00:00:00",
    "2024-01-01T24:00:00",
    "2024-01-01T00:00:60",
    "2024-01-01T00:00:00+19:00",
  ])
    expect(`${bad} ${typeOf(bad)}`).toBe(`${bad} string`);
  // 64 bits of nanoseconds end in 2262.
  expect(typeOf("2300-01-01T00:00:00.000000001")).toBe("string");
  expect(typeOf("2024-01-01T00:00:00.000000001", "1500-01-01T00:00:00")).toBe("string");
  expect(typeOf("2300-01-01T00:00:00.000001")).toBe("timestamp");
  expect(temporalType(["12:00", "x"])).toBeNull();
});

test("whatever is inferred, no text that it was inferred from is refused", () => {
  const pad = (n: number, digits = 2) => String(n).padStart(digits, "0");
  const two = fc.integer({ min: 0, max: 61 }).map((n) => pad(n));
  const hour = fc.integer({ min: 0, max: 25 }).map((n) => pad(n));
  const date = fc
    .tuple(
      fc.constantFrom(0, 1, 99, 1500, 1677, 1678, 1900, 2000, 2024, 2261, 2262, 9999),
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 1, max: 31 }),
    )
    .map(([y, m, d]) => `${pad(y, 4)}-${pad(m)}-${pad(d)}`);
  const fraction = fc.constantFrom("", ".5", ".123456", ".1234567", ".123456000", ",25", ".000000001");
  const clock = fc.tuple(hour, two, two, fraction).map(([h, m, s, f]) => `${h}:${m}:${s}${f}`);
  const zone = fc.constantFrom("", "Z", "+05:30", " +0530", "-18", "+18:59", "+19", "z");
  const kinds = [
    fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }).map(String),
    fc.integer().map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc.tuple(fc.integer(), fc.stringMatching(/^\d{1,25}$/)).map(([a, b]) => `${a}.${b}`),
    fc.constantFrom("true", "false", "True", "FALSE", "tRuE"),
    date,
    clock,
    fc.tuple(date, fc.constantFrom("T", " "), clock, zone).map((p) => p.join("")),
    fc.constantFrom("-0", "0", "0.0", "-0.0", "1e5", "1E-5", "0e999", "1e-400"),
  ];
  const columns = fc.oneof(
    ...kinds.map((k) => fc.array(k, { minLength: 1, maxLength: 4 })),
    fc.array(fc.oneof(...kinds), { minLength: 1, maxLength: 4 }),
  );
  fc.assert(
    fc.property(columns, (texts) => {
      expect(refused(texts)).toEqual([]);
    }),
    { numRuns: 1000 },
  );
});
