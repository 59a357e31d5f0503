/**
 * Varints for the hot loop over records: size first, then value, both pure, so that the compiler inlines them
 * and keeps the position in a register. A reader of a record compares positions with its end after each field;
 * until then these may look a few bytes past it, which is why section buffers have slack behind them.
 */
import { Failure } from "../../../../core/failure/failure.ts";

/** Bytes of the varint at `p`, 1 to 5. */
export function varintSize(buf: Uint8Array, p: number): number {
  return buf[p]! < 0x80 ? 1 : buf[p + 1]! < 0x80 ? 2 : longSize(buf, p, 5, 0x0f);
}

/** Bytes of the varlong at `p`, 1 to 10. */
export function varlongSize(buf: Uint8Array, p: number): number {
  return buf[p]! < 0x80 ? 1 : buf[p + 1]! < 0x80 ? 2 : longSize(buf, p, 10, 0x01);
}

function longSize(buf: Uint8Array, p: number, most: number, lastByte: number): number {
  for (let n = 3; n <= most; n++) {
    const byte = buf[p + n - 1]!;
    if (n === most && byte > lastByte) break;
    if (byte < 0x80) return n;
  }
  throw new Failure("kafka.corrupt_batch", `a varint over ${most} bytes`);
}

/** Zigzag value of the varint of `size` bytes (at most 5) at `p`, int32. */
export function varintValue(buf: Uint8Array, p: number, size: number): number {
  if (size === 1) {
    const b = buf[p]!;
    return (b >>> 1) ^ -(b & 1);
  }
  const low = (buf[p]! & 0x7f) | (buf[p + 1]! << 7);
  // Of two bytes the second has no high bit; of more, its high bit falls on bit 14 and is taken out.
  const n = size === 2 ? low : longValue(buf, p, size, low & 0x3fff);
  return (n >>> 1) ^ -(n & 1);
}

function longValue(buf: Uint8Array, p: number, size: number, low: number): number {
  let n = low;
  for (let i = 2; i < size; i++) n |= (buf[p + i]! & 0x7f) << (7 * i);
  return n;
}

/** Low and high half of the last value that `varlongHalves` read. */
export const halves = new Int32Array(2);

/** Zigzag value of the varlong of `size` bytes at `p`, as two int32 in `halves`. */
export function varlongHalves(buf: Uint8Array, p: number, size: number): void {
  let low = 0;
  let high = 0;
  for (let i = 0; i < size; i++) {
    const bits = buf[p + i]! & 0x7f;
    const shift = 7 * i;
    if (shift < 32) low |= bits << shift;
    // The fifth byte (bits 28 to 34) stands in both halves.
    if (shift > 28) high |= bits << (shift - 32);
    else if (shift === 28) high |= bits >>> 4;
  }
  const sign = -(low & 1);
  halves[0] = ((low >>> 1) | (high << 31)) ^ sign;
  halves[1] = (high >>> 1) ^ sign;
}
