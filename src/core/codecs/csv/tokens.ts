/**
 * Cuts the records of a piece of CSV into cells (see `TextCells`), a bounded number of rows at a time. Quoted fields
 * with escapes are unescaped into the room behind the piece, so a cell is always one run of bytes.
 */
import type { TextCells } from "../../types/text-cells.ts";
import { type TextScanner, textScanner } from "../text-scanner.ts";
import { CR, type CsvDialect } from "./dialect.ts";

/** What is wrong with a whole record; 0: nothing. */
export const ROW_FAULT = { none: 0, columns: 1, quote: 2, encoding: 3 } as const;

/** Room for unescaped fields that is made at a time. */
const SPARE_BYTES = 1 << 20;

export interface CsvTokens {
  /** The piece, and behind it unescaped fields. Replaced by a larger copy when that room runs out. */
  readonly bytes: Uint8Array;
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /** Per row: where its record begins and ends in the piece, line end included. */
  readonly from: Int32Array;
  readonly to: Int32Array;
  readonly faults: Uint8Array;
  /** Fields that the record has. */
  readonly fields: Int32Array;
  rows: number;
  faulty: number;
  readonly packed?: TextCells["packed"];
  /** bytes[at, end) is whole records; what lies behind `end` is the tokenizer's to write on. */
  begin(bytes: Uint8Array, at: number, end: number): void;
  /** The next rows; false when there are none left. */
  next(): boolean;
}

/** `columns`: that every record must have. `most`: rows at a time. */
export function csvTokens(dialect: CsvDialect, columns: number, most: number): CsvTokens {
  const scanner = dialect.nulls.every((n) => n === "") ? textScanner() : null;
  return scanner === null
    ? new CsvTokenizer(dialect, columns, most)
    : new CsvScan(scanner, dialect, columns, most);
}

/** The same by the thread's scanner. What `next` gave is valid until the next call. */
class CsvScan implements CsvTokens {
  rows = 0;
  faulty = 0;
  readonly #scanner: TextScanner;
  readonly #d: CsvDialect;
  readonly #columns: number;
  readonly #most: number;
  readonly #emptyIsNull: boolean;
  #at = 0;
  #end = 0;

  constructor(scanner: TextScanner, dialect: CsvDialect, columns: number, most: number) {
    this.#scanner = scanner;
    this.#d = dialect;
    this.#columns = columns;
    this.#most = most;
    this.#emptyIsNull = dialect.nulls.includes("");
  }

  get packed(): TextCells["packed"] {
    return this.#scanner.packed;
  }
  get bytes(): Uint8Array {
    return this.#scanner.bytes;
  }
  get starts(): Int32Array {
    return this.#scanner.starts;
  }
  get ends(): Int32Array {
    return this.#scanner.ends;
  }
  get from(): Int32Array {
    return this.#scanner.from;
  }
  get to(): Int32Array {
    return this.#scanner.to;
  }
  get faults(): Uint8Array {
    return this.#scanner.faults;
  }
  get fields(): Int32Array {
    return this.#scanner.fields;
  }

  begin(bytes: Uint8Array, at: number, end: number): void {
    this.#scanner.load(bytes, end, this.#columns, this.#most, this.#d.newline);
    this.#at = at;
    this.#end = end;
  }

  next(): boolean {
    this.rows = 0;
    // Blank lines alone give no rows, and are read over.
    while (this.rows === 0 && this.#at < this.#end) {
      this.rows = this.#scanner.csvRows(this.#at, this.#d, this.#emptyIsNull);
      this.#at = this.#scanner.at;
    }
    this.faulty = this.#scanner.faulty;
    return this.rows > 0;
  }
}

export class CsvTokenizer implements CsvTokens {
  bytes: Uint8Array = new Uint8Array(0);
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  readonly from: Int32Array;
  readonly to: Int32Array;
  readonly faults: Uint8Array;
  readonly fields: Int32Array;
  rows = 0;
  faulty = 0;
  readonly #d: CsvDialect;
  readonly #columns: number;
  readonly #most: number;
  readonly #nulls: readonly Uint8Array[];
  readonly #emptyIsNull: boolean;
  #end = 0;
  #at = 0;
  #spare = 0;
  /** The quoted cell that was found last. A stop of -1: it has no closing quote. */
  #start = 0;
  #stop = 0;

  /** `columns`: that every record must have. `most`: rows at a time. */
  constructor(dialect: CsvDialect, columns: number, most: number) {
    this.#d = dialect;
    this.#columns = columns;
    this.#most = most;
    this.starts = new Int32Array(columns * most);
    this.ends = new Int32Array(columns * most);
    this.from = new Int32Array(most);
    this.to = new Int32Array(most);
    this.faults = new Uint8Array(most);
    this.fields = new Int32Array(most);
    this.#emptyIsNull = dialect.nulls.includes("");
    this.#nulls = dialect.nulls.filter((n) => n !== "").map((n) => new TextEncoder().encode(n));
  }

  /** bytes[at, end) is whole records; what lies behind `end` is the tokenizer's to write on. */
  begin(bytes: Uint8Array, at: number, end: number): void {
    this.bytes = bytes;
    this.#at = at;
    this.#end = end;
    this.#spare = end;
  }

  /** The next rows; false when there are none left. */
  next(): boolean {
    this.rows = 0;
    this.faulty = 0;
    this.#spare = this.#end;
    while (this.rows < this.#most && this.#at < this.#end) this.#record();
    return this.rows > 0;
  }

  // biome-ignore lint/complexity/noExcessiveCognitiveComplexity: one loop in locals; cut in methods it takes half as long again
  #record(): void {
    const { delimiter, quote, newline } = this.#d;
    const end = this.#end;
    const columns = this.#columns;
    const { starts, ends } = this;
    const crlf = newline !== CR;
    const emptyIsNull = this.#emptyIsNull;
    const otherNulls = this.#nulls.length > 0;
    let bytes = this.bytes;
    const first = this.#at;
    let i = first;
    const base = this.rows * columns;
    let column = 0;
    let fault: number = ROW_FAULT.none;
    for (let c = 0; c !== newline; i++, column++) {
      let start = i;
      let stop: number;
      c = i < end ? bytes[i]! : newline;
      if (c === quote && i < end) {
        i = this.#quotedField(i + 1);
        bytes = this.bytes;
        start = this.#start;
        stop = this.#stop;
        c = i < end ? bytes[i]! : newline;
        // CR LF closes as LF does.
        if (c === CR && crlf && (i + 1 >= end || bytes[i + 1] === newline))
          c = ++i < end ? bytes[i]! : newline;
        if (stop < 0 || (c !== delimiter && c !== newline)) fault = ROW_FAULT.quote;
        while (c !== delimiter && c !== newline) c = ++i < end ? bytes[i]! : newline;
      } else {
        while (c !== delimiter && c !== newline) c = ++i < end ? bytes[i]! : newline;
        stop = i;
        if (c === newline && stop > start && crlf && bytes[stop - 1] === CR) stop--;
        if (stop === start ? emptyIsNull : otherNulls && this.#isNull(start, stop)) start = -1;
      }
      if (column < columns) {
        starts[base + column] = start;
        ends[base + column] = start < 0 ? -1 : stop;
      }
    }
    this.#at = Math.min(i, end);
    // An empty line: one field, and nothing but the line end.
    if (column === 1 && columns > 1 && fault === ROW_FAULT.none && this.#emptyLine(first)) return;
    if (fault === ROW_FAULT.none && column !== columns) fault = ROW_FAULT.columns;
    const row = this.rows++;
    this.from[row] = first;
    this.to[row] = this.#at;
    this.fields[row] = column;
    this.faults[row] = fault;
    if (fault !== ROW_FAULT.none) this.faulty++;
  }

  #emptyLine(first: number): boolean {
    const length = this.#at - first;
    const c = this.bytes[first];
    return length === 0 || c === this.#d.newline || (c === CR && length <= 2);
  }

  #isNull(start: number, stop: number): boolean {
    return this.#nulls.some((n) => {
      if (n.length !== stop - start) return false;
      for (let i = 0; i < n.length; i++) if (n[i] !== this.bytes[start + i]) return false;
      return true;
    });
  }

  /** From behind the opening quote; gives the position behind the closing one. The cell is #start, #stop. */
  #quotedField(from: number): number {
    const { quote, escape: mark } = this.#d;
    const end = this.#end;
    const bytes = this.bytes;
    let i = from;
    while (i < end && bytes[i] !== quote && bytes[i] !== mark) i++;
    const doubled = i < end && bytes[i] === quote && mark === quote && i + 1 < end && bytes[i + 1] === quote;
    if (i < end && bytes[i] === quote && !doubled) {
      this.#start = from;
      this.#stop = i;
      return i + 1;
    }
    return this.#escapedField(from, i);
  }

  /** The same where something is escaped at `i`: the text goes to the spare room. */
  #escapedField(from: number, i: number): number {
    const { quote, escape: mark } = this.#d;
    const end = this.#end;
    const close = this.#closing(i);
    const stop = close < 0 ? end : close;
    this.#reserve(stop - from);
    const bytes = this.bytes;
    const start = this.#spare;
    let out = start;
    for (let k = from; k < i; k++) bytes[out++] = bytes[k]!;
    for (let k = i; k < stop; k++) {
      if (bytes[k] === mark || bytes[k] === quote) k++;
      if (k < stop) bytes[out++] = bytes[k]!;
    }
    this.#start = start;
    this.#stop = close < 0 ? -1 : out;
    this.#spare = out;
    return close < 0 ? end : close + 1;
  }

  /** The closing quote at or behind `at`, which stands on an escape or a quote; -1: there is none. */
  #closing(at: number): number {
    const { quote, escape: mark } = this.#d;
    const { bytes } = this;
    for (let i = at; i < this.#end; i++) {
      const c = bytes[i]!;
      if (c === quote && !(mark === quote && i + 1 < this.#end && bytes[i + 1] === quote)) return i;
      if (c === quote || c === mark) i++;
    }
    return -1;
  }

  #reserve(more: number): void {
    const need = this.#spare + more;
    if (need <= this.bytes.length) return;
    const grown = new Uint8Array(need + Math.max(more, SPARE_BYTES));
    grown.set(this.bytes.subarray(0, this.#spare));
    this.bytes = grown;
  }
}
