/** Simulated time around real promises: time passes only while nothing else can happen. */
import { type SimTime, settleJobs } from "../sim/clock.ts";

/** Calls of a real disk that are under way; simulated time stands still meanwhile. */
export class Traffic {
  #calls = 0;

  get busy(): boolean {
    return this.#calls > 0;
  }

  /** The object with every promise that its methods give counted here. */
  watch<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (of, name) => {
        const value: unknown = Reflect.get(of, name, of);
        return typeof value === "function"
          ? (...args: unknown[]) => this.#count(value.apply(of, args))
          : value;
      },
    });
  }

  #count(result: unknown): unknown {
    if (!(result instanceof Promise)) return result;
    this.#calls++;
    const end = () => {
      this.#calls--;
    };
    result.then(end, end);
    return result;
  }
}

/** Steps the clock until the promise has settled, and gives its outcome. */
export async function drive<T>(time: SimTime, work: Promise<T>, traffic?: Traffic): Promise<T> {
  let over = false;
  const done = () => {
    over = true;
  };
  work.then(done, done);
  await settleJobs();
  while (!over) {
    if (traffic?.busy) await new Promise((turn) => setTimeout(turn, 0));
    else await time.step(Number.POSITIVE_INFINITY);
    // What the step set off runs to its end before time passes again.
    await settleJobs();
  }
  return work;
}
