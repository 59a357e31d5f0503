/** Goal: a refused row can be read back to the byte from its line. Method: text, other bytes and long records there and back. */
import { expect, test } from "bun:test";
import { lateRejectText, rejectLine } from "../../../src/core/pipeline/reject-line.ts";

const SAMPLE = { file: "a.csv", line: 9, row: 7, code: "row.columns", column: null, reason: "3 fields" };
const utf8 = (text: string) => new TextEncoder().encode(text);

function parsed(record: Uint8Array): Record<string, unknown> {
  const text = new TextDecoder().decode(rejectLine(SAMPLE, record));
  expect(text.indexOf("\n")).toBe(text.length - 1);
  return JSON.parse(text);
}

test("place, reason and text, without the line end", () => {
  for (const end of ["", "\n", "\r\n", "\r"])
    expect(parsed(utf8(`\ufeffü,"\n",2${end}`))).toEqual({ ...SAMPLE, raw: '\ufeffü,"\n",2', raw_bytes: 11 });
  expect(parsed(utf8("x\n\n"))).toMatchObject({ raw: "x\n", raw_bytes: 2 });
  expect(parsed(new Uint8Array(0))).toMatchObject({ raw: "", raw_bytes: 0 });
});

test("bytes that are no text come as base64", () => {
  const line = parsed(Uint8Array.of(0xff, 0x2c, 0x00, 10));
  expect(line).toEqual({ ...SAMPLE, raw_base64: "/ywA", raw_bytes: 3 });
});

test("a long record is cut, its size is not", () => {
  expect(parsed(utf8("x".repeat(70_000)))).toMatchObject({ raw: "x".repeat(65_536), raw_bytes: 70_000 });
});

test("what a server said stands between the place and the record, and fields where there is no record", () => {
  const said = { constraint: "c", sqlstate: "23514" };
  expect(JSON.parse(lateRejectText(SAMPLE, said, utf8("a,b\n")))).toEqual({
    ...SAMPLE,
    ...said,
    raw: "a,b",
    raw_bytes: 3,
  });
  const fields = { a: "1", b: null };
  expect(JSON.parse(lateRejectText(SAMPLE, said, { fields }))).toEqual({ ...SAMPLE, ...said, fields });
});
