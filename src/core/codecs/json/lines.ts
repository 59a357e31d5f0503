/** Where the lines of newline-delimited JSON end. A line of blanks alone is no record. */

export function isBlankByte(c: number | undefined): boolean {
  return c === 32 || c === 9 || c === 13;
}

/** The same answer as `scanRecords` gives for CSV. */
export function scanLines(
  bytes: Uint8Array,
  from: number,
  to: number,
  last: boolean,
): { readonly records: number; readonly lines: number; readonly end: number } {
  let records = 0;
  let lines = 0;
  let start = from;
  const blank = (end: number): boolean => {
    let i = start;
    while (i < end && isBlankByte(bytes[i])) i++;
    return i === end;
  };
  for (;;) {
    const at = bytes.indexOf(10, start);
    if (at < 0 || at >= to) break;
    if (!blank(at)) records++;
    lines++;
    start = at + 1;
  }
  if (!last || start === to) return { records, lines, end: start };
  return { records: records + (blank(to) ? 0 : 1), lines, end: to };
}
