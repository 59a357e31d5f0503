/**
 * Lends a TableBatch to DuckDB over the Arrow C Data Interface: no value is copied. DuckDB never calls `release`, so
 * whatever a pointer leads to is held here until `end`; the arrays must not change or be transferred before.
 *
 *   struct ArrowSchema { format, name, metadata, flags, n_children, children, dictionary, release, private }  9 words
 *   struct ArrowArray { length, null_count, offset, n_buffers, n_children, buffers, children, dictionary,
 *                       release, private }                                                                    10 words
 */
import { ptr } from "bun:ffi";
import type { ColumnField, ColumnType, TableBatch, TableColumn } from "../../core/types/table-batch.ts";
import { arrowFormat } from "./arrow-types.ts";

const NULLABLE = 2n;

/** What must stay alive as long as DuckDB may look at it. */
class Pins {
  readonly #held: unknown[] = [];

  address(view: ArrayBufferView): bigint {
    this.#held.push(view);
    // An empty array has no address of its own; nobody reads through this one.
    return view.byteLength === 0 ? this.address(ONE_WORD) : BigInt(ptr(view as Uint8Array));
  }

  text(s: string): bigint {
    return this.address(Buffer.from(`${s}\0`));
  }

  list(addresses: readonly bigint[]): bigint {
    return addresses.length === 0 ? 0n : this.address(BigInt64Array.from(addresses));
  }
}

const ONE_WORD = new BigInt64Array(1);

function nested(type: ColumnType): readonly ColumnField[] {
  switch (type.id) {
    case "list":
      return [type.item];
    case "struct":
      return type.fields;
    case "map":
      return [
        {
          name: "entries",
          nullable: false,
          type: { id: "struct", fields: [{ ...type.key, nullable: false }, type.value] },
        },
      ];
    default:
      return [];
  }
}

/** Pairs of the metadata member: int32 count, then int32 length and bytes of each key and value. */
function metadata(pairs: readonly (readonly [string, string])[]): Uint8Array {
  const parts = pairs.flat().map((t) => Buffer.from(t));
  const out = Buffer.alloc(4 + parts.reduce((n, p) => n + 4 + p.length, 0));
  out.writeInt32LE(pairs.length, 0);
  let at = 4;
  for (const p of parts) {
    out.writeInt32LE(p.length, at);
    p.copy(out, at + 4);
    at += 4 + p.length;
  }
  return out;
}

function schemaOf(field: ColumnField, pins: Pins, release: bigint): bigint {
  const { type } = field;
  const children = nested(type).map((f) => schemaOf(f, pins, release));
  const uuid = type.id === "fixed" && type.as === "uuid";
  const words = new BigInt64Array(9);
  words[0] = pins.text(arrowFormat(type));
  words[1] = pins.text(field.name);
  words[2] = uuid
    ? pins.address(
        metadata([
          ["ARROW:extension:name", "arrow.uuid"],
          ["ARROW:extension:metadata", ""],
        ]),
      )
    : 0n;
  words[3] = field.nullable ? NULLABLE : 0n;
  words[4] = BigInt(children.length);
  words[5] = pins.list(children);
  words[7] = release;
  return pins.address(words);
}

function buffersOf(c: TableColumn, pins: Pins): bigint[] {
  const validity = c.validity === null ? 0n : pins.address(c.validity);
  switch (c.type.id) {
    case "null":
      return [];
    case "struct":
      return [validity];
    case "list":
    case "map":
      return [validity, pins.address(c.offsets!)];
    case "utf8":
    case "binary":
    case "json":
      return [validity, pins.address(c.offsets!), pins.address(c.data)];
    default:
      return [validity, pins.address(c.data)];
  }
}

function arrayOf(c: TableColumn, pins: Pins, release: bigint): bigint {
  return arrayWords(
    c.length,
    c.nullCount,
    buffersOf(c, pins),
    c.children.map((k) => arrayOf(k, pins, release)),
    pins,
    release,
  );
}

function arrayWords(
  length: number,
  nulls: number,
  buffers: readonly bigint[],
  children: readonly bigint[],
  pins: Pins,
  release: bigint,
): bigint {
  const words = new BigInt64Array(10);
  words[0] = BigInt(length);
  words[1] = BigInt(nulls);
  words[3] = BigInt(buffers.length);
  words[4] = BigInt(children.length);
  words[5] = pins.list(buffers);
  words[6] = pins.list(children);
  words[8] = release;
  return pins.address(words);
}

/** Addresses for `duckdb_arrow_array_scan`; valid, with all that they lead to, as long as this object is held. */
export class LentBatch {
  readonly schema: number;
  readonly array: number;
  readonly #pins = new Pins();

  constructor(batch: TableBatch, release: bigint) {
    const root: ColumnField = { name: "", nullable: false, type: { id: "struct", fields: batch.fields } };
    this.schema = Number(schemaOf(root, this.#pins, release));
    const children = batch.columns.map((c) => arrayOf(c, this.#pins, release));
    this.array = Number(arrayWords(batch.rows, 0, [0n], children, this.#pins, release));
  }

  /** Keeps the object, and so the pins, reachable up to where it is called. */
  held(): boolean {
    return this.#pins !== null;
  }
}
