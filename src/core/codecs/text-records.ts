/**
 * Payloads of a text format, one record each, to columns: a chunk of them is cut into cells (cell-memory.ts) by the codec's
 * reader, then each column is read from its cells. A record that is refused costs only itself: what was read of it is
 * taken back, or, where a column finds the fault, its chunk is cut once more without it.
 */
import { builderOf, type ColumnBuilder, type Mark } from "../types/column-builder.ts";
import type { ColumnField, TableColumn } from "../types/table-batch.ts";
import type { PackedColumn } from "../types/text-cells.ts";
import type { Value } from "../types/value.ts";
import { cellValue } from "../types/value-cells.ts";
import { CellColumns } from "./cell-columns.ts";
import { CELL, type CellMemory, type CellNode } from "./cell-memory.ts";
import {
  type DecodeCode,
  DecodeError,
  type DecodeFault,
  type Payloads,
  type RecordDecoder,
} from "./record-codec.ts";

/** Text that is cut at a time: it and its cells stay in the caches. */
const CHUNK_BYTES = 256 * 1024;
const CHUNK_ROWS = 2048;
/** Cells that are laid out for rows, whatever the number of columns. */
const CHUNK_CELLS = 262_144;

export interface TextOptions {
  /** Larger payloads are refused, bytes. */
  readonly maxBytes: number;
  readonly isUtf8: (bytes: Uint8Array) => boolean;
}

/** Cuts one record into cells. */
export interface RecordReader {
  /** Of the record that was refused last. */
  readonly code: DecodeCode;
  readonly path: string;
  readonly reason: string;
  /** The last record was not refused: the cells of this node have no room. */
  readonly full: CellNode | null;
  /** Reads the record in [from, to) of the text; gives where unescaped strings end then, -1: it was refused or has no room. */
  read(from: number, to: number, spareAt: number): number;
}

/** Reads many records at a time, as far as it can. */
export interface RecordScanner {
  /** From record `at` of `count` on; where it stopped, and why if cells are full. */
  scan(
    at: number,
    count: number,
    spareAt: number,
  ): { readonly at: number; readonly spareAt: number; readonly full: CellNode | null };
  /** Copies cells of a leaf together. */
  pack(node: CellNode, cells: number, base: number): PackedColumn;
}

/** Records of a chunk, for a record of so many nodes. */
export function chunkRows(nodes: number): number {
  return Math.max(16, Math.min(CHUNK_ROWS, Math.floor(CHUNK_CELLS / nodes)));
}

export class TextRecords implements RecordDecoder {
  readonly fields: readonly ColumnField[];
  readonly #o: TextOptions;
  readonly #memory: CellMemory;
  readonly #reader: RecordReader;
  readonly #columns: CellColumns;
  readonly #scanner: RecordScanner | null;
  /** Payloads of the chunk, by their number in the batch. */
  readonly #rows: Int32Array;
  #count = 0;
  /** Of one record, for `value`: a Value shares nothing with them. */
  #single: readonly ColumnBuilder[] | null = null;

  constructor(
    fields: readonly ColumnField[],
    options: TextOptions,
    memory: CellMemory,
    reader: RecordReader,
    scanner: RecordScanner | null = null,
  ) {
    this.fields = fields;
    this.#o = options;
    this.#memory = memory;
    this.#reader = reader;
    this.#scanner = scanner;
    this.#rows = new Int32Array(memory.rows);
    this.#columns = new CellColumns(
      memory,
      scanner === null ? null : (n, cells, base) => scanner.pack(n, cells, base),
    );
  }

  decode(payloads: Payloads, columns: readonly ColumnBuilder[], fault: (f: DecodeFault) => void): number {
    let rows = 0;
    for (let at = 0; at < payloads.count; ) {
      at = this.#load(payloads, at, fault);
      rows += this.#chunk(columns, fault);
    }
    return rows;
  }

  value(bytes: Uint8Array, from: number, to: number): Value {
    this.#single ??= this.fields.map((f) => builderOf(f.type));
    const columns = this.#single;
    for (const c of columns) c.reset();
    const one = { bytes, starts: Int32Array.of(from), ends: Int32Array.of(to), count: 1 };
    this.decode(one, columns, ({ code, path, reason }) => {
      throw new DecodeError(code, path, reason);
    });
    // Of one record, so cells and rows have the same numbers.
    return this.#record(
      this.#memory.nodes[0]!,
      0,
      columns.map((c) => c.finish()),
    );
  }

  /** What the record left out is not there. */
  #record(node: CellNode, row: number, columns: readonly TableColumn[]): Value {
    const fields = node.children.flatMap((child, i) =>
      this.#memory.cells(child)[row] === CELL.missing
        ? []
        : [
            {
              name: node.parent === null ? this.fields[i]!.name : child.name,
              value: this.#value(child, row, columns[i]!),
            },
          ],
    );
    return { kind: "record", fields };
  }

  #value(node: CellNode, row: number, column: TableColumn): Value {
    const value = cellValue(column, row);
    if (value.kind === "record") return this.#record(node, row, column.children);
    const [item] = node.children;
    if (item === undefined || column.offsets === null) return value;
    const first = column.offsets[row]!;
    const [items] = column.children as readonly [TableColumn];
    if (value.kind === "list")
      return { kind: "list", items: value.items.map((_, i) => this.#value(item, first + i, items)) };
    if (value.kind !== "map") return value;
    const entries = value.entries.map(
      ([key], i) => [key, this.#value(item.children[1]!, first + i, items.children[1]!)] as const,
    );
    return { kind: "map", entries };
  }

  /** Takes payloads from `first` on into the memory; gives the first that it did not take. */
  #load({ bytes, starts, ends, count }: Payloads, first: number, fault: (f: DecodeFault) => void): number {
    let total = 0;
    let behind = first;
    this.#count = 0;
    for (; behind < count && this.#count < this.#rows.length; behind++) {
      const size = ends[behind]! - starts[behind]!;
      if (size > this.#o.maxBytes) {
        const reason = `${size} bytes; at most ${this.#o.maxBytes} are taken`;
        fault({ row: behind, code: "decode.size", path: "", reason });
        continue;
      }
      if (total > 0 && total + size > CHUNK_BYTES) break;
      this.#rows[this.#count++] = behind;
      total += size;
    }
    const m = this.#memory;
    m.reserve(total);
    this.#place(bytes, starts, ends);
    if (!this.#o.isUtf8(m.textBytes.subarray(0, total))) this.#keepUtf8(fault);
    return behind;
  }

  #place(bytes: Uint8Array, starts: Int32Array, ends: Int32Array): void {
    const m = this.#memory;
    const from = m.rowStarts >> 2;
    const to = m.rowEnds >> 2;
    let at = 0;
    for (let i = 0; i < this.#count; ) {
      // Payloads that lie one behind the other are copied in one go.
      let end = i;
      const shift = at - starts[this.#rows[i]!]!;
      do {
        const row = this.#rows[end]!;
        m.words[from + end] = starts[row]! + shift;
        m.words[to + end] = ends[row]! + shift;
        end++;
      } while (end < this.#count && starts[this.#rows[end]!] === ends[this.#rows[end - 1]!]);
      const stop = ends[this.#rows[end - 1]!]!;
      m.textBytes.set(bytes.subarray(starts[this.#rows[i]!]!, stop), at);
      at = stop + shift;
      i = end;
    }
  }

  #keepUtf8(fault: (f: DecodeFault) => void): void {
    const m = this.#memory;
    this.#filter((i) => {
      const good = this.#o.isUtf8(
        m.textBytes.subarray(m.words[(m.rowStarts >> 2) + i], m.words[(m.rowEnds >> 2) + i]),
      );
      if (!good)
        fault({ row: this.#rows[i]!, code: "decode.encoding", path: "", reason: "bytes that are no UTF-8" });
      return good;
    });
  }

  #filter(stays: (i: number) => boolean): void {
    const w = this.#memory.words;
    const from = this.#memory.rowStarts >> 2;
    const to = this.#memory.rowEnds >> 2;
    let kept = 0;
    for (let i = 0; i < this.#count; i++) {
      if (!stays(i)) continue;
      this.#rows[kept] = this.#rows[i]!;
      w[from + kept] = w[from + i]!;
      w[to + kept] = w[to + i]!;
      kept++;
    }
    this.#count = kept;
  }

  /** Reads what was loaded; gives the number of rows appended. */
  #chunk(columns: readonly ColumnBuilder[], fault: (f: DecodeFault) => void): number {
    let rows = 0;
    for (let first = 0; first < this.#count; ) {
      const behind = this.#cut(first, fault);
      const faulty = this.#append(columns);
      if (faulty !== null) {
        // Without them the rest is cut once more.
        for (const f of faulty.values()) fault({ ...f, row: this.#rows[this.#read[f.row]!]! });
        for (const r of faulty.keys()) this.#refused.add(this.#read[r]!);
        this.#filter((i) => !this.#refused.has(i));
        continue;
      }
      rows += this.#read.length;
      first = behind;
    }
    return rows;
  }

  /** Records of the chunk whose cells are there, and those that were refused before. */
  #read: number[] = [];
  readonly #refused = new Set<number>();

  /** Cuts records from `first` on into cells until these are full; gives the first that was not cut. Refused ones are told. */
  #cut(first: number, fault: (f: DecodeFault) => void): number {
    const m = this.#memory;
    m.clear();
    this.#read = [];
    this.#refused.clear();
    let spare = m.spare;
    let at = first;
    let full: CellNode | null = null;
    while (at < this.#count) {
      const stopped = this.#scanner?.scan(at, this.#count, spare) ?? { at, spareAt: spare, full: null };
      for (let i = at; i < stopped.at; i++) this.#read.push(i);
      spare = stopped.spareAt;
      at = stopped.at;
      full = stopped.full;
      if (at === this.#count || full !== null) break;
      const behind = this.#reader.read(
        m.words[(m.rowStarts >> 2) + at]!,
        m.words[(m.rowEnds >> 2) + at]!,
        spare,
      );
      full = this.#reader.full;
      if (full !== null) break;
      if (behind < 0) this.#refuse(at, fault);
      else {
        spare = behind;
        this.#read.push(at);
      }
      at++;
    }
    if (at > first || full === null) return at;
    // Not even one record has room.
    this.#grow(full);
    return this.#cut(first, fault);
  }

  #refuse(i: number, fault: (f: DecodeFault) => void): void {
    const { code, path, reason } = this.#reader;
    this.#refused.add(i);
    fault({ row: this.#rows[i]!, code, path, reason });
  }

  /** Null: all records are in the columns. Else nothing is, and these are at fault. */
  #append(columns: readonly ColumnBuilder[]) {
    const marks: Mark[] = columns.map((c) => c.mark());
    const faulty = this.#columns.append(columns);
    if (faulty.size === 0) return null;
    for (const [i, c] of columns.entries()) c.truncate(marks[i]!);
    return faulty;
  }

  #grow(node: CellNode): void {
    const m = this.#memory;
    const rowStarts = m.words.slice(m.rowStarts >> 2, (m.rowStarts >> 2) + this.#count);
    const rowEnds = m.words.slice(m.rowEnds >> 2, (m.rowEnds >> 2) + this.#count);
    const length = m.spare;
    const text = m.textBytes.slice(0, length);
    m.grow(node);
    m.reserve(length);
    m.textBytes.set(text);
    m.words.set(rowStarts, m.rowStarts >> 2);
    m.words.set(rowEnds, m.rowEnds >> 2);
  }
}
