/**
 * What dialect a CSV has, from its begin. Nothing is guessed that matters: the delimiter must give every record as many
 * fields, and a header that could as well be a row is a question to the user, not an answer of ours.
 */
import { Failure } from "../../failure/failure.ts";
import { inferType } from "../infer.ts";
import { CR, type CsvDialect, LF } from "./dialect.ts";
import { scanRecords } from "./records.ts";
import { CsvTokenizer, ROW_FAULT } from "./tokens.ts";

/** In order of preference where two fit equally. */
const DELIMITERS = [",", ";", "\t", "|"].map((c) => c.charCodeAt(0));
const SNIFF_RECORDS = 1000;

export interface DialectOptions {
  /** Null: found out. */
  readonly delimiter: number | null;
  readonly quote: number | null;
  readonly escape: number | null;
  readonly nulls: readonly string[];
}

export type Cells = readonly (string | null)[];

/** Fields of each of the first records. */
function fieldCounts(bytes: Uint8Array, end: number, dialect: CsvDialect, most: number): number[] {
  const t = new CsvTokenizer(dialect, 1, most);
  t.begin(bytes.slice(0, end), 0, end);
  t.next();
  const counts: number[] = [];
  for (let r = 0; r < t.rows; r++) {
    const blank = t.fields[r] === 1 && t.starts[r]! < 0;
    if (!blank) counts.push(t.faults[r] === ROW_FAULT.quote ? -1 : t.fields[r]!);
  }
  return counts;
}

/** Records of a sample as text; those that are no records are left out. `whole`: the last one is complete. */
export function sampleRecords(bytes: Uint8Array, dialect: CsvDialect, most: number, whole: boolean): Cells[] {
  const { end } = scanRecords(bytes, 0, bytes.length, dialect, 2, whole);
  const width = Math.max(1, ...fieldCounts(bytes, end, dialect, SNIFF_RECORDS));
  const t = new CsvTokenizer(dialect, width, Math.min(most, 4096));
  t.begin(bytes.slice(0, end), 0, end);
  const text = new TextDecoder();
  const out: Cells[] = [];
  while (out.length < most && t.next()) {
    for (let r = 0; r < t.rows && out.length < most; r++) {
      if (t.faults[r] === ROW_FAULT.quote) continue;
      const n = Math.min(width, t.fields[r]!);
      const cell = (i: number): string | null => {
        const start = t.starts[r * width + i]!;
        return start < 0 ? null : text.decode(t.bytes.subarray(start, t.ends[r * width + i]!));
      };
      out.push(Array.from({ length: n }, (_, i) => cell(i)));
    }
  }
  return out;
}

/** The dialect that every record of the sample fits. Throws files.dialect if none does. */
export function sniffDialect(bytes: Uint8Array, whole: boolean, o: DialectOptions, at: string): CsvDialect {
  const newline = bytes.indexOf(LF) >= 0 || bytes.indexOf(CR) < 0 ? LF : CR;
  const base = { quote: o.quote, escape: o.escape ?? o.quote, newline, nulls: o.nulls } as const;
  if (o.delimiter !== null) return { ...base, delimiter: o.delimiter };
  const found = DELIMITERS.map((delimiter) => {
    const dialect: CsvDialect = { ...base, delimiter };
    const { end } = scanRecords(bytes, 0, bytes.length, dialect, 2, whole);
    const counts = fieldCounts(bytes, end, dialect, SNIFF_RECORDS);
    const width = mode(counts);
    return { dialect, width, share: counts.filter((n) => n === width).length / counts.length };
  }).filter((f) => f.width > 1);
  const [best] = found.sort((x, y) => y.share - x.share || y.width - x.width);
  // Torn records are rejects of a dialect that fits most; where it fits few it is another one.
  if (best !== undefined && best.share > 0.5) return best.dialect;
  if (best === undefined) return { ...base, delimiter: DELIMITERS[0]! };
  throw new Failure(
    "files.dialect",
    "no delimiter of , ; tab | gives its records an equal number of fields",
    {
      at,
      hint: "Declare it: --delimiter, and --quote if it is not the double quote",
    },
  );
}

function mode(counts: readonly number[]): number {
  const seen = new Map<number, number>();
  for (const n of counts) seen.set(n, (seen.get(n) ?? 0) + 1);
  return [...seen].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
}

/** Column names of the file, and whether the first record gave them. */
export function columnNames(
  records: readonly Cells[],
  header: "auto" | "yes" | "no",
  at: string,
): { readonly names: readonly string[]; readonly header: boolean } {
  const [first] = records;
  if (first === undefined) {
    if (header === "no") return { names: [], header: false };
    throw new Failure("files.header", "the file has no record, so no header", {
      at,
      hint: "Give its columns with --schema and --header no",
    });
  }
  const has = header === "auto" ? looksLikeHeader(first, records.slice(1), at) : header === "yes";
  if (!has) return { names: first.map((_, i) => `column_${i + 1}`), header: false };
  const names = first.map((cell, i) => (cell === null || cell === "" ? `column_${i + 1}` : cell));
  const twice = names.find((n, i) => names.indexOf(n) !== i);
  if (twice === undefined) return { names, header: true };
  throw new Failure("files.header", `two columns are named ${JSON.stringify(twice)}`, {
    at,
    hint: "Rename one, or give the columns with --schema and --header no (the header is then a row that may be refused)",
  });
}

/** Names are text. A number, a date or a hole among them means that the record may be a row. */
function looksLikeHeader(first: Cells, rest: readonly Cells[], at: string): boolean {
  const odd = first.filter((c) => c === null || c === "" || inferType([c]).id !== "utf8").length;
  if (odd === 0) return true;
  const alike = first.every((c, i) => {
    const below = rest.map((r) => r[i] ?? null).filter((v) => v !== null);
    return c === null || below.length === 0 || inferType([c]).id === inferType(below).id;
  });
  if (alike && rest.length > 0) return false;
  // An index column without a name is what data frames write.
  if (odd === 1 && (first[0] === null || first[0] === "")) return true;
  throw new Failure(
    "files.header",
    "the first record may be a header or a row: it holds values that are no names",
    {
      at,
      hint: "Say which: --header yes or --header no",
    },
  );
}
