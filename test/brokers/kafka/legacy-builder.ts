/**
 * Message sets of the old formats, magic 0 and 1, plain or in a compressed wrapper.
 *
 *   offset 8 | size 4 | crc 4 | magic 1 | attributes 1 | [timestamp 8, magic 1] | key | value      (int32 sizes)
 */
import { crc32 } from "node:zlib";
import { type BatchCodec, CODEC_BITS, compress } from "./compress.ts";

export interface LegacyMessage {
  readonly offset: bigint;
  /** Magic 1 only. */
  readonly timestamp?: bigint;
  readonly key: Uint8Array | null;
  readonly value: Uint8Array | null;
}

export function legacyMessage(magic: 0 | 1, message: LegacyMessage, attributes = 0): Uint8Array<ArrayBuffer> {
  const head = magic === 1 ? 26 : 18;
  const out = new Uint8Array(head + 8 + (message.key?.length ?? 0) + (message.value?.length ?? 0));
  const view = new DataView(out.buffer);
  view.setBigInt64(0, message.offset);
  view.setInt32(8, out.length - 12);
  view.setInt8(16, magic);
  view.setInt8(17, attributes);
  if (magic === 1) view.setBigInt64(18, message.timestamp ?? -1n);
  let at = head;
  for (const part of [message.key, message.value]) {
    view.setInt32(at, part === null ? -1 : part.length);
    if (part !== null) out.set(part, at + 4);
    at += 4 + (part?.length ?? 0);
  }
  view.setUint32(12, crc32(out.subarray(16)));
  return out;
}

/**
 * A wrapper around compressed messages. Magic 1 numbers them from 0 and gives the wrapper the offset of the last;
 * magic 0 keeps absolute offsets inside.
 */
export function legacyWrapper(
  magic: 0 | 1,
  codec: Exclude<BatchCodec, "none" | "zstd">,
  messages: readonly LegacyMessage[],
): Uint8Array<ArrayBuffer> {
  const first = messages[0]!.offset;
  const inner = messages.map((m) =>
    legacyMessage(magic, magic === 1 ? { ...m, offset: m.offset - first } : m),
  );
  const last = messages[messages.length - 1]!;
  return legacyMessage(
    magic,
    {
      offset: last.offset,
      key: null,
      value: compress(codec, Buffer.concat(inner)),
      timestamp: last.timestamp ?? -1n,
    },
    CODEC_BITS[codec],
  );
}
