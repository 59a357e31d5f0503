/**
 * Where records of a CSV end, without looking into them: cuts a file into pieces that can be read apart, and counts
 * the records. It shares no code with the tokenizer, so that the two counts check each other.
 *
 * A quote opens only at the begin of a field; elsewhere it is text. An empty line is no record, unless records have
 * one column: then it is a row of one null.
 */
import { textScanner } from "../text-scanner.ts";
import { CR, type CsvDialect } from "./dialect.ts";

export interface RecordScan {
  /** Complete records in [from, end). */
  readonly records: number;
  /** Line ends in [from, end), those inside of quotes too. */
  readonly lines: number;
  /** Behind the last complete record; `from` if there is none. */
  readonly end: number;
}

/** Bytes from which on the scanner is quicker than a loop over them. */
const WORTH_LOADING = 4096;

/** `last`: nothing follows `to`, so what stands there is a record though no line end closes it. */
export function scanRecords(
  bytes: Uint8Array,
  from: number,
  to: number,
  dialect: CsvDialect,
  columns: number,
  last: boolean,
): RecordScan {
  const blankCounts = columns === 1;
  const { quote } = dialect;
  const found = quote === null ? -1 : bytes.indexOf(quote, from);
  const quoted = found >= 0 && found < to;
  const fast =
    quoted && to - from >= WORTH_LOADING
      ? textScanner()?.scan(bytes, from, to, dialect, blankCounts)
      : undefined;
  const slow = quoted ? scanQuoted : scanPlain;
  const scan = fast ?? slow(bytes, from, to, dialect, blankCounts);
  if (!last || scan.end === to) return scan;
  const rest = to - scan.end;
  const blank = rest === 1 && bytes[scan.end] === CR && dialect.newline !== CR;
  return { records: scan.records + (blank && !blankCounts ? 0 : 1), lines: scan.lines, end: to };
}

function isBlank(bytes: Uint8Array, start: number, end: number): boolean {
  return end === start || (end === start + 1 && bytes[start] === CR);
}

function scanPlain(
  bytes: Uint8Array,
  from: number,
  to: number,
  { newline }: CsvDialect,
  blankCounts: boolean,
): RecordScan {
  let records = 0;
  let lines = 0;
  let start = from;
  for (;;) {
    const at = bytes.indexOf(newline, start);
    if (at < 0 || at >= to) return { records, lines, end: start };
    if (blankCounts || !isBlank(bytes, start, at)) records++;
    lines++;
    start = at + 1;
  }
}

function scanQuoted(
  bytes: Uint8Array,
  from: number,
  to: number,
  dialect: CsvDialect,
  blankCounts: boolean,
): RecordScan {
  const { quote, delimiter, newline } = dialect;
  let records = 0;
  let lines = 0;
  let start = from;
  let linesAtStart = 0;
  for (let i = from; i < to; i++) {
    const c = bytes[i]!;
    if (c === newline) {
      lines++;
      if (i - start > 1 || blankCounts || !isBlank(bytes, start, i)) records++;
      start = i + 1;
      linesAtStart = lines;
    } else if (c === quote && (i === start || bytes[i - 1] === delimiter)) {
      const close = closingQuote(bytes, i + 1, to, dialect);
      for (let k = i + 1; k < close; k++) if (bytes[k] === newline) lines++;
      i = close;
    }
  }
  return { records, lines: linesAtStart, end: start };
}

/** The closing quote, or `to`. One that is the last byte may be the first of two: the record is open either way. */
function closingQuote(bytes: Uint8Array, from: number, to: number, dialect: CsvDialect): number {
  const { quote, escape: mark } = dialect;
  for (let i = from; i < to; i++) {
    const c = bytes[i]!;
    if (c === quote) {
      if (mark !== quote || i + 1 >= to || bytes[i + 1] !== quote) return i;
      i++;
    } else if (c === mark) i++;
  }
  return to;
}
