/** Turns what zod found into problems: one per unknown key, missing option or wrong value, with place and remedy. */
import type * as z from "zod";
import type { Code } from "../failure/codes.ts";
import { LATER_OPTIONS } from "./later.ts";
import type { Locator } from "./locate.ts";
import { nearest } from "./nearest.ts";
import { type ConfigPath, type Problem, pathText, quoted, shownKind, shownValue } from "./problem.ts";
import { allowedText, choicesOf, keysAt, open, schemaAt } from "./schema-walk.ts";

type Issue = z.core.$ZodIssue;

export interface Place {
  readonly file: string;
  readonly locator: Locator;
  /** Where in the document the checked value stands. */
  readonly base: ConfigPath;
}

/** `schema` and `value` are what was checked; issue paths are relative to them. */
export function problemsOf(
  issues: readonly Issue[],
  schema: z.core.$ZodType,
  value: unknown,
  place: Place,
): Problem[] {
  return issues.flatMap((issue) => {
    const path = issue.path.map((p) => (typeof p === "symbol" ? String(p) : p));
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((key) => unknownKey(key, [...place.base, ...path], keysAt(schema, path), place));
    }
    return [valueProblem(issue, path, schema, value, place)];
  });
}

export function unknownKey(key: string, table: ConfigPath, known: readonly string[], place: Place): Problem {
  const path = [...table, key];
  const later = LATER_OPTIONS.get(pathText(path.filter((p) => typeof p === "string")));
  const near = nearest(key, known);
  const meant = near === null ? "" : `did you mean ${quoted(near)}?`;
  return {
    code: later === undefined ? "config.unknown_key" : "config.not_in_this_version",
    file: place.file,
    line: place.locator.lineOf(path),
    path: pathText(path),
    seen: `the key ${quoted(key)}`,
    allowed: known.join(", "),
    hint: later ?? meant,
  };
}

function valueProblem(
  issue: Issue,
  path: ConfigPath,
  root: z.core.$ZodType,
  rootValue: unknown,
  place: Place,
): Problem {
  const full = [...place.base, ...path];
  const schema = schemaAt(root, path);
  const value = valueAt(rootValue, path);
  const allowed = paramOf(issue, "allowed") ?? (schema === null ? "" : allowedText(schema));
  const common = { file: place.file, line: place.locator.lineOf(full), path: pathText(full), allowed };
  if (value === undefined && issue.code !== "custom") {
    return { ...common, code: "config.missing", seen: "", hint: missingHint(schema) };
  }
  const secret = isSecret(root, path);
  const seen = value === undefined ? "" : secret ? shownKind(value) : shownValue(value);
  return { ...common, code: codeOf(issue, schema, value), seen, hint: hintOf(issue, schema, value) };
}

function valueAt(root: unknown, path: ConfigPath): unknown {
  let at = root;
  for (const part of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, part)) return undefined;
    at = (at as Readonly<Record<string | number, unknown>>)[part];
  }
  return at;
}

/** True for the option itself and for anything inside its value. */
function isSecret(root: z.core.$ZodType, path: ConfigPath): boolean {
  return path.some((_, n) => {
    const schema = schemaAt(root, path.slice(0, n + 1));
    return schema !== null && open(schema).meta.secret === true;
  });
}

function paramOf(issue: Issue, name: "code" | "allowed"): string | null {
  if (issue.code !== "custom") return null;
  const value: unknown = issue.params?.[name];
  return typeof value === "string" ? value : null;
}

function codeOf(issue: Issue, schema: z.core.$ZodType | null, value: unknown): Code {
  switch (issue.code) {
    case "custom":
      return (paramOf(issue, "code") as Code | null) ?? "config.range";
    case "invalid_type":
      return "config.type";
    case "invalid_value":
      return schema !== null && choicesOf(schema) !== null && typeof value !== "string"
        ? "config.type"
        : "config.range";
    case "invalid_union":
      return issue.errors.some((branch) =>
        branch.every((i) => i.path.length > 0 || i.code !== "invalid_type"),
      )
        ? "config.range"
        : "config.type";
    default:
      return "config.range";
  }
}

function missingHint(schema: z.core.$ZodType | null): string {
  const examples = schema === null ? undefined : open(schema).meta.examples;
  return examples?.[0] === undefined
    ? "it is required"
    : `it is required, for example ${JSON.stringify(examples[0])}`;
}

function hintOf(issue: Issue, schema: z.core.$ZodType | null, value: unknown): string {
  if (issue.code === "custom") return issue.message;
  if (typeof value === "bigint") return "the number is too large";
  const core = schema === null ? null : (open(schema).core as z.core.$ZodTypes)._zod.def.type;
  if (typeof value === "string") {
    const choices = schema === null ? null : choicesOf(schema);
    const near = choices === null ? null : nearest(value, choices);
    if (near !== null) return `did you mean ${quoted(near)}?`;
    if (core === "number" && value.trim() !== "" && Number.isFinite(Number(value)))
      return "write the number without quotes";
    if (core === "boolean" && /^(true|false)$/i.test(value)) return "write true or false without quotes";
    if (core === "array") return "write a list: [...]";
    if (value === "") return "it is empty";
  }
  if (core === "string" && (typeof value === "number" || typeof value === "boolean"))
    return "write it in quotes";
  return "";
}
