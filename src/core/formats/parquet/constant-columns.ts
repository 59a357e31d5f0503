/**
 * Columns of one value, put into a Parquet file that an engine wrote without them: a dictionary of the value and one
 * run of indices, whatever the number of rows. An engine looks at every row of such a column, and where rows come from
 * one file that is a quarter of its work. Ids are those of parquet-format's src/main/thrift/parquet.thrift.
 */
import { crc32 } from "../../bytes/crc32.ts";
import { Failure } from "../../failure/failure.ts";
import { CODEC, ENCODING } from "./page.ts";
import { putUvarint, ThriftWriter } from "./thrift.ts";
import {
  readTree,
  type ThriftList,
  type ThriftStruct,
  type ThriftValue,
  TYPE,
  writeTree,
} from "./thrift-tree.ts";

export interface ConstantColumn {
  /** Its place among the columns of the whole table. */
  readonly at: number;
  readonly name: string;
  readonly text: boolean;
  readonly value: Uint8Array;
}

const SCHEMA = { children: 5 } as const;
const FILE = { schema: 2, groups: 4, orders: 7 } as const;
const GROUP = { columns: 1, rawBytes: 2, bytes: 6 } as const;
const BYTE_ARRAY = 6n;
const OPTIONAL = 1n;
const UTF8_TEXT = 0n;
const PAGE = { data: 0, dictionary: 2 } as const;
const TAIL_BYTES = 8;
const UTF8 = new TextEncoder();

/** The file with the columns at their places, which must be in order. `file` has one row group, of `rows` rows. */
export function withConstants(
  file: Uint8Array,
  rows: number,
  constants: readonly ConstantColumn[],
): Uint8Array {
  if (constants.length === 0) return file;
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const end = file.length - TAIL_BYTES - view.getUint32(file.length - TAIL_BYTES, true);
  const footer = readTree(file.subarray(end, file.length - TAIL_BYTES));
  const chunks = constants.map((c) => pagesOf(c.value, rows));
  let at = end;
  for (const [i, c] of constants.entries()) {
    insert(footer, c, rows, at, chunks[i]!);
    at += chunks[i]!.bytes.length;
  }
  const tail = writeTree(footer);
  const out = new Uint8Array(at + tail.length + TAIL_BYTES);
  out.set(file.subarray(0, end));
  at = end;
  for (const { bytes } of chunks) {
    out.set(bytes, at);
    at += bytes.length;
  }
  out.set(tail, at);
  new DataView(out.buffer).setUint32(at + tail.length, tail.length, true);
  out.set(file.subarray(file.length - 4), at + tail.length + 4);
  return out;
}

interface Pages {
  readonly bytes: Uint8Array;
  /** Where the data page begins. */
  readonly dataAt: number;
}

function pagesOf(value: Uint8Array, rows: number): Pages {
  const dictionary = new Uint8Array(4 + value.length);
  new DataView(dictionary.buffer).setUint32(0, value.length, true);
  dictionary.set(value, 4);
  // All values are there: one run of level 1. All have index 0, of width 1.
  const run = new Uint8Array(8);
  const runBytes = putUvarint(run, 0, 2 * rows);
  const data = Uint8Array.of(
    runBytes + 1,
    0,
    0,
    0,
    ...run.subarray(0, runBytes),
    1,
    1,
    ...run.subarray(0, runBytes),
    0,
  );
  const w = new ThriftWriter();
  w.open()
    .i32(1, PAGE.dictionary)
    .i32(2, dictionary.length)
    .i32(3, dictionary.length)
    .i32(4, crc32(dictionary) | 0);
  w.open(7).i32(1, 1).i32(2, ENCODING.plain).close().close().raw(dictionary);
  const dataAt = w.view().length;
  w.open()
    .i32(1, PAGE.data)
    .i32(2, data.length)
    .i32(3, data.length)
    .i32(4, crc32(data) | 0);
  w.open(5).i32(1, rows).i32(2, ENCODING.rleDictionary).i32(3, ENCODING.rle).i32(4, ENCODING.rle);
  w.close().close().raw(data);
  return { bytes: w.view().slice(), dataAt };
}

function insert(footer: ThriftStruct, c: ConstantColumn, rows: number, at: number, pages: Pages): void {
  const schema = list(footer, FILE.schema);
  const { element, leaf } = placeOf(schema, c.at);
  const name: ThriftValue = UTF8.encode(c.name);
  const described = struct([
    [1, TYPE.i32, BYTE_ARRAY],
    [3, TYPE.i32, OPTIONAL],
    [4, TYPE.binary, name],
  ]);
  if (c.text) described.set(6, { type: TYPE.i32, value: UTF8_TEXT });
  schema.items.splice(element, 0, described);
  const children = (schema.items[0] as ThriftStruct).get(SCHEMA.children)!;
  children.value = (children.value as bigint) + 1n;

  // One order a leaf: bounds are compared as the type says.
  const orders = footer.get(FILE.orders)?.value as ThriftList | undefined;
  orders?.items.splice(leaf, 0, struct([[1, TYPE.struct, struct([])]]));

  const group = list(footer, FILE.groups).items[0] as ThriftStruct;
  const length = BigInt(pages.bytes.length);
  for (const id of [GROUP.rawBytes, GROUP.bytes]) {
    const sum = group.get(id);
    if (sum !== undefined) sum.value = (sum.value as bigint) + length;
  }
  const statistics = struct([
    [3, TYPE.i64, 0n],
    [4, TYPE.i64, 1n],
    [5, TYPE.binary, c.value],
    [6, TYPE.binary, c.value],
    [7, TYPE.true, true],
    [8, TYPE.true, true],
  ]);
  const encodings = [ENCODING.plain, ENCODING.rle, ENCODING.rleDictionary].map(BigInt);
  const metadata = struct([
    [1, TYPE.i32, BYTE_ARRAY],
    [2, TYPE.list, { element: TYPE.i32, items: encodings }],
    [3, TYPE.list, { element: TYPE.binary, items: [name] }],
    [4, TYPE.i32, BigInt(CODEC.none)],
    [5, TYPE.i64, BigInt(rows)],
    [6, TYPE.i64, length],
    [7, TYPE.i64, length],
    [9, TYPE.i64, BigInt(at + pages.dataAt)],
    [11, TYPE.i64, BigInt(at)],
    [12, TYPE.struct, statistics],
  ]);
  const chunk = struct([
    [2, TYPE.i64, 0n],
    [3, TYPE.struct, metadata],
  ]);
  list(group, GROUP.columns).items.splice(leaf, 0, chunk);
}

/** Where the column of this number is in the schema, and how many leaves there are before it. */
function placeOf(schema: ThriftList, column: number): { readonly element: number; readonly leaf: number } {
  let element = 1;
  let leaf = 0;
  const pass = (): void => {
    const children = Number((schema.items[element++] as ThriftStruct).get(SCHEMA.children)?.value ?? 0);
    if (children === 0) leaf++;
    for (let i = 0; i < children; i++) pass();
  };
  for (let i = 0; i < column; i++) pass();
  return { element, leaf };
}

function struct(fields: readonly (readonly [number, number, ThriftValue])[]): ThriftStruct {
  return new Map(fields.map(([id, type, value]) => [id, { type, value }]));
}

function list(of: ThriftStruct, id: number): ThriftList {
  const found = of.get(id)?.value as ThriftList | undefined;
  if (found === undefined) throw new Failure("internal.bug", `a footer has no field ${id}`);
  return found;
}
