/**
 * Files as streams: a file is known by its content, not by its name, and a position is the number of a row. That a
 * file was read to its end is a position too: one mark far above all rows, which tells how many there are. So a file
 * that is covered whole is known as such without reading it, one of no rows too.
 */
import type { Span, StreamKey } from "./stream.ts";

/** Above the rows of any file. */
const END = 2n ** 62n;

/** Parts of this size are hashed apart, so that all processors can work on one large file. */
export const PART_BYTES = 8 * 1024 * 1024;

export interface FileDigest {
  /**
   * 32 bytes, hexadecimal. Up to 8 MiB: SHA-256 of the file. Above: SHA-256 of the SHA-256s of its parts of 8 MiB, one
   * after another (as object stores do it for an upload in parts).
   */
  readonly sha256: string;
  /** Part of the identity: the content of a small file could be made of the hashes of a large one. */
  readonly bytes: number;
}

export function fileStreamKey({ sha256, bytes }: FileDigest): StreamKey {
  return `file/${sha256}/${bytes}`;
}

export function isFileStream(stream: StreamKey): boolean {
  return stream.startsWith("file/");
}

/** Says that the file has `rows` rows and that all that lies behind them was seen: nothing. */
export function endSpan(stream: StreamKey, rows: number): Span {
  const from = END + BigInt(rows);
  return { stream, from, next: from + 1n };
}

interface HalfOpen {
  readonly from: bigint;
  readonly next: bigint;
}

export interface FileCoverage {
  /** Covered rows, ascending. */
  readonly rows: readonly HalfOpen[];
  /** Rows of the file; null: its end was not covered yet. */
  readonly total: bigint | null;
}

export function fileCoverage(covered: readonly HalfOpen[]): FileCoverage {
  const mark = covered.find((r) => r.from >= END);
  return { rows: covered.filter((r) => r.from < END), total: mark === undefined ? null : mark.from - END };
}

export function isComplete({ rows, total }: FileCoverage): boolean {
  if (total === null) return false;
  if (total === 0n) return true;
  const [first] = rows;
  return rows.length === 1 && first?.from === 0n && first.next >= total;
}
