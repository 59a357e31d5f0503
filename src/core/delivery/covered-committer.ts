/**
 * The committer of sinks that commit by themselves: a sealed set is durable with its coverage, in one transaction, so
 * all that is left is to tell. A set that became void is covered all the same; the next claim finds it there.
 */
import { Failure } from "../failure/failure.ts";
import type { SealedSet } from "../ports/lane.ts";
import type { Observer } from "../ports/observer.ts";
import type { Clock } from "../time/clock.ts";
import type { CommitListener, SetCommitter } from "./committer.ts";

export interface CoveredCommitterParts {
  readonly sink: string;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly listener: CommitListener;
}

export class CoveredCommitter implements SetCommitter {
  readonly #p: CoveredCommitterParts;
  #closed = false;

  constructor(parts: CoveredCommitterParts) {
    this.#p = parts;
  }

  submit(set: SealedSet): void {
    if (this.#closed) return;
    if (!set.covered) throw new Failure("internal.bug", `set ${set.id} is sealed and not covered`);
    const { id, rows, bytes, spans, sealMs: ms } = set;
    const endToEndMs = Math.max(0, this.#p.clock.now() - set.openedAt);
    this.#p.observer.emit({
      e: "set.covered",
      sink: this.#p.sink,
      id,
      rows,
      bytes,
      files: 0,
      ms,
      endToEndMs,
    });
    this.#p.listener.committed(id, spans);
  }

  idle(): Promise<void> {
    return Promise.resolve();
  }

  settledOf(): Promise<void> {
    return Promise.resolve();
  }

  discard(): void {}

  close(): void {
    this.#closed = true;
  }
}
