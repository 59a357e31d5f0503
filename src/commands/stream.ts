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
import { watchSecrets } from "./secret-watch.ts";
import { listenToSignals } from "./signals.ts";
import { useStateFolder } from "./state-folder.ts";
import { buildStream, lanesOf, type StreamParts } from "./stream-parts.ts";
import { VERSION } from "./version.ts";

export async function runStream(options: StreamOptions, cli: Cli): Promise<number> {
  // A reload that comes while we start or end has nothing to reload, and must not end the process.
  process.on("SIGHUP", () => {});
  try {
    const config = await loadConfig(options.config);
    if (config.source.type !== "kafka") throw endless(config.source.type, options.config);
    useStateFolder(config);
    const resolved = await resolveSecrets(config, cli.environment);
    return await runPipeline(config, resolved, options, cli);
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
  let code = 0;
  try {
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
    const signals = listenToSignals(stream.runner, secrets.reread);
    try {
      const { rows, reason } = await stream.runner.run();
      observer.emit({ e: "pipeline.stopped", rows, reason });
    } finally {
      signals.close();
    }
  } catch (e) {
    const failure = asFailure(e);
    code = exitCodeOf(failure);
    observer.emit({ e: "failure", scope: "pipeline", failure: toWire(failure) });
  }
  await telemetry.stop();
  return code;
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
