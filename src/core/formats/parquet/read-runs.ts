/** Columns of a few values in runs (see run-column.ts), read back as runs: their cost is per run, not per row. */
import { ENCODING } from "./page.ts";
import { PHYSICAL } from "./read-footer.ts";
import { levelsEnd, readHybrid } from "./read-levels.ts";
import { PageDamage, PageInflater, type StoredPage, type StoredPages } from "./stored-pages.ts";

/** Of a value: null. */
export const NO_VALUE = -1;
/** Bits of an index that are believed. */
const MOST_WIDTH = 24;

export interface ColumnRuns {
  readonly count: number;
  /** Row after the last one of each run. */
  readonly ends: Int32Array;
  /** Index into the dictionary; of booleans 0 or 1; NO_VALUE. */
  readonly values: Int32Array;
  /** PLAIN values, without the length of byte strings. */
  readonly dictionary: readonly Uint8Array[];
}

export interface RunsShape {
  readonly physical: number;
  readonly required: boolean;
}

export const RUN_ENCODINGS: readonly number[] = [ENCODING.plain, ENCODING.rleDictionary];

class Runs {
  #ends: Int32Array = new Int32Array(16);
  #values: Int32Array = new Int32Array(16);
  #count = 0;
  #rows = 0;

  add(value: number, rows: number): void {
    this.#rows += rows;
    if (this.#count > 0 && this.#values[this.#count - 1] === value) {
      this.#ends[this.#count - 1] = this.#rows;
      return;
    }
    if (this.#count === this.#ends.length) {
      this.#ends = grown(this.#ends);
      this.#values = grown(this.#values);
    }
    this.#ends[this.#count] = this.#rows;
    this.#values[this.#count++] = value;
  }

  done(dictionary: readonly Uint8Array[]): ColumnRuns {
    return { count: this.#count, ends: this.#ends, values: this.#values, dictionary };
  }
}

function grown(array: Int32Array): Int32Array {
  const larger = new Int32Array(2 * array.length);
  larger.set(array);
  return larger;
}

export class RunsReader {
  readonly #inflater: PageInflater;

  constructor(...inflate: ConstructorParameters<typeof PageInflater>) {
    this.#inflater = new PageInflater(...inflate);
  }

  /** Null: values are stored in a way that such columns of raw files never are. */
  read(file: Uint8Array, { codec, dictionary, pages }: StoredPages, shape: RunsShape): ColumnRuns | null {
    const plain = dictionary === null ? [] : this.#dictionary(file, codec, dictionary, shape.physical);
    if (plain === null) return null;
    const runs = new Runs();
    for (const page of pages)
      if (!readPage(this.#inflater.raw(file, codec, page), page, shape, plain.length, runs)) return null;
    return runs.done(plain);
  }

  #dictionary(file: Uint8Array, codec: number, page: StoredPage, physical: number): Uint8Array[] | null {
    if (page.encoding !== ENCODING.plain) return null;
    const raw = this.#inflater.raw(file, codec, page);
    const width = physical === PHYSICAL.int32 ? 4 : physical === PHYSICAL.int64 ? 8 : 0;
    if (width === 0 && physical !== PHYSICAL.bytes) return null;
    const values: Uint8Array[] = [];
    const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
    for (let at = 0; at < raw.length; ) {
      if (width === 0 && at + 4 > raw.length) throw new PageDamage("its dictionary is cut");
      const from = width === 0 ? at + 4 : at;
      const end = from + (width === 0 ? view.getUint32(at, true) : width);
      if (end > raw.length) throw new PageDamage("its dictionary is cut");
      values.push(raw.slice(from, end));
      at = end;
    }
    if (values.length !== page.values)
      throw new PageDamage(`its dictionary has ${values.length} values, not ${page.values}`);
    return values;
  }
}

function readPage(
  raw: Uint8Array,
  { values, encoding }: StoredPage,
  { physical, required }: RunsShape,
  distinct: number,
  runs: Runs,
): boolean {
  /** Pairs (level, rows). */
  const levels: number[] = [];
  let at = 0;
  let there = values;
  if (required) levels.push(1, values);
  else {
    at = levelsEnd(raw, 0);
    readHybrid(raw, 4, at, 1, values, (level, n) => {
      levels.push(level, n);
      if (level === 0) there -= n;
    });
  }
  if (there === 0) runs.add(NO_VALUE, values);
  else if (physical === PHYSICAL.boolean && encoding === ENCODING.plain)
    withNulls(levels, runs, (take) => readBits(raw, at, there, take));
  else if (encoding === ENCODING.rleDictionary)
    withNulls(levels, runs, (take) => readIndices(raw, at, there, distinct, take));
  else return false;
  return true;
}

/** The runs of values that `read` gives, with nulls where the levels have them. */
function withNulls(
  levels: readonly number[],
  runs: Runs,
  read: (take: (value: number, count: number) => void) => void,
): void {
  let at = 0;
  let left = levels[1]!;
  const nulls = () => {
    while (at < levels.length && (left === 0 || levels[at] === 0)) {
      if (left > 0) runs.add(NO_VALUE, left);
      at += 2;
      left = levels[at + 1] ?? 0;
    }
  };
  nulls();
  read((value, count) => {
    for (let n = count; n > 0; ) {
      const rows = Math.min(n, left);
      runs.add(value, rows);
      n -= rows;
      left -= rows;
      nulls();
    }
  });
}

function readBits(raw: Uint8Array, at: number, count: number, take: (v: number, n: number) => void): void {
  if (at + ((count + 7) >> 3) > raw.length) throw new PageDamage("its bits are cut");
  for (let i = 0; i < count; ) {
    const byte = raw[at + (i >> 3)]!;
    if ((i & 7) === 0 && (byte === 0 || byte === 0xff)) {
      const n = Math.min(8, count - i);
      take(byte & 1, n);
      i += n;
    } else {
      take((byte >> (i & 7)) & 1, 1);
      i++;
    }
  }
}

function readIndices(
  raw: Uint8Array,
  at: number,
  count: number,
  distinct: number,
  take: (value: number, count: number) => void,
): void {
  const width = raw[at] ?? MOST_WIDTH + 1;
  if (width > MOST_WIDTH) throw new PageDamage(`indices of ${width} bits`);
  const checked = (value: number, n: number) => {
    if (value >= distinct) throw new PageDamage(`index ${value} into ${distinct} values`);
    take(value, n);
  };
  // Of one value other writers store none.
  if (width === 0) checked(0, count);
  else readHybrid(raw, at + 1, raw.length, width, count, checked);
}

/** Index of the run that holds `row`. */
export function runAt({ ends, count }: ColumnRuns, row: number): number {
  let low = 0;
  let high = count - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ends[middle]! > row) high = middle;
    else low = middle + 1;
  }
  return low;
}
