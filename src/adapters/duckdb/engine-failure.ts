/** What DuckDB says when it fails, as one coded Failure. */
import type { Code } from "../../core/failure/codes.ts";
import { Failure } from "../../core/failure/failure.ts";

const MEANINGS: readonly (readonly [RegExp, Code, string])[] = [
  [/^INTERRUPT Error/i, "duckdb.interrupted", "It was asked to stop"],
  [
    /^Out of Memory Error/i,
    "duckdb.out_of_memory",
    "Give it more memory, or smaller batches and fewer lanes",
  ],
  [/^(IO|Permission) Error/i, "duckdb.io", "Does the file still exist, and is there space?"],
];

/** Longer ones repeat the query. */
const MAX_MESSAGE = 500;

export function engineFailure(message: string): Failure {
  const [first = message] = message.split("\n\nLINE ");
  const text = first.replace(/\s+/g, " ").slice(0, MAX_MESSAGE);
  const known = MEANINGS.find(([pattern]) => pattern.test(message));
  if (known === undefined) return new Failure("duckdb.query", text);
  return new Failure(known[1], text, { hint: known[2] });
}
