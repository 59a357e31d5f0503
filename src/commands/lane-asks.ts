/** Questions of a lane that its control thread answers, by number. */
import { asFailure, type FailureWire, fromWire, toWire } from "../core/failure/failure.ts";

/** `T` survives a structured clone. */
export type Answered<T> = { readonly n: number } & (
  | { readonly answer: T }
  | { readonly failure: FailureWire }
);

interface Waiting {
  readonly resolve: (answer: never) => void;
  readonly reject: (e: unknown) => void;
}

/** In the lane. */
export class LaneAsks<Ask extends { readonly n: number }> {
  readonly #post: (ask: Ask) => void;
  readonly #waiting = new Map<number, Waiting>();
  #n = 0;

  constructor(post: (ask: Ask) => void) {
    this.#post = post;
  }

  answered(a: Answered<unknown>): void {
    const waiting = this.#waiting.get(a.n);
    this.#waiting.delete(a.n);
    if ("failure" in a) waiting?.reject(fromWire(a.failure));
    else waiting?.resolve(a.answer as never);
  }

  /** Rejects with the control thread's failure. `T`: what the question is answered with. */
  protected ask<T>(question: (n: number) => Ask): Promise<T> {
    const n = this.#n++;
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(n, { resolve, reject });
      this.#post(question(n));
    });
  }
}

/** In the control thread. */
export async function answered<T>(n: number, find: () => Promise<T>): Promise<Answered<T>> {
  try {
    return { n, answer: await find() };
  } catch (e) {
    return { n, failure: toWire(asFailure(e)) };
  }
}
