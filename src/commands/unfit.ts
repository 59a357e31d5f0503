/** Options of a source and a sink that are fine alone and wrong together. */
import type { CheckedConfig } from "../core/config/check.ts";
import type { ConfigPath, Problem } from "../core/config/problem.ts";
import { pathText, quoted } from "../core/config/problem.ts";
import type { BatchConfig } from "./batch-config.ts";
import type { SinkOf } from "./config-file.ts";
import { unfitToDecode } from "./unfit-decode.ts";
import { unfitDedup } from "./unfit-dedup.ts";
import { unfitPlaces } from "./unfit-places.ts";
import { unfitRole } from "./unfit-role.ts";

export function unfit(config: CheckedConfig): Problem[] {
  const { source, sinks } = config as unknown as BatchConfig;
  return [
    ...sinks.flatMap((sink, at) => {
      if (sink.type === "kafka") return unfitForTopics(config, at);
      return sink.type === "postgres" ? unfitPostgres(config, source, sink, at) : [];
    }),
    ...(source.type === "files" && sinks.length > 1 ? [severalOfFiles(config)] : []),
    ...unfitPlaces(config),
    ...unfitRole(config),
    ...unfitToDecode(config),
    ...unfitDedup(config),
  ];
}

function severalOfFiles(config: CheckedConfig): Problem {
  const path = ["sink", 1];
  return {
    code: "config.not_in_this_version",
    file: config.file,
    line: config.lineOf(path),
    path: pathText(path),
    seen: `${config.sinks.length} sinks`,
    allowed: "one sink",
    hint: "rows of files land in one sink: run `twg batch` once for each",
  };
}

function unfitPostgres(
  config: CheckedConfig,
  source: BatchConfig["source"],
  sink: SinkOf<"postgres">,
  at: number,
): Problem[] {
  const problems: Problem[] = [];
  const say = (path: ConfigPath, seen: string, allowed: string, hint: string) =>
    problems.push({
      code: seen === "" ? "config.missing" : "config.conflict",
      file: config.file,
      line: config.lineOf(path),
      path: pathText(path),
      seen,
      allowed,
      hint,
    });
  const { mode, key } = sink;
  if (sink.row_key) {
    const path = ["sink", at, "row_key"];
    if (String(source.type) === "files")
      say(path, "true", "only with a source of topics", "each file lands once, by its digest");
    else if (sink.receives === "rejected")
      say(path, "true", 'receives = "raw" or "decoded"', "another version may give a reason in other words");
    else if (mode === "upsert")
      say(path, "true", 'only with mode = "append"', "the key of an upsert has each row once");
  }
  const seenKey = key === undefined ? "" : key.map(quoted).join(", ");
  if (mode === "append") {
    if (key !== undefined)
      say(["sink", at, "key"], seenKey, 'only with mode = "upsert"', "rows are added here");
    return problems;
  }
  if (String(source.type) !== "files") {
    if (key !== undefined)
      say(
        ["sink", at, "key"],
        seenKey,
        "no key",
        "records of topics are named by their topic and their own key",
      );
    return problems;
  }
  if (key === undefined)
    say(["sink", at, "key"], "", "names of columns", "an upsert needs to know which rows are one");
  if (source.metadata === "none")
    say(
      ["source", "metadata"],
      quoted("none"),
      quoted("locator"),
      "the later row wins, by the position in its file",
    );
  return problems;
}

/** Records of topics go into topics; whether the cluster is the same is found out when both are asked. */
function unfitForTopics(config: CheckedConfig, at: number): Problem[] {
  if (config.source.type === "kafka") return [];
  const path: ConfigPath = ["sink", at, "type"];
  return [
    {
      code: "config.conflict",
      file: config.file,
      line: config.lineOf(path),
      path: pathText(path),
      seen: quoted("kafka"),
      allowed: "a sink that takes rows of files",
      hint: "rows of files have no bytes that could be a record's; topics are written by `twg stream`",
    },
  ];
}
