/**
 * Definition and repetition levels of nested columns: walked from the outermost part inwards, so that the leaves of one
 * list share the work. An entry is what a level stands for: a value, a null, an empty list.
 */
import type { TableColumn } from "../../types/table-batch.ts";

/** In `definition`: the entry is there down to the part that was reached. */
export const THERE = 255;

export interface Entries {
  readonly count: number;
  /** Definition level of entries that are there, so far. */
  readonly level: number;
  /** THERE, or the level at which the entry ended. Null: all are there. */
  readonly definition: Uint8Array | null;
  /** Null: no list yet, all are 0. */
  readonly repetition: Uint8Array | null;
  /** For each entry that is there its row in the column that was reached; null: the first is row 0, and so on. */
  readonly rows: Int32Array | null;
  /** Entries that are there. */
  readonly there: number;
}

export function rootEntries(rows: number): Entries {
  return { count: rows, level: 0, definition: null, repetition: null, rows: null, there: rows };
}

/** The entries at which an optional part is not null. */
export function presentEntries(e: Entries, { nullCount, validity }: TableColumn): Entries {
  const level = e.level + 1;
  if (nullCount === 0 || validity === null) return { ...e, level };
  const definition = e.definition?.slice() ?? new Uint8Array(e.count).fill(THERE);
  const rows = new Int32Array(e.there);
  let there = 0;
  for (let i = 0, n = 0; i < e.count; i++) {
    if (definition[i] !== THERE) continue;
    const row = e.rows === null ? n : e.rows[n]!;
    n++;
    if (((validity[row >> 3]! >> (row & 7)) & 1) === 1) rows[there++] = row;
    else definition[i] = e.level;
  }
  return { ...e, level, definition, rows: rows.subarray(0, there), there };
}

/** The items of the lists: `depth` is the repetition level of a list's second item. */
export function itemEntries(e: Entries, column: TableColumn, depth: number): Entries {
  const offsets = column.offsets!;
  const { items, empty } = lengths(e, offsets);
  const count = e.count - e.there + items + empty;
  const definition = e.there === e.count && empty === 0 ? null : new Uint8Array(count).fill(THERE);
  const repetition = new Uint8Array(count).fill(depth);
  // Lists that follow each other in the column need no row numbers.
  const rows = e.rows === null && offsets[0] === 0 ? null : new Int32Array(items);
  let out = 0;
  for (let i = 0, n = 0, item = 0; i < e.count; i++) {
    repetition[out] = e.repetition === null ? 0 : e.repetition[i]!;
    if (e.definition !== null && e.definition[i] !== THERE) {
      definition![out++] = e.definition[i]!;
      continue;
    }
    const row = e.rows === null ? n : e.rows[n]!;
    n++;
    const first = offsets[row]!;
    const last = offsets[row + 1]!;
    if (first === last) {
      definition![out++] = e.level;
      continue;
    }
    out += last - first;
    if (rows !== null) for (let r = first; r < last; r++) rows[item++] = r;
  }
  return { count, level: e.level + 1, definition, repetition, rows, there: items };
}

function lengths(e: Entries, offsets: Int32Array): { readonly items: number; readonly empty: number } {
  let items = 0;
  let empty = 0;
  for (let n = 0; n < e.there; n++) {
    const row = e.rows === null ? n : e.rows[n]!;
    const length = offsets[row + 1]! - offsets[row]!;
    items += length;
    if (length === 0) empty++;
  }
  return { items, empty };
}
