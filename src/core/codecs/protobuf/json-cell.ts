/**
 * JSON text of a column as the Value that it was made of: anything for google.protobuf.Value and its kin, a record by its plan
 * for a message. Whole numbers are read from their digits.
 */
import type { Value, ValueField } from "../../types/value.ts";
import { DecodeError } from "../record-codec.ts";
import type { FieldPlan, MessagePlan, Shape } from "./plan.ts";
import { SCALARS } from "./type-map.ts";

/** A number as it is written. */
class Digits {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Json = null | boolean | string | Digits | readonly Json[] | { readonly [key: string]: Json };

const E9 = 1_000_000_000n;

/** Throws a DecodeError for text that is not the column's. */
export function jsonCell(shape: Extract<Shape, { is: "json" }>, text: string): Value {
  const keep = (_: string, value: unknown, { source }: { readonly source?: string }): unknown =>
    typeof value === "number" ? new Digits(source ?? String(value)) : value;
  let json: Json;
  try {
    json = (JSON.parse as (text: string, reviver: typeof keep) => Json)(text, keep);
  } catch {
    return misfit("JSON", text.slice(0, 40));
  }
  return shapeValue(shape, json);
}

function misfit(wanted: string, seen: unknown): never {
  const text = JSON.stringify(seen) ?? "nothing";
  throw new DecodeError(
    "decode.type",
    "",
    `${text.slice(0, 60)} in JSON text where the schema has ${wanted}`,
  );
}

function anyValue(json: Json): Value {
  if (json === null) return { kind: "null" };
  if (typeof json === "boolean") return { kind: "bool", value: json };
  if (typeof json === "string") return { kind: "string", value: json };
  if (json instanceof Digits) return { kind: "double", value: Number(json.text) };
  if (isList(json)) return { kind: "list", items: json.map(anyValue) };
  return {
    kind: "map",
    entries: Object.entries(json).map(
      ([key, value]) => [{ kind: "string", value: key }, anyValue(value)] as const,
    ),
  };
}

const isList = (json: Json): json is readonly Json[] => Array.isArray(json);

function record(plan: MessagePlan, json: Json): Value {
  if (json === null || typeof json !== "object" || isList(json) || json instanceof Digits)
    return misfit(plan.desc.typeName, json);
  const fields: ValueField[] = [];
  for (const [name, value] of Object.entries(json)) {
    const f = plan.fields.find((p) => p.name === name);
    if (f === undefined)
      throw new DecodeError("decode.unknown_field", "", `${plan.desc.typeName} has no field ${name}`);
    fields.push({ name, value: fieldValue(f, value) });
  }
  return { kind: "record", fields };
}

function fieldValue(f: FieldPlan, json: Json): Value {
  if (f.label === "one") return shapeValue(f.shape, json);
  if (f.label === "list")
    return isList(json)
      ? { kind: "list", items: json.map((item) => shapeValue(f.shape, item)) }
      : misfit("a list", json);
  const key: Shape = { is: "scalar", scalar: f.key! };
  if (isList(json)) {
    const entries = json.map((e) => {
      if (e === null || typeof e !== "object" || isList(e) || e instanceof Digits)
        return misfit("an entry", e);
      return [shapeValue(key, e["key"] ?? null), shapeValue(f.shape, e["value"] ?? null)] as const;
    });
    return { kind: "map", entries };
  }
  if (json === null || typeof json !== "object" || json instanceof Digits) return misfit("a map", json);
  const entries = Object.entries(json).map(([k, v]) => [shapeValue(key, k), shapeValue(f.shape, v)] as const);
  return { kind: "map", entries };
}

function shapeValue(shape: Shape, json: Json): Value {
  switch (shape.is) {
    case "json":
      return shape.plan === null ? anyValue(json) : record(shape.plan(), json);
    case "enum":
      return typeof json === "string" ? { kind: "enum", symbol: json } : misfit("an enum", json);
    case "empty":
      return typeof json === "boolean" ? { kind: "bool", value: json } : misfit("true", json);
    case "opaque":
      return bytesOf(json);
    case "timestamp":
      return typeof json === "string" ? instantOf(json) : misfit("an instant", json);
    case "duration":
      return json instanceof Digits ? secondsOf(json.text) : misfit("seconds", json);
    case "scalar":
    case "wrapper":
      return scalarValue(SCALARS[shape.scalar].value, json);
    default:
      return misfit("a message", json);
  }
}

function bytesOf(json: Json): Value {
  return typeof json === "string"
    ? { kind: "bytes", value: Uint8Array.fromBase64(json) }
    : misfit("bytes in base64", json);
}

function scalarValue(kind: Value["kind"], json: Json): Value {
  switch (kind) {
    case "bool":
      return typeof json === "boolean" ? { kind, value: json } : misfit("a bool", json);
    case "string":
      return typeof json === "string" ? { kind, value: json } : misfit("a string", json);
    case "bytes":
      return bytesOf(json);
    case "float":
    case "double":
      if (json instanceof Digits) return { kind, value: Number(json.text) };
      return typeof json === "string" && /^(NaN|-?Infinity)$/.test(json)
        ? { kind, value: Number(json) }
        : misfit("a number", json);
    default:
      if (!(json instanceof Digits) || !/^-?[0-9]+$/.test(json.text)) return misfit("a whole number", json);
      return { kind: "long", value: BigInt(json.text) };
  }
}

/** 1969-12-31T23:59:59.999999999Z */
function instantOf(text: string): Value {
  const found = /^(.+)\.([0-9]{9})Z$/.exec(text);
  const seconds = found === null ? Number.NaN : Date.parse(`${found[1]}Z`);
  if (found === null || Number.isNaN(seconds)) return misfit("an instant", text);
  return {
    kind: "timestamp",
    unit: "ns",
    zone: "UTC",
    value: (BigInt(seconds) / 1000n) * E9 + BigInt(found[2]!),
  };
}

/** -0.000000001 */
function secondsOf(text: string): Value {
  const found = /^(-?)([0-9]+)\.([0-9]{9})$/.exec(text);
  if (found === null) return misfit("seconds", text);
  const unscaled = BigInt(found[2]!) * E9 + BigInt(found[3]!);
  return { kind: "decimal", unscaled: found[1] === "-" ? -unscaled : unscaled, scale: 9 };
}
