/**
 * The natural key of a row as 128 bits, from its columns: each part's bytes as they lie in memory, those of variable length
 * behind their length, so that no two keys of the same columns have the same bytes. No object per row.
 */
import { Failure } from "../failure/failure.ts";
import { widthOf } from "../types/column-builder.ts";
import type { ColumnField, ColumnType, TableColumn } from "../types/table-batch.ts";
import { typeText } from "../types/type-text.ts";
import { BLOCK_BYTES, KeyMac } from "./key-mac.ts";

const FIRST_BYTES = 256;
const LENGTH_BYTES = 4;
/** Below it a loop is faster than a view of the bytes. */
const SHORT = 64;

/** Null: values of the type are equal exactly where their bytes are. */
export function unfitForKey(type: ColumnType): string | null {
  switch (type.id) {
    case "bool":
    case "utf8":
    case "binary":
    case "date32":
    case "int":
    case "decimal":
    case "fixed":
    case "time64":
    case "timestamp":
      return null;
    default:
      return `${typeText(type)} names no record`;
  }
}

/** Where the parts of the key stand among the columns. Throws dedup.no_key. `at`: what says so, for messages. */
export function keyColumns(
  fields: readonly ColumnField[],
  names: readonly string[],
  at: string,
): readonly number[] {
  if (names.length === 0) throw new Failure("dedup.no_key", "its contract declares no primaryKey", { at });
  return names.map((name) => {
    const found = fields.findIndex((f) => f.name === name);
    const field = fields[found];
    const why = field === undefined ? "no column of a record is called so" : unfitForKey(field.type);
    if (why !== null)
      throw new Failure("dedup.no_key", `the natural key's ${JSON.stringify(name)}: ${why}`, { at });
    return found;
  });
}

export class NaturalKey {
  readonly #mac: KeyMac;
  #words = new Int32Array(FIRST_BYTES / 4);
  #bytes = new Uint8Array(this.#words.buffer);
  #at = 0;

  /** `secret`: four words, of the pipeline. */
  constructor(secret: Int32Array) {
    this.#mac = new KeyMac(secret);
  }

  /** Four words, valid until the next row is looked at. */
  get hash(): Int32Array {
    return this.#mac.tag;
  }

  /** False: a part of it is null, and the row has no key. */
  of(columns: readonly TableColumn[], places: readonly number[], row: number): boolean {
    this.#at = 0;
    for (let i = 0; i < places.length; i++) {
      const c = columns[places[i]!]!;
      if (c.validity !== null && ((c.validity[row >> 3]! >> (row & 7)) & 1) === 0) return false;
      if (c.offsets !== null) this.#variable(c.data, c.offsets[row]!, c.offsets[row + 1]!);
      else if (c.type.id === "bool") this.#bit((c.data[row >> 3]! >> (row & 7)) & 1);
      else this.#fixed(c.data, row, widthOf(c.type));
    }
    this.#mac.of(this.#words, this.#at);
    return true;
  }

  #bit(bit: number): void {
    this.#reserve(1);
    this.#bytes[this.#at++] = bit;
  }

  #fixed(data: Uint8Array, row: number, width: number): void {
    this.#reserve(width);
    const from = row * width;
    for (let i = 0; i < width; i++) this.#bytes[this.#at + i] = data[from + i]!;
    this.#at += width;
  }

  #variable(data: Uint8Array, from: number, to: number): void {
    const length = to - from;
    this.#reserve(LENGTH_BYTES + length);
    const bytes = this.#bytes;
    let at = this.#at;
    bytes[at++] = length;
    bytes[at++] = length >> 8;
    bytes[at++] = length >> 16;
    bytes[at++] = length >> 24;
    if (length > SHORT) bytes.set(data.subarray(from, to), at);
    else for (let i = 0; i < length; i++) bytes[at + i] = data[from + i]!;
    this.#at = at + length;
  }

  /** Room for so many bytes and the end of their block. */
  #reserve(more: number): void {
    const need = this.#at + more + BLOCK_BYTES;
    if (need <= this.#bytes.length) return;
    const grown = new Uint8Array(
      Math.ceil(Math.max(need, 2 * this.#bytes.length) / BLOCK_BYTES) * BLOCK_BYTES,
    );
    grown.set(this.#bytes);
    this.#bytes = grown;
    this.#words = new Int32Array(grown.buffer);
  }
}
