/**
 * Values to Avro bytes. A Value may come from anywhere, so it is taken where its type says the same: a symbol as text, a
 * smaller integer, a time of another unit, a decimal of another scale; what would be rounded or cut is refused.
 */
import type { SchemaText } from "../../schema/resolver.ts";
import type { TimeUnit, Value } from "../../types/value.ts";
import { decimalText, UNITS_PER_SECOND, uuidText } from "../../types/value-json.ts";
import { type DecodeCode, DecodeError, type RecordEncoder } from "../record-codec.ts";
import { AvroWriter } from "./avro-writer.ts";
import { defaultBytes } from "./default-bytes.ts";
import { parseSchema } from "./parse-schema.ts";
import { DAY_NS, MOST_DEPTH, uuidBytes } from "./runtime.ts";
import {
  type AvroType,
  branchNames,
  type FixedType,
  type Logical,
  nameOf,
  type PrimitiveType,
  type RecordType,
  type UnionType,
} from "./schema.ts";

/** Throws a DecodeError of decode.schema; `encode` one of decode.type, decode.range or decode.null. */
export function avroEncoder(schema: Pick<SchemaText, "text" | "references">): RecordEncoder {
  const type = parseSchema(schema);
  const writer = new ValueWriter();
  return { encode: (value) => writer.whole(type, value) };
}

const UTF8 = new TextEncoder();
const NULL: Value = { kind: "null" };
const FLOAT = new DataView(new ArrayBuffer(8));
const FLOAT_BYTES = new Uint8Array(FLOAT.buffer);

type Scalar = PrimitiveType | FixedType;

export class ValueWriter {
  readonly out: AvroWriter;
  readonly #path: (string | number)[] = [];

  constructor(out: AvroWriter = new AvroWriter()) {
    this.out = out;
  }

  whole(type: AvroType, value: Value): Uint8Array {
    this.out.reset();
    this.#path.length = 0;
    this.write(type, value, 0);
    return this.out.view().slice();
  }

  #refuse(code: DecodeCode, reason: string): never {
    let path = "";
    for (const p of this.#path) path += typeof p === "number" ? `[${p}]` : path === "" ? p : `.${p}`;
    throw new DecodeError(code, path, reason);
  }

  #misfit(type: AvroType, value: Value): never {
    if (value.kind === "null") return this.#refuse("decode.null", `null for ${nameOf(type)}`);
    return this.#refuse("decode.type", `${value.kind} for ${nameOf(type)}`);
  }

  #within(place: string | number, inner: () => void): void {
    this.#path.push(place);
    inner();
    this.#path.pop();
  }

  write(type: AvroType, value: Value, depth: number): void {
    if (depth > MOST_DEPTH) this.#refuse("decode.depth", `nested deeper than ${MOST_DEPTH}`);
    switch (type.kind) {
      case "union":
        this.#union(type, value, depth);
        break;
      case "record":
        this.#record(type, value, depth);
        break;
      case "array":
        if (value.kind !== "list") return this.#misfit(type, value);
        this.#block(value.items, (item, i) => this.#within(i, () => this.write(type.items, item, depth + 1)));
        break;
      case "map":
        if (value.kind !== "map") return this.#misfit(type, value);
        this.#block(value.entries, ([key, item]) => {
          if (key.kind !== "string") return this.#misfit(type, key);
          this.#text(key.value);
          this.#within(key.value, () => this.write(type.values, item, depth + 1));
        });
        break;
      case "enum": {
        const symbol = value.kind === "enum" ? value.symbol : value.kind === "string" ? value.value : null;
        if (symbol === null) return this.#misfit(type, value);
        const index = type.symbols.indexOf(symbol);
        if (index < 0) this.#refuse("decode.type", `${symbol} is no symbol of ${type.name}`);
        this.out.int(index);
        break;
      }
      default:
        this.#scalar(type, value);
    }
  }

  #block<T>(items: readonly T[], each: (item: T, i: number) => void): void {
    if (items.length > 0) this.out.int(items.length);
    for (const [i, item] of items.entries()) each(item, i);
    this.out.int(0);
  }

  #text(text: string): void {
    if (!text.isWellFormed()) this.#refuse("decode.encoding", "half of a surrogate pair");
    this.out.sized(UTF8.encode(text));
  }

  #record(type: RecordType, value: Value, depth: number): void {
    if (value.kind !== "record") return this.#misfit(type, value);
    const given = new Map(value.fields.map((f) => [f.name, f.value]));
    for (const f of type.fields) {
      const inner = given.get(f.name);
      given.delete(f.name);
      this.#within(f.name, () => {
        if (inner !== undefined) this.write(f.type, inner, depth + 1);
        else if (f.fallback === undefined) this.write(f.type, NULL, depth + 1);
        else {
          const bytes = defaultBytes(f.type, f.fallback);
          if (typeof bytes === "string") this.#refuse("decode.schema", `the default is none: ${bytes}`);
          this.out.raw(bytes);
        }
      });
    }
    for (const [name, inner] of given)
      if (inner.kind !== "null") this.#refuse("decode.unknown_field", `${type.name} has no field ${name}`);
  }

  #union(type: UnionType, value: Value, depth: number): void {
    const names = branchNames(type);
    const { index, inner } = this.#branch(type, names, value);
    this.out.int(index);
    this.write(type.branches[index]!, inner, depth);
  }

  /** By its name; else the first branch that takes the value as it is. A struct of one member is what a column holds. */
  #branch(type: UnionType, names: readonly string[], value: Value): { index: number; inner: Value } {
    if (value.kind === "union") {
      const index = names.indexOf(value.branch);
      const full = index < 0 ? type.branches.findIndex((b) => nameOf(b) === value.branch) : index;
      if (full < 0) this.#refuse("decode.type", `the union has no branch ${value.branch}`);
      return { index: full, inner: value.value };
    }
    const fits = type.branches.findIndex((b) => this.#takes(b, value));
    if (fits >= 0) return { index: fits, inner: value };
    if (value.kind === "record") {
      const set = value.fields.filter((f) => f.value.kind !== "null");
      const [only] = set;
      if (set.length === 1 && names.includes(only!.name))
        return { index: names.indexOf(only!.name), inner: only!.value };
    }
    return this.#misfit(type, value);
  }

  #takes(type: AvroType, value: Value): boolean {
    switch (type.kind) {
      case "record":
        return (
          value.kind === "record" && value.fields.every((f) => type.fields.some((t) => t.name === f.name))
        );
      case "array":
        return value.kind === "list";
      case "enum":
        return value.kind === "enum" || (value.kind === "string" && type.symbols.includes(value.value));
      case "map":
      case "null":
        return value.kind === type.kind;
      case "union":
        return false;
      default:
        return takes(type, value);
    }
  }

  #scalar(type: Scalar, value: Value): void {
    if (!takes(type, value)) return this.#misfit(type, value);
    if (type.logical !== null) return this.#logical(type, type.logical, value);
    switch (value.kind) {
      case "null":
        break;
      case "bool":
        this.out.byte(value.value ? 1 : 0);
        break;
      case "int":
      case "long":
      case "float":
      case "double":
        this.#number(type, value.value);
        break;
      case "bytes":
        this.#bytes(type, value.value);
        break;
      case "string":
        this.#text(value.value);
        break;
      case "enum":
        this.#text(value.symbol);
        break;
      case "uuid":
        if (type.kind === "string") this.#text(uuidText(value.value));
        else this.#bytes(type, value.value);
        break;
      default:
        this.#misfit(type, value);
    }
  }

  #number(type: Scalar, n: number | bigint): void {
    if (type.kind === "float" || type.kind === "double") {
      const size = type.kind === "float" ? 4 : 8;
      if (type.kind === "float") FLOAT.setFloat32(0, Number(n), true);
      else FLOAT.setFloat64(0, Number(n), true);
      const kept = type.kind === "float" ? FLOAT.getFloat32(0, true) : Number(n);
      // A bigint or number that it does not hold exactly; nothing is equal to NaN.
      if (kept !== Number(n) || (typeof n === "bigint" && BigInt(kept) !== n))
        if (!Number.isNaN(Number(n))) this.#refuse("decode.range", `${n} would be rounded as ${type.kind}`);
      this.out.raw(FLOAT_BYTES.subarray(0, size));
      return;
    }
    const value = BigInt(n);
    const bits = type.kind === "int" ? 32 : 64;
    if (BigInt.asIntN(bits, value) !== value) this.#refuse("decode.range", `${value} for ${type.kind}`);
    this.out.bigint(value);
  }

  #bytes(type: Scalar, bytes: Uint8Array): void {
    if (type.kind !== "fixed") this.out.sized(bytes);
    else if (bytes.length === type.size) this.out.raw(bytes);
    else this.#refuse("decode.range", `${bytes.length} bytes for ${type.name} of ${type.size}`);
  }

  #logical(type: Scalar, l: Logical, value: Value): void {
    switch (value.kind) {
      case "date":
        this.out.int(value.days);
        break;
      case "time":
      case "timestamp":
        this.#instant(l, value);
        break;
      case "uuid":
        if (type.kind === "string") this.#text(uuidText(value.value));
        else this.#bytes(type, value.value);
        break;
      case "interval":
        this.#duration(value);
        break;
      case "decimal":
        this.#decimal(type, l, value.unscaled, value.scale);
        break;
      case "string":
        if (l.as === "uuid") this.#uuidOf(value.value);
        else this.#decimalOf(type, l, value.value);
        break;
      default:
        this.#misfit(type, value);
    }
  }

  #uuidOf(text: string): void {
    const bytes = UTF8.encode(text);
    if (!uuidBytes(bytes, 0, bytes.length, new Uint8Array(16), 0))
      this.#refuse("decode.type", "text that is no UUID");
    this.out.sized(bytes);
  }

  #instant(l: Logical, value: Extract<Value, { kind: "time" | "timestamp" }>): void {
    if (l.as !== "time" && l.as !== "timestamp") return;
    const [from, to] = [UNITS_PER_SECOND[value.unit], UNITS_PER_SECOND[l.unit as TimeUnit]];
    const scaled = value.value * to;
    if (scaled % from !== 0n) this.#refuse("decode.range", `${value.value} ${value.unit} would be rounded`);
    const out = scaled / from;
    if (BigInt.asIntN(64, out) !== out) this.#refuse("decode.range", `${out} ${l.unit}`);
    if (l.as === "time" && (out < 0n || out * (1_000_000_000n / to) >= BigInt(DAY_NS)))
      this.#refuse("decode.range", `a time of ${out} ${l.unit}, outside of a day`);
    this.out.bigint(out);
  }

  #duration({ months, days, nanoseconds }: Extract<Value, { kind: "interval" }>): void {
    const ms = nanoseconds / 1_000_000n;
    if (months < 0 || days < 0 || ms * 1_000_000n !== nanoseconds || ms < 0n || ms > 0xffffffffn)
      this.#refuse("decode.range", "a duration is of whole milliseconds up to 2^32, and none is below 0");
    const bytes = new DataView(new ArrayBuffer(12));
    for (const [i, n] of [months, days, Number(ms)].entries()) bytes.setUint32(4 * i, n, true);
    this.out.raw(new Uint8Array(bytes.buffer));
  }

  #decimalOf(type: Scalar, l: Logical, text: string): void {
    const m = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text);
    if (m === null || text.length > 10_000) return this.#refuse("decode.type", "text that is no decimal");
    const fraction = m[3] ?? "";
    const unscaled = BigInt(m[2]! + fraction);
    this.#decimal(type, l, m[1] === "-" ? -unscaled : unscaled, fraction.length);
  }

  #decimal(type: Scalar, l: Logical, unscaled: bigint, scale: number): void {
    if (l.as === "big-decimal") {
      const inner = new AvroWriter();
      inner.sized(bigEndian(unscaled, null)!);
      inner.int(scale);
      this.out.sized(inner.view());
      return;
    }
    if (l.as !== "decimal") return;
    let value = unscaled;
    if (l.scale >= scale) value *= 10n ** BigInt(l.scale - scale);
    else {
      const by = 10n ** BigInt(scale - l.scale);
      if (value % by !== 0n)
        this.#refuse("decode.range", `${decimalText(unscaled, scale)} would be rounded to ${l.scale} digits`);
      value /= by;
    }
    const amount = value < 0n ? -value : value;
    const bytes = bigEndian(value, type.kind === "fixed" ? type.size : null);
    if (bytes === null || amount >= 10n ** BigInt(l.precision))
      return this.#refuse("decode.range", `a decimal of more than ${l.precision} digits`);
    this.#bytes(type, bytes);
  }
}

/** Two's complement in `size` bytes, or as few as it takes; null if they are too few. */
function bigEndian(value: bigint, size: number | null): Uint8Array | null {
  let n = size ?? 1;
  if (size === null) while (BigInt.asIntN(8 * n, value) !== value) n++;
  else if (BigInt.asIntN(8 * n, value) !== value) return null;
  return Uint8Array.fromHex(
    BigInt.asUintN(8 * n, value)
      .toString(16)
      .padStart(2 * n, "0"),
  );
}

const PLAIN: Readonly<Record<string, readonly Value["kind"][]>> = {
  null: ["null"],
  boolean: ["bool"],
  int: ["int", "long"],
  long: ["int", "long"],
  float: ["float", "double", "int", "long"],
  double: ["double", "float", "int", "long"],
  bytes: ["bytes", "uuid"],
  fixed: ["bytes", "uuid"],
  string: ["string", "enum", "uuid"],
};
const MEANT: Readonly<Record<Logical["as"], readonly Value["kind"][]>> = {
  date: ["date"],
  time: ["time"],
  timestamp: ["timestamp"],
  uuid: ["uuid", "string"],
  duration: ["interval"],
  decimal: ["decimal", "string"],
  "big-decimal": ["decimal", "string"],
};

function takes({ kind, logical }: Scalar, value: Value): boolean {
  if (logical === null) return PLAIN[kind]!.includes(value.kind);
  if (value.kind === "timestamp" && logical.as === "timestamp")
    return (value.zone === null) === (logical.zone === null);
  if (logical.as === "uuid" && value.kind === "string") return kind === "string";
  return MEANT[logical.as].includes(value.kind);
}
