/**
 * Schemas, readers' schemas and payloads by chance. The writer of bytes is of its own, a few lines over the schema's
 * JSON, so that it shares no mistake with the codec.
 */
import { type Draw, pick } from "../../../../scripts/fuzz/draws.ts";

// biome-ignore lint/suspicious/noExplicitAny: a schema is any JSON
export type Schema = any;

const PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"];
const LOGICAL: readonly Schema[] = [
  { type: "bytes", logicalType: "decimal", precision: 9, scale: 2 },
  { type: "bytes", logicalType: "decimal", precision: 38, scale: 10 },
  { type: "bytes", logicalType: "decimal", precision: 64, scale: 3 },
  { type: "bytes", logicalType: "big-decimal" },
  { type: "string", logicalType: "uuid" },
  { type: "int", logicalType: "date" },
  { type: "int", logicalType: "time-millis" },
  { type: "long", logicalType: "time-micros" },
  { type: "long", "connect.name": "io.debezium.time.NanoTime" },
  { type: "long", logicalType: "timestamp-millis" },
  { type: "long", logicalType: "timestamp-micros" },
  { type: "long", logicalType: "timestamp-nanos" },
  { type: "long", logicalType: "local-timestamp-micros" },
  { type: "int", logicalType: "unheard-of" },
];

/** A record at the outside, mostly. */
export function randomSchema(draw: Draw): Schema {
  const state = { names: 0, known: [] as string[], open: [] as string[] };
  return draw(8) === 0 ? anyType(draw, state, 0) : record(draw, state, 0);
}

interface Names {
  names: number;
  /** Types that may be named again. */
  readonly known: string[];
  /** Records that are being written: a value must be able to end, so they are named within unions and lists only. */
  readonly open: string[];
}

function named(draw: Draw, s: Names, kind: string): { name: string; namespace?: string } {
  const name = `${kind}${s.names++}`;
  return draw(3) === 0 ? { name, namespace: pick(draw, ["a.b", "c"]) } : { name: `x.${name}` };
}

function fullName(n: { name: string; namespace?: string }): string {
  return n.namespace === undefined ? n.name : `${n.namespace}.${n.name}`;
}

function record(draw: Draw, s: Names, depth: number): Schema {
  const n = named(draw, s, "R");
  s.open.push(fullName(n));
  const fields = Array.from({ length: draw(depth === 0 ? 7 : 4) }, (_, i) => ({
    name: `f${i}`,
    type: anyType(draw, s, depth + 1),
  }));
  s.open.pop();
  s.known.push(fullName(n));
  return { type: "record", ...n, fields };
}

function anyType(draw: Draw, s: Names, depth: number): Schema {
  const kind = draw(depth > 3 ? 6 : 14);
  if (kind < 3) return pick(draw, PRIMITIVES);
  if (kind < 5) return pick(draw, LOGICAL);
  if (kind === 5) return s.known.length > 0 ? pick(draw, s.known) : "string";
  if (kind === 6) return { type: "array", items: inner(draw, s, depth) };
  if (kind === 7) return { type: "map", values: inner(draw, s, depth) };
  if (kind === 8) return record(draw, s, depth);
  if (kind === 9) return enumType(draw, s);
  if (kind === 10) return fixedType(draw, s);
  if (kind === 11) return union(draw, s, depth);
  return optional(draw, s, depth);
}

/** Where a record may name itself. */
function inner(draw: Draw, s: Names, depth: number): Schema {
  return s.open.length > 0 && draw(4) === 0 ? pick(draw, s.open) : anyType(draw, s, depth + 1);
}

function enumType(draw: Draw, s: Names): Schema {
  const n = named(draw, s, "E");
  s.known.push(fullName(n));
  const symbols = ["RED", "GREEN", "BLUE", "_x"].slice(0, 1 + draw(4));
  return { type: "enum", ...n, symbols, ...(draw(2) === 0 ? { default: symbols[0] } : {}) };
}

function fixedType(draw: Draw, s: Names): Schema {
  const n = named(draw, s, "F");
  s.known.push(fullName(n));
  const more = pick<Schema>(draw, [
    { size: draw(40) },
    { size: 16, logicalType: "uuid" },
    { size: 12, logicalType: "duration" },
    { size: 6, logicalType: "decimal", precision: 12, scale: 4 },
    { size: 20, logicalType: "decimal", precision: 38, scale: 0 },
  ]);
  return { type: "fixed", ...n, ...more };
}

function optional(draw: Draw, s: Names, depth: number): Schema {
  const type = inner(draw, s, depth);
  if (type === "null" || Array.isArray(type)) return type;
  return draw(3) === 0 ? [type, "null"] : ["null", type];
}

function union(draw: Draw, s: Names, depth: number): Schema {
  // A record that names itself must be able to end.
  const branches: Schema[] = s.open.length > 0 || draw(2) === 0 ? ["null"] : [];
  const seen = new Set<string>(branches);
  for (let i = draw(5); i >= 0; i--) {
    const known = s.known.length;
    const type = inner(draw, s, depth);
    // A named type is told apart by its name, any other by its kind.
    const key = typeof type === "string" ? type : type.name === undefined ? type.type : fullName(type);
    if (Array.isArray(type) || seen.has(key)) {
      s.known.length = known;
      continue;
    }
    seen.add(key);
    branches.push(type);
  }
  return branches.length === 0 ? ["null", "string"] : branches;
}

/** Another schema that a reader could have: some of it fits, some does not. */
export function evolve(schema: Schema, draw: Draw): Schema {
  const copy = structuredClone(schema);
  walk(copy, draw);
  return copy;
}

const PROMOTED: Readonly<Record<string, readonly string[]>> = {
  int: ["long", "float", "double"],
  long: ["float", "double"],
  float: ["double"],
  string: ["bytes"],
  bytes: ["string"],
};

function walk(s: Schema, draw: Draw): void {
  if (typeof s !== "object" || s === null) return;
  if (Array.isArray(s)) {
    for (const [i, b] of s.entries()) {
      if (typeof b === "string" && draw(4) === 0 && PROMOTED[b] !== undefined) {
        const to = pick(draw, PROMOTED[b]);
        if (!s.some((o) => o === to || o?.type === to)) s[i] = to;
      } else walk(b, draw);
    }
    return;
  }
  if (s.type === "record") evolveFields(s, draw);
  for (const key of ["items", "values", "type"]) {
    if (typeof s[key] === "string" && key !== "type" && draw(4) === 0 && PROMOTED[s[key]] !== undefined)
      s[key] = pick(draw, PROMOTED[s[key]]!);
    else walk(s[key], draw);
  }
  if (s.type === "enum" && draw(3) === 0 && s.symbols.length > 1) {
    s.symbols = s.symbols.slice(0, -1);
    if (s.default !== undefined && !s.symbols.includes(s.default)) s.default = s.symbols[0];
  }
}

const ADDED: readonly Schema[] = [
  { name: "added_int", type: "int", default: 7 },
  { name: "added_text", type: "string", default: "Grüße" },
  { name: "added_null", type: ["null", "string"], default: null },
  { name: "added_list", type: { type: "array", items: "long" }, default: [1, -300, 7_000_000_000] },
  { name: "added_map", type: { type: "map", values: "double" }, default: { a: 0.5, b: -1 } },
  {
    name: "added_decimal",
    type: { type: "bytes", logicalType: "decimal", precision: 4, scale: 2 },
    default: "\u0000ÿ",
  },
];

function evolveFields(s: Schema, draw: Draw): void {
  for (const f of s.fields) {
    if (typeof f.type === "string" && PROMOTED[f.type] !== undefined && draw(4) === 0)
      f.type = pick(draw, PROMOTED[f.type]!);
    else walk(f.type, draw);
    if (
      Array.isArray(f.type) &&
      draw(5) === 0 &&
      f.type.slice(0, -1).every((b: Schema) => typeof b === "string")
    )
      f.type = f.type.at(-1);
    else if (!Array.isArray(f.type) && f.type !== "null" && draw(8) === 0) f.type = ["null", f.type];
    if (draw(8) === 0) {
      f.aliases = [f.name];
      f.name = `${f.name}_renamed`;
    }
  }
  // A field that defines a type which others name cannot go.
  s.fields = s.fields.filter((f: Schema) => typeof f.type !== "string" || draw(5) > 0);
  if (draw(2) === 0) s.fields.push(structuredClone(pick(draw, ADDED)));
  // A type is defined before it is named.
  const defines = s.fields.some((f: Schema) => JSON.stringify(f.type).includes('"name"'));
  if (draw(3) === 0 && !defines) s.fields.reverse();
}

/** One value of the schema as bytes; unless `tame` a map may have a key twice and a float be any that is no number. */
export function randomPayload(schema: Schema, draw: Draw, tame = false): Uint8Array {
  const w = new PayloadWriter(draw, tame);
  w.learn(schema, "");
  w.value(schema, "", 0);
  return Uint8Array.from(w.out);
}

const TEXTS = ["", "a", "Thalweg", "Grüße", "日本語", "x".repeat(70), "€".repeat(40), "\u{1f30a}"];

class PayloadWriter {
  readonly out: number[] = [];
  readonly #draw: Draw;
  readonly #tame: boolean;
  readonly #types = new Map<string, { schema: Schema; namespace: string }>();

  constructor(draw: Draw, tame: boolean) {
    this.#draw = draw;
    this.#tame = tame;
  }

  /** Collects the named types. */
  learn(s: Schema, namespace: string): void {
    if (typeof s !== "object" || s === null) return;
    if (Array.isArray(s)) {
      for (const b of s) this.learn(b, namespace);
      return;
    }
    let inside = namespace;
    if (typeof s.name === "string" && s.type !== undefined) {
      const full = this.#full(s, namespace);
      inside = full.includes(".") ? full.slice(0, full.lastIndexOf(".")) : "";
      this.#types.set(full, { schema: s, namespace: inside });
    }
    this.learn(s.items, inside);
    this.learn(s.values, inside);
    if (typeof s.type === "object") this.learn(s.type, inside);
    for (const f of s.fields ?? []) this.learn(f.type, inside);
  }

  #full(s: Schema, namespace: string): string {
    if (s.name.includes(".")) return s.name;
    const space = s.namespace ?? namespace;
    return space === "" ? s.name : `${space}.${s.name}`;
  }

  long(value: bigint): void {
    let z = BigInt.asUintN(64, (value << 1n) ^ (value >> 63n));
    while (z > 127n) {
      this.out.push(Number(z & 127n) | 128);
      z >>= 7n;
    }
    this.out.push(Number(z));
  }

  #sized(bytes: Uint8Array): void {
    this.long(BigInt(bytes.length));
    this.out.push(...bytes);
  }

  #number(bits: number): bigint {
    const d = this.#draw;
    const n = BigInt(d(0x7fffffff)) * BigInt(d(0x7fffffff)) * (d(2) === 0 ? 1n : -1n);
    const shift = BigInt(d(bits));
    return pick(d, [0n, 1n, -1n, BigInt(d(100)), BigInt.asIntN(bits, n), BigInt.asIntN(bits, n) >> shift]);
  }

  value(s: Schema, namespace: string, depth: number): void {
    const d = this.#draw;
    if (Array.isArray(s)) {
      const nullAt = s.indexOf("null");
      const i = depth > 6 && nullAt >= 0 ? nullAt : d(s.length);
      this.long(BigInt(i));
      this.value(s[i], namespace, depth + 1);
      return;
    }
    if (typeof s === "string") {
      const known = this.#types.get(s) ?? this.#types.get(`${namespace}.${s}`);
      if (known !== undefined) this.#type(known.schema, known.namespace, depth);
      else this.#primitive(s, {});
      return;
    }
    const full = s.name === undefined ? undefined : this.#types.get(this.#full(s, namespace));
    this.#type(s, full?.namespace ?? namespace, depth);
  }

  #type(s: Schema, namespace: string, depth: number): void {
    const d = this.#draw;
    switch (s.type) {
      case "record":
        for (const f of s.fields) this.value(f.type, namespace, depth + 1);
        return;
      case "enum":
        this.long(BigInt(d(s.symbols.length)));
        return;
      case "fixed":
        for (let i = 0; i < s.size; i++)
          this.out.push(
            s.logicalType === "decimal" ? (i < s.size - 3 ? 0 : d(256)) : d(s.logicalType ? 128 : 256),
          );
        return;
      case "array":
        this.#blocks(depth, () => this.value(s.items, namespace, depth + 1));
        return;
      case "map": {
        let key = 0;
        this.#blocks(depth, () => {
          this.#sized(
            new TextEncoder().encode(`${pick(d, TEXTS)}${d(30) === 0 && !this.#tame ? "" : key++}`),
          );
          this.value(s.values, namespace, depth + 1);
        });
        return;
      }
      default:
        if (typeof s.type === "string") this.#primitive(s.type, s);
        else this.value(s.type, namespace, depth);
    }
  }

  #blocks(depth: number, item: () => void): void {
    const d = this.#draw;
    for (let blocks = depth > 6 ? 0 : d(3); blocks > 0; blocks--) {
      const n = 1 + d(3);
      if (d(3) > 0) {
        this.long(BigInt(n));
        for (let i = 0; i < n; i++) item();
        continue;
      }
      this.long(BigInt(-n));
      const whole = this.out.splice(0);
      for (let i = 0; i < n; i++) item();
      const items = this.out.splice(0);
      for (const b of whole) this.out.push(b);
      this.long(BigInt(items.length));
      for (const b of items) this.out.push(b);
    }
    this.long(0n);
  }

  #primitive(kind: string, s: Schema): void {
    const d = this.#draw;
    const meant = s.logicalType ?? s["connect.name"];
    switch (kind) {
      case "boolean":
        this.out.push(d(2));
        return;
      case "int":
        this.long(meant === "time-millis" ? BigInt(d(86_400_000)) : this.#number(32));
        return;
      case "long":
        this.long(
          /time-micros|NanoTime/.test(meant) && !/stamp/.test(meant)
            ? BigInt(d(0x7fffffff))
            : this.#number(64),
        );
        return;
      case "float":
      case "double":
        for (let i = kind === "float" ? 4 : 8; i > 0; i--)
          this.out.push(i === 1 && this.#tame ? 0x40 : d(256));
        return;
      case "bytes":
        if (meant === "decimal") this.#sized(Uint8Array.from({ length: 1 + d(4) }, () => d(256)));
        else if (meant === "big-decimal") this.#bigDecimal();
        else this.#sized(Uint8Array.from({ length: pick(d, [0, 1, 5, 80]) }, () => d(256)));
        return;
      case "string":
        this.#sized(new TextEncoder().encode(meant === "uuid" ? this.#uuid() : pick(d, TEXTS)));
        return;
      default:
        return;
    }
  }

  #bigDecimal(): void {
    const inner = new PayloadWriter(this.#draw, this.#tame);
    inner.#sized(Uint8Array.from({ length: 1 + this.#draw(5) }, () => this.#draw(256)));
    inner.long(BigInt(this.#draw(9)));
    this.#sized(Uint8Array.from(inner.out));
  }

  #uuid(): string {
    const hex = Array.from({ length: 32 }, () => this.#draw(16).toString(16)).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  }
}
