/** `twg inspect coverage`: what has landed, per partition, from the coverage beside the files. Reads only. */
import { linuxIdentity } from "../adapters/coverage/host-identity.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { formatBytes } from "../core/config/option-types.ts";
import { asFailure, Failure, type FailureWire, failureLine, toWire } from "../core/failure/failure.ts";
import { formatDuration } from "../core/observe/quantities.ts";
import type { Range } from "../core/ports/coverage.ts";
import type { HostId } from "../core/ports/host-identity.ts";
import { type Cli, outJson } from "./cli.ts";
import { loadConfig, type PipelineConfig, resolveSecrets } from "./config-file.ts";
import {
  type CoverageSummary,
  type Gap,
  gapsBetween,
  type StreamSummary,
  summarizeCoverage,
} from "./coverage-summary.ts";
import { exitCodeOf } from "./exit-code.ts";
import { type RawOfGaps, rawOfGaps, type SizedGap, sizedGaps } from "./gap-sizes.ts";
import { leasesText } from "./leases-text.ts";
import { type PlanEpochSeen, planEpochs } from "./plans-seen.ts";
import { hasLanded, IS_IT_MOUNTED, rawAway } from "./raw-away.ts";
import type { LostOfSink } from "./record-lost.ts";
import { shortPlan } from "./replay-plans.ts";
import { reportFailure } from "./report.ts";
import { type StateAt, statesOfSink, statesUnder } from "./sink-states.ts";
import { printable, styled } from "./style.ts";
import { renderTable } from "./table.ts";

export interface InspectCoverageOptions {
  readonly path: string | undefined;
  readonly config?: string;
  readonly json: boolean;
  readonly rebuild?: boolean;
  readonly recordLost?: boolean;
}

export async function runInspectCoverage(options: InspectCoverageOptions, cli: Cli): Promise<number> {
  if (options.rebuild === true) {
    if (options.config === undefined)
      throw new Failure("cli.usage", "--rebuild needs the configuration: -c FILE", {
        at: "twg inspect coverage",
      });
    return await (await import("./rebuild-index.ts")).runRebuildIndex(options.config, options.json, cli);
  }
  if (options.recordLost === true) await recordGone(options, cli);
  const { places: found, unread } = await placesOf(options, cli);
  const places = await withGaps(found, options.config, cli);
  const named = places.length + unread.length > 1;
  if (options.json)
    outJson(cli, unread.length === 0 ? { places } : { places, unread: unread.map(unreadJson) });
  else if (places.length > 0) cli.out(places.map((p) => placeText(p, named, cli.outColour)).join("\n"));
  else if (unread.length === 0) cli.out("nothing has landed there yet\n");
  for (const { failure } of unread) reportFailure(failure, cli);
  const [first] = unread;
  return first === undefined ? 0 : exitCodeOf(first.failure);
}

/** Gaps of which raw has no file any more become lost ranges of their sinks. */
async function recordGone(options: InspectCoverageOptions, cli: Cli): Promise<void> {
  const { config: file } = options;
  if (file === undefined)
    throw new Failure("cli.usage", "--record-lost needs the configuration: -c FILE", {
      at: "twg inspect coverage",
    });
  const loaded = await loadConfig(file);
  const seen = await placesOf(options, cli);
  const [unread] = seen.unread;
  if (unread !== undefined) throw unread.failure;
  const lacking = lackingOf(seen.places);
  demandRaw(lacking, file);
  const { demandGone, recordLost } = await import("./record-lost.ts");
  const config = await resolveSecrets(loaded, cli.environment);
  const raw = await rawOfGaps(loaded, cli, gapsOf(lacking), true);
  if (raw !== null && !(await raw.anyThere())) {
    await demandGone(config, raw.index, lacking.flatMap(lackOf));
    throw new Failure("recovery.raw_missing", "nothing of raw is there: nothing is recorded as lost", {
      at: file,
      hint: IS_IT_MOUNTED,
    });
  }
  const places = raw === null ? lacking : await sized(lacking, raw);
  const lost = places.flatMap(({ sink, gaps }) => {
    const ranges = (gaps ?? []).flatMap((g) =>
      "gone" in g ? g.gone.map((r) => ({ stream: g.stream, ...r })) : [],
    );
    return sink === undefined || ranges.length === 0 ? [] : [{ sink, ranges }];
  });
  if (lost.length === 0) return;
  await demandGone(config, raw?.index ?? [], lost);
  await recordLost(config, lost);
}

/** Throws recovery.raw_missing where raw shows nothing, and another sink has records. */
function demandRaw(places: readonly Place[], file: string): void {
  const primary = places.find((p) => p.role === "primary_raw");
  if (primary !== undefined && primary.streams.length > 0) return;
  const other = places.find((p) => p.role === "secondary" && hasLanded(p));
  if (other !== undefined) throw rawAway(other.sink ?? other.place, file);
}

function lackOf({ sink, gaps = [] }: Place): LostOfSink[] {
  if (sink === undefined) return [];
  return [{ sink, ranges: gaps.flatMap((g) => g.ranges.map((r) => ({ stream: g.stream, ...r }))) }];
}

interface Place extends CoverageSummary {
  /** Folder or schema of the coverage state. */
  readonly place: string;
  /** Of a configuration. */
  readonly sink?: string;
  readonly role?: "primary_raw" | "secondary";
  /** Of a secondary sink: what the primary one has and it has not. */
  readonly gaps?: readonly (Gap | SizedGap)[];
  /** Of a sink of derived rows: since when they are decoded by which plan. */
  readonly plans?: readonly PlanEpochSeen[];
  /** Why they are not known. */
  readonly plansFailure?: FailureWire;
}

/** A sink of a configuration that cannot be read. */
interface Unread {
  readonly sink: string;
  readonly role: "primary_raw" | "secondary";
  readonly failure: Failure;
}

interface Seen {
  readonly places: readonly Place[];
  readonly unread: readonly Unread[];
}

const unreadJson = ({ sink, role, failure }: Unread) => ({ sink, role, failure: toWire(failure) });

async function placesOf({ path, config }: InspectCoverageOptions, cli: Cli): Promise<Seen> {
  if (path !== undefined && config === undefined)
    return { places: (await statesUnder(path, cli)).map(placeOf), unread: [] };
  if (config !== undefined && path === undefined) {
    const loaded = await loadConfig(config);
    const places: Place[] = [];
    const unread: Unread[] = [];
    // The primary first: what the others lack is seen from it.
    for (const sink of loaded.sinks.toSorted((a, b) => rank(a.role) - rank(b.role))) {
      const { name, role } = sink;
      const found = await statesOfSink(loaded, sink, config, cli).catch(asFailure);
      if (found instanceof Failure) unread.push({ sink: name, role, failure: found });
      else places.push(...found.map((f) => ({ ...placeOf(f), sink: name, role })));
    }
    return { places: places.length === 0 ? places : await withPlans(places, loaded, cli), unread };
  }
  const what =
    path === undefined
      ? "what to look at is missing: -c FILE or the folder of a sink"
      : "-c FILE and the folder of a sink cannot both be given";
  throw new Failure("cli.usage", what, { at: "twg inspect coverage" });
}

/** What has landed is told also where the book of plans cannot be read. */
async function withPlans(places: readonly Place[], loaded: PipelineConfig, cli: Cli): Promise<Place[]> {
  const plans = await planEpochs(loaded, cli).catch(asFailure);
  const derived = new Set(loaded.sinks.flatMap((s) => (s.receives === "raw" ? [] : [s.name])));
  return places.map((p) => {
    if (plans instanceof Failure)
      return derived.has(p.sink ?? "") ? { ...p, plansFailure: toWire(plans) } : p;
    const seen = plans.get(p.sink ?? "");
    return seen === undefined ? p : { ...p, plans: seen };
  });
}

/** Of processes of this machine it is known whether they are there. */
const systemLife = (host: HostId) => linuxIdentity().isAlive(host);

const rank = (role: Place["role"]): number => (role === "primary_raw" ? 0 : 1);

/** A sink of which nothing is known yet lacks nothing that could be told from here. */
async function withGaps(
  places: readonly Place[],
  config: string | undefined,
  cli: Cli,
): Promise<readonly Place[]> {
  if (config === undefined) return places;
  const all = lackingOf(places);
  const gaps = gapsOf(all);
  if (gaps.length === 0) return all;
  const raw = await rawOfGaps(await loadConfig(config), cli, gaps, false);
  return raw === null ? all : await sized(all, raw);
}

function lackingOf(places: readonly Place[]): readonly Place[] {
  const primary = places.find((p) => p.role === "primary_raw");
  if (primary === undefined) return places;
  return places.map((p) =>
    p.role === "secondary" ? { ...p, gaps: gapsBetween(primary.streams, p.streams) } : p,
  );
}

const gapsOf = (places: readonly Place[]): readonly Gap[] => places.flatMap((p) => p.gaps ?? []);

function sized(places: readonly Place[], raw: RawOfGaps): Promise<readonly Place[]> {
  return Promise.all(
    places.map(async (p) => (p.gaps === undefined ? p : { ...p, gaps: await sizedGaps(p.gaps, raw) })),
  );
}

const placeOf = ({ place, state }: StateAt) => ({ place, ...summarizeCoverage(state, systemLife) });

function placeText(place: Place, named: boolean, colour: boolean): string {
  const sink = place.sink === undefined ? "" : `${place.sink} (${place.role}): `;
  const title = named ? `${styled(printable(sink + place.place), "bold", colour)}\n` : "";
  const leases = leasesText(place, systemClock.now());
  const gaps = place.gaps === undefined ? "" : gapsText(place.gaps, colour);
  return title + textOf(place, colour) + leases + plansText(place) + gaps;
}

/** One plan from the start says nothing that the configuration does not say. */
function plansText({ plans = [], plansFailure: failure }: Place): string {
  if (failure !== undefined)
    return `plans by which records are decoded: ${printable(failureLine(failure))}\n`;
  if (plans.every((p) => p.now)) return "";
  const lines = plans.map(({ topic, partition, from, plan, now }) => {
    const name = plan === null ? "forgotten" : shortPlan(plan);
    return `  ${printable(topic)}/${partition}: from ${from} on ${name}${now ? ", the plan of now" : ""}\n`;
  });
  return `plans by which records are decoded\n${lines.join("")}`;
}

function gapsText(gaps: readonly (Gap | SizedGap)[], colour: boolean): string {
  if (gaps.length === 0) return "gaps: none\n";
  const lines = gaps.map((g) => {
    const positions = g.ranges.reduce((n, r) => n + (r.next - r.from), 0n);
    const size = "bytes" in g ? `, about ${formatBytes(g.bytes)} of raw${ageText(g)}` : "";
    const left =
      "expiresMs" in g && g.expiresMs !== null ? expiryText(g.expiresMs, g.ageMs ?? 0, colour) : "";
    const gone = "gone" in g && g.gone.length > 0 ? `; gone from raw: ${spansText(g.gone)}` : "";
    return `  ${printable(g.topic)}/${g.partition}: ${spansText(g.ranges)}, ${positions} positions${size}${left}${gone}`;
  });
  return `${styled("gaps, against the primary sink", "yellow", colour)}\n${lines.join("\n")}\n`;
}

/** In red where little of the time is left. */
function expiryText(leftMs: number, ageMs: number, colour: boolean): string {
  const text = `, removed in ${formatDuration(leftMs)}`;
  return leftMs < (leftMs + ageMs) / 4 ? styled(text, "red", colour) : text;
}

function ageText({ ageMs, gone }: SizedGap): string {
  if (ageMs !== null) return `, the oldest ${formatDuration(ageMs)} old`;
  return gone.length === 0 ? ", the oldest of unknown age" : ", whose oldest is not there";
}

function textOf(summary: CoverageSummary, colour: boolean): string {
  const columns = [
    { head: "TOPIC" },
    { head: "PARTITION", align: "right" },
    { head: "COVERED" },
    { head: "POSITIONS", align: "right" },
    { head: "HOLES" },
    { head: "LOST" },
  ] as const;
  const rows = summary.streams.map((s) => [
    s.incarnation === 0 ? s.topic : `${s.topic} (incarnation ${s.incarnation})`,
    String(s.partition),
    spansText(s.covered),
    String(s.positions),
    s.holes.length === 0 ? "none" : { text: spansText(s.holes), style: "yellow" as const },
    lostCell(s),
  ]);
  const counted = summary.files === 0 ? "" : `${summary.files} files, `;
  const files = `${counted}${summary.rows} rows, ${formatBytes(summary.bytes)}`;
  const open = summary.openIntents === 0 ? "" : `; ${summary.openIntents} sets being published`;
  const intents = summary.intents.map((i) => {
    const spans = i.spans.map((s) => `${s.stream} [${s.from}, ${s.next})`);
    return printable(`  set ${i.set}, ${i.files} files, ${i.rows} rows: ${spans.join(", ")}`);
  });
  return `${[`${renderTable(columns, rows, colour)}${files}${open}`, ...intents].join("\n")}\n`;
}

function lostCell(s: StreamSummary) {
  if (s.lost.length === 0) return "none";
  const text = s.lost.map((l) => `${spansText([l])} ${l.reason}`).join(", ");
  return { text, style: "red" as const };
}

/** `[0, 500) [600, 700)`, the middle left out of long lists. */
function spansText(ranges: readonly Range[]): string {
  if (ranges.length === 0) return "none";
  const texts = ranges.map((r) => `[${r.from}, ${r.next})`);
  if (texts.length <= 4) return texts.join(" ");
  return `${texts.slice(0, 2).join(" ")} and ${texts.length - 3} more, ${texts.at(-1)}`;
}
