/** A target of rows for codec tests: columns as plain values, rejects as they come. */
import type { PieceDecoder, Reject } from "../../../src/core/codecs/rows.ts";
import { builderOf } from "../../../src/core/types/column-builder.ts";
import type { TableColumn } from "../../../src/core/types/table-batch.ts";
import type { TableField, TableSchema } from "../../../src/core/types/table-schema.ts";
import { parseType } from "../../../src/core/types/type-text.ts";

/** "id int64, name string", or with ; where types hold commas. A `!` behind the type: required. */
export function schema(text: string): TableSchema {
  const fields = text.split(text.includes(";") ? ";" : /,\s*(?![^(]*\))/).map((part): TableField => {
    const [, name = "", typed = ""] = /^(\S+) (.*)$/.exec(part.trim()) ?? [];
    const type = parseType(typed.replace("!", ""));
    if (typeof type === "string") throw new Error(type);
    return { name, type, nullable: !typed.endsWith("!") };
  });
  return { fields };
}

export interface Decoded {
  readonly rows: readonly (readonly unknown[])[];
  readonly numbers: readonly number[];
  readonly rejects: readonly Reject[];
  readonly records: number;
}

export function decodeAll(
  decoder: PieceDecoder,
  s: TableSchema,
  text: string | Uint8Array,
  skip: readonly { from: number; next: number }[] = [],
): Decoded {
  const input = typeof text === "string" ? new TextEncoder().encode(text) : text;
  const columns = s.fields.map((f) => builderOf(f.type));
  const numbers: number[] = [];
  const rejects: Reject[] = [];
  const records = decoder.decode(
    { bytes: input.slice(), from: 0, end: input.length, firstRow: 0, skip },
    {
      schema: s,
      columns,
      addRun: (first, n) => {
        for (let i = 0; i < n; i++) numbers.push(first + i);
      },
      reject: (r) => void rejects.push(r),
    },
    () => {},
  );
  const done = columns.map((c) => c.finish());
  for (const c of done) if (c.length !== numbers.length) throw new Error("columns and row numbers differ");
  return { rows: numbers.map((_, r) => done.map((c) => cellOf(c, r))), numbers, rejects, records };
}

/** A cell as JavaScript: bigint for 64 bits, decimals as scaled bigint, bytes as hex, dates and times as their integers. */
export function cellOf(c: TableColumn, row: number): unknown {
  if (c.validity !== null && ((c.validity[row >> 3]! >> (row & 7)) & 1) === 0) return null;
  const view = new DataView(c.data.buffer, c.data.byteOffset, c.data.byteLength);
  const { type } = c;
  switch (type.id) {
    case "bool":
      return ((c.data[row >> 3]! >> (row & 7)) & 1) === 1;
    case "int":
      if (type.bits === 64)
        return type.signed ? view.getBigInt64(8 * row, true) : view.getBigUint64(8 * row, true);
      if (type.bits === 32) return type.signed ? view.getInt32(4 * row, true) : view.getUint32(4 * row, true);
      if (type.bits === 16) return type.signed ? view.getInt16(2 * row, true) : view.getUint16(2 * row, true);
      return type.signed ? view.getInt8(row) : view.getUint8(row);
    case "float":
      return type.bits === 64 ? view.getFloat64(8 * row, true) : view.getFloat32(4 * row, true);
    case "date32":
      return view.getInt32(4 * row, true);
    case "timestamp":
    case "time64":
      return view.getBigInt64(8 * row, true);
    case "decimal":
      return (view.getBigInt64(16 * row + 8, true) << 64n) | view.getBigUint64(16 * row, true);
    case "utf8":
    case "json":
      return new TextDecoder().decode(c.data.subarray(c.offsets![row]!, c.offsets![row + 1]!));
    case "binary":
      return c.data.subarray(c.offsets![row]!, c.offsets![row + 1]!).toHex();
    case "fixed":
      return c.data.subarray(type.bytes * row, type.bytes * (row + 1)).toHex();
    case "list":
    case "map":
      return Array.from({ length: c.offsets![row + 1]! - c.offsets![row]! }, (_, i) =>
        cellOf(c.children[0]!, c.offsets![row]! + i),
      );
    case "struct":
      return Object.fromEntries(type.fields.map((f, i) => [f.name, cellOf(c.children[i]!, row)]));
    default:
      throw new Error(`no value of ${type.id}`);
  }
}
