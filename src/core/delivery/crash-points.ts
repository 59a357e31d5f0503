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

export type CrashPoint = (typeof CRASH_POINTS)[number];

export type CrashHook = (point: CrashPoint) => void | Promise<void>;
