/** One round of recovery: what the chosen sinks lack is filled as far as that goes. */
import { Failure, fromWire } from "../core/failure/failure.ts";
import type { TwgEvent } from "../core/observe/events.ts";
import type { Observer } from "../core/ports/observer.ts";
import type { Filled } from "../core/recovery/filler.ts";
import { withSinks } from "./config-file.ts";
import type { Gap } from "./coverage-summary.ts";
import { BesideRecovery, type RecoverScope } from "./recover-beside.ts";
import { positionsOf, type RecoverPlan, sinksToFill, unindexed } from "./recover-plan.ts";

export interface RoundScope extends Omit<RecoverScope, "config"> {
  /** `look` sees what is nobody's, from one moment to the next: that something is left is no failure by itself. */
  readonly onlyFree: boolean;
}

export interface Recovered {
  /** Positions of each sink: those that were missing when it began and are there, and those that are missing still. */
  readonly sinks: ReadonlyMap<string, { readonly recovered: bigint; readonly lacks: bigint }>;
  /** Positions that this round brought, and nobody else. */
  readonly filled: bigint;
  readonly failure: Failure | null;
}

/** Beside a running pipeline, or without one. */
export class RecoveryRound {
  readonly #s: RoundScope;
  /** The last that went wrong at each sink. */
  readonly #troubles = new Map<string, Failure>();
  /** Sinks that were given records and took none of them. */
  readonly #idle = new Set<string>();
  /** Sinks that the first look of the run could read. */
  #seen: ReadonlySet<string> | null = null;
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
    const { whole, onlyFree } = this.#s;
    const run = await this.#fill();
    const planned = new Map(plan.sinks.map((s) => [s.sink, s.gaps]));
    const names = new Set([...planned.keys(), ...(run?.lacked.keys() ?? [])]);
    const sinks = new Map([...names].map((s) => [s, this.#outcome(s, planned.get(s) ?? [], run)]));
    const isLeft = [...sinks.values()].some((s) => s.lacks > 0n);
    const failure = run?.failure ?? null;
    const filled = run?.filled ?? 0n;
    if (failure !== null || !isLeft) return { sinks, filled, failure };
    if (this.#stopped) return { sinks, filled, failure: stopped() };
    const unknown = unindexed(plan, whole.file);
    const isOthers = onlyFree && unknown === null && this.#troubles.size === 0 && this.#idle.size === 0;
    return { sinks, filled, failure: isOthers ? null : (unknown ?? this.#behind(sinks)) };
  }

  /** `gaps`: as they were planned. Live ingest may have filled them before the run looked for itself, if it saw the sink then. */
  #outcome(sink: string, gaps: readonly Gap[], run: Filled | null) {
    const lacked = run?.lacked.get(sink);
    if (lacked !== undefined) {
      const lacks = run?.left.get(sink) ?? 0n;
      return { recovered: lacked - lacks, lacks };
    }
    return { recovered: 0n, lacks: this.#seen?.has(sink) === true ? 0n : positionsOf(gaps) };
  }

  stop(reason: string): void {
    this.#stopped = true;
    this.#drain?.(reason);
  }

  /** Null: nothing was looked at. */
  async #fill(): Promise<Filled | null> {
    const { whole, choice } = this.#s;
    const sinks = sinksToFill(whole.sinks, choice.sinks, whole.file);
    if (sinks.length === 0 || this.#stopped) return null;
    const look: RoundScope["look"] = async (config, chosen) => {
      const plan = await this.#s.look(config, chosen);
      this.#seen ??= new Set(plan.sinks.map((s) => s.sink));
      return plan;
    };
    const recovery = new BesideRecovery({
      ...this.#s,
      look,
      config: withSinks(whole, [whole.sink, ...sinks]),
      choice: { ...choice, sinks: sinks.map((s) => s.name) },
    });
    this.#drain = (reason) => recovery.drain(reason);
    const filled = await recovery.filler.run();
    this.#drain = null;
    for (const [sink, cause] of filled.failed)
      if (cause === null) this.#idle.add(sink);
      else this.#troubles.set(sink, cause);
    return filled;
  }

  #note(e: TwgEvent): void {
    if (e.e !== "sink.troubled" && e.e !== "sink.detached") return;
    this.#troubles.set(e.sink, fromWire(e.failure));
    if (this.#owned() !== null) this.#drain?.("another process writes the sink");
  }

  #owned(): Failure | null {
    return [...this.#troubles.values()].find((f) => f.code === "coverage.owned") ?? null;
  }

  #behind(sinks: Recovered["sinks"]): Failure {
    const owned = this.#owned();
    if (owned !== null) return owned;
    const behind = [...sinks].filter(([, { lacks }]) => lacks > 0n);
    const cause = behind.map(([sink]) => this.#troubles.get(sink)).find((f) => f !== undefined);
    const text = behind.map(([sink, { lacks }]) => `${sink} lacks ${lacks} positions`).join(", ");
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
