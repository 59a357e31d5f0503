/** `twg recover`: fills the gaps of sinks beside the primary one from raw. The source is not asked. */

import { systemClock } from "../adapters/system/clock.ts";
import { descriptorWrite, QueuedLines } from "../adapters/telemetry/line-writer.ts";
import { Screen } from "../adapters/telemetry/screen.ts";
import { Failure, fromWire } from "../core/failure/failure.ts";
import { atLeast, eventRow, eventText, type TwgEvent } from "../core/observe/events.ts";
import { formatDuration } from "../core/observe/quantities.ts";
import type { Observer } from "../core/ports/observer.ts";
import { type Cli, outJson } from "./cli.ts";
import { loadConfig, type PipelineConfig, type ResolvedConfig, resolveSecrets } from "./config-file.ts";
import { buildRecovery } from "./recover-parts.ts";
import {
  byIncarnation,
  planRecovery,
  positionsOf,
  type RecoverChoice,
  type RecoverPlan,
  sinksToFill,
} from "./recover-plan.ts";
import { listenToSignals } from "./signals.ts";
import { useStateFolder } from "./state-folder.ts";
import { printable } from "./style.ts";
import { renderTable } from "./table.ts";

export interface RecoverOptions {
  readonly config: string;
  readonly sink: readonly string[];
  readonly topic: readonly string[];
  readonly from?: bigint;
  readonly to?: bigint;
  readonly dryRun: boolean;
  readonly json: boolean;
  readonly logLevel: "debug" | "info" | "warn" | "error";
}

export async function runRecover(options: RecoverOptions, cli: Cli): Promise<number> {
  const loaded = await loadConfig(options.config);
  useStateFolder(loaded);
  const config = await resolveSecrets(loaded, cli.environment);
  const { sink: sinks, topic: topics, from = null, to = null } = options;
  const choice: RecoverChoice = { sinks, topics, from, to };
  const begun = systemClock.monotonic();
  const plan = await planRecovery(loaded, config, choice, cli);
  if (options.dryRun) return tellPlan(plan, options, cli);
  const lines = new QueuedLines(descriptorWrite(2), (ms, fn) => void systemClock.after(ms, fn));
  try {
    const { left, failure } = await new Recovery(loaded, config, choice, options, cli, lines).run(plan);
    tellDone(plan, left, systemClock.monotonic() - begun, options, cli);
    if (failure !== null) throw failure;
    return 0;
  } finally {
    await lines.flush();
  }
}

/** Round after round, as long as each of them fills something. */
class Recovery {
  readonly #loaded: PipelineConfig;
  /** With the sinks that are filled alone. */
  readonly #config: ResolvedConfig;
  /** What is learned holds for all sinks. */
  readonly #whole: ResolvedConfig;
  readonly #choice: RecoverChoice;
  readonly #cli: Cli;
  readonly #observer: Observer;
  /** The last that went wrong at each sink. */
  readonly #troubles = new Map<string, Failure>();

  constructor(
    loaded: PipelineConfig,
    config: ResolvedConfig,
    choice: RecoverChoice,
    options: RecoverOptions,
    cli: Cli,
    lines: QueuedLines,
  ) {
    this.#loaded = loaded;
    const fill = sinksToFill(config.sinks, choice.sinks, config.file);
    this.#config = { ...config, sinks: [config.sink, ...fill] };
    this.#whole = config;
    this.#choice = choice;
    this.#cli = cli;
    const screen = new Screen(lines, null);
    this.#observer = {
      emit: (e) => {
        this.#note(e);
        const { level } = eventRow(e);
        if (level !== null && atLeast(level, options.logLevel))
          screen.line(`${level}: ${printable(eventText(e))}`);
      },
    };
  }

  /** What is left, and why if something is. */
  async run(first: RecoverPlan): Promise<{ readonly left: RecoverPlan; readonly failure: Failure | null }> {
    for (let plan = first; ; ) {
      const before = totalOf(plan);
      if (before === 0n) return { left: plan, failure: null };
      const isStopped = await this.#round(plan);
      plan = await planRecovery(this.#loaded, this.#config, this.#choice, this.#cli);
      if (isStopped && totalOf(plan) > 0n) return { left: plan, failure: stopped() };
      if (totalOf(plan) >= before) return { left: plan, failure: this.#stuck(plan) };
    }
  }

  /** True if it was stopped. */
  async #round(plan: RecoverPlan): Promise<boolean> {
    for (const streams of byIncarnation(plan.wanted).values()) {
      const runner = await buildRecovery(
        { config: this.#config, whole: this.#whole },
        plan,
        streams,
        this.#observer,
      );
      let isStopped = false;
      const stoppable = {
        drain: (reason: string) => {
          isStopped = true;
          runner.drain(reason);
        },
      };
      const signals = listenToSignals(stoppable, () => {});
      try {
        await runner.run();
      } finally {
        signals.close();
      }
      if (isStopped) return true;
    }
    return false;
  }

  #note(e: TwgEvent): void {
    if (e.e === "sink.troubled" || e.e === "sink.detached") this.#troubles.set(e.sink, fromWire(e.failure));
  }

  #stuck({ sinks }: RecoverPlan): Failure {
    const behind = sinks.filter((s) => s.gaps.length > 0);
    const cause = behind.map((s) => this.#troubles.get(s.sink)).find((f) => f !== undefined);
    // Somebody writes there: that is the whole of it.
    if (cause?.code === "coverage.owned") return cause;
    const text = behind.map((s) => `${s.sink} lacks ${positionsOf(s.gaps)} positions`).join(", ");
    return new Failure(
      "recovery.behind",
      cause === undefined ? text : `${text}: ${cause.code}: ${cause.message}`,
      {
        at: this.#config.file,
        cause,
        ...(cause?.hint == null ? {} : { hint: cause.hint }),
      },
    );
  }
}

const stopped = (): Failure =>
  new Failure("internal.cancelled", "stopped before the end; the next run goes on where this one ended");

const totalOf = ({ sinks }: RecoverPlan): bigint => positionsOf(sinks.flatMap((s) => s.gaps));

function tellPlan(plan: RecoverPlan, options: RecoverOptions, cli: Cli): number {
  if (options.json) {
    outJson(cli, { sinks: plan.sinks });
    return 0;
  }
  if (totalOf(plan) === 0n) {
    cli.out("no gaps\n");
    return 0;
  }
  const rows = plan.sinks.flatMap(({ sink, gaps }) =>
    gaps.map((g) => [
      sink,
      g.incarnation === 0 ? g.topic : `${g.topic} (incarnation ${g.incarnation})`,
      String(g.partition),
      g.ranges.map((r) => `[${r.from}, ${r.next})`).join(" "),
      String(positionsOf([g])),
    ]),
  );
  const columns = [
    { head: "SINK" },
    { head: "TOPIC" },
    { head: "PARTITION", align: "right" },
    { head: "LACKS" },
    { head: "POSITIONS", align: "right" },
  ] as const;
  cli.out(renderTable(columns, rows, cli.outColour));
  return 0;
}

function tellDone(
  before: RecoverPlan,
  left: RecoverPlan,
  ms: number,
  options: RecoverOptions,
  cli: Cli,
): void {
  const filled = before.sinks.map(({ sink, gaps }) => {
    const lacks = positionsOf(left.sinks.find((s) => s.sink === sink)?.gaps ?? []);
    return { sink, recovered: positionsOf(gaps) - lacks, lacks };
  });
  if (options.json) outJson(cli, { sinks: filled, ms: Math.round(ms) });
  else if (totalOf(before) === 0n) cli.out("no gaps\n");
  else
    for (const { sink, recovered, lacks } of filled.filter((f) => f.recovered + f.lacks > 0n))
      cli.out(
        `${printable(sink)}: ${recovered} positions recovered${lacks === 0n ? "" : `, ${lacks} left`} in ${formatDuration(ms)}\n`,
      );
}
