/**
 * Goal: the scanner says what the loops over bytes say, for every text. Method: both read random texts made of the
 * marks that matter, in every dialect, at every place of a block of 64 and across its chunks.
 */
import { expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import fc from "fast-check";
import { type CsvDialect, RFC_4180 } from "../../../src/core/codecs/csv/dialect.ts";
import { scanRecords } from "../../../src/core/codecs/csv/records.ts";
import { CsvTokenizer, type CsvTokens, csvTokens } from "../../../src/core/codecs/csv/tokens.ts";
import { JsonDecoder } from "../../../src/core/codecs/json/decoder.ts";
import { textScanner } from "../../../src/core/codecs/text-scanner.ts";
import { BytesBuilder } from "../../../src/core/types/column-builder.ts";
import { readStrings } from "../../../src/core/types/read-cells.ts";
import type { TextCells } from "../../../src/core/types/text-cells.ts";
import { cellOf, decodeAll, schema } from "./table.ts";

const scanner = textScanner()!;
const utf8 = new TextEncoder();

const dialects = fc.record({
  delimiter: fc.constantFrom(44, 59, 9),
  quote: fc.constantFrom(34, 34, 39, null),
  escape: fc.constantFrom("quote", "quote", "back", null),
  newline: fc.constantFrom<10 | 13>(10, 10, 13),
  nulls: fc.constantFrom([""], []),
});

function dialectOf(d: Omit<CsvDialect, "escape"> & { readonly escape: string | null }): CsvDialect {
  return { ...d, escape: d.escape === "quote" ? d.quote : d.escape === "back" ? 92 : null };
}

/** Texts of the marks of all dialects, with runs of letters so that blocks are crossed. */
const texts = fc
  .array(
    fc.oneof(
      {
        weight: 6,
        arbitrary: fc.constantFrom(",", ",", '"', '"', "\n", "\n", "\r\n", "\r", ";", "'", "\\", '""'),
      },
      { weight: 2, arbitrary: fc.constantFrom("x", "yz", "\u00e4", '"q"', '"a,b"', '"a\nb"', ',"",') },
      { weight: 1, arbitrary: fc.nat(70).map((n) => "r".repeat(n)) },
    ),
    { maxLength: 120 },
  )
  .map((parts) => parts.join(""));

/** All that a tokenizer says of a text, cells as text. */
function told(t: CsvTokens, columns: number, bytes: Uint8Array): unknown[] {
  t.begin(bytes.slice(), 0, bytes.length);
  const text = new TextDecoder();
  const rows: unknown[] = [];
  while (t.next()) {
    const faulty = t.faults.subarray(0, t.rows).filter((f) => f !== 0).length;
    expect(t.faulty).toBe(faulty);
    for (let r = 0; r < t.rows; r++) {
      const whole = t.faults[r] === 0;
      const cells = Array.from({ length: whole ? columns : 0 }, (_, i) => {
        const start = t.starts[r * columns + i]!;
        return start < 0 ? null : text.decode(t.bytes.subarray(start, t.ends[r * columns + i]!));
      });
      rows.push([t.from[r], t.to[r], t.faults[r], t.fields[r], cells]);
    }
  }
  return rows;
}

test("cells of random CSV are those of the tokenizer that looks at every byte", () => {
  fc.assert(
    fc.property(
      texts,
      dialects,
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 9 }),
      (t, d, columns, most) => {
        const dialect = dialectOf(d);
        const bytes = utf8.encode(t);
        const fast = csvTokens(dialect, columns, most);
        expect(fast).not.toBeInstanceOf(CsvTokenizer);
        expect(told(fast, columns, bytes)).toEqual(
          told(new CsvTokenizer(dialect, columns, most), columns, bytes),
        );
      },
    ),
    { numRuns: 3000 },
  );
});

test("records of random CSV are counted as by the loop over bytes, or left to it", () => {
  let counted = 0;
  fc.assert(
    fc.property(texts, dialects, fc.nat(5), fc.boolean(), (t, d, from, one) => {
      const dialect = dialectOf(d);
      const bytes = utf8.encode(t);
      if (from > bytes.length) return;
      const fast = scanner.scan(bytes, from, bytes.length, dialect, one);
      if (fast === null) return;
      counted++;
      // Below 4096 bytes it is the loop that answers.
      const { records, lines, end } = scanRecords(bytes, from, bytes.length, dialect, one ? 1 : 2, false);
      expect({ ...fast, end: fast.records + fast.lines === 0 ? from : fast.end }).toEqual({
        records,
        lines,
        end,
      });
    }),
    { numRuns: 5000 },
  );
  expect(counted).toBeGreaterThan(500);
});

test("a quote that opens where none may is left to the loop; long texts are counted across chunks", () => {
  const scan = (text: string, d: CsvDialect = RFC_4180) => {
    const bytes = utf8.encode(text);
    return scanner.scan(bytes, 0, bytes.length, d, false);
  };
  expect(scan('a"b,5" pipe\n')).toBeNull();
  expect(scan('"a""b"\n', { ...RFC_4180, escape: null })).toBeNull();
  expect(scan('"a\\"b"\n', { ...RFC_4180, escape: 92 })).toBeNull();
  const record = `${"r".repeat(101)},"a\n""b""\n",x\r\n\r\n`;
  const n = 3000;
  expect(scan(record.repeat(n))).toEqual({ records: n, lines: 4 * n, end: record.length * n });
  const whole = utf8.encode(record.repeat(n));
  expect(scanRecords(whole, 0, whole.length, RFC_4180, 3, true).records).toBe(n);
});

const values = fc.oneof(
  fc.constantFrom(
    '"x"',
    '"a\\nb\\"c\\\\"',
    '"\\u00e9"',
    '"\\x"',
    '"tab\t"',
    '"open',
    '"2026-01-01"',
    "true",
    "false",
  ),
  fc.constantFrom(
    "null",
    "nul",
    "1",
    "-2.5e3",
    "01",
    "1.",
    "-",
    "1e",
    "12345678901234567890",
    "{}",
    "[1]",
    "",
    "1 2",
  ),
  fc.integer().map(String),
  fc.string().map((s) => JSON.stringify(s)),
);
const blank = fc.constantFrom("", "", "", " ", "\t ");
const LONG_KEY = "a key of more than sixteen bytes";
const members = fc.tuple(fc.constantFrom("a", "b", "c", "d", LONG_KEY, "a"), blank, blank, values);
const lines = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(fc.array(members, { maxLength: 5 }), blank)
      .map(([m, b]) => `${b}{${m.map(([k, x, y, v]) => `${x}"${k}"${y}:${x}${v}${y}`).join(`,${b}`)}}${b}`),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "",
      "  ",
      "\r",
      "{",
      "}",
      "[]",
      "1",
      '{"a":1}x',
      '{"a":1,}',
      '{"a" 1}',
      '{"\\u0061":1}',
    ),
  },
);

test("rows and rejects of random lines of JSON are those of the reader that looks at every byte", () => {
  const { fields } = schema("a int64, b string, c boolean, d double, e string");
  const narrow = { fields: fields.map((f) => (f.name === "e" ? { ...f, source: LONG_KEY } : f)) };
  fc.assert(
    fc.property(
      fc.array(lines, { maxLength: 30 }),
      fc.constantFrom("\n", "\r\n"),
      fc.boolean(),
      (all, end, last) => {
        const text = all.join(end) + (last ? end : "");
        const fast = decodeAll(new JsonDecoder({ isUtf8 }), narrow, text);
        // A piece of which something was read before is read line by line.
        const slow = decodeAll(new JsonDecoder({ isUtf8 }), narrow, text, [{ from: 1e9, next: 1e9 + 1 }]);
        expect(fast).toEqual(slow);
      },
    ),
    { numRuns: 700 },
  );
});

test("more lines than are read at a time, with strings that are unescaped and lines that are left over", () => {
  const one = schema("s string, n int64");
  const text = Array.from({ length: 30_000 }, (_, i) =>
    i % 1000 === 7 ? `{"n":${i},"s":"\\u0041${i}"}` : `{"s":"q\\"${i}","n":${i}}`,
  ).join("\n");
  const d = decodeAll(new JsonDecoder({ isUtf8 }), one, text);
  expect(d.rejects).toEqual([]);
  expect(d.rows).toEqual(
    Array.from({ length: 30_000 }, (_, i) => [i % 1000 === 7 ? `A${i}` : `q"${i}`, BigInt(i)]),
  );
});

test("a column of text is copied as the reader of single cells does it, nulls and long cells too", () => {
  const cell = fc.oneof(
    fc.constantFrom("", '""', '"q""q"', "\u00e4"),
    fc.nat(90).map((n) => "s".repeat(n)),
  );
  fc.assert(
    fc.property(
      fc.array(fc.tuple(cell, cell), { maxLength: 60 }),
      fc.integer({ min: 1, max: 20 }),
      (rows, before) => {
        const bytes = utf8.encode(rows.map(([a, b]) => `${a},${b}\n`).join(""));
        const t = csvTokens(RFC_4180, 2, 64);
        t.begin(bytes, 0, bytes.length);
        t.next();
        const cells = { bytes: t.bytes, starts: t.starts, ends: t.ends, stride: 2, rows: t.rows };
        const read = (c: TextCells) =>
          [0, 1].map((column) => {
            const into = new BytesBuilder({ id: "utf8" });
            into.push(new Uint8Array(before));
            readStrings(c, column, into);
            return Array.from({ length: into.rows }, (_, r) => cellOf(into.finish(), r));
          });
        expect(read({ ...cells, packed: t.packed! })).toEqual(read(cells));
      },
    ),
    { numRuns: 300 },
  );
});
