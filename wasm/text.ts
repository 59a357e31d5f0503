/**
 * Finds the fields of CSV and the values of JSON, sixteen bytes at a time: AssemblyScript with SIMD, compiled into
 * src/core/codecs/text-module.ts by `bun scripts/generate.ts`. What it does is said, slower, by csv/tokens.ts,
 * csv/records.ts and json/cursor.ts; tests hold it against them. Whatever it does not know it leaves to them.
 *
 * All memory belongs to the caller (text-scanner.ts): texts may be read 64 bytes behind their end.
 */
import { copy, pack, same } from "./bytes";
import { NULL, spareAt, unescapeTo, value, valueKind, valueStart, valueStop } from "./json-values";

export { spareAt };

/** First byte at or behind `at` that is `a` or `b`. There must be one. */
// @ts-ignore: decorator
@inline
function find(at: usize, a: v128, b: v128): usize {
  let m: i32;
  while ((m = maskOf(v128.load(at), a, b)) == 0) at += 16;
  return at + ctz(m);
}

// @ts-ignore: decorator
@inline
function maskOf(c: v128, a: v128, b: v128): i32 {
  return i8x16.bitmask(v128.or(i8x16.eq(c, a), i8x16.eq(c, b)));
}

/** The same with a bound: `end` if there is none before it. */
// @ts-ignore: decorator
@inline
function findBefore(at: usize, end: usize, a: v128, b: v128): usize {
  while (at < end) {
    const m = maskOf(v128.load(at), a, b);
    if (m != 0) return min(at + ctz(m), end);
    at += 16;
  }
  return end;
}

// ---- CSV: cells of records

let starts: usize = 0;
let ends: usize = 0;
let rowFrom: usize = 0;
let rowTo: usize = 0;
let rowFaults: usize = 0;
let rowFields: usize = 0;
let mostRows: i32 = 0;
let fieldCount: i32 = 0;
/** Positions are told relative to it. */
let text: usize = 0;

/** Where the last call stopped, and the end of what it unescaped. */
export let stoppedAt: usize = 0;
/** Rows of the last call of csvRows with a fault. */
export let faulty: i32 = 0;

/** Where results go: int32 starts and ends of rows * fields, int32 from, to and fields and uint8 faults of rows. */
export function results(
  textAt: usize,
  startsAt: usize,
  endsAt: usize,
  fromAt: usize,
  toAt: usize,
  faultsAt: usize,
  fieldsAt: usize,
  fields: i32,
  rows: i32,
): void {
  text = textAt;
  starts = startsAt;
  ends = endsAt;
  rowFrom = fromAt;
  rowTo = toAt;
  rowFaults = faultsAt;
  rowFields = fieldsAt;
  fieldCount = fields;
  mostRows = rows;
}

const COLUMNS: u8 = 1;
const QUOTE: u8 = 2;

/**
 * Cuts records of [at, end) into cells until the rows are full; gives their number. `end` must hold a newline.
 * `quote`, `escape`: 256 if there is none.
 */
export function csvRows(
  at: usize,
  end: usize,
  spare: usize,
  delimiter: i32,
  quote: i32,
  escape: i32,
  newline: i32,
  emptyIsNull: bool,
): i32 {
  const crlf = newline != 13;
  const columns = fieldCount;
  const vd = i8x16.splat(<i8>delimiter);
  const vn = i8x16.splat(<i8>newline);
  const vq = i8x16.splat(<i8>quote);
  const ve = i8x16.splat(<i8>(escape == 256 ? quote : escape));
  const base = text;
  let rows: i32 = 0;
  faulty = 0;
  while (rows < mostRows && at < end) {
    const first = at;
    let startOut = starts + ((rows * columns) << 2);
    let endOut = ends + ((rows * columns) << 2);
    let column: i32 = 0;
    let fault: u8 = 0;
    let i = at;
    for (;;) {
      let c = <i32>load<u8>(i);
      let start: isize;
      let stop: isize;
      if (c == quote) {
        i++;
        let s = findBefore(i, end, vq, ve);
        let closed = s < end && closes(s, end, quote, escape);
        if (closed) {
          start = i - base;
          stop = s - base;
        } else {
          start = spare - base;
          let k = i;
          for (;;) {
            copy(spare, k, s - k);
            spare += s - k;
            if (s >= end) break;
            if (closes(s, end, quote, escape)) {
              closed = true;
              break;
            }
            k = s + 1;
            if (k >= end) break;
            store<u8>(spare++, load<u8>(k++));
            s = findBefore(k, end, vq, ve);
          }
          stop = closed ? spare - base : -1;
        }
        i = closed ? s + 1 : end;
        c = <i32>load<u8>(i);
        // CR LF closes as LF does.
        if (c == 13 && crlf && i < end && <i32>load<u8>(i + 1) == newline) c = <i32>load<u8>(++i);
        if (!closed || (c != delimiter && c != newline)) fault = QUOTE;
        if (c != delimiter && c != newline) {
          i = find(i, vd, vn);
          c = <i32>load<u8>(i);
        }
      } else {
        const from = i;
        i = find(i, vd, vn);
        c = <i32>load<u8>(i);
        let to = i;
        if (c == newline && to > from && crlf && load<u8>(to - 1) == 13) to--;
        start = to == from && emptyIsNull ? -1 : from - base;
        stop = start < 0 ? -1 : to - base;
      }
      if (column < columns) {
        store<i32>(startOut, <i32>start);
        store<i32>(endOut, <i32>stop);
        startOut += 4;
        endOut += 4;
      }
      column++;
      i++;
      if (c == newline) break;
    }
    at = min(i, end);
    if (column == 1 && columns > 1 && fault == 0) {
      const c = <i32>load<u8>(first);
      // An empty line is no record.
      if (at == first || c == newline || (c == 13 && at - first <= 2)) continue;
    }
    if (fault == 0 && column != columns) fault = COLUMNS;
    const row = rows++;
    store<i32>(rowFrom + (row << 2), <i32>(first - base));
    store<i32>(rowTo + (row << 2), <i32>(at - base));
    store<i32>(rowFields + (row << 2), column);
    store<u8>(rowFaults + row, fault);
    if (fault != 0) faulty++;
  }
  stoppedAt = at;
  return rows;
}

/** Whether the quote or escape at `at` is a closing quote. */
// @ts-ignore: decorator
@inline
function closes(at: usize, end: usize, quote: i32, escape: i32): bool {
  return (
    <i32>load<u8>(at) == quote && !(escape == quote && at + 1 < end && <i32>load<u8>(at + 1) == quote)
  );
}

// ---- CSV: ends of records

let inQuotes: u64 = 0;
let opensCarry: u64 = 0;
let endsCarry: u64 = 0;
let returnsCarry: u64 = 0;
export let scanRecords: i32 = 0;
/** Line ends so far; of them up to the last record's end. */
let scanAllLines: i32 = 0;
export let scanLines: i32 = 0;
/** Behind the last record; 0: there is none. */
export let scanEnd: i32 = 0;

export function scanBegin(): void {
  inQuotes = 0;
  opensCarry = 1;
  endsCarry = 1 << 63;
  returnsCarry = 0;
  scanRecords = 0;
  scanAllLines = 0;
  scanLines = 0;
  scanEnd = 0;
}

// @ts-ignore: decorator
@inline
function mask64(at: usize, c: v128): u64 {
  const a = <u64>(<u32>i8x16.bitmask(i8x16.eq(v128.load(at), c)));
  const b = <u64>(<u32>i8x16.bitmask(i8x16.eq(v128.load(at, 16), c)));
  const d = <u64>(<u32>i8x16.bitmask(i8x16.eq(v128.load(at, 32), c)));
  const e = <u64>(<u32>i8x16.bitmask(i8x16.eq(v128.load(at, 48), c)));
  return a | (b << 16) | (d << 32) | (e << 48);
}

/**
 * The next `length` bytes, which are at `at` here and at `offset` there; behind them zeros up to 64. Quotes open and
 * close in turn; false: one opens where none may, so they do not, and the text must be looked at byte by byte.
 */
export function scanText(
  at: usize,
  length: i32,
  offset: i32,
  delimiter: i32,
  quote: i32,
  newline: i32,
  doubled: bool,
  blankCounts: bool,
): bool {
  const vd = i8x16.splat(<i8>delimiter);
  const vn = i8x16.splat(<i8>newline);
  const vq = i8x16.splat(<i8>quote);
  const vr = i8x16.splat(13);
  for (let b: i32 = 0; b < length; b += 64) {
    const n = mask64(at + b, vn);
    const q = mask64(at + b, vq);
    const d = mask64(at + b, vd);
    let p = q ^ (q << 1);
    p ^= p << 2;
    p ^= p << 4;
    p ^= p << 8;
    p ^= p << 16;
    p ^= p << 32;
    p ^= inQuotes;
    const before = d | n | (doubled ? q & ~p : 0);
    if ((q & p & ~((before << 1) | opensCarry)) != 0) return false;
    opensCarry = before >> 63;
    inQuotes = <u64>((<i64>p) >> 63);
    const e = n & ~p;
    if (e != 0) {
      scanRecords += <i32>popcnt(e);
      if (!blankCounts) {
        const r = mask64(at + b, vr);
        const blank =
          e & ((e << 1) | (endsCarry >> 63) | (((r << 1) | returnsCarry) & ((e << 2) | (endsCarry >> 62))));
        scanRecords -= <i32>popcnt(blank);
      }
      const last = 63 - <i32>clz(e);
      scanEnd = offset + b + last + 1;
      scanLines = scanAllLines + <i32>popcnt(n & ((<u64>(-1)) >> (63 - last)));
    }
    returnsCarry = load<u8>(at + b + 63) == 13 ? 1 : 0;
    endsCarry = e;
    scanAllLines += <i32>popcnt(n);
  }
  return true;
}

// ---- JSON: the values of lines

/** Of each field 4 int32: where its key is, in quotes; the key's length with them; a bit of each kind that it takes; seen. */
let keys: usize = 0;
let stamp: i32 = 0;

export function jsonKeys(at: usize): void {
  keys = at;
}

// @ts-ignore: decorator
@inline
function blanks(at: usize): usize {
  let c: u8;
  while ((c = load<u8>(at)) == 32 || c == 9 || c == 13) at++;
  return at;
}

// @ts-ignore: decorator
@inline
function isKey(at: usize, field: usize): bool {
  return same(at, <usize>load<i32>(field), load<i32>(field, 4));
}

/**
 * Reads lines of [at, end) until the rows are full or a line is not an object of known keys and fitting plain values;
 * gives the number of rows. Stops before such a line; `end` must hold a newline.
 */
export function jsonRows(at: usize, end: usize, spare: usize, firstRow: i32): i32 {
  const n = fieldCount;
  const base = text;
  let rows = firstRow;
  unescapeTo(spare);
  while (rows < mostRows && at < end) {
    const line = at;
    at = blanks(at);
    if (load<u8>(at) == 10) {
      at = min(at + 1, end);
      continue;
    }
    stamp++;
    const kept = spareAt;
    const rowStarts = starts + ((rows * n) << 2);
    const rowEnds = ends + ((rows * n) << 2);
    memory.fill(rowStarts, 0xff, n << 2);
    memory.fill(rowEnds, 0xff, n << 2);
    at = object(at, rowStarts, rowEnds);
    if (at != 0) at = blanks(at);
    if (at == 0 || load<u8>(at) != 10 || at > end) {
      unescapeTo(kept);
      at = line;
      break;
    }
    store<i32>(rowFrom + (rows << 2), <i32>(line - base));
    store<i32>(rowTo + (rows << 2), <i32>(at - base));
    rows++;
    at = min(at + 1, end);
  }
  stoppedAt = at;
  return rows;
}

/** Behind the object at `at`; 0: it is left to others. */
function object(at: usize, rowStarts: usize, rowEnds: usize): usize {
  const n = fieldCount;
  const base = text;
  const row = stamp;
  if (load<u8>(at) != 123) return 0;
  at = blanks(at + 1);
  if (load<u8>(at) == 125) return at + 1;
  let i: i32 = 0;
  let c: u8;
  do {
    // Most objects have their keys in one order.
    let field = keys + (i << 4);
    if (i >= n || !isKey(at, field)) {
      i = 0;
      field = keys;
      while (i < n && !isKey(at, field)) {
        i++;
        field += 16;
      }
      if (i == n) return 0;
    }
    if (load<i32>(field, 12) == row) return 0;
    store<i32>(field, row, 12);
    at = blanks(at + load<i32>(field, 4));
    if (load<u8>(at) != 58) return 0;
    at = value(blanks(at + 1));
    if (at == 0) return 0;
    if (valueKind != NULL) {
      if (((load<i32>(field, 8) >> valueKind) & 1) == 0) return 0;
      store<i32>(rowStarts + (i << 2), <i32>(valueStart - base));
      store<i32>(rowEnds + (i << 2), <i32>(valueStop - base));
    }
    at = blanks(at);
    c = load<u8>(at);
    if (c == 125) return at + 1;
    at = blanks(at + 1);
    i++;
  } while (c == 44);
  return 0;
}

// ---- columns of text

/**
 * Copies the cells of one column to `out`, one behind the other, and their ends (from `base` on) to int32 `offsets`;
 * gives the number of cells that are null. Up to 15 bytes are written behind the last one.
 */
export function packColumn(column: i32, rows: i32, out: usize, offsets: usize, base: i32): i32 {
  const first = column << 2;
  return pack(text, starts + first, ends + first, fieldCount << 2, rows, out, offsets, base);
}
