/**
 * Goal: every CSV is read right or a row is refused with a code; the count of rows never differs from an independent
 * count. Method: cases after the public faults of CSV readers, and random tables written by a few lines of our own.
 */
import { expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import fc from "fast-check";
import { CsvDecoder } from "../../../../src/core/codecs/csv/decoder.ts";
import { type CsvDialect, RFC_4180 } from "../../../../src/core/codecs/csv/dialect.ts";
import { scanRecords } from "../../../../src/core/codecs/csv/records.ts";
import { type Decoded, decodeAll, schema } from "../table.ts";

function read(types: string, text: string | Uint8Array, dialect: Partial<CsvDialect> = {}): Decoded {
  const s = schema(types);
  const d = { ...RFC_4180, ...dialect };
  const columns = s.fields.map((f) => f.name);
  const decoded = decodeAll(new CsvDecoder({ columns, dialect: d, isUtf8 }), s, text);
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  const scan = scanRecords(bytes, 0, bytes.length, d, columns.length, true);
  expect({ counted: scan.records, end: scan.end }).toEqual({ counted: decoded.records, end: bytes.length });
  expect(decoded.rows.length + decoded.rejects.length).toBe(decoded.records);
  return decoded;
}

const codes = (d: Decoded) => d.rejects.map((r) => `${r.row} ${r.code} ${r.column ?? "-"}`);

test("a plain file, with and without a last line end, with CR LF", () => {
  const rows = [
    [1n, "x"],
    [2n, "y"],
  ];
  for (const text of ["1,x\n2,y\n", "1,x\n2,y", "1,x\r\n2,y\r\n", "1,x\r\n2,y\n"])
    expect(read("id int64, s string", text).rows).toEqual(rows);
  expect(read("id int64, s string", "1,x\r2,y\r", { newline: 13 }).rows).toEqual(rows);
});

test("null is an empty field, empty text a quoted one", () => {
  expect(read("a string, b string", 'x,\n"",y\n').rows).toEqual([
    ["x", null],
    ["", "y"],
  ]);
  expect(read("a string, b string", 'NULL,""\n"NULL",x\n', { nulls: ["NULL"] }).rows).toEqual([
    [null, ""],
    ["NULL", "x"],
  ]);
});

test("line ends, delimiters and doubled quotes within quotes", () => {
  expect(read("a string, b string", '"a\nb","c,d"\n"""",""","\n"e""f",g\n').rows).toEqual([
    ["a\nb", "c,d"],
    ['"', '",'],
    ['e"f', "g"],
  ]);
  expect(read("a string, b string", '"a\r\nb",c\r\n').rows).toEqual([["a\r\nb", "c"]]);
  expect(read("a string, b string", '"a\\"b",c\n', { escape: 92 }).rows).toEqual([['a"b', "c"]]);
});

test("a quote within an unquoted field is text", () => {
  expect(read("a string, b string", 'a"b,5" pipe\n').rows).toEqual([['a"b', '5" pipe']]);
});

test("torn records are refused with their reason, their neighbours land", () => {
  const d = read("a int64, b string", '1,x\n2\n3,y,z\n4,"q"r\n5,ok\n');
  expect(d.rows).toEqual([
    [1n, "x"],
    [5n, "ok"],
  ]);
  expect(d.numbers).toEqual([0, 4]);
  expect(codes(d)).toEqual(["1 row.columns -", "2 row.columns -", "3 row.quote -"]);
});

test("a quote that is never closed takes the rest of the file with it, and says so", () => {
  expect(codes(read("a int64, b string", '1,x\n2,"y\n3,z\n'))).toEqual(["1 row.quote -"]);
});

test("blank lines are no records, except of one column", () => {
  expect(read("a int64, b string", "1,x\n\n\r\n2,y\n\n").rows).toHaveLength(2);
  expect(read("a string", "x\n\ny\n").rows).toEqual([["x"], [null], ["y"]]);
});

test("bytes that are no UTF-8 refuse their row alone", () => {
  const text = Buffer.concat([Buffer.from("1,caf"), Buffer.from([0xe9]), Buffer.from("\n2,ok\n")]);
  const d = read("a int64, b string", text);
  expect(d.rows).toEqual([[2n, "ok"]]);
  expect(codes(d)).toEqual(["0 row.encoding -"]);
});

test("values that a type would change are refused, not bent", () => {
  const d = read("a int64", "1\n1.5\n9223372036854775807\n9223372036854775808\n1e3\n0x10\n1_000\nabc\n 7 \n");
  expect(d.rows.flat()).toEqual([1n, 9223372036854775807n, 1000n, 7n]);
  expect(codes(d)).toEqual([
    "1 value.precision a",
    "3 value.range a",
    "5 value.type a",
    "6 value.type a",
    "7 value.type a",
  ]);
});

test("a required column without a value refuses the row", () => {
  expect(codes(read("a int64!, b string", "1,x\n,y\n"))).toEqual(["1 value.null a"]);
});

test("rows that are covered are read over, refused ones too", () => {
  const s = schema("a int64, b string");
  const decoder = new CsvDecoder({ columns: ["a", "b"], dialect: RFC_4180, isUtf8 });
  const d = decodeAll(decoder, s, "1,x\nbad\n3,y\n4,z\n", [
    { from: 0, next: 2 },
    { from: 3, next: 4 },
  ]);
  expect(d.rows).toEqual([[3n, "y"]]);
  expect(d.numbers).toEqual([2]);
  expect(d.rejects).toEqual([]);
  expect(d.records).toBe(4);
});

/** Rows as RFC 4180 text: quoted where needed or by chance. */
function written(rows: readonly (readonly (string | null)[])[], quoteAll: boolean, eol: string): string {
  const field = (v: string | null): string => {
    if (v === null) return "";
    return quoteAll || v === "" || /[",\r\n]/.test(v) ? `"${v.replaceAll('"', '""')}"` : v;
  };
  return rows.map((r) => r.map(field).join(",") + eol).join("");
}

test("random tables come back, cut anywhere", () => {
  const cell = fc.option(
    fc.string({ unit: fc.constantFrom('"', ",", "\n", "\r", "a", "é", " ", "\u0000", "''"), maxLength: 8 }),
  );
  const table = fc.array(fc.tuple(cell, cell, cell), { maxLength: 30 });
  fc.assert(
    fc.property(
      table,
      fc.boolean(),
      fc.constantFrom("\n", "\r\n"),
      fc.integer({ min: 1, max: 400 }),
      (rows, all, eol, cut) => {
        const text = written(rows, all, eol);
        expect(read("a string, b string, c string", text).rows).toEqual(rows);
        // A cut that the scanner makes falls between two records.
        const bytes = new TextEncoder().encode(text);
        const to = Math.min(cut, bytes.length);
        const { end, records } = scanRecords(bytes, 0, to, RFC_4180, 3, false);
        const head = read("a string, b string, c string", bytes.slice(0, end));
        const tail = read("a string, b string, c string", bytes.slice(end));
        expect(records).toBe(head.records);
        expect([...head.rows, ...tail.rows]).toEqual(rows);
      },
    ),
    { numRuns: 300 },
  );
});
