/** `twg batch`: lands a fixed set of files once, and ends when all of them are covered. */
import { join } from "node:path";
import { Scratch } from "../adapters/files/fetch.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { descriptorWrite, QueuedLines } from "../adapters/telemetry/line-writer.ts";
import { Screen } from "../adapters/telemetry/screen.ts";
import { Failure } from "../core/failure/failure.ts";
import { atLeast, eventRow, eventText, type TwgEvent } from "../core/observe/events.ts";
import { formatBytes, formatCount, formatDuration } from "../core/observe/quantities.ts";
import type { BatchResult } from "../core/pipeline/batch-runner-parts.ts";
import type { RejectSample } from "../core/ports/batch-lane.ts";
import { schemaDocument } from "../core/types/schema-file.ts";
import { type BatchConfig, type BatchOptions, batchConfig } from "./batch-config.ts";
import { BatchInputs, bucketAccess } from "./batch-inputs.ts";
import { buildBatch } from "./batch-parts.ts";
import { type BatchPlan, locate, planBatch } from "./batch-plan.ts";
import { planText, rejectsPlace } from "./batch-plan-text.ts";
import { progressText } from "./batch-progress.ts";
import { type Cli, outJson } from "./cli.ts";
import { crashHook } from "./crash-hook.ts";
import { printable, styled } from "./style.ts";

const DRAW_MS = 500;
const LOG_MS = 10_000;
/** Refused rows that are shown; all of them are in the rejects files. */
const SHOWN_REJECTS = 10;

export async function runBatch(inputs: readonly string[], options: BatchOptions, cli: Cli): Promise<number> {
  const config = await batchConfig(inputs, options, cli.environment);
  useStateFolder(config);
  const scratch = new Scratch();
  try {
    const inputs = new BatchInputs(bucketAccess(config.source.s3, cli.environment));
    const plan = await planBatch(config, await locate(config.source.paths, scratch, inputs), inputs.open);
    return await planned(config, plan, options, cli);
  } finally {
    scratch.remove();
  }
}

async function planned(
  config: BatchConfig,
  plan: BatchPlan,
  options: BatchOptions,
  cli: Cli,
): Promise<number> {
  if (options.printSchema) {
    cli.out(schemaDocument(plan.schema));
    return 0;
  }
  if (options.dryRun) {
    if (options.json) outJson(cli, planJson(config, plan));
    else cli.out(planText(config, plan));
    return 0;
  }
  return await land(config, plan, options, cli);
}

/** Unpacked libraries go where a long-running twg of this configuration would have them. */
function useStateFolder({ pipeline, file }: BatchConfig): void {
  if (file !== "command line") process.env.CACHE_DIRECTORY ??= join(pipeline.state_dir, "cache");
}

function planJson(config: BatchConfig, plan: BatchPlan) {
  return {
    files: plan.works.map(({ name, bytes, compression, encoding, layout }) => ({
      name,
      bytes,
      compression,
      encoding,
      layout: layout.format === "avro" ? { format: layout.format, codec: layout.codec } : layout,
    })),
    bytes: plan.works.reduce((n, w) => n + w.bytes, 0),
    schema: JSON.parse(schemaDocument(plan.schema)) as unknown,
    schema_from: plan.schemaFrom,
    sink: sinkJson(config.sink),
  };
}

function sinkJson(sink: BatchConfig["sink"]) {
  const { type } = sink;
  return type === "parquet"
    ? { type, path: sink.path }
    : { type, table: sink.table, mode: sink.mode, key: sink.key ?? [] };
}

async function land(config: BatchConfig, plan: BatchPlan, options: BatchOptions, cli: Cli): Promise<number> {
  const terminal =
    cli.errIsTerminal && !options.json ? { columns: () => process.stderr.columns ?? 80 } : null;
  const lines = new QueuedLines(descriptorWrite(2), (ms, fn) => void systemClock.after(ms, fn));
  const screen = new Screen(lines, terminal);
  const started = systemClock.monotonic();
  const show = rejectPrinter(screen, cli);
  const observer = {
    emit: (e: TwgEvent) => {
      const { level } = eventRow(e);
      if (level !== null && atLeast(level, options.logLevel))
        screen.line(`${level}: ${printable(eventText(e))}`);
    },
  };
  const { runner, prepare } = buildBatch(
    config,
    plan,
    observer,
    crashHook(cli.environment.TWG_CRASH_AT ?? null),
    show,
  );
  if (plan.schemaFrom.startsWith("inferred") && !options.json)
    screen.line(`schema ${plan.schemaFrom}: ${typesText(plan)} (pin it: --print-schema)`);
  await prepare();
  const ticker = setInterval(
    () => {
      const text = progressText(runner.progress, systemClock.monotonic() - started);
      if (terminal === null) screen.line(text);
      else screen.live(text);
    },
    terminal === null ? LOG_MS : DRAW_MS,
  );
  const signals = listen((signal) => runner.stop(`${signal} received`));
  try {
    const result = await runner.run();
    screen.live(null);
    tell(result, systemClock.monotonic() - started, rejectsPlace(config.sink), options, screen, cli);
    if (result.stopped)
      throw new Failure(
        "internal.cancelled",
        "stopped before the end; the next run goes on where this one ended",
      );
    return 0;
  } finally {
    clearInterval(ticker);
    signals.close();
    screen.live(null);
    await lines.flush();
  }
}

function typesText({ schema }: BatchPlan): string {
  const text = schemaDocument(schema);
  const { columns } = JSON.parse(text) as { columns: { name: string; type: string }[] };
  return columns.map((c) => `${printable(c.name)} ${c.type}`).join(", ");
}

function rejectPrinter(screen: Screen, cli: Cli): (sample: RejectSample) => void {
  let shown = 0;
  return ({ file, line, column, code, reason }) => {
    if (shown++ >= SHOWN_REJECTS) return;
    const where = column === null ? "" : ` column ${printable(column)}:`;
    const text = `${printable(file)}:${line}:${where} ${code}: ${printable(reason)}`;
    screen.line(`${styled("refused", "yellow", cli.errColour)} ${text}`);
  };
}

function tell(
  result: BatchResult,
  ms: number,
  rejectsAt: string,
  options: BatchOptions,
  screen: Screen,
  cli: Cli,
): void {
  if (options.json) {
    const { filesDone, filesSkipped, bytesDone, skippedRows, ...rest } = result;
    outJson(cli, {
      ...rest,
      files_done: filesDone,
      files_skipped: filesSkipped,
      bytes_done: bytesDone,
      skipped_rows: skippedRows,
      ms: Math.round(ms),
    });
    return;
  }
  for (const { file, of } of result.twins)
    screen.line(`${printable(file)} has the content of ${printable(of)}, which lands once`);
  const refused = result.rejected === 0 ? "" : `, ${formatCount(result.rejected)} refused (see ${rejectsAt})`;
  const skipped =
    result.filesSkipped + result.skippedRows === 0
      ? ""
      : `, ${result.filesSkipped} files and ${formatCount(result.skippedRows)} rows were there already`;
  cli.out(
    `${formatCount(result.rows)} rows landed${refused}${skipped}: ${result.filesDone} of ${result.files} files, ` +
      `${formatBytes(result.bytes)} in ${formatDuration(ms)}\n`,
  );
}

function listen(stop: (signal: string) => void): { close(): void } {
  let stopping = false;
  const on = (signal: NodeJS.Signals) => {
    if (stopping) process.exit(1);
    stopping = true;
    stop(signal);
  };
  process.on("SIGTERM", on);
  process.on("SIGINT", on);
  return {
    close() {
      process.off("SIGTERM", on);
      process.off("SIGINT", on);
    },
  };
}
