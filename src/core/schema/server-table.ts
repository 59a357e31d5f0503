/** What a table can become that is a server's own, which writes its rows anew where a type becomes another: docs/decisions/0032. */
import type { TargetAbilities } from "./evolution.ts";

/** Whether this table does, the server's end says: its size, its user's rights, what hangs on the column. */
export const SERVER_TABLE: TargetAbilities = { relax: true, nested: true, widen: () => true };
