/**
 * Telemetry as a whole: one observer that turns events into log lines, metrics, health and progress, one timer that
 * lets the watchdog, the rates and the progress line have their turn, one HTTP server.
 *
 * Nothing in here may stop the pipeline: a fault of ours is counted (`twg_telemetry_errors_total`) and swallowed.
 */

import { Digest } from "../../core/observe/digest.ts";
import { applyHealth } from "../../core/observe/event-health.ts";
import { meterEvent } from "../../core/observe/event-meters.ts";
import type { Level, TwgEvent } from "../../core/observe/events.ts";
import { HealthTree, type Role, stateRank } from "../../core/observe/health.ts";
import { declareMeters, type Meters } from "../../core/observe/metric-catalogue.ts";
import { Registry } from "../../core/observe/metrics.ts";
import { lagOf, PipelineView } from "../../core/observe/pipeline-view.ts";
import { RecoveryView } from "../../core/observe/recovery-view.ts";
import { Watchdog } from "../../core/observe/watchdog.ts";
import type { Observer } from "../../core/ports/observer.ts";
import type { Clock, Timer } from "../../core/time/clock.ts";
import type { LineWriter } from "./line-writer.ts";
import { type LogFormat, Logger } from "./logger.ts";
import { Progress } from "./progress.ts";
import { prometheusText } from "./prometheus.ts";
import { Screen, type Terminal } from "./screen.ts";
import { type HttpOptions, type StatusServer, startServer } from "./server.ts";
import type { Stats } from "./stats.ts";

export interface TelemetryOptions {
  readonly clock: Clock;
  readonly pipeline: string;
  readonly version: string;
  /** Name of the sink that gates readiness. */
  readonly primaryRaw: string;
  /** Default: it reads the source, and does not recover. */
  readonly role?: Role;
  readonly format: LogFormat;
  readonly level: Level;
  readonly color: boolean;
  readonly out: LineWriter;
  /** Null: no live line, progress goes to the log. */
  readonly terminal: Terminal | null;
  /** Null: no HTTP server. */
  readonly http: HttpOptions | null;
  /** Resident memory in bytes and CPU time in seconds of this process. */
  readonly usage: () => { readonly residentBytes: number; readonly cpuSeconds: number };
  readonly stallMs?: number;
  readonly fatalMs?: number;
  /** `roll_interval_ms`: how long fetched data may rightly wait in an open file. */
  readonly rollMs?: number;
  /** Called once the stall is fatal, for whoever ends the run. */
  readonly onFatalStall?: () => void;
}

/** The part of a budget that is shown. `core/delivery/budget.ts` is one. */
export interface WatchedBudget {
  readonly maxBytes: number;
  readonly used: number;
  owners(): readonly { readonly owner: string | number; readonly bytes: number }[];
}

export interface Telemetry {
  readonly observer: Observer;
  readonly health: HealthTree;
  readonly metrics: Registry;
  /** From then on bytes in flight are what the budget says. */
  watchBudget(budget: WatchedBudget): void;
  stats(): Stats;
  /** What live ingest has to do: positions at the source that were not fetched yet, and those that were since the start. */
  load(): { readonly backlog: number; readonly fetched: number };
  /** Starts timer and server; throws a Failure of `observability.*`. Returns the server's URL, null without one. */
  start(): string | null;
  /** Ends both, writes what is pending. Waits for a slow reader of the log at most a second. */
  stop(): Promise<void>;
}

const TICK_MS = 500;
/** The last lines are worth waiting for, a reader that stands still is not. */
const FLUSH_MS = 1_000;

export function createTelemetry(options: TelemetryOptions): Telemetry {
  return new Assembled(options);
}

class Assembled implements Telemetry {
  readonly observer: Observer = { emit: (event) => this.#emit(event) };
  readonly health: HealthTree;
  readonly metrics = new Registry();
  readonly #o: TelemetryOptions;
  readonly #meters: Meters;
  readonly #view = new PipelineView();
  readonly #digest: Digest;
  readonly #recovery: RecoveryView;
  readonly #logger: Logger;
  readonly #progress: Progress;
  readonly #watchdog: Watchdog;
  readonly #startedAt: number;
  #budget: WatchedBudget | null = null;
  #coverageTroubled = false;
  #server: StatusServer | null = null;
  #timer: Timer | null = null;

  constructor(options: TelemetryOptions) {
    this.#o = options;
    const { clock } = options;
    this.#startedAt = clock.monotonic();
    this.health = new HealthTree(clock, options.role);
    this.#meters = declareMeters(this.metrics);
    this.metrics.onCollect(() => this.#collect());
    this.#digest = new Digest(clock, this.#view);
    this.#recovery = new RecoveryView(clock);
    const screen = new Screen(options.out, options.format === "text" ? options.terminal : null);
    this.#logger = new Logger({
      clock,
      format: options.format,
      level: options.level,
      color: options.color,
      write: (line) => screen.line(line),
      suppressed: () => this.#meters.logSuppressed.add(1),
    });
    this.#progress = new Progress({
      clock,
      view: this.#view,
      health: this.health,
      inFlight: () => this.#inFlight(),
      live: screen.interactive ? (text) => screen.live(text) : null,
      emit: (event) => this.#emit(event),
    });
    this.#watchdog = new Watchdog({
      clock,
      work: () => this.#work(),
      emit: (event) => this.#emit(event),
      ...(options.stallMs === undefined ? {} : { stallMs: options.stallMs }),
      ...(options.fatalMs === undefined ? {} : { fatalMs: options.fatalMs }),
      ...(options.rollMs === undefined ? {} : { rollMs: options.rollMs }),
    });
    this.#firstValues();
  }

  /** A counter that first appears above zero has no increase that an alert could see. */
  #firstValues(): void {
    const m = this.#meters;
    m.pipelineInfo.set(1, this.#o.pipeline, this.#o.version);
    m.startTime.set(this.#o.clock.now() / 1000);
    m.sourceUp.set(0);
    m.stalled.set(0);
    for (const c of [m.stalls, m.acknowledgeFailures, m.logSuppressed, m.telemetryErrors]) c.add(0);
    for (const c of [m.sinkRecords, m.sinkBytes, m.sinkFiles]) c.add(0, this.#o.primaryRaw);
    if ((this.#o.role ?? "ingest") === "ingest") return;
    m.recoveryActive.set(0);
    for (const c of [m.recoveryRecords, m.recoveryBytes, m.recoveryYields]) c.add(0);
  }

  watchBudget(budget: WatchedBudget): void {
    this.#budget = budget;
  }

  start(): string | null {
    this.#arm();
    if (this.#o.http === null) return null;
    this.#server = startServer(this.#o.http, {
      live: () => this.health.live(),
      ready: () => this.health.ready(),
      stats: () => this.stats(),
      metrics: () => prometheusText(this.metrics.families()),
    });
    return this.#server.url;
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = null;
    this.#progress.close();
    this.#logger.close();
    await this.#server?.stop();
    let timer: Timer | null = null;
    const late = new Promise<void>((resolve) => {
      timer = this.#o.clock.after(FLUSH_MS, resolve);
    });
    await Promise.race([this.#o.out.flush(), late]);
    (timer as Timer | null)?.cancel();
  }

  stats(): Stats {
    const { residentBytes, cpuSeconds } = this.#o.usage();
    const recovery = this.#recovery.report();
    return {
      pipeline: this.#o.pipeline,
      version: this.#o.version,
      uptime_ms: this.#o.clock.monotonic() - this.#startedAt,
      bytes_in_flight: this.#inFlight(),
      budget_bytes: this.#budget?.maxBytes ?? null,
      resident_bytes: residentBytes,
      cpu_seconds: cpuSeconds,
      health: this.health.report(),
      ...this.#digest.report(),
      ...(recovery === null ? {} : { recovery }),
    };
  }

  load() {
    const partitions = [...this.#view.partitions.values()];
    return { backlog: this.#view.backlog(), fetched: partitions.reduce((n, p) => n + p.positions, 0) };
  }

  #emit(event: TwgEvent): void {
    try {
      const told = this.#isNews(event);
      this.#view.apply(event);
      this.#recovery.apply(event);
      applyHealth(this.health, event, { primaryRaw: this.#o.primaryRaw });
      meterEvent(this.#meters, event);
      if (event.e === "stream.ended") this.#forget(event.topic, event.partition);
      if (told) this.#logger.log(event);
      if (event.e === "stall.fatal") this.#o.onFatalStall?.();
    } catch {
      this.#meters.telemetryErrors.add(1);
    }
  }

  /** That something works is worth a line only if it did not before. */
  #isNews(event: TwgEvent): boolean {
    if (event.e === "source.healthy") return this.health.state("source") !== "ok";
    // Not by the health tree: a set that was covered has shown there already that the store works.
    if (event.e === "coverage.troubled") this.#coverageTroubled = true;
    if (event.e !== "coverage.healthy") return true;
    const was = this.#coverageTroubled;
    this.#coverageTroubled = false;
    return was;
  }

  #arm(): void {
    this.#timer = this.#o.clock.after(TICK_MS, () => {
      this.#arm();
      try {
        this.#tick();
      } catch {
        this.#meters.telemetryErrors.add(1);
      }
    });
  }

  #tick(): void {
    this.#watchdog.check();
    this.#digest.tick();
    this.#recovery.tick();
    this.#logger.tick();
    // Of a process that only recovers its own events tell more.
    if (this.#o.role !== "recovery") this.#progress.tick();
  }

  #inFlight(): number {
    return this.#budget?.used ?? this.#view.inFlight();
  }

  #work() {
    const down = (["source", "primary_raw", "coverage"] as const).some(
      (p) => this.health.state(p) === "failed",
    );
    return {
      backlog: this.#view.stopping ? 0 : this.#view.backlog(),
      bytesInFlight: this.#inFlight(),
      lag: this.#view.stopping ? 0 : (this.#view.lag() ?? 0),
      progress: this.#view.progress,
      excused: down,
    };
  }

  /** Gauges whose truth is elsewhere, read when somebody asks. */
  #collect(): void {
    const m = this.#meters;
    for (const p of this.#view.partitions.values()) {
      m.sourcePosition.set(Number(p.position), p.topic, p.partition);
      m.acknowledgedPosition.set(Number(p.acknowledged), p.topic, p.partition);
      if (p.end === null) continue;
      m.endPosition.set(Number(p.end), p.topic, p.partition);
      m.lag.set(lagOf(p) ?? 0, p.topic, p.partition);
    }
    const owners =
      this.#budget?.owners() ?? [...this.#view.laneBytes].map(([owner, bytes]) => ({ owner, bytes }));
    for (const { owner, bytes } of owners) m.bytesInFlight.set(bytes, owner);
    if (this.#budget !== null) m.budgetBytes.set(this.#budget.maxBytes);
    for (const part of this.health.parts) m.health.set(stateRank(this.health.state(part)), part);
    m.live.set(this.health.live().ok ? 1 : 0);
    m.ready.set(this.health.ready().ok ? 1 : 0);
    const { residentBytes, cpuSeconds } = this.#o.usage();
    m.residentBytes.set(residentBytes);
    m.cpuSeconds.reach(cpuSeconds);
  }

  /** A partition that is no longer ours must not go on showing its last lag. */
  #forget(topic: string, partition: number): void {
    const m = this.#meters;
    for (const gauge of [m.sourcePosition, m.acknowledgedPosition, m.endPosition, m.lag])
      gauge.remove(topic, partition);
  }
}
