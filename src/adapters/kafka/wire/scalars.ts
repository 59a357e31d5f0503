/** How each type of the protocol goes over the wire, in the old form and in the compact one of flexible versions. */
import type { ByteReader } from "../../../core/bytes/reader.ts";
import type { ByteWriter } from "../../../core/bytes/writer.ts";
import { Failure } from "../../../core/failure/failure.ts";
import type { Scalar } from "./spec.ts";
import { decodeUuid, encodeUuid, ZERO_UUID } from "./uuid.ts";

export interface ValueCodec {
  /** Least bytes that one value takes: bounds array counts before anything is allocated. */
  readonly minBytes: number;
  /** Most bytes that this value takes, so that a message is written into memory taken once. Bad values: anything. */
  maxBytes(value: unknown): number;
  encode(w: ByteWriter, value: unknown, name: string): void;
  decode(r: ByteReader): unknown;
}

const EMPTY_BYTES = new Uint8Array(0);
/** The longest length prefix: a uvarint of 32 bits. */
export const LENGTH_BYTES = 5;
/** UTF-8 takes at most three bytes for a UTF-16 unit. */
const UTF8_BYTES = 3;

export function zeroOf(type: Scalar): number | bigint | string | boolean | Uint8Array {
  switch (type) {
    case "bool":
      return false;
    case "int64":
      return 0n;
    case "uuid":
      return ZERO_UUID;
    case "string":
      return "";
    case "bytes":
    case "records":
      return EMPTY_BYTES;
    default:
      return 0;
  }
}

function refuse(name: string, value: unknown, want: string): Failure {
  const seen = value === null ? "null" : typeof value === "number" ? String(value) : typeof value;
  return new Failure("internal.bug", `field ${name} is ${seen} where ${want} is needed`);
}

function integer(
  bits: 8 | 16 | 32,
  write: (w: ByteWriter, n: number) => void,
  read: (r: ByteReader) => number,
): ValueCodec {
  const limit = 2 ** (bits - 1);
  return {
    minBytes: bits / 8,
    maxBytes: () => bits / 8,
    encode(w, value, name) {
      if (typeof value !== "number" || !Number.isInteger(value) || value < -limit || value >= limit) {
        throw refuse(name, value, `int${bits}`);
      }
      write(w, value);
    },
    decode: read,
  };
}

const INT8 = integer(
  8,
  (w, n) => w.i8(n),
  (r) => r.i8(),
);
const INT16 = integer(
  16,
  (w, n) => w.i16(n),
  (r) => r.i16(),
);
const INT32 = integer(
  32,
  (w, n) => w.i32(n),
  (r) => r.i32(),
);

const INT64: ValueCodec = {
  minBytes: 8,
  maxBytes: () => 8,
  encode(w, value, name) {
    if (typeof value !== "bigint" || BigInt.asIntN(64, value) !== value) throw refuse(name, value, "int64");
    w.i64(value);
  },
  decode: (r) => r.i64(),
};

const BOOL: ValueCodec = {
  minBytes: 1,
  maxBytes: () => 1,
  encode(w, value, name) {
    if (typeof value !== "boolean") throw refuse(name, value, "bool");
    w.bool(value);
  },
  decode: (r) => r.bool(),
};

const UUID: ValueCodec = {
  minBytes: 16,
  maxBytes: () => 16,
  encode(w, value, name) {
    if (typeof value !== "string") throw refuse(name, value, "uuid");
    w.raw(encodeUuid(value));
  },
  decode: (r) => decodeUuid(r.view(16)),
};

function stringCodec(flexible: boolean, nullable: boolean): ValueCodec {
  return {
    minBytes: flexible ? 1 : 2,
    maxBytes: (value) => LENGTH_BYTES + (typeof value === "string" ? UTF8_BYTES * value.length : 0),
    encode(w, value, name) {
      if (typeof value !== "string" && !(nullable && value === null)) throw refuse(name, value, "string");
      if (flexible) w.compactString(value);
      else w.string(value);
    },
    decode: flexible
      ? (r) => (nullable ? r.compactNullableString() : r.compactString())
      : (r) => (nullable ? r.nullableString() : r.string()),
  };
}

function bytesCodec(flexible: boolean, nullable: boolean): ValueCodec {
  return {
    minBytes: flexible ? 1 : 4,
    maxBytes: (value) => LENGTH_BYTES + (value instanceof Uint8Array ? value.length : 0),
    encode(w, value, name) {
      if (!(value instanceof Uint8Array) && !(nullable && value === null)) throw refuse(name, value, "bytes");
      if (flexible) w.compactBytes(value);
      else w.sizedBytes(value);
    },
    decode: flexible
      ? (r) => (nullable ? r.compactNullableBytes() : r.compactBytes())
      : (r) => (nullable ? r.nullableBytes() : r.sizedBytes()),
  };
}

export function scalarCodec(type: Scalar, flexible: boolean, nullable: boolean): ValueCodec {
  switch (type) {
    case "bool":
      return BOOL;
    case "int8":
      return INT8;
    case "int16":
      return INT16;
    case "int32":
      return INT32;
    case "int64":
      return INT64;
    case "uuid":
      return UUID;
    case "string":
      return stringCodec(flexible, nullable);
    case "bytes":
    case "records":
      return bytesCodec(flexible, nullable);
  }
}
