/**
 * Goal: a footer that lies is refused before it costs memory or reaches an engine, and legacy shapes are read. Method: the
 * footer of a file of pyarrow, changed in one place by a generic Thrift tree.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../../../../src/core/failure/failure.ts";
import { planColumns } from "../../../../src/core/formats/parquet/column-plan.ts";
import { groupFooter, placeChunks } from "../../../../src/core/formats/parquet/group-file.ts";
import { readFooter } from "../../../../src/core/formats/parquet/read-footer.ts";
import {
  readTree,
  type ThriftList,
  type ThriftStruct,
  TYPE,
  writeTree,
} from "../../../../src/core/formats/parquet/thrift-tree.ts";
import { typeText } from "../../../../src/core/types/type-text.ts";

const file = readFileSync(join(import.meta.dir, "../../../golden/files/codec-none.parquet"));
const length = file.readUInt32LE(file.length - 8);
const end = file.length - 8 - length;

function changed(change: (footer: ThriftStruct) => void): ReturnType<typeof readFooter> | string {
  const tree = readTree(file.subarray(end, end + length));
  change(tree);
  return outcome(writeTree(tree));
}

function outcome(bytes: Uint8Array): ReturnType<typeof readFooter> | string {
  try {
    return readFooter(bytes, end, "f");
  } catch (e) {
    return e instanceof Failure ? `${e.code}: ${e.message}` : String(e);
  }
}

const items = (s: ThriftStruct, id: number) => (s.get(id)!.value as ThriftList).items as ThriftStruct[];
const group = (f: ThriftStruct) => items(f, 4)[0]!;
const chunk = (f: ThriftStruct) => items(group(f), 1)[0]!;
const facts = (f: ThriftStruct) => chunk(f).get(3)!.value as ThriftStruct;
const int = (value: bigint, type: number = TYPE.i64) => ({ type, value });

const lies: [string, (f: ThriftStruct) => void, string][] = [
  [
    "rows of the file",
    (f) => f.set(3, int(54n)),
    "files.not_parquet: its row groups have 53 rows, its footer says 54",
  ],
  ["rows of a group", (f) => group(f).set(3, int(-1n)), "files.not_parquet: a row group of -1 rows"],
  [
    "values of a column",
    (f) => facts(f).set(5, int(1n)),
    'files.not_parquet: row group 0, column "i64": 1 values',
  ],
  [
    "another type",
    (f) => facts(f).set(1, int(1n, TYPE.i32)),
    'files.not_parquet: row group 0, column "i64": another type',
  ],
  [
    "bytes beyond the file",
    (f) => facts(f).set(7, int(2n ** 50n)),
    'files.not_parquet: row group 0, column "i64": bytes 4',
  ],
  ["no bytes", (f) => facts(f).set(7, int(0n)), "files.not_parquet: row group 0"],
  ["a place before the file", (f) => facts(f).set(9, int(-5n)), "files.not_parquet: row group 0"],
  [
    "LZ4 of Hadoop",
    (f) => facts(f).set(4, int(5n, TYPE.i32)),
    'files.parquet_feature: row group 0, column "i64": compressed with LZ4',
  ],
  [
    "an unknown codec",
    (f) => facts(f).set(4, int(99n, TYPE.i32)),
    'files.parquet_feature: row group 0, column "i64": compressed with codec 99',
  ],
  [
    "columns in other files",
    (f) => chunk(f).set(1, { type: TYPE.binary, value: Buffer.from("x") }),
    "files.parquet_feature: its columns lie",
  ],
  [
    "encrypted metadata",
    (f) => chunk(f).set(9, { type: TYPE.binary, value: Buffer.from("x") }),
    "files.parquet_feature: a column is encrypted",
  ],
  ["a chunk without facts", (f) => chunk(f).delete(3), "files.not_parquet: a column chunk says nothing"],
  [
    "a signed footer",
    (f) => f.set(8, { type: TYPE.struct, value: new Map() }),
    "files.parquet_feature: its footer is signed",
  ],
  ["a column too few", (f) => items(group(f), 1).pop(), "files.not_parquet: row group 0 has 3 columns"],
  ["no schema", (f) => f.delete(2), "files.not_parquet: it has no schema"],
  ["a schema cut short", (f) => items(f, 2).pop(), "files.not_parquet: its schema ends too soon"],
  ["a stray element", (f) => items(f, 2).push(items(f, 2)[1]!), "files.not_parquet: its schema has elements"],
  [
    "many children",
    (f) => items(f, 2)[0]!.set(5, int(1_000_000n, TYPE.i32)),
    "files.not_parquet: a schema element has",
  ],
  [
    "an unknown repetition",
    (f) => items(f, 2)[1]!.set(3, int(3n, TYPE.i32)),
    'files.not_parquet: the column "i64" has repetition 3',
  ],
  [
    "an empty group",
    (f) => items(f, 2)[1]!.delete(1),
    'files.parquet_feature: the group "i64" has no fields',
  ],
  [
    "a count beyond a double",
    (f) => f.set(3, int(2n ** 62n)),
    "files.not_parquet: its footer can't be read: a count of",
  ],
];
for (const [name, change, expected] of lies) test(name, () => expect(changed(change)).toStartWith(expected));

test("bytes that are no footer end at once", () => {
  const long = Uint8Array.of(0x29, 0xfc, 0xff, 0xff, 0xff, 0x7f);
  expect(outcome(long)).toStartWith("files.not_parquet: its footer can't be read: a list is longer");
  expect(outcome(new Uint8Array(1000).fill(0x1c))).toStartWith(
    "files.not_parquet: its footer can't be read: it is nested",
  );
  expect(outcome(Uint8Array.of(0x16, 0xff))).toStartWith(
    "files.not_parquet: its footer can't be read: it ends",
  );
  expect(outcome(new Uint8Array(20).fill(0xff))).toStartWith("files.not_parquet: ");
  expect(outcome(Uint8Array.of(0x1b, 0))).toStartWith("files.not_parquet: its footer can't be read: type 11");
  expect(outcome(Uint8Array.of(0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0x18, 1, 65, 0x00))).toStartWith(
    "files.not_parquet: it has no schema",
  );
});

test("a list of two levels is the list that it was before lists had three", () => {
  const footer = changed((f) => {
    const elements = items(f, 2);
    const at = elements.findIndex((e) => Buffer.from(e.get(4)!.value as Uint8Array).toString() === "li");
    const element = elements[at + 2]!;
    element.set(3, int(2n, TYPE.i32));
    elements.splice(at + 1, 2, element);
  });
  if (typeof footer === "string") throw new Error(footer);
  const [, , li] = planColumns(footer.columns, "f");
  expect(typeText(li!.field.type)).toBe("list<int64>");
  expect(li?.field.type).toMatchObject({ item: { nullable: false } });
});

test("the footer that an engine is shown holds the same rows and chunks, and nothing else", () => {
  const footer = readFooter(file.subarray(end, end + length), end, "f");
  const [only] = footer.groups;
  const chunks = placeChunks(only!);
  const shown = groupFooter(
    planColumns(footer.columns, "f").map((c) => c.shown),
    only!.rows,
    chunks,
  );
  const again = readFooter(shown.subarray(0, -8), end, "f");
  expect(again.rows).toBe(footer.rows);
  expect(again.groups[0]?.chunks.map((c) => [c.values, c.to - c.from, c.codec])).toEqual(
    only!.chunks.map((c) => [c.values, c.to - c.from, c.codec]),
  );
  expect(again.leaves.map((l) => l.logical)).toEqual([null, null, null, null]);
});
