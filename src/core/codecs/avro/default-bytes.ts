/** A field's default as Avro bytes of its type, so that it is read as any value is. */
import { ByteWriter } from "../../bytes/writer.ts";
import type { AvroType, Json, RecordType, UnionType } from "./schema.ts";

const MOST_DEPTH = 64;

/** The bytes, or why the default is none of the type. */
export function defaultBytes(type: AvroType, json: Json): Uint8Array | string {
  const out = new ByteWriter();
  const problem = write(out, type, json, 0);
  return problem ?? out.copy();
}

/** Null: it was written. */
function write(out: ByteWriter, type: AvroType, json: Json, depth: number): string | null {
  if (depth > MOST_DEPTH) return "it nests too deeply";
  switch (type.kind) {
    case "null":
      return json === null ? null : no(json, "null");
    case "boolean":
      if (typeof json !== "boolean") return no(json, "boolean");
      out.bool(json);
      return null;
    case "int":
      return writeInteger(out, json, 31, "int");
    case "long":
      return writeInteger(out, json, 63, "long");
    case "float":
      if (typeof json !== "number" && typeof json !== "bigint") return no(json, "float");
      FLOAT.setFloat32(0, Number(json), true);
      out.raw(new Uint8Array(FLOAT.buffer, 0, 4));
      return null;
    case "double":
      if (typeof json !== "number" && typeof json !== "bigint") return no(json, "double");
      FLOAT.setFloat64(0, Number(json), true);
      out.raw(new Uint8Array(FLOAT.buffer, 0, 8));
      return null;
    case "string": {
      if (typeof json !== "string" || !json.isWellFormed()) return no(json, "string");
      const bytes = new TextEncoder().encode(json);
      out.varlong(BigInt(bytes.length)).raw(bytes);
      return null;
    }
    case "bytes": {
      const bytes = latinBytes(json);
      if (bytes === null) return no(json, "text of bytes");
      out.varlong(BigInt(bytes.length)).raw(bytes);
      return null;
    }
    case "fixed": {
      const bytes = latinBytes(json);
      if (bytes?.length !== type.size) return no(json, `text of ${type.size} bytes`);
      out.raw(bytes);
      return null;
    }
    case "enum": {
      const index = type.symbols.indexOf(json as string);
      if (index < 0) return no(json, "symbol of the enum");
      out.varlong(BigInt(index));
      return null;
    }
    default:
      return writeNested(out, type, json, depth);
  }
}

const FLOAT = new DataView(new ArrayBuffer(8));

function no(json: Json, what: string): string {
  const text = typeof json === "bigint" ? String(json) : (JSON.stringify(json) ?? "nothing");
  return `${text.length > 60 ? `${text.slice(0, 60)}…` : text} is no ${what}`;
}

function writeInteger(out: ByteWriter, json: Json, bits: number, what: string): string | null {
  if (typeof json !== "bigint" && !Number.isSafeInteger(json)) return no(json, what);
  const value = BigInt(json as number | bigint);
  if (value >= 1n << BigInt(bits) || value < -(1n << BigInt(bits))) return no(json, what);
  out.varlong(value);
  return null;
}

/** Characters U+0000 to U+00FF stand for the bytes. */
function latinBytes(json: Json): Uint8Array | null {
  if (typeof json !== "string") return null;
  const out = new Uint8Array(json.length);
  for (let i = 0; i < json.length; i++) {
    const c = json.charCodeAt(i);
    if (c > 255) return null;
    out[i] = c;
  }
  return out;
}

function writeNested(
  out: ByteWriter,
  type: Exclude<AvroType, { kind: "null" | "boolean" | "int" | "long" | "float" | "double" }>,
  json: Json,
  depth: number,
): string | null {
  switch (type.kind) {
    case "array": {
      if (!Array.isArray(json)) return no(json, "array");
      const items = json as readonly Json[];
      if (items.length > 0) out.varlong(BigInt(items.length));
      for (const item of items) {
        const problem = write(out, type.items, item, depth + 1);
        if (problem !== null) return problem;
      }
      out.varlong(0n);
      return null;
    }
    case "map": {
      if (!isObject(json)) return no(json, "map");
      const entries = Object.entries(json);
      if (entries.length > 0) out.varlong(BigInt(entries.length));
      for (const [key, value] of entries) {
        const problem = write(out, STRING, key, depth) ?? write(out, type.values, value, depth + 1);
        if (problem !== null) return problem;
      }
      out.varlong(0n);
      return null;
    }
    case "record":
      return writeRecord(out, type, json, depth);
    case "union":
      return writeUnion(out, type, json, depth);
    default:
      return no(json, type.kind);
  }
}

const STRING: AvroType = { kind: "string", logical: null };

function isObject(json: Json): json is { readonly [key: string]: Json } {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

function writeRecord(out: ByteWriter, type: RecordType, json: Json, depth: number): string | null {
  if (!isObject(json)) return no(json, "record");
  for (const f of type.fields) {
    const given = Object.hasOwn(json, f.name) ? json[f.name] : f.fallback;
    if (given === undefined) return `it has no ${f.name}`;
    const problem = write(out, f.type, given, depth + 1);
    if (problem !== null) return problem;
  }
  return null;
}

/** Of the first branch that it fits: since 1.12 a default may be of any. */
function writeUnion(out: ByteWriter, type: UnionType, json: Json, depth: number): string | null {
  for (const [i, branch] of type.branches.entries()) {
    const bytes = new ByteWriter();
    if (write(bytes, branch, json, depth + 1) !== null) continue;
    out.varlong(BigInt(i)).raw(bytes.view());
    return null;
  }
  return no(json, `any of its ${type.branches.length} branches`);
}
