/**
 * `twg inspect coverage --rebuild`: the raw sink's index, and what it covers, from the files that lie there. As the only owner of
 * the sink: a pipeline that runs is named and left alone.
 */
import { randomBytes } from "node:crypto";
import { linuxIdentity } from "../adapters/coverage/host-identity.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { CoverageKeeper } from "../core/coverage/keeper.ts";
import type { Reindexed } from "../core/coverage/reindex.ts";
import { parseState } from "../core/coverage/state-json.ts";
import { Failure } from "../core/failure/failure.ts";
import type { VersionedStore } from "../core/ports/versioned-store.ts";
import type { Span } from "../core/records/stream.ts";
import { type Cli, outJson } from "./cli.ts";
import { loadConfig, type PipelineConfig, resolveSecrets } from "./config-file.ts";
import { summarizeCoverage } from "./coverage-summary.ts";
import { exitCodeOf } from "./exit-code.ts";
import { objectSinkStores } from "./object-stores.ts";
import { demandNothingLanded, hasLanded, IS_IT_MOUNTED } from "./raw-away.ts";
import { rawFilesOf } from "./raw-files.ts";
import { reportFailure } from "./report.ts";
import { type ReadFiles, readSetFiles } from "./set-files.ts";
import { LEASE_MS } from "./sink-parts.ts";
import { printable } from "./style.ts";

/** A file that cannot be read is told and does not hide the others; its set is torn then. */
export async function runRebuildIndex(file: string, json: boolean, cli: Cli): Promise<number> {
  const loaded = await loadConfig(file);
  const config = await resolveSecrets(loaded, cli.environment);
  const { sink } = config;
  if (sink.type !== "parquet")
    throw new Failure("cli.usage", `the raw sink is of type ${sink.type}: it has no index of files`, {
      at: file,
    });
  const instance = randomBytes(8).toString("hex");
  const { versions, objects, intervalMs } = objectSinkStores(config.pipeline.name, sink, instance, null);
  const keeper = new CoverageKeeper(
    { instance, leaseMs: LEASE_MS, minIntervalMs: intervalMs },
    {
      ...{ versions, objects, clock: systemClock, host: linuxIdentity() },
      waiting: (owner, ms) => cli.err(`waiting up to ${ms} ms to see whether ${owner} lives\n`),
    },
  );
  // Before anything is written there.
  if ((await rawFilesOf(sink, systemClock.now())).length === 0) await demandNoneGone(loaded, versions, cli);
  await keeper.open();
  try {
    const found = await rawFilesOf(sink, systemClock.now());
    const read = await readSetFiles(found, config.pipeline.name, sink.name, await keeper.index());
    const rebuilt = await keeper.reindex(read.files);
    if (json) outJson(cli, jsonOf(rebuilt, read, found.length));
    else cli.out(textOf(rebuilt, read, found.length));
    for (const failure of read.failures) reportFailure(failure, cli);
    const [first] = read.failures;
    return first === undefined ? 0 : exitCodeOf(first);
  } finally {
    await keeper.close();
  }
}

/** For where no file is there. Throws recovery.raw_missing where raw, or a sink beside it, knows of records. */
async function demandNoneGone(loaded: PipelineConfig, versions: VersionedStore, cli: Cli): Promise<void> {
  const { file: at } = loaded;
  const newest = await versions.read();
  if (
    newest !== null &&
    hasLanded(summarizeCoverage(parseState(newest.bytes, newest.name, newest.version)))
  ) {
    const text =
      "nothing of raw is there, and its coverage says that records had landed: the index is left as it is";
    throw new Failure("recovery.raw_missing", text, { at, hint: IS_IT_MOUNTED });
  }
  const [away] = (await demandNothingLanded(loaded, at, cli)).values();
  if (away !== undefined) throw away;
}

function jsonOf(r: Reindexed, { others, unknown, misfits }: ReadFiles, files: number) {
  return {
    files,
    sets: r.entries.length - r.gone.length,
    added: r.added.map((e) => e.id),
    covered: r.covered,
    torn: r.torn,
    doubled: r.doubled,
    being_published: r.open,
    gone: r.gone.map(({ id, spans, targets }) => ({ set: id, spans, files: targets.map((t) => t.key) })),
    others: [...others, ...unknown],
    misfits: misfits.map(({ key, rows, set }) => ({ file: key, rows, set })),
  };
}

const spanText = ({ stream, from, next }: Span): string => `${stream} [${from}, ${next})`;

function textOf(r: Reindexed, read: ReadFiles, files: number): string {
  const others = [...read.others, ...read.unknown];
  const sets = r.entries.length - r.gone.length;
  const lines = [
    `${files} files, ${sets} sets in the index, ${r.added.length} of them new to it`,
    ...r.covered.map((s) => `covered by what is there: ${spanText(s)}`),
    ...r.torn.map((t) => `left out: set ${t.set} has ${t.found} of its ${t.files} files`),
    ...r.doubled.map((s) => `left out: set ${s} has records of another set`),
    ...r.open.map((s) => `left to the next start: set ${s} is being published`),
    ...read.misfits.map(
      (m) => `left out: ${m.key} has ${m.rows} rows, and not those of the set ${m.set}, which it names`,
    ),
    ...r.gone.map((e) => `gone: set ${e.id}, which held ${e.spans.map(spanText).join(", ")}`),
    ...(others.length === 0 ? [] : [`${others.length} files are of no set of this sink, first ${others[0]}`]),
  ];
  return `${lines.map(printable).join("\n")}\n`;
}
