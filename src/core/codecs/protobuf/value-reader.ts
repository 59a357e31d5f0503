/**
 * Payloads to Values by looking the plan up, field by field. It shares no code with what generate.ts makes, and it is what
 * that leaves every unusual payload to: here messages that come in pieces are merged, a later member of a oneof takes the
 * place of an earlier one, a later entry of a map that of an earlier with its key, and what is wrong gets its reason.
 */
import { ScalarType } from "@bufbuild/protobuf";
import type { Value, ValueField } from "../../types/value.ts";
import { DecodeError } from "../record-codec.ts";
import { Cursor, Path } from "./cursor.ts";
import { EnumNames } from "./enum-names.ts";
import type { FieldPlan, MessagePlan, Shape } from "./plan.ts";
import { structValue } from "./struct-value.ts";
import { SCALARS } from "./type-map.ts";
import { MAX_DEPTH } from "./wire.ts";

/** What was read of a field so far. `bytes`: of a message that is read whole, at the end; pieces behind each other. */
type Draft =
  | { readonly as: "value"; readonly value: Value }
  | { readonly as: "bytes"; readonly pieces: Uint8Array[] }
  | { readonly as: "message"; readonly fields: Map<number, Draft> }
  | { readonly as: "list"; readonly items: Value[] }
  | { readonly as: "map"; readonly entries: Map<string, readonly [Value, Value]> };

/** Cells of list items that a payload of so many bytes may have; as in generated code. */
const cellsOf = (bytes: number) => 1_000_000 + 8 * bytes;

const E9 = 1_000_000_000n;
const MIN_INT64 = -(1n << 63n);
const MAX_INT64 = (1n << 63n) - 1n;

export class ValueReader {
  readonly #plan: MessagePlan;
  readonly #separator: string;
  #path = new Path();
  #cells = 0;

  constructor(plan: MessagePlan, separator: string) {
    this.#plan = plan;
    this.#separator = separator;
  }

  read(bytes: Uint8Array, from: number, to: number): Value {
    this.#path = new Path();
    this.#cells = cellsOf(to - from);
    return this.#message(this.#plan, new Cursor(bytes, from, to, this.#path), 1);
  }

  /** The Value behind JSON text, of the content of a message at `depth`. */
  part(shape: Shape, block: Uint8Array, depth: number): Value {
    this.#path = new Path();
    this.#cells = cellsOf(block.length);
    return this.#content(shape, block, depth);
  }

  #message(plan: MessagePlan, c: Cursor, depth: number): Value {
    const drafts = new Map<number, Draft>();
    this.#collect(plan, c, depth, drafts);
    return { kind: "record", fields: this.#fields(plan, drafts, "", depth) };
  }

  #deeper(depth: number): void {
    if (depth > MAX_DEPTH) this.#path.refuse("decode.depth", `messages more than ${MAX_DEPTH} deep`);
  }

  #collect(plan: MessagePlan, c: Cursor, depth: number, drafts: Map<number, Draft>): void {
    this.#deeper(depth);
    while (!c.done) {
      const tag = c.tag();
      const f = plan.byNumber.get(tag.number);
      if (f === undefined || !accepts(f, tag.wire)) c.skip(tag, depth);
      else {
        if (f.oneof >= 0) this.#replace(plan, f, depth, drafts);
        this.#path.in(`.${f.name}`, () => this.#field(f, tag.wire, c, depth, drafts));
      }
    }
  }

  /** Takes the other members of a oneof out. They must have been messages all the same. */
  #replace(plan: MessagePlan, f: FieldPlan, depth: number, drafts: Map<number, Draft>): void {
    for (const o of plan.fields) {
      const draft = o.oneof === f.oneof && o !== f ? drafts.get(o.number) : undefined;
      if (draft === undefined) continue;
      this.#path.in(`.${o.name}`, () => this.#sound(() => this.#finish(o, draft, depth)));
      drafts.delete(o.number);
    }
  }

  /**
   * Of what is not kept as it is: a reader that takes a payload piece by piece refuses what is no message when it comes
   * by it, and asks of the result alone whether all of it is there and within bounds.
   */
  #sound(read: () => unknown): void {
    try {
      read();
    } catch (e) {
      if (!(e instanceof DecodeError) || (e.code !== "decode.range" && e.code !== "decode.null")) throw e;
    }
  }

  #field(f: FieldPlan, wire: number, c: Cursor, depth: number, drafts: Map<number, Draft>): void {
    if (f.label === "map") return this.#entry(f, c, depth, drafts);
    if (f.label === "list") return this.#item(f, wire, c, depth, drafts);
    const { shape } = f;
    const simple = shape.is === "scalar" || shape.is === "enum";
    const value: Draft | null = simple ? { as: "value", value: this.#simple(shape, c) } : null;
    const block = simple ? null : this.#block(f, c, depth);
    if (value !== null) {
      drafts.set(f.number, value);
      return;
    }
    const before = drafts.get(f.number);
    if (shape.is === "message") {
      const fields = before?.as === "message" ? before.fields : new Map<number, Draft>();
      drafts.set(f.number, { as: "message", fields });
      this.#collect(shape.plan, this.#within(block!), depth + 1, fields);
    } else if (before?.as === "bytes") {
      before.pieces.push(block!);
      this.#soundPieces(shape, before.pieces, depth);
    } else drafts.set(f.number, { as: "bytes", pieces: [block!] });
  }

  /** The last of several pieces, and of two the first: half a field in one and half in the next is none. */
  #soundPieces(shape: Shape, pieces: readonly Uint8Array[], depth: number): void {
    if (pieces.length < 2) return;
    for (const piece of pieces.length === 2 ? pieces : pieces.slice(-1))
      this.#sound(() => this.#content(shape, piece, depth + 1));
  }

  /** Content of a message field at the cursor. */
  #block(f: FieldPlan, c: Cursor, depth: number): Uint8Array {
    return f.delimited ? c.group(f.number, depth + 1) : c.block();
  }

  #within(block: Uint8Array): Cursor {
    return new Cursor(block, 0, block.length, this.#path);
  }

  #spend(f: FieldPlan): void {
    this.#cells -= f.cells;
    if (this.#cells < 0)
      this.#path.refuse("decode.size", "the lists of the payload have more cells than 1,000,000 + 8 a byte");
  }

  #item(f: FieldPlan, wire: number, c: Cursor, depth: number, drafts: Map<number, Draft>): void {
    const before = drafts.get(f.number);
    const items = before?.as === "list" ? before.items : [];
    drafts.set(f.number, { as: "list", items });
    const read = (from: Cursor) => {
      this.#spend(f);
      items.push(this.#path.in(`[${items.length}]`, () => this.#element(f, from, depth)));
    };
    const native = wireOf(f.shape);
    if (wire !== 2 || native === 2 || native === null) return read(c);
    const packed = this.#within(c.block());
    while (!packed.done) read(packed);
  }

  #element(f: FieldPlan, c: Cursor, depth: number): Value {
    const { shape } = f;
    if (shape.is === "scalar" || shape.is === "enum") return this.#simple(shape, c);
    return this.#content(shape, this.#block(f, c, depth), depth + 1);
  }

  #entry(f: FieldPlan, c: Cursor, depth: number, drafts: Map<number, Draft>): void {
    const before = drafts.get(f.number);
    const entries = before?.as === "map" ? before.entries : new Map<string, readonly [Value, Value]>();
    drafts.set(f.number, { as: "map", entries });
    this.#spend(f);
    const keyShape: Shape = { is: "scalar", scalar: f.key! };
    const inner = this.#within(c.block());
    let key = this.#zero(keyShape);
    let value: Value | null = null;
    const pieces: Uint8Array[] = [];
    const native = wireOf(f.shape) ?? 2;
    while (!inner.done) {
      const tag = inner.tag();
      if (tag.number === 1 && tag.wire === wireOf(keyShape)) key = this.#simple(keyShape, inner);
      else if (tag.number !== 2 || tag.wire !== native) inner.skip(tag, depth);
      else if (f.shape.is === "scalar" || f.shape.is === "enum") value = this.#simple(f.shape, inner);
      else {
        pieces.push(inner.block());
        this.#soundPieces(f.shape, pieces, depth);
      }
    }
    const text = keyText(key);
    this.#path.in(`[${text.slice(0, 40)}]`, () => {
      if (f.shape.is === "scalar" || f.shape.is === "enum") value ??= this.#zero(f.shape);
      else value = this.#content(f.shape, joined(pieces), depth + 1);
    });
    entries.set(text, [key, value!]);
  }

  #fields(
    plan: MessagePlan,
    drafts: ReadonlyMap<number, Draft>,
    prefix: string,
    depth: number,
  ): ValueField[] {
    const fields: ValueField[] = [];
    for (const f of plan.fields) {
      const draft = drafts.get(f.number);
      const name = prefix + f.name;
      if (f.flat && draft?.as === "message" && f.shape.is === "message") {
        const { plan: inner } = f.shape;
        fields.push(
          ...this.#path.in(`.${f.name}`, () =>
            this.#fields(inner, draft.fields, name + this.#separator, depth + 1),
          ),
        );
        continue;
      }
      const value =
        draft === undefined
          ? this.#absent(f)
          : this.#path.in(`.${f.name}`, () => this.#finish(f, draft, depth));
      if (value !== null) fields.push({ name, value });
    }
    return fields;
  }

  #absent(f: FieldPlan): Value | null {
    if (f.label === "list") return { kind: "list", items: [] };
    if (f.label === "map") return { kind: "map", entries: [] };
    if (f.presence === "explicit") return null;
    if (f.presence === "implicit") return this.#zero(f.shape);
    return this.#path.in(`.${f.name}`, () =>
      this.#path.refuse("decode.null", "the field is required and is not there"),
    );
  }

  #finish(f: FieldPlan, draft: Draft, depth: number): Value {
    switch (draft.as) {
      case "value":
        return draft.value;
      case "list":
        return { kind: "list", items: draft.items };
      case "map":
        return { kind: "map", entries: [...draft.entries.values()] };
      case "bytes":
        return this.#content(f.shape, joined(draft.pieces), depth + 1);
      case "message": {
        if (f.shape.is !== "message") throw new Error("a message of no plan");
        return { kind: "record", fields: this.#fields(f.shape.plan, draft.fields, "", depth + 1) };
      }
    }
  }

  /** A message that is there as a whole. */
  #content(shape: Shape, block: Uint8Array, depth: number): Value {
    switch (shape.is) {
      case "message":
        return this.#message(shape.plan, this.#within(block), depth);
      case "empty":
      case "opaque": {
        const c = this.#within(block);
        while (!c.done) c.skip(c.tag(), depth);
        return shape.is === "empty" ? { kind: "bool", value: true } : { kind: "bytes", value: block.slice() };
      }
      case "json":
        return shape.plan === null
          ? structValue(shape.type, this.#within(block), depth)
          : this.#message(shape.plan(), this.#within(block), depth);
      case "wrapper":
        return this.#wrapper({ is: "scalar", scalar: shape.scalar }, block, depth);
      case "timestamp":
      case "duration":
        return this.#time(shape.is, block, depth);
      default:
        throw new Error("a scalar has no content");
    }
  }

  #wrapper(shape: Shape, block: Uint8Array, depth: number): Value {
    const c = this.#within(block);
    let value = this.#zero(shape);
    while (!c.done) {
      const tag = c.tag();
      if (tag.number === 1 && tag.wire === wireOf(shape)) value = this.#simple(shape, c);
      else c.skip(tag, depth);
    }
    return value;
  }

  #time(is: "timestamp" | "duration", block: Uint8Array, depth: number): Value {
    const c = this.#within(block);
    let seconds = 0n;
    let nanos = 0n;
    while (!c.done) {
      const tag = c.tag();
      if (tag.number === 1 && tag.wire === 0) seconds = BigInt.asIntN(64, c.varint("seconds"));
      else if (tag.number === 2 && tag.wire === 0) nanos = BigInt.asIntN(32, c.varint("nanos"));
      else c.skip(tag, depth);
    }
    const total = seconds * E9 + nanos;
    const seen = `${seconds} seconds and ${nanos} nanoseconds`;
    if (is === "timestamp") {
      if (seconds < -62_135_596_800n || seconds > 253_402_300_799n || nanos < 0n || nanos >= E9)
        this.#path.refuse("decode.range", `${seen} are no Timestamp: it is of the years 1 to 9999`);
      if (total < MIN_INT64 || total > MAX_INT64)
        this.#path.refuse("decode.range", `${seen} do not fit: 64 bits of nanoseconds hold 1677 to 2262`);
      return { kind: "timestamp", unit: "ns", zone: "UTC", value: total };
    }
    const mixed = (seconds < 0n && nanos > 0n) || (seconds > 0n && nanos < 0n);
    const large = seconds > 315_576_000_000n || seconds < -315_576_000_000n || nanos >= E9 || nanos <= -E9;
    if (mixed || large)
      this.#path.refuse("decode.range", `${seen} are no Duration: of one sign, at most 10,000 years`);
    return { kind: "decimal", unscaled: total, scale: 9 };
  }

  #zero(shape: Shape): Value {
    if (shape.is === "enum") return { kind: "enum", symbol: EnumNames.of(shape.desc).text(0) };
    if (shape.is !== "scalar") throw new Error("a message has no zero");
    switch (SCALARS[shape.scalar].value) {
      case "bool":
        return { kind: "bool", value: false };
      case "long":
        return { kind: "long", value: 0n };
      case "float":
        return { kind: "float", value: 0 };
      case "double":
        return { kind: "double", value: 0 };
      case "string":
        return { kind: "string", value: "" };
      case "bytes":
        return { kind: "bytes", value: new Uint8Array(0) };
      default:
        return { kind: "int", value: 0 };
    }
  }

  #simple(shape: Shape, c: Cursor): Value {
    if (shape.is === "enum") {
      const number = Number(BigInt.asIntN(32, c.varint("an enum")));
      return { kind: "enum", symbol: EnumNames.of(shape.desc).text(number) };
    }
    if (shape.is !== "scalar") throw new Error("not a scalar");
    return this.#scalar(shape.scalar, c);
  }

  #scalar(scalar: ScalarType, c: Cursor): Value {
    const varint = () => c.varint(`a value of type ${SCALARS[scalar].name}`);
    switch (scalar) {
      case ScalarType.INT32:
        return { kind: "int", value: Number(BigInt.asIntN(32, varint())) };
      case ScalarType.UINT32:
        return { kind: "long", value: BigInt.asUintN(32, varint()) };
      case ScalarType.SINT32: {
        const x = BigInt.asUintN(32, varint());
        return { kind: "int", value: Number((x >> 1n) ^ -(x & 1n)) };
      }
      case ScalarType.INT64:
        return { kind: "long", value: BigInt.asIntN(64, varint()) };
      case ScalarType.UINT64:
        return { kind: "long", value: varint() };
      case ScalarType.SINT64: {
        const x = varint();
        return { kind: "long", value: (x >> 1n) ^ -(x & 1n) };
      }
      case ScalarType.BOOL:
        return { kind: "bool", value: varint() !== 0n };
      case ScalarType.FIXED32:
        return { kind: "long", value: BigInt(c.fixed(4).getUint32(0, true)) };
      case ScalarType.SFIXED32:
        return { kind: "int", value: c.fixed(4).getInt32(0, true) };
      case ScalarType.FLOAT:
        return { kind: "float", value: c.fixed(4).getFloat32(0, true) };
      case ScalarType.FIXED64:
        return { kind: "long", value: c.fixed(8).getBigUint64(0, true) };
      case ScalarType.SFIXED64:
        return { kind: "long", value: c.fixed(8).getBigInt64(0, true) };
      case ScalarType.DOUBLE:
        return { kind: "double", value: c.fixed(8).getFloat64(0, true) };
      case ScalarType.STRING:
        return { kind: "string", value: c.text() };
      case ScalarType.BYTES:
        return { kind: "bytes", value: c.block().slice() };
    }
  }
}

/** The wire type of a scalar; null: a message, which has one by field. */
export function wireOf(shape: Shape): 0 | 1 | 2 | 5 | null {
  if (shape.is === "enum") return 0;
  return shape.is === "scalar" ? SCALARS[shape.scalar].wire : null;
}

/** A known number under another wire type is an unknown field, as for every reader of this format. */
function accepts(f: FieldPlan, wire: number): boolean {
  if (f.label === "map") return wire === 2;
  const native = wireOf(f.shape) ?? (f.delimited ? 3 : 2);
  return wire === native || (f.label === "list" && wire === 2 && wireOf(f.shape) !== null);
}

function keyText(key: Value): string {
  return key.kind === "string" || key.kind === "int" || key.kind === "long" || key.kind === "bool"
    ? String(key.value)
    : "";
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const [first] = pieces;
  if (first !== undefined && pieces.length === 1) return first;
  const whole = new Uint8Array(pieces.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of pieces) {
    whole.set(p, at);
    at += p.length;
  }
  return whole;
}
