/** Column types and the format strings of the Arrow C Data Interface, both ways. */
import { Failure } from "../../core/failure/failure.ts";
import type { ColumnField, ColumnType } from "../../core/types/table-batch.ts";

const INTS: Readonly<Record<string, string>> = { 8: "c", 16: "s", 32: "i", 64: "l" };
const UNITS: Readonly<Record<string, "s" | "ms" | "us" | "ns">> = { s: "s", m: "ms", u: "us", n: "ns" };

export function arrowFormat(type: ColumnType): string {
  switch (type.id) {
    case "null":
      return "n";
    case "bool":
      return "b";
    case "int":
      return type.signed ? INTS[type.bits]! : INTS[type.bits]!.toUpperCase();
    case "float":
      return type.bits === 32 ? "f" : "g";
    case "decimal":
      return `d:${type.precision},${type.scale}`;
    case "utf8":
    case "json":
      return "u";
    case "binary":
      return "z";
    case "fixed":
      return `w:${type.bytes}`;
    case "date32":
      return "tdD";
    case "time64":
      return type.unit === "us" ? "ttu" : "ttn";
    case "timestamp":
      return `ts${type.unit === "s" ? "s" : type.unit[0]}:${type.zone ?? ""}`;
    case "interval":
      return "tin";
    case "list":
      return "+l";
    case "map":
      return "+m";
    case "struct":
      return "+s";
  }
}

/** `children`: of nested types, already read. */
export function columnType(
  format: string,
  extension: string | null,
  children: readonly ColumnField[],
): ColumnType {
  const int = "csil".indexOf(format.toLowerCase());
  if (format.length === 1 && int >= 0)
    return { id: "int", bits: (8 << int) as 8, signed: format === format.toLowerCase() };
  const [head = "", tail = ""] = format.split(":");
  if (head === "d") {
    const [precision, scale] = tail.split(",").map(Number);
    return { id: "decimal", precision: precision!, scale: scale! };
  }
  if (head === "w") {
    const bytes = Number(tail);
    return extension === "arrow.uuid" ? { id: "fixed", bytes, as: "uuid" } : { id: "fixed", bytes };
  }
  if (head.startsWith("ts") && UNITS[head[2] ?? ""] !== undefined)
    return { id: "timestamp", unit: UNITS[head[2]!]!, zone: tail === "" ? null : tail };
  const plain = PLAIN.get(format);
  if (plain !== undefined) return format === "u" && extension === "arrow.json" ? { id: "json" } : plain;
  const [first, second] = children;
  if (format === "+l" && first !== undefined) return { id: "list", item: first };
  if (format === "+s") return { id: "struct", fields: children };
  if (format === "+m" && first?.type.id === "struct") {
    const [key, value] = first.type.fields;
    if (key !== undefined && value !== undefined && second === undefined) return { id: "map", key, value };
  }
  throw new Failure("duckdb.type", `a column of Arrow format ${JSON.stringify(format)} is not known here`, {
    hint: "Cast it to a plain type",
  });
}

const PLAIN: ReadonlyMap<string, ColumnType> = new Map<string, ColumnType>([
  ["n", { id: "null" }],
  ["b", { id: "bool" }],
  ["f", { id: "float", bits: 32 }],
  ["g", { id: "float", bits: 64 }],
  ["u", { id: "utf8" }],
  ["z", { id: "binary" }],
  ["tdD", { id: "date32" }],
  ["ttu", { id: "time64", unit: "us" }],
  ["ttn", { id: "time64", unit: "ns" }],
  ["tin", { id: "interval" }],
]);
