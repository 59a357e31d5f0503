/** Error codes of recovery, which fills the gaps of sinks from raw: a part of the one list in `codes.ts`. */
import { spec } from "./code-spec.ts";

export const RECOVERY_CODES = {
  "recovery.unsupported": spec(
    "config",
    false,
    "The raw sink is of a kind that this version cannot read again, or keeps the latest record of each key only.",
  ),
  "recovery.raw_missing": spec(
    "environment",
    false,
    "A raw file that coverage names, or rows of a raw table that it counts, are not there, or raw shows nothing at all where sinks beside it have records. Is its volume mounted? Were they removed or rewritten? What they held cannot be recovered from raw.",
  ),
  "recovery.no_index": spec(
    "environment",
    false,
    "The raw table has no index that leads to the rows of a partition in order: without it each page would read the whole table.",
  ),
  "recovery.not_indexed": spec(
    "environment",
    false,
    "A raw file that the index does not know holds what the index says is gone, or may hold it: it is of no set, or not what the set has that it names. Were files put together or moved? `twg inspect coverage --rebuild` makes the index anew.",
  ),
  "recovery.plan_missing": spec(
    "runtime",
    false,
    "How records of raw were decoded at their time is not known any more. `twg recover --replan` decodes them by the configuration of now.",
  ),
  "recovery.plan_corrupt": spec(
    "runtime",
    false,
    "The object that says how records were decoded, or since when, is damaged.",
  ),
  "recovery.plan_unfit": spec(
    "runtime",
    false,
    "Records of raw cannot be decoded, or landed, as at their time: the configuration or the sink's table has changed since. `twg recover --replan` decodes them by the configuration of now.",
  ),
  "recovery.not_raw": spec(
    "runtime",
    false,
    "A file in the place of a raw file has other columns, or rows of a raw table are not those that were written.",
  ),
  "recovery.raw_order": spec("runtime", false, "A position stands twice in raw, or out of order."),
  "recovery.behind": spec(
    "runtime",
    true,
    "Gaps are left after recovery: the sink did not take what it was given. The log says why.",
  ),
} as const;
