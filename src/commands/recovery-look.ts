/**
 * What a process that recovers sees: the gaps of each sink, which part of them is nobody's now, and who is at the rest. Each look
 * opens what it reads and closes it again.
 */
import { linuxIdentity } from "../adapters/coverage/host-identity.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { normalRanges } from "../core/coverage/ranges.ts";
import { Silence } from "../core/coverage/silence.ts";
import { recoveryInstance } from "../core/coverage/windows.ts";
import { toWire } from "../core/failure/failure.ts";
import type { LeaseSeen } from "../core/observe/recovery-events.ts";
import { tellGaps } from "../core/pipeline/tell-gaps.ts";
import type { Observer } from "../core/ports/observer.ts";
import type { StreamKey } from "../core/records/stream.ts";
import { freeGaps } from "../core/recovery/free-gaps.ts";
import type { Wanted } from "../core/recovery/replay-order.ts";
import type { Outlook } from "../core/recovery/service.ts";
import { positions } from "../core/recovery/tell-windows.ts";
import type { Cli } from "./cli.ts";
import type { PipelineConfig, ResolvedConfig } from "./config-file.ts";
import { type Gap, leasesOf } from "./coverage-summary.ts";
import { type Narrow, planRecovery, type RecoverChoice, type RecoverPlan } from "./recover-plan.ts";
import type { StateAt } from "./sink-states.ts";

export interface Seen extends Outlook {
  /** What is free. */
  readonly plan: RecoverPlan;
}

export interface LookParts {
  readonly loaded: PipelineConfig;
  readonly cli: Cli;
  readonly observer: Observer;
  /** Nobody else in this process tells what sinks lack. */
  readonly tellsGaps: boolean;
}

interface SinkSeen {
  readonly free: bigint;
  readonly behind: bigint;
  readonly leases: readonly LeaseSeen[];
}

const ALL: RecoverChoice = { sinks: [], topics: [], from: null, to: null, replan: false };
/** Leases of an event. */
const MOST_LEASES = 500;
/** By which silence is judged as recovery judges it; it is in no store. */
const SELF = recoveryInstance("look");

export class RecoveryLook {
  readonly #p: LookParts;
  readonly #silences = new Map<string, Silence>();
  readonly #seen = new Map<string, SinkSeen>();
  /** Since when the first position of what a sink lacks of a stream is the one that it is. */
  readonly #oldest = new Map<string, { readonly from: bigint; readonly at: number }>();

  constructor(parts: LookParts) {
    this.#p = parts;
  }

  async look(config: ResolvedConfig, choice: RecoverChoice = ALL): Promise<Seen> {
    const { loaded, cli, observer } = this.#p;
    const narrow: Narrow = (sink, gaps, states) => {
      const silence = this.#silenceOf(sink.name, config.recovery.lease_ms);
      const owners = states.flatMap((s) => s.state.owners);
      const gone = new Set(silence.gone(owners, SELF).keys());
      const lacks: Wanted = new Map(gaps.map((g) => [g.stream, normalRanges(g.ranges)]));
      const { free, behind } = freeOf(lacks, states, gone);
      const leases = states.flatMap(({ state }) => leasesOf(state));
      this.#seen.set(sink.name, {
        ...{ free: positions(free), behind: positions(behind) },
        leases: leases.map(({ holder, topic, partition, from, next }) => {
          const silentMs = silence.silentMs(holder);
          return { sink: sink.name, holder, topic, partition, from, next, silentMs };
        }),
      });
      if (this.#p.tellsGaps) this.#tell(sink.name, lacks, gaps);
      return gaps.flatMap((g) => {
        const ranges = free.get(g.stream) ?? [];
        return ranges.length === 0 ? [] : [{ ...g, ranges }];
      });
    };
    const plan = await planRecovery(loaded, config, choice, cli, narrow);
    const { away } = plan;
    // Of those that were not looked at now it is known what the look before said.
    const all = [...this.#seen.values()];
    const there = [...this.#seen].flatMap(([name, seen]) => (away.has(name) ? [] : [seen]));
    const free = sumOf(there, "free");
    const leases = all.flatMap((s) => s.leases).slice(0, MOST_LEASES);
    observer.emit({ e: "recovery.looked", free, behind: sumOf(all, "behind"), leases });
    // Else nobody would hear of them: what cannot be seen is not among what is behind.
    for (const [sink, failure] of away)
      observer.emit({ e: "recovery.troubled", sink, failure: toWire(failure) });
    return { free, behind: sumOf(there, "behind"), plan, away };
  }

  #silenceOf(sink: string, leaseMs: number): Silence {
    const known = this.#silences.get(sink);
    if (known !== undefined) return known;
    const made = new Silence({ clock: systemClock, host: linuxIdentity(), leaseMs });
    this.#silences.set(sink, made);
    return made;
  }

  #tell(sink: string, lacks: Wanted, gaps: readonly Gap[]): void {
    const now = systemClock.monotonic();
    const of = (stream: StreamKey) => `${sink}\n${stream}`;
    for (const key of [...this.#oldest.keys()])
      if (key.startsWith(`${sink}\n`) && !lacks.has(key.slice(sink.length + 1))) this.#oldest.delete(key);
    let oldest = now;
    for (const [stream, ranges] of lacks) {
      const { from } = ranges[0]!;
      const known = this.#oldest.get(of(stream));
      const at = known?.from === from ? known.at : now;
      this.#oldest.set(of(stream), { from, at });
      oldest = Math.min(oldest, at);
    }
    const streams = gaps.map(({ stream, ranges }) => {
      const [first, last] = [ranges[0]!, ranges.at(-1)!];
      return { stream, from: first.from, next: last.next, ranges: normalRanges(ranges) };
    });
    const sums = { gaps: gaps.reduce((n, g) => n + g.ranges.length, 0), positions: positions(lacks) };
    tellGaps(
      this.#p.observer,
      sink,
      { ...sums, oldestMs: gaps.length === 0 ? null : now - oldest, streams },
      false,
    );
  }
}

const sumOf = (seen: readonly SinkSeen[], of: "free" | "behind"): bigint =>
  seen.reduce((n, s) => n + s[of], 0n);

/** A sink of which nothing is known yet is nobody's. */
function freeOf(lacks: Wanted, states: readonly StateAt[], gone: ReadonlySet<string>) {
  const [first] = states;
  return first === undefined ? { free: lacks, behind: lacks } : freeGaps(lacks, first.state, gone);
}
