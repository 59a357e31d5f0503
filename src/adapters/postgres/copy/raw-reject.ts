/** A record that cannot be upserted as a line of text: where it stands, why, and all of its bytes. */
import { int64At } from "../../../core/records/int64-at.ts";
import type { BytesColumn, RawBatch } from "../../../core/records/raw-batch.ts";
import type { KeyProblem } from "./raw-rows.ts";

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

function base64({ offsets, data, validity, nullCount }: BytesColumn, i: number): string | null {
  if (nullCount > 0 && (validity[i >> 3]! & (1 << (i & 7))) === 0) return null;
  return data.subarray(offsets[i]!, offsets[i + 1]!).toBase64();
}
