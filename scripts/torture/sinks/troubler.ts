/** Troubles the servers of the sinks, each by itself, one trouble at a time. */
import { SeededChance } from "../../../test/sim/chance.ts";
import type { Place, Trouble } from "./place.ts";

const QUIET_MS = { least: 3_000, spread: 12_000 };
const LEAST_MS = 500;

export class Troubler {
  /** How often each happened, by sink and kind. */
  readonly done: Record<string, number> = {};
  readonly #places: readonly Place[];
  readonly #longestMs: number;
  readonly #seed: number;
  #stop: (() => void) | null = null;
  #work: Promise<unknown> = Promise.resolve();

  constructor(places: readonly Place[], longestMs: number, seed: number) {
    this.#places = places;
    this.#longestMs = longestMs;
    this.#seed = seed;
  }

  begin(): void {
    const stopped = new Promise<"stop">((go) => {
      this.#stop = () => go("stop");
    });
    const rest = async (ms: number): Promise<boolean> =>
      (await Promise.race([stopped, Bun.sleep(ms).then(() => "go" as const)])) === "stop";
    this.#work = Promise.all(
      this.#places.map((p, i) => this.#trouble(p, new SeededChance(this.#seed * 43 + i), rest)),
    );
  }

  async #trouble(place: Place, chance: SeededChance, rest: (ms: number) => Promise<boolean>): Promise<void> {
    const kinds: (readonly [string, Trouble])[] = Object.entries(place.troubles);
    if (kinds.length === 0) return;
    while (!(await rest(QUIET_MS.least + chance.int(QUIET_MS.spread)))) {
      const [kind, begin] = chance.pick(kinds);
      const end = await begin();
      const name = `${place.name} ${kind}`;
      this.done[name] = (this.done[name] ?? 0) + 1;
      await rest(LEAST_MS + chance.int(this.#longestMs));
      await end();
    }
  }

  /** Waits until nothing is troubled any more. */
  async stop(): Promise<void> {
    this.#stop?.();
    await this.#work;
  }
}
