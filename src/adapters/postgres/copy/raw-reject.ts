/** A record that the table cannot have as a line of text: where it stands, why, and all of its bytes. */
import { int64At } from "../../../core/records/int64-at.ts";
import type { BytesColumn, RawBatch } from "../../../core/records/raw-batch.ts";
import { streamParts } from "../../../core/records/stream.ts";
import { type RefusedBy, refusedCode } from "../sift.ts";
import type { KeyProblem } from "./raw-rows.ts";
import { refusedReason } from "./refused-reason.ts";

const REASONS: Readonly<Record<KeyProblem, string>> = {
  "key.missing": "the record has no key, and the sink keeps the latest record of each key",
  "key.too_long": "the key is longer than the 2,400 bytes that fit in an index",
};

export function rawRejectLine(
  { stream, offsets, timestamps, key, value, headers }: RawBatch,
  row: number,
  code: KeyProblem,
): string {
  const { topic, partition } = stream;
  const pairs: (string | null)[][] = [];
  for (let h = headers.offsets[row]!; h < headers.offsets[row + 1]!; h++)
    pairs.push([base64(headers.keys, h), base64(headers.values, h)]);
  return JSON.stringify({
    topic,
    partition,
    // As text: JSON's readers take numbers for doubles.
    offset: String(int64At(offsets, row)),
    timestamp: String(int64At(timestamps, row)),
    code,
    reason: REASONS[code],
    key_base64: base64(key, row),
    value_base64: base64(value, row),
    headers_base64: pairs,
  });
}

/** One that the server refused, from the row that was sent. `columns`: of its fields, without prefix. */
export function refusedRawLine(columns: readonly string[], refused: RefusedBy): string {
  const { fields, notice, stream, offset } = refused;
  const field = (name: string) => fields[columns.indexOf(name)] ?? null;
  const { topic, partition } = streamParts(stream);
  const timestamp = milliseconds(field("source_timestamp"), field("source_timestamp_beyond"));
  return JSON.stringify({
    ...{ topic, partition, offset: String(offset), timestamp: String(timestamp) },
    ...{ code: refusedCode(notice), ...refusedReason(notice) },
    key_base64: field("source_key")?.toBase64() ?? null,
    value_base64: field("source_value")?.toBase64() ?? null,
    headers_base64: pairsOf(field("source_headers")),
  });
}

/** Of a timestamptz as it is sent; null is a record without one. */
function milliseconds(at: Uint8Array | null, beyond: Uint8Array | null): bigint {
  if (beyond !== null) return viewOf(beyond).getBigInt64(0);
  return at === null ? -1n : viewOf(at).getBigInt64(0) / 1000n + EPOCH_2000_MS;
}

const EPOCH_2000_MS = 946_684_800_000n;
const ARRAY_HEAD_BYTES = 28;

/** Of an array of two dimensions; an empty one has none. */
function pairsOf(array: Uint8Array | null): (string | null)[][] {
  const pairs: (string | null)[][] = [];
  if (array === null || array.length <= ARRAY_HEAD_BYTES) return pairs;
  const view = viewOf(array);
  let at = ARRAY_HEAD_BYTES;
  const next = (): string | null => {
    const size = view.getInt32(at);
    const from = at + 4;
    at = from + Math.max(0, size);
    return size < 0 ? null : array.subarray(from, at).toBase64();
  };
  for (let left = view.getInt32(12); left > 0; left--) pairs.push([next(), next()]);
  return pairs;
}

const viewOf = (b: Uint8Array): DataView => new DataView(b.buffer, b.byteOffset, b.length);

function base64({ offsets, data, validity, nullCount }: BytesColumn, i: number): string | null {
  if (nullCount > 0 && (validity[i >> 3]! & (1 << (i & 7))) === 0) return null;
  return data.subarray(offsets[i]!, offsets[i + 1]!).toBase64();
}
