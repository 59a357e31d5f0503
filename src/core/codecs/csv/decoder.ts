/**
 * CSV to columns, a batch of rows at a time: cut into cells, drop what is no record, read column by column. If values
 * of some rows are wrong, these rows are dropped and the batch is read again, so a clean file pays nothing for it.
 */
import { cellReader } from "../../types/read-cells.ts";
import { sourceOf } from "../../types/table-schema.ts";
import { excerpt, FAULT, Faults, type TextCells } from "../../types/text-cells.ts";
import { typeText } from "../../types/type-text.ts";
import {
  isSkipped,
  type Piece,
  type PieceDecoder,
  type RejectCode,
  type RowTarget,
  VALUE_REASONS,
} from "../rows.ts";
import type { CsvDialect } from "./dialect.ts";
import { type CsvTokens, csvTokens, ROW_FAULT } from "./tokens.ts";

/** Rows cut at a time: the cells of a wide table still fit in the second-level cache. */
const BATCH_CELLS = 65_536;
const SHOWN_CHARS = 60;

export interface CsvLayout {
  /** Columns of every record, in the order of the file. */
  readonly columns: readonly string[];
  readonly dialect: CsvDialect;
  /** Whether all of [from, end) is UTF-8. */
  readonly isUtf8: (bytes: Uint8Array) => boolean;
}

interface Bound {
  /** Of the schema's fields: which column of the file. -1: the file has none, all null. */
  readonly at: number;
}

export class CsvDecoder implements PieceDecoder {
  readonly #layout: CsvLayout;
  readonly #tokens: CsvTokens;
  readonly #faults = new Faults();
  #bound: readonly Bound[] | null = null;

  constructor(layout: CsvLayout) {
    this.#layout = layout;
    const columns = layout.columns.length;
    const rows = Math.max(16, Math.min(8192, Math.floor(BATCH_CELLS / columns)));
    this.#tokens = csvTokens(layout.dialect, columns, rows);
  }

  decode(piece: Piece, target: RowTarget, batchDone: () => void): number {
    const t = this.#tokens;
    const utf8 = this.#layout.isUtf8(piece.bytes.subarray(piece.from, piece.end));
    t.begin(piece.bytes, piece.from, piece.end);
    let row = piece.firstRow;
    while (t.next()) {
      const seen = t.rows;
      const numbers = this.#rowNumbers(row, seen);
      if (piece.skip.length > 0) this.#dropSkipped(piece.skip, numbers);
      if (!utf8) this.#markEncoding();
      if (t.faulty > 0) this.#dropFaulty(numbers, target);
      this.#read(numbers, target);
      row += seen;
      batchDone();
    }
    return row - piece.firstRow;
  }

  #numbers = new Float64Array(0);

  #rowNumbers(first: number, rows: number): Float64Array {
    if (this.#numbers.length < rows) this.#numbers = new Float64Array(Math.max(rows, 1024));
    for (let i = 0; i < rows; i++) this.#numbers[i] = first + i;
    return this.#numbers;
  }

  #dropSkipped(skip: Piece["skip"], numbers: Float64Array): void {
    const t = this.#tokens;
    const marks = new Uint8Array(t.rows);
    for (let r = 0; r < t.rows; r++) marks[r] = isSkipped(skip, numbers[r]!) ? 1 : 0;
    this.#compact(marks, numbers);
  }

  /** Rows with bytes that are no UTF-8, found one by one since the piece as a whole is not clean. */
  #markEncoding(): void {
    const t = this.#tokens;
    for (let r = 0; r < t.rows; r++) {
      if (t.faults[r] !== ROW_FAULT.none || this.#layout.isUtf8(t.bytes.subarray(t.from[r]!, t.to[r]!)))
        continue;
      t.faults[r] = ROW_FAULT.encoding;
      t.faulty++;
    }
  }

  #dropFaulty(numbers: Float64Array, target: RowTarget): void {
    const t = this.#tokens;
    for (let r = 0; r < t.rows; r++) {
      const fault = t.faults[r]!;
      if (fault === ROW_FAULT.none) continue;
      const [code, reason] = this.#rowReason(fault, t.fields[r]!);
      target.reject({ row: numbers[r]!, from: t.from[r]!, to: t.to[r]!, code, column: null, reason });
    }
    this.#compact(t.faults.slice(0, t.rows), numbers);
  }

  #rowReason(fault: number, fields: number): readonly [RejectCode, string] {
    if (fault === ROW_FAULT.quote)
      return ["row.quote", "a quoted field is not closed, or text follows its closing quote"];
    if (fault === ROW_FAULT.encoding) return ["row.encoding", "bytes that are no UTF-8"];
    const want = this.#layout.columns.length;
    return ["row.columns", `${fields} ${fields === 1 ? "field" : "fields"}, the file has ${want} columns`];
  }

  /** Takes rows with a non-zero mark out of the tokens. */
  #compact(marks: Uint8Array, numbers: Float64Array): void {
    const t = this.#tokens;
    const columns = this.#layout.columns.length;
    let to = 0;
    for (let r = 0; r < t.rows; r++) {
      if (marks[r] !== 0) continue;
      if (to !== r) {
        numbers[to] = numbers[r]!;
        t.from[to] = t.from[r]!;
        t.to[to] = t.to[r]!;
        t.faults[to] = t.faults[r]!;
        t.fields[to] = t.fields[r]!;
        t.starts.copyWithin(to * columns, r * columns, (r + 1) * columns);
        t.ends.copyWithin(to * columns, r * columns, (r + 1) * columns);
      }
      to++;
    }
    t.rows = to;
    t.faulty = 0;
    for (let r = 0; r < to; r++) if (t.faults[r] !== ROW_FAULT.none) t.faulty++;
  }

  #read(numbers: Float64Array, target: RowTarget): void {
    const t = this.#tokens;
    const marks = target.columns.map((c) => c.mark());
    if (!this.#readColumns(target)) {
      for (const [i, c] of target.columns.entries()) c.truncate(marks[i]!);
      this.#rejectFaults(numbers, target);
      this.#compact(this.#faults.codes, numbers);
      if (!this.#readColumns(target)) throw new Error("rows that were read twice differ");
    }
    runsOf(numbers, t.rows, target);
  }

  /** False: some rows are not what their columns want. */
  #readColumns(target: RowTarget): boolean {
    const t = this.#tokens;
    const stride = this.#layout.columns.length;
    const { bytes, starts, ends, rows, packed } = t;
    const cells: TextCells = { bytes, starts, ends, stride, rows, ...(packed && { packed }) };
    this.#faults.begin(t.rows);
    this.#bound ??= target.schema.fields.map((f) => ({ at: this.#layout.columns.indexOf(sourceOf(f)) }));
    for (const [i, field] of target.schema.fields.entries()) {
      const { at } = this.#bound[i]!;
      const builder = target.columns[i]!;
      if (at < 0) pushNulls(builder, t.rows);
      else cellReader(field.type, builder)!(cells, at, this.#faults);
      if (!field.nullable) this.#requireValues(cells, at);
    }
    return this.#faults.count === 0;
  }

  #requireValues({ starts, stride, rows }: TextCells, column: number): void {
    for (let r = 0; r < rows; r++)
      if (column < 0 || starts[r * stride + column]! < 0) this.#faults.add(r, column, FAULT.null);
  }

  #rejectFaults(numbers: Float64Array, target: RowTarget): void {
    const t = this.#tokens;
    const f = this.#faults;
    const columns = this.#layout.columns.length;
    for (let r = 0; r < t.rows; r++) {
      if (f.codes[r] === 0) continue;
      const at = f.columns[r]!;
      const field = target.schema.fields.find((_, i) => this.#bound![i]!.at === at);
      const column = field?.name ?? null;
      const start = at < 0 ? 0 : t.starts[r * columns + at]!;
      const seen =
        start < 0 ? "" : excerpt(t.bytes, start, Math.min(t.ends[r * columns + at]!, start + SHOWN_CHARS));
      const [code, why] = VALUE_REASONS[f.codes[r]!]!;
      const type = field === undefined ? "" : typeText(field.type);
      const reason = code === "value.null" ? why : `${JSON.stringify(seen)} ${why} ${type}`;
      target.reject({ row: numbers[r]!, from: t.from[r]!, to: t.to[r]!, code, column, reason });
    }
  }
}

function pushNulls(builder: RowTarget["columns"][number], rows: number): void {
  builder.reserve(rows);
  for (let r = 0; r < rows; r++) builder.pushNull();
}

/** Tells the accepted rows as runs of consecutive numbers. */
function runsOf(numbers: Float64Array, rows: number, target: RowTarget): void {
  let first = 0;
  for (let r = 1; r <= rows; r++) {
    if (r < rows && numbers[r] === numbers[r - 1]! + 1) continue;
    target.addRun(numbers[first]!, r - first);
    first = r;
  }
}
