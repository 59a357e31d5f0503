/** What is wrong with schema files is told before anything is read: their records would all be refused. */
import { existsSync } from "node:fs";
import type { CheckedConfig } from "../core/config/check.ts";
import { type DecodeSection, type PayloadPlan, payloadPlan } from "../core/config/decode-options.ts";
import { type ConfigPath, orderProblems, type Problem, pathText, quoted } from "../core/config/problem.ts";
import { asFailure, Failure } from "../core/failure/failure.ts";
import { type Checkup, failedBy, ok, skipped } from "../core/ports/doctor.ts";
import type { ColumnField } from "../core/types/table-batch.ts";
import { columnsText } from "./columns-text.ts";
import { offlineSchemas, schemaFault } from "./offline-schemas.ts";
import { partDecoder } from "./payload-decoder.ts";

type Sources = ReturnType<typeof offlineSchemas>;

/** Throws files.schema for the first file of the section, or of one of these topics, that cannot be read by. */
export async function checkSchemaFiles(
  decode: DecodeSection,
  topics: readonly string[],
  prefix: string,
): Promise<void> {
  const sources = offlineSchemas(decode);
  for (const one of payloadsOf(decode, [...new Set([...namedTopics(decode), ...topics])]))
    if (tableFile(one.plan) !== null) await columnsOf(decode, sources, one, prefix);
}

/** What schema files are at fault for in a configuration: a problem each, or a warning where the file is not here. */
export interface FileVerdict {
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

/** The same for `config validate`, which says all at once. A file that is missing may be where the pipeline will run. */
export async function schemaFileProblems(
  { file, lineOf }: Pick<CheckedConfig, "file" | "lineOf">,
  decode: DecodeSection,
  topics: readonly string[],
  prefix: string,
): Promise<FileVerdict> {
  const sources = offlineSchemas(decode);
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  for (const one of payloadsOf(decode, [...new Set([...namedTopics(decode), ...topics])])) {
    const seen = tableFile(one.plan);
    if (seen === null) continue;
    const path = optionOf(decode, one);
    const about = { code: "files.schema", file, line: lineOf(path), path: pathText(path) } as const;
    if (!existsSync(seen)) {
      const hint = "there is no such file here; `twg stream` needs it where it runs";
      warnings.push({ ...about, seen: quoted(seen), allowed: "", hint });
      continue;
    }
    try {
      await columnsOf(decode, sources, one, prefix);
    } catch (e) {
      problems.push({ ...about, seen: quoted(seen), allowed: "", hint: asFailure(e).message });
    }
  }
  return { problems: orderProblems(problems), warnings: orderProblems(warnings) };
}

/** The option that names the table's file: the topic's own, else the section's. */
function optionOf(decode: DecodeSection, { topic, part, plan }: Payloads): ConfigPath {
  const key = plan.readerSchema === null ? "schema_file" : "reader_schema";
  const within = part === "key" ? ["key"] : [];
  const i = (decode.topic ?? []).findIndex((t) => t.name === topic);
  const own = i < 0 ? undefined : part === "key" ? decode.topic![i]!.key : decode.topic![i];
  return own?.[key] === undefined ? ["decode", ...within, key] : ["decode", "topic", i, ...within, key];
}

/** The file that says what columns there are. */
function tableFile({ readerSchema, schemaFile }: PayloadPlan): string | null {
  return readerSchema ?? schemaFile;
}

/** A topic of no name has what the section says for all. */
function namedTopics(decode: DecodeSection): readonly string[] {
  return ["", ...(decode.topic ?? []).map((t) => t.name)];
}

interface Payloads {
  readonly topic: string;
  readonly part: "key" | "value";
  readonly plan: PayloadPlan;
}

/** Values, and keys where they are decoded. */
function payloadsOf(decode: DecodeSection, topics: readonly string[]): readonly Payloads[] {
  return topics.flatMap((topic) =>
    (["value", "key"] as const).flatMap((part) => {
      const plan = payloadPlan(decode, topic, part);
      return plan === null || plan.format === "text" ? [] : [{ topic, part, plan }];
    }),
  );
}

/** Null: nothing names the table's schema. Throws files.schema for one that cannot be used. */
async function columnsOf(
  decode: DecodeSection,
  sources: Sources,
  { topic, part, plan }: Payloads,
  prefix: string,
): Promise<readonly ColumnField[] | null> {
  try {
    const schema = await sources.table(topic, part);
    if (schema === null) return null;
    const { fields } = partDecoder(decode, schema, part, plan, null, prefix);
    // Where one file has the schema of all writers, too, it has to go into the reader's.
    if (plan.readerSchema !== null && plan.schemaFile !== null) {
      const written = await sources.writer({ by: "default" }, topic, part);
      if (written !== null) partDecoder(decode, written, part, plan, null, prefix);
    }
    return fields;
  } catch (e) {
    const message = `no ${plan.format} ${part === "key" ? "key" : "payload"} can be read by this schema: ${schemaFault(e)}`;
    const at = tableFile(plan) ?? decode.schema_dir;
    throw new Failure("files.schema", message, at === undefined ? {} : { at });
  }
}

/** The part of `twg doctor` that reads schema files and folders as a start would; those of a registry are looked at there. */
export function schemaFilesCheckup(
  decode: DecodeSection,
  topics: readonly string[],
  prefix: string,
): Checkup | null {
  const plans = payloadsOf(decode, [...namedTopics(decode), ...topics]).filter(
    ({ topic, plan }) => tableFile(plan) !== null || (decode.schema_dir !== undefined && topic !== ""),
  );
  if (plans.length === 0) return null;
  return {
    name: "schema",
    at: "schema files",
    async run({ report }) {
      const sources = offlineSchemas(decode);
      const seen = new Set<string>();
      for (const one of plans) {
        const { topic, part, plan } = one;
        const { format, message } = plan;
        const schemaFile = tableFile(plan);
        const at = schemaFile ?? `${topic}${part === "key" ? "'s keys" : ""} in ${decode.schema_dir}`;
        const key = `${format} ${at} ${message ?? ""}`;
        if (seen.has(key)) continue;
        seen.add(key);
        try {
          const columns = await columnsOf(decode, sources, one, prefix);
          if (columns !== null) report(ok("schema.file", at, `${format}, ${columnsText(columns)}`));
        } catch (e) {
          const failure = asFailure(e);
          // Payloads that name their schema by an id need none of the topic's own.
          if (schemaFile === null && failure.message.includes("registry.unknown_subject"))
            report(skipped("schema.file", at, "the folder has no schema of this topic's name"));
          else report(failedBy("schema.file", at, failure));
        }
      }
    },
  };
}
