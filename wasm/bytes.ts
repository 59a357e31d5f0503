/** Runs of bytes. Memory may be read 15 bytes behind a run, and is written as far behind a copy. */

/** Copies n bytes; up to 15 more are written behind them. */
// @ts-ignore: decorator
@inline
export function copy(to: usize, from: usize, n: isize): void {
  for (let i: isize = 0; i < n; i += 16) v128.store(to + i, v128.load(from + i));
}

// @ts-ignore: decorator
@inline
export function same(a: usize, b: usize, n: i32): bool {
  for (let i: i32 = 0; i < n; i += 16) {
    const equal = i8x16.bitmask(i8x16.eq(v128.load(a + i), v128.load(b + i)));
    const left = n - i;
    const want = left >= 16 ? 0xffff : (1 << left) - 1;
    if ((equal & want) != want) return false;
  }
  return true;
}

/**
 * Copies cells to `out`, one behind the other, and their ends (from `base` on) to int32 `offsets`; gives the number of
 * cells that are null (start -1). Starts and ends are int32, `step` bytes apart, relative to `source`.
 */
// @ts-ignore: decorator
@inline
export function pack(
  source: usize,
  starts: usize,
  ends: usize,
  step: i32,
  cells: i32,
  out: usize,
  offsets: usize,
  base: i32,
): i32 {
  let to = out;
  let nulls: i32 = 0;
  for (let r: i32 = 0; r < cells; r++) {
    const start = load<i32>(starts);
    if (start < 0) nulls++;
    else {
      const n = load<i32>(ends) - start;
      copy(to, source + start, n);
      to += n;
    }
    store<i32>(offsets + (r << 2), base + <i32>(to - out));
    starts += step;
    ends += step;
  }
  return nulls;
}
