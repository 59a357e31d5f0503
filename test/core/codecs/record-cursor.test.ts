/**
 * Goal: a record that is refused late is found again as it stands in the file. Method: pieces whose records are known, looked
 * up in order, backwards, and beyond the end; what is found is compared with the records that the piece was made of.
 */
import { expect, test } from "bun:test";
import { RFC_4180 } from "../../../src/core/codecs/csv/dialect.ts";
import { RecordCursor, type RecordLayout } from "../../../src/core/codecs/record-cursor.ts";

function found(text: string, layout: RecordLayout, order: readonly number[]): (string | null)[] {
  const bytes = new TextEncoder().encode(`${text}behind the end`);
  const cursor = new RecordCursor(bytes, new TextEncoder().encode(text).length, layout);
  return order.map((n) => {
    const r = cursor.find(n);
    return r === null ? null : new TextDecoder().decode(bytes.subarray(r.from, r.to));
  });
}

test("lines, blank ones left out, the last without its end", () => {
  const text = '{"a":1}\n\n  \n{"a":2}\r\n{"a":3}';
  expect(found(text, "lines", [0, 1, 2, 3, 1, 1])).toEqual([
    '{"a":1}\n',
    // Blank lines before a record are none of their own.
    '{"a":2}\r\n',
    '{"a":3}',
    null,
    '{"a":2}\r\n',
    '{"a":2}\r\n',
  ]);
});

test("fields that hold line ends and quotes", () => {
  const records = ['1,"two\nlines"\n', '2,"a ""quoted"", one\n"\n', "3,plain\n", '4,"\n\n\n"\n'];
  const layout = { dialect: RFC_4180, columns: 2 };
  expect(found(records.join(""), layout, [3, 0, 1, 2])).toEqual([3, 0, 1, 2].map((n) => records[n] ?? null));
  expect(found(`${records.join("")}\n5,x`, layout, [4, 5])).toEqual(["5,x", null]);
});

test("in a file of one column a blank line is a row", () => {
  expect(found("a\n\nb\n", { dialect: RFC_4180, columns: 1 }, [0, 1, 2])).toEqual(["a\n", "\n", "b\n"]);
});
