/** Where sets of rows go, and by which rules. */
import type { PostgresSettings } from "./settings.ts";
import type { TableName } from "./table/names.ts";
import type { RowKey } from "./table/row-key.ts";

/** Plain data: it crosses to the lane's thread. */
export interface CopySetOptions {
  readonly settings: PostgresSettings;
  readonly table: TableName;
  readonly pipeline: string;
  readonly sink: string;
  readonly stateSchema: string;
  /** Table of refused rows; null: the one beside the coverage. */
  readonly rejects: TableName | null;
  /** Most rows of a set that the server may refuse: beyond it the table is at fault, and not the rows. */
  readonly maxRejects: number;
  /** A position may stay uncovered while the rest of the set lands. Not in a primary sink, which waits. */
  readonly leavesHoles: boolean;
  /** The table has a unique index on it, and rows that are there already are not written again; null: nobody looks. */
  readonly rowKey: RowKey | null;
  /** What lands is raw that recovery may read again. */
  readonly indexed?: boolean;
  readonly lockTimeoutMs: number;
  /** Longest that a set stays open: what a COPY may take beside the time for an answer. */
  readonly intervalMs: number;
}
