/**
 * Columns of changing values of a raw file, read a page at a time: `seek` brings the page that holds a row, and rows
 * [first, end) of it are there until the next `seek`. Pages that no row is asked of are not decompressed, but in lists.
 */
import type { BytesColumn } from "../../records/raw-batch.ts";
import { ENCODING } from "./page.ts";
import { readDeltaLengths, readDeltaPairs } from "./read-delta.ts";
import { levelsEnd, readFlatLevels, readHybrid } from "./read-levels.ts";
import { PageDamage, PageInflater, type StoredPage, type StoredPages } from "./stored-pages.ts";

const NO_PAGES: StoredPages = { codec: 0, dictionary: null, pages: [] };
const NO_BYTES = new Uint8Array(0);
const PAIR = 2;
const ID_WORDS = 4;
const ID_BYTES = 16;

export const BYTES_ENCODINGS: readonly number[] = [ENCODING.plain, ENCODING.deltaLengthByteArray];
export const INT64_ENCODINGS: readonly number[] = [ENCODING.plain, ENCODING.deltaBinaryPacked];
export const ID_ENCODINGS: readonly number[] = [ENCODING.plain];

abstract class PagedColumn {
  /** Rows of the page that is there. */
  first = 0;
  end = 0;
  protected file: Uint8Array = NO_BYTES;
  #of: StoredPages = NO_PAGES;
  #page = -1;
  readonly #inflater: PageInflater;

  constructor(...inflate: ConstructorParameters<typeof PageInflater>) {
    this.#inflater = new PageInflater(...inflate);
  }

  open(file: Uint8Array, pages: StoredPages): void {
    this.file = file;
    this.#of = pages;
    this.#inflater.shrink();
    this.#rewind();
  }

  #rewind(): void {
    this.#page = -1;
    this.first = 0;
    this.end = 0;
  }

  seek(row: number): void {
    if (row >= this.first && row < this.end) return;
    if (row < this.first) this.#rewind();
    const { codec, pages } = this.#of;
    while (row >= this.end) {
      const page = pages[++this.#page];
      if (page === undefined) throw new PageDamage(`its pages end at row ${this.end}`);
      this.first = this.end;
      const rows = this.rowsOf(page);
      if (rows === null || row < this.end + rows) {
        const read = this.take(this.#inflater.raw(this.file, codec, page), page);
        this.end += read;
      } else this.end += rows;
    }
  }

  /** Null: known once it is read. */
  protected rowsOf(page: StoredPage): number | null {
    return page.values;
  }

  /** `raw` lives until the next call. Returns its rows. */
  protected abstract take(raw: Uint8Array, page: StoredPage): number;
}

function roomFor(array: Int32Array, words: number): Int32Array {
  return array.length >= words ? array : new Int32Array(Math.max(words, Math.min(2 * array.length, 1 << 20)));
}

/** Optional int64 outside of lists. */
export class Int64Pages extends PagedColumn {
  /** Low half first; of row `first` at 0. */
  pairs: Int32Array = new Int32Array(0);
  readonly #none: number;

  /** `none`: both halves of what stands for null. */
  constructor(none: 0 | -1, ...inflate: ConstructorParameters<typeof PageInflater>) {
    super(...inflate);
    this.#none = none;
  }

  protected take(raw: Uint8Array, { values, encoding }: StoredPage): number {
    const { there, nulls, end } = readFlatLevels(raw, values);
    this.pairs = roomFor(this.pairs, PAIR * values);
    if (nulls < values) {
      if (encoding !== ENCODING.deltaBinaryPacked) this.#plain(raw, end, values - nulls);
      else readDeltaPairs(raw, end, values - nulls, this.pairs);
    }
    if (there !== null) this.#spread(there, values, values - nulls);
    return values;
  }

  #plain(raw: Uint8Array, at: number, count: number): void {
    if (at + 8 * count > raw.length) throw new PageDamage("its numbers are cut");
    new Uint8Array(this.pairs.buffer).set(raw.subarray(at, at + 8 * count));
  }

  /** From the end on, so that none is overwritten before it was moved. */
  #spread(there: Uint8Array, values: number, count: number): void {
    const { pairs } = this;
    for (let i = values - 1, n = count; i >= 0; i--) {
      if (there[i] === 1) {
        n--;
        pairs[PAIR * i] = pairs[PAIR * n]!;
        pairs[PAIR * i + 1] = pairs[PAIR * n + 1]!;
      } else {
        pairs[PAIR * i] = this.#none;
        pairs[PAIR * i + 1] = this.#none;
      }
    }
  }
}

/** Required fixed values of 16 bytes. */
export class IdPages extends PagedColumn {
  /** Four a row, as they lie in memory; of row `first` at 0. */
  words: Int32Array = new Int32Array(0);

  protected take(raw: Uint8Array, { values }: StoredPage): number {
    if (raw.length !== ID_BYTES * values) throw new PageDamage(`${raw.length} bytes of ${values} ids`);
    const whole = raw.byteOffset % 4 === 0 ? raw : raw.slice();
    this.words = new Int32Array(whole.buffer, whole.byteOffset, ID_WORDS * values);
    return values;
  }
}

/** Byte strings with an end each: string i is data[offsets[i], offsets[i + 1]). */
class Strings {
  offsets: Int32Array = new Int32Array(1);
  data: Uint8Array = NO_BYTES;

  /** `count` of them from `at` on. */
  read(raw: Uint8Array, at: number, count: number, encoding: number): void {
    this.offsets = roomFor(this.offsets, count + 1);
    this.data = raw;
    const { offsets } = this;
    offsets[0] = 0;
    if (count === 0) return;
    if (encoding === ENCODING.plain) return this.#plain(raw, at, count);
    const from = readDeltaLengths(raw, at, count, offsets);
    if (from + offsets[count]! > raw.length) throw new PageDamage("its bytes are cut");
    this.data = raw.subarray(from);
  }

  /** Each behind its length. */
  #plain(raw: Uint8Array, at: number, count: number): void {
    const { offsets } = this;
    const data = new Uint8Array(Math.max(0, raw.length - at - 4 * count));
    const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
    for (let i = 0; i < count; i++) {
      const from = at + 4;
      const length = from <= raw.length ? view.getUint32(at, true) : raw.length;
      if (from + length > raw.length) throw new PageDamage("its bytes are cut");
      data.set(raw.subarray(from, from + length), offsets[i]!);
      offsets[i + 1] = offsets[i]! + length;
      at = from + length;
    }
    this.data = data;
  }

  /** `there`: of `values`, `count` of which were read; the others are empty. */
  spread(there: Uint8Array, values: number, count: number): void {
    const { offsets } = this;
    const spread = new Int32Array(values + 1);
    for (let i = 0, n = 0; i < values; i++) {
      n += there[i]!;
      spread[i + 1] = offsets[Math.min(n, count)]!;
    }
    this.offsets = spread;
  }

  slice(from: number, to: number, there: Uint8Array | null): BytesColumn {
    const offsets = this.offsets.subarray(from, to + 1);
    const all = { offsets, data: this.data, validity: NO_BYTES, nullCount: 0 };
    if (there === null) return all;
    const validity = new Uint8Array((to - from + 7) >> 3);
    let nullCount = to - from;
    for (let i = from; i < to; i++) {
      if (there[i] === 0) continue;
      nullCount--;
      validity[(i - from) >> 3]! |= 1 << ((i - from) & 7);
    }
    return nullCount === 0 ? all : { ...all, validity, nullCount };
  }
}

/** Optional byte strings outside of lists. */
export class BytesPages extends PagedColumn {
  readonly #strings = new Strings();
  #there: Uint8Array | null = null;

  protected take(raw: Uint8Array, { values, encoding }: StoredPage): number {
    const { there, nulls, end } = readFlatLevels(raw, values);
    this.#strings.read(raw, end, values - nulls, encoding);
    this.#there = there;
    if (there !== null) this.#strings.spread(there, values, values - nulls);
    return values;
  }

  /** Ends of the values of the page; of row `first` at 1. */
  get offsets(): Int32Array {
    return this.#strings.offsets;
  }

  slice(from: number, to: number): BytesColumn {
    return this.#strings.slice(from - this.first, to - this.first, this.#there);
  }
}

/** A leaf of a list of structs: byte strings, some a row. */
export class ListPages extends PagedColumn {
  readonly #strings = new Strings();
  readonly #maxDefinition: number;
  /** Of row `first` at 0: where its entries begin. */
  starts: Int32Array = new Int32Array(1);
  #there: Uint8Array | null = null;

  /** `maxDefinition`: of an entry that is there; 1 is an empty list, and one below it may be an entry that is null. */
  constructor(maxDefinition: 2 | 3, ...inflate: ConstructorParameters<typeof PageInflater>) {
    super(...inflate);
    this.#maxDefinition = maxDefinition;
  }

  protected override rowsOf(): null {
    return null;
  }

  protected take(raw: Uint8Array, { values, encoding }: StoredPage): number {
    const repetitionEnd = levelsEnd(raw, 0);
    const definitionEnd = levelsEnd(raw, repetitionEnd);
    const most = this.#maxDefinition;
    let entries = 0;
    let present = 0;
    readHybrid(raw, repetitionEnd + 4, definitionEnd, 2, values, (level, n) => {
      if (level > most) throw new PageDamage(`a level of ${level}`);
      if (level > 1) entries += n;
      if (level === most) present += n;
    });
    this.starts = roomFor(this.starts, values + 1);
    this.#there = null;
    this.#strings.read(raw, definitionEnd, present, encoding);
    if (entries === 0) {
      this.starts.fill(0, 0, values + 1);
      return values;
    }
    const definition = new Uint8Array(values);
    let at = 0;
    readHybrid(raw, repetitionEnd + 4, definitionEnd, 2, values, (level, n) => {
      definition.fill(level, at, at + n);
      at += n;
    });
    if (present < entries) {
      const there = definition.filter((level) => level > 1).map((level) => (level === most ? 1 : 0));
      this.#strings.spread(there, entries, present);
      this.#there = there;
    }
    return this.#rows(raw, repetitionEnd, definition);
  }

  /** Fills `starts`. */
  #rows(raw: Uint8Array, end: number, definition: Uint8Array): number {
    const { starts } = this;
    let at = 0;
    let rows = 0;
    let entries = 0;
    readHybrid(raw, 4, end, 1, definition.length, (level, n) => {
      // Of a row that another page begins its entries would be nobody's.
      if (at === 0 && level !== 0) throw new PageDamage("it begins within a row");
      for (let i = 0; i < n; i++, at++) {
        if (level === 0) starts[rows++] = entries;
        if (definition[at]! > 1) entries++;
      }
    });
    starts[rows] = entries;
    return rows;
  }

  /** Entries of rows [from, to). */
  slice(from: number, to: number): BytesColumn {
    const [first, last] = [this.starts[from - this.first]!, this.starts[to - this.first]!];
    return this.#strings.slice(first, last, this.#there);
  }
}
