/** `twg recover`: fills the gaps of sinks beside the primary one from raw. The source is not asked. */

import { systemClock } from "../adapters/system/clock.ts";
import { descriptorWrite, QueuedLines } from "../adapters/telemetry/line-writer.ts";
import { Screen } from "../adapters/telemetry/screen.ts";
import { normalRanges } from "../core/coverage/ranges.ts";
import { Failure } from "../core/failure/failure.ts";
import { atLeast, eventRow, eventText, type TwgEvent } from "../core/observe/events.ts";
import { formatDuration } from "../core/observe/quantities.ts";
import type { Observer } from "../core/ports/observer.ts";
import { plansOf } from "../core/recovery/plan-phases.ts";
import { recoveryLimit } from "../core/recovery/recovery-limit.ts";
import { type Cli, outJson } from "./cli.ts";
import { loadConfig, type PipelineConfig, type ResolvedConfig, resolveSecrets } from "./config-file.ts";
import { planRecovery, positionsOf, type RecoverChoice, type RecoverPlan } from "./recover-plan.ts";

import { type Recovered, RecoveryRound, type RoundScope, totalOf } from "./recovery-round.ts";
import { shortPlan } from "./replay-plans.ts";
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
  readonly replan: boolean;
  readonly json: boolean;
  readonly logLevel: "debug" | "info" | "warn" | "error";
}

export async function runRecover(options: RecoverOptions, cli: Cli): Promise<number> {
  const { sink: sinks, topic: topics, from = null, to = null, replan } = options;
  if (from !== null && to !== null && from >= to)
    throw new Failure("cli.usage", `--from ${from} is not below --to ${to}`, { at: "twg recover" });
  const loaded = await loadConfig(options.config);
  useStateFolder(loaded);
  const config = await resolveSecrets(loaded, cli.environment);
  const choice: RecoverChoice = { sinks, topics, from, to, replan };
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
    const { sinks, failure } = await runRound(scopeOf(loaded, config, choice, cli, { emit: tell }), plan);
    tellDone(plan, sinks, systemClock.monotonic() - begun, options, cli);
    const ended = failure ?? away;
    if (ended !== undefined) throw ended;
    return 0;
  } finally {
    await lines.flush();
  }
}

function scopeOf(
  loaded: PipelineConfig,
  whole: ResolvedConfig,
  choice: RecoverChoice,
  cli: Cli,
  observer: Observer,
): RoundScope {
  const load = { isLive: true };
  const look: RoundScope["look"] = async (config, chosen) => {
    const plan = await planRecovery(loaded, config, chosen, cli);
    load.isLive = plan.live;
    return plan;
  };
  const limit = recoveryLimit(whole.recovery, systemClock, { isLive: () => load.isLive, waits: null });
  return { whole, choice, observer, limit, look, onlyFree: false };
}

async function runRound(scope: RoundScope, plan: RecoverPlan): Promise<Recovered> {
  const round = new RecoveryRound(scope);
  const signals = listenToSignals({ drain: (reason) => round.stop(reason) }, () => {});
  try {
    return await round.run(plan);
  } finally {
    signals.close();
  }
}

function tellPlan(plan: RecoverPlan, options: RecoverOptions, cli: Cli): void {
  const sinks = plan.sinks.map(({ sink, gaps }) => {
    const pieces = plan.pieces.get(sink);
    const planned = gaps.map((g) => ({
      ...g,
      plans: plansOf(normalRanges(g.ranges), pieces?.get(g.stream) ?? []),
    }));
    return { sink, gaps: planned };
  });
  if (options.json) return outJson(cli, { sinks });
  if (totalOf(plan) === 0n) return cli.out(noGapsText(plan));
  const rows = sinks.flatMap(({ sink, gaps }) =>
    gaps.flatMap((g) =>
      g.plans.map(({ plan: of, ranges }) => [
        sink,
        g.incarnation === 0 ? g.topic : `${g.topic} (incarnation ${g.incarnation})`,
        String(g.partition),
        ranges.map((r) => `[${r.from}, ${r.next})`).join(" "),
        String(positionsOf([{ ...g, ranges }])),
        of === null ? "of now" : shortPlan(of),
      ]),
    ),
  );
  const columns = [
    { head: "SINK" },
    { head: "TOPIC" },
    { head: "PARTITION", align: "right" },
    { head: "LACKS" },
    { head: "POSITIONS", align: "right" },
    { head: "PLAN" },
  ] as const;
  cli.out(renderTable(columns, rows, cli.outColour));
  if (plan.forgetful)
    cli.out("raw is in a table, beside which no plans are kept: all of it is decoded by the plan of now\n");
}

/** What a sink that cannot be read lacks is not known. */
function noGapsText({ sinks, away }: RecoverPlan): string {
  if (away.size === 0) return "no gaps\n";
  return sinks.map(({ sink }) => `${printable(sink)}: no gaps\n`).join("");
}

function tellDone(
  before: RecoverPlan,
  sinks: Recovered["sinks"],
  ms: number,
  options: RecoverOptions,
  cli: Cli,
): void {
  const filled = [...sinks].map(([sink, of]) => ({ sink, ...of }));
  if (options.json) return outJson(cli, { sinks: filled, ms: Math.round(ms) });
  const told = filled.filter((f) => f.recovered + f.lacks > 0n);
  if (told.length === 0) return cli.out(noGapsText(before));
  for (const { sink, recovered, lacks } of told)
    cli.out(
      `${printable(sink)}: ${recovered} positions recovered${lacks === 0n ? "" : `, ${lacks} left`} in ${formatDuration(ms)}\n`,
    );
}
