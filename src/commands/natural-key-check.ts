/** The natural keys of topics whose duplicates are left out: a contract that declares none is told before anything is read. */
import { existsSync } from "node:fs";
import type { CheckedConfig } from "../core/config/check.ts";
import { type DecodeSection, payloadPlan } from "../core/config/decode-options.ts";
import { type Problem, pathText, quoted } from "../core/config/problem.ts";
import { keyColumns } from "../core/delivery/natural-key.ts";
import { asFailure } from "../core/failure/failure.ts";
import { offlineSchemas } from "./offline-schemas.ts";

/** Names of the columns. Throws dedup.no_key, and files.schema. */
export async function naturalKeyOf(decode: DecodeSection, topic: string): Promise<readonly string[]> {
  const table = (await offlineSchemas(decode).table(topic, "value"))?.table;
  const at = contractOf(decode, topic) ?? topic;
  const names = table?.naturalKey ?? [];
  keyColumns(table?.fields ?? [], names, at);
  return names;
}

/** The file that says the columns of its table. */
function contractOf(decode: DecodeSection, topic: string): string | null {
  const plan = payloadPlan(decode, topic, "value");
  return plan?.readerSchema ?? plan?.schemaFile ?? null;
}

/** Of topics that are known by name; of others any object of the contract. */
export function topicsWithKeys(
  decode: DecodeSection,
  topics: readonly string[] | undefined,
): readonly string[] {
  return topics ?? ["", ...(decode.topic ?? []).map((t) => t.name)];
}

/** For `config validate`. A file that is missing may be where the pipeline will run. */
export async function naturalKeyProblems(
  { file, lineOf, sinks }: Pick<CheckedConfig, "file" | "lineOf" | "sinks">,
  decode: DecodeSection,
  topics: readonly string[] | undefined,
): Promise<readonly Problem[]> {
  const at = sinks.findIndex((s) => s.duplicates === "drop");
  if (at < 0) return [];
  const path = ["sink", at, "duplicates"];
  const problems: Problem[] = [];
  for (const topic of topicsWithKeys(decode, topics)) {
    const schema = contractOf(decode, topic);
    if (schema === null || !existsSync(schema)) continue;
    const why = await naturalKeyOf(decode, topic).then(() => null, asFailure);
    // What is wrong with the file itself is said of it.
    if (why?.code !== "dedup.no_key") continue;
    const about = { code: why.code, file, line: lineOf(path), path: pathText(path) };
    const allowed = "a contract with a primaryKey";
    problems.push({ ...about, seen: quoted("drop"), allowed, hint: `${schema}: ${why.message}` });
  }
  return problems;
}
