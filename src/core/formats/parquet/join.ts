/**
 * Joins whole Parquet files of one schema into one file: their row groups one after another, under one footer whose
 * offsets are moved. So a large file can be written piece by piece in little memory, and each piece by an engine that
 * only knows whole files. Ids are those of parquet-format's src/main/thrift/parquet.thrift.
 */
import { Failure } from "../../failure/failure.ts";
import { MAGIC } from "./footer.ts";
import {
  readTree,
  type ThriftList,
  type ThriftStruct,
  type ThriftValue,
  TYPE,
  writeTree,
} from "./thrift-tree.ts";

const FILE = { schema: 2, rows: 3, groups: 4, metadata: 5, createdBy: 6 } as const;
const GROUP = { columns: 1, rows: 3, fileOffset: 5, ordinal: 7 } as const;
const CHUNK = { fileOffset: 2, metadata: 3, offsetIndex: 4, columnIndex: 6 } as const;
/** data page, index page, dictionary page and bloom filter. */
const CHUNK_OFFSETS = [9, 10, 11, 14];
/** RowGroup.ordinal is an int16. */
const MOST_ORDINALS = 0x7fffn;
const TAIL_BYTES = 8;
const UTF8 = new TextEncoder();

/** SchemaElement.num_children and logicalType; LogicalType.TIMESTAMP and its isAdjustedToUTC. */
const ELEMENT = { children: 5, logical: 10 } as const;
const LOGICAL_TIMESTAMP = 8;
const ADJUSTED = 1;

export class JoinedFile {
  #at = MAGIC.length;
  #footer: ThriftStruct | null = null;
  #schema: Uint8Array | null = null;
  rows = 0;
  readonly #instants: ReadonlySet<number>;

  /** `instants`: numbers of leaves whose timestamps are of UTC, though the pieces do not say so. */
  constructor(instants: ReadonlySet<number> = new Set()) {
    this.#instants = instants;
  }

  /** Bytes of the file so far, its footer left out. */
  get length(): number {
    return this.#at;
  }

  /** The bytes that the file begins with. */
  static readonly head: Uint8Array = MAGIC;

  /** Takes a whole Parquet file; gives its part that belongs behind what was given before (a view). */
  add(piece: Uint8Array): Uint8Array {
    const view = new DataView(piece.buffer, piece.byteOffset, piece.byteLength);
    const footerBytes = piece.length < 12 ? 0 : view.getUint32(piece.length - TAIL_BYTES, true);
    const end = piece.length - TAIL_BYTES - footerBytes;
    if (end < MAGIC.length) throw new Failure("inspect.not_parquet", "a piece of a file has no footer");
    const footer = readTree(piece.subarray(end, piece.length - TAIL_BYTES));
    this.#take(footer, BigInt(this.#at - MAGIC.length));
    this.#at += end - MAGIC.length;
    return piece.subarray(MAGIC.length, end);
  }

  #take(footer: ThriftStruct, shift: bigint): void {
    const groups = list(footer, FILE.groups);
    const schema = writeTree(new Map([[FILE.schema, footer.get(FILE.schema)!]]));
    if (this.#schema !== null && !same(schema, this.#schema))
      throw new Failure("internal.bug", "pieces of one Parquet file have different schemas");
    this.#schema = schema;
    if (this.#footer === null) markInstants(list(footer, FILE.schema), this.#instants);
    this.#footer ??= new Map([
      ...footer,
      [FILE.groups, { type: TYPE.list, value: { element: TYPE.struct, items: [] } }],
    ]);
    const all = list(this.#footer, FILE.groups);
    for (const group of groups.items) {
      move(group as ThriftStruct, shift, BigInt(all.items.length));
      all.items.push(group);
      this.rows += Number((group as ThriftStruct).get(GROUP.rows)!.value);
    }
  }

  /** What the file ends with. `metadata`: key-value pairs of the file. At least one piece was added. */
  finish(metadata: readonly (readonly [string, string])[], createdBy: string): Uint8Array {
    const footer = this.#footer;
    if (footer === null) throw new Failure("internal.bug", "a Parquet file without pieces is finished");
    footer.set(FILE.rows, { type: TYPE.i64, value: BigInt(this.rows) });
    const pairs = metadata.map(
      ([key, value]): ThriftValue =>
        new Map([
          [1, { type: TYPE.binary, value: UTF8.encode(key) }],
          [2, { type: TYPE.binary, value: UTF8.encode(value) }],
        ]),
    );
    footer.set(FILE.metadata, { type: TYPE.list, value: { element: TYPE.struct, items: pairs } });
    footer.set(FILE.createdBy, { type: TYPE.binary, value: UTF8.encode(createdBy) });
    const bytes = writeTree(footer);
    const out = new Uint8Array(bytes.length + TAIL_BYTES);
    out.set(bytes);
    new DataView(out.buffer).setUint32(bytes.length, bytes.length, true);
    out.set(MAGIC, bytes.length + 4);
    return out;
  }
}

function list(struct: ThriftStruct, id: number): ThriftList {
  const found = struct.get(id)?.value as ThriftList | undefined;
  if (found === undefined) throw new Failure("inspect.not_parquet", `a footer has no field ${id}`);
  return found;
}

function markInstants({ items }: ThriftList, instants: ReadonlySet<number>): void {
  let leaf = 0;
  for (const item of items.slice(1)) {
    const element = item as ThriftStruct;
    if (element.has(ELEMENT.children) || !instants.has(leaf++)) continue;
    const logical = element.get(ELEMENT.logical)?.value as ThriftStruct | undefined;
    const timestamp = logical?.get(LOGICAL_TIMESTAMP)?.value as ThriftStruct | undefined;
    timestamp?.set(ADJUSTED, { type: TYPE.true, value: true });
  }
}

function move(group: ThriftStruct, shift: bigint, ordinal: bigint): void {
  add(group, GROUP.fileOffset, shift);
  if (ordinal <= MOST_ORDINALS) group.set(GROUP.ordinal, { type: TYPE.i16, value: ordinal });
  else group.delete(GROUP.ordinal);
  for (const item of list(group, GROUP.columns).items) {
    const chunk = item as ThriftStruct;
    for (const id of [CHUNK.fileOffset, CHUNK.offsetIndex, CHUNK.columnIndex]) add(chunk, id, shift);
    const metadata = chunk.get(CHUNK.metadata)?.value as ThriftStruct | undefined;
    if (metadata !== undefined) for (const id of CHUNK_OFFSETS) add(metadata, id, shift);
  }
}

/** 0 stands for "none" in the offsets that writers leave out. */
function add(struct: ThriftStruct, id: number, shift: bigint): void {
  const field = struct.get(id);
  if (field !== undefined && (field.value as bigint) > 0n) field.value = (field.value as bigint) + shift;
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
