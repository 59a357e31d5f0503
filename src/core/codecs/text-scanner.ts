/**
 * The same answers as the codecs' own loops over bytes, sixteen bytes at a time: a WebAssembly module with its memory,
 * one a thread (wasm/text.ts). Texts are copied in, which costs little beside reading them; results are views of the
 * memory, valid until the next text is loaded.
 */
import type { PackedColumn } from "../types/text-cells.ts";
import { TEXT_MODULE } from "./text-module.ts";

interface Exports {
  readonly stoppedAt: WebAssembly.Global;
  readonly spareAt: WebAssembly.Global;
  readonly faulty: WebAssembly.Global;
  readonly scanRecords: WebAssembly.Global;
  readonly scanLines: WebAssembly.Global;
  readonly scanEnd: WebAssembly.Global;
  results(...places: number[]): void;
  csvRows(...options: number[]): number;
  scanBegin(): void;
  scanText(...options: number[]): number;
  jsonKeys(at: number): void;
  packColumn(column: number, rows: number, out: number, offsets: number, base: number): number;
  jsonRows(at: number, end: number, spare: number, firstRow: number): number;
}

const PAGE = 65_536;
/** Addresses below are of nobody, so that 0 is none. */
const FIRST = 1024;
/** Texts may be read so far behind their end. */
const SLACK = 64;
/** Text of a scan that is in the memory at a time: it stays in the second-level cache. */
const CHUNK = 128 * 1024;
const NONE = 256;

/** Of a CSV; see `CsvDialect`. */
interface Marks {
  readonly delimiter: number;
  readonly quote: number | null;
  readonly escape: number | null;
  readonly newline: number;
}

export interface JsonKey {
  readonly key: Uint8Array;
  /** A bit for each KIND that the field takes. */
  readonly kinds: number;
}

export class TextScanner {
  readonly #memory: WebAssembly.Memory;
  readonly #call: Exports;
  /** The text that was loaded, and behind it what was unescaped. */
  bytes: Uint8Array = new Uint8Array(0);
  starts: Int32Array = new Int32Array(0);
  ends: Int32Array = new Int32Array(0);
  from: Int32Array = new Int32Array(0);
  to: Int32Array = new Int32Array(0);
  faults: Uint8Array = new Uint8Array(0);
  fields: Int32Array = new Int32Array(0);
  /** Where in `bytes` unescaped text begins, and where the last call ended it. */
  spareFrom = 0;
  spareAt = 0;
  /** Where in `bytes` the last call stopped. */
  at = 0;
  /** Rows of the last call of csvRows with a fault. */
  faulty = 0;
  #text = 0;
  #end = 0;
  #columns = 0;
  #packed = 0;
  #offsets = 0;

  constructor() {
    this.#memory = new WebAssembly.Memory({ initial: 4 });
    const module = new WebAssembly.Module(Uint8Array.fromBase64(TEXT_MODULE));
    const { exports } = new WebAssembly.Instance(module, { env: { memory: this.#memory } });
    this.#call = exports as unknown as Exports;
  }

  /** Takes bytes[0, end) in, for at most `rows` rows of `columns` at a time. `newline` closes the last record. */
  load(
    bytes: Uint8Array,
    end: number,
    columns: number,
    rows: number,
    newline: number,
    keys: readonly JsonKey[] = [],
  ): void {
    const cells = 4 * columns * rows;
    const starts = FIRST;
    const ends = starts + cells;
    const from = ends + cells;
    const to = from + 4 * rows;
    const fields = to + 4 * rows;
    const faults = fields + 4 * rows;
    const offsets = (faults + rows + 15) & ~15;
    const table = offsets + 4 * rows;
    const texts = table + 16 * keys.length;
    const text = keys.reduce((n, k) => n + k.key.length + 2, texts) + SLACK;
    // Unescaped text is never longer than the text, and a column never than both.
    const packed = text + 2 * (end + 2 * SLACK);
    this.#reserve(packed + 2 * end + SLACK);
    const { buffer } = this.#memory;
    this.starts = new Int32Array(buffer, starts, columns * rows);
    this.ends = new Int32Array(buffer, ends, columns * rows);
    this.from = new Int32Array(buffer, from, rows);
    this.to = new Int32Array(buffer, to, rows);
    this.fields = new Int32Array(buffer, fields, rows);
    this.faults = new Uint8Array(buffer, faults, rows);
    this.bytes = new Uint8Array(buffer, text);
    this.bytes.set(bytes.subarray(0, end));
    this.bytes.fill(newline, end, end + SLACK);
    this.#text = text;
    this.#end = end;
    this.#columns = columns;
    this.#packed = packed;
    this.#offsets = offsets;
    this.spareFrom = end + SLACK;
    this.spareAt = this.spareFrom;
    this.#call.results(text, starts, ends, from, to, faults, fields, columns, rows);
    if (keys.length > 0) this.#loadKeys(keys, table, texts);
  }

  #loadKeys(keys: readonly JsonKey[], table: number, texts: number): void {
    const { buffer } = this.#memory;
    const words = new Int32Array(buffer, table, 4 * keys.length);
    const bytes = new Uint8Array(buffer);
    let at = texts;
    for (const [i, { key, kinds }] of keys.entries()) {
      words.set([at, key.length + 2, kinds, 0], 4 * i);
      bytes[at] = 34;
      bytes.set(key, at + 1);
      bytes[at + 1 + key.length] = 34;
      at += key.length + 2;
    }
    this.#call.jsonKeys(table);
  }

  #reserve(bytes: number): void {
    const missing = bytes - this.#memory.buffer.byteLength;
    if (missing > 0) this.#memory.grow(Math.ceil(missing / PAGE));
  }

  /** Cuts records from `at` on into cells, as CsvTokenizer does; gives how many. */
  csvRows(at: number, d: Marks, emptyIsNull: boolean): number {
    const text = this.#text;
    const rows = this.#call.csvRows(
      text + at,
      text + this.#end,
      text + this.spareFrom,
      d.delimiter,
      d.quote ?? NONE,
      d.quote === null ? NONE : (d.escape ?? NONE),
      d.newline,
      Number(emptyIsNull),
    );
    this.at = this.#call.stoppedAt.value - text;
    this.faulty = this.#call.faulty.value;
    return rows;
  }

  /**
   * Reads lines from `at` on into the rows behind `firstRow`; gives how many rows there are then. It stops before a
   * line that is anything but an object of known keys with plain values of their kinds.
   */
  jsonRows(at: number, firstRow: number): number {
    const text = this.#text;
    const rows = this.#call.jsonRows(text + at, text + this.#end, text + this.spareAt, firstRow);
    this.at = this.#call.stoppedAt.value - text;
    this.spareAt = this.#call.spareAt.value - text;
    return rows;
  }

  /** The first `rows` cells of a column; see `TextCells.packed`. */
  readonly packed = (column: number, rows: number, base: number): PackedColumn => {
    if (column >= this.#columns) throw new Error(`column ${column} of ${this.#columns}`);
    const nulls = this.#call.packColumn(column, rows, this.#packed, this.#offsets, base);
    const offsets = new Int32Array(this.#memory.buffer, this.#offsets, rows);
    const length = rows === 0 ? 0 : offsets[rows - 1]! - base;
    return { bytes: new Uint8Array(this.#memory.buffer, this.#packed, length), offsets, nulls };
  };

  /** Counts the records of bytes[from, to); null where quotes do not come in pairs that surround fields. */
  scan(
    bytes: Uint8Array,
    from: number,
    to: number,
    { delimiter, quote, escape: mark, newline }: Marks,
    blankCounts: boolean,
  ): { readonly records: number; readonly lines: number; readonly end: number } | null {
    // An escape that is no quote hides quotes from a count.
    if (quote === null || (mark !== null && mark !== quote)) return null;
    this.#reserve(FIRST + CHUNK + SLACK);
    const call = this.#call;
    const chunk = new Uint8Array(this.#memory.buffer, FIRST, CHUNK + SLACK);
    call.scanBegin();
    for (let at = from; at < to; at += CHUNK) {
      const n = Math.min(CHUNK, to - at);
      chunk.set(bytes.subarray(at, at + n));
      chunk.fill(0, n, n + SLACK);
      const regular = call.scanText(
        FIRST,
        n,
        at - from,
        delimiter,
        quote,
        newline,
        Number(mark === quote),
        Number(blankCounts),
      );
      if (regular === 0) return null;
    }
    return {
      records: call.scanRecords.value,
      lines: call.scanLines.value,
      end: from + call.scanEnd.value,
    };
  }
}

let scanner: TextScanner | null | undefined;

/** The scanner of this thread; null where the processor has no such instructions. */
export function textScanner(): TextScanner | null {
  if (scanner === undefined) {
    const module = Uint8Array.fromBase64(TEXT_MODULE);
    scanner = WebAssembly.validate(module) ? new TextScanner() : null;
  }
  return scanner;
}
