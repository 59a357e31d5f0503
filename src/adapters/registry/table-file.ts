/** Files that describe a table in words of their own, whatever the format of its records: data contracts, Arrow schemas. */
import type { WantedObject } from "../../core/contract/odcs.ts";
import { columnsOfArrow } from "../../core/formats/arrow/fields.ts";
import { arrowFieldsOfIpc, isArrowIpc } from "../../core/formats/arrow/ipc-schema.ts";
import { arrowFieldsOfJson, arrowJsonFields } from "../../core/formats/arrow/json-schema.ts";
import type { SchemaTable } from "../../core/schema/resolver.ts";

/** Null: it is a file of another kind. Throws files.schema for one of these that cannot be used. */
export async function tableOfFile(
  path: string,
  bytes: Uint8Array,
  wanted: WantedObject,
): Promise<SchemaTable | null> {
  if (isArrowIpc(bytes)) return ofArrow(columnsOfArrow(arrowFieldsOfIpc(bytes, path), path));
  const text = new TextDecoder().decode(bytes);
  const document = parsed(text);
  const fields = arrowJsonFields(document);
  if (fields !== null) return ofArrow(columnsOfArrow(arrowFieldsOfJson(fields, path), path));
  if (!isContract(document, text) && !/\.ya?ml$/i.test(path)) return null;
  // The parser of YAML is loaded where there is something to parse.
  const { tableOfContract } = await import("../../core/contract/odcs.ts");
  return { kind: "contract", ...tableOfContract(text, wanted, path) };
}

function ofArrow(fields: SchemaTable["fields"]): SchemaTable {
  return { kind: "arrow", fields, origin: "an Arrow schema" };
}

const YAML_CONTRACT = /^(kind\s*:\s*["']?DataContract\b|dataContractSpecification\s*:)/m;

/** Whether it says of itself that it is a data contract, of whatever kind. */
function isContract(document: unknown, text: string): boolean {
  if (typeof document !== "object" || document === null) return document === null && YAML_CONTRACT.test(text);
  return ("kind" in document && document.kind === "DataContract") || "dataContractSpecification" in document;
}

/** Null: it is no JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
