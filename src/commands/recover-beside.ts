/** Sinks that are filled window by window, beside whoever writes them: the parts that the filler needs. */
import { systemClock } from "../adapters/system/clock.ts";
import { normalRanges } from "../core/coverage/ranges.ts";
import type { RateLimit } from "../core/delivery/rate-limit.ts";
import { Failure } from "../core/failure/failure.ts";
import { PRIMARY } from "../core/pipeline/secondary-parts.ts";
import type { Observer } from "../core/ports/observer.ts";
import { type Backlog, Filler, type FillJob, taking } from "../core/recovery/filler.ts";
import { type PlanPieces, planPhases } from "../core/recovery/plan-phases.ts";
import type { Wanted } from "../core/recovery/replay-order.ts";
import type { ResolvedConfig } from "./config-file.ts";
import { type ReplayHost, type ReplayHosts, replayHosts, replayRunner } from "./recover-parts.ts";
import type { RecoverChoice, RecoverPlan } from "./recover-plan.ts";
import { HEARTBEAT_MS } from "./sink-parts.ts";
import type { Beside } from "./stream-parts.ts";

/** Between two looks at what others hold. */
const RETRY_MS = 1_000;
/** Others that hold what is missing get on, or are out by then. */
const PATIENCE_LEASES = 4;

export interface RecoverScope {
  /** With the sinks to fill. */
  readonly config: ResolvedConfig;
  /** As it is loaded. */
  readonly whole: ResolvedConfig;
  readonly choice: RecoverChoice;
  readonly observer: Observer;
  /** Of all that is read again in this process. */
  readonly limit: RateLimit;
  /** What is to be done now. */
  readonly look: (config: ResolvedConfig, choice: RecoverChoice) => Promise<RecoverPlan>;
}

export class BesideRecovery {
  readonly filler: Filler;
  readonly #scope: RecoverScope;
  readonly #hosts: ReplayHosts;
  /** By plan. */
  readonly #earlier = new Map<string, ReplayHost | Failure>();
  #drain: ((reason: string) => void) | null = null;
  #stopped: string | null = null;

  constructor(scope: RecoverScope) {
    this.#scope = scope;
    this.#hosts = replayHosts(scope);
    const { beside, config } = this.#hosts.now;
    const sinks = beside.map(({ spec, parts }) => {
      if (parts.windows === undefined) throw new Failure("internal.bug", "a sink without windows");
      return { name: spec.name, after: spec.after.filter((n) => n !== PRIMARY), coverage: parts.windows };
    });
    const options = {
      windowBytes: config.recovery.window_bytes,
      heartbeatMs: HEARTBEAT_MS,
      retryMs: RETRY_MS,
      patienceMs: PATIENCE_LEASES * config.recovery.lease_ms,
    };
    this.filler = new Filler(sinks, options, {
      clock: systemClock,
      look: (without) => this.#look(without),
      run: (job) => this.#run(job),
      observer: scope.observer,
    });
  }

  drain(reason: string): void {
    this.#stopped = reason;
    this.filler.stop();
    this.#drain?.(reason);
  }

  async #look(without: ReadonlySet<string>): Promise<Backlog> {
    const { config, choice, look } = this.#scope;
    const sinks = choice.sinks.filter((s) => !without.has(s));
    // None named would be all of them.
    const plan = await look(config, sinks.length === 0 ? choice : { ...choice, sinks });
    const backlog = backlogOf(plan);
    return { ...backlog, pieces: plan.pieces, unusable: await this.#unusable(backlog.lacks, plan.pieces) };
  }

  async #unusable(
    lacks: ReadonlyMap<string, Wanted>,
    pieces: PlanPieces,
  ): Promise<ReadonlyMap<string, Failure>> {
    const unusable = new Map<string, Failure>();
    for (const { plan } of planPhases(lacks, pieces)) {
      const host = await this.#hostOf(plan);
      if (plan !== null && host instanceof Failure) unusable.set(plan, host);
    }
    return unusable;
  }

  async #hostOf(plan: string | null): Promise<ReplayHost | Failure> {
    const known = plan === null ? this.#hosts.now : this.#earlier.get(plan);
    if (plan === null || known !== undefined) return known ?? this.#hosts.now;
    const read = await this.#hosts.plans.get(plan);
    const host = read instanceof Failure ? read : this.#hosts.of(read);
    this.#earlier.set(plan, host);
    return host;
  }

  async #run(job: FillJob): Promise<void> {
    const host = await this.#hostOf(job.plan);
    if (host instanceof Failure) throw host;
    const { beside } = host;
    const specs = taking(
      beside.map((b) => b.spec),
      job,
    );
    const part = job.sinks.map(({ sink }, i): Beside => ({ ...beside[sink]!, spec: specs[i]! }));
    const cuts = (await host.dedup?.cuts()) ?? new Map();
    const runner = replayRunner(host, part, { ...job, cuts });
    this.#drain = (reason) => runner.drain(reason);
    if (this.#stopped !== null) return;
    await runner.run();
    this.#drain = null;
  }
}

function backlogOf({ sinks, index, away }: RecoverPlan): Backlog {
  const lacks = sinks.map(
    ({ sink, gaps }) => [sink, new Map(gaps.map((g) => [g.stream, normalRanges(g.ranges)]))] as const,
  );
  return { lacks: new Map(lacks.filter(([, wanted]) => wanted.size > 0)), index, away };
}
