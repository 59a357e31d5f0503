/** A refused row as one line of a rejects file: where it stands, why it was refused, and its bytes as they were. */
import { Failure } from "../failure/failure.ts";
import type { RejectSample } from "../ports/batch-lane.ts";

/** Longer records are cut: `raw_bytes` says how long they are. */
const RAW_BYTES = 64 * 1024;
const STRICT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const UTF8 = new TextEncoder();

/** Ends with a line feed. */
export function rejectLine(sample: RejectSample, record: Uint8Array): Uint8Array {
  return UTF8.encode(`${lineText(sample, rawOf(withoutLineEnd(record)))}\n`);
}

/** Of a row that a server refused: with what it said. `fields`: as they were sent, of a record that has no text. */
export function lateRejectText(
  sample: RejectSample,
  said: Readonly<Record<string, string>>,
  record: Uint8Array | { readonly fields: Readonly<Record<string, string | null>> },
): string {
  const what = record instanceof Uint8Array ? rawOf(withoutLineEnd(record)) : record;
  return lineText(sample, { ...said, ...what });
}

function lineText({ file, line, row, code, column, reason }: RejectSample, more: object): string {
  return JSON.stringify({ file, line, row, code, column, reason, ...more });
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

export function tooManyRejects(rejected: number, most: number): Failure {
  return new Failure("files.too_many_rejects", `${rejected} rows were refused, at most ${most} are allowed`, {
    hint: "The rows and reasons above say why; pin a schema, or raise --max-rejects to go on without such rows",
  });
}
