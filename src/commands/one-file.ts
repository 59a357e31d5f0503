/**
 * Whether all rows of a pipeline have the columns of one file of its configuration. Then no record brought a schema of its own,
 * and none is at fault where a table does not take them.
 */
import { type DecodeSection, type PayloadPlan, payloadPlan } from "../core/config/decode-options.ts";

/** `topics`: all that are read; none: nobody can name them. */
export function isOfOneFile(decode: DecodeSection, topics: readonly string[]): boolean {
  const values = topics.map((topic) => columnsBy(decode, payloadPlan(decode, topic, "value"), topics));
  const keys = topics.map((topic) => columnsBy(decode, payloadPlan(decode, topic, "key"), topics));
  const known = [...values, ...keys].every((by) => by !== null);
  const isOne = (of: readonly (string | null)[]) => new Set(of.filter((by) => by !== NONE)).size <= 1;
  return topics.length > 0 && known && isOne(values) && isOne(keys);
}

const NONE = "none";

/** What says the columns; null: the records do, or whatever they name. */
function columnsBy(
  { registry, schema_dir: folder }: DecodeSection,
  plan: PayloadPlan | null,
  topics: readonly string[],
): string | null {
  if (plan === null) return NONE;
  const { format, framing, schemaFile, readerSchema, message, prefix } = plan;
  if (format === "text") return JSON.stringify([format, prefix]);
  const named =
    framing !== "none" && (registry !== undefined || folder !== undefined || format === "protobuf");
  const file = readerSchema ?? (named ? null : schemaFile);
  // Of a file with several tables each topic may have its own.
  if (file === null || (message === null && topics.length > 1)) return null;
  return JSON.stringify([format, file, message, prefix]);
}
