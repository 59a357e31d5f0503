/**
 * The schemas by which decoded rows are written, and the registry that has them before the first row is: made of the table's
 * columns, in the control thread. Lanes get the text back, and write by it.
 */
import type { RegistryClient } from "../adapters/registry/client.ts";
import { avroSchemaOf } from "../core/codecs/avro/schema-of-columns.ts";
import {
  commentedJsonSchema,
  joinedJsonSchemas,
  jsonSchemaOf,
  propertyPaths,
} from "../core/codecs/json/schema-of-columns.ts";
import { fieldPaths, numbersIn, numbersOfVersions } from "../core/codecs/protobuf/field-numbers.ts";
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
/** So many orders of declaration are looked at, of Protobuf. */
const ORDERS = 16;

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
      return await settled(client, encode, jsonShape(fields, record), register);
    case "protobuf":
      return await settled(client, encode, protobufShape(fields, record), register);
  }
}

/** How a format declares a table's fields. */
interface Shape {
  readonly format: RegistryFormat;
  /** What is to be registered where there are these versions. `met`: the number of the one that was the newest when we came. */
  text(versions: readonly SchemaText[], met: number): string;
  /** The same by a text that no version has; null: there is none. */
  another(versions: readonly SchemaText[], met: number): string | null;
  /** Fields with those within, as they are declared. Null: a schema of something else. */
  fields(schema: SchemaText): readonly string[] | null;
}

/** Properties of the version that was the newest stay, and of those that came since; not what somebody removed before. */
function jsonShape(columns: readonly ColumnField[], record: string): Shape {
  const text = (versions: readonly SchemaText[], met: number) => {
    const since = versions.filter((v) => v.format === "json" && (v.version ?? 0) >= met).map((v) => v.text);
    return jsonSchemaOf(columns, record, since.length === 0 ? null : since.reduce(joinedJsonSchemas));
  };
  return {
    format: "json",
    text,
    another: (versions, met) =>
      commentedJsonSchema(text(versions, met), `With what version ${versions.at(-1)?.version} lacks`),
    fields: (schema) => (schema.format === "json" ? propertyPaths(schema.text) : null),
  };
}

function protobufShape(columns: readonly ColumnField[], record: string): Shape {
  const text = (versions: readonly SchemaText[], order: number) =>
    protobufSchemaOf(columns, record, numbersOfVersions(versions, record), order);
  const shape: Shape = {
    format: "protobuf",
    text: (versions) => text(versions, 0),
    another(versions) {
      const known = new Set(versions.map((v) => String(shape.fields(v))));
      for (let order = 0; order < ORDERS; order++) {
        const other = text(versions, order);
        if (!known.has(String(fieldsOf(shape, other)))) return other;
      }
      return null;
    },
    fields(schema) {
      const numbers = numbersIn(schema, record);
      return numbers === null ? null : fieldPaths(numbers);
    },
  };
  return shape;
}

/**
 * Lanes and processes that register at once do not know of each other: a registry takes one number for two columns where their
 * types are alike, and a version that lacks what the one before has. Who registered looks again, and registers anew until no
 * earlier version contradicts what it has, and the newest knows every row. Whose version came last sees all the others.
 *
 * Fields are compared, not texts: registries print what they keep as they like.
 */
async function settled(
  client: Client,
  { subject, record }: Pick<RowEncode, "subject" | "record">,
  shape: Shape,
  register: boolean,
): Promise<RowSchema> {
  const first = await client.versions(subject);
  const met = first.at(-1)?.version ?? 0;
  let text = shape.text(first, met);
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const schema = await had(client, subject, shape.format, text, register);
    const versions = await client.versions(subject);
    const wanted = shape.text(versions, met);
    const holds = hasAll(fieldsOf(shape, wanted), fieldsOf(shape, text));
    const next = register ? nextText(shape, versions, met) : null;
    // A newest version that lacks fields is no reason to hold up rows whose own schema is right.
    if (holds && (next === null || attempt === ATTEMPTS)) return schema;
    text = next ?? wanted;
  }
  throw new Failure(
    "registry.unavailable",
    `${subject}: others registered other fields of ${record} each time that it was tried`,
    { retry: true },
  );
}

/** What is to be registered if the newest version lacks fields: what an earlier one is already gives no new version. Null: nothing. */
function nextText(shape: Shape, versions: readonly SchemaText[], met: number): string | null {
  const known = versions.map((v) => shape.fields(v)).filter((fields) => fields !== null);
  const text = shape.text(versions, met);
  const wanted = fieldsOf(shape, text);
  if (hasAll(known.at(-1) ?? [], wanted)) return null;
  const there = known.some((fields) => hasAll(fields, wanted) && hasAll(wanted, fields));
  return there ? shape.another(versions, met) : text;
}

/** Of a text of ours. */
function fieldsOf(shape: Shape, text: string): readonly string[] {
  const schema = { format: shape.format, text, references: [], id: "", subject: null, version: null };
  return shape.fields(schema) ?? [];
}

function hasAll(fields: readonly string[], wanted: readonly string[]): boolean {
  const had = new Set(fields);
  return wanted.every((field) => had.has(field));
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
