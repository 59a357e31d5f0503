/** Where schemas come from: a registry, a folder, the configuration. Sources of schemas are adapters; codecs see texts. */

import type { TableField } from "../types/table-schema.ts";

/** Of XML no registry knows. */
export type RegistryFormat = "avro" | "protobuf" | "json";
/** text: UTF-8 of no schema. */
export type SchemaFormat = RegistryFormat | "xml" | "text";

/** What a payload's envelope names: a numeric id, a GUID, or (framing none) nothing. */
export type SchemaRef =
  | { readonly by: "id"; readonly id: number }
  | { readonly by: "guid"; readonly guid: string }
  | { readonly by: "default" };

export interface SchemaReference {
  /** As the schema's text names it: a full name or an import path. */
  readonly name: string;
  readonly text: string;
  readonly references: readonly SchemaReference[];
}

/** Columns that a file says in words of its own, whatever the format of the payloads. */
export interface SchemaTable {
  /** A contract may have several objects, each a table. */
  readonly kind: "contract" | "arrow";
  readonly fields: readonly TableField[];
  /** Columns that together name a record, as a contract declares them. */
  readonly naturalKey?: readonly string[];
  /** What the file is, for people. */
  readonly origin: string;
}

export interface SchemaText {
  readonly format: SchemaFormat;
  readonly text: string;
  readonly references: readonly SchemaReference[];
  /** For the metadata column schema_id and messages, as text. */
  readonly id: string;
  readonly subject: string | null;
  readonly version: number | null;
  /** Avro: the schema that payloads are resolved to, where the configuration has one. */
  readonly reader?: Pick<SchemaText, "text" | "references" | "table">;
  /** Of a data contract or an Arrow schema: what it says; the text is that of a table's schema then. */
  readonly table?: SchemaTable;
  /** Learned from records: open to fields that come later, or not. */
  readonly inferred?: "open" | "closed";
}

export interface SchemaResolver {
  /**
   * Resolves once the schema is known. Rejects with a retryable Failure (registry.unreachable, …) while the registry
   * cannot be asked, and with a permanent one (registry.unknown_schema, …) where it answered that there is none.
   */
  schema(ref: SchemaRef): Promise<SchemaText>;
  /** The latest version under a subject. */
  latest(subject: string): Promise<SchemaText>;
}
