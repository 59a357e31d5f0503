/**
 * The type matrix: what a column of a table batch becomes in PostgreSQL, and which types of a table that is there take
 * it without loss. Spelled as `format_type` of the server does.
 */
import type { ColumnType } from "../../../core/types/table-batch.ts";

/** The type that a created table gets. */
export function columnType(type: ColumnType): string {
  switch (type.id) {
    case "null":
    case "utf8":
      return "text";
    case "bool":
      return "boolean";
    case "binary":
      return "bytea";
    case "date32":
      return "date";
    case "interval":
      return "interval";
    case "int":
      return integerType(type.bits, type.signed);
    case "float":
      return type.bits === 32 ? "real" : "double precision";
    case "decimal":
      return `numeric(${type.precision},${type.scale})`;
    case "fixed":
      return type.as === "uuid" ? "uuid" : "bytea";
    case "time64":
      return "time without time zone";
    case "timestamp":
      return `timestamp ${type.zone === null ? "without" : "with"} time zone`;
    case "list":
      return isNested(type.item.type) ? "jsonb" : `${columnType(type.item.type)}[]`;
    case "json":
    case "struct":
    case "map":
      return "jsonb";
  }
}

/** An unsigned type needs the next larger one, and the largest has none. */
function integerType(bits: 8 | 16 | 32 | 64, signed: boolean): string {
  const wanted = signed ? bits : bits + 1;
  if (wanted <= 16) return "smallint";
  if (wanted <= 32) return "integer";
  return wanted <= 64 ? "bigint" : "numeric(20,0)";
}

/** Types that become JSON within a list: PostgreSQL's arrays are of one depth only. */
function isNested(type: ColumnType): boolean {
  return ["list", "struct", "map", "json", "null"].includes(type.id);
}

const INTEGERS = ["smallint", "integer", "bigint"];

/** Whether a column of the table takes every value of this type as it is. */
export function takes(found: string, type: ColumnType): boolean {
  const own = columnType(type);
  if (found === own) return true;
  switch (type.id) {
    case "int": {
      const at = INTEGERS.indexOf(own);
      return at >= 0 && INTEGERS.indexOf(found) > at;
    }
    case "float":
      return type.bits === 32 && found === "double precision";
    case "decimal":
      return found === "numeric" || holdsDecimal(found, type.precision, type.scale);
    case "utf8":
    case "null":
      return found === "character varying";
    case "json":
      return found === "json";
    default:
      return false;
  }
}

function holdsDecimal(found: string, precision: number, scale: number): boolean {
  const match = /^numeric\((\d+),(\d+)\)$/.exec(found);
  if (match === null) return false;
  const [p, s] = [Number(match[1]), Number(match[2])];
  return s >= scale && p - s >= precision - scale;
}
