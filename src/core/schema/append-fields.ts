/** Fields that were not there before, at the end of those that were: how a schema without an author grows. */
import type { ColumnType } from "../types/table-batch.ts";
import { sourceOf, type TableField } from "../types/table-schema.ts";

/** Columns and what is inside of them, over a whole table: each is memory of every lane. */
const MAX_NODES = 5_000;
/** Of one column; what is wider or deeper stays JSON. */
const MAX_COLUMN_NODES = 500;

/**
 * `now` itself where there is nothing to add. What is there stays as it is, type and place. A name that engines would take
 * for another gets a number behind it, and is found by its own.
 */
export function appendFields(
  now: readonly TableField[],
  more: readonly TableField[],
  maxColumns: number,
): readonly TableField[] {
  const sources = new Set(now.map(sourceOf));
  const names = new Set(now.map((f) => f.name.toLowerCase()));
  let nodes = now.reduce((n, f) => n + nodesOf(f.type), 0);
  const added: TableField[] = [];
  for (const field of more) {
    const source = sourceOf(field);
    if (sources.has(source) || now.length + added.length >= maxColumns) continue;
    sources.add(source);
    const name = freeName(source, names);
    names.add(name.toLowerCase());
    const own = nodesOf(field.type);
    const fits = own <= MAX_COLUMN_NODES && nodes + own <= MAX_NODES;
    nodes += fits ? own : 1;
    const type: ColumnType = fits ? field.type : { id: "json" };
    added.push({ name, type, nullable: true, ...(name === source ? {} : { source }) });
  }
  return added.length === 0 ? now : [...now, ...added];
}

function freeName(wanted: string, taken: ReadonlySet<string>): string {
  let name = wanted;
  for (let n = 2; taken.has(name.toLowerCase()); n++) name = `${wanted}_${n}`;
  return name;
}

function nodesOf(type: ColumnType): number {
  if (type.id === "struct") return type.fields.reduce((n, f) => n + nodesOf(f.type), 1);
  if (type.id === "list") return 1 + nodesOf(type.item.type);
  return type.id === "map" ? 2 + nodesOf(type.value.type) : 1;
}
