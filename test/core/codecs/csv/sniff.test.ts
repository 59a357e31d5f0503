/**
 * Goal: a dialect and a header are found where they are plain, and asked for where they are not; never guessed.
 * Method: files as people have them, each with the answer or the code of the question.
 */
import { expect, test } from "bun:test";
import { RFC_4180 } from "../../../../src/core/codecs/csv/dialect.ts";
import {
  type Cells,
  columnNames,
  type DialectOptions,
  sampleRecords,
  sniffDialect,
} from "../../../../src/core/codecs/csv/sniff.ts";
import { Failure } from "../../../../src/core/failure/failure.ts";

const AUTO: DialectOptions = { delimiter: null, quote: 34, escape: null, nulls: [""] };
const bytes = (text: string) => new TextEncoder().encode(text);
const sniff = (text: string, o: Partial<DialectOptions> = {}, whole = true) =>
  sniffDialect(bytes(text), whole, { ...AUTO, ...o }, "in.csv");
const delimiter = (text: string, whole = true) => String.fromCharCode(sniff(text, {}, whole).delimiter);

function codeOf(fn: () => unknown): string {
  try {
    return `no failure: ${JSON.stringify(fn())}`;
  } catch (e) {
    if (e instanceof Failure) return `${e.code} at ${e.at}`;
    throw e;
  }
}

test("each delimiter is found, also where another one stands within the fields", () => {
  for (const d of [",", ";", "\t", "|"]) expect(delimiter(`a${d}b${d}c\n1${d}2${d}3\n`)).toBe(d);
  expect(delimiter("price;name\n1,50;x\n2,75;y\n")).toBe(";");
  expect(delimiter('a,b\n"x;y;z",1\n"p;q",2\n')).toBe(",");
  // Equally good: the one with more fields.
  expect(delimiter("a;b,c;d\n1;2,3;4\n")).toBe(";");
});

test("a line end within quotes is no end of a record, a torn tail no record", () => {
  expect(delimiter('a;b\n"1\n,,,\n,,,";2\n3;4\n')).toBe(";");
  expect(delimiter("a;b\n1;2\n3,4,5,6,7,8", false)).toBe(";");
});

test("some torn records leave the dialect as it is", () => {
  expect(delimiter("a,b,c\n1,2,3\n4,5\n6,7,8\n")).toBe(",");
});

test("one column has no delimiter, and gets the common one", () => {
  expect(delimiter("name\nx\ny\n")).toBe(",");
  expect(delimiter("")).toBe(",");
});

test("records that agree on nothing are a question", () => {
  expect(codeOf(() => sniff("a,b\n1,2,3\n4,5,6,7\n8,9,10,11,12\n"))).toBe("files.dialect at in.csv");
});

test("what was declared is taken; the escape is the quote unless it is given", () => {
  expect(sniff("a,b\n1,2\n", { delimiter: 124, quote: 39 })).toEqual({
    delimiter: 124,
    quote: 39,
    escape: 39,
    newline: 10,
    nulls: [""],
  });
  expect(sniff("a,b\n", { escape: 92, nulls: ["NA"] })).toMatchObject({
    escape: 92,
    quote: 34,
    nulls: ["NA"],
  });
  expect(sniff("a,b\n", { quote: null })).toMatchObject({ quote: null, escape: null });
});

test("a lone CR ends lines only where there is no LF", () => {
  expect(sniff("a,b\r1,2\r").newline).toBe(13);
  expect(sniff("a,b\r\n1,2\r\n").newline).toBe(10);
  expect(sniff("a,b").newline).toBe(10);
});

test("records of a sample: null and empty text apart, wide and narrow ones as they are, no torn quote", () => {
  const text = 'a,b\n1,\n"",ü\n7\n1,2,3\n"p ""q""\nr",s\n"torn\n';
  expect(sampleRecords(bytes(text), RFC_4180, 100, true)).toEqual([
    ["a", "b"],
    ["1", null],
    ["", "ü"],
    ["7"],
    ["1", "2", "3"],
    ['p "q"\nr', "s"],
  ]);
  expect(sampleRecords(bytes(text), RFC_4180, 2, true)).toEqual([
    ["a", "b"],
    ["1", null],
  ]);
});

test("the last record of a sample that is cut off is left out", () => {
  expect(sampleRecords(bytes("a,b\n12,3"), RFC_4180, 9, false)).toEqual([["a", "b"]]);
  expect(sampleRecords(bytes("a,b\n12,3"), RFC_4180, 9, true)).toEqual([
    ["a", "b"],
    ["12", "3"],
  ]);
});

test("more records than the tokenizer takes at a time", () => {
  const records = sampleRecords(bytes("1,2\n".repeat(10_000)), RFC_4180, 9_000, true);
  expect(records).toHaveLength(9_000);
  expect(records.every((r) => r.join() === "1,2")).toBe(true);
});

const names = (records: readonly Cells[], header: "auto" | "yes" | "no" = "auto") =>
  columnNames(records, header, "in.csv");

test("a first record of names is the header; holes in it are numbered where that is asked for", () => {
  expect(
    names([
      ["id", "name"],
      ["1", "x"],
    ]),
  ).toEqual({ names: ["id", "name"], header: true });
  expect(names([["id", "name"]])).toEqual({ names: ["id", "name"], header: true });
  expect(
    names(
      [
        ["id", null, ""],
        ["1", "2", "3"],
      ],
      "yes",
    ),
  ).toEqual({
    names: ["id", "column_2", "column_3"],
    header: true,
  });
  // What data frames write: an index without a name.
  expect(
    names([
      [null, "price"],
      ["0", "1.5"],
    ]),
  ).toEqual({ names: ["column_1", "price"], header: true });
});

test("a first record like the rows below it is a row", () => {
  expect(
    names([
      ["1", "x"],
      ["2", "y"],
    ]),
  ).toEqual({ names: ["column_1", "column_2"], header: false });
  expect(
    names(
      [
        ["id", "name"],
        ["1", "x"],
      ],
      "no",
    ),
  ).toEqual({ names: ["column_1", "column_2"], header: false });
});

test("what may be either is a question", () => {
  expect(codeOf(() => names([["2023", "2024"]]))).toBe("files.header at in.csv");
  expect(
    codeOf(() =>
      names([
        ["region", "2023"],
        ["north", "x"],
      ]),
    ),
  ).toBe("files.header at in.csv");
  expect(
    codeOf(() =>
      names([
        ["region", null],
        ["1", "x"],
      ]),
    ),
  ).toBe("files.header at in.csv");
});

test("no record, and a name twice", () => {
  expect(codeOf(() => names([]))).toBe("files.header at in.csv");
  expect(names([], "no")).toEqual({ names: [], header: false });
  expect(codeOf(() => names([["a", "b", "a"]]))).toBe("files.header at in.csv");
  expect(names([["a", "b", "a"]], "no").names).toEqual(["column_1", "column_2", "column_3"]);
});
