/**
 * Where sinks write and where their coverage lies: each place has one writer. Two sinks that write the same files or rows
 * would be read as one, with everything twice; one that writes where coverage is kept would overwrite what says that it has.
 */
import { resolve } from "node:path";
import { filledName } from "../adapters/kafka/sink/settings.ts";
import { STATE_TABLES } from "../adapters/postgres/state/tables.ts";
import { parseTableName } from "../adapters/postgres/table/names.ts";
import type { CheckedConfig } from "../core/config/check.ts";
import { type ConfigPath, type Problem, pathText, quoted } from "../core/config/problem.ts";
import type { BatchConfig } from "./batch-config.ts";

type Sinks = BatchConfig["sinks"];
type Sink = Sinks[number];

interface Written {
  readonly path: ConfigPath;
  readonly seen: string;
  /** The same for each way to write a place. */
  readonly place: string;
}

export function unfitPlaces(config: CheckedConfig): Problem[] {
  const { sinks, source, pipeline } = config as unknown as BatchConfig;
  const topics = (source as { readonly topics?: readonly string[] }).topics ?? [];
  const homes = new Map(
    sinks.flatMap((s, at) => homesOf(s, pipeline.name).map((home) => [home, at] as const)),
  );
  const first = new Map<string, number>();
  const problems: Problem[] = [];
  const say = ({ path, seen }: Written, allowed: string, hint: string): void => {
    const [file, line] = [config.file, config.lineOf(path)];
    problems.push({
      ...{ code: "config.conflict", file, line, path: pathText(path) },
      ...{ seen: quoted(seen), allowed, hint },
    });
  };
  const all = sinks.map(placesOf);
  for (const [at, written] of all.entries())
    for (const w of written) {
      if (isRejects(w)) continue;
      const before = first.get(w.place);
      if (before === undefined) first.set(w.place, at);
      else say(w, "a place of its own", `sink[${before}] writes there already`);
    }
  for (const [at, sink] of sinks.entries()) {
    const written = all[at]!;
    // Several sinks may keep refused rows in one table, since each row names its own.
    for (const w of written)
      if (isRejects(w) && first.has(w.place))
        say(w, "a table of its own", `the rows of sink[${first.get(w.place)}] are there`);
    const home = written.flatMap((w) =>
      [w.place, ...topics.map((t) => filledName(w.place, { topic: t }))].flatMap((place) => {
        const of = homes.get(place);
        return of === undefined ? [] : [{ w, of }];
      }),
    )[0];
    if (home !== undefined)
      say(home.w, "a place without coverage", `the coverage of sink[${home.of}] lies there`);
    else if (sink.type === "parquet" && isInOurs(sink.path))
      say(written[0]!, "a folder without `_twg`", "coverage and staged files lie in folders of that name");
  }
  return problems;
}

const isRejects = ({ path }: Written): boolean => path.at(-1) === "rejects";

function placesOf(sink: Sink, at: number): readonly Written[] {
  const of = (key: string, seen: string, place: string): Written => ({
    path: ["sink", at, key],
    seen,
    place,
  });
  switch (sink.type) {
    case "parquet":
      return [of("path", sink.path, fileKey(plainPath(sink.path), sink.s3?.endpoint))];
    case "postgres": {
      const table = of("table", sink.table, tableKey(sink.url, sink.table));
      const { rejects } = sink;
      return rejects === undefined ? [table] : [table, of("rejects", rejects, tableKey(sink.url, rejects))];
    }
    case "kafka":
      return [of("topic", sink.topic, topicKey(sink.bootstrap, sink.topic))];
  }
}

/** Where the sink's coverage is kept; files keep it in a folder that no path may name. */
function homesOf(sink: Sink, pipeline: string): readonly string[] {
  if (sink.type === "postgres")
    return STATE_TABLES.map((table) => tableKey(sink.url, `${sink.state_schema}.${table}`));
  if (sink.type !== "kafka") return [];
  return [topicKey(sink.bootstrap, filledName(sink.coverage_topic, { pipeline, sink: sink.name }))];
}

const isInOurs = (path: string): boolean => plainPath(path).split("/").includes("_twg");

/** A relative path begins at the working directory. */
function plainPath(path: string): string {
  if (!path.includes("://")) return resolve(path);
  return path.replace(/(?<!:)\/+/g, "/").replace(/\/$/, "");
}

/** Buckets of one name may be in two stores. */
const fileKey = (path: string, endpoint: unknown): string => JSON.stringify([path, endpoint ?? null]);

const topicKey = (bootstrap: unknown, topic: string): string => JSON.stringify([bootstrap, topic]);

/** Whether two references are one database cannot be known here; where they are one, they are the same text. */
function tableKey(url: unknown, table: string): string {
  const name = parseTableName(table);
  const { schema, table: t } =
    typeof name === "string" ? { schema: "", table } : { schema: name.schema, table: name.table };
  return JSON.stringify([url, schema, t]);
}
