/** Roles that recover, where there is nothing that they could fill. */
import type { CheckedConfig } from "../core/config/check.ts";
import { type Problem, pathText, quoted } from "../core/config/problem.ts";
import type { BatchConfig } from "./batch-config.ts";

export function unfitRole(config: CheckedConfig): Problem[] {
  const { role } = config.pipeline;
  const { sinks } = config as unknown as BatchConfig;
  const beside = sinks.filter((s) => s.role === "secondary");
  const say = (code: Problem["code"], hint: string): Problem[] => {
    const path = ["pipeline", "role"];
    const [file, line] = [config.file, config.lineOf(path)];
    return [{ code, file, line, path: pathText(path), seen: quoted(role), allowed: quoted("ingest"), hint }];
  };
  if (role === "recovery" && beside.length === 0)
    return say("config.conflict", "with one sink there is nothing to recover");
  if (role === "ingest" || beside.length === 0) return [];
  return say("config.not_in_this_version", "`twg recover` fills gaps, also while the pipeline runs");
}
