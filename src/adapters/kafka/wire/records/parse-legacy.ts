/**
 * Messages of magic 0 and 1: one record each, or, compressed, a wrapper whose value holds messages of the same
 * magic. Offsets inside a wrapper are relative in magic 1 (the wrapper has the last one's) and absolute in
 * magic 0. Their logs are old and small, so this path is plain: a bigint per record is fine here.
 */
import type { Codecs } from "../../../../core/compression/codec.ts";
import { Failure } from "../../../../core/failure/failure.ts";
import * as L from "./layout.ts";
import type { RowBuilder } from "./row-builder.ts";

/** A field as a region of the buffer; `length` -1 is null. */
interface Field {
  readonly at: number;
  readonly length: number;
}

export interface Message {
  readonly offset: bigint;
  readonly magic: number;
  readonly attributes: number;
  /** -1 for magic 0. */
  readonly timestamp: bigint;
  readonly key: Field;
  readonly value: Field;
  /** Index behind the message. */
  readonly end: number;
}

function corrupt(message: string): Failure {
  return new Failure("kafka.corrupt_batch", message);
}

/**
 * Reads the message at `at`, whole before `end`, and checks its CRC. Throws kafka.corrupt_batch, kafka.crc or
 * kafka.unknown_magic.
 */
export function readMessage(
  codecs: Codecs,
  bytes: Uint8Array,
  view: DataView,
  at: number,
  end: number,
): Message {
  if (end - at < L.SMALLEST[0]!)
    throw corrupt(`a message needs ${L.SMALLEST[0]} bytes, ${end - at} are left`);
  const size = L.PREFIX_BYTES + view.getInt32(at + L.AT_LENGTH);
  const magic = view.getInt8(at + L.AT_MAGIC);
  if (magic !== 0 && magic !== 1) throw corrupt(`a message of magic ${magic} among those of magic 0 and 1`);
  if (size < L.SMALLEST[magic]! || size > end - at) {
    throw corrupt(`a message of ${size} bytes with ${end - at} left`);
  }
  const stop = at + size;
  const declared = view.getUint32(at + L.V01_CRC);
  const seen = codecs.crc32(bytes, at + L.AT_MAGIC, stop);
  if (declared !== seen) {
    throw new Failure("kafka.crc", `message has the CRC-32 ${seen}, ${declared} is declared`);
  }
  const key = readField(view, at + (magic === 0 ? L.V0_KEY : L.V1_KEY), stop, "key");
  const value = readField(view, key.at + Math.max(key.length, 0), stop, "value");
  if (value.at + Math.max(value.length, 0) !== stop) throw corrupt("bytes stand behind a message's value");
  return {
    offset: view.getBigInt64(at),
    magic,
    attributes: view.getInt8(at + L.V01_ATTRIBUTES),
    timestamp: magic === 0 ? -1n : view.getBigInt64(at + L.V1_TIMESTAMP),
    key,
    value,
    end: stop,
  };
}

function readField(view: DataView, at: number, end: number, what: string): Field {
  if (end - at < 4) throw corrupt(`a message ends before its ${what}`);
  const length = view.getInt32(at);
  if (length < -1 || length > end - at - 4) {
    throw corrupt(`a ${what} of ${length} bytes with ${end - at - 4} left`);
  }
  return { at: at + 4, length };
}

/** Adds a message as a row: key and value are copied from `bytes`. */
export function addMessage(
  b: RowBuilder,
  bytes: Uint8Array,
  m: Message,
  offset: bigint,
  timestamp: bigint,
): void {
  const row = b.rows;
  putInt64(b.offsets, row, offset);
  putInt64(b.timestamps, row, timestamp);
  b.key.append(row, bytes, m.key.at, m.key.length);
  if (m.value.length < 0) b.nullValue(row);
  else {
    b.value.begin(b.valueLength, m.value.length);
    b.value.append(bytes.subarray(m.value.at, m.value.at + m.value.length));
    b.valueLength = b.value.end;
  }
  b.valueOffsets[row + 1] = b.valueLength;
  b.headerOffsets[row + 1] = b.headers;
  b.rows = row + 1;
}

function putInt64(column: Int32Array, row: number, value: bigint): void {
  column[2 * row] = Number(BigInt.asIntN(32, value));
  column[2 * row + 1] = Number(value >> 32n);
}

/**
 * The messages of an unpacked wrapper, with their absolute offsets. Throws kafka.corrupt_batch for none, for
 * another magic, for a compressed one (they do not nest) and for offsets that do not rise.
 */
export function innerMessages(codecs: Codecs, bytes: Uint8Array, end: number, wrapper: Message): Message[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found: Message[] = [];
  let before = -1n;
  for (let at = 0; at < end; ) {
    const m = readMessage(codecs, bytes, view, at, end);
    if (m.magic !== wrapper.magic)
      throw corrupt(`a message of magic ${m.magic} in one of magic ${wrapper.magic}`);
    if ((m.attributes & L.ATTR_CODEC) !== 0) throw corrupt("a compressed message in a compressed message");
    if (m.offset <= before) throw corrupt(`the inner offset ${m.offset} after ${before}`);
    before = m.offset;
    found.push(m);
    at = m.end;
  }
  if (found.length === 0) throw corrupt("a compressed message that holds none");
  return found;
}

/**
 * What is to be added to the inner offsets. Magic 1: the wrapper has the offset of the last; a wrapper at 0 with
 * several is what some old producers sent, and their inner offsets are taken as they are.
 */
export function innerBase(wrapper: Message, lastInner: bigint): bigint {
  if (wrapper.magic === 0 || wrapper.offset === 0n) return 0n;
  const base = wrapper.offset - lastInner;
  if (base < 0n) throw corrupt(`the inner offset ${lastInner} in a message at ${wrapper.offset}`);
  return base;
}
