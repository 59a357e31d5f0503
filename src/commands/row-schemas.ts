/**
 * The schemas by which decoded rows are written, and the registry that has them before the first row is: made of the table's
 * columns, in the control thread. Lanes get the text back, and write by it.
 */
import type { RegistryClient } from "../adapters/registry/client.ts";
import { avroSchemaOf } from "../core/codecs/avro/schema-of-columns.ts";
import { jsonSchemaOf } from "../core/codecs/json/schema-of-columns.ts";
import { isAmong, numbersIn, numbersOfVersions } from "../core/codecs/protobuf/field-numbers.ts";
import { protobufSchemaOf } from "../core/codecs/protobuf/schema-of-columns.ts";
import { Failure } from "../core/failure/failure.ts";
import type { RegistryFormat } from "../core/schema/resolver.ts";
import type { ColumnField } from "../core/types/table-batch.ts";

export interface RowSchema {
  /** The registry's. */
  readonly id: number;
  readonly text: string;
}

export interface RowEncode {
  readonly format: "avro" | "protobuf" | "json_schema";
  readonly subject: string;
  /** Full name. */
  readonly record: string;
}

type Client = Pick<RegistryClient, "register" | "lookup" | "versions">;

/** So many others may register at the same moment. */
const ATTEMPTS = 5;

/** `register`: false: the schema must be there. Rejects with encode.unsupported, and as the client does. */
export async function rowSchema(
  client: Client,
  { format, subject, record }: RowEncode,
  fields: readonly ColumnField[],
  register: boolean,
): Promise<RowSchema> {
  switch (format) {
    case "avro":
      return await had(client, subject, format, avroSchemaOf(fields, record), register);
    case "json_schema":
      return await grown(client, subject, record, fields, register);
    case "protobuf":
      return await numbered(client, subject, record, fields, register);
  }
}

/** With the properties of the newest version, which others may have registered. */
async function grown(
  client: Client,
  subject: string,
  record: string,
  fields: readonly ColumnField[],
  register: boolean,
): Promise<RowSchema> {
  const before = (await client.versions(subject)).at(-1);
  const known = before?.format === "json" ? before.text : null;
  return await had(client, subject, "json", jsonSchemaOf(fields, record, known), register);
}

/**
 * Two processes that register at once may give one number to two columns, which a registry takes where their types are alike.
 * Whose version is the later one sees it there, and numbers anew: nothing is written by a schema that an earlier one
 * contradicts.
 */
async function numbered(
  client: Client,
  subject: string,
  record: string,
  fields: readonly ColumnField[],
  register: boolean,
): Promise<RowSchema> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const known = numbersOfVersions(await client.versions(subject), record);
    const schema = await had(client, subject, "protobuf", protobufSchemaOf(fields, record, known), register);
    const now = numbersOfVersions(await client.versions(subject), record);
    const own = numbersIn({ ...ALONE, text: schema.text }, record);
    if (own !== null && isAmong(own, now)) return schema;
  }
  throw new Failure(
    "registry.unavailable",
    `${subject}: others registered other numbers for fields of ${record} each time that it was tried`,
    { retry: true },
  );
}

const ALONE = { format: "protobuf", references: [], id: "", subject: null, version: null } as const;

async function had(
  client: Client,
  subject: string,
  format: RegistryFormat,
  text: string,
  register: boolean,
): Promise<RowSchema> {
  const schema = { format, text };
  if (register) return { id: (await client.register(subject, schema, false)).id, text };
  const { id } = await client.lookup(subject, schema, false);
  if (id !== null) return { id, text };
  throw new Failure("registry.answer_invalid", `a schema under ${subject}: an answer without an id`);
}
