/**
 * Keys beside values: both are decoded by themselves, and a row has the columns of both. A record whose key is refused is
 * refused, since a row without its key could not be told from one of a record that has none.
 */
import { isNull } from "../codecs/framing/headers.ts";
import type { RawBatch } from "../records/raw-batch.ts";
import { appendRows } from "../types/append-rows.ts";
import { builderOf } from "../types/column-builder.ts";
import type { ColumnField, TableColumn } from "../types/table-batch.ts";
import { takeRows } from "../types/take-rows.ts";

import type { RefusedRecord } from "./derived.ts";
import { type ColumnsOfSchema as Group, ownColumn } from "./union-column.ts";

export type Part = "key" | "value";

/** Of the keys or the values of a batch. */
export interface DecodedPart<G extends Group> {
  groups: G[];
  refused: RefusedRecord[];
}

/** The rows of which both parts are good; the others in order, once each, the value's fault before the key's. */
export function withKeys<G extends Group>(
  batch: RawBatch,
  keys: DecodedPart<G>,
  values: DecodedPart<G>,
): DecodedPart<G> {
  const told = new Set(values.refused.map((r) => r.row));
  const bad = new Set<number>();
  const refused = [...values.refused];
  for (const { row, path, message, ...why } of keys.refused) {
    // A tombstone is neither row nor reject.
    if (told.has(row) || isNull(batch.value, row)) continue;
    bad.add(row);
    refused.push({ ...why, row, path: path === "" ? "key" : `key.${path}`, message: `key: ${message}` });
  }
  return {
    groups: bad.size === 0 ? values.groups : values.groups.map((g) => without(g, bad)),
    refused: refused.sort((a, b) => a.row - b.row),
  };
}

function without<G extends Group>(group: G, bad: ReadonlySet<number>): G {
  const kept = [...group.rows.keys()].filter((i) => !bad.has(group.rows[i]!));
  if (kept.length === group.rows.length) return group;
  const from = Int32Array.from(kept);
  return {
    ...group,
    rows: from.map((i) => group.rows[i]!),
    columns: group.columns.map((c) => takeRows(c, from)),
  };
}

/** Where the keys of a batch's rows are. */
export class KeyRows {
  readonly #groups: readonly Group[];
  /** By row of the batch; -1: the record has no key. */
  readonly #group: Int32Array;
  readonly #at: Int32Array;

  constructor(groups: readonly Group[], rows: number) {
    this.#groups = groups;
    this.#group = new Int32Array(rows).fill(-1);
    this.#at = new Int32Array(rows);
    for (const [g, group] of groups.entries())
      for (let i = 0; i < group.rows.length; i++) {
        this.#group[group.rows[i]!] = g;
        this.#at[group.rows[i]!] = i;
      }
  }

  /** The table's column of keys for these rows of the batch, in this order: null where there is none. */
  column(field: ColumnField, rows: Int32Array): TableColumn {
    const found = this.#groups.map((g) => ownColumn(field, g));
    const [only] = found;
    if (found.length === 1 && only != null && same(this.#groups[0]!.rows, rows)) return only;
    const b = builderOf(field.type);
    b.reserve(rows.length);
    for (let i = 0; i < rows.length; ) {
      const group = this.#group[rows[i]!]!;
      const from = this.#at[rows[i]!]!;
      const column = group < 0 ? null : found[group];
      let n = 1;
      while (
        i + n < rows.length &&
        this.#group[rows[i + n]!] === group &&
        this.#follows(group, rows[i + n]!, from + n)
      )
        n++;
      if (column == null) for (let k = 0; k < n; k++) b.pushNull();
      else appendRows(b, column, from, from + n);
      i += n;
    }
    return b.finish();
  }

  #follows(group: number, row: number, at: number): boolean {
    return group < 0 || this.#at[row] === at;
  }
}

function same(a: Int32Array, b: Int32Array): boolean {
  return a.length === b.length && a.every((row, i) => row === b[i]);
}
