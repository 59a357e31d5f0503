/** Least and greatest values of a chunk as statistics have them: PLAIN, without the length of byte strings. Null is never wrong. */
import type { DenseBytes } from "./dense-values.ts";

export interface ValueBounds {
  readonly least: Uint8Array;
  readonly greatest: Uint8Array;
}

/** Longer bounds than this would be most of a footer. */
const MOST_BYTES = 256;

export function int32Bounds(values: Int32Array, signed: boolean): ValueBounds | null {
  if (values.length === 0) return null;
  // In the order of unsigned numbers the sign's bit counts the other way round.
  const flip = signed ? 0 : 0x8000_0000 | 0;
  let least = 0x7fff_ffff;
  let greatest = -0x8000_0000;
  for (let i = 0; i < values.length; i++) {
    const v = values[i]! ^ flip;
    if (v < least) least = v;
    if (v > greatest) greatest = v;
  }
  return { least: words(least ^ flip), greatest: words(greatest ^ flip) };
}

export function int64Bounds(pairs: Int32Array, signed: boolean): ValueBounds | null {
  if (pairs.length === 0) return null;
  const flip = signed ? 0 : 0x8000_0000 | 0;
  let [leastLow, leastHigh] = [pairs[0]! >>> 0, pairs[1]! ^ flip];
  let [greatestLow, greatestHigh] = [leastLow, leastHigh];
  for (let i = 2; i < pairs.length; i += 2) {
    const low = pairs[i]! >>> 0;
    const high = pairs[i + 1]! ^ flip;
    if (high < leastHigh || (high === leastHigh && low < leastLow)) {
      leastLow = low;
      leastHigh = high;
    }
    if (high > greatestHigh || (high === greatestHigh && low > greatestLow)) {
      greatestLow = low;
      greatestHigh = high;
    }
  }
  return { least: words(leastLow, leastHigh ^ flip), greatest: words(greatestLow, greatestHigh ^ flip) };
}

function words(...values: number[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(4 * values.length));
  for (const [i, v] of values.entries()) view.setInt32(4 * i, v, true);
  return new Uint8Array(view.buffer);
}

/** PLAIN floats, aligned. */
export function floatBounds(bytes: Uint8Array): ValueBounds | null {
  const found = numberBounds(new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4));
  return found === null ? null : { least: float(found[0], 4), greatest: float(found[1], 4) };
}

export function doubleBounds(bytes: Uint8Array): ValueBounds | null {
  const { buffer, byteOffset, length } = (bytes.byteOffset & 7) === 0 ? bytes : bytes.slice();
  const found = numberBounds(new Float64Array(buffer, byteOffset, length / 8));
  return found === null ? null : { least: float(found[0], 8), greatest: float(found[1], 8) };
}

/** Null where there is a NaN, which has no place in the order. A zero stands for both (parquet.thrift, Statistics). */
function numberBounds(values: Float32Array | Float64Array): readonly [number, number] | null {
  let least = Number.POSITIVE_INFINITY;
  let greatest = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < values.length; i++) {
    const v = values[i]!;
    if (v < least) least = v;
    if (v > greatest) greatest = v;
    // biome-ignore lint/suspicious/noSelfCompare: true of NaN alone, and faster than asking
    if (v !== v) return null;
  }
  if (values.length === 0) return null;
  return [least === 0 ? -0 : least, greatest === 0 ? 0 : greatest];
}

function float(value: number, width: 4 | 8): Uint8Array {
  const view = new DataView(new ArrayBuffer(width));
  if (width === 4) view.setFloat32(0, value, true);
  else view.setFloat64(0, value, true);
  return new Uint8Array(view.buffer);
}

export function bytesBounds({ offsets, data, count }: DenseBytes): ValueBounds | null {
  if (count === 0) return null;
  let least = 0;
  let greatest = 0;
  let leastHead = headOf(data, offsets[0]!, offsets[1]!);
  let greatestHead = leastHead;
  for (let i = 1; i < count; i++) {
    const from = offsets[i]!;
    const to = offsets[i + 1]!;
    const head = headOf(data, from, to);
    if (head > leastHead && head < greatestHead) continue;
    if (before(data, from, to, offsets[least]!, offsets[least + 1]!)) {
      least = i;
      leastHead = head;
    } else if (before(data, offsets[greatest]!, offsets[greatest + 1]!, from, to)) {
      greatest = i;
      greatestHead = head;
    }
  }
  const at = (i: number) => data.slice(offsets[i], offsets[i + 1]);
  const bounds = { least: at(least), greatest: at(greatest) };
  return Math.max(bounds.least.length, bounds.greatest.length) > MOST_BYTES ? null : bounds;
}

/** The first four bytes, zeros where there are fewer: values whose heads differ are in the heads' order. */
function headOf(data: Uint8Array, from: number, to: number): number {
  if (to - from >= 4)
    return ((data[from]! << 24) | (data[from + 1]! << 16) | (data[from + 2]! << 8) | data[from + 3]!) >>> 0;
  let head = 0;
  for (let i = 0; i < 4; i++) head = head * 256 + (from + i < to ? data[from + i]! : 0);
  return head;
}

/** In the order of unsigned bytes. */
function before(data: Uint8Array, a: number, aEnd: number, b: number, bEnd: number): boolean {
  const shorter = Math.min(aEnd - a, bEnd - b);
  for (let i = 0; i < shorter; i++) {
    const d = data[a + i]! - data[b + i]!;
    if (d !== 0) return d < 0;
  }
  return aEnd - a < bEnd - b;
}
