/**
 * Which lanes are being taken back to what is covered. Until that is done nothing is fetched for them: it would be
 * dropped. Whoever waits for room meanwhile is put off, since a budget with room would wake it at once, for ever.
 */
export class LaneRestarts {
  readonly #open = new Map<number, (() => void)[]>();
  readonly #ends = new Map<number, (() => void)[]>();
  readonly #whenRoom: (lane: number, wake: () => void) => void;

  /** `whenRoom`: how to wait for room in a lane that works. */
  constructor(whenRoom: (lane: number, wake: () => void) => void) {
    this.#whenRoom = whenRoom;
  }

  has(lane: number): boolean {
    return this.#open.has(lane);
  }

  begin(lane: number): void {
    this.#open.set(lane, []);
  }

  /** Safe to call again. */
  end(lane: number): void {
    const waiting = this.#open.get(lane) ?? [];
    this.#open.delete(lane);
    for (const wake of waiting) this.#whenRoom(lane, wake);
    for (const tell of this.#ends.get(lane) ?? []) tell();
    this.#ends.delete(lane);
  }

  /** Resolves when the lane is not being taken back, at once if it is not now. */
  over(lane: number): Promise<void> {
    if (!this.#open.has(lane)) return Promise.resolve();
    return new Promise((resolve) => {
      this.#ends.set(lane, [...(this.#ends.get(lane) ?? []), resolve]);
    });
  }

  whenRoom(lane: number, wake: () => void): void {
    const waiting = this.#open.get(lane);
    if (waiting === undefined) this.#whenRoom(lane, wake);
    else waiting.push(wake);
  }
}
