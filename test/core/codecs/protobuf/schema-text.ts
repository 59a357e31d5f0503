/** A schema as a registry gives it. */
import type { SchemaReference, SchemaText } from "../../../../src/core/schema/resolver.ts";

export function schemaText(text: string, references: readonly SchemaReference[] = []): SchemaText {
  return { format: "protobuf", text, references, id: "1", subject: null, version: null };
}
