/**
 * Goal: the rows of a container file's blocks come into a table whole, typed and once: straight or cast, without those that
 * are covered; a record that is refused costs only itself; what is damaged is told with file and rows. Method: pieces of
 * blocks made here into a table in memory.
 */
import { expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import { fallbackCodecs } from "../../../src/adapters/duckdb/native-fallback.ts";
import { readHeader } from "../../../src/core/codecs/avro/container.ts";
import type { Reject } from "../../../src/core/codecs/rows.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import { AvroDecoders, AvroRows, avroDecoder } from "../../../src/core/pipeline/avro-rows.ts";
import { RowTable } from "../../../src/core/pipeline/row-table.ts";
import type { AvroLayout } from "../../../src/core/ports/batch-lane.ts";
import type { TableField } from "../../../src/core/types/table-schema.ts";
import { parseType } from "../../../src/core/types/type-text.ts";
import { cellValue } from "../../../src/core/types/value-cells.ts";
import { valueJson } from "../../../src/core/types/value-json.ts";
import { containerBlock, containerHeader } from "../codecs/avro/container-file.ts";

const SCHEMA = {
  type: "record",
  name: "R",
  fields: [
    { name: "id", type: "int" },
    { name: "text", type: ["null", "string"] },
  ],
};

/** id as a varint of one byte, text of one character, or of a byte that is no UTF-8, or null. */
const record = (id: number, text: string | null): Uint8Array =>
  text === null
    ? Uint8Array.of(id * 2, 0)
    : Uint8Array.of(id * 2, 2, 2, text === "?" ? 0xff : text.charCodeAt(0));

const block = (records: readonly Uint8Array[], count = records.length) =>
  containerBlock(count, Buffer.concat(records), "deflate");

function layoutOf(reader: unknown = null): AvroLayout {
  const head = containerHeader(SCHEMA, "deflate");
  const { schema, codec, marker, end } = readHeader(head, head.length)!;
  return {
    ...{ format: "avro", schema, codec, marker, header: end },
    reader: reader === null ? null : JSON.stringify(reader),
  };
}

const field = (name: string, type: string, nullable = true): TableField => {
  const parsed = parseType(type);
  if (typeof parsed === "string") throw new Error(parsed);
  return { name, type: parsed, nullable };
};

const FILE_FIELDS = [field("id", "int32", false), field("text", "string")];

interface Options {
  readonly fields?: readonly TableField[];
  readonly skip?: readonly { readonly from: number; readonly next: number }[];
  readonly reader?: unknown;
  readonly maxBlockBytes?: number;
}

function read(blocks: readonly Uint8Array[], o: Options = {}) {
  const schema = { fields: o.fields ?? FILE_FIELDS };
  const rejects: Reject[] = [];
  const table = new RowTable(
    { schema, metadata: "none", prefix: "_twg_", pipeline: "p", ranked: false },
    () => 0,
    (r) => rejects.push(r),
  );
  const { maxBlockBytes = 1000, reader = null, skip = [] } = o;
  const rows = new AvroRows({ name: "in.avro" }, layoutOf(reader), schema, {
    codecs: fallbackCodecs,
    decoders: new AvroDecoders((b) => isUtf8(b)),
    isUtf8: (b) => isUtf8(b),
    maxBlockBytes,
  });
  const bytes = Buffer.concat(blocks);
  let done = 0;
  const count = rows.decode({ bytes, from: 0, end: bytes.length, firstRow: 10, skip }, table, () => done++);
  const batch = table.batch();
  const lines = Array.from({ length: batch.rows }, (_, r) =>
    [table.rowOf(r), ...batch.columns.map((c) => valueJson(cellValue(c, r)))].join(" "),
  );
  return { count, done, lines, rejects };
}

const GOOD = [
  block([record(1, "a"), record(2, null)]),
  block([]),
  block([record(3, "c"), record(4, "d"), record(5, "e")]),
];

test("rows land in order with their number in the file, a batch a block", () => {
  const { count, done, lines, rejects } = read(GOOD);
  expect([count, done, rejects]).toEqual([5, 3, []]);
  expect(lines).toEqual(['10 1 "a"', "11 2 null", '12 3 "c"', '13 4 "d"', '14 5 "e"']);
});

test("columns of other types, order and number: cast, or null", () => {
  const fields = [field("more", "date"), field("text", "binary"), { ...field("n", "int64"), source: "id" }];
  const { lines } = read(GOOD, { fields });
  expect(lines.slice(0, 2)).toEqual([
    `10 null ${valueJson({ kind: "bytes", value: Buffer.from("a") })} 1`,
    "11 null null 2",
  ]);
});

test("a column that is required has no nulls", () => {
  const fields = [field("id", "int8", false), field("text", "string", false)];
  const { lines, rejects } = read(GOOD, { fields });
  expect(lines.map((l) => l.slice(0, 2))).toEqual(["10", "12", "13", "14"]);
  expect(rejects).toMatchObject([{ row: 11, code: "value.null", column: "text" }]);
});

test("a record that is refused costs only itself, straight and cast", () => {
  const blocks = [block([record(1, "a"), record(2, "?"), record(3, "?"), record(4, "d")]), GOOD[0]!];
  const rejected = [11, 12].map((row) => ({
    ...{ row, code: "decode.encoding", column: "text", value: record(row - 9, "?") },
  }));
  for (const fields of [FILE_FIELDS, [field("id", "int64"), FILE_FIELDS[1]!]]) {
    const { count, lines, rejects } = read(blocks, { fields });
    expect(count).toBe(6);
    expect(lines).toEqual(['10 1 "a"', '13 4 "d"', '14 1 "a"', "15 2 null"]);
    expect(rejects).toMatchObject(rejected);
  }
});

test("one whose end nobody can tell refuses the rest of its block, and no other", () => {
  const branch = Uint8Array.of(2, 6);
  const blocks = [block([record(1, "a"), branch, record(2, "b"), record(3, "c")]), GOOD[0]!];
  const { lines, rejects } = read(blocks);
  expect(lines).toEqual(['10 1 "a"', '14 1 "a"', "15 2 null"]);
  expect(rejects.map(({ row, code }) => [row, code])).toEqual(
    [11, 12, 13].map((row) => [row, "decode.type"]),
  );
});

test("rows that are covered are neither read again nor refused again", () => {
  const blocks = [block([record(1, "?"), record(2, "b"), record(3, "?"), record(4, "d")]), ...GOOD];
  const { count, done, lines, rejects } = read(blocks, {
    skip: [
      { from: 8, next: 12 },
      { from: 14, next: 16 },
    ],
  });
  expect([count, done]).toEqual([9, 3]);
  expect(lines).toEqual(['13 4 "d"', '16 3 "c"', '17 4 "d"', '18 5 "e"']);
  expect(rejects.map((r) => r.row)).toEqual([12]);
});

test("a reader's schema promotes, leaves out and fills in", () => {
  const reader = {
    ...{ type: "record", name: "R" },
    fields: [
      { name: "id", type: "double" },
      { name: "state", type: "string", default: "new" },
    ],
  };
  const fields = avroDecoder(layoutOf(reader), () => true, "r").fields;
  expect(read(GOOD, { reader, fields }).lines.slice(0, 2)).toEqual(['10 1 "new"', '11 2 "new"']);
});

test("damage is told with the file and the rows", () => {
  const failure = (blocks: readonly Uint8Array[], o: Options = {}): string => {
    try {
      return `read: ${read(blocks, o).lines}`;
    } catch (e) {
      if (e instanceof Failure) return `${e.code} ${e.at}: ${e.message}`;
      throw e;
    }
  };
  const torn = Buffer.from(GOOD[0]!);
  torn[2]! ^= 0xff;
  expect(failure([torn])).toStartWith(
    "files.not_avro in.avro: the block of rows 10 to 11 is damaged: deflate",
  );
  expect(failure([block([record(1, "a"), record(2, "b")], 1)])).toBe(
    "files.not_avro in.avro: the block of rows 10 to 10 is damaged: 4 bytes follow the records of a block",
  );
  expect(failure([block([record(1, "a")], 50)])).toContain("says that it holds 50 records");
  const large = block(Array.from({ length: 300 }, () => record(1, "a")));
  expect(failure([large])).toBe(
    "files.record_too_large in.avro: the block of rows 10 to 309 unpacks to more than 1000 bytes",
  );
  expect(() => avroDecoder({ schema: '{"type":"recard"}', reader: null }, () => true, "in.avro")).toThrow(
    "its Avro schema cannot be used",
  );
});
