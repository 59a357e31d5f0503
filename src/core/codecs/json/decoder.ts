/**
 * Newline-delimited JSON to columns. Every line is one object; keys that come twice or that the schema does not know
 * refuse the row, since whichever value were taken, the other would be lost. Numbers are read from their digits, so
 * none is bent on its way through a double.
 */
import type { ColumnBuilder } from "../../types/column-builder.ts";
import { cellReader } from "../../types/read-cells.ts";
import type { ColumnType } from "../../types/table-batch.ts";
import { sourceOf } from "../../types/table-schema.ts";
import { excerpt, Faults, type TextCells } from "../../types/text-cells.ts";
import { typeText } from "../../types/type-text.ts";
import {
  isSkipped,
  type Piece,
  type PieceDecoder,
  type RejectCode,
  type RowTarget,
  VALUE_REASONS,
} from "../rows.ts";
import { type JsonKey, type TextScanner, textScanner } from "../text-scanner.ts";
import { JsonCursor, KIND } from "./cursor.ts";
import { fits } from "./fits.ts";
import { isBlankByte } from "./lines.ts";
import { isNested, NestedReader } from "./nested.ts";

/** Of keys: a mark at their begin is a character of theirs. */
const TEXT = new TextDecoder("utf-8", { ignoreBOM: true });
const BATCH_CELLS = 65_536;
const SHOWN_CHARS = 60;

export interface JsonLayout {
  readonly isUtf8: (bytes: Uint8Array) => boolean;
}

interface Field {
  readonly name: string;
  readonly key: Uint8Array;
  readonly type: ColumnType;
  readonly nullable: boolean;
}

interface Cells {
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  readonly from: Int32Array;
  readonly to: Int32Array;
}

const LF = 10;

/** A bit for each kind of value that is of the type, null excepted. */
function kindsOf(type: ColumnType): number {
  return Object.values(KIND).reduce<number>((bits, kind) => bits | (fits(type, kind) ? 1 << kind : 0), 0);
}

export class JsonDecoder implements PieceDecoder {
  readonly #layout: JsonLayout;
  readonly #cursor = new JsonCursor();
  readonly #faults = new Faults();
  #fields: readonly Field[] = [];
  #byKey = new Map<string, number>();
  #starts: Int32Array = new Int32Array(0);
  #ends: Int32Array = new Int32Array(0);
  #seen = new Int32Array(0);
  #most = 0;
  #rows = 0;
  #numbers = new Float64Array(0);
  #from: Int32Array = new Int32Array(0);
  #to: Int32Array = new Int32Array(0);
  #own: Cells | null = null;
  #keys: readonly JsonKey[] = [];
  #scanner: TextScanner | null = null;
  /** Of the scanner, while the cells are in its memory. */
  #packed: TextScanner["packed"] | null = null;

  constructor(layout: JsonLayout) {
    this.#layout = layout;
  }

  decode(piece: Piece, target: RowTarget, batchDone: () => void): number {
    if (this.#fields.length === 0) this.#prepare(target);
    const { bytes, from, end, firstRow, skip } = piece;
    const utf8 = this.#layout.isUtf8(bytes.subarray(from, end));
    const c = this.#cursor;
    const scanner = utf8 && skip.length === 0 ? this.#scanner : null;
    if (scanner === null) this.#useOwn(bytes, end);
    else this.#useScanner(scanner, bytes, end);
    const spare = c.spareAt;
    this.#next = firstRow;
    for (let at = from; at < end; ) {
      if (scanner !== null) at = this.#scan(scanner, at);
      if (at < end && this.#rows < this.#most) at = this.#readLine(at, piece, utf8, target);
      if (this.#rows === this.#most) {
        this.#flush(target);
        batchDone();
        c.spareAt = spare;
      }
    }
    this.#flush(target);
    batchDone();
    return this.#next - firstRow;
  }

  /** Number of the next record. */
  #next = 0;

  /** The line at `at`; gives where the next one begins. */
  #readLine(at: number, { end, skip }: Piece, utf8: boolean, target: RowTarget): number {
    const next = this.#cursor.bytes.indexOf(LF, at);
    const stop = next < 0 || next >= end ? end : next;
    if (!this.#isBlank(at, stop)) {
      const row = this.#next++;
      if (skip.length === 0 || !isSkipped(skip, row)) this.#line(at, stop, row, utf8, target);
    }
    return stop + 1;
  }

  #prepare({ schema }: RowTarget): void {
    const utf8 = new TextEncoder();
    this.#fields = schema.fields.map((f) => ({
      name: f.name,
      key: utf8.encode(sourceOf(f)),
      type: f.type,
      nullable: f.nullable,
    }));
    this.#byKey = new Map(schema.fields.map((f, i) => [sourceOf(f), i]));
    const n = this.#fields.length;
    this.#most = Math.max(16, Math.min(8192, Math.floor(BATCH_CELLS / n)));
    this.#seen = new Int32Array(n);
    this.#numbers = new Float64Array(this.#most);
    this.#keys = this.#fields.map(({ key, type }) => ({ key, kinds: kindsOf(type) }));
    const plain = ({ key, type }: Field): boolean =>
      !isNested(type) && type.id !== "json" && key.every((b) => b >= 32 && b !== 34 && b !== 92);
    this.#scanner = this.#fields.every(plain) ? textScanner() : null;
  }

  /** Lines are read here, one by one. */
  #useOwn(bytes: Uint8Array, end: number): void {
    const cells = this.#fields.length * this.#most;
    if (this.#own === null) {
      const ints = (n: number) => new Int32Array(n);
      this.#own = { starts: ints(cells), ends: ints(cells), from: ints(this.#most), to: ints(this.#most) };
    }
    this.#take(this.#own);
    this.#packed = null;
    this.#cursor.begin(bytes, end);
  }

  /** The scanner reads all lines that are as they mostly are; what it leaves is read here, in its memory. */
  #useScanner(scanner: TextScanner, bytes: Uint8Array, end: number): void {
    scanner.load(bytes, end, this.#fields.length, this.#most, LF, this.#keys);
    this.#take(scanner);
    this.#packed = scanner.packed;
    this.#cursor.begin(scanner.bytes, scanner.spareFrom);
  }

  #take({ starts, ends, from, to }: Cells): void {
    this.#starts = starts;
    this.#ends = ends;
    this.#from = from;
    this.#to = to;
  }

  /** Reads lines from `at` on into rows; gives where it stopped. */
  #scan(scanner: TextScanner, at: number): number {
    const c = this.#cursor;
    scanner.spareAt = c.spareAt;
    const rows = scanner.jsonRows(at, this.#rows);
    for (let r = this.#rows; r < rows; r++) this.#numbers[r] = this.#next++;
    this.#rows = rows;
    c.spareAt = scanner.spareAt;
    return scanner.at;
  }

  #isBlank(from: number, to: number): boolean {
    const b = this.#cursor.bytes;
    let i = from;
    while (i < to && isBlankByte(b[i])) i++;
    return i === to;
  }

  #stamp = 0;
  #target: RowTarget | null = null;
  #row = 0;
  #recordFrom = 0;
  #recordTo = 0;

  /** Made once, not for every line. */
  readonly #refuse = (code: RejectCode, column: string | null, reason: string): void => {
    const [row, from, to] = [this.#row, this.#recordFrom, this.#recordTo];
    this.#target?.reject({ row, from, to, code, column, reason });
  };

  readonly #broken = (what: string): boolean => {
    const c = this.#cursor;
    const code = c.tooDeep ? "json.depth" : "json.syntax";
    this.#refuse(code, null, c.tooDeep ? "nested too deeply" : `${what} at byte ${c.at - this.#lineStart}`);
    return false;
  };

  #line(from: number, to: number, row: number, utf8: boolean, target: RowTarget): void {
    const refuse = this.#refuse;
    this.#target = target;
    this.#row = row;
    this.#recordFrom = from;
    this.#recordTo = to;
    if (!utf8 && !this.#layout.isUtf8(this.#cursor.bytes.subarray(from, to))) {
      refuse("row.encoding", null, "bytes that are no UTF-8");
      return;
    }
    const base = this.#rows * this.#fields.length;
    this.#starts.fill(-1, base, base + this.#fields.length);
    this.#ends.fill(-1, base, base + this.#fields.length);
    const c = this.#cursor;
    c.range(from, to);
    if (!this.#object(base)) return;
    this.#numbers[this.#rows] = row;
    this.#from[this.#rows] = from;
    this.#to[this.#rows] = to;
    this.#rows++;
  }

  /** False: the row was refused. */
  #object(base: number): boolean {
    const c = this.#cursor;
    const refuse = this.#refuse;
    const broken = this.#broken;
    this.#stamp++;
    c.blank();
    this.#lineStart = c.at;
    if (!c.take(123)) {
      const kind = c.value();
      if (kind === KIND.none) return broken("no JSON value");
      refuse("json.not_object", null, "the line is no object");
      return false;
    }
    c.blank();
    let guess = 0;
    for (let first = true; !c.take(125); first = false) {
      if (!first) {
        if (!c.take(44)) return broken("a comma or } is wanted");
        c.blank();
      }
      const i = this.#key(guess);
      if (i === NO_KEY) return broken("a key is wanted");
      if (i === UNKNOWN) {
        refuse("json.unknown_key", null, `the schema has no ${JSON.stringify(this.#keyText)}`);
        return false;
      }
      const field = this.#fields[i]!;
      if (this.#seen[i] === this.#stamp) {
        refuse(
          "json.duplicate_key",
          field.name,
          `the key ${JSON.stringify(sourceText(field.key))} comes twice`,
        );
        return false;
      }
      this.#seen[i] = this.#stamp;
      c.blank();
      if (!c.take(58)) return broken("a colon is wanted");
      c.blank();
      if (!this.#store(i, base)) return false;
      c.blank();
      guess = i + 1;
    }
    c.blank();
    return c.at === c.end || broken("nothing may follow the object");
  }

  /** The value at the cursor as the cell of field `i`. */
  #store(i: number, base: number): boolean {
    const c = this.#cursor;
    const kind = c.value();
    if (kind === KIND.none) return this.#broken("no JSON value");
    if (kind === KIND.null) return true;
    const { name, type } = this.#fields[i]!;
    if (!fits(type, kind)) {
      const seen = excerpt(c.bytes, c.rawStart, Math.min(c.rawStop, c.rawStart + SHOWN_CHARS));
      this.#refuse("json.kind", name, `${seen} is no ${typeText(type)}`);
      return false;
    }
    const raw = type.id === "json";
    this.#starts[base + i] = raw ? c.rawStart : c.start;
    this.#ends[base + i] = raw ? c.rawStop : c.stop;
    return true;
  }

  #lineStart = 0;
  #keyText = "";

  /** The field of the key at the cursor, which is behind it then. Most objects have their keys in one order. */
  #key(guess: number): number {
    const c = this.#cursor;
    const expected = this.#fields[guess]?.key;
    if (expected !== undefined && this.#matches(expected)) {
      c.at += expected.length + 2;
      return guess;
    }
    if (c.at >= c.end || c.bytes[c.at] !== 34 || !c.string()) return NO_KEY;
    this.#keyText = TEXT.decode(c.bytes.subarray(c.start, c.stop));
    return this.#byKey.get(this.#keyText) ?? UNKNOWN;
  }

  #matches(key: Uint8Array): boolean {
    const c = this.#cursor;
    const b = c.bytes;
    const at = c.at + 1;
    const end = at + key.length;
    if (end >= c.end || b[c.at] !== 34 || b[end] !== 34) return false;
    for (let i = 0; i < key.length; i++) if (b[at + i] !== key[i]) return false;
    return true;
  }

  #flush(target: RowTarget): void {
    if (this.#rows === 0) return;
    const marks = target.columns.map((c) => c.mark());
    if (!this.#readColumns(target)) {
      for (const [i, c] of target.columns.entries()) c.truncate(marks[i]!);
      this.#rejectFaults(target);
      if (!this.#readColumns(target)) throw new Error("rows that were read twice differ");
    }
    let first = 0;
    for (let r = 1; r <= this.#rows; r++) {
      if (r < this.#rows && this.#numbers[r] === this.#numbers[r - 1]! + 1) continue;
      target.addRun(this.#numbers[first]!, r - first);
      first = r;
    }
    this.#rows = 0;
  }

  #readColumns(target: RowTarget): boolean {
    const stride = this.#fields.length;
    const { bytes } = this.#cursor;
    const plain = { bytes, starts: this.#starts, ends: this.#ends, stride, rows: this.#rows };
    const cells: TextCells = this.#packed === null ? plain : { ...plain, packed: this.#packed };
    this.#faults.begin(this.#rows);
    for (const [i, { type, nullable }] of this.#fields.entries()) {
      const builder = target.columns[i]!;
      if (isNested(type)) this.#readNested(cells, i, type, builder);
      else cellReader(type, builder)!(cells, i, this.#faults);
      if (!nullable)
        for (let r = 0; r < this.#rows; r++)
          if (this.#starts[r * stride + i]! < 0) this.#faults.add(r, i, NULL_FAULT);
    }
    return this.#faults.count === 0;
  }

  #nested = new NestedReader();

  #readNested(cells: TextCells, column: number, type: ColumnType, builder: ColumnBuilder): void {
    for (let r = 0; r < cells.rows; r++) {
      const at = r * cells.stride + column;
      const fault = this.#nested.read(cells.bytes, cells.starts[at]!, cells.ends[at]!, type, builder);
      if (fault !== 0) this.#faults.add(r, column, fault);
    }
  }

  #rejectFaults(target: RowTarget): void {
    const f = this.#faults;
    const n = this.#fields.length;
    let to = 0;
    for (let r = 0; r < this.#rows; r++) {
      if (f.codes[r] === 0) {
        this.#starts.copyWithin(to * n, r * n, (r + 1) * n);
        this.#ends.copyWithin(to * n, r * n, (r + 1) * n);
        this.#numbers[to] = this.#numbers[r]!;
        this.#from[to] = this.#from[r]!;
        this.#to[to] = this.#to[r]!;
        to++;
        continue;
      }
      const at = f.columns[r]!;
      const field = this.#fields[at]!;
      const start = this.#starts[r * n + at]!;
      const stop = Math.min(this.#ends[r * n + at]!, start + SHOWN_CHARS);
      const seen = start < 0 ? "" : JSON.stringify(excerpt(this.#cursor.bytes, start, stop));
      const [code, why] = VALUE_REASONS[f.codes[r]!]!;
      const reason = code === "value.null" ? why : `${seen} ${why} ${typeText(field.type)}`;
      target.reject({
        row: this.#numbers[r]!,
        from: this.#from[r]!,
        to: this.#to[r]!,
        code,
        column: field.name,
        reason,
      });
    }
    this.#rows = to;
  }
}

const NO_KEY = -1;
const UNKNOWN = -2;
/** FAULT.null */
const NULL_FAULT = 4;

function sourceText(key: Uint8Array): string {
  return TEXT.decode(key);
}
