/** Levels and indices out of the RLE / bit-packed hybrid (see levels.ts), run by run. */
import { PageDamage } from "./stored-pages.ts";

/** `count` times `value`; neighbours may be equal. */
export type TakeRun = (value: number, count: number) => void;

/** `count` values of `width` bits (1 to 24) in bytes[at, end). */
export function readHybrid(
  bytes: Uint8Array,
  at: number,
  end: number,
  width: number,
  count: number,
  take: TakeRun,
): void {
  for (let left = count; left > 0; ) {
    let head = 0;
    for (let shift = 0; ; shift += 7) {
      if (at >= end || shift > 28) throw new PageDamage("a run of levels has no head");
      const b = bytes[at++]!;
      head += (b & 0x7f) * 2 ** shift;
      if (b < 0x80) break;
    }
    if (head % 2 === 0) {
      const n = Math.min(left, head / 2);
      if (n === 0 || at + ((width + 7) >> 3) > end) throw new PageDamage("a run of levels is cut");
      let value = 0;
      for (let bits = 0; bits < width; bits += 8) value |= bytes[at++]! << bits;
      take(value, n);
      left -= n;
    } else {
      const n = Math.min(left, 8 * ((head - 1) / 2));
      if (n === 0 || at + Math.ceil((n * width) / 8) > end) throw new PageDamage("packed levels are cut");
      unpack(bytes, at, width, n, take);
      at += ((head - 1) / 2) * width;
      left -= n;
    }
  }
}

function unpack(bytes: Uint8Array, at: number, width: number, count: number, take: TakeRun): void {
  const mask = (1 << width) - 1;
  let word = 0;
  let bits = 0;
  for (let i = 0; i < count; i++) {
    for (; bits < width; bits += 8) word |= bytes[at++]! << bits;
    take(word & mask, 1);
    word >>>= width;
    bits -= width;
  }
}

/** Where the levels end that a version 1 page has at `at`: their length stands in front of them. */
export function levelsEnd(raw: Uint8Array, at: number): number {
  if (at + 4 > raw.length) throw new PageDamage("its levels have no length");
  const n = raw[at]! | (raw[at + 1]! << 8) | (raw[at + 2]! << 16) | (raw[at + 3]! << 24);
  if (n < 0 || at + 4 + n > raw.length) throw new PageDamage("its levels end behind the page");
  return at + 4 + n;
}

export interface FlatLevels {
  /** Of each value 1 if it is there; null: all of them are. */
  readonly there: Uint8Array | null;
  readonly nulls: number;
  /** Where the values begin. */
  readonly end: number;
}

/** Definition levels of an optional column outside of lists. */
export function readFlatLevels(raw: Uint8Array, values: number): FlatLevels {
  const end = levelsEnd(raw, 0);
  let there: Uint8Array | null = null;
  let at = 0;
  let nulls = 0;
  readHybrid(raw, 4, end, 1, values, (level, n) => {
    if (level === 0) {
      if (there === null) there = new Uint8Array(values).fill(1, 0, at);
      nulls += n;
    } else if (there !== null) there.fill(1, at, at + n);
    at += n;
  });
  return { there, nulls, end };
}
