/** TOML text to a value, within limits, with positions. */
import { parse, TomlError } from "smol-toml";
import { type Locator, locate } from "./locate.ts";
import type { Problem } from "./problem.ts";

/** A configuration is written by people; more than this is a wrong file. */
export const MAX_CONFIG_BYTES = 1024 * 1024;
const MAX_DEPTH = 32;

export type TomlResult =
  | { readonly ok: true; readonly value: Readonly<Record<string, unknown>>; readonly locator: Locator }
  | { readonly ok: false; readonly problems: readonly Problem[] };

export function parseToml(bytes: Uint8Array, file: string): TomlResult {
  const refuse = (
    code: Problem["code"],
    line: number,
    seen: string,
    allowed: string,
    hint = "",
  ): TomlResult => ({
    ok: false,
    problems: [{ code, file, line, path: "(document)", seen, allowed, hint }],
  });
  if (bytes.length > MAX_CONFIG_BYTES) {
    return refuse("config.too_large", 0, `${bytes.length} bytes`, `at most ${MAX_CONFIG_BYTES} bytes`);
  }
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return refuse("config.syntax", 0, "bytes that are not UTF-8", "a TOML document in UTF-8");
  }
  try {
    const value = parse(text, { integersAsBigInt: "asNeeded", maxDepth: MAX_DEPTH });
    const locator = locate(text);
    const deep = tooDeep(value);
    if (deep !== null) {
      return refuse(
        "config.syntax",
        locator.lineOf(deep),
        "tables nested too deeply",
        `at most ${MAX_DEPTH} levels`,
      );
    }
    return { ok: true, value, locator };
  } catch (e) {
    if (!(e instanceof TomlError)) throw e;
    // The parser's message goes on with the source lines around the place, which may hold a secret.
    const what = (e.message.split("\n")[0] ?? "").replace(/^Invalid TOML document: /, "");
    return refuse(
      "config.syntax",
      e.line,
      `${what} (column ${e.column})`,
      "a TOML document",
      syntaxHint(what),
    );
  }
}

function syntaxHint(what: string): string {
  if (what === "invalid value") return "text goes in quotes; true and false are lower-case";
  if (what.startsWith("trying to redefine")) return "the key or table stands twice in the file";
  if (what.startsWith("incomplete key-value")) return "a line is `key = value` or a [table] header";
  return "";
}

/** The path at which tables and lists nest beyond the limit (dotted keys escape the parser's own), or null. */
function tooDeep(root: unknown): (string | number)[] | null {
  const stack: { value: unknown; path: (string | number)[] }[] = [{ value: root, path: [] }];
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    const { value, path } = top;
    if (typeof value !== "object" || value === null) continue;
    if (path.length > MAX_DEPTH) return path;
    const entries = Array.isArray(value) ? value.entries() : Object.entries(value);
    for (const [key, child] of entries) stack.push({ value: child, path: [...path, key] });
  }
  return null;
}
