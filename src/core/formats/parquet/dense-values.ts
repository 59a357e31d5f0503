/** The values of a leaf that are there, side by side: views of the column where nothing is missing, else copies. */
import type { TableColumn } from "../../types/table-batch.ts";
import type { Entries } from "./table-levels.ts";

type There = Pick<Entries, "rows" | "there">;

/** Little-endian words of values of `bytes` (4, 8 or 16) each: the lowest `keep` of every value. */
export function denseWords(
  { rows, there }: There,
  { data }: TableColumn,
  bytes: number,
  keep: number,
): Int32Array {
  const words = bytes / 4;
  const aligned = (data.byteOffset & 3) === 0 ? data : data.slice();
  const from = new Int32Array(aligned.buffer, aligned.byteOffset, aligned.length >> 2);
  if (rows === null && words === keep) return from.subarray(0, there * words);
  const out = new Int32Array(there * keep);
  if (keep === 1) {
    for (let i = 0; i < there; i++) out[i] = from[(rows === null ? i : rows[i]!) * words]!;
    return out;
  }
  for (let i = 0; i < there; i++) {
    const at = (rows === null ? i : rows[i]!) * words;
    for (let w = 0; w < keep; w++) out[i * keep + w] = from[at + w]!;
  }
  return out;
}

/** Integers of one or two bytes as int32. */
export function denseNarrow(
  { rows, there }: There,
  { data }: TableColumn,
  bytes: 1 | 2,
  signed: boolean,
): Int32Array {
  const out = new Int32Array(there);
  const shift = 32 - 8 * bytes;
  for (let i = 0; i < there; i++) {
    const at = (rows === null ? i : rows[i]!) * bytes;
    const value = bytes === 1 ? data[at]! : data[at]! | (data[at + 1]! << 8);
    out[i] = signed ? (value << shift) >> shift : value;
  }
  return out;
}

/** Values of a bitmap, a byte each. */
export function denseBits({ rows, there }: There, { data }: TableColumn): Uint8Array {
  const out = new Uint8Array(there);
  for (let i = 0; i < there; i++) {
    const row = rows === null ? i : rows[i]!;
    out[i] = (data[row >> 3]! >> (row & 7)) & 1;
  }
  return out;
}

export interface DenseBytes {
  /** Of count + 1 entries. */
  readonly offsets: Int32Array;
  readonly data: Uint8Array;
  readonly count: number;
}

/** `width` 0: by the column's offsets. Nulls that have no bytes, as ours have none, leave the bytes where they are. */
export function denseBytes(e: There, column: TableColumn, width: number): DenseBytes {
  const { rows, there: count } = e;
  const from = width === 0 ? column.offsets! : evenOffsets(column.length, width);
  const { data } = column;
  if (rows === null) return { offsets: from.subarray(0, count + 1), data, count };
  const offsets = new Int32Array(count + 1);
  const first = count === 0 ? 0 : from[rows[0]!]!;
  let at = first;
  for (let i = 0; i < count; i++) {
    offsets[i] = at;
    at += from[rows[i]! + 1]! - from[rows[i]!]!;
  }
  offsets[count] = at;
  if (count === 0 || at === from[rows[count - 1]! + 1]!) return { offsets, data, count };
  const packed = new Uint8Array(at - first);
  for (let i = 0; i < count; i++) {
    const row = rows[i]!;
    packed.set(data.subarray(from[row], from[row + 1]), offsets[i]! - first);
    offsets[i]! -= first;
  }
  offsets[count]! -= first;
  return { offsets, data: packed, count };
}

function evenOffsets(length: number, width: number): Int32Array {
  const out = new Int32Array(length + 1);
  for (let i = 1; i <= length; i++) out[i] = i * width;
  return out;
}
