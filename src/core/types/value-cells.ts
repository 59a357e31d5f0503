/**
 * Values to cells of columns and back. The column's type decides: an enum becomes its symbol, a union a struct of which
 * one member is set, what has no column JSON text. Back from a column such a value is what the column says it is.
 */
import { Failure } from "../failure/failure.ts";
import {
  BoolBuilder,
  BytesBuilder,
  type ColumnBuilder,
  FixedBuilder,
  ListBuilder,
  StructBuilder,
} from "./column-builder.ts";
import type { ColumnType, TableColumn } from "./table-batch.ts";
import type { TimeUnit, Value } from "./value.ts";
import { decimalText, UNITS_PER_SECOND, valueJson } from "./value-json.ts";

const UTF8 = new TextEncoder();
const NULL: Value = { kind: "null" };

function misfit(type: ColumnType, value: Value): never {
  throw new Failure("internal.bug", `a ${value.kind} for a column of ${type.id}`);
}

/** Appends the value as a row. Throws internal.bug for one that is not of the column's type. */
export function pushValue(b: ColumnBuilder, value: Value): void {
  b.reserve(1);
  if (value.kind === "null") b.pushNull();
  else if (b instanceof FixedBuilder) pushFixed(b, value);
  else if (b instanceof BytesBuilder) b.push(bytesFor(b.type, value));
  else if (b instanceof BoolBuilder) b.push(value.kind === "bool" ? value.value : misfit(b.type, value));
  else if (b instanceof StructBuilder) pushStruct(b, value);
  else if (b instanceof ListBuilder) pushItems(b, value);
}

function bytesFor(type: ColumnType, value: Value): Uint8Array {
  if (type.id === "json") return UTF8.encode(valueJson(value));
  if (value.kind === "string" && type.id === "utf8") return UTF8.encode(value.value);
  if (value.kind === "enum" && type.id === "utf8") return UTF8.encode(value.symbol);
  if (value.kind === "decimal" && type.id === "utf8")
    return UTF8.encode(decimalText(value.unscaled, value.scale));
  return value.kind === "bytes" && type.id === "binary" ? value.value : misfit(type, value);
}

function pushFixed(b: FixedBuilder, value: Value): void {
  const view = new DataView(b.buffer, b.rows * b.width, b.width);
  const { type } = b;
  switch (type.id) {
    case "int":
      if (value.kind !== "int" && value.kind !== "long") misfit(type, value);
      if (type.bits === 64) view.setBigInt64(0, BigInt(value.value), true);
      else if (type.bits === 32) view.setInt32(0, Number(value.value), true);
      else if (type.bits === 16) view.setInt16(0, Number(value.value), true);
      else view.setInt8(0, Number(value.value));
      break;
    case "float":
      if (value.kind !== "float" && value.kind !== "double") misfit(type, value);
      if (type.bits === 64) view.setFloat64(0, value.value, true);
      else view.setFloat32(0, value.value, true);
      break;
    case "fixed":
      if ((value.kind !== "bytes" && value.kind !== "uuid") || value.value.length !== type.bytes)
        misfit(type, value);
      b.u8.set(value.value, b.rows * b.width);
      break;
    case "decimal":
      if (value.kind !== "decimal" || value.scale !== type.scale) misfit(type, value);
      view.setBigInt64(0, BigInt.asIntN(64, value.unscaled), true);
      view.setBigInt64(8, value.unscaled >> 64n, true);
      break;
    default:
      pushInstant(view, type, value);
  }
  b.rows++;
}

function pushInstant(view: DataView, type: ColumnType, value: Value): void {
  if (type.id === "date32" && value.kind === "date") view.setInt32(0, value.days, true);
  else if (type.id === "time64" && value.kind === "time")
    view.setBigInt64(
      0,
      inUnit(value.value, value.unit, type.unit, () => misfit(type, value)),
      true,
    );
  else if (type.id === "timestamp" && value.kind === "timestamp" && value.zone === type.zone)
    view.setBigInt64(
      0,
      inUnit(value.value, value.unit, type.unit, () => misfit(type, value)),
      true,
    );
  else if (type.id === "interval" && value.kind === "interval") {
    view.setInt32(0, value.months, true);
    view.setInt32(4, value.days, true);
    view.setBigInt64(8, value.nanoseconds, true);
  } else misfit(type, value);
}

/** Into a finer unit only. */
function inUnit(value: bigint, from: TimeUnit, to: TimeUnit, refuse: () => never): bigint {
  return UNITS_PER_SECOND[to] < UNITS_PER_SECOND[from]
    ? refuse()
    : value * (UNITS_PER_SECOND[to] / UNITS_PER_SECOND[from]);
}

function pushStruct(b: StructBuilder, value: Value): void {
  const { type } = b;
  if (type.id !== "struct" || (value.kind !== "record" && value.kind !== "union")) return misfit(type, value);
  const given =
    value.kind === "union"
      ? new Map([[value.branch, value.value]])
      : new Map(value.fields.map((f) => [f.name, f.value]));
  for (const [i, f] of type.fields.entries()) pushValue(b.children[i]!, given.get(f.name) ?? NULL);
  b.pushRow();
}

function pushItems(b: ListBuilder, value: Value): void {
  if (value.kind === "list") for (const item of value.items) pushValue(b.child, item);
  else if (value.kind === "map" && b.child instanceof StructBuilder)
    for (const [k, v] of value.entries) {
      b.child.reserve(1);
      pushValue(b.child.children[0]!, k);
      pushValue(b.child.children[1]!, v);
      b.child.pushRow();
    }
  else misfit(b.type, value);
  b.pushRow();
}

function isValid({ validity }: TableColumn, row: number): boolean {
  return validity === null || ((validity[row >> 3]! >> (row & 7)) & 1) === 1;
}

/** The cell as the Value of its column's type: text for json, a record for a struct. */
export function cellValue(column: TableColumn, row: number): Value {
  if (column.type.id === "null" || !isValid(column, row)) return NULL;
  const { type, data, children } = column;
  switch (type.id) {
    case "bool":
      return { kind: "bool", value: ((data[row >> 3]! >> (row & 7)) & 1) === 1 };
    case "utf8":
    case "json":
      return { kind: "string", value: TEXT.decode(bytesOf(column, row)) };
    case "binary":
      return { kind: "bytes", value: bytesOf(column, row).slice() };
    case "struct":
      return {
        kind: "record",
        fields: type.fields.map((f, i) => ({ name: f.name, value: cellValue(children[i]!, row) })),
      };
    case "list":
      return { kind: "list", items: rowsOf(column, row).map((i) => cellValue(children[0]!, i)) };
    case "map": {
      const [keys, values] = children[0]!.children as readonly [TableColumn, TableColumn];
      return {
        kind: "map",
        entries: rowsOf(column, row).map((i) => [cellValue(keys, i), cellValue(values, i)] as const),
      };
    }
    default:
      return fixedValue(type, new DataView(data.buffer, data.byteOffset, data.byteLength), row);
  }
}

const TEXT = new TextDecoder("utf-8", { ignoreBOM: true });

function bytesOf({ offsets, data }: TableColumn, row: number): Uint8Array {
  return data.subarray(offsets![row]!, offsets![row + 1]!);
}

function rowsOf({ offsets }: TableColumn, row: number): number[] {
  const from = offsets![row]!;
  return Array.from({ length: offsets![row + 1]! - from }, (_, i) => from + i);
}

function fixedValue(type: ColumnType, view: DataView, row: number): Value {
  switch (type.id) {
    case "int":
      return integer(type, view, row);
    case "float":
      return type.bits === 64
        ? { kind: "double", value: view.getFloat64(8 * row, true) }
        : { kind: "float", value: view.getFloat32(4 * row, true) };
    case "decimal": {
      const high = view.getBigInt64(16 * row + 8, true);
      const unscaled = (high << 64n) | view.getBigUint64(16 * row, true);
      return { kind: "decimal", unscaled, scale: type.scale };
    }
    case "fixed": {
      const at = view.byteOffset + type.bytes * row;
      const value = new Uint8Array(view.buffer, at, type.bytes).slice();
      return type.as === "uuid" ? { kind: "uuid", value } : { kind: "bytes", value };
    }
    case "date32":
      return { kind: "date", days: view.getInt32(4 * row, true) };
    case "time64":
      return { kind: "time", unit: type.unit, value: view.getBigInt64(8 * row, true) };
    case "timestamp":
      return {
        kind: "timestamp",
        unit: type.unit,
        zone: type.zone,
        value: view.getBigInt64(8 * row, true),
      };
    case "interval":
      return {
        kind: "interval",
        months: view.getInt32(16 * row, true),
        days: view.getInt32(16 * row + 4, true),
        nanoseconds: view.getBigInt64(16 * row + 8, true),
      };
    default:
      throw new Failure("internal.bug", `a cell of a column of ${type.id}`);
  }
}

function integer({ bits, signed }: Extract<ColumnType, { id: "int" }>, view: DataView, row: number): Value {
  if (bits === 64)
    return {
      kind: "long",
      value: signed ? view.getBigInt64(8 * row, true) : view.getBigUint64(8 * row, true),
    };
  if (bits === 32 && !signed) return { kind: "long", value: BigInt(view.getUint32(4 * row, true)) };
  if (bits === 32) return { kind: "int", value: view.getInt32(4 * row, true) };
  if (bits === 16)
    return { kind: "int", value: signed ? view.getInt16(2 * row, true) : view.getUint16(2 * row, true) };
  return { kind: "int", value: signed ? view.getInt8(row) : view.getUint8(row) };
}
