/**
 * Where the cells of text records lie: a tree of nodes over the columns, in memory that codecs write, those in WebAssembly
 * (wasm/records.ts) too. A node has a cell for each of its values: a leaf where the value
 * stands in the text, a struct whether it is there, a list or map how many items it has. All numbers are int32.
 *
 *   node    form · kinds · starts · ends · used · capacity · child or members · member count · nullable · kept
 *   member  key (in quotes) · its bytes · node · seen
 */
import type { ColumnField, ColumnType } from "../types/table-batch.ts";

/** Cells of values that are not there: null, or left out altogether. */
export const CELL = { null: -1, missing: -2 } as const;

export const FORM = { leaf: 0, struct: 1, list: 2, map: 3 } as const;

/** Words of a node, and where in it. */
const NODE_WORDS = 12;
const STARTS = 2;
const ENDS = 3;
const USED = 4;
const CAPACITY = 5;
const KEPT = 9;
const MEMBER_WORDS = 8;
/** Addresses below are of nobody, so that 0 is none. */
const FIRST = 1024;
const PAGE = 65_536;
/** Keys are compared sixteen bytes at a time, and texts read so far behind their end. */
const SLACK = 64;
/** A list's items per row that are made room for at first. */
const ITEMS = 4;
const MOST_LISTS = 2;

const UTF8 = new TextEncoder();

export interface CellNode {
  readonly name: string;
  readonly type: ColumnType;
  readonly nullable: boolean;
  readonly form: number;
  /** Whether values of a kind of the codec's are of the type, by bit. */
  readonly kinds: number;
  /** Of a struct its members, of a list its item, of a map its entries: a struct of key and value. */
  readonly children: readonly CellNode[];
  readonly keys: ReadonlyMap<string, number>;
  readonly parent: CellNode | null;
  /** Lists and maps above it. */
  readonly lists: number;
  /** Number of the node. */
  readonly id: number;
}

function formOf(type: ColumnType): number {
  if (type.id === "struct") return FORM.struct;
  if (type.id === "list") return FORM.list;
  return type.id === "map" ? FORM.map : FORM.leaf;
}

function childFields(type: ColumnType): readonly ColumnField[] {
  if (type.id === "struct") return type.fields;
  if (type.id === "list") return [type.item];
  if (type.id !== "map") return [];
  return [{ name: "entry", nullable: false, type: { id: "struct", fields: [type.key, type.value] } }];
}

/** The nodes of a record of these fields, the record itself first, parents before children. */
export function cellNodes(
  fields: readonly ColumnField[],
  kindsOf: (type: ColumnType) => number = () => 0,
): CellNode[] {
  const nodes: CellNode[] = [];
  const add = (field: ColumnField, parent: CellNode | null): CellNode => {
    const { name, type, nullable } = field;
    const children: CellNode[] = [];
    const inList = parent !== null && (parent.form === FORM.list || parent.form === FORM.map);
    const node: CellNode = {
      name,
      type,
      nullable,
      form: formOf(type),
      kinds: kindsOf(type),
      children,
      keys: new Map(childFields(type).map((f, i) => [f.name, i])),
      parent,
      lists: (parent?.lists ?? 0) + (inList ? 1 : 0),
      id: nodes.length,
    };
    nodes.push(node);
    for (const child of childFields(type)) children.push(add(child, node));
    return node;
  };
  add({ name: "", nullable: false, type: { id: "struct", fields } }, null);
  return nodes;
}

interface Places {
  readonly quoted: readonly Uint8Array[];
  readonly membersAt: number;
  readonly keysAt: number;
  readonly cellsAt: number;
}

/** Cells and text of one batch of records. */
export class CellMemory {
  readonly memory: WebAssembly.Memory = new WebAssembly.Memory({ initial: 4 });
  readonly nodes: readonly CellNode[];
  readonly nodesAt: number = FIRST;
  /** Views of the whole memory; others after it grew. */
  words: Int32Array = new Int32Array(0);
  bytes: Uint8Array = new Uint8Array(0);
  readonly rows: number;
  /** Addresses: of the starts and ends of the payloads, of their text, of cells that are copied together and their ends. */
  rowStarts = 0;
  rowEnds = 0;
  text = 0;
  packed = 0;
  offsets = 0;
  /** From the begin of the text on. Positions in cells are relative to it, as is where unescaped strings go. */
  textBytes: Uint8Array = this.bytes;
  spare = 0;
  /** Cells that a node has room for. */
  readonly #room: number[];
  #behindCells = 0;

  /** For at most so many records at a time. */
  constructor(nodes: readonly CellNode[], rows: number) {
    this.nodes = nodes;
    this.rows = rows;
    this.#room = nodes.map((n) => rows * ITEMS ** Math.min(n.lists, MOST_LISTS));
    this.#layOut();
  }

  /** Makes room for more cells of a node that has none left; what is in the cells is forgotten. */
  grow(node: CellNode): void {
    this.#room[node.id]! *= 2;
    this.#layOut();
  }

  nodeAt(address: number): CellNode {
    return this.nodes[(address - this.nodesAt) / (4 * NODE_WORDS)]!;
  }

  /** Room for a text, what is unescaped of it, and its cells copied together. */
  reserve(length: number): void {
    this.text = this.#behindCells;
    this.spare = length + SLACK;
    this.packed = this.text + this.spare + length + SLACK;
    this.#reach(this.packed + 2 * length + SLACK);
    this.textBytes = this.bytes.subarray(this.text);
    this.textBytes.fill(10, length, length + SLACK);
  }

  used(node: CellNode): number {
    return this.words[this.#word(node) + USED]!;
  }

  /** Its cells: of leaves where values start. */
  cells(node: CellNode): Int32Array {
    return this.#view(node, STARTS);
  }

  ends(node: CellNode): Int32Array {
    return this.#view(node, ENDS);
  }

  /** False: there is no room. */
  push(node: CellNode, start: number, end = 0): boolean {
    const at = this.#word(node);
    const w = this.words;
    const used = w[at + USED]!;
    if (used === w[at + CAPACITY]) return false;
    w[(w[at + STARTS]! >> 2) + used] = start;
    if (node.form === FORM.leaf) w[(w[at + ENDS]! >> 2) + used] = end;
    w[at + USED] = used + 1;
    return true;
  }

  /** Of a list or map whose items were pushed. */
  setCell(node: CellNode, cell: number, value: number): void {
    const w = this.words;
    w[(w[this.#word(node) + STARTS]! >> 2) + cell] = value;
  }

  clear(): void {
    for (const n of this.nodes) this.words[this.#word(n) + USED] = 0;
  }

  keep(): void {
    for (const n of this.nodes) {
      const at = this.#word(n);
      this.words[at + KEPT] = this.words[at + USED]!;
    }
  }

  /** Back to where `keep` was called. */
  restore(): void {
    for (const n of this.nodes) {
      const at = this.#word(n);
      this.words[at + USED] = this.words[at + KEPT]!;
    }
  }

  /** Address of a node. */
  address(node: CellNode): number {
    return this.nodesAt + 4 * NODE_WORDS * node.id;
  }

  #word(node: CellNode): number {
    return (this.nodesAt >> 2) + NODE_WORDS * node.id;
  }

  #view(node: CellNode, which: number): Int32Array {
    return new Int32Array(this.memory.buffer, this.words[this.#word(node) + which]!, this.used(node));
  }

  #reach(end: number): void {
    const missing = end - this.memory.buffer.byteLength;
    if (missing > 0) this.memory.grow(Math.ceil(missing / PAGE));
    if (missing <= 0 && this.words.length > 0) return;
    this.words = new Int32Array(this.memory.buffer);
    this.bytes = new Uint8Array(this.memory.buffer);
  }

  #layOut(): void {
    const keys = this.nodes.flatMap((n) => (n.form === FORM.struct ? [...n.keys.keys()] : []));
    const quoted = keys.map((k) => UTF8.encode(JSON.stringify(k)));
    let at = this.nodesAt + 4 * NODE_WORDS * this.nodes.length;
    const membersAt = at;
    at += 4 * MEMBER_WORDS * keys.length;
    const keysAt = at;
    at = align(quoted.reduce((n, k) => n + k.length, at) + SLACK);
    const cellsAt = at;
    for (const n of this.nodes) at += 4 * this.#room[n.id]! * (n.form === FORM.leaf ? 2 : 1);
    this.rowStarts = at;
    this.rowEnds = at + 4 * this.rows;
    this.offsets = this.rowEnds + 4 * this.rows;
    this.#behindCells = align(this.offsets + 4 * this.#room.reduce((a, b) => Math.max(a, b)));
    this.#reach(this.#behindCells);
    this.#fill({ quoted, membersAt, keysAt, cellsAt });
  }

  #fill(places: Places): void {
    const w = this.words;
    let { membersAt: member, keysAt: key, cellsAt: cells } = places;
    let k = 0;
    for (const n of this.nodes) {
      const at = this.#word(n);
      const room = this.#room[n.id]!;
      const ends = n.form === FORM.leaf ? cells + 4 * room : 0;
      const child =
        n.form === FORM.struct ? member : n.children[0] === undefined ? 0 : this.address(n.children[0]);
      w.set([n.form, n.kinds, cells, ends, 0, room, child, n.children.length, Number(n.nullable), 0], at);
      cells += 4 * room * (n.form === FORM.leaf ? 2 : 1);
      if (n.form !== FORM.struct) continue;
      for (const c of n.children) {
        const bytes = places.quoted[k++]!;
        this.bytes.set(bytes, key);
        w.set([key, bytes.length, this.address(c), 0], member >> 2);
        key += bytes.length;
        member += 4 * MEMBER_WORDS;
      }
    }
  }
}

function align(at: number): number {
  return (at + 15) & ~15;
}
