/**
 * BYTE_ARRAY columns: value and key (one value a row) and the two leaves of headers (a list a row).
 *
 * Values are DELTA_LENGTH_BYTE_ARRAY: all lengths, then all bytes. Since a `BytesColumn` holds its bytes back to
 * back, a whole range of rows is one copy, where PLAIN would need one a row (docs/decisions has the figures).
 * The bytes are laid down behind a gap; levels and lengths, known when the page is full, go in front of them.
 */
import type { BytesColumn } from "../../records/raw-batch.ts";
import { deltaBound, putDeltaInt32 } from "./delta.ts";
import { LevelWriter, putLevels } from "./levels.ts";
import { type ChunkInfo, ChunkPages, ENCODING, PAGE_BYTES, PAGE_VALUES, type PageContext } from "./page.ts";
import type { OutQueue } from "./slabs.ts";

const FIRST_BYTES = 256;
const FIRST_VALUES = 16;
/** The gap in front of the bytes, as a part of the page. Lengths of values of 16 bytes and more fit. */
const GAP_PART = 8;

/** Levels of a leaf. Flat: 1 = there. List: 1 = empty list, then an entry, and for a nullable value one more. */
export interface LeafShape {
  readonly list: boolean;
  readonly maxDefinition: number;
}

export class BytesLeaf {
  readonly #context: PageContext;
  readonly #shape: LeafShape;
  readonly #pages: ChunkPages;
  readonly #definition: LevelWriter;
  readonly #repetition = new LevelWriter(1);
  #lengths = new Int32Array(FIRST_VALUES);
  #count = 0;
  #bytes = new Uint8Array(FIRST_BYTES);
  #gap = FIRST_BYTES / GAP_PART;
  #used = 0;
  #nulls = 0;

  constructor(context: PageContext, shape: LeafShape) {
    this.#context = context;
    this.#shape = shape;
    this.#pages = new ChunkPages(context, context.codec);
    this.#definition = new LevelWriter(shape.maxDefinition);
  }

  get held(): number {
    const levels = this.#definition.capacity + this.#repetition.capacity;
    return this.#bytes.length + this.#lengths.byteLength + levels + this.#pages.held;
  }

  get size(): number {
    return this.#used + 2 * this.#count + this.#pages.length;
  }

  /**
   * Rows [from, to). `starts` null: value i belongs to row i. Otherwise row r has the values
   * [starts[r], starts[r + 1]) and a page never splits a row.
   */
  append(column: BytesColumn, starts: Int32Array | null, from: number, to: number): void {
    for (let at = from; at < to; ) {
      const end = this.#fitting(column, starts, at, to);
      if (end === at) {
        this.#cut();
        continue;
      }
      this.#take(column, starts, at, end);
      at = end;
      if (this.#used >= PAGE_BYTES || this.#definition.count >= PAGE_VALUES) this.#cut();
    }
  }

  /** Rows whose list is empty. */
  appendEmptyLists(rows: number): void {
    this.#definition.add(1, rows);
    this.#repetition.add(0, rows);
  }

  finish(out: OutQueue): ChunkInfo {
    this.#cut();
    // Writers disagree on whether an empty list counts as a null of its leaf, so lists say nothing.
    const statistics = this.#shape.list ? null : { nulls: this.#nulls, least: null, greatest: null };
    this.#nulls = 0;
    return this.#pages.finish(out, statistics);
  }

  drop(): void {
    this.#pages.drop();
  }

  /** The row after the last one from `at` on that fits the open page; at least one if the page is empty. */
  #fitting(column: BytesColumn, starts: Int32Array | null, at: number, to: number): number {
    const first = starts === null ? at : starts[at]!;
    const bytesEnd = column.offsets[first]! + PAGE_BYTES - this.#used;
    // Empty lists cost nothing, so only levels that stand for values count here.
    const valuesEnd =
      first + Math.max(0, PAGE_VALUES - (this.#shape.list ? this.#count : this.#definition.count));
    let low = at;
    let high = to;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      const value = starts === null ? middle : starts[middle]!;
      if (value <= valuesEnd && column.offsets[value]! <= bytesEnd) low = middle;
      else high = middle - 1;
    }
    return low === at && this.#definition.count === 0 ? at + 1 : low;
  }

  #take(column: BytesColumn, starts: Int32Array | null, from: number, to: number): void {
    const first = starts === null ? from : starts[from]!;
    const last = starts === null ? to : starts[to]!;
    const start = column.offsets[first]!;
    const end = column.offsets[last]!;
    this.#reserve(end - start, last - first);
    if (end > start) this.#bytes.set(column.data.subarray(start, end), this.#gap + this.#used);
    this.#used += end - start;
    if (starts !== null) this.#listLevels(column, starts, from, to);
    else this.#flatLevels(column, from, to);
    this.#takeLengths(column, first, last);
  }

  #takeLengths(column: BytesColumn, first: number, last: number): void {
    const { offsets, validity } = column;
    const lengths = this.#lengths;
    let n = this.#count;
    if (column.nullCount === 0) {
      for (let i = first; i < last; i++) lengths[n++] = offsets[i + 1]! - offsets[i]!;
    } else {
      for (let i = first; i < last; i++) {
        if (valid(validity, i)) lengths[n++] = offsets[i + 1]! - offsets[i]!;
      }
    }
    this.#count = n;
  }

  #flatLevels(column: BytesColumn, from: number, to: number): void {
    if (column.nullCount === 0) {
      this.#definition.add(1, to - from);
      return;
    }
    for (let i = from; i < to; i++) {
      if (valid(column.validity, i)) this.#definition.add(1, 1);
      else {
        this.#definition.add(0, 1);
        this.#nulls++;
      }
    }
  }

  #listLevels(column: BytesColumn, starts: Int32Array, from: number, to: number): void {
    for (let row = from; row < to; row++) {
      const first = starts[row]!;
      const last = starts[row + 1]!;
      if (first === last) {
        this.appendEmptyLists(1);
        continue;
      }
      this.#repetition.add(0, 1);
      if (last - first > 1) this.#repetition.add(1, last - first - 1);
      this.#entryLevels(column, first, last);
    }
  }

  #entryLevels(column: BytesColumn, first: number, last: number): void {
    const there = this.#shape.maxDefinition;
    if (column.nullCount === 0) {
      this.#definition.add(there, last - first);
      return;
    }
    for (let i = first; i < last; i++) {
      if (valid(column.validity, i)) this.#definition.add(there, 1);
      else {
        this.#definition.add(there - 1, 1);
        this.#nulls++;
      }
    }
  }

  #reserve(bytes: number, values: number): void {
    if (this.#count + values > this.#lengths.length) {
      const grown = new Int32Array(Math.max(this.#count + values, 2 * this.#lengths.length));
      grown.set(this.#lengths.subarray(0, this.#count));
      this.#lengths = grown;
    }
    if (this.#gap + this.#used + bytes > this.#bytes.length) this.#grow(this.#used + bytes);
  }

  /** Doubles up to one page; beyond that exactly what one large row needs. */
  #grow(bytes: number): void {
    const size = Math.max(bytes, Math.min(PAGE_BYTES, 2 * this.#bytes.length));
    const gap = Math.ceil(Math.min(PAGE_BYTES, size) / GAP_PART);
    const grown = new Uint8Array(gap + size);
    grown.set(this.#bytes.subarray(this.#gap, this.#gap + this.#used), gap);
    this.#gap = gap;
    this.#bytes = grown;
  }

  #cut(): void {
    const values = this.#definition.count;
    if (values === 0) return;
    const raw = this.#layout();
    this.#pages.data(raw, values, this.#count > 0 ? ENCODING.deltaLengthByteArray : ENCODING.plain);
    this.#definition.reset();
    this.#repetition.reset();
    this.#count = 0;
    this.#used = 0;
    // A page that one huge row made large is not kept for the small ones after it.
    if (this.#bytes.length > 2 * PAGE_BYTES) {
      this.#bytes = new Uint8Array(FIRST_BYTES);
      this.#gap = FIRST_BYTES / GAP_PART;
    }
    if (this.#lengths.length > 2 * PAGE_VALUES) this.#lengths = new Int32Array(FIRST_VALUES);
  }

  /** The page: levels and lengths moved right in front of the bytes, or all copied together if the gap is too small. */
  #layout(): Uint8Array {
    const repetition = this.#shape.list ? this.#repetition.finish() : null;
    const definition = this.#definition.finish();
    const levelBytes = definition.length + 4 + (repetition === null ? 0 : repetition.length + 4);
    const prefix = this.#context.assemble(levelBytes + deltaBound(this.#count, 4) + this.#used);
    let n = repetition === null ? 0 : putLevels(prefix, 0, repetition);
    n = putLevels(prefix, n, definition);
    // A page of nulls or empty lists alone has no values to encode (see Int64Column).
    if (this.#count > 0) n = putDeltaInt32(this.#lengths, this.#count, prefix, n);
    if (n <= this.#gap) {
      this.#bytes.set(prefix.subarray(0, n), this.#gap - n);
      return this.#bytes.subarray(this.#gap - n, this.#gap + this.#used);
    }
    prefix.set(this.#bytes.subarray(this.#gap, this.#gap + this.#used), n);
    return prefix.subarray(0, n + this.#used);
  }
}

function valid(bitmap: Uint8Array, i: number): boolean {
  return ((bitmap[i >> 3]! >> (i & 7)) & 1) === 1;
}
