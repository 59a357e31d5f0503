/**
 * The schemas by which decoded rows are written, and the registry that has them before the first row is: made of the table's
 * columns, in the control thread. Lanes get the text back, and write by it.
 */
import type { RegistryClient } from "../adapters/registry/client.ts";
import { avroSchemaOf } from "../core/codecs/avro/schema-of-columns.ts";
import { jsonSchemaOf } from "../core/codecs/json/schema-of-columns.ts";
import { numbersOfVersions } from "../core/codecs/protobuf/field-numbers.ts";
import { protobufSchemaOf } from "../core/codecs/protobuf/schema-of-columns.ts";
import { Failure } from "../core/failure/failure.ts";
import type { RegistryFormat, SchemaText } from "../core/schema/resolver.ts";
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
  encode: RowEncode,
  fields: readonly ColumnField[],
  register: boolean,
): Promise<RowSchema> {
  const { format, subject, record } = encode;
  switch (format) {
    case "avro":
      return await had(client, subject, format, avroSchemaOf(fields, record), register);
    case "json_schema":
      return await settled(client, encode, "json", (v) => jsonText(v, fields, record), register);
    case "protobuf":
      return await settled(client, encode, format, (v) => protobufText(v, fields, record), register);
  }
}

/** With the properties of the newest version, which others may have registered. */
function jsonText(versions: readonly SchemaText[], fields: readonly ColumnField[], record: string): string {
  const before = versions.at(-1);
  return jsonSchemaOf(fields, record, before?.format === "json" ? before.text : null);
}

function protobufText(
  versions: readonly SchemaText[],
  fields: readonly ColumnField[],
  record: string,
): string {
  return protobufSchemaOf(fields, record, numbersOfVersions(versions, record));
}

/**
 * Lanes and processes that register at once do not know of each other: a registry takes one number for two columns where their
 * types are alike, and a version that lacks what the one before has. Who registered looks again, and does it anew until what
 * it would register is what it has: no earlier version contradicts it, and the newest knows every row.
 */
async function settled(
  client: Client,
  { subject, record }: Pick<RowEncode, "subject" | "record">,
  format: RegistryFormat,
  textOf: (versions: readonly SchemaText[]) => string,
  register: boolean,
): Promise<RowSchema> {
  let text = textOf(await client.versions(subject));
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const schema = await had(client, subject, format, text, register);
    text = textOf(await client.versions(subject));
    if (text === schema.text) return schema;
  }
  throw new Failure(
    "registry.unavailable",
    `${subject}: others registered other fields of ${record} each time that it was tried`,
    { retry: true },
  );
}

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
