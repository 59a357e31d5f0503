/** The tables that `[decode]` makes of topics, for `config explain`: as far as files tell, since it asks no server. */
import { subjectOfPlan } from "../adapters/registry/schema-sources.ts";
import { type DecodeSection, type PayloadPlan, payloadPlan } from "../core/config/decode-options.ts";
import type { SchemaText } from "../core/schema/resolver.ts";
import type { ColumnType } from "../core/types/table-batch.ts";
import { sourceOf, type TableField } from "../core/types/table-schema.ts";
import { typeText } from "../core/types/type-text.ts";
import { offlineSchemas, schemaFault } from "./offline-schemas.ts";
import { partDecoder } from "./payload-decoder.ts";
import { styled } from "./style.ts";
import { renderTable } from "./table.ts";

export interface ExplainedColumn {
  /** Of the table; within a column that has others inside its path, such as `items[].sku`. */
  readonly column: string;
  readonly type: string;
  readonly nullable: boolean;
  /** In the payload's schema. */
  readonly from: string;
}

/** Of the values of a topic, or of its keys, whose columns come before those. */
export interface ExplainedTable {
  readonly topic: string;
  readonly part: "key" | "value";
  /** Where its schema comes from. */
  readonly schema: string;
  /** Null: not known before a server was asked, or not at all; `note` says why. */
  readonly columns: readonly ExplainedColumn[] | null;
  readonly note: string;
}

/**
 * One for each of the topics, or two where keys are decoded, too. Touches no network. `learned`: by topic, of those without a
 * schema; null: not to be known here.
 */
export async function explainDecode(
  decode: DecodeSection,
  topics: readonly string[],
  prefix: string,
  learned: ReadonlyMap<string, string> | null = new Map(),
): Promise<ExplainedTable[]> {
  const { registry } = decode;
  const sources = offlineSchemas(decode);
  const one = async (topic: string, part: "key" | "value"): Promise<ExplainedTable[]> => {
    const plan = payloadPlan(decode, topic, part);
    if (plan === null) return [];
    let about = { topic, part, schema: originOf(decode, plan, topic, part) };
    const inFile = plan.format === "text" || plan.schemaFile !== null || plan.readerSchema !== null;
    if (registry !== undefined && !inFile) {
      const note = "the registry is asked when the pipeline runs, and by `twg doctor`";
      return [{ ...about, columns: null, note }];
    }
    try {
      const text =
        (await sources.table(topic, part)) ?? (part === "key" ? null : learnedText(learned?.get(topic)));
      if (text === null) return [{ ...about, columns: null, note: learned === null ? ELSEWHERE : NOT_YET }];
      const table = text.table ?? text.reader?.table;
      if (table !== undefined) about = { ...about, schema: `${about.schema}: ${table.origin}` };
      const { fields } = partDecoder(decode, text, part, plan, null, prefix);
      const within = part === "key" ? "key " : "";
      return [{ ...about, columns: fields.flatMap((f) => explained(f, "", within)), note: "" }];
    } catch (e) {
      return [{ ...about, columns: null, note: schemaFault(e) }];
    }
  };
  const both = topics.flatMap((topic) => [one(topic, "key"), one(topic, "value")]);
  return (await Promise.all(both)).flat();
}

const NOT_YET = "columns come with the records, and stay";
const ELSEWHERE = "columns come with the records, and stay: they are kept in the bucket";

function learnedText(text: string | undefined): SchemaText | null {
  if (text === undefined) return null;
  return { format: "json", text, references: [], id: "", subject: null, version: null };
}

function originOf(decode: DecodeSection, plan: PayloadPlan, topic: string, part: "key" | "value"): string {
  if (plan.format === "text") return "text";
  const isMessage = plan.format !== "json" && plan.format !== "xml";
  const of = plan.message === null || !isMessage ? "" : `, ${plan.message}`;
  if (plan.readerSchema !== null) return `${plan.format} resolved to ${plan.readerSchema}`;
  if (plan.schemaFile !== null) return `${plan.format} by ${plan.schemaFile}${of}`;
  if (decode.registry === undefined && decode.schema_dir === undefined)
    return `${plan.format} without a schema, columns learned from its records`;
  const subject = subjectOfPlan(decode.subject_strategy, plan, topic, part);
  const place = decode.registry === undefined ? decode.schema_dir : "the registry";
  return `${plan.format} by ${subject} in ${place}${of}`;
}

function explained(field: TableField, above: string, within: string): ExplainedColumn[] {
  const { name, type, nullable } = field;
  const column = `${above}${name}`;
  const from = `${within}${sourceOf(field)}`;
  return [{ column, type: outerText(type), nullable, from }, ...inside(type, column, from)];
}

function inside(type: ColumnType, path: string, from: string): ExplainedColumn[] {
  if (type.id === "struct") return type.fields.flatMap((f) => explained(f, `${path}.`, `${from}.`));
  if (type.id === "list") return inside(type.item.type, `${path}[]`, `${from}[]`);
  return type.id === "map" ? inside(type.value.type, `${path}{}`, `${from}{}`) : [];
}

/** Without what the lines below it tell. */
function outerText(type: ColumnType): string {
  if (type.id === "struct") return "struct";
  if (type.id === "list") return `list<${outerText(type.item.type)}>`;
  return type.id === "map" ? `map<${typeText(type.key.type)},${outerText(type.value.type)}>` : typeText(type);
}

export function decodeText(tables: readonly ExplainedTable[], colour: boolean): string {
  const blocks = tables.map(({ topic, part, schema, columns, note }) => {
    const head = `${styled(part === "key" ? `Keys of ${topic}` : `Table of ${topic}`, "bold", colour)}: ${schema}`;
    if (columns === null) return `${head}\n  ${note}\n`;
    const heads = [{ head: "COLUMN" }, { head: "TYPE" }, { head: "NULL" }, { head: "FROM" }];
    const rows = columns.map((c) => [c.column, c.type, c.nullable ? "yes" : "no", c.from]);
    return `${head}\n${renderTable(heads, rows, colour)}`;
  });
  return blocks.map((b) => `\n${b}`).join("");
}
