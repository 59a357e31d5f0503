/** Ends the process at a planned point, for the tests that kill it there. */
import { LOCAL_WRITE_POINTS } from "../adapters/coverage/local.ts";
import { SETTLE_POINTS } from "../core/coverage/settle.ts";
import { CRASH_POINTS, EPOCH_POINTS, TRANSACTION_POINTS } from "../core/delivery/crash-points.ts";
import { Failure } from "../core/failure/failure.ts";
import type { PointHook } from "./sink-parts.ts";

/** What of the plan concerns the primary sink (`sink` null), or the one that it names as `sink/point:n`. */
export function crashPlan(plan: string | undefined, sink: string | null): string | null {
  if (plan === undefined || plan === "") return null;
  const cut = plan.lastIndexOf("/");
  const named = cut === -1 ? null : plan.slice(0, cut);
  return named === sink ? plan.slice(cut + 1) : null;
}

/**
 * `TWG_CRASH_AT=point:n` ends the process with SIGKILL when it passes a point of delivery, of a transaction, of
 * settling what a former owner left, or of a write of the coverage object for the n-th time: a test's way to be
 * killed exactly there. Points of a transaction are counted by each lane.
 */
export function crashHook(plan: string | null): PointHook | null {
  if (plan === null || plan === "") return null;
  const [point, times = "1"] = plan.split(":");
  const known: readonly string[] = [
    ...CRASH_POINTS,
    ...TRANSACTION_POINTS,
    ...EPOCH_POINTS,
    ...SETTLE_POINTS,
    ...LOCAL_WRITE_POINTS,
  ];
  if (point === undefined || !known.includes(point)) {
    throw new Failure("config.invalid", `TWG_CRASH_AT names ${point}`, {
      hint: `Known points: ${known.join(", ")}`,
    });
  }
  let left = Number(times);
  return (passed) => {
    if (passed === point && --left === 0) process.kill(process.pid, "SIGKILL");
  };
}
