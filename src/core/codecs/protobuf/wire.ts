/**
 * The wire format, byte by byte, for code that has no time for objects: a position goes in, the next position comes out,
 * what was read lies in `out`. Whatever is not plainly right throws ODD; who catches it reads the payload again with the
 * reader of Values, which says what was wrong, or that nothing was.
 *
 *   message = (tag value)*     tag = varint(field number << 3 | wire type)
 *   wire type 0 varint, 1 eight bytes, 2 length + bytes, 3 group begins, 4 group ends, 5 four bytes; 6 and 7 are none
 */

/** Thrown for a payload that the fast path leaves to the slow one. No stack: it may be thrown a million times. */
export const ODD: { readonly odd: true } = { odd: true };

/** Messages in messages, groups and Any included; what Google's parsers allow. */
export const MAX_DEPTH = 100;

/** Low and high half of the last varint, or a length in the low one. */
export const out: Int32Array = new Int32Array(2);

/** A varint of up to ten bytes as 64 bits. Past the end of the array it reads zeros: callers look at the position. */
export function varint64(b: Uint8Array, p: number): number {
  let x = b[p++]!;
  if (x < 0x80) {
    out[0] = x;
    out[1] = 0;
    return p;
  }
  let lo = x & 0x7f;
  x = b[p++]!;
  lo |= (x & 0x7f) << 7;
  if (x < 0x80) return small(lo, p);
  x = b[p++]!;
  lo |= (x & 0x7f) << 14;
  if (x < 0x80) return small(lo, p);
  x = b[p++]!;
  lo |= (x & 0x7f) << 21;
  if (x < 0x80) return small(lo, p);
  x = b[p++]!;
  lo |= x << 28;
  let hi = (x & 0x7f) >> 4;
  if (x >= 0x80) {
    x = b[p++]!;
    hi |= (x & 0x7f) << 3;
    if (x >= 0x80) {
      x = b[p++]!;
      hi |= (x & 0x7f) << 10;
      if (x >= 0x80) {
        x = b[p++]!;
        hi |= (x & 0x7f) << 17;
        if (x >= 0x80) {
          x = b[p++]!;
          hi |= (x & 0x7f) << 24;
          if (x >= 0x80) {
            x = b[p++]!;
            // The tenth byte has one bit to give; what else is in it is dropped, as Google's readers do. An eleventh is none.
            if (x >= 0x80) throw ODD;
            hi |= x << 31;
          }
        }
      }
    }
  }
  out[0] = lo;
  out[1] = hi;
  return p;
}

function small(lo: number, p: number): number {
  out[0] = lo;
  out[1] = 0;
  return p;
}

/** A length, up to 2 GiB in at most five bytes. */
export function lengthAt(b: Uint8Array, p: number): number {
  let x = b[p++]!;
  let n = x & 0x7f;
  for (let shift = 7; x >= 0x80; shift += 7) {
    if (shift > 28) throw ODD;
    x = b[p++]!;
    if (shift === 28 && x > 7) throw ODD;
    n |= (x & 0x7f) << shift;
  }
  out[0] = n;
  return p;
}

/** A tag in at most five bytes, into out[0] as 32 bits. A field number of 0 is none. */
export function tagAt(b: Uint8Array, p: number): number {
  let x = b[p++]!;
  let n = x & 0x7f;
  for (let shift = 7; x >= 0x80; shift += 7) {
    if (shift > 28) throw ODD;
    x = b[p++]!;
    if (shift === 28 && x > 15) throw ODD;
    n |= (x & 0x7f) << shift;
  }
  if (n >>> 3 === 0) throw ODD;
  out[0] = n;
  return p;
}

/** The position behind the value of `tag` that begins at `p`; `depth`: of the message that holds it. */
export function skipValue(b: Uint8Array, p: number, e: number, tag: number, depth: number): number {
  if (tag >>> 3 === 0) throw ODD;
  switch (tag & 7) {
    case 0:
      p = varint64(b, p);
      break;
    case 1:
      p += 8;
      break;
    case 2:
      p = lengthAt(b, p);
      if (out[0]! > e - p) throw ODD;
      p += out[0]!;
      break;
    case 3: {
      groupEnd(b, p, e, tag >>> 3, depth + 1);
      p = out[0]!;
      break;
    }
    case 5:
      p += 4;
      break;
    default:
      throw ODD;
  }
  if (p > e) throw ODD;
  return p;
}

/** Where the content of group `number` that begins at `p` ends; the position behind its end tag is in out[0]. */
export function groupEnd(b: Uint8Array, p: number, e: number, number: number, depth: number): number {
  if (depth > MAX_DEPTH) throw ODD;
  const end = (number << 3) | 4;
  while (p < e) {
    const at = p;
    p = tagAt(b, p);
    const tag = out[0]!;
    if (p > e) throw ODD;
    if (tag === end) {
      out[0] = p;
      return at;
    }
    p = skipValue(b, p, e, tag, depth);
  }
  throw ODD;
}

const LONG_TEXT = 192;

/** Copies n bytes; gives a number above 127 if one of them is. */
export function copyBytes(b: Uint8Array, p: number, d: Uint8Array, at: number, n: number): number {
  let seen = 0;
  if (n < LONG_TEXT) {
    for (const end = p + n; p < end; p++, at++) {
      const x = b[p]!;
      seen |= x;
      d[at] = x;
    }
    return seen;
  }
  d.set(b.subarray(p, p + n), at);
  for (const end = p + n; p < end; p++) seen |= b[p]!;
  return seen;
}

/** Is [p, e) well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
export function isUtf8(b: Uint8Array, p: number, e: number): boolean {
  while (p < e) {
    const x = b[p++]!;
    if (x < 0x80) continue;
    if (x < 0xc2 || x > 0xf4) return false;
    const more = x >= 0xf0 ? 3 : x >= 0xe0 ? 2 : 1;
    if (p + more > e) return false;
    const y = b[p]!;
    if (y < leastAfter(x) || y > mostAfter(x)) return false;
    for (let i = 1; i < more; i++) if ((b[p + i]! & 0xc0) !== 0x80) return false;
    p += more;
  }
  return true;
}

/** The second byte is narrower behind those that begin an overlong form, a surrogate or what is no character. */
const leastAfter = (x: number): number => (x === 0xe0 ? 0xa0 : x === 0xf0 ? 0x90 : 0x80);
const mostAfter = (x: number): number => (x === 0xed ? 0x9f : x === 0xf4 ? 0x8f : 0xbf);

/** Rows from `from` to `to`, both included, are valid again. */
export function setBits(bits: Uint8Array, from: number, to: number): void {
  for (; from <= to && (from & 7) !== 0; from++) bits[from >> 3]! |= 1 << (from & 7);
  for (; from + 7 <= to; from += 8) bits[from >> 3] = 0xff;
  for (; from <= to; from++) bits[from >> 3]! |= 1 << (from & 7);
}

/** How many bits of [from, to) are clear. */
export function clearBits(bits: Uint8Array, from: number, to: number): number {
  let n = 0;
  for (; from < to; from++) {
    if ((from & 7) === 0 && bits[from >> 3] === 0xff) from += 7;
    else if ((bits[from >> 3]! & (1 << (from & 7))) === 0) n++;
  }
  return n;
}
