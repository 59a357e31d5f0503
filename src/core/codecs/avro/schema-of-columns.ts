/**
 * The Avro schema of a table's columns, for whoever writes rows as Avro: such that `encodeColumns` can write every cell
 * of every column by it, and that a table which grew is a schema that old readers and new ones can both resolve.
 *
 * A column is a union with null whose default is null, whatever the column says: columns of other writers lack it. Records
 * within are named by their place (`acme.Order.items`), so a name stays when columns are added around it.
 */
import { Failure } from "../../failure/failure.ts";
import type { ColumnField, ColumnType } from "../../types/table-batch.ts";
import { typeText } from "../../types/type-text.ts";
import type { Json } from "./schema.ts";

/** As the specification has it; what else our own reader takes, others do not. */
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const DIGITS_OF_UINT64 = 20;

/** `record`: full name. Throws encode.unsupported. */
export function avroSchemaOf(fields: readonly ColumnField[], record: string): string {
  const at = record.lastIndexOf(".");
  const names = at < 0 ? { name: record } : { name: record.slice(at + 1), namespace: record.slice(0, at) };
  const columns = fields.map((f) => ({ ...f, nullable: true }));
  return JSON.stringify({ type: "record", ...names, fields: fieldsOf(columns, record, "") });
}

/** A record's name for a topic, where nobody gave one. */
export function recordNameOf(topic: string): string {
  const name = topic.replaceAll(/[^A-Za-z0-9_]/g, "_");
  return /^\d/.test(name) ? `_${name}` : name;
}

/** `above`: full name of the record; `path`: of the column, for messages. */
function fieldsOf(fields: readonly ColumnField[], above: string, path: string): Json[] {
  return fields.map(({ name, type, nullable }) => {
    const place = path === "" ? name : `${path}.${name}`;
    if (!NAME.test(name))
      throw unsupported(
        place,
        "the name is none of Avro's: letters, digits and _, not beginning with a digit",
      );
    const inner = typeOf(type, { above, name }, place);
    if (inner === "null") return { name, type: "null", default: null };
    return nullable ? { name, type: ["null", inner], default: null } : { name, type: inner };
  });
}

interface Place {
  /** Full name of the record that the type is in. */
  readonly above: string;
  /** That a named type would have. */
  readonly name: string;
}

const logical = (type: string, logicalType: string): Json => ({ type, logicalType });

function typeOf(type: ColumnType, at: Place, path: string): Json {
  switch (type.id) {
    case "null":
      return "null";
    case "bool":
      return "boolean";
    case "utf8":
    case "json":
      return "string";
    case "binary":
      return "bytes";
    case "int":
      return integer(type);
    case "float":
      return type.bits === 64 ? "double" : "float";
    case "decimal":
      return decimal(type.precision, type.scale, path);
    case "fixed":
      return type.as === "uuid"
        ? logical("string", "uuid")
        : { type: "fixed", name: at.name, namespace: at.above, size: type.bytes };
    case "interval":
      return { type: "fixed", name: at.name, namespace: at.above, size: 12, logicalType: "duration" };
    case "date32":
      return logical("int", "date");
    case "time64":
      return type.unit === "us"
        ? logical("long", "time-micros")
        : { type: "long", "connect.name": "io.debezium.time.NanoTime" };
    case "timestamp":
      return logical("long", `${type.zone === null ? "local-" : ""}timestamp-${INSTANTS[type.unit]}`);
    default:
      return nested(type, at, path);
  }
}

const INSTANTS = { s: "millis", ms: "millis", us: "micros", ns: "nanos" } as const;

function integer({ bits, signed }: Extract<ColumnType, { id: "int" }>): Json {
  if (bits < 32 || (bits === 32 && signed)) return "int";
  // More than a long holds.
  if (bits === 64 && !signed)
    return { type: "bytes", logicalType: "decimal", precision: DIGITS_OF_UINT64, scale: 0 };
  return "long";
}

function decimal(precision: number, scale: number, path: string): Json {
  if (scale < 0 || scale > precision)
    throw unsupported(path, `Avro has no decimals of ${precision} digits with ${scale} behind the point`);
  return { type: "bytes", logicalType: "decimal", precision, scale };
}

function nested(type: ColumnType, at: Place, path: string): Json {
  const full = `${at.above}.${at.name}`;
  const optional = ({ type: t, nullable }: ColumnField, place: string): Json => {
    const inner = typeOf(t, at, place);
    return nullable && inner !== "null" ? ["null", inner] : inner;
  };
  switch (type.id) {
    case "struct":
      return {
        type: "record",
        name: at.name,
        namespace: at.above,
        fields: fieldsOf(type.fields, full, path),
      };
    case "list":
      return { type: "array", items: optional(type.item, `${path}[]`) };
    case "map": {
      const { key, value } = type;
      if (key.type.id === "utf8") return { type: "map", values: optional(value, `${path}{}`) };
      // Keys of Avro's maps are texts.
      const entry = [
        { ...key, name: "key", nullable: false },
        { ...value, name: "value" },
      ];
      const fields = fieldsOf(entry, full, path);
      return { type: "array", items: { type: "record", name: at.name, namespace: at.above, fields } };
    }
    default:
      throw unsupported(path, `Avro has nothing for ${typeText(type)}`);
  }
}

function unsupported(path: string, why: string): Failure {
  return new Failure("encode.unsupported", `the column ${path}: ${why}`, {
    hint: 'Rename it where it is written, or write JSON: encode.format = "json"',
  });
}
