/** `twg stream`: runs a pipeline until it is stopped, and turns signals into its life. */
import { systemClock } from "../adapters/system/clock.ts";
import { descriptorWrite, QueuedLines } from "../adapters/telemetry/line-writer.ts";
import { Logger } from "../adapters/telemetry/logger.ts";
import { createTelemetry, type Telemetry } from "../adapters/telemetry/telemetry.ts";
import { LISTEN_OFF } from "../core/config/sections.ts";
import { asFailure, Failure, toWire } from "../core/failure/failure.ts";
import type { Runner } from "../core/pipeline/runner.ts";
import type { Cli, StreamOptions } from "./cli.ts";
import {
  askSecrets,
  loadConfig,
  type PipelineConfig,
  type ResolvedConfig,
  resolveSecrets,
} from "./config-file.ts";
import { crashHook, crashPlan } from "./crash-hook.ts";
import { exitCodeOf } from "./exit-code.ts";
import { rawOf } from "./raw-of.ts";
import { watchSecrets } from "./secret-watch.ts";
import { listenToSignals } from "./signals.ts";
import { useStateFolder } from "./state-folder.ts";
import { buildStream, lanesOf, type StreamParts } from "./stream-parts.ts";
import { RecoveryBeside, StreamRecovery } from "./stream-recovery.ts";
import { VERSION } from "./version.ts";

export async function runStream(options: StreamOptions, cli: Cli): Promise<number> {
  // A reload that comes while we start or end has nothing to reload, and must not end the process.
  process.on("SIGHUP", () => {});
  try {
    const config = await loadConfig(options.config);
    if (config.source.type !== "kafka") throw endless(config.source.type, options.config);
    useStateFolder(config);
    const resolved = await resolveSecrets(config, cli.environment);
    const run = config.pipeline.role === "recovery" ? runRecovery : runPipeline;
    return await run(config, resolved, options, cli);
  } catch (e) {
    // What reads JSON logs must be able to read this too; people get it as every command prints it.
    if (options.logFormat !== "json") throw e;
    return tellAsJson(asFailure(e), cli);
  }
}

function endless(type: string, at: string): Failure {
  return new Failure("config.conflict", `a source of type ${JSON.stringify(type)} has an end`, {
    at,
    hint: "Use `twg batch -c` for it",
  });
}

/** Before telemetry is there: one line, whatever level was asked for, since it is an error. */
function tellAsJson(failure: Failure, cli: Cli): number {
  const write = (line: string) => cli.err(`${line}\n`);
  const logger = new Logger({ clock: systemClock, format: "json", level: "error", color: false, write });
  logger.log({ e: "failure", scope: "configuration", failure: toWire(failure) });
  return exitCodeOf(failure);
}

/** A process that reads raw in place of the source, and has nothing open while nothing is behind. */
async function runRecovery(
  loaded: PipelineConfig,
  resolved: ResolvedConfig,
  options: StreamOptions,
  cli: Cli,
): Promise<number> {
  if (options.acceptGap)
    throw new Failure("cli.usage", "--accept-gap is about the source, which recovery does not read", {
      at: options.config,
    });
  rawOf(resolved);
  const telemetry = telemetryOf(resolved, options, cli, () => {});
  const { observer } = telemetry;
  const { name: pipeline } = loaded.pipeline;
  const parts = { loaded, cli, observer, load: null, untilRecovered: options.untilCaughtUp };
  const recovery = new StreamRecovery(parts);
  let reason = "nothing is behind";
  return await toItsEnd(telemetry, async () => {
    const url = telemetry.start();
    if (url !== null) observer.emit({ e: "http.listening", url });
    observer.emit({ e: "pipeline.started", pipeline, version: VERSION, lanes: 0 });
    const stop = (why: string) => {
      reason = why;
      observer.emit({ e: "pipeline.stopping", reason });
      recovery.stop(why);
    };
    // Each look asks for secrets anew.
    const signals = listenToSignals({ drain: stop }, () => {});
    try {
      await recovery.run();
    } finally {
      signals.close();
    }
    observer.emit({ e: "pipeline.stopped", rows: 0, reason });
  });
}

async function toItsEnd(telemetry: Telemetry, work: () => Promise<void>): Promise<number> {
  let code = 0;
  try {
    await work();
  } catch (e) {
    const failure = asFailure(e);
    code = exitCodeOf(failure);
    telemetry.observer.emit({ e: "failure", scope: "pipeline", failure: toWire(failure) });
  }
  await telemetry.stop();
  return code;
}

async function runPipeline(
  config: PipelineConfig,
  resolved: ResolvedConfig,
  options: StreamOptions,
  cli: Cli,
): Promise<number> {
  const life: { runner: Runner | null } = { runner: null };
  const telemetry = telemetryOf(resolved, options, cli, () =>
    life.runner?.stalled(resolved.pipeline.stall_ms),
  );
  let running: StreamParts | null = null;
  const secrets = watchSecrets(telemetry.observer, systemClock, async () => {
    if (running !== null) await reread(config, cli, running, telemetry);
  });
  const { observer } = secrets;
  return await toItsEnd(telemetry, async () => {
    const stream = buildStream(
      resolved,
      options,
      observer,
      crashHook(crashPlan(cli.environment.TWG_CRASH_AT, null)),
    );
    life.runner = stream.runner;
    running = stream;
    telemetry.watchBudget(stream.budget);
    await stream.prepare();
    const url = telemetry.start();
    if (url !== null) observer.emit({ e: "http.listening", url });
    observer.emit({
      e: "pipeline.started",
      pipeline: config.pipeline.name,
      version: VERSION,
      lanes: lanesOf(resolved),
    });
    const beside = besideIngest(config, options, cli, telemetry);
    const drain = (reason: string) => {
      beside?.stop(reason);
      stream.runner.drain(reason);
    };
    const signals = listenToSignals({ drain }, secrets.reread);
    try {
      const { rows, reason } = await stream.runner.run();
      await beside?.ingestEnded();
      observer.emit({ e: "pipeline.stopped", rows, reason });
    } finally {
      await beside?.end();
      signals.close();
    }
  });
}

/** Null: the role is live ingest alone. */
function besideIngest(
  loaded: PipelineConfig,
  { untilCaughtUp }: StreamOptions,
  cli: Cli,
  telemetry: Telemetry,
): RecoveryBeside | null {
  if (loaded.pipeline.role !== "both" || loaded.sinks.length === 1) return null;
  const { observer } = telemetry;
  return new RecoveryBeside({ loaded, cli, observer }, () => telemetry.load(), untilCaughtUp);
}

function telemetryOf(
  config: ResolvedConfig,
  options: StreamOptions,
  cli: Cli,
  onFatalStall: () => void,
): Telemetry {
  const { observability: o, pipeline, sink } = config;
  const terminal = cli.errIsTerminal ? { columns: () => process.stderr.columns } : null;
  return createTelemetry({
    clock: systemClock,
    pipeline: pipeline.name,
    version: VERSION,
    primaryRaw: sink.name,
    role: pipeline.role,
    format: options.logFormat,
    level: options.logLevel,
    color: cli.errColour,
    out: new QueuedLines(descriptorWrite(2), (ms, fn) => void systemClock.after(ms, fn)),
    terminal,
    http:
      o.listen === LISTEN_OFF
        ? null
        : {
            listen: o.listen,
            tls: o.tls === undefined ? null : { cert: o.tls.cert.reveal(), key: o.tls.key.reveal() },
            token: o.token?.reveal() ?? null,
          },
    usage: () => {
      const { user, system } = process.cpuUsage();
      return { residentBytes: process.memoryUsage.rss(), cpuSeconds: (user + system) / 1e6 };
    },
    fatalMs: pipeline.stall_ms,
    onFatalStall,
    rollMs: sink.type === "parquet" ? sink.roll_interval_ms : sink.commit_interval_ms,
  });
}

/** New connections use the new values; those that are open go on. A secret that is missing changes nothing. */
async function reread(
  config: PipelineConfig,
  cli: Cli,
  stream: StreamParts,
  { observer }: Telemetry,
): Promise<void> {
  try {
    const resolved = await resolveSecrets(config, cli.environment);
    const secrets = (await askSecrets(config, cli.environment)).length;
    const changed = stream.renew(resolved);
    observer.emit({ e: "secrets.reread", secrets, changed: changed ? 1 : 0 });
  } catch (e) {
    observer.emit({ e: "failure", scope: "secrets", failure: toWire(asFailure(e)) });
  }
}
