/** What a broker's answer about one batch means: the one place that decides. */
import { ERROR, kafkaError } from "../wire/errors.ts";

export type Verdict =
  | "written"
  /** It was written before; where, is not told. */
  | "duplicate"
  /** Not written, or not known to be: the same bytes again. */
  | "again"
  /** The same, after a look at who leads. */
  | "refresh"
  /** Too large as it is: in two halves. */
  | "split"
  /** Not written: what the broker knows of our sequence is not what we do. */
  | "out_of_order"
  /** Not written: the broker has forgotten this producer (KIP-360). */
  | "forgotten"
  /** Not written: a later epoch of this producer id was seen. */
  | "old_epoch"
  /** The transaction can only be aborted (KIP-890). */
  | "abortable"
  /** Another producer has our transactional id, or none may be used any more. */
  | "fenced"
  | "refused";

const SPECIAL: ReadonlyMap<number, Verdict> = new Map<number, Verdict>([
  [ERROR.NONE, "written"],
  [ERROR.DUPLICATE_SEQUENCE_NUMBER, "duplicate"],
  [ERROR.MESSAGE_TOO_LARGE, "split"],
  [ERROR.RECORD_LIST_TOO_LARGE, "split"],
  [ERROR.OUT_OF_ORDER_SEQUENCE_NUMBER, "out_of_order"],
  [ERROR.UNKNOWN_PRODUCER_ID, "forgotten"],
  [ERROR.INVALID_PRODUCER_EPOCH, "old_epoch"],
  [ERROR.TRANSACTION_ABORTABLE, "abortable"],
  [ERROR.INVALID_TXN_STATE, "abortable"],
  [ERROR.INVALID_PRODUCER_ID_MAPPING, "abortable"],
  [ERROR.PRODUCER_FENCED, "fenced"],
  [ERROR.TRANSACTION_COORDINATOR_FENCED, "fenced"],
  // What was damaged on the way there may arrive whole next time.
  [ERROR.CORRUPT_MESSAGE, "again"],
]);

export function produceVerdict(code: number): Verdict {
  const special = SPECIAL.get(code);
  if (special !== undefined) return special;
  const { action } = kafkaError(code);
  if (action === "refresh" || action === "rebootstrap") return "refresh";
  return action === "retry" || action === "coordinator" ? "again" : "refused";
}

/** Said before anything is written: that a transaction may begin is looked at first, and how many replicas there are. */
const SURELY_NOT: ReadonlySet<number> = new Set([
  ERROR.CONCURRENT_TRANSACTIONS,
  ERROR.COORDINATOR_LOAD_IN_PROGRESS,
  ERROR.COORDINATOR_NOT_AVAILABLE,
  ERROR.NOT_COORDINATOR,
  ERROR.NOT_ENOUGH_REPLICAS,
  ERROR.UNKNOWN_TOPIC_ID,
]);

/** Of an answer that has a batch sent again: it may have been written all the same. A leader that moved says so late. */
export function mayBeWritten(code: number): boolean {
  return !SURELY_NOT.has(code);
}
