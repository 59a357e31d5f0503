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
import { BesideRecovery, type RecoverScope } from "./recover-beside.ts";
import {
  planRecovery,
  positionsOf,
  type RecoverChoice,
  type RecoverPlan,
  sinksToFill,
  unindexed,
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
  const { sink: sinks, topic: topics, from = null, to = null } = options;
  if (from !== null && to !== null && from >= to)
    throw new Failure("cli.usage", `--from ${from} is not below --to ${to}`, { at: "twg recover" });
  const loaded = await loadConfig(options.config);
  useStateFolder(loaded);
  const config = await resolveSecrets(loaded, cli.environment);
  const choice: RecoverChoice = { sinks, topics, from, to };
  const begun = systemClock.monotonic();
  const plan = await planRecovery(loaded, config, choice, cli);
  const [away] = plan.away.values();
  if (options.dryRun) {
    tellPlan(plan, options, cli);
    if (away !== undefined) throw away;
    return 0;
  }
  const lines = new QueuedLines(descriptorWrite(2), (ms, fn) => void systemClock.after(ms, fn));
  const screen = new Screen(lines, null);
  const tell = (e: TwgEvent) => {
    const { level } = eventRow(e);
    if (level !== null && atLeast(level, options.logLevel))
      screen.line(`${level}: ${printable(eventText(e))}`);
  };
  try {
    const { left, failure } = await new Recovery(loaded, config, choice, cli, tell).run(plan);
    tellDone(plan, left, systemClock.monotonic() - begun, options, cli);
    const ended = failure ?? away;
    if (ended !== undefined) throw ended;
    return 0;
  } finally {
    await lines.flush();
  }
}

interface Recovered {
  /** Positions that are missing still of those that were at the start, by sink. */
  readonly left: ReadonlyMap<string, bigint>;
  readonly failure: Failure | null;
}

/** Beside a running pipeline, or without one. */
class Recovery {
  readonly #loaded: PipelineConfig;
  readonly #whole: ResolvedConfig;
  readonly #choice: RecoverChoice;
  readonly #cli: Cli;
  readonly #observer: Observer;
  /** The last that went wrong at each sink. */
  readonly #troubles = new Map<string, Failure>();
  /** What is under way, to be stopped. */
  #drain: ((reason: string) => void) | null = null;
  #stopped = false;

  constructor(
    loaded: PipelineConfig,
    whole: ResolvedConfig,
    choice: RecoverChoice,
    cli: Cli,
    tell: (e: TwgEvent) => void,
  ) {
    this.#loaded = loaded;
    this.#whole = whole;
    this.#choice = choice;
    this.#cli = cli;
    this.#observer = {
      emit: (e) => {
        this.#note(e);
        // Somebody writes there: that is the whole of it, and what follows from it is no news.
        if (this.#owned() === null) tell(e);
      },
    };
  }

  async run(plan: RecoverPlan): Promise<Recovered> {
    const left = new Map(plan.sinks.map((s) => [s.sink, positionsOf(s.gaps)]));
    const signals = listenToSignals({ drain: (reason) => this.#stop(reason) }, () => {});
    let failure: Failure | null = null;
    try {
      const done = await this.#beside(sinksToFill(this.#whole.sinks, this.#choice.sinks, this.#whole.file));
      for (const [sink, lacks] of done.left) left.set(sink, lacks);
      failure = done.failure;
    } finally {
      signals.close();
    }
    const isLeft = [...left.values()].some((n) => n > 0n);
    if (failure !== null || !isLeft) return { left, failure };
    if (this.#stopped) return { left, failure: stopped() };
    return { left, failure: unindexed(plan, this.#whole.file) ?? this.#behind(left) };
  }

  #stop(reason: string): void {
    this.#stopped = true;
    this.#drain?.(reason);
  }

  #scope(sinks: readonly ResolvedSink[]): RecoverScope {
    const config = { ...this.#whole, sinks: [this.#whole.sink, ...sinks] };
    const choice = { ...this.#choice, sinks: sinks.map((s) => s.name) };
    const [loaded, whole, cli, observer] = [this.#loaded, this.#whole, this.#cli, this.#observer];
    return { loaded, config, whole, choice, cli, observer };
  }

  async #beside(sinks: readonly ResolvedSink[]): Promise<Recovered> {
    if (sinks.length === 0) return { left: new Map(), failure: null };
    const recovery = new BesideRecovery(this.#scope(sinks));
    this.#drain = (reason) => recovery.drain(reason);
    const { left, failed, failure } = await recovery.filler.run();
    this.#drain = null;
    for (const [sink, cause] of failed) if (cause !== null) this.#troubles.set(sink, cause);
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
    const hint = cause === undefined ? OTHERS : cause.hint;
    return new Failure(
      "recovery.behind",
      cause === undefined ? text : `${text}: ${cause.code}: ${cause.message}`,
      { at: this.#whole.file, cause, ...(hint === null ? {} : { hint }) },
    );
  }
}

type ResolvedSink = ResolvedConfig["sinks"][number];

const OTHERS =
  "Another process holds them: a pipeline that has not let go of them, or another recovery; `twg inspect coverage` shows it";

const stopped = (): Failure =>
  new Failure("internal.cancelled", "stopped before the end; the next run goes on where this one ended");

const totalOf = ({ sinks }: RecoverPlan): bigint => positionsOf(sinks.flatMap((s) => s.gaps));

function tellPlan(plan: RecoverPlan, options: RecoverOptions, cli: Cli): void {
  if (options.json) return outJson(cli, { sinks: plan.sinks });
  if (totalOf(plan) === 0n) return cli.out("no gaps\n");
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
}

function tellDone(
  before: RecoverPlan,
  left: Recovered["left"],
  ms: number,
  options: RecoverOptions,
  cli: Cli,
): void {
  const filled = before.sinks.map(({ sink, gaps }) => {
    const lacks = left.get(sink) ?? 0n;
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
