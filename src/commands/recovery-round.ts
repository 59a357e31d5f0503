/** One round of recovery: what the chosen sinks lack is filled as far as that goes. */
import { Failure, fromWire } from "../core/failure/failure.ts";
import type { TwgEvent } from "../core/observe/events.ts";
import type { Observer } from "../core/ports/observer.ts";
import { withSinks } from "./config-file.ts";
import { BesideRecovery, type RecoverScope } from "./recover-beside.ts";
import { positionsOf, type RecoverPlan, sinksToFill, unindexed } from "./recover-plan.ts";

export interface RoundScope extends Omit<RecoverScope, "config"> {
  /** `look` sees what is nobody's, from one moment to the next: that something is left is no failure by itself. */
  readonly onlyFree: boolean;
}

export interface Recovered {
  /** Positions that are missing still of those that were at the start, by sink. */
  readonly left: ReadonlyMap<string, bigint>;
  readonly failure: Failure | null;
}

/** Beside a running pipeline, or without one. */
export class RecoveryRound {
  readonly #s: RoundScope;
  /** The last that went wrong at each sink. */
  readonly #troubles = new Map<string, Failure>();
  /** Sinks that were given records and took none of them. */
  readonly #idle = new Set<string>();
  /** What is under way, to be stopped. */
  #drain: ((reason: string) => void) | null = null;
  #stopped = false;

  constructor(scope: RoundScope) {
    const tell = scope.observer;
    const observer: Observer = {
      emit: (e) => {
        this.#note(e);
        // Somebody writes there: that is the whole of it, and what follows from it is no news.
        if (this.#owned() === null) tell.emit(e);
      },
    };
    this.#s = { ...scope, observer };
  }

  async run(plan: RecoverPlan): Promise<Recovered> {
    const left = new Map(plan.sinks.map((s) => [s.sink, positionsOf(s.gaps)]));
    const { whole } = this.#s;
    const { left: missing, failure } = await this.#fill();
    for (const [sink, lacks] of missing) left.set(sink, lacks);
    const isLeft = [...left.values()].some((n) => n > 0n);
    if (failure !== null || !isLeft) return { left, failure };
    if (this.#stopped) return { left, failure: stopped() };
    const unknown = unindexed(plan, whole.file);
    const isOthers =
      this.#s.onlyFree && unknown === null && this.#troubles.size === 0 && this.#idle.size === 0;
    return { left, failure: isOthers ? null : (unknown ?? this.#behind(left)) };
  }

  stop(reason: string): void {
    this.#stopped = true;
    this.#drain?.(reason);
  }

  async #fill(): Promise<Recovered> {
    const { whole, choice } = this.#s;
    const sinks = sinksToFill(whole.sinks, choice.sinks, whole.file);
    if (sinks.length === 0 || this.#stopped) return { left: new Map(), failure: null };
    const recovery = new BesideRecovery({
      ...this.#s,
      config: withSinks(whole, [whole.sink, ...sinks]),
      choice: { ...choice, sinks: sinks.map((s) => s.name) },
    });
    this.#drain = (reason) => recovery.drain(reason);
    const { left, failed, failure } = await recovery.filler.run();
    this.#drain = null;
    for (const [sink, cause] of failed)
      if (cause === null) this.#idle.add(sink);
      else this.#troubles.set(sink, cause);
    return { left, failure };
  }

  #note(e: TwgEvent): void {
    if (e.e !== "sink.troubled" && e.e !== "sink.detached") return;
    this.#troubles.set(e.sink, fromWire(e.failure));
    if (this.#owned() !== null) this.#drain?.("another process writes the sink");
  }

  #owned(): Failure | null {
    return [...this.#troubles.values()].find((f) => f.code === "coverage.owned") ?? null;
  }

  #behind(left: ReadonlyMap<string, bigint>): Failure {
    const owned = this.#owned();
    if (owned !== null) return owned;
    const behind = [...left].filter(([, lacks]) => lacks > 0n);
    const cause = behind.map(([sink]) => this.#troubles.get(sink)).find((f) => f !== undefined);
    const text = behind.map(([sink, lacks]) => `${sink} lacks ${lacks} positions`).join(", ");
    const hint = cause === undefined ? this.#hint(behind.map(([sink]) => sink)) : cause.hint;
    return new Failure(
      "recovery.behind",
      cause === undefined ? text : `${text}: ${cause.code}: ${cause.message}`,
      { at: this.#s.whole.file, cause, ...(hint === null ? {} : { hint }) },
    );
  }

  #hint(behind: readonly string[]): string {
    const idle = behind.find((s) => this.#idle.has(s));
    return idle === undefined ? OTHERS : `${idle} ${IDLE}`;
  }
}

const IDLE =
  "took nothing of two windows and named no failure: see --log-level debug, and what its server says";
const OTHERS =
  "Another process holds them: a pipeline that has not let go of them, or another recovery; `twg inspect coverage` shows it";

const stopped = (): Failure =>
  new Failure("internal.cancelled", "stopped before the end; the next run goes on where this one ended");

export const totalOf = ({ sinks }: RecoverPlan): bigint => positionsOf(sinks.flatMap((s) => s.gaps));
