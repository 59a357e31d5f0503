/**
 * Where each value of a TOML document stands. The parser gives values without positions, so this reads the text
 * a second time, only for its structure: headers, dotted keys, arrays of tables, inline tables and lists.
 *
 * It is fed documents that the parser accepted, but relies on nothing: every loop moves forward or ends, and
 * what it cannot follow simply has no line of its own (the nearest enclosing path then gives one).
 */
import type { ConfigPath } from "./problem.ts";

export interface Locator {
  /** Line of the path, or of its nearest enclosing one; 0 if the document says nothing about it. */
  lineOf(path: ConfigPath): number;
}

export function locate(text: string): Locator {
  const scan = new Scan(text);
  scan.document();
  return {
    lineOf(path) {
      for (let n = path.length; n > 0; n--) {
        const line = scan.lines.get(keyOf(path.slice(0, n)));
        if (line !== undefined) return line;
      }
      return 0;
    },
  };
}

function keyOf(path: ConfigPath): string {
  return JSON.stringify(path);
}

/** Above what the parser lets through; the guard against deep recursion and endless dotted keys. */
const MAX_DEPTH = 64;

class Scan {
  readonly lines = new Map<string, number>();
  readonly #text: string;
  /** Elements seen so far of each array of tables, by path. */
  readonly #arrays = new Map<string, number>();
  #at = 0;
  #line = 1;

  constructor(text: string) {
    this.#text = text;
  }

  document(): void {
    let table: ConfigPath = [];
    while (this.#at < this.#text.length) {
      this.#blank();
      const c = this.#peek();
      if (c === "") return;
      if (c === "[") table = this.#header();
      else this.#pair(table, 0);
      this.#restOfLine();
    }
  }

  #header(): ConfigPath {
    const line = this.#line;
    const array = this.#text.startsWith("[[", this.#at);
    this.#at += array ? 2 : 1;
    const keys = this.#keys("]");
    let path: ConfigPath = [];
    for (const [i, key] of keys.entries()) {
      path = [...path, key];
      const name = keyOf(path);
      const seen = this.#arrays.get(name);
      if (array && i === keys.length - 1) {
        const index = seen === undefined ? 0 : seen + 1;
        this.#arrays.set(name, index);
        this.#note(path, line);
        path = [...path, index];
      } else if (seen !== undefined) path = [...path, seen];
      this.#note(path, line);
    }
    return path;
  }

  #pair(table: ConfigPath, depth: number): void {
    const start = this.#at;
    const line = this.#line;
    let path: ConfigPath = table;
    for (const key of this.#keys("=")) {
      path = [...path, key];
      this.#note(path, line);
    }
    if (this.#peek() === "=") this.#at++;
    this.#value(path, depth);
    if (this.#at === start) this.#at++;
  }

  #note(path: ConfigPath, line: number): void {
    const key = keyOf(path);
    if (!this.lines.has(key)) this.lines.set(key, line);
  }

  /** A dotted key up to (and not over) `end` or the end of the line. */
  #keys(end: string): string[] {
    const keys: string[] = [];
    while (this.#at < this.#text.length && keys.length < MAX_DEPTH) {
      this.#spaces();
      const c = this.#peek();
      if (c === end || c === "\n" || c === "") return keys;
      if (c === '"' || c === "'") keys.push(this.#string());
      else if (c === ".") this.#at++;
      else keys.push(this.#bare(end));
    }
    return keys;
  }

  #bare(end: string): string {
    const start = this.#at;
    while (this.#at < this.#text.length && !` \t\r\n."'${end}`.includes(this.#peek())) this.#at++;
    if (this.#at === start) this.#at++;
    return this.#text.slice(start, this.#at);
  }

  #value(path: ConfigPath, depth: number): void {
    this.#spaces();
    const c = this.#peek();
    if (c === '"' || c === "'") this.#string();
    else if (depth > MAX_DEPTH) this.#restOfLine();
    else if (c === "[") this.#list(path, depth + 1);
    else if (c === "{") this.#inline(path, depth + 1);
    else while (this.#at < this.#text.length && !"#,]}\n".includes(this.#peek())) this.#at++;
  }

  #list(path: ConfigPath, depth: number): void {
    this.#at++;
    for (let index = 0; this.#at < this.#text.length; index++) {
      this.#blank();
      if (this.#closed("]")) return;
      const start = this.#at;
      const item = [...path, index];
      this.#note(item, this.#line);
      this.#value(item, depth);
      this.#blank();
      if (this.#peek() === ",") this.#at++;
      if (this.#at === start) this.#at++;
    }
  }

  #inline(path: ConfigPath, depth: number): void {
    this.#at++;
    while (this.#at < this.#text.length) {
      this.#blank();
      if (this.#closed("}")) return;
      const start = this.#at;
      this.#pair(path, depth);
      this.#blank();
      if (this.#peek() === ",") this.#at++;
      if (this.#at === start) this.#at++;
    }
  }

  #closed(bracket: string): boolean {
    const c = this.#peek();
    if (c !== bracket && c !== "") return false;
    this.#at++;
    return true;
  }

  /** Over a string of any of the four kinds. Returns its content; escapes matter for keys only and are decoded there. */
  #string(): string {
    const quote = this.#peek();
    const long = this.#text.startsWith(quote.repeat(3), this.#at);
    const close = long ? quote.repeat(3) : quote;
    this.#at += close.length;
    const start = this.#at;
    while (this.#at < this.#text.length && !this.#text.startsWith(close, this.#at)) {
      if (!long && this.#peek() === "\n") break;
      if (quote === '"' && this.#peek() === "\\") this.#step();
      this.#step();
    }
    const raw = this.#text.slice(start, this.#at);
    this.#at += close.length;
    // A long string may end in one or two quotes of its own.
    while (long && this.#peek() === quote) this.#at++;
    return quote === '"' ? unescaped(raw) : raw;
  }

  #peek(): string {
    return this.#text.charAt(this.#at);
  }

  #step(): void {
    if (this.#peek() === "\n") this.#line++;
    this.#at++;
  }

  #spaces(): void {
    while (this.#peek() === " " || this.#peek() === "\t" || this.#peek() === "\r") this.#at++;
  }

  /** Over spaces, line ends and comments. */
  #blank(): void {
    for (;;) {
      this.#spaces();
      const c = this.#peek();
      if (c === "\n") this.#step();
      else if (c === "#") while (this.#at < this.#text.length && this.#peek() !== "\n") this.#at++;
      else return;
    }
  }

  #restOfLine(): void {
    while (this.#at < this.#text.length && this.#peek() !== "\n") this.#at++;
  }
}

function unescaped(raw: string): string {
  if (!raw.includes("\\")) return raw;
  const named: Readonly<Record<string, string>> = { b: "\b", t: "\t", n: "\n", f: "\f", r: "\r", e: "\x1b" };
  return raw.replace(
    /\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))/g,
    (all, x, u, U, plain) => {
      const hex: string | undefined = x ?? u ?? U;
      if (hex === undefined) return named[plain] ?? plain;
      const point = Number.parseInt(hex, 16);
      return point <= 0x10ffff ? String.fromCodePoint(point) : all;
    },
  );
}
