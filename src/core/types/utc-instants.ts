/**
 * Timestamps of UTC in nanoseconds and milliseconds on their way through DuckDB, whose type of that name has microseconds: it
 * cuts nanoseconds without a word, and has no room for the milliseconds that Kafka and Avro have. It is given them as
 * wall-clock times, which it keeps in every unit, and the footer says again what they are.
 */
import type { ColumnField, ColumnType, TableBatch, TableColumn } from "./table-batch.ts";

/** Numbers of the leaves, depth first, that hold such timestamps. */
export function instantLeaves(fields: readonly ColumnField[]): ReadonlySet<number> {
  const found = new Set<number>();
  let leaf = 0;
  const visit = (type: ColumnType): void => {
    const inner = innerOf(type);
    for (const t of inner) visit(t);
    if (inner.length > 0) return;
    if (isInstant(type)) found.add(leaf);
    leaf++;
  };
  for (const f of fields) visit(f.type);
  return found;
}

/** The same batch with wall-clock times in their place; itself if there are none. */
export function withoutInstants(batch: TableBatch): TableBatch {
  if (instantLeaves(batch.fields).size === 0) return batch;
  const fields = batch.fields.map((f) => ({ ...f, type: plainType(f.type) }));
  return { ...batch, fields, columns: batch.columns.map((c, i) => retyped(c, fields[i]!.type)) };
}

function isInstant(type: ColumnType): boolean {
  return type.id === "timestamp" && (type.unit === "ns" || type.unit === "ms") && type.zone !== null;
}

function innerOf(type: ColumnType): readonly ColumnType[] {
  switch (type.id) {
    case "list":
      return [type.item.type];
    case "map":
      return [type.key.type, type.value.type];
    case "struct":
      return type.fields.map((f) => f.type);
    default:
      return [];
  }
}

function plainType(type: ColumnType): ColumnType {
  const plain = (f: ColumnField): ColumnField => ({ ...f, type: plainType(f.type) });
  switch (type.id) {
    case "timestamp":
      return isInstant(type) ? { ...type, zone: null } : type;
    case "list":
      return { ...type, item: plain(type.item) };
    case "map":
      return { ...type, key: plain(type.key), value: plain(type.value) };
    case "struct":
      return { ...type, fields: type.fields.map(plain) };
    default:
      return type;
  }
}

/** Buffers as they are; a map's child is a struct of key and value. */
function retyped(c: TableColumn, type: ColumnType): TableColumn {
  const entry: ColumnType | null =
    type.id === "map" ? { id: "struct", fields: [type.key, type.value] } : null;
  const inner = entry === null ? innerOf(type) : [entry];
  return { ...c, type, children: c.children.map((k, i) => retyped(k, inner[i]!)) };
}
