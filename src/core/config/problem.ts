/** What is wrong with a configuration: all of it at once, each with its place, what was seen and what is allowed. */
import type { Code } from "../failure/codes.ts";

/** Keys and array indexes from the root of the document. */
export type ConfigPath = readonly (string | number)[];

export interface Problem {
  readonly code: Code;
  readonly file: string;
  /** From 1; 0 where the document as a whole is meant. */
  readonly line: number;
  readonly path: string;
  /** What is there, shortened and without secrets; empty where nothing is. */
  readonly seen: string;
  readonly allowed: string;
  /** What to do, or the likely cause; may be empty. */
  readonly hint: string;
}

/** `sink[0].path`; keys that TOML would have to quote are quoted. */
export function pathText(path: ConfigPath): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += (text === "" ? "" : ".") + (/^[A-Za-z0-9_-]{1,60}$/.test(part) ? part : quoted(part));
  }
  return text === "" ? "(document)" : text;
}

/** `file:line: code path: saw X; allowed: Y. hint` on one line. */
export function problemLine(p: Problem): string {
  const place = p.line > 0 ? `${p.file}:${p.line}` : p.file;
  const facts = [
    p.seen === "" ? "" : `saw ${p.seen}`,
    p.allowed === "" ? "" : `allowed: ${p.allowed}`,
    p.hint,
  ].filter((s) => s !== "");
  return `${place}: ${p.code} at ${p.path}: ${facts.join("; ")}`;
}

/** All problems, one a line, in the order of the file. */
export function describeProblems(problems: readonly Problem[]): string {
  return problems.map(problemLine).join("\n");
}

/** By line, then path; the same problem once. */
export function orderProblems(problems: readonly Problem[]): Problem[] {
  const seen = new Set<string>();
  const unique = problems.filter((p) => {
    const key = `${p.code} ${p.path} ${p.line}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
  return unique.sort((a, b) => a.line - b.line || (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
}

/** A string as JSON writes it (so control characters cannot reach a terminal), cut at 60 characters. */
export function quoted(text: string): string {
  // Of an address only: what stands before the @ is a user and perhaps a password.
  const bare = text.replace(/\/\/[^@/\s]*@/g, "//***@");
  const cut = bare.length > 60 ? `${bare.slice(0, 57)}...` : bare;
  // Beyond JSON's own escapes: C1 controls and the bidirectional overrides, which would reorder the line shown.
  return JSON.stringify(cut).replace(/[\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (c) => {
    return `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/** A value in a message: scalars as written, anything else by its kind and size. */
export function shownValue(value: unknown): string {
  if (typeof value === "string") return quoted(value);
  if (value === null || typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value === "bigint") return String(value);
  if (value instanceof Date) return "a date";
  if (Array.isArray(value)) return `a list of ${value.length}`;
  const keys = Object.keys(value as object);
  return keys.length === 0 ? "an empty table" : `a table with ${keys.slice(0, 5).map(quoted).join(", ")}`;
}

/** The kind of a value only, for secrets. */
export function shownKind(value: unknown): string {
  if (typeof value === "string") return value === "" ? "an empty string" : "a string (not shown)";
  if (typeof value === "number" || typeof value === "bigint") return "a number (not shown)";
  return typeof value === "boolean" ? "a boolean" : Array.isArray(value) ? "a list" : "a table";
}
