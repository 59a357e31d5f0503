/** A table's schema as a document of its own: what formats without schemas are read by. */
import { Failure } from "../failure/failure.ts";
import { isReserved } from "../types/reserved.ts";
import { parseSchemaDocument } from "../types/schema-file.ts";
import type { ColumnField } from "../types/table-batch.ts";
import type { TableField } from "../types/table-schema.ts";
import { DecodeError } from "./record-codec.ts";

export interface TableDocument {
  readonly fields: readonly TableField[];
  /** Namespaces of names with a prefix: prefix -> URI. */
  readonly namespaces: ReadonlyMap<string, string>;
}

/** Null: the text is JSON of another kind, or none. Throws a DecodeError (decode.schema) for columns that are none. */
export function tableDocument(text: string): TableDocument | null {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof document !== "object" || document === null || !("columns" in document)) return null;
  try {
    const { fields } = parseSchemaDocument(text, "the schema");
    return { fields, namespaces: namespacesOf(document) };
  } catch (e) {
    if (!(e instanceof Failure)) throw e;
    throw new DecodeError("decode.schema", "", e.message);
  }
}

function namespacesOf(document: object): ReadonlyMap<string, string> {
  const given = "namespaces" in document ? document.namespaces : {};
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw new DecodeError("decode.schema", "namespaces", "an object of prefixes and their URIs is wanted");
  return new Map(
    Object.entries(given).map(([prefix, uri]) => {
      if (typeof uri === "string" && uri !== "" && /^[A-Za-z_][\w.-]*$/.test(prefix)) return [prefix, uri];
      throw new DecodeError("decode.schema", `namespaces.${prefix}`, "a prefix and its URI are wanted");
    }),
  );
}

/** `reserved`: what names of metadata columns begin with; null: nothing is reserved. */
export function refuseReserved(fields: readonly Pick<ColumnField, "name">[], reserved: string | null): void {
  const taken = reserved === null ? undefined : fields.find((f) => isReserved(f.name, reserved));
  if (taken !== undefined)
    throw new DecodeError("decode.reserved", taken.name, `names that begin with ${reserved} are reserved`);
}
