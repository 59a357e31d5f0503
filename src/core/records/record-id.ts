/**
 * Record ids: 16 bytes that are the same on every replay of a record, so that whoever meets it twice can tell.
 *
 *   base = first 16 bytes of SHA-256( part("twg.record-id.1") part(transport) part(cluster) part(topic)
 *          part(decimal incarnation) ),  part(s) = uint32 big endian length of s in UTF-8, then s in UTF-8
 *   id   = base XOR ( 00 00 00 00 | int32 big endian partition | int64 big endian offset )
 *
 * Within one topic the mapping is a bijection, so there are no collisions at all. Two topics share an id only if
 * their bases agree wherever the positions cannot reach: for n topics of at most 2^k partitions and 2^m offsets
 * the chance that any id is shared is below n^2 / 2^(129 - k - m); 10,000 topics of 1,024 partitions and 2^40
 * records each: 2^-52. `docs/decisions` has the reasons, test/golden/record-id.json the vectors.
 */
import { sha256 } from "./sha256.ts";
import type { StreamId } from "./stream.ts";

const DOMAIN = "twg.record-id.1";
const UTF8 = new TextEncoder();

/** The 16 bytes as four int32 words, each as it lies in memory (little endian). */
export type RecordIdBase = Int32Array;

/** What all records of one topic incarnation share. Once per topic, not per record. */
export function recordIdBase(
  stream: Pick<StreamId, "cluster" | "topic" | "incarnation"> & { readonly transport: string },
): RecordIdBase {
  const parts = [DOMAIN, stream.transport, stream.cluster, stream.topic, String(stream.incarnation)].map(
    (s) => UTF8.encode(s),
  );
  const message = new Uint8Array(parts.reduce((n, p) => n + 4 + p.length, 0));
  const view = new DataView(message.buffer);
  let at = 0;
  for (const part of parts) {
    view.setUint32(at, part.length);
    message.set(part, at + 4);
    at += 4 + part.length;
  }
  return new Int32Array(sha256(message).slice(0, 16).buffer);
}

const swap32 = (x: number) => (x << 24) | ((x & 0xff00) << 8) | ((x >>> 8) & 0xff00) | (x >>> 24);

/**
 * Ids of rows [from, to) into `out` as four words each, the first at word `at`.
 * `offsets` holds int64 as int32 pairs, low half first, entry 2i for row i (as in `RawBatch`).
 */
export function fillRecordIds(
  base: RecordIdBase,
  partition: number,
  offsets: Int32Array,
  from: number,
  to: number,
  out: Int32Array,
  at: number,
): void {
  const w0 = base[0]!;
  const w1 = base[1]! ^ swap32(partition);
  const w2 = base[2]!;
  const w3 = base[3]!;
  for (let i = from, o = at; i < to; i++, o += 4) {
    out[o] = w0;
    out[o + 1] = w1;
    out[o + 2] = w2 ^ swap32(offsets[2 * i + 1]!);
    out[o + 3] = w3 ^ swap32(offsets[2 * i]!);
  }
}
