/**
 * The stored schema of a live table as JSON, version 1. Persisted: a change of shape is a new version with its own reader
 * and a new golden file. Types are written whole, not as text, so that what is read is what was written.
 */
import { asFailure, Failure } from "../failure/failure.ts";
import type { ColumnField, ColumnType } from "../types/table-batch.ts";
import { corrupt, count, fields, fieldsOf, keyed, oneOf, type Place, text } from "./json-place.ts";
import { checkVersion, limited } from "./state-json.ts";

const FORMAT = "twg.table";
const VERSION = 1;
const MAX_BYTES = 8 * 1024 * 1024;
/** Deeper types are refused where schemas are compiled. */
const MAX_DEPTH = 100;

/** `stored`: its type is what a file says; several that rows may have are stored so (schema/folder-table.ts). */
export interface StoredColumn extends ColumnField {
  readonly stored?: boolean;
}

/** `serial`: the version under which it is stored. */
export function encodeTable(columns: readonly StoredColumn[], serial: number): Uint8Array {
  const body = { format: FORMAT, version: VERSION, serial, columns: columns.map(plainField) };
  return new TextEncoder().encode(`${JSON.stringify(body)}\n`);
}

function plainField({ name, type, nullable, stored = false }: StoredColumn): object {
  return { name, type, nullable, ...(stored ? { stored } : {}) };
}

/** Throws table.corrupt (naming object and place) and coverage.newer_version. */
export function parseTable(bytes: Uint8Array, object: string, version: number): readonly StoredColumn[] {
  try {
    const at = limited(bytes, object, MAX_BYTES);
    checkVersion(at, FORMAT, VERSION);
    const f = fields(at, "format", "version", "serial", "columns");
    const serial = count(f.serial);
    if (serial !== version) throw corrupt(f.serial, `serial ${serial}`, `${version}, by its name`);
    return [...keyed(f.columns, (c) => named(columnOf(c))).values()];
  } catch (e) {
    const failure = asFailure(e);
    if (failure.code !== "coverage.corrupt") throw failure;
    throw new Failure("table.corrupt", failure.message.replace("coverage state", "the table's schema"), {
      at: failure.at ?? object,
      cause: e,
      hint: "Restore the object from a backup; without it the schema is read from the newest files of the table",
    });
  }
}

const named = <F extends ColumnField>(f: F) => [f.name, f] as const;

function columnOf(at: Place): StoredColumn {
  const { stored, ...f } = fieldsOf(at, ["name", "type", "nullable"], ["stored"]);
  const column = { name: text(f.name), type: typeOf(f.type, 1), nullable: truth(f.nullable) };
  return stored === undefined ? column : { ...column, stored: truth(stored) };
}

function fieldOf(at: Place, depth: number): ColumnField {
  const f = fields(at, "name", "type", "nullable");
  return { name: text(f.name), type: typeOf(f.type, depth + 1), nullable: truth(f.nullable) };
}

function truth(at: Place): boolean {
  if (typeof at.value !== "boolean") throw corrupt(at, JSON.stringify(at.value), "true or false");
  return at.value;
}

const PLAIN = ["null", "bool", "utf8", "binary", "date32", "interval", "json"] as const;

function typeOf(at: Place, depth: number): ColumnType {
  if (depth > MAX_DEPTH) throw corrupt(at, "a deeper type", `${MAX_DEPTH} levels`);
  const { id } = (at.value ?? {}) as { readonly id?: unknown };
  switch (id) {
    case "int": {
      const f = fields(at, "id", "bits", "signed");
      return { id, bits: bitsOf(f.bits, [8, 16, 32, 64] as const), signed: truth(f.signed) };
    }
    case "float":
      return { id, bits: bitsOf(fields(at, "id", "bits").bits, [32, 64] as const) };
    case "decimal": {
      const f = fields(at, "id", "precision", "scale");
      return { id, precision: count(f.precision), scale: count(f.scale) };
    }
    case "fixed": {
      const f = fieldsOf(at, ["id", "bytes"], ["as"]);
      return { id, bytes: count(f.bytes), ...(f.as === undefined ? {} : { as: oneOf(f.as, ["uuid"]) }) };
    }
    case "time64":
      return { id, unit: oneOf(fields(at, "id", "unit").unit, ["us", "ns"]) };
    case "timestamp": {
      const f = fields(at, "id", "unit", "zone");
      const zone = f.zone.value === null ? null : text(f.zone);
      return { id, unit: oneOf(f.unit, ["s", "ms", "us", "ns"]), zone };
    }
    case "list":
      return { id, item: fieldOf(fields(at, "id", "item").item, depth) };
    case "struct":
      return {
        id,
        fields: [...keyed(fields(at, "id", "fields").fields, (f) => named(fieldOf(f, depth))).values()],
      };
    case "map": {
      const f = fields(at, "id", "key", "value");
      return { id, key: fieldOf(f.key, depth), value: fieldOf(f.value, depth) };
    }
    default:
      return { id: oneOf(fields(at, "id").id, PLAIN) };
  }
}

function bitsOf<N extends number>(at: Place, allowed: readonly N[]): N {
  const found = allowed.find((n) => n === at.value);
  if (found === undefined) throw corrupt(at, JSON.stringify(at.value), allowed.join(", "));
  return found;
}
