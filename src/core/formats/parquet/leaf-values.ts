/** Values of a leaf as pages want them: encoded in ranges, with their least and greatest. One file a physical type would be too many. */
import type { TableColumn } from "../../types/table-batch.ts";
import { bytesDictionary, indicesBound, putIndices } from "./bytes-dictionary.ts";
import { deltaBound, putDeltaInt32, putDeltaInt64 } from "./delta.ts";
import { type DenseBytes, denseBits, denseBytes, denseNarrow, denseWords } from "./dense-values.ts";
import { ENCODING } from "./page.ts";
import type { Entries } from "./table-levels.ts";
import type { LeafValues } from "./table-plan.ts";
import {
  bytesBounds,
  doubleBounds,
  floatBounds,
  int32Bounds,
  int64Bounds,
  type ValueBounds,
} from "./value-bounds.ts";

/** The values that are there, numbered from 0. */
export interface PageValues {
  readonly encoding: number;
  /** Where the values' bytes end, where their number does not say how many there are. */
  readonly offsets: Int32Array | null;
  /** Most bytes that `put` makes of values [from, to). */
  bound(from: number, to: number): number;
  /** Returns the end. */
  put(from: number, to: number, out: Uint8Array, at: number): number;
  readonly dictionary: { readonly raw: Uint8Array; readonly values: number } | null;
  readonly bounds: ValueBounds | null;
}

/** Null: there is a value that does not fit. */
export function pageValues(values: LeafValues, e: Entries, column: TableColumn): PageValues | null {
  switch (values.id) {
    case "bits":
      return booleans(denseBits(e, column));
    case "int32":
      return int32s(
        values.bytes < 4
          ? denseNarrow(e, column, values.bytes as 1 | 2, values.signed)
          : denseWords(e, column, values.bytes, 1),
        values.signed,
      );
    case "int64":
      return int64s(denseWords(e, column, values.bytes, 2), values.signed, values.times);
    case "float":
      return floats(denseWords(e, column, values.bytes, values.bytes / 4), values.bytes);
    case "bytes": {
      const dense = denseBytes(e, column, values.width);
      return column.constant !== undefined && dense.count > 0 ? constant(column.constant) : strings(dense);
    }
    case "fixed":
      return fixed(bytesOf(denseWords(e, column, 16, 4)), values.reversed);
  }
}

const bytesOf = (words: Int32Array): Uint8Array =>
  new Uint8Array(words.buffer, words.byteOffset, words.byteLength);

function booleans(values: Uint8Array): PageValues {
  return {
    encoding: ENCODING.plain,
    offsets: null,
    bound: (from, to) => ((to - from) >> 3) + 1,
    put: (from, to, out, at) => {
      for (let i = from; i < to; i += 8) {
        let byte = 0;
        for (let b = 0; b < 8 && i + b < to; b++) byte |= values[i + b]! << b;
        out[at++] = byte;
      }
      return at;
    },
    dictionary: null,
    bounds: values.length === 0 ? null : booleanBounds(values),
  };
}

function booleanBounds(values: Uint8Array): ValueBounds {
  return {
    least: Uint8Array.of(values.includes(0) ? 0 : 1),
    greatest: Uint8Array.of(values.includes(1) ? 1 : 0),
  };
}

function int32s(values: Int32Array, signed: boolean): PageValues {
  return {
    encoding: ENCODING.deltaBinaryPacked,
    offsets: null,
    bound: (from, to) => deltaBound(to - from, 4),
    put: (from, to, out, at) => putDeltaInt32(values.subarray(from, to), to - from, out, at),
    dictionary: null,
    bounds: int32Bounds(values, signed),
  };
}

function int64s(unscaled: Int32Array, signed: boolean, times: number): PageValues | null {
  const pairs = times === 1 ? unscaled : scaled(unscaled, times);
  if (pairs === null) return null;
  return {
    encoding: ENCODING.deltaBinaryPacked,
    offsets: null,
    bound: (from, to) => deltaBound(to - from, 8),
    put: (from, to, out, at) => putDeltaInt64(pairs.subarray(2 * from, 2 * to), to - from, out, at),
    dictionary: null,
    bounds: int64Bounds(pairs, signed),
  };
}

const TWO32 = 0x1_0000_0000;

/** int64 pairs times a number below 2^20; null: one is too large for that. */
function scaled(pairs: Int32Array, times: number): Int32Array | null {
  const out = new Int32Array(pairs.length);
  for (let i = 0; i < pairs.length; i += 2) {
    const low = (pairs[i]! >>> 0) * times;
    const high = pairs[i + 1]! * times + Math.floor(low / TWO32);
    if (high < -0x8000_0000 || high > 0x7fff_ffff) return null;
    out[i] = low;
    out[i + 1] = high;
  }
  return out;
}

function floats(words: Int32Array, width: 4 | 8): PageValues {
  const bytes = bytesOf(words);
  return { ...plain(bytes, width), bounds: width === 4 ? floatBounds(bytes) : doubleBounds(bytes) };
}

function fixed(bytes: Uint8Array, reversed: boolean): PageValues {
  if (!reversed) return plain(bytes, 16);
  const turned = bytes.slice();
  for (let i = 0; i < turned.length; i += 16) turned.subarray(i, i + 16).reverse();
  return plain(turned, 16);
}

function plain(bytes: Uint8Array, width: number): PageValues {
  return {
    encoding: ENCODING.plain,
    offsets: null,
    bound: (from, to) => (to - from) * width,
    put: (from, to, out, at) => {
      out.set(bytes.subarray(from * width, to * width), at);
      return at + (to - from) * width;
    },
    dictionary: null,
    bounds: null,
  };
}

function strings(values: DenseBytes): PageValues {
  const { offsets, data, count } = values;
  const found = bytesDictionary(values);
  if (found !== null) {
    const { firsts, indices } = found;
    return indexed(
      Array.from(firsts, (row) => data.subarray(offsets[row], offsets[row + 1])),
      indices,
    );
  }
  const lengths = new Int32Array(count);
  for (let i = 0; i < count; i++) lengths[i] = offsets[i + 1]! - offsets[i]!;
  return {
    encoding: ENCODING.deltaLengthByteArray,
    offsets,
    bound: (from, to) => deltaBound(to - from, 4) + offsets[to]! - offsets[from]!,
    put: (from, to, out, at) => {
      const end = putDeltaInt32(lengths.subarray(from, to), to - from, out, at);
      out.set(data.subarray(offsets[from], offsets[to]), end);
      return end + offsets[to]! - offsets[from]!;
    },
    dictionary: null,
    bounds: bytesBounds(values),
  };
}

function constant(value: Uint8Array): PageValues {
  return indexed([value], new Int32Array(0));
}

function indexed(values: readonly Uint8Array[], indices: Int32Array): PageValues {
  const raw = new Uint8Array(values.reduce((n, v) => n + 4 + v.length, 0));
  const ends = new Int32Array(values.length + 1);
  const view = new DataView(raw.buffer);
  let at = 0;
  for (const v of values) {
    view.setUint32(at, v.length, true);
    raw.set(v, at + 4);
    at += 4 + v.length;
  }
  const side = new Uint8Array(at - 4 * values.length);
  for (const [i, v] of values.entries()) {
    side.set(v, ends[i]!);
    ends[i + 1] = ends[i]! + v.length;
  }
  return {
    encoding: ENCODING.rleDictionary,
    offsets: null,
    bound: (from, to) => indicesBound(to - from, values.length),
    put: (from, to, out, put) => putIndices(indices, from, to, values.length, out, put),
    dictionary: { raw, values: values.length },
    bounds: bytesBounds({ offsets: ends, data: side, count: values.length }),
  };
}
