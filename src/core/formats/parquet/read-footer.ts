/**
 * The footer of a Parquet file that somebody else wrote, as much of it as reading rows needs, checked: every row group
 * lists the leaves of the schema, its bytes lie within the file, its counts agree. Statistics, indexes and key-value
 * pairs are stepped over: nothing of them is believed. Ids are those of parquet-format's src/main/thrift/parquet.thrift.
 */
import { Failure } from "../../failure/failure.ts";
import { ThriftDamage, ThriftReader } from "./thrift-reader.ts";
import { TYPE } from "./thrift-tree.ts";

/** Physical types by number. */
export const PHYSICAL = {
  boolean: 0,
  int32: 1,
  int64: 2,
  int96: 3,
  float: 4,
  double: 5,
  bytes: 6,
  fixed: 7,
} as const;

/** The logical type of a node; `id` is the number in the union LogicalType, converted types are given as their like. */
export interface Logical {
  readonly id: number;
  readonly scale?: number;
  readonly precision?: number;
  /** Time and timestamp: adjusted to UTC. Integers: signed. */
  readonly flag?: boolean;
  /** Time and timestamp: 1 ms, 2 us, 3 ns. Integers: bits. */
  readonly unit?: number;
}

export const LOGICAL = {
  string: 1,
  map: 2,
  list: 3,
  enum: 4,
  decimal: 5,
  date: 6,
  time: 7,
  timestamp: 8,
  integer: 10,
  unknown: 11,
  json: 12,
  bson: 13,
  uuid: 14,
  float16: 15,
  /** No member of the union: the converted type INTERVAL has no other name. */
  interval: -1,
} as const;

export const REPETITION = { required: 0, optional: 1, repeated: 2 } as const;

export interface SchemaNode {
  readonly name: string;
  readonly repetition: number;
  /** Null: a group. */
  readonly physical: number | null;
  readonly length: number;
  readonly logical: Logical | null;
  readonly children: readonly SchemaNode[];
}

export interface ChunkInfo {
  readonly physical: number;
  readonly codec: number;
  readonly values: number;
  /** [from, to) of the file: its pages. */
  readonly from: number;
  readonly to: number;
  readonly dataAt: number;
  readonly dictionaryAt: number | null;
  readonly rawBytes: number;
}

export interface RowGroupInfo {
  readonly rows: number;
  readonly chunks: readonly ChunkInfo[];
}

export interface ParquetFooter {
  readonly rows: number;
  /** Top-level columns. */
  readonly columns: readonly SchemaNode[];
  readonly leaves: readonly SchemaNode[];
  readonly groups: readonly RowGroupInfo[];
}

const MAX_DEPTH = 32;
const MAX_LEAVES = 10_000;
const MAX_ELEMENTS = 100_000;
const MAX_GROUPS = 1_000_000;
/** Column chunks of a file: some 100 bytes of memory each. */
const MAX_CHUNKS = 4_000_000;
const MAGIC_BYTES = 4;

/** `bytes`: the footer alone. `dataEnd`: where it begins in the file `at`. Throws files.not_parquet, files.parquet_feature. */
export function readFooter(bytes: Uint8Array, dataEnd: number, at: string): ParquetFooter {
  try {
    return new FooterReader(bytes, dataEnd, at).read();
  } catch (e) {
    if (e instanceof ThriftDamage) throw notParquet(`its footer can't be read: ${e.message}`, at);
    throw e;
  }
}

export function notParquet(why: string, at: string): Failure {
  return new Failure("files.not_parquet", why, { at, hint: "Was the file written and copied whole?" });
}

export function unsupported(why: string, at: string): Failure {
  return new Failure("files.parquet_feature", why, {
    at,
    hint: "Write it anew with snappy or zstd, without encryption",
  });
}

interface Element {
  name: string;
  physical: number | null;
  length: number;
  repetition: number;
  children: number;
  converted: number | null;
  scale: number;
  precision: number;
  logical: Logical | null;
}

type MutableLogical = { -readonly [K in keyof Logical]: Logical[K] };
type MemberReader = (l: MutableLogical, r: ThriftReader, field: number, type: number) => void;

const timed: MemberReader = (l, r, field, type) => {
  if (field === 1) l.flag = r.bool();
  else if (field === 2 && type === TYPE.struct)
    r.struct((unit) => {
      l.unit = unit;
    });
};

/** Members of LogicalType that say more than their name. */
const MEMBERS: Readonly<Record<number, MemberReader>> = {
  [LOGICAL.decimal]: (l, r, field) => {
    if (field === 1) l.scale = r.int();
    else if (field === 2) l.precision = r.int();
  },
  [LOGICAL.integer]: (l, r, field) => {
    if (field === 1) l.unit = r.byte();
    else if (field === 2) l.flag = r.bool();
  },
  [LOGICAL.time]: timed,
  [LOGICAL.timestamp]: timed,
};

class FooterReader {
  readonly #r: ThriftReader;
  readonly #dataEnd: number;
  readonly #at: string;
  #chunks = 0;

  constructor(bytes: Uint8Array, dataEnd: number, at: string) {
    this.#r = new ThriftReader(bytes);
    this.#dataEnd = dataEnd;
    this.#at = at;
  }

  read(): ParquetFooter {
    const elements: Element[] = [];
    const groups: RowGroupInfo[] = [];
    let rows = 0;
    this.#r.struct((id) => {
      if (id === 2)
        this.#r.list(() => this.#kept(elements, this.#element(), MAX_ELEMENTS, "schema elements"));
      else if (id === 3) rows = this.#r.int();
      else if (id === 4) this.#r.list(() => this.#kept(groups, this.#group(), MAX_GROUPS, "row groups"));
      else if (id === 8) throw unsupported("its footer is signed for encrypted columns", this.#at);
    });
    const { columns, leaves } = this.#tree(elements);
    for (const [i, g] of groups.entries()) this.#checkGroup(g, i, leaves);
    const sum = groups.reduce((n, g) => n + g.rows, 0);
    if (sum !== rows) throw notParquet(`its row groups have ${sum} rows, its footer says ${rows}`, this.#at);
    return { rows, columns, leaves, groups };
  }

  #kept<T>(list: T[], item: T, most: number, what: string): void {
    if (list.push(item) > most) throw unsupported(`more than ${most} ${what}`, this.#at);
  }

  #element(): Element {
    const r = this.#r;
    const e: Element = {
      name: "",
      physical: null,
      length: 0,
      repetition: 0,
      children: 0,
      converted: null,
      scale: 0,
      precision: 0,
      logical: null,
    };
    r.struct((id) => {
      if (id === 1) e.physical = r.int();
      else if (id === 2) e.length = r.int();
      else if (id === 3) e.repetition = r.int();
      else if (id === 4) e.name = r.text();
      else if (id === 5) e.children = r.int();
      else if (id === 6) e.converted = r.int();
      else if (id === 7) e.scale = r.int();
      else if (id === 8) e.precision = r.int();
      else if (id === 10) e.logical = this.#logical();
    });
    return e;
  }

  #logical(): Logical | null {
    const r = this.#r;
    let found: Logical | null = null;
    r.struct((id, union) => {
      if (union !== TYPE.struct) return;
      const l: MutableLogical = { id };
      const read = MEMBERS[id];
      r.struct((field, type) => read?.(l, r, field, type));
      found = l;
    });
    return found;
  }

  #group(): RowGroupInfo {
    const r = this.#r;
    const chunks: ChunkInfo[] = [];
    let rows = -1;
    r.struct((id) => {
      if (id === 1) r.list(() => chunks.push(this.#chunk()));
      else if (id === 3) rows = r.int();
    });
    if (rows < 0) throw notParquet(`a row group of ${rows} rows`, this.#at);
    return { rows, chunks };
  }

  #chunk(): ChunkInfo {
    const r = this.#r;
    if (++this.#chunks > MAX_CHUNKS) throw unsupported(`more than ${MAX_CHUNKS} column chunks`, this.#at);
    const c = { physical: -1, codec: 0, values: 0, dataAt: -1, bytes: -1, rawBytes: 0 };
    let dictionaryAt: number | null = null;
    let known = false;
    r.struct((id) => {
      if (id === 1) throw unsupported("its columns lie in other files", this.#at);
      if (id === 8 || id === 9) throw unsupported("a column is encrypted", this.#at);
      if (id !== 3) return;
      known = true;
      r.struct((field) => {
        if (field === 1) c.physical = r.int();
        else if (field === 4) c.codec = r.int();
        else if (field === 5) c.values = r.int();
        else if (field === 6) c.rawBytes = r.int();
        else if (field === 7) c.bytes = r.int();
        else if (field === 9) c.dataAt = r.int();
        else if (field === 11) dictionaryAt = r.int();
      });
    });
    if (!known) throw notParquet("a column chunk says nothing of itself", this.#at);
    // Some writers say 0 for "none".
    const dictionary =
      dictionaryAt !== null && dictionaryAt > 0 && dictionaryAt < c.dataAt ? dictionaryAt : null;
    const from = dictionary ?? c.dataAt;
    const { physical, codec, values, dataAt, rawBytes } = c;
    return { physical, codec, values, from, to: from + c.bytes, dataAt, dictionaryAt: dictionary, rawBytes };
  }

  /** The schema is a tree listed depth first, the root at index 0. */
  #tree(elements: readonly Element[]): { columns: readonly SchemaNode[]; leaves: readonly SchemaNode[] } {
    const leaves: SchemaNode[] = [];
    let next = 1;
    const node = (depth: number): SchemaNode => {
      const e = elements[next++];
      if (e === undefined) throw notParquet("its schema ends too soon", this.#at);
      if (depth > MAX_DEPTH) throw unsupported(`its schema nests deeper than ${MAX_DEPTH}`, this.#at);
      const { name, repetition, length } = e;
      if (repetition < 0 || repetition > 2)
        throw notParquet(`the column ${JSON.stringify(name)} has repetition ${repetition}`, this.#at);
      const logical = e.logical ?? convertedType(e);
      if (e.physical === null && e.children < 1)
        throw unsupported(`the group ${JSON.stringify(name)} has no fields`, this.#at);
      if (e.physical !== null) {
        const leaf = { name, repetition, physical: e.physical, length, logical, children: [] };
        leaves.push(leaf);
        if (leaves.length > MAX_LEAVES) throw unsupported(`more than ${MAX_LEAVES} columns`, this.#at);
        return leaf;
      }
      const children = this.#many(e.children, elements.length, () => node(depth + 1));
      return { name, repetition, physical: null, length, logical, children };
    };
    const [root] = elements;
    if (root === undefined) throw notParquet("it has no schema", this.#at);
    const columns = this.#many(root.children, elements.length, () => node(1));
    if (next !== elements.length) throw notParquet("its schema has elements that belong nowhere", this.#at);
    return { columns, leaves };
  }

  #many(count: number, most: number, make: () => SchemaNode): SchemaNode[] {
    if (count < 0 || count > most) throw notParquet(`a schema element has ${count} children`, this.#at);
    return Array.from({ length: count }, make);
  }

  #checkGroup({ rows, chunks }: RowGroupInfo, group: number, leaves: readonly SchemaNode[]): void {
    if (chunks.length !== leaves.length)
      throw notParquet(
        `row group ${group} has ${chunks.length} columns, the schema ${leaves.length}`,
        this.#at,
      );
    if (rows === 0) return;
    for (const [i, c] of chunks.entries()) {
      const { name, physical } = leaves[i]!;
      const where = `row group ${group}, column ${JSON.stringify(name)}`;
      if (c.physical !== physical) throw notParquet(`${where}: another type than in the schema`, this.#at);
      if (c.from < MAGIC_BYTES || c.to <= c.from || c.to > this.#dataEnd || c.dataAt >= c.to)
        throw notParquet(`${where}: bytes ${c.from} to ${c.to} of ${this.#dataEnd}`, this.#at);
      if (c.values < rows) throw notParquet(`${where}: ${c.values} values for ${rows} rows`, this.#at);
      if (!CODECS.has(c.codec))
        throw unsupported(
          `${where}: compressed with ${CODEC_NAMES[c.codec] ?? `codec ${c.codec}`}`,
          this.#at,
        );
    }
  }
}

/** uncompressed, snappy, gzip, brotli, zstd, lz4_raw. */
const CODECS: ReadonlySet<number> = new Set([0, 1, 2, 4, 6, 7]);
const CODEC_NAMES: Readonly<Record<number, string>> = { 3: "LZO", 5: "LZ4 in Hadoop's own frames" };

/** Files from before logical types name theirs by converted types (LogicalTypes.md). Timestamps of them are UTC. */
function convertedType({ converted, scale, precision }: Element): Logical | null {
  if (converted === null) return null;
  if (converted >= 11 && converted <= 18)
    return { id: LOGICAL.integer, flag: converted > 14, unit: 8 << ((converted - 11) & 3) };
  const found = CONVERTED[converted];
  return found === undefined ? null : found.id === LOGICAL.decimal ? { ...found, scale, precision } : found;
}

const CONVERTED: Readonly<Record<number, Logical>> = {
  0: { id: LOGICAL.string },
  1: { id: LOGICAL.map },
  2: { id: LOGICAL.map },
  3: { id: LOGICAL.list },
  4: { id: LOGICAL.enum },
  5: { id: LOGICAL.decimal },
  6: { id: LOGICAL.date },
  7: { id: LOGICAL.time, flag: true, unit: 1 },
  8: { id: LOGICAL.time, flag: true, unit: 2 },
  9: { id: LOGICAL.timestamp, flag: true, unit: 1 },
  10: { id: LOGICAL.timestamp, flag: true, unit: 2 },
  19: { id: LOGICAL.json },
  20: { id: LOGICAL.bson },
  21: { id: LOGICAL.interval },
};
