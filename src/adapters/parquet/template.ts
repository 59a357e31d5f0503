/**
 * Path templates, filled in for each record: two records of one batch may belong in two folders. Rows are looked at
 * in one loop over numbers; a folder name is made once per run of rows that share it.
 *
 * What is filled in comes from brokers and producers. It can never lead out of the root, nor into `_twg`, where
 * coverage and staged files lie.
 */
import { isUrl, parseBucketUrl } from "../../core/config/bucket-url.ts";
import { Failure } from "../../core/failure/failure.ts";
import type { RawBatch } from "../../core/records/raw-batch.ts";
import { sha256 } from "../../core/records/sha256.ts";

export const TEMPLATE_NAMES = ["topic", "partition", "date", "hour", "pipeline"] as const;
type TemplateName = (typeof TEMPLATE_NAMES)[number];

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const TWO32 = 4_294_967_296;
/** 0001-01-01 and 10000-01-01, ms: outside of these a date has not the ten characters that readers expect. */
const FIRST_DATE_MS = -62_135_596_800_000;
const LAST_DATE_MS = 253_402_300_800_000;
/** Folder for records without a timestamp, or with one outside the years 1 to 9999: none is misfiled. */
const UNKNOWN = "unknown";
const UTF8 = new TextEncoder();
/** Longest name of a file or folder on common file systems. */
const MOST_NAME_BYTES = 255;
const OURS = "_twg";

type Part = string | { readonly name: TemplateName };

/** What is wrong with a template, null if nothing. */
export function templateProblem(path: string): string | null {
  const bad = [...path.matchAll(/\{([^}]*)\}/g)].find((m) => !isName(m[1] ?? ""));
  if (bad !== undefined) return `${bad[0]} is not known in a path`;
  if (/[{}]/.test(path.replace(/\{[a-z]+\}/g, ""))) return "a brace is not closed or not opened";
  if (path.includes("\0")) return "a path cannot hold a zero byte";
  if (isUrl(path)) {
    const place = parseBucketUrl(path);
    if (typeof place === "string") return place;
  }
  if (templated(path).split("/").includes("..")) return "`..` cannot stand behind a part in braces";
  return null;
}

function isName(name: string): name is TemplateName {
  return (TEMPLATE_NAMES as readonly string[]).includes(name);
}

/** The folder before the first part that is filled in; the whole path if none is. */
export function rootOf(path: string): string {
  const fixed = path.slice(0, path.length - templated(path).length);
  const trimmed = fixed.replace(/\/+$/, "");
  if (trimmed !== "") return trimmed;
  return fixed.startsWith("/") ? "/" : ".";
}

/** From the first folder on whose name is filled in. */
function templated(path: string): string {
  const brace = path.indexOf("{");
  return brace < 0 ? "" : path.slice(path.lastIndexOf("/", brace) + 1);
}

/** Rows [from, to) of a batch that belong in `folder` (relative to the root, "" for the root itself). */
export interface FolderRows {
  readonly folder: string;
  readonly from: number;
  readonly to: number;
}

export class PathTemplate {
  readonly root: string;
  readonly #parts: readonly Part[];
  readonly #pipeline: string;
  /** How far apart two timestamps in one folder can be, ms; 0: no time in the path. */
  readonly #bucketMs: number;

  constructor(path: string, pipeline: string) {
    const problem = templateProblem(path);
    if (problem !== null) throw new Failure("internal.bug", `path template: ${problem}`, { at: path });
    this.root = rootOf(path);
    this.#pipeline = pipeline;
    this.#parts = partsOf(templated(path));
    const has = (name: TemplateName) => this.#parts.some((p) => typeof p !== "string" && p.name === name);
    this.#bucketMs = has("hour") ? HOUR_MS : has("date") ? DAY_MS : 0;
  }

  /**
   * Calls back for each run of rows that share a folder, in order, together all rows of the batch, or those before
   * the run for which it was answered false.
   */
  eachFolder(batch: RawBatch, put: (rows: FolderRows) => boolean): void {
    if (batch.rows === 0) return;
    if (this.#bucketMs === 0) {
      put({ folder: this.#render(batch, null), from: 0, to: batch.rows });
      return;
    }
    const folders = new Map<number, string>();
    const { runs } = batch;
    for (let run = 0, at = 0; at < batch.rows; run++) {
      const end = runs.end[run]!;
      const timed = runs.timestampType[run] !== 0;
      while (at < end) {
        const bucket = timed ? bucketOf(batch.timestamps, at, this.#bucketMs) : null;
        const to = timed ? lastOf(batch.timestamps, at, end, bucket, this.#bucketMs) : end;
        if (!put({ folder: this.#folderOf(folders, batch, bucket), from: at, to })) return;
        at = to;
      }
    }
  }

  #folderOf(known: Map<number, string>, batch: RawBatch, bucket: number | null): string {
    const key = bucket ?? Number.NaN;
    const folder = known.get(key) ?? this.#render(batch, bucket);
    known.set(key, folder);
    return folder;
  }

  #render(batch: RawBatch, bucket: number | null): string {
    const date = bucket === null ? null : new Date(bucket * this.#bucketMs).toISOString();
    const text = this.#parts
      .map((p) => (typeof p === "string" ? p : this.#fill(p.name, batch, date)))
      .join("");
    const names = text.split("/").filter((name) => name !== "");
    return names.map((name, i) => safeName(name, i === 0)).join("/");
  }

  #fill(name: TemplateName, batch: RawBatch, date: string | null): string {
    switch (name) {
      case "topic":
        return plainText(batch.stream.topic);
      case "partition":
        return String(batch.stream.partition);
      case "pipeline":
        return plainText(this.#pipeline);
      case "date":
        return date?.slice(0, 10) ?? UNKNOWN;
      case "hour":
        return date?.slice(11, 13) ?? UNKNOWN;
    }
  }
}

function partsOf(text: string): Part[] {
  return text
    .split(/(\{[a-z]+\})/)
    .filter((t) => t !== "")
    .map((t) => (t.startsWith("{") ? { name: t.slice(1, -1) as TemplateName } : t));
}

/** Text of others as part of a name: what is not a plain character is percent-encoded, so no two texts become one. */
export function plainText(text: string): string {
  if (text === "") return "%";
  if (/^[A-Za-z0-9._-]+$/.test(text)) return text;
  let out = "";
  for (const b of UTF8.encode(text)) {
    const c = String.fromCharCode(b);
    out += /[A-Za-z0-9._-]/.test(c) ? c : `%${b.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return out;
}

/** A whole name that is a folder like any other: not `.`, `..` or our own, and not too long. */
function safeName(name: string, first: boolean): string {
  if (name === "." || name === "..") return name.replaceAll(".", "%2E");
  if (first && name.toLowerCase() === OURS) return name.replace("_", "%5F");
  const bytes = UTF8.encode(name);
  if (bytes.length <= MOST_NAME_BYTES) return name;
  const digest = [...sha256(bytes).subarray(0, 8)].map((b) => b.toString(16).padStart(2, "0")).join("");
  return `${new TextDecoder().decode(bytes.subarray(0, 200)).replace(/\uFFFD+$/, "")}~${digest}`;
}

/** Days or hours since the epoch; null: the row has no timestamp (-1, Kafka's word for none) or an absurd one. */
function bucketOf(timestamps: Int32Array, row: number, bucketMs: number): number | null {
  const ms = timestamps[2 * row + 1]! * TWO32 + (timestamps[2 * row]! >>> 0);
  if (ms === -1 || ms < FIRST_DATE_MS || ms >= LAST_DATE_MS) return null;
  return Math.floor(ms / bucketMs);
}

/** The first row after `at` that is in another bucket. */
function lastOf(
  timestamps: Int32Array,
  at: number,
  end: number,
  bucket: number | null,
  bucketMs: number,
): number {
  let row = at + 1;
  if (bucket === null) {
    while (row < end && bucketOf(timestamps, row, bucketMs) === null) row++;
    return row;
  }
  const least = bucket * bucketMs;
  const above = least + bucketMs;
  for (; row < end; row++) {
    const ms = timestamps[2 * row + 1]! * TWO32 + (timestamps[2 * row]! >>> 0);
    if (ms < least || ms >= above || ms === -1) return row;
  }
  return row;
}
