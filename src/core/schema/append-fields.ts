/** Fields that were not there before, at the end of those that were: how a schema without an author grows. */
import type { ColumnType } from "../types/table-batch.ts";
import { sourceOf, type TableField } from "../types/table-schema.ts";

/** Columns and what is inside of them, over a whole table: each is memory of every lane. */
const MAX_NODES = 5_000;
/** Of one column; what is wider or deeper stays JSON. */
const MAX_COLUMN_NODES = 500;

export interface GrowthRules {
  readonly maxColumns: number;
  /** Names are made of ASCII letters, digits and _, for sinks that can have no others; what is odd within a column is JSON. */
  readonly plainNames: boolean;
}

/**
 * `now` itself where there is nothing to add. What is there stays as it is, type and place. A name that engines would take
 * for another gets a number behind it, and is found by its own.
 */
export function appendFields(
  now: readonly TableField[],
  more: readonly TableField[],
  { maxColumns, plainNames }: GrowthRules,
): readonly TableField[] {
  const sources = new Set(now.map(sourceOf));
  const names = new Set(now.map((f) => f.name.toLowerCase()));
  let nodes = now.reduce((n, f) => n + nodesOf(f.type), 0);
  const added: TableField[] = [];
  for (const field of more) {
    const source = sourceOf(field);
    if (sources.has(source) || now.length + added.length >= maxColumns) continue;
    sources.add(source);
    const name = freeName(plainNames ? plain(source) : source, names);
    names.add(name.toLowerCase());
    const own = nodesOf(field.type);
    const fits =
      own <= MAX_COLUMN_NODES && nodes + own <= MAX_NODES && !(plainNames && hasOddNames(field.type));
    nodes += fits ? own : 1;
    const type: ColumnType = fits ? field.type : { id: "json" };
    added.push({ name, type, nullable: true, ...(name === source ? {} : { source }) });
  }
  return added.length === 0 ? now : [...now, ...added];
}

const PLAIN = /^[A-Za-z_][A-Za-z0-9_]*$/;

function plain(name: string): string {
  const text = name.replaceAll(/[^A-Za-z0-9_]/g, "_");
  return PLAIN.test(text) ? text : `_${text}`;
}

function hasOddNames(type: ColumnType): boolean {
  if (type.id === "struct") return type.fields.some((f) => !PLAIN.test(f.name) || hasOddNames(f.type));
  if (type.id === "list") return hasOddNames(type.item.type);
  return type.id === "map" && hasOddNames(type.value.type);
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
