/** A schema as the registry sends it, and the names of what it refers to. Nothing of it is trusted. */
import { Failure } from "../../core/failure/failure.ts";
import type { RegistryFormat } from "../../core/schema/resolver.ts";
import { type Asked, isObject, type JsonObject, notRegistry } from "./answers.ts";

export interface NamedReference {
  readonly name: string;
  readonly subject: string;
  readonly version: number;
}

export interface SchemaAnswer {
  readonly format: RegistryFormat;
  readonly text: string;
  readonly references: readonly NamedReference[];
  readonly id: number | null;
  readonly guid: string | null;
  readonly subject: string | null;
  readonly version: number | null;
}

/** Absent: Avro, which was there before there were types. */
const FORMATS: ReadonlyMap<unknown, RegistryFormat> = new Map<unknown, RegistryFormat>([
  [undefined, "avro"],
  [null, "avro"],
  ["AVRO", "avro"],
  ["PROTOBUF", "protobuf"],
  ["JSON", "json"],
]);
const TYPES = { avro: "AVRO", protobuf: "PROTOBUF", json: "JSON" } as const;
const MAX_REFERENCES = 1000;

export function readSchema(value: unknown, asked: Asked): SchemaAnswer {
  if (!isObject(value)) throw notRegistry("JSON that is no object", asked);
  const { schema, schemaType, references } = value;
  if (typeof schema !== "string") throw notRegistry("an answer without a schema", asked);
  const format = FORMATS.get(schemaType);
  if (format === undefined)
    throw invalid(
      `a schema of type ${JSON.stringify(schemaType)?.slice(0, 40)}; known are AVRO, PROTOBUF and JSON`,
      asked,
    );
  return {
    format,
    text: schema,
    references: referencesOf(references, asked),
    id: whole(value["id"]),
    guid: text(value["guid"]),
    subject: text(value["subject"]),
    version: whole(value["version"]),
  };
}

function referencesOf(value: unknown, asked: Asked): NamedReference[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw notRegistry("references that are no list", asked);
  if (value.length > MAX_REFERENCES) throw invalid(`${value.length} references`, asked);
  return value.map((r: unknown) => {
    const { name, subject, version } = isObject(r) ? r : ({} as JsonObject);
    const number = whole(version);
    if (typeof name !== "string" || typeof subject !== "string" || number === null)
      throw notRegistry("a reference without name, subject and version", asked);
    return { name, subject, version: number };
  });
}

export interface NewSchema {
  readonly format: RegistryFormat;
  readonly text: string;
  readonly references?: readonly NamedReference[];
}

/** As requests have it. */
export function schemaBody({ format, text, references = [] }: NewSchema): JsonObject {
  return {
    schema: text,
    schemaType: TYPES[format],
    ...(references.length === 0 ? {} : { references }),
  };
}

export function invalid(text: string, { what, at }: Pick<Asked, "what" | "at">): Failure {
  return new Failure("registry.schema_invalid", `${what}: ${text}`, { at });
}

export function whole(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) ? value : null;
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
