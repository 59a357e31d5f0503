/** Recovery within `twg stream`: all that a process does whose role is recovery, and what one does beside live ingest whose role is both. */
import { systemChance } from "../adapters/system/chance.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { Failure, toWire } from "../core/failure/failure.ts";
import type { Observer } from "../core/ports/observer.ts";
import { recoveryLimit } from "../core/recovery/recovery-limit.ts";
import { RecoveryService, type Round } from "../core/recovery/service.ts";
import { type LiveLoad, Yielding } from "../core/recovery/yielding.ts";
import type { Timer } from "../core/time/clock.ts";
import type { Cli } from "./cli.ts";
import { type PipelineConfig, type ResolvedConfig, resolveSecrets } from "./config-file.ts";
import { recoveryEvents } from "./recovery-events.ts";
import { RecoveryLook, type Seen } from "./recovery-look.ts";
import { RecoveryRound } from "./recovery-round.ts";

export interface StreamRecoveryParts {
  readonly loaded: PipelineConfig;
  readonly cli: Cli;
  readonly observer: Observer;
  /** Of live ingest in this process; null: it has none. */
  readonly load: (() => LiveLoad) | null;
  /** Ends once nothing is behind. */
  readonly untilRecovered: boolean;
}

interface Look extends Seen {
  /** With secrets as they are now: what was replaced is used from the next look on. */
  readonly config: ResolvedConfig;
}

export class StreamRecovery {
  readonly #p: StreamRecoveryParts;
  readonly #look: RecoveryLook;
  readonly #service: RecoveryService<Look>;
  readonly #waits: Yielding | null;
  readonly #late = Promise.withResolvers<void>();
  #overdue: Timer | null = null;
  #running = false;
  #round: RecoveryRound | null = null;
  #stopped: string | null = null;
  #isLive = true;

  constructor(parts: StreamRecoveryParts) {
    this.#p = parts;
    const { loaded, cli, load, untilRecovered } = parts;
    const observer = recoveryEvents(parts.observer);
    const [clock, chance] = [systemClock, systemChance];
    this.#waits = load === null ? null : new Yielding({ clock, observer, load });
    this.#look = new RecoveryLook({ loaded, cli, observer, tellsGaps: load === null });
    const { poll_ms: pollMs, poll_max_ms } = loaded.recovery;
    const options = { pollMs, mostMs: Math.max(pollMs, poll_max_ms), untilRecovered };
    const limit = recoveryLimit(loaded.recovery, clock, { isLive: () => this.#isLive, waits: this.#waits });
    this.#service = new RecoveryService(
      // Live ingest has enough to do while it begins.
      { ...options, firstMs: load === null || untilRecovered ? 0 : pollMs },
      {
        ...{ clock, chance, observer },
        look: async () => {
          const config = await resolveSecrets(loaded, cli.environment);
          return { ...(await this.#look.look(config)), config };
        },
        fill: (seen) => this.#fill(seen, { observer, limit }),
      },
    );
  }

  /**
   * Until it is stopped, and no longer than a drain may take then, whatever hangs: the process ends, and others follow in its windows.
   * Rejects only where it is to end by itself and cannot fill what is behind.
   */
  async run(): Promise<void> {
    this.#running = true;
    try {
      await Promise.race([this.#service.run(), this.#late.promise]);
    } finally {
      this.#running = false;
      this.#overdue?.cancel();
    }
  }

  stop(reason: string): void {
    const { drain_ms: ms } = this.#p.loaded.pipeline;
    if (this.#running) this.#overdue ??= systemClock.after(ms, () => this.#leave(ms));
    this.#stopped = reason;
    this.#service.stop();
    this.#round?.stop(reason);
  }

  #leave(ms: number): void {
    const failure = new Failure(
      "delivery.drain_timeout",
      `recovery did not come to its end within ${ms} ms`,
      {
        hint: "Nothing is lost: what it was at is filled by whoever looks next. Does a sink, or raw, give no answer?",
      },
    );
    this.#p.observer.emit({ e: "recovery.troubled", sink: null, failure: toWire(failure) });
    this.#late.resolve();
  }

  async #fill(
    { config, plan }: Look,
    parts: Pick<ConstructorParameters<typeof RecoveryRound>[0], "observer" | "limit">,
  ): Promise<Round> {
    this.#isLive = plan.live || this.#p.load !== null;
    const round = new RecoveryRound({
      ...parts,
      whole: config,
      onlyFree: true,
      choice: { sinks: [], topics: [], from: null, to: null, replan: false },
      look: async (of, choice) => {
        const seen = await this.#look.look(of, choice);
        this.#isLive = seen.plan.live || this.#p.load !== null;
        return seen.plan;
      },
    });
    this.#round = round;
    try {
      if (this.#stopped !== null) return { filled: 0n, failure: null };
      const { filled, failure } = await round.run(plan);
      return { filled, failure: this.#stopped === null ? failure : null };
    } finally {
      this.#round = null;
    }
  }
}

/** Recovery in the process of live ingest: while that runs, or, where it ends once it has caught up, after it. */
export class RecoveryBeside {
  readonly #recovery: StreamRecovery;
  readonly #after: boolean;
  #running: Promise<void> | null;
  #stopped = false;

  /** `load`: of live ingest, which recovery waits for while it runs, and not for what the source holds once it has ended. */
  constructor(
    parts: Pick<StreamRecoveryParts, "loaded" | "cli" | "observer">,
    load: () => LiveLoad,
    after: boolean,
  ) {
    this.#recovery = new StreamRecovery({ ...parts, load: after ? null : load, untilRecovered: after });
    this.#after = after;
    this.#running = after ? null : this.#recovery.run();
  }

  stop(reason: string): void {
    this.#stopped = true;
    this.#recovery.stop(reason);
  }

  /** Ingest came to its end without a failure. */
  async ingestEnded(): Promise<void> {
    if (this.#after && !this.#stopped) await this.#recovery.run();
  }

  async end(): Promise<void> {
    this.stop("live ingest ended");
    await this.#running;
    this.#running = null;
  }
}
