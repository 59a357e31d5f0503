/** Arrays and objects into list, struct and map columns, value by value. */
import type { ColumnBuilder, ListBuilder, StructBuilder } from "../../types/column-builder.ts";
import { cellReader } from "../../types/read-cells.ts";
import type { ColumnField, ColumnType } from "../../types/table-batch.ts";
import { FAULT, Faults } from "../../types/text-cells.ts";
import { JsonCursor, KIND } from "./cursor.ts";
import { fits } from "./fits.ts";

export function isNested(type: ColumnType): boolean {
  return type.id === "list" || type.id === "struct" || type.id === "map";
}

/** Of keys: a mark at their begin is a character of theirs. */
const TEXT = new TextDecoder("utf-8", { ignoreBOM: true });

export class NestedReader {
  readonly #faults = new Faults();
  readonly #start = new Int32Array(1);
  readonly #end = new Int32Array(1);

  /** Appends the value in bytes[start, stop), which is one of JSON; a start of -1 is null. A fault, or 0. */
  read(bytes: Uint8Array, start: number, stop: number, type: ColumnType, into: ColumnBuilder): number {
    into.reserve(1);
    if (start < 0) {
      into.pushNull();
      return 0;
    }
    // A copy with room behind it: strings of the value may have escapes.
    const room = new Uint8Array(2 * (stop - start));
    room.set(bytes.subarray(start, stop));
    const cursor = new JsonCursor();
    cursor.begin(room, stop - start);
    cursor.range(0, stop - start);
    return this.#value(cursor, { type, nullable: true }, into);
  }

  #value(c: JsonCursor, { type, nullable }: Omit<ColumnField, "name">, into: ColumnBuilder): number {
    into.reserve(1);
    if (isNested(type)) {
      if (c.take(110)) {
        if (!nullable) return FAULT.null;
        c.at += 3;
        into.pushNull();
        return 0;
      }
      if (type.id === "list") return this.#list(c, type.item, into as ListBuilder);
      return type.id === "struct"
        ? this.#struct(c, type.fields, into as StructBuilder)
        : this.#map(c, into as ListBuilder);
    }
    const kind = c.value();
    if (kind === KIND.null && !nullable) return FAULT.null;
    if (kind !== KIND.null && !fits(type, kind)) return FAULT.type;
    const raw = type.id === "json";
    this.#start[0] = kind === KIND.null ? -1 : raw ? c.rawStart : c.start;
    this.#end[0] = kind === KIND.null ? -1 : raw ? c.rawStop : c.stop;
    this.#faults.begin(1);
    const cells = { bytes: c.bytes, starts: this.#start, ends: this.#end, stride: 1, rows: 1 };
    cellReader(type, into)!(cells, 0, this.#faults);
    return this.#faults.codes[0]!;
  }

  #list(c: JsonCursor, item: ColumnField, into: ListBuilder): number {
    if (!c.take(91)) return FAULT.type;
    c.blank();
    for (let first = true; !c.take(93); first = false) {
      if (!first) c.take(44);
      c.blank();
      const fault = this.#value(c, item, into.child);
      if (fault !== 0) return fault;
      c.blank();
    }
    into.pushRow();
    return 0;
  }

  /** Keys that come twice or are not known make the value one of another type: nothing of it may vanish. */
  #struct(c: JsonCursor, fields: readonly ColumnField[], into: StructBuilder): number {
    if (!c.take(123)) return FAULT.type;
    const done = new Set<number>();
    c.blank();
    for (let first = true; !c.take(125); first = false) {
      if (!first) c.take(44);
      c.blank();
      c.string();
      const key = TEXT.decode(c.bytes.subarray(c.start, c.stop));
      const i = fields.findIndex((f) => f.name === key);
      if (i < 0 || done.has(i)) return FAULT.type;
      done.add(i);
      c.blank();
      c.take(58);
      c.blank();
      const fault = this.#value(c, fields[i]!, into.children[i]!);
      if (fault !== 0) return fault;
      c.blank();
    }
    for (const [i, child] of into.children.entries()) {
      if (done.has(i)) continue;
      if (!fields[i]!.nullable) return FAULT.null;
      child.reserve(1);
      child.pushNull();
    }
    into.pushRow();
    return 0;
  }

  #map(c: JsonCursor, into: ListBuilder): number {
    if (!c.take(123) || into.type.id !== "map") return FAULT.type;
    const entry = into.child as StructBuilder;
    const seen = new Set<string>();
    c.blank();
    for (let first = true; !c.take(125); first = false) {
      if (!first) c.take(44);
      c.blank();
      const from = c.at;
      c.string();
      const key = TEXT.decode(c.bytes.subarray(c.start, c.stop));
      if (seen.has(key)) return FAULT.type;
      seen.add(key);
      const to = c.at;
      c.at = from;
      entry.reserve(1);
      const bad = this.#value(c, into.type.key, entry.children[0]!);
      if (bad !== 0) return bad;
      c.at = to;
      c.blank();
      c.take(58);
      c.blank();
      const fault = this.#value(c, into.type.value, entry.children[1]!);
      if (fault !== 0) return fault;
      entry.pushRow();
      c.blank();
    }
    into.pushRow();
    return 0;
  }
}
