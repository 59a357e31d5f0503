/** One primitive or fixed value, written as one type and taken as the same or another. */
import type { Value } from "../../types/value.ts";
import { MOST_DECIMAL_BYTES } from "./logical.ts";
import type { Scalar } from "./plan.ts";
import { DAY_NS, DAY_US, longToFloat, uuidBytes } from "./runtime.ts";
import type { Logical } from "./schema.ts";
import { MOST_PRECISION } from "./type-map.ts";
import type { ValueReader } from "./value-reader.ts";

export function scalarValue(r: ValueReader, wire: Scalar, reader: Scalar): Value {
  if (reader.logical !== null) return logicalValue(r, wire, reader.logical);
  switch (reader.kind) {
    case "null":
      return { kind: "null" };
    case "boolean": {
      const b = r.take(1)[0]!;
      if (b > 1) r.refuse("decode.syntax", `a boolean of ${b}`);
      return { kind: "bool", value: b === 1 };
    }
    case "int":
      return { kind: "int", value: r.int() };
    case "long":
      return { kind: "long", value: integer(r, wire) };
    case "float":
      return { kind: "float", value: float(r, wire) };
    case "double":
      return { kind: "double", value: double(r, wire) };
    case "string":
      return { kind: "string", value: r.text(r.bytes(wire)) };
    default:
      return { kind: "bytes", value: r.bytes(wire).slice() };
  }
}

function integer(r: ValueReader, wire: Scalar): bigint {
  return wire.kind === "int" ? BigInt(r.int()) : r.long();
}

function view(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function float(r: ValueReader, wire: Scalar): number {
  if (wire.kind === "float") return view(r.take(4)).getFloat32(0, true);
  if (wire.kind === "int") return Math.fround(r.int());
  const n = r.long();
  return longToFloat(Number(BigInt.asIntN(32, n)), Number(n >> 32n));
}

function double(r: ValueReader, wire: Scalar): number {
  if (wire.kind === "double") return view(r.take(8)).getFloat64(0, true);
  return wire.kind === "float" ? float(r, wire) : Number(integer(r, wire));
}

function logicalValue(r: ValueReader, wire: Scalar, l: Logical): Value {
  switch (l.as) {
    case "date":
      return { kind: "date", days: r.int() };
    case "time":
      return time(r, wire, l.unit);
    case "timestamp":
      return { kind: "timestamp", unit: l.unit, zone: l.zone, value: integer(r, wire) };
    case "uuid":
      return { kind: "uuid", value: uuid(r, wire) };
    case "duration":
      return duration(r);
    case "decimal": {
      const unscaled = twosComplement(r, r.bytes(wire));
      const most = 10n ** BigInt(Math.min(l.precision, MOST_PRECISION));
      // Connect writes a precision of 64 where it knows none, so beyond the column's 38 it bounds nothing.
      if (l.precision <= MOST_PRECISION && (unscaled >= most || -unscaled >= most))
        r.refuse("decode.range", `a decimal of more than ${l.precision} digits`);
      return { kind: "decimal", unscaled, scale: l.scale };
    }
    case "big-decimal":
      return bigDecimal(r, wire);
  }
}

const UNIT_PER_DAY = { ms: DAY_US / 1000, us: DAY_US, ns: DAY_NS } as const;

function time(r: ValueReader, wire: Scalar, unit: "ms" | "us" | "ns"): Value {
  const value = integer(r, wire);
  if (value < 0n || value >= BigInt(UNIT_PER_DAY[unit]))
    r.refuse("decode.range", `a time of ${value} ${unit}, outside of a day`);
  return { kind: "time", unit, value };
}

function uuid(r: ValueReader, wire: Scalar): Uint8Array {
  const bytes = r.bytes(wire);
  if (wire.kind === "fixed") return bytes.slice();
  const out = new Uint8Array(16);
  if (!uuidBytes(bytes, 0, bytes.length, out, 0))
    r.refuse("decode.type", `${bytes.length} bytes of text that are no UUID`);
  return out;
}

function duration(r: ValueReader): Value {
  const v = view(r.take(12));
  const months = v.getUint32(0, true);
  const days = v.getUint32(4, true);
  if (months > 0x7fffffff || days > 0x7fffffff)
    r.refuse("decode.range", `a duration of ${months} months and ${days} days`);
  return { kind: "interval", months, days, nanoseconds: BigInt(v.getUint32(8, true)) * 1_000_000n };
}

/** Of a big-decimal: a few bytes must not become a text of megabytes. */
const MOST_SCALE = 512;

function twosComplement(r: ValueReader, bytes: Uint8Array): bigint {
  if (bytes.length === 0) r.refuse("decode.syntax", "a decimal of no bytes");
  if (bytes.length > MOST_DECIMAL_BYTES) r.refuse("decode.size", `a decimal of ${bytes.length} bytes`);
  return BigInt.asIntN(8 * bytes.length, BigInt(`0x${bytes.toHex()}`));
}

/** Sized bytes of the number, then the scale as an int. */
function bigDecimal(r: ValueReader, wire: Scalar): Value {
  const end = r.length();
  const stop = r.at + end;
  const unscaled = twosComplement(r, r.bytes(wire));
  const scale = r.int();
  if (r.at !== stop) r.refuse("decode.syntax", "a decimal that does not fill its bytes");
  if (Math.abs(scale) > MOST_SCALE) r.refuse("decode.size", `a decimal of scale ${scale}`);
  return { kind: "decimal", unscaled, scale };
}
