/** `twg inspect parquet`: rows, spans and metadata of Parquet files, and sample rows. */
import { isBucketUrl } from "../core/config/bucket-url.ts";
import { formatBytes } from "../core/config/option-types.ts";
import { asFailure, Failure } from "../core/failure/failure.ts";
import { type Cli, outJson } from "./cli.ts";
import { exitCodeOf } from "./exit-code.ts";
import { type ParquetFacts, type ParquetSource, parquetFilesOf, readParquetFacts } from "./parquet-file.ts";
import { reportFailure } from "./report.ts";
import { printable, styled } from "./style.ts";
import { renderTable } from "./table.ts";

export interface InspectParquetOptions {
  readonly paths: readonly string[];
  readonly json: boolean;
  /** Sample rows per file. */
  readonly rows: number;
  /** Configuration file whose `[sink.s3]` says how to reach a bucket. */
  readonly config?: string;
}

async function filesOf({ paths, config }: InspectParquetOptions, cli: Cli): Promise<ParquetSource[]> {
  const found = await parquetFilesOf(paths.filter((p) => !isBucketUrl(p)));
  const urls = paths.filter(isBucketUrl);
  if (urls.length === 0) return found;
  const { s3TableOf } = await import("./bucket-reader.ts");
  const { parquetObjectsOf } = await import("./parquet-object.ts");
  const options = await s3TableOf(config, cli.environment);
  for (const url of urls) found.push(...(await parquetObjectsOf(url, options)));
  return found;
}

/** A damaged file is reported and does not hide the others; the exit code is that of the first failure. */
export async function runInspectParquet(options: InspectParquetOptions, cli: Cli): Promise<number> {
  const files = await filesOf(options, cli);
  if (files.length === 0) {
    throw new Failure("inspect.unreadable", "there is no *.parquet file", { at: options.paths.join(", ") });
  }
  const facts: ParquetFacts[] = [];
  const failures: Failure[] = [];
  for (const file of files) {
    try {
      facts.push(await readParquetFacts(file, options.rows));
    } catch (e) {
      failures.push(asFailure(e));
    }
  }
  if (options.json) outJson(cli, jsonOf(facts, failures));
  else if (facts.length > 0) cli.out(textOf(facts, options, cli.outColour));
  for (const failure of failures) reportFailure(failure, cli);
  const [first] = failures;
  return first === undefined ? 0 : exitCodeOf(first);
}

function jsonOf(facts: readonly ParquetFacts[], failures: readonly Failure[]) {
  return {
    files: facts.map((f) => ({ ...f, rows: Number(f.rows), sample: f.sample.map((row) => jsonValue(row)) })),
    total: { files: facts.length, rows: Number(rowSum(facts)), bytes: byteSum(facts) },
    failures: failures.map((f) => ({ code: f.code, message: f.message, at: f.at })),
  };
}

const rowSum = (facts: readonly ParquetFacts[]) => facts.reduce((n, f) => n + f.rows, 0n);
const byteSum = (facts: readonly ParquetFacts[]) => facts.reduce((n, f) => n + f.bytes, 0);

function textOf(facts: readonly ParquetFacts[], options: InspectParquetOptions, colour: boolean): string {
  const columns = [
    { head: "ROWS", align: "right" },
    { head: "GROUPS", align: "right" },
    { head: "BYTES", align: "right" },
    { head: "FILE" },
  ] as const;
  const rows = facts.map((f) => [String(f.rows), String(f.rowGroups), String(f.bytes), f.file]);
  const table = renderTable(columns, rows, colour);
  const total = `${facts.length} files, ${rowSum(facts)} rows, ${byteText(byteSum(facts))}\n`;
  const detailed = facts.length === 1 || options.rows > 0;
  return table + total + (detailed ? facts.map((f) => detailOf(f, colour)).join("") : "");
}

function byteText(n: number): string {
  return n < 1_000_000 ? formatBytes(n) : `${(n / 1e6).toFixed(1)} MB`;
}

function detailOf(f: ParquetFacts, colour: boolean): string {
  const facts = [
    ["columns", f.columns.join(", ")],
    ["created by", f.createdBy],
    ...Object.entries(f.metadata).map(([k, v]) => [k, shortened(v)]),
  ];
  const lines = facts.map(([k = "", v = ""]) => `  ${styled(printable(k), "cyan", colour)}: ${printable(v)}`);
  const title = `\n${styled(printable(f.file), "bold", colour)}\n`;
  return `${title}${lines.join("\n")}\n${f.sample.length > 0 ? sampleText(f, colour) : ""}`;
}

const shortened = (text: string) =>
  text.length > 500 ? `${text.slice(0, 500)}... (${text.length} characters)` : text;

function sampleText(f: ParquetFacts, colour: boolean): string {
  const set = f.columns.filter((c) => f.sample.some((row) => row[c] !== null && row[c] !== undefined));
  const columns = f.sample.length > 1 ? set.filter((c) => ALWAYS.test(c) || differs(f, c)) : set;
  const rows = f.sample.map((row) => columns.map((c) => cellText(row[c])));
  return `\n${renderTable(
    columns.map((head) => ({ head, max: 40 })),
    rows,
    colour,
  )}`;
}

/** A table is for looking: columns that say the same in every sample row are left to --json. */
const ALWAYS = /source_(partition|offset|key|value)$/;

function differs(f: ParquetFacts, column: string): boolean {
  const [first, ...rest] = f.sample.map((row) => cellText(row[column]));
  return rest.some((text) => text !== first);
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return "null";
  const shown = jsonValue(value);
  return typeof shown === "string" ? shown : JSON.stringify(shown);
}

/** Bytes as text where they are UTF-8, else as `0x` and hex; integers beyond 2^53 as strings; dates as ISO 8601. */
export function jsonValue(value: unknown): unknown {
  if (value instanceof Uint8Array) return bytesText(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (typeof value === "bigint")
    return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
  if (Array.isArray(value)) return value.map(jsonValue);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, jsonValue(v)]));
}

function bytesText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return `0x${bytes.toHex()}`;
  }
}
