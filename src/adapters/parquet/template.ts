/**
 * Path templates, filled in for each record: two records of one batch may belong in two folders. Rows are looked at
 * in one loop over numbers; a folder name is made once per run of rows that share it.
 */
import { Failure } from "../../core/failure/failure.ts";
import type { RawBatch } from "../../core/records/raw-batch.ts";

export const TEMPLATE_NAMES = ["topic", "partition", "date", "hour", "pipeline"] as const;
type TemplateName = (typeof TEMPLATE_NAMES)[number];

const HOUR_MS = 3_600_000;
const TWO32 = 4_294_967_296;
/** Folder for records without a timestamp (or one outside the years 0 to 9999), so that none is misfiled. */
const UNKNOWN = "unknown";

type Part = string | { readonly name: TemplateName };

/** What is wrong with a template, null if nothing. */
export function templateProblem(path: string): string | null {
  const bad = [...path.matchAll(/\{([^}]*)\}/g)].find((m) => !isName(m[1] ?? ""));
  if (bad !== undefined) return `${bad[0]} is not known in a path`;
  if (/[{}]/.test(path.replace(/\{[a-z]+\}/g, ""))) return "a brace is not closed or not opened";
  if (path.includes("\0")) return "a path cannot hold a zero byte";
  const dynamic = path.slice(rootOf(path).length);
  if (dynamic.split("/").includes("..")) return "`..` cannot stand behind a part in braces";
  return null;
}

function isName(name: string): name is TemplateName {
  return (TEMPLATE_NAMES as readonly string[]).includes(name);
}

/** The folder before the first part that is filled in; the whole path if none is. */
export function rootOf(path: string): string {
  const brace = path.indexOf("{");
  const fixed = brace < 0 ? path : path.slice(0, path.lastIndexOf("/", brace) + 1);
  const trimmed = fixed.replace(/\/+$/, "");
  if (trimmed !== "") return trimmed;
  return fixed.startsWith("/") ? "/" : ".";
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
  readonly #usesTime: boolean;

  constructor(path: string, pipeline: string) {
    const problem = templateProblem(path);
    if (problem !== null) throw new Failure("internal.bug", `path template: ${problem}`, { at: path });
    this.root = rootOf(path);
    this.#pipeline = pipeline;
    this.#parts = partsOf(
      path.indexOf("{") < 0 ? "" : path.slice(path.lastIndexOf("/", path.indexOf("{")) + 1),
    );
    this.#usesTime = this.#parts.some(
      (p) => typeof p !== "string" && (p.name === "date" || p.name === "hour"),
    );
  }

  /** Calls back for each run of rows that share a folder, in order, together all rows of the batch. */
  eachFolder(batch: RawBatch, put: (rows: FolderRows) => void): void {
    if (!this.#usesTime) {
      put({ folder: this.#render(batch, null), from: 0, to: batch.rows });
      return;
    }
    let from = 0;
    let hour = hourOf(batch, 0);
    for (let row = 1; row < batch.rows; row++) {
      const next = hourOf(batch, row);
      if (next === hour || (Number.isNaN(next) && Number.isNaN(hour))) continue;
      put({ folder: this.#render(batch, hour), from, to: row });
      from = row;
      hour = next;
    }
    put({ folder: this.#render(batch, hour), from, to: batch.rows });
  }

  #render(batch: RawBatch, hour: number | null): string {
    return this.#parts
      .map((p) => (typeof p === "string" ? p : this.#fill(p.name, batch, hour)))
      .join("")
      .replace(/\/+$/, "");
  }

  #fill(name: TemplateName, batch: RawBatch, hour: number | null): string {
    switch (name) {
      case "topic":
        return batch.stream.topic;
      case "partition":
        return String(batch.stream.partition);
      case "pipeline":
        return this.#pipeline;
      case "date":
        return isoOf(hour)?.slice(0, 10) ?? UNKNOWN;
      case "hour":
        return isoOf(hour)?.slice(11, 13) ?? UNKNOWN;
    }
  }
}

function partsOf(text: string): Part[] {
  return text
    .split(/(\{[a-z]+\})/)
    .filter((t) => t !== "")
    .map((t) => (t.startsWith("{") ? { name: t.slice(1, -1) as TemplateName } : t));
}

/** Hours since the epoch of the row's timestamp; NaN where it has none (format 0, or -1: "no timestamp"). */
function hourOf(batch: RawBatch, row: number): number {
  const high = batch.timestamps[2 * row + 1]!;
  const low = batch.timestamps[2 * row]!;
  if (high === -1 && low === -1) return Number.NaN;
  return Math.floor((high * TWO32 + (low >>> 0)) / HOUR_MS);
}

function isoOf(hour: number | null): string | null {
  if (hour === null || Number.isNaN(hour)) return null;
  const date = new Date(hour * HOUR_MS);
  const iso = Number.isNaN(date.getTime()) ? "" : date.toISOString();
  return /^\d{4}-/.test(iso) ? iso : null;
}
