/**
 * A small object beside raw's coverage that processes change by compare-and-swap alone: it is read, what is to be there is
 * decided upon that, and decided anew where somebody else was faster.
 */
import { Failure } from "../failure/failure.ts";
import type { VersionedStore } from "../ports/versioned-store.ts";

export interface BookForm<S> {
  /** Of a book that nobody has written in. */
  readonly empty: () => S;
  /** `version`: the one under which it is stored. Throws for what is damaged or of a newer version. */
  readonly parse: (bytes: Uint8Array, object: string, version: number) => S;
  readonly encode: (state: S, version: number) => Uint8Array;
}

export interface BookParts {
  readonly versions: VersionedStore;
  /** Unique to this process; part of its tags. */
  readonly instance: string;
}

/** Swaps that are lost in a row before something must be wrong. */
const MAX_ROUNDS = 100;

export class VersionedBook<S> {
  readonly #p: BookParts;
  readonly #form: BookForm<S>;
  #prepared = false;
  #serial = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: BookParts, form: BookForm<S>) {
    this.#p = parts;
    this.#form = form;
  }

  async read(): Promise<S> {
    return (await this.#read()).state;
  }

  /**
   * Resolves with what is there once that is durable. `next`: what follows it; null: it stays as it is. It is never asked about what was
   * known before, since others may have written meanwhile.
   */
  change(next: (now: S) => S | null): Promise<S> {
    const turn = this.#last.then(() => this.#change(next));
    this.#last = turn.catch(() => {});
    return turn;
  }

  /** Makes its place. */
  async prepare(): Promise<void> {
    if (!this.#prepared) await this.#p.versions.prepare();
    this.#prepared = true;
  }

  async #change(next: (now: S) => S | null): Promise<S> {
    const { versions, instance } = this.#p;
    await this.prepare();
    let now = await this.#read();
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const wanted = next(now.state);
      if (wanted === null) return now.state;
      const bytes = this.#form.encode(wanted, (now.version ?? 0) + 1);
      const outcome = await versions.write(now.version, bytes, `${instance}.d${this.#serial++}`);
      if (outcome === "won") return wanted;
      // Whether it was ours that landed or another's: what is there now is judged again.
      now = await this.#read();
    }
    throw new Failure("coverage.unavailable", `${MAX_ROUNDS} writes in a row were lost to others`, {
      at: versions.place,
    });
  }

  async #read(): Promise<{ readonly version: number | null; readonly state: S }> {
    const stored = await this.#p.versions.read();
    if (stored === null) return { version: null, state: this.#form.empty() };
    const { version } = stored;
    return { version, state: this.#form.parse(stored.bytes, stored.name, version) };
  }
}
