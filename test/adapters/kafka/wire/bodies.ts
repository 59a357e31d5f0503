/**
 * Bodies with a value in every field of a version, made from the definition by a plain rule, so that Kafka's own
 * classes can encode the same bodies (scripts/kafka-definitions.sh fixtures) and the results be compared.
 * Variant 0 fills everything; variant 1 takes null, empty lists and presets wherever the version allows them.
 */
import type { Body } from "../../../../src/adapters/kafka/wire/codec.ts";
import {
  type Field,
  inVersions,
  type Message,
  type Scalar,
} from "../../../../src/adapters/kafka/wire/spec.ts";

export const VARIANTS = [0, 1] as const;
export type Variant = (typeof VARIANTS)[number];

const TEXTS = ["orders", "größe-κ", "", "a,b=c", "\u{1F69A} van"] as const;
const UUIDS = ["3sHc2rVZTg6mfjO0X1gSgA", "AAAAAAAAAAAAAAAAAAAAAQ", "_-9vLx3RTnCqOVnGtNRwLw"] as const;

class Counter {
  n = 0;

  next(): number {
    return ++this.n;
  }
}

function scalar(type: Scalar, c: Counter): unknown {
  const n = c.next();
  switch (type) {
    case "bool":
      return n % 2 === 1;
    case "int8":
      return [1, -128, 127][n % 3];
    case "int16":
      return [n, -32768, 32767][n % 3];
    case "int32":
      return [n * 65537, -2147483648, 2147483647][n % 3];
    case "int64":
      return [BigInt(n), -9223372036854775808n, 9223372036854775807n, 9007199254740993n][n % 4];
    case "uuid":
      return UUIDS[n % UUIDS.length];
    case "string":
      return TEXTS[n % TEXTS.length];
    case "bytes":
    case "records":
      return Uint8Array.from({ length: 1 + (n % 40) }, (_, i) => i * 7 + n);
  }
}

function value(f: Field, version: number, variant: Variant, c: Counter): unknown {
  if (variant === 1 && inVersions(f.nullable, version)) return null;
  if (!f.array) return one(f, version, variant, c);
  const items = variant === 1 ? c.next() % 2 : 2;
  return Array.from({ length: items }, () => one(f, version, variant, c));
}

function one(f: Field, version: number, variant: Variant, c: Counter): unknown {
  if (f.fields !== undefined) return bodyOf(f.fields, version, variant, c);
  return scalar(f.type!, c);
}

function bodyOf(fields: readonly Field[], version: number, variant: Variant, c: Counter): Body {
  const here = fields.filter((f) => inVersions(f.since, version));
  // Variant 1 leaves tagged fields out: their presets must not be sent.
  const sent = here.filter((f) => variant === 0 || !inVersions(f.tagged, version));
  return Object.fromEntries(sent.map((f) => [f.name, value(f, version, variant, c)]));
}

export function sampleBody(message: Message, version: number, variant: Variant): Body {
  return bodyOf(message.fields, version, variant, new Counter());
}
