/**
 * Columns of one schema as those of a table that has grown beyond it (evolution.ts): what a schema lacks is null, numbers
 * are widened, at any depth. Nothing is rounded and nothing can fail: the table's type holds every value.
 */
import { castColumn } from "../types/cast-column.ts";
import { builderOf } from "../types/column-builder.ts";
import type { ColumnField, ColumnType, TableColumn } from "../types/table-batch.ts";

/** The columns of `now`, in its order, out of those of `fields`. */
export function widenColumns(
  now: readonly ColumnField[],
  fields: readonly ColumnField[],
  columns: readonly TableColumn[],
  rows: number,
): TableColumn[] {
  return now.map(({ name, type }) => {
    const at = fields.findIndex((f) => f.name === name);
    return at < 0 ? nullColumn(type, rows) : widenColumn(columns[at]!, type);
  });
}

/** `to`: its own type, or one that `evolve` made of it. */
export function widenColumn(c: TableColumn, to: ColumnType): TableColumn {
  const { type: from } = c;
  if (from === to) return c;
  if (from.id === "null") return nullColumn(to, c.length);
  if (from.id === "struct" && to.id === "struct")
    return { ...c, type: to, children: widenColumns(to.fields, from.fields, c.children, c.length) };
  if (to.id === "list") return { ...c, type: to, children: [widenColumn(c.children[0]!, to.item.type)] };
  if (to.id === "map") {
    const entries: ColumnType = { id: "struct", fields: [to.key, to.value] };
    const [key, value] = c.children[0]!.children;
    const children = [widenColumn(key!, to.key.type), widenColumn(value!, to.value.type)];
    return { ...c, type: to, children: [{ ...c.children[0]!, type: entries, children }] };
  }
  if (from.id === "decimal" && to.id === "decimal" && from.scale !== to.scale)
    return rescaled(c, to, to.scale - from.scale);
  return castColumn(c, to, () => {});
}

function nullColumn(type: ColumnType, rows: number): TableColumn {
  const b = builderOf(type);
  b.reserve(rows);
  for (let i = 0; i < rows; i++) b.pushNull();
  return b.finish();
}

/** 16 bytes two's complement each, times ten for every digit more behind the point. */
function rescaled(c: TableColumn, to: ColumnType, digits: number): TableColumn {
  const factor = 10n ** BigInt(digits);
  const from = new DataView(c.data.buffer, c.data.byteOffset, c.data.byteLength);
  const data = new Uint8Array(c.length * 16);
  const out = new DataView(data.buffer);
  for (let at = 0; at < data.length; at += 16) {
    const value = ((from.getBigInt64(at + 8, true) << 64n) | from.getBigUint64(at, true)) * factor;
    out.setBigUint64(at, BigInt.asUintN(64, value), true);
    out.setBigInt64(at + 8, BigInt.asIntN(64, value >> 64n), true);
  }
  return { ...c, type: to, data };
}
