/**
 * Compiles a message definition for one version into an encoder and a decoder. Client and test broker use the same
 * definitions, so the definitions are checked against Kafka's own elsewhere, and this file against real brokers.
 *
 * A decoded body has every field of the definition, in its order: those that the version lacks hold their preset. An
 * encoded body may leave fields out: they are sent as their preset. Field values that the version cannot carry are
 * dropped silently, because callers fill in names and topic ids alike.
 */
import type { ByteReader } from "../../../core/bytes/reader.ts";
import { ByteWriter } from "../../../core/bytes/writer.ts";
import { Failure } from "../../../core/failure/failure.ts";
import { LENGTH_BYTES, scalarCodec, type ValueCodec, zeroOf } from "./scalars.ts";
import { type Field, inVersions, type Message } from "./spec.ts";

export type Body = Record<string, unknown>;

export interface MessageCodec {
  /** Upper bound of the encoded size. */
  maxBytes(body: Body): number;
  encode(w: ByteWriter, body: Body): void;
  decode(r: ByteReader): Body;
}

interface Slot {
  readonly name: string;
  readonly preset: unknown;
  /** null: not in this version. */
  readonly codec: ValueCodec | null;
  /** -1: in the body itself, otherwise in the tag buffer. */
  readonly tag: number;
  readonly mayBeCut: boolean;
}

const NO_ITEMS: readonly unknown[] = Object.freeze([]);

export function compileMessage(message: Message, version: number): MessageCodec {
  const flexible = message.flexible !== null && version >= message.flexible;
  return structCodec(message.fields, version, flexible);
}

function structCodec(
  fields: readonly Field[],
  version: number,
  flexible: boolean,
): ValueCodec & MessageCodec {
  const slots = fields.map((f) => compileSlot(f, version, flexible));
  const plain = slots.filter((s) => s.codec !== null && s.tag < 0);
  const tagged = slots.filter((s) => s.codec !== null && s.tag >= 0).sort((a, b) => a.tag - b.tag);
  const minBytes = plain.reduce((sum, s) => sum + (s.mayBeCut ? 0 : s.codec!.minBytes), flexible ? 1 : 0);
  const byTag = new Map(tagged.map((s) => [s.tag, s]));

  function decode(r: ByteReader): Body {
    const body: Body = {};
    for (const s of slots) {
      const absent = s.codec === null || s.tag >= 0 || (s.mayBeCut && r.remaining === 0);
      body[s.name] = absent ? s.preset : s.codec!.decode(r);
    }
    if (flexible) {
      r.taggedFields((tag, value) => {
        const s = byTag.get(tag);
        if (s === undefined) return;
        body[s.name] = s.codec!.decode(value);
        if (value.remaining > 0) throw leftInTag(s, value);
      });
    }
    return body;
  }

  function encode(w: ByteWriter, value: unknown, name = "body"): void {
    if (typeof value !== "object" || value === null) {
      throw new Failure("internal.bug", `field ${name} is not a structure`);
    }
    const body = value as Body;
    for (const s of plain) s.codec!.encode(w, body[s.name] === undefined ? s.preset : body[s.name], s.name);
    if (flexible) encodeTags(w, tagged, body);
  }

  function maxBytes(value: unknown): number {
    if (typeof value !== "object" || value === null) return 0;
    const body = value as Body;
    let sum = flexible ? LENGTH_BYTES : 0;
    for (const s of plain) sum += s.codec!.maxBytes(body[s.name] === undefined ? s.preset : body[s.name]);
    // Tag number and size come before a tagged value.
    for (const s of tagged)
      if (body[s.name] !== undefined) sum += 2 * LENGTH_BYTES + s.codec!.maxBytes(body[s.name]);
    return sum;
  }

  return { minBytes, maxBytes, encode, decode };
}

function leftInTag(s: Slot, value: ByteReader): Failure {
  const at = value.place === "" ? {} : { at: value.place };
  return new Failure(
    "bytes.invalid",
    `tagged field ${s.tag} (${s.name}) leaves ${value.remaining} of its bytes`,
    at,
  );
}

function encodeTags(w: ByteWriter, tagged: readonly Slot[], body: Body): void {
  const sent = tagged.filter((s) => body[s.name] !== undefined && !samePreset(body[s.name], s.preset));
  w.uvarint(sent.length);
  for (const s of sent) {
    const value = new ByteWriter(s.codec!.maxBytes(body[s.name]));
    s.codec!.encode(value, body[s.name], s.name);
    w.uvarint(s.tag).uvarint(value.length).raw(value.view());
  }
}

/** A tagged field that holds its preset is not sent. */
function samePreset(value: unknown, preset: unknown): boolean {
  if (value === preset) return true;
  if (Array.isArray(value)) return Array.isArray(preset) && value.length === 0;
  if (typeof value !== "object" || value === null || typeof preset !== "object" || preset === null)
    return false;
  return Object.entries(value).every(([name, v]) => samePreset(v, (preset as Body)[name]));
}

function compileSlot(f: Field, version: number, flexible: boolean): Slot {
  const here = inVersions(f.since, version);
  return {
    name: f.name,
    preset: presetOf(f),
    codec: here ? valueCodec(f, version, flexible) : null,
    tag: here && f.tag !== undefined && inVersions(f.tagged, version) ? f.tag : -1,
    mayBeCut: f.mayBeCut === true && !flexible,
  };
}

function presetOf(f: Field): unknown {
  if (f.array) return f.preset === null ? null : NO_ITEMS;
  if (f.fields !== undefined) {
    if (f.preset === null) return null;
    return Object.freeze(Object.fromEntries(f.fields.map((inner) => [inner.name, presetOf(inner)])));
  }
  return f.preset === undefined ? zeroOf(f.type!) : f.preset;
}

function valueCodec(f: Field, version: number, flexible: boolean): ValueCodec {
  const nullable = inVersions(f.nullable, version);
  const one =
    f.fields === undefined
      ? scalarCodec(f.type!, flexible, nullable && !f.array)
      : structCodec(f.fields, version, flexible);
  if (f.array) return arrayCodec(one, flexible, nullable);
  return f.fields !== undefined && nullable ? nullableStruct(one) : one;
}

/** A structure that may be null: a byte in front, -1 for null and 1 for the structure. */
function nullableStruct(inner: ValueCodec): ValueCodec {
  return {
    minBytes: 1,
    maxBytes: (value) => 1 + inner.maxBytes(value),
    encode(w, value, name) {
      w.i8(value === null ? -1 : 1);
      if (value !== null) inner.encode(w, value, name);
    },
    decode: (r) => (r.i8() < 0 ? null : inner.decode(r)),
  };
}

function arrayCodec(item: ValueCodec, flexible: boolean, nullable: boolean): ValueCodec {
  const minItemBytes = Math.max(item.minBytes, 1);
  return {
    minBytes: flexible ? 1 : 4,
    maxBytes(value) {
      let sum = LENGTH_BYTES;
      if (Array.isArray(value)) for (const v of value) sum += item.maxBytes(v);
      return sum;
    },
    encode(w, value, name) {
      const absent = value === null && nullable;
      if (!absent && !Array.isArray(value))
        throw new Failure("internal.bug", `field ${name} is not an array`);
      const items = absent ? NO_ITEMS : (value as readonly unknown[]);
      if (flexible) w.compactArrayCount(absent ? -1 : items.length);
      else w.arrayCount(absent ? -1 : items.length);
      for (const v of items) item.encode(w, v, name);
    },
    decode(r) {
      const at = r.pos;
      const n = flexible ? r.compactArrayCount(minItemBytes) : r.arrayCount(minItemBytes);
      if (n < 0) {
        if (nullable) return null;
        throw new Failure(
          "bytes.invalid",
          `null array at ${at} where it is not allowed`,
          r.place === "" ? {} : { at: r.place },
        );
      }
      const items: unknown[] = [];
      for (let i = 0; i < n; i++) items.push(item.decode(r));
      return items;
    },
  };
}
