/** Error codes of leaving out duplicates: a part of the one list in `codes.ts`. */
import { spec } from "./code-spec.ts";

export const DEDUP_CODES = {
  "dedup.no_key": spec(
    "config",
    false,
    "Duplicates are records with one natural key, and the contract declares none, or one that cannot be compared.",
  ),
  "dedup.loading": spec(
    "runtime",
    true,
    "The records of the window are not all known yet: they are being read from raw. Sinks without duplicates wait for that.",
  ),
  "dedup.memory": spec(
    "runtime",
    false,
    "The keys of the windows do not fit what [dedup] allows them. Sinks without duplicates have a gap until it is more.",
  ),
  "dedup.unfit": spec(
    "runtime",
    false,
    "A record that the contract allows does not fit the table, so what has its key cannot be told to be a duplicate.",
  ),
  "dedup.other_plan": spec(
    "runtime",
    false,
    "Records were judged by another natural key, contract or window than the configuration has now.",
  ),
  "dedup.corrupt": spec("runtime", false, "The object that says how duplicates are found is damaged."),
} as const;
