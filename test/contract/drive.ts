/** Simulated time around real promises: time passes only while nothing else can happen. */
import { settleJobs, type SimTime } from "../sim/clock.ts";

/** Steps the clock until the promise has settled, and gives its outcome. For work on memory or on a local disk. */
export async function drive<T>(time: SimTime, work: Promise<T>): Promise<T> {
  let over = false;
  const done = () => {
    over = true;
  };
  work.then(done, done);
  await settleJobs();
  while (!over) {
    // Real input and output takes turns of the event loop in which no timer is due.
    if (!(await time.step(Number.POSITIVE_INFINITY))) await settleJobs();
  }
  return work;
}
