/**
 * Why a table does not take the columns that a sink wants, difference by difference, and whose fault that is. What the table
 * last was decides: a column that took the wanted values then and does not now was changed, which is an outage that somebody
 * ends. What the table as it was could not have taken either is the fault of whoever wants it.
 */
import { Failure, type FailureDetail } from "../../../core/failure/failure.ts";
import type { FoundColumn, KnownColumn, KnownColumns, WantedColumn } from "./column-specs.ts";
import { type TableGrowth, widenAction } from "./grow.ts";
import { quoted } from "./names.ts";

export interface Difference {
  /** What is there, and what is wanted. */
  readonly text: string;
  /** The table's fault. Null: the columns'; else what undoes it, an action of ALTER TABLE, "" where there is none. */
  readonly undo: string | null;
}

/** The columns do not fit the table as it was, or as it always was. Of a table that was changed a plain Failure tells. */
export class UnfitColumns extends Failure {
  /** The table has fitted others. */
  readonly tableFitted: boolean;

  constructor(message: string, detail: FailureDetail, tableFitted: boolean) {
    super("postgres.table_mismatch", message, detail);
    this.tableFitted = tableFitted;
  }
}

/** Types that take the very same bytes. */
const SAME: Readonly<Record<string, string>> = { "character varying": "text" };

export interface ComparedTable {
  readonly found: readonly FoundColumn[];
  readonly known: KnownColumns;
  readonly growth: TableGrowth | null;
}

/** Every difference that matters. */
export function columnDifferences(table: ComparedTable, wanted: readonly WantedColumn[]): Difference[] {
  const { found, known } = table;
  const byName = new Map(found.map((c) => [c.name, c]));
  const differences = wanted.flatMap((w) => differenceOf(w, byName.get(w.name), table) ?? []);
  for (const { name } of wanted) byName.delete(name);
  for (const c of byName.values()) {
    if (!c.notNull || c.hasDefault || c.generated) continue;
    const before = known.get(c.name);
    const wasFilled = before?.notNull === true && !before.hasDefault;
    const changed = known.size > 0 && !wasFilled;
    differences.push({
      text: `column ${c.name} is NOT NULL without a default, and the sink does not fill it`,
      undo: changed ? `ALTER COLUMN ${quoted(c.name)} DROP NOT NULL` : null,
    });
  }
  return differences;
}

function differenceOf(
  wanted: WantedColumn,
  there: FoundColumn | undefined,
  { known, growth }: ComparedTable,
): Difference | null {
  const { name, type } = wanted;
  const before = known.get(name);
  const fitted = before !== undefined && fitsAsIt(before, wanted, growth);
  const column = quoted(name);
  if (there === undefined) {
    if (before === undefined) return { text: `column ${name} ${type} is missing`, undo: null };
    const text = `column ${name}, which was ${before.type}, is gone, wanted is ${type}`;
    return { text, undo: fitted ? `ADD COLUMN ${column} ${before.type}` : null };
  }
  if (!takesType(wanted, there.type)) {
    const changed = before !== undefined && before.type !== there.type;
    const was = changed ? ` and was ${before.type}` : "";
    return {
      text: `column ${name} is ${there.type}${was}, wanted is ${type}`,
      undo: changed && fitted ? `ALTER COLUMN ${column} TYPE ${before.type} USING ...` : null,
    };
  }
  // What is generated is not among what is known.
  if (there.generated)
    return { text: `column ${name} is generated and cannot be written`, undo: fitted ? "" : null };
  // Of columns that are remembered the server says which nulls it refuses.
  if (there.notNull && wanted.nullable && wanted.nullsRefused !== true)
    return { text: `column ${name} is NOT NULL and must take nulls`, undo: null };
  return null;
}

function takesType(wanted: WantedColumn, type: string): boolean {
  return wanted.takes?.(type) ?? (SAME[type] ?? type) === wanted.type;
}

/** A column of this kind takes the values, or would have been changed to one that does. */
function fitsAsIt(before: KnownColumn, wanted: WantedColumn, growth: TableGrowth | null): boolean {
  if (takesType(wanted, before.type)) return true;
  if (growth === null) return false;
  const column = { ...before, name: wanted.name, generated: false };
  return widenAction(column, wanted, growth.dateToTimestamp) !== null;
}
