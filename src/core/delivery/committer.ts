/**
 * Brings sealed sets to their end: intent, publish, cover, in this order, each after the one before is durable.
 * One round is under way at a time; sets that come meanwhile go together in the next. An outage is waited out.
 */
import { waitedOut } from "../coverage/outage.ts";
import { settleIntent } from "../coverage/settle.ts";
import { asFailure, Failure } from "../failure/failure.ts";
import type { Authority, CoverageStore, IntendResult, Intent } from "../ports/coverage.ts";
import type { SealedSet } from "../ports/lane.ts";
import type { ObjectStore } from "../ports/object-store.ts";
import type { Observer } from "../ports/observer.ts";
import type { Span } from "../records/stream.ts";
import { type Clock, sleep } from "../time/clock.ts";
import type { CrashHook } from "./crash-points.ts";

export interface CommitListener {
  /** Published and covered: the source may be told. In the order of submission. */
  committed(id: string, spans: readonly Span[]): void;
  /** Nothing of the set is or can become visible; its spans must be read again, if they are still ours. */
  refused(id: string, lane: number, reason: string, detail: string): void;
  /** Something that does not pass ends the work. */
  failed(failure: Failure): void;
  /** An outage (null: over). Nothing is lost meanwhile. */
  trouble(failure: Failure | null): void;
}

/** Brings sealed sets to their end. */
export interface SetCommitter {
  submit(set: SealedSet, authorities: readonly Authority[]): void;
  /** Resolves when nothing is waiting or under way. */
  idle(): Promise<void>;
  /** Resolves when what the lane has submitted so far is at its end, however busy the lanes are. */
  settledOf(lane: number): Promise<void>;
  /** A set that became void before it was submitted. */
  discard(set: SealedSet): void;
  close(): void;
}

export interface CommitterParts {
  readonly sink: string;
  readonly coverage: CoverageStore;
  readonly objects: ObjectStore;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly listener: CommitListener;
  readonly hook?: CrashHook;
}

interface Work {
  readonly set: SealedSet;
  readonly intent: Intent;
  readonly submittedAt: number;
}

export class Committer implements SetCommitter {
  readonly #p: CommitterParts;
  #waiting: Work[] = [];
  #round: { readonly works: readonly Work[]; readonly done: Promise<void> } | null = null;
  #busy: Promise<void> | null = null;
  readonly #life = new AbortController();

  constructor(parts: CommitterParts) {
    this.#p = parts;
  }

  submit(set: SealedSet, authorities: readonly Authority[]): void {
    const { id, targets, spans, rows, bytes } = set;
    const intent: Intent = { id, targets, spans, authorities, rows, bytes };
    if (this.#life.signal.aborted) return;
    this.#waiting.push({ set, intent, submittedAt: this.#p.clock.monotonic() });
    this.#busy ??= this.#rounds();
  }

  /** Resolves when nothing is waiting or under way. */
  async idle(): Promise<void> {
    while (this.#busy !== null) await this.#busy;
  }

  /** Sets that come meanwhile are not waited for: a lane that goes on may never be idle. */
  async settledOf(lane: number): Promise<void> {
    const open = () => [...this.#waiting, ...(this.#round?.works ?? [])];
    const mine = new Set(open().filter((w) => w.set.lane === lane));
    while (this.#busy !== null && open().some((w) => mine.has(w))) await (this.#round?.done ?? this.#busy);
  }

  /** A set that became void before it was submitted: its staged objects go. What can't be removed is swept later. */
  discard(set: SealedSet): void {
    for (const t of set.targets) void this.#p.objects.discard(t).catch(() => {});
  }

  close(): void {
    this.#life.abort(new Failure("internal.cancelled", "the committer was closed"));
    this.#waiting = [];
  }

  async #rounds(): Promise<void> {
    try {
      while (this.#waiting.length > 0 && !this.#life.signal.aborted) {
        const round = this.#waiting;
        this.#waiting = [];
        const done = this.#bring(round);
        this.#round = { works: round, done: done.catch(() => {}) };
        await done;
      }
    } catch (e) {
      if (!this.#life.signal.aborted) this.#p.listener.failed(asFailure(e));
    } finally {
      // On the same turn as the last look at what waits, so that no set falls between two rounds.
      this.#busy = null;
      this.#round = null;
    }
  }

  async #bring(round: readonly Work[]): Promise<void> {
    await this.#p.hook?.("before_intend");
    const answers = await this.#retrying(() => this.#p.coverage.intend(round.map((w) => w.intent)));
    const open: Work[] = [];
    for (const [i, w] of round.entries()) {
      const answer = answers[i];
      if (answer?.ok) open.push(w);
      else await this.#refuse(w, answer);
    }
    if (open.length === 0) return;
    await this.#p.hook?.("after_intend");
    for (const w of open) this.#tell("set.intended", w);
    const published: Work[] = [];
    for (const w of open) if (await this.#publish(w)) published.push(w);
    await this.#p.hook?.("before_cover");
    const covered = await this.#retrying(() => this.#p.coverage.cover(published.map((w) => w.intent.id)));
    await this.#p.hook?.("after_cover");
    for (const [i, w] of published.entries()) {
      const answer = covered[i];
      if (answer?.ok) {
        this.#tell("set.covered", w);
        this.#p.listener.committed(w.intent.id, w.intent.spans);
      } else throw visibleUncovered(w.intent, answer);
    }
  }

  /** False: its staged objects were gone, and the intent was given up. */
  async #publish(w: Work): Promise<boolean> {
    try {
      for (const target of w.intent.targets) {
        await this.#retrying(() => this.#p.objects.publish(target));
        await this.#p.hook?.("after_publish_one");
      }
    } catch (e) {
      const failure = asFailure(e);
      if (failure.code !== "store.absent") throw failure;
      const outcome = await this.#retrying(() => settleIntent(this.#p.objects, w.intent));
      if (outcome === "discarded") {
        await this.#retrying(() => this.#p.coverage.settle(w.intent.id, "abandoned"));
        this.#p.listener.refused(w.intent.id, w.set.lane, "gone", failure.message);
        return false;
      }
    }
    this.#tell("set.published", w);
    return true;
  }

  async #refuse(w: Work, answer: IntendResult | undefined): Promise<void> {
    this.discard(w.set);
    const reason = answer === undefined || answer.ok ? "gone" : answer.reason;
    const detail = answer === undefined || answer.ok ? "no answer" : answer.detail;
    this.#p.listener.refused(w.intent.id, w.set.lane, reason, detail);
  }

  #tell(e: "set.intended" | "set.published" | "set.covered", w: Work): void {
    const { id, rows, bytes, targets } = w.intent;
    const ms = this.#p.clock.monotonic() - w.submittedAt;
    const step = { sink: this.#p.sink, id, rows, bytes, files: targets.length, ms };
    const endToEndMs = Math.max(0, this.#p.clock.now() - w.set.openedAt);
    this.#p.observer.emit(e === "set.covered" ? { e, ...step, endToEndMs } : { e, ...step });
  }

  async #retrying<T>(fn: () => Promise<T>): Promise<T> {
    const { signal } = this.#life;
    signal.throwIfAborted();
    const pause = async (ms: number) => {
      await sleep(this.#p.clock, ms, signal);
      signal.throwIfAborted();
    };
    return waitedOut({ pause, trouble: (f) => this.#p.listener.trouble(f) }, fn);
  }
}

/**
 * Nobody drops an intent whose objects can still be published, so the state was changed behind our back (restored
 * from a backup, say). Reading the spans again would double what is visible now: people must look.
 */
function visibleUncovered(intent: Intent, answer: IntendResult | undefined): Failure {
  const detail = answer === undefined || answer.ok ? "no answer" : answer.detail;
  const files = intent.targets.map((t) => t.key).join(", ") || "no files";
  return new Failure(
    "coverage.intent_torn",
    `${files} of set ${intent.id} are published but not covered: ${detail}`,
    {
      hint: "Was the coverage state restored or edited? Move these files away before the next start, or their records are there twice",
    },
  );
}
