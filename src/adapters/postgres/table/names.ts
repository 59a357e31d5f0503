/** Names of tables and columns: parsed as written, checked for length, and always quoted. */
import { Failure } from "../../../core/failure/failure.ts";

/** NAMEDATALEN - 1. The server cuts longer names silently, and then two of them may be one. */
const MAX_NAME_BYTES = 63;

export interface TableName {
  readonly schema: string;
  readonly table: string;
}

/** Why a name cannot be one; null if it can. */
export function nameProblem(name: string): string | null {
  if (name === "") return "a name is empty";
  if (name.includes("\0")) return "a name holds a NUL";
  const bytes = new TextEncoder().encode(name).length;
  return bytes > MAX_NAME_BYTES ? `a name of ${bytes} bytes, allowed ${MAX_NAME_BYTES}` : null;
}

/** `schema.table` or `table` (in public); a part that holds a dot or a quote stands in double quotes, `""` for `"`. */
export function parseTableName(text: string): TableName | string {
  const parts: string[] = [];
  let rest = text;
  for (;;) {
    const match = /^(?:"((?:[^"]|"")*)"|([^".]+))(\.|$)/.exec(rest);
    if (match === null) return "not of the form schema.table";
    parts.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? "");
    rest = rest.slice(match[0].length);
    if (match[3] === "") break;
  }
  if (parts.length > 2) return "more than a schema and a table";
  const problem = parts.map(nameProblem).find((p) => p !== null);
  if (problem !== undefined && problem !== null) return problem;
  const [first = "", second] = parts;
  return second === undefined ? { schema: "public", table: first } : { schema: first, table: second };
}

export function quoted(name: string): string {
  const problem = nameProblem(name);
  if (problem !== null) throw new Failure("internal.bug", `${problem}: ${name.slice(0, 80)}`);
  return `"${name.replaceAll('"', '""')}"`;
}

export function quotedTable({ schema, table }: TableName): string {
  return `${quoted(schema)}.${quoted(table)}`;
}

/** For people: quoted only where it must be. */
export function shownTable({ schema, table }: TableName): string {
  const shown = (n: string) => (/^[a-z_][a-z0-9_]*$/.test(n) ? n : quoted(n));
  return `${shown(schema)}.${shown(table)}`;
}

/** A text as a literal of standard_conforming_strings, for the few places that take no parameter. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
