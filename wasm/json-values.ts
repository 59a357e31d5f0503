/**
 * The values of JSON, by the strict grammar: where one ends, of what kind it is, and a string without its escapes.
 * Texts must be followed by a control character, and may be read 64 bytes behind their end.
 */
import { copy } from "./bytes";

export const STRING: i32 = 1;
export const NUMBER: i32 = 2;
export const TRUE: i32 = 3;
export const FALSE: i32 = 4;
export const NULL: i32 = 5;

/** Positions: the end of what was unescaped so far. */
export let spareAt: usize = 0;

export function unescapeTo(at: usize): void {
  spareAt = at;
}

// @ts-ignore: decorator
@inline
function digits(at: usize): usize {
  while (<u32>load<u8>(at) - 48 < 10) at++;
  return at;
}

/** Behind the number at `at`; 0: it is none. */
// @ts-ignore: decorator
@inline
function number(at: usize): usize {
  if (load<u8>(at) == 45) at++;
  const whole = load<u8>(at) == 48 ? at + 1 : digits(at);
  if (whole == at) return 0;
  at = whole;
  if (load<u8>(at) == 46) {
    const fraction = digits(at + 1);
    if (fraction == at + 1) return 0;
    at = fraction;
  }
  if ((load<u8>(at) | 32) == 101) {
    const sign = load<u8>(at, 1);
    const from = at + (sign == 43 || sign == 45 ? 2 : 1);
    const exponent = digits(from);
    if (exponent == from) return 0;
    at = exponent;
  }
  return at;
}

/** The byte that stands for itself or another behind a backslash; 0: none. */
// @ts-ignore: decorator
@inline
function unescaped(c: u8): u8 {
  if (c == 34 || c == 92 || c == 47) return c;
  if (c == 110) return 10;
  if (c == 116) return 9;
  if (c == 114) return 13;
  if (c == 98) return 8;
  return c == 102 ? 12 : 0;
}

/** Four hexadecimal digits as a number; -1: they are none. */
function hex(at: usize): i32 {
  let n: i32 = 0;
  for (let i: usize = 0; i < 4; i++) {
    const c = <i32>load<u8>(at + i);
    const letter = (c | 32) - 87;
    const d = c - 48;
    if (<u32>d < 10) n = (n << 4) | d;
    else if (letter >= 10 && letter <= 15) n = (n << 4) | letter;
    else return -1;
  }
  return n;
}

let characterEnd: usize = 0;

/** Writes the character of the digits at `at` (behind a backslash and u) as UTF-8; gives what is behind it in the text, 0: it is none. */
function character(at: usize, out: usize): usize {
  let code = hex(at);
  let behind = at + 4;
  if (code < 0 || (code & 0xfc00) == 0xdc00) return 0;
  if ((code & 0xfc00) == 0xd800) {
    if (load<u8>(behind) != 92 || load<u8>(behind, 1) != 117) return 0;
    const low = hex(behind + 2);
    if ((low & 0xfc00) != 0xdc00 || low < 0) return 0;
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    behind += 6;
  }
  if (code < 0x80) {
    store<u8>(out, <u8>code);
    characterEnd = out + 1;
  } else if (code < 0x800) {
    store<u8>(out, <u8>(0xc0 | (code >> 6)));
    store<u8>(out, <u8>(0x80 | (code & 63)), 1);
    characterEnd = out + 2;
  } else if (code < 0x10000) {
    store<u8>(out, <u8>(0xe0 | (code >> 12)));
    store<u8>(out, <u8>(0x80 | ((code >> 6) & 63)), 1);
    store<u8>(out, <u8>(0x80 | (code & 63)), 2);
    characterEnd = out + 3;
  } else {
    store<u8>(out, <u8>(0xf0 | (code >> 18)));
    store<u8>(out, <u8>(0x80 | ((code >> 12) & 63)), 1);
    store<u8>(out, <u8>(0x80 | ((code >> 6) & 63)), 2);
    store<u8>(out, <u8>(0x80 | (code & 63)), 3);
    characterEnd = out + 4;
  }
  return behind;
}

/** The quote, backslash or control character at or behind `at`. There must be one. */
// @ts-ignore: decorator
@inline
function special(at: usize): usize {
  const quote = i8x16.splat(34);
  const back = i8x16.splat(92);
  const blank = i8x16.splat(32);
  let m: i32;
  do {
    const c = v128.load(at);
    m = i8x16.bitmask(v128.or(v128.or(i8x16.eq(c, quote), i8x16.eq(c, back)), i8x16.lt_u(c, blank)));
    at += 16;
  } while (m == 0);
  return at - 16 + ctz(m);
}

/** The value that was found last, of a string without its quotes. */
export let valueStart: usize = 0;
export let valueStop: usize = 0;

/** Behind the value at `at`; 0: it is none, or one that is left to others. `kind` of it: valueKind. */
export let valueKind: i32 = 0;

// @ts-ignore: decorator
@inline
export function value(at: usize): usize {
  const c = load<u8>(at);
  valueStart = at;
  let behind: usize = 0;
  if (c == 34) {
    valueKind = STRING;
    return stringAt(at + 1);
  }
  if (c == 116) {
    valueKind = TRUE;
    if (load<u32>(at) == 0x65757274) behind = at + 4;
  } else if (c == 102) {
    valueKind = FALSE;
    if (load<u32>(at, 1) == 0x65736c61) behind = at + 5;
  } else if (c == 110) {
    valueKind = NULL;
    if (load<u32>(at) == 0x6c6c756e) behind = at + 4;
  } else {
    valueKind = NUMBER;
    behind = number(at);
  }
  valueStop = behind;
  return behind;
}

// @ts-ignore: decorator
@inline
function stringAt(from: usize): usize {
  let s = special(from);
  let c = load<u8>(s);
  if (c == 34) {
    valueStart = from;
    valueStop = s;
    return s + 1;
  }
  let out = spareAt;
  let k = from;
  valueStart = out;
  for (;;) {
    copy(out, k, s - k);
    out += s - k;
    if (c == 34) break;
    if (c != 92) return 0;
    const escape = load<u8>(s, 1);
    if (escape == 117) {
      k = character(s + 2, out);
      if (k == 0) return 0;
      out = characterEnd;
    } else {
      const plain = unescaped(escape);
      if (plain == 0) return 0;
      store<u8>(out++, plain);
      k = s + 2;
    }
    s = special(k);
    c = load<u8>(s);
  }
  valueStop = out;
  spareAt = out;
  return s + 1;
}

