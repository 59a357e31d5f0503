/**
 * The named moments of delivery, in order: between two of them lies exactly one durable event. Tests end the
 * process at each; the wiring decides how (core only calls the hook).
 */
export const CRASH_POINTS = [
  "sealed",
  "before_intend",
  "after_intend",
  "after_publish_one",
  "before_cover",
  "after_cover",
  "before_acknowledge",
  "after_acknowledge",
] as const;

/** Those within the transaction of a sink that commits by itself; they are passed in its lanes. */
export const TRANSACTION_POINTS = ["copy_begun", "rows_copied", "before_commit", "commit_answered"] as const;

/** Of a sink of derived rows: before and after it is durable by which plan records are decoded for it from now on. */
export const EPOCH_POINTS = ["before_epoch", "after_epoch"] as const;

export type CrashPoint = (typeof CRASH_POINTS | typeof TRANSACTION_POINTS)[number];

export type CrashHook = (point: CrashPoint) => void | Promise<void>;
