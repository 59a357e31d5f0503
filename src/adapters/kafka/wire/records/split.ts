/** Cuts a batch that a broker found too large in two: the records are written again, since each counts from its batch. */
import { ByteReader } from "../../../../core/bytes/reader.ts";
import { ByteWriter } from "../../../../core/bytes/writer.ts";
import type { Codecs } from "../../../../core/compression/codec.ts";
import { compress, compressedBound } from "../../../../core/compression/compress.ts";
import { decompress } from "../../../../core/compression/decompress.ts";
import { Output } from "../../../../core/compression/output.ts";
import * as L from "./layout.ts";
import type { Compression } from "./seal.ts";

/** As `sealBatch` leaves a batch: the halves have to be stamped. `bytes` holds more than one record. */
export function splitBatch(
  codecs: Codecs,
  compression: Compression,
  bytes: Uint8Array,
): readonly [first: Uint8Array, second: Uint8Array] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const count = view.getInt32(L.V2_COUNT);
  const records = plainRecords(codecs, bytes, view.getInt16(L.V2_ATTRIBUTES) & L.ATTR_CODEC);
  const half = count >>> 1;
  const r = new ByteReader(records, 0, records.length, "records to split");
  return [rebuilt(codecs, compression, bytes, r, half), rebuilt(codecs, compression, bytes, r, count - half)];
}

/** Our own batches: what they expand to was in memory before, so the limit is only a guard. */
const LIMIT = 0x7fff_ffff;

function plainRecords(codecs: Codecs, bytes: Uint8Array, codec: number): Uint8Array {
  const name = L.CODECS[codec];
  if (name === null || name === undefined) return bytes.subarray(L.V2_RECORDS);
  const out = new Output(2 * bytes.length);
  out.begin(0, LIMIT);
  decompress(codecs, name, bytes, L.V2_RECORDS, bytes.length, out);
  return out.bytes.subarray(0, out.end);
}

function rebuilt(
  codecs: Codecs,
  compression: Compression,
  original: Uint8Array,
  r: ByteReader,
  count: number,
): Uint8Array {
  const w = new ByteWriter(original.length);
  w.raw(original.subarray(0, L.V2_RECORDS));
  for (let i = 0; i < count; i++) {
    const end = r.varint() + r.pos;
    const attributes = r.i8();
    const delta = r.varlong();
    r.varint();
    const rest = r.view(end - r.pos);
    const body = new ByteWriter(rest.length + 16).i8(attributes).varlong(delta).varint(i).raw(rest);
    w.varint(body.length).raw(body.view());
  }
  const bytes = packed(codecs, compression, w.copy());
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  view.setInt32(L.AT_LENGTH, bytes.length - L.PREFIX_BYTES);
  view.setInt32(L.V2_LAST_OFFSET_DELTA, count - 1);
  view.setInt32(L.V2_COUNT, count);
  return bytes;
}

function packed(codecs: Codecs, { codec, level }: Compression, plain: Uint8Array): Uint8Array {
  const view = new DataView(plain.buffer, plain.byteOffset, plain.byteLength);
  view.setInt16(L.V2_ATTRIBUTES, 0);
  if (codec === null) return plain;
  const records = plain.subarray(L.V2_RECORDS);
  const room = new Uint8Array(L.V2_RECORDS + compressedBound(codec, records.length));
  const size = compress(codecs, codec, records, room, L.V2_RECORDS, level);
  if (size >= records.length) return plain;
  room.set(plain.subarray(0, L.V2_RECORDS));
  const bytes = room.slice(0, L.V2_RECORDS + size);
  new DataView(bytes.buffer).setInt16(L.V2_ATTRIBUTES, L.CODECS.indexOf(codec));
  return bytes;
}
