/** The end of a run: what was fetched lands and is acknowledged, within a time. */
import type { SetCommitter } from "../delivery/committer.ts";
import { Failure } from "../failure/failure.ts";
import type { Clock } from "../time/clock.ts";
import type { Acknowledger } from "./acknowledger.ts";
import type { LanePool } from "./lane-pool.ts";
import type { Secondaries } from "./secondaries.ts";

/** For a run that ends by itself, however soon a stop has to be over: nobody waits for it to be gone. */
const BY_ITSELF_MS = 30_000;

export interface DrainParts {
  readonly clock: Clock;
  readonly lanes: LanePool;
  readonly committer: SetCommitter;
  readonly acks: Acknowledger;
  readonly secondaries: Secondaries;
}

/** `drainMs`: of a stop. */
export const drainBound = (byItself: boolean, drainMs: number): number =>
  byItself ? Math.max(drainMs, BY_ITSELF_MS) : drainMs;

/** Of a source that delivers no more. `late` is told once if the time is over; what is under way is the caller's to end. */
export async function drained(p: DrainParts, mostMs: number, late: (f: Failure) => void): Promise<void> {
  const begun = p.clock.monotonic();
  let isLate = false;
  let undone = "open files were not published";
  const timer = p.clock.after(mostMs, () => {
    isLate = true;
    const hint = "Nothing is lost: what was not acknowledged is read again at the next start";
    late(new Failure("delivery.drain_timeout", `${undone} within ${mostMs} ms`, { hint }));
  });
  // A lane that restarts meanwhile holds nothing; what it had is read again after the next start.
  await p.lanes.roll("drain");
  await p.committer.idle();
  undone = "everything is published, but the source did not take the acknowledgement";
  if (!isLate) await p.acks.flush();
  timer.cancel();
  // What the others cannot land now is a gap of theirs.
  await p.secondaries.idle(mostMs - (p.clock.monotonic() - begun));
}
