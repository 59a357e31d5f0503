/** `twg inspect rejects`: records that could not be decoded, grouped by what is wrong, from the sinks that keep them. Reads only. */
import { existsSync } from "node:fs";
import { isBucketUrl } from "../core/config/bucket-url.ts";
import { Failure } from "../core/failure/failure.ts";
import { type Cli, outJson } from "./cli.ts";
import { loadConfig, type PipelineConfig, resolveSecrets } from "./config-file.ts";
import { exitCodeOf } from "./exit-code.ts";
import { type ParquetSource, parquetFilesOf } from "./parquet-file.ts";
import { rejectsInFiles } from "./reject-files.ts";
import type { RejectGroup } from "./reject-groups.ts";
import type { RejectSample, RejectTable } from "./reject-table.ts";
import { type ShownTable, shownTable, tableText } from "./reject-text.ts";
import { reportFailure } from "./report.ts";

export interface InspectRejectsOptions {
  readonly config: string;
  readonly sink?: string;
  readonly json: boolean;
  /** Of each group. */
  readonly samples: number;
  readonly showValues: boolean;
}

type Sink = PipelineConfig["sinks"][number];

/** Groups beyond are counted and not shown. */
const MOST_SHOWN = 100;

/** A table or file that cannot be read does not hide the others; the exit code is that of the first failure. */
export async function runInspectRejects(options: InspectRejectsOptions, cli: Cli): Promise<number> {
  const config = await loadConfig(options.config);
  const tables: ShownTable[] = [];
  const failures: Failure[] = [];
  for (const sink of sinksOf(config, options)) {
    try {
      const { shown, failed } = await lookAt(config, sink, options, cli);
      tables.push(shown);
      failures.push(...failed);
    } catch (e) {
      if (!(e instanceof Failure)) throw e;
      failures.push(e);
    }
  }
  if (options.json)
    outJson(cli, { tables, failures: failures.map(({ code, message, at }) => ({ code, message, at })) });
  else cli.out(tables.map((t) => tableText(t, cli.outColour)).join("\n"));
  for (const failure of failures) reportFailure(failure, cli);
  const [first] = failures;
  return first === undefined ? 0 : exitCodeOf(first);
}

function sinksOf({ sinks }: PipelineConfig, { config: file, sink: name }: InspectRejectsOptions): Sink[] {
  const keeping = sinks.filter((s) => s.receives === "rejected");
  const chosen = keeping.filter((s) => name === undefined || s.name === name);
  if (chosen.length > 0) return chosen;
  const names = keeping.map((s) => s.name).join(", ");
  const why =
    name === undefined || keeping.length === 0
      ? 'no sink of the file has receives = "rejected"'
      : `no sink ${JSON.stringify(name)} has receives = "rejected", there is ${names}`;
  throw new Failure("cli.usage", why, { at: file });
}

interface Looked {
  readonly shown: ShownTable;
  readonly failed: readonly Failure[];
}

async function lookAt(
  config: PipelineConfig,
  sink: Sink,
  options: InspectRejectsOptions,
  cli: Cli,
): Promise<Looked> {
  const look = async (place: string, table: RejectTable): Promise<Looked> => {
    const all = table.groups.all();
    const shown = all.slice(0, MOST_SHOWN);
    const samples = options.samples === 0 ? NO_SAMPLES : await table.samples(shown);
    const about = { sink: sink.name, place, showValues: options.showValues };
    return { shown: shownTable(about, table, shown, samples), failed: table.failures };
  };
  if (sink.type === "postgres") {
    const { withRejectRows } = await import("./reject-rows.ts");
    const resolved = await resolveSecrets(config, cli.environment);
    const target = resolved.sinks.find((s) => s.name === sink.name);
    if (target?.type !== "postgres") throw new Failure("internal.bug", "a sink became another");
    return await withRejectRows(resolved, target, options.samples, (t) => look(`table ${sink.table}`, t));
  }
  if (sink.type !== "parquet")
    throw new Failure(
      "inspect.unreadable",
      `refused records in a sink of the type ${sink.type} are not read`,
      {
        at: sink.name,
        hint: "A reader of that system shows them",
      },
    );
  const { metadata_prefix: prefix, path } = sink;
  const sources = await filesOf(path, sink.name, options, cli);
  return await look(path, await rejectsInFiles(sources, { prefix, samples: options.samples }));
}

const NO_SAMPLES: ReadonlyMap<RejectGroup, readonly RejectSample[]> = new Map();

/** None where nothing was written yet. */
async function filesOf(
  path: string,
  sink: string,
  { config }: InspectRejectsOptions,
  cli: Cli,
): Promise<ParquetSource[]> {
  if (!isBucketUrl(path)) return existsSync(path) ? await parquetFilesOf([path]) : [];
  const { s3TableOf } = await import("./bucket-reader.ts");
  const { parquetObjectsOf } = await import("./parquet-object.ts");
  return await parquetObjectsOf(path, await s3TableOf(config, cli.environment, sink));
}
