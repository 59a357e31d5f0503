/**
 * `twg inspect coverage --rebuild`: the raw sink's index, and what it covers, from the files that lie there. As the only owner of
 * the sink: a pipeline that runs is named and left alone.
 */
import { randomBytes } from "node:crypto";
import { linuxIdentity } from "../adapters/coverage/host-identity.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { CoverageKeeper } from "../core/coverage/keeper.ts";
import type { Reindexed } from "../core/coverage/reindex.ts";
import { Failure } from "../core/failure/failure.ts";
import type { Span } from "../core/records/stream.ts";
import { type Cli, outJson } from "./cli.ts";
import { loadConfig, resolveSecrets } from "./config-file.ts";
import { exitCodeOf } from "./exit-code.ts";
import { objectSinkStores } from "./object-stores.ts";
import { rawFilesOf } from "./raw-files.ts";
import { reportFailure } from "./report.ts";
import { type ReadFiles, readSetFiles } from "./set-files.ts";
import { LEASE_MS } from "./sink-parts.ts";
import { printable } from "./style.ts";

/** A file that cannot be read is told and does not hide the others; its set is torn then. */
export async function runRebuildIndex(file: string, json: boolean, cli: Cli): Promise<number> {
  const config = await resolveSecrets(await loadConfig(file), cli.environment);
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
  await keeper.open();
  try {
    const found = await rawFilesOf(sink, systemClock.now());
    const read = await readSetFiles(found, config.pipeline.name, sink.name);
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

function jsonOf(r: Reindexed, { others }: ReadFiles, files: number) {
  return {
    files,
    sets: r.entries.length - r.gone.length,
    added: r.added.map((e) => e.id),
    covered: r.covered,
    torn: r.torn,
    doubled: r.doubled,
    being_published: r.open,
    gone: r.gone.map(({ id, spans, targets }) => ({ set: id, spans, files: targets.map((t) => t.key) })),
    others,
  };
}

const spanText = ({ stream, from, next }: Span): string => `${stream} [${from}, ${next})`;

function textOf(r: Reindexed, { others }: ReadFiles, files: number): string {
  const sets = r.entries.length - r.gone.length;
  const lines = [
    `${files} files, ${sets} sets in the index, ${r.added.length} of them new to it`,
    ...r.covered.map((s) => `covered by what is there: ${spanText(s)}`),
    ...r.torn.map((t) => `left out: set ${t.set} has ${t.found} of its ${t.files} files`),
    ...r.doubled.map((s) => `left out: set ${s} has records of another set`),
    ...r.open.map((s) => `left to the next start: set ${s} is being published`),
    ...r.gone.map((e) => `gone: set ${e.id}, which held ${e.spans.map(spanText).join(", ")}`),
    ...(others.length === 0 ? [] : [`${others.length} files are of no set of this sink, first ${others[0]}`]),
  ];
  return `${lines.map(printable).join("\n")}\n`;
}
