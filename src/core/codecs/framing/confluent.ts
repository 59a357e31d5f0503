/**
 * Confluent's envelopes.
 *
 *   before the payload   0  id (4 bytes, big endian)  [message indexes]  payload
 *                        1  GUID (16 bytes)           [message indexes]  payload
 *   or in a header       the same bytes as the value of `__value_schema_id` or `__key_schema_id`; the payload has none then
 *
 * Message indexes are there for Protobuf alone: a count, then so many indexes from the file down to the message, all as
 * zigzag varints; a count of 0 stands for the one index 0. A header goes before an envelope, as in the vendor's own readers.
 * Source: the serializers of confluent-kafka 2.16, whose bytes are the golden ones of the test.
 */

import type { BytesColumn } from "../../records/raw-batch.ts";
import { type Framed, type FramedSchema, NO_VALUE } from "./framed.ts";
import type { FramedColumn, Framing, FramingOptions } from "./framing.ts";
import { guidText } from "./guid.ts";
import { isNull, lastHeader } from "./headers.ts";
import { Interner } from "./interner.ts";

const HEADERS = { key: "__key_schema_id", value: "__value_schema_id" } as const;

const BY_ID = 0;
const ID_END = 5;
const BY_GUID = 1;
const GUID_END = 17;
/** Messages nest; nobody nests them deeper. */
const MAX_INDEXES = 100;

export function confluentFraming({ part, protobuf }: Pick<FramingOptions, "part" | "protobuf">): Framing {
  const name = new TextEncoder().encode(HEADERS[part]);
  const interner = new Interner();
  return ({ column, headers, rows }: FramedColumn, first: number, out: Framed) => {
    out.begin(first, rows - first, column.data);
    interner.begin();
    const anyHeader = headers.entries > 0;
    const { offsets, data } = column;
    const { slots, starts, ends } = out;
    for (let i = 0; i < out.rows; i++) {
      const row = first + i;
      const start = offsets[row]!;
      const end = offsets[row + 1]!;
      const known = anyHeader ? -1 : interner.again(data, start, end);
      if (known >= 0) {
        slots[i] = interner.slot;
        starts[i] = known;
        ends[i] = end;
        continue;
      }
      const entry = anyHeader ? lastHeader(headers, row, name) : -1;
      if (isNull(column, row)) out.put(i, NO_VALUE, start, start);
      else if (entry < 0) before(i, start, end);
      else within(i, headers.values, entry, start, end);
    }
    return rows;

    /** The envelope stands before the payload. */
    function before(i: number, start: number, end: number): void {
      const at = envelopeEnd(data, start, end, protobuf);
      if (at < 0) out.refuse(i, whyNot(data, start, end, at, `the ${part} begins with`));
      else out.put(i, slotOf(interner, data, start, at, out), at, end);
    }

    /** It is a header's value, and the whole value is the payload. */
    function within(i: number, values: BytesColumn, entry: number, start: number, end: number): void {
      const from = values.offsets[entry]!;
      const to = values.offsets[entry + 1]!;
      const at = envelopeEnd(values.data, from, to, protobuf);
      if (at === to) out.put(i, slotOf(interner, values.data, from, to, out), start, end);
      else out.refuse(i, whyNot(values.data, from, to, at, `the header ${HEADERS[part]} begins with`));
    }
  };
}

/** What stands before a payload of the schema. `message`: Protobuf's indexes from the file down to the message. */
export function confluentEnvelope(id: number, message: readonly number[] = []): Uint8Array {
  const first = message.length === 1 && message[0] === 0;
  const indexes = first ? [0] : message.length === 0 ? [] : [message.length, ...message];
  const envelope = Uint8Array.from([BY_ID, 0, 0, 0, 0, ...indexes.flatMap(zigzag)]);
  new DataView(envelope.buffer).setUint32(1, id);
  return envelope;
}

/** Of a number that is not negative and below 2^30, as a varint. */
function zigzag(n: number): number[] {
  const bytes: number[] = [];
  let rest = 2 * n;
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return [...bytes, rest];
}

function slotOf(interner: Interner, bytes: Uint8Array, from: number, to: number, out: Framed): number {
  const slot = interner.find(bytes, from, to);
  return slot >= 0 ? slot : interner.add(bytes, from, to, out, read(bytes, from, to));
}

const SHORT = -1;
const MAGIC = -2;
const INDEXES = -3;

/** Where the envelope of bytes[from, to) ends, or why there is none. */
function envelopeEnd(bytes: Uint8Array, from: number, to: number, protobuf: boolean): number {
  if (from === to) return SHORT;
  const magic = bytes[from];
  if (magic !== BY_ID && magic !== BY_GUID) return MAGIC;
  const end = from + (magic === BY_ID ? ID_END : GUID_END);
  if (end > to) return SHORT;
  return protobuf ? skipIndexes(bytes, end, to) : end;
}

function skipIndexes(bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  let left = 1;
  for (let counted = false; left > 0; left--) {
    const value = varint(bytes, at, to);
    if (value < 0) return value;
    at = varintEnd(bytes, at);
    if (counted) continue;
    counted = true;
    if (value > MAX_INDEXES) return INDEXES;
    left += value;
  }
  return at;
}

/** A zigzag varint that is not negative and below 2^30, or why it is none. */
function varint(bytes: Uint8Array, from: number, to: number): number {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    if (from >= to) return SHORT;
    const byte = bytes[from++]!;
    if (shift > 28 || (shift === 28 && byte > 7)) return INDEXES;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return (value & 1) === 1 ? INDEXES : value >>> 1;
}

function varintEnd(bytes: Uint8Array, from: number): number {
  while (bytes[from]! >= 0x80) from++;
  return from + 1;
}

/** The envelope bytes[from, to), which is whole. */
function read(bytes: Uint8Array, from: number, to: number): FramedSchema {
  if (bytes[from] === BY_ID) {
    const id = new DataView(bytes.buffer, bytes.byteOffset + from + 1).getUint32(0);
    return { ref: { by: "id", id }, message: indexes(bytes, from + ID_END, to) };
  }
  const guid = guidText(bytes, from + 1);
  return { ref: { by: "guid", guid }, message: indexes(bytes, from + GUID_END, to) };
}

function indexes(bytes: Uint8Array, from: number, to: number): readonly number[] | null {
  if (from === to) return null;
  const found: number[] = [];
  for (let at = varintEnd(bytes, from); at < to; at = varintEnd(bytes, at)) found.push(varint(bytes, at, to));
  return found.length === 0 ? [0] : found;
}

function whyNot(bytes: Uint8Array, from: number, to: number, why: number, what: string): string {
  if (why === INDEXES)
    return "the message indexes behind the schema id are no zigzag varints of a message's place";
  if (why === SHORT) return `${to - from} bytes are too few for magic byte and schema id`;
  if (why >= 0) return `${to - from} bytes in the header, its schema id ends after ${why - from}`;
  return `${what} byte ${bytes[from]}, Confluent's framing with 0 (id) or 1 (GUID)`;
}
