/** The cells of text records (cell-memory.ts) into column builders, a column at a time, and what is wrong in which record. */
import { type ColumnBuilder, ListBuilder, StructBuilder } from "../types/column-builder.ts";
import { type CellReader, cellReader } from "../types/read-cells.ts";
import { excerpt, FAULT, Faults, type PackedColumn } from "../types/text-cells.ts";
import { typeText } from "../types/type-text.ts";
import { type CellMemory, type CellNode, FORM } from "./cell-memory.ts";
import type { DecodeCode } from "./record-codec.ts";

const SHOWN_CHARS = 60;

/** By the number of a cell's fault: its code, and how the reason reads between value and type. */
const REASONS: Readonly<Record<number, readonly [DecodeCode, string]>> = {
  [FAULT.type]: ["decode.type", "is no"],
  [FAULT.range]: ["decode.range", "does not fit in"],
  [FAULT.precision]: ["decode.range", "would be rounded as"],
  [FAULT.null]: ["decode.null", "is null, and may not be as"],
  [FAULT.zone]: ["decode.type", "has a zone where there must be none, or none where there must be one, for"],
};

export interface CellFault {
  /** Of the records that were read. */
  readonly row: number;
  readonly code: DecodeCode;
  readonly path: string;
  readonly reason: string;
}

/** Copies the cells of a leaf together faster than one by one. */
export type Packer = (node: CellNode, cells: number, base: number) => PackedColumn;

export class CellColumns {
  readonly #memory: CellMemory;
  readonly #packer: Packer | null;
  readonly #faults = new Faults();
  /** Readers of the builders that were filled last. */
  #readers: (CellReader | null)[] = [];
  #columns: readonly ColumnBuilder[] = [];
  #found = new Map<number, CellFault>();

  constructor(memory: CellMemory, packer: Packer | null) {
    this.#memory = memory;
    this.#packer = packer;
  }

  /** Appends all cells. Faulty records, by row: then the builders must be taken back. */
  append(columns: readonly ColumnBuilder[]): ReadonlyMap<number, CellFault> {
    if (columns.length !== this.#columns.length || columns.some((c, i) => c !== this.#columns[i])) {
      this.#columns = [...columns];
      this.#readers = [];
    }
    this.#found = new Map();
    for (const [i, child] of this.#memory.nodes[0]!.children.entries()) this.#node(child, columns[i]!);
    return this.#found;
  }

  #node(node: CellNode, into: ColumnBuilder): void {
    if (into instanceof StructBuilder && node.form === FORM.struct) {
      this.#struct(node, into);
      for (const [i, child] of node.children.entries()) this.#node(child, into.children[i]!);
    } else if (into instanceof ListBuilder) {
      this.#list(node, into);
      this.#node(node.children[0]!, into.child);
    } else this.#leaf(node, into);
  }

  #struct(node: CellNode, into: StructBuilder): void {
    const cells = this.#memory.cells(node);
    into.validity.reserve(into.rows + cells.length);
    for (let i = 0; i < cells.length; i++) if (cells[i]! < 0) into.validity.clear(into.rows + i);
    into.rows += cells.length;
  }

  #list(node: CellNode, into: ListBuilder): void {
    const cells = this.#memory.cells(node);
    into.reserve(cells.length);
    const { offsets } = into;
    let end = offsets[into.rows]!;
    for (let i = 0, row = into.rows; i < cells.length; i++, row++) {
      const items = cells[i]!;
      if (items < 0) into.validity.clear(row);
      else end += items;
      offsets[row + 1] = end;
    }
    into.rows += cells.length;
  }

  #leaf(node: CellNode, into: ColumnBuilder): void {
    const m = this.#memory;
    const starts = m.cells(node);
    const plain = { bytes: m.textBytes, starts, ends: m.ends(node), stride: 1, rows: starts.length };
    const packer = this.#packer;
    const cells =
      packer === null
        ? plain
        : { ...plain, packed: (_: number, rows: number, base: number) => packer(node, rows, base) };
    this.#readers[node.id] ??= cellReader(node.type, into);
    this.#faults.begin(starts.length);
    this.#readers[node.id]!(cells, 0, this.#faults);
    if (this.#faults.count > 0) this.#collect(node, starts.length);
  }

  #collect(node: CellNode, cells: number): void {
    const { codes } = this.#faults;
    const m = this.#memory;
    for (let i = 0; i < cells; i++) {
      if (codes[i] === 0) continue;
      const { row, path } = this.#place(node, i);
      if (this.#found.has(row)) continue;
      const [code, why] = REASONS[codes[i]!]!;
      const start = m.cells(node)[i]!;
      const stop = Math.min(m.ends(node)[i]!, start + SHOWN_CHARS);
      const seen = JSON.stringify(excerpt(m.textBytes, start, stop));
      this.#found.set(row, { row, code, path, reason: `${seen} ${why} ${typeText(node.type)}` });
    }
  }

  /** The record that cell `cell` is of, and where in it. */
  #place(node: CellNode, cell: number): { readonly row: number; readonly path: string } {
    const { parent } = node;
    if (parent === null) return { row: cell, path: "" };
    if (parent.form === FORM.struct) {
      const { row, path } = this.#place(parent, cell);
      if (parent.parent?.form === FORM.map) return { row, path };
      return { row, path: path === "" ? node.name : `${path}.${node.name}` };
    }
    let above = 0;
    let first = 0;
    for (const items = this.#memory.cells(parent); ; above++) {
      const n = Math.max(0, items[above]!);
      if (cell < first + n) break;
      first += n;
    }
    const { row, path } = this.#place(parent, above);
    return { row, path: `${path}[${cell - first}]` };
  }
}
