/** Roles that recover, where there is nothing that they could fill, or nothing that they could read. */
import type { CheckedConfig } from "../core/config/check.ts";
import { type Problem, pathText, quoted } from "../core/config/problem.ts";
import type { BatchConfig } from "./batch-config.ts";

export function unfitRole(config: CheckedConfig): Problem[] {
  const { role } = config.pipeline;
  const { sinks } = config as unknown as BatchConfig;
  const beside = sinks.filter((s) => s.role === "secondary");
  const raw = sinks.find((s) => s.role === "primary_raw");
  if (role === "ingest") return [];
  const say = (hint: string): Problem[] => {
    const path = ["pipeline", "role"];
    const [file, line] = [config.file, config.lineOf(path)];
    const [seen, allowed] = [quoted(role), quoted("ingest")];
    return [{ code: "config.conflict", file, line, path: pathText(path), seen, allowed, hint }];
  };
  if (beside.length === 0) return role === "both" ? [] : say("with one sink there is nothing to recover");
  if (raw === undefined || raw.type === "parquet") return [];
  if (raw.type === "postgres")
    return raw.mode === "append"
      ? []
      : say("a table of the latest record of each key is not all that was read");
  return say(
    `raw is in a sink of type ${raw.type}: this version reads raw again from Parquet files and from tables`,
  );
}
