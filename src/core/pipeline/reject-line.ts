/** A refused row as one line of a rejects file: where it stands, why it was refused, and its bytes as they were. */
import type { RejectSample } from "../ports/batch-lane.ts";

/** Longer records are cut: `raw_bytes` says how long they are. */
const RAW_BYTES = 64 * 1024;
const STRICT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const UTF8 = new TextEncoder();

/** Ends with a line feed. */
export function rejectLine(sample: RejectSample, record: Uint8Array): Uint8Array {
  const { file, line, row, code, column, reason } = sample;
  const raw = rawOf(withoutLineEnd(record));
  return UTF8.encode(`${JSON.stringify({ file, line, row, code, column, reason, ...raw })}\n`);
}

function withoutLineEnd(b: Uint8Array): Uint8Array {
  let end = b.length;
  if (end > 0 && b[end - 1] === 10) end--;
  if (end > 0 && b[end - 1] === 13) end--;
  return b.subarray(0, end);
}

type Raw =
  | { readonly raw: string; readonly raw_bytes: number }
  | { readonly raw_base64: string; readonly raw_bytes: number };

function rawOf(record: Uint8Array): Raw {
  const kept = record.subarray(0, RAW_BYTES);
  const raw_bytes = record.length;
  try {
    return { raw: STRICT.decode(kept), raw_bytes };
  } catch {
    return { raw_base64: kept.toBase64(), raw_bytes };
  }
}
