/** Columns of a table: what the server has, and what a sink wants. Types are spelled as `format_type` of the server does. */

export interface TableColumnSpec {
  readonly name: string;
  readonly type: string;
  readonly nullable: boolean;
}

export interface WantedColumn extends TableColumnSpec {
  /** Whether a column of another type takes the same values; default: only what takes the very same bytes. */
  readonly takes?: (found: string) => boolean;
  /** Rows with a null are refused before they get there. */
  readonly nullsRefused?: true;
}

export interface FoundColumn {
  readonly name: string;
  readonly type: string;
  readonly notNull: boolean;
  readonly hasDefault: boolean;
  readonly generated: boolean;
}

/** A column as it was when the table last fitted. */
export type KnownColumn = Omit<FoundColumn, "name" | "generated">;

/** By name; empty: it never did, or nobody knows. */
export type KnownColumns = ReadonlyMap<string, KnownColumn>;

export const NOTHING_KNOWN: KnownColumns = new Map();
