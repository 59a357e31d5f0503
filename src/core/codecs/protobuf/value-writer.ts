/** Values to payloads: fields in the order of the schema, lists packed where the schema says so, zeros left out where they are implied. */
import { ScalarType } from "@bufbuild/protobuf";
import type { Value } from "../../types/value.ts";
import { DecodeError, type RecordEncoder } from "../record-codec.ts";
import { EnumNames } from "./enum-names.ts";
import type { FieldPlan, MessagePlan, Shape } from "./plan.ts";
import { Sink } from "./sink.ts";
import { structBytes } from "./struct-value.ts";
import { SCALARS } from "./type-map.ts";

const UTF8 = new TextEncoder();
const E9 = 1_000_000_000n;

export class ProtobufEncoder implements RecordEncoder {
  readonly #plan: MessagePlan;
  readonly #separator: string;

  constructor(plan: MessagePlan, separator: string) {
    this.#plan = plan;
    this.#separator = separator;
  }

  /** Throws a DecodeError that names the field which the schema does not allow. */
  encode(value: Value): Uint8Array {
    return this.#record(this.#plan, value, "");
  }

  #record(plan: MessagePlan, value: Value, path: string): Uint8Array {
    if (value.kind !== "record") return refuse(path, value, plan.desc.typeName);
    const fields = new Map(value.fields.map((f) => [f.name, f.value]));
    const sink = new Sink();
    this.#fields(plan, fields, "", sink, path === "" ? "" : `${path}.`);
    const [stranger] = fields.keys();
    if (stranger !== undefined) {
      const why = `${plan.desc.typeName} has no field ${stranger}`;
      throw new DecodeError("decode.unknown_field", path, why);
    }
    return sink.take();
  }

  /** Takes what it writes out of `fields`. */
  #fields(plan: MessagePlan, fields: Map<string, Value>, prefix: string, sink: Sink, path: string): void {
    for (const f of plan.fields) {
      const name = prefix + f.name;
      if (f.flat && f.shape.is === "message") {
        // A flattened message is there if one of its fields is.
        if (f.presence !== "required" && !this.#some(f.shape.plan, fields, name + this.#separator)) continue;
        const inner = new Sink();
        this.#fields(f.shape.plan, fields, name + this.#separator, inner, path);
        this.#framed(f, inner.take(), sink);
        continue;
      }
      const value = fields.get(name);
      fields.delete(name);
      if (value === undefined || (value.kind === "null" && !holdsNull(f))) {
        if (f.presence !== "required") continue;
        throw new DecodeError("decode.null", path + name, "the field is required and is not there");
      }
      this.#field(f, value, sink, path + name);
    }
  }

  #some(plan: MessagePlan, fields: ReadonlyMap<string, Value>, prefix: string): boolean {
    return plan.fields.some((f) => {
      const name = prefix + f.name;
      if (f.flat && f.shape.is === "message") return this.#some(f.shape.plan, fields, name + this.#separator);
      const value = fields.get(name);
      return value !== undefined && (value.kind !== "null" || holdsNull(f));
    });
  }

  #field(f: FieldPlan, value: Value, sink: Sink, path: string): void {
    if (f.label === "map") {
      if (value.kind !== "map") return refuse(path, value, "map");
      for (const [k, v] of value.entries) this.#entry(f, k, v, sink, path);
    } else if (f.label === "list") {
      if (value.kind !== "list") return refuse(path, value, "list");
      if (f.packed && value.items.length > 0) {
        const packed = new Sink();
        for (const item of value.items) this.#simple(f.shape, item, packed, path);
        sink.tag(f.number, 2);
        sink.block(packed.take());
      } else for (const item of value.items) this.#one(f, f.number, item, sink, path);
    } else if (f.presence !== "implicit" || !isZero(f.shape, value)) {
      this.#one(f, f.number, value, sink, path);
    }
  }

  #entry(f: FieldPlan, key: Value, value: Value, sink: Sink, path: string): void {
    const entry = new Sink();
    const shape: Shape = { is: "scalar", scalar: f.key! };
    entry.tag(1, SCALARS[f.key!].wire);
    this.#simple(shape, key, entry, path);
    this.#one(f, 2, value, entry, path);
    sink.tag(f.number, 2);
    sink.block(entry.take());
  }

  #one(f: FieldPlan, number: number, value: Value, sink: Sink, path: string): void {
    const { shape } = f;
    if (shape.is === "scalar" || shape.is === "enum") {
      sink.tag(number, shape.is === "enum" ? 0 : SCALARS[shape.scalar].wire);
      this.#simple(shape, value, sink, path);
    } else
      this.#framed(
        f.label === "map" ? { number, delimited: false } : f,
        this.#content(shape, value, path),
        sink,
      );
  }

  #framed(f: Pick<FieldPlan, "number" | "delimited">, content: Uint8Array, sink: Sink): void {
    sink.tag(f.number, f.delimited ? 3 : 2);
    if (!f.delimited) return sink.block(content);
    sink.put(content);
    sink.tag(f.number, 4);
  }

  #content(shape: Shape, value: Value, path: string): Uint8Array {
    const sink = new Sink();
    switch (shape.is) {
      case "message":
        return this.#record(shape.plan, value, path);
      case "json":
        if (shape.plan !== null) return this.#record(shape.plan(), value, path);
        return structBytes(shape.type, value) ?? refuse(path, value, shape.type);
      case "wrapper": {
        const inner: Shape = { is: "scalar", scalar: shape.scalar };
        if (isZero(inner, value)) return sink.take();
        sink.tag(1, SCALARS[shape.scalar].wire);
        this.#simple(inner, value, sink, path);
        return sink.take();
      }
      case "timestamp": {
        if (value.kind !== "timestamp" || value.unit !== "ns") return refuse(path, value, "timestamp in ns");
        const nanos = ((value.value % E9) + E9) % E9;
        time((value.value - nanos) / E9, nanos, sink);
        return sink.take();
      }
      case "duration":
        if (value.kind !== "decimal" || value.scale !== 9) return refuse(path, value, "decimal of scale 9");
        time(value.unscaled / E9, value.unscaled % E9, sink);
        return sink.take();
      case "opaque":
        return value.kind === "bytes" ? value.value : refuse(path, value, "bytes");
      case "empty":
        if (value.kind !== "bool") return refuse(path, value, "bool");
        return sink.take();
      default:
        throw new Error("a scalar has no content");
    }
  }

  #simple(shape: Shape, value: Value, sink: Sink, path: string): void {
    if (shape.is === "enum") {
      const number = value.kind === "enum" ? EnumNames.of(shape.desc).number(value.symbol) : null;
      if (number === null) return refuse(path, value, `a symbol of ${shape.desc.typeName}`);
      return sink.varint(BigInt(number));
    }
    if (shape.is !== "scalar") throw new Error("not a scalar");
    scalar(shape.scalar, value, sink, path);
  }
}

/** A field of google.protobuf.Value that is null holds a null; any other is absent. */
function holdsNull(f: FieldPlan): boolean {
  return f.label === "one" && f.shape.is === "json" && f.shape.type === "google.protobuf.Value";
}

function scalar(type: ScalarType, value: Value, sink: Sink, path: string): void {
  const { name, value: kind } = SCALARS[type];
  const isWhole = (k: Value["kind"]) => k === "int" || k === "long";
  if (value.kind !== kind && !(isWhole(value.kind) && isWhole(kind))) return refuse(path, value, name);
  switch (value.kind) {
    case "bool":
      return sink.varint(value.value ? 1n : 0n);
    case "string":
      return sink.block(UTF8.encode(value.value));
    case "bytes":
      return sink.block(value.value);
    case "float":
      return sink.fixed(4, (v) => v.setFloat32(0, value.value, true));
    case "double":
      return sink.fixed(8, (v) => v.setFloat64(0, value.value, true));
    case "int":
    case "long":
      return whole(type, BigInt(value.value), sink, path);
    default:
      return refuse(path, value, name);
  }
}

/** Bits and sign of integer types. */
const RANGE: Partial<Record<ScalarType, readonly [32 | 64, boolean]>> = {
  [ScalarType.INT32]: [32, true],
  [ScalarType.SINT32]: [32, true],
  [ScalarType.SFIXED32]: [32, true],
  [ScalarType.UINT32]: [32, false],
  [ScalarType.FIXED32]: [32, false],
  [ScalarType.INT64]: [64, true],
  [ScalarType.SINT64]: [64, true],
  [ScalarType.SFIXED64]: [64, true],
  [ScalarType.UINT64]: [64, false],
  [ScalarType.FIXED64]: [64, false],
};

function whole(type: ScalarType, value: bigint, sink: Sink, path: string): void {
  const [bits, signed] = RANGE[type]!;
  const fits = signed ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value);
  if (fits !== value)
    throw new DecodeError("decode.range", path, `${value} does not fit into ${SCALARS[type].name}`);
  if (SCALARS[type].wire === 5)
    return sink.fixed(4, (v) => v.setUint32(0, Number(BigInt.asUintN(32, value)), true));
  if (SCALARS[type].wire === 1)
    return sink.fixed(8, (v) => v.setBigUint64(0, BigInt.asUintN(64, value), true));
  if (type === ScalarType.SINT32 || type === ScalarType.SINT64)
    return sink.varint(value < 0n ? -2n * value - 1n : 2n * value);
  sink.varint(value);
}

function time(seconds: bigint, nanos: bigint, sink: Sink): void {
  if (seconds !== 0n) {
    sink.tag(1, 0);
    sink.varint(seconds);
  }
  if (nanos !== 0n) {
    sink.tag(2, 0);
    sink.varint(nanos);
  }
}

function isZero(shape: Shape, value: Value): boolean {
  switch (value.kind) {
    case "bool":
      return !value.value;
    case "int":
      return value.value === 0;
    case "long":
      return value.value === 0n;
    case "float":
    case "double":
      // A negative zero is written, as every writer of this format does.
      return Object.is(value.value, 0);
    case "string":
    case "bytes":
      return value.value.length === 0;
    case "enum":
      return shape.is === "enum" && EnumNames.of(shape.desc).number(value.symbol) === 0;
    default:
      return false;
  }
}

function refuse(path: string, value: Value, wanted: string): never {
  throw new DecodeError("decode.type", path, `a Value of kind ${value.kind} where the schema has ${wanted}`);
}
