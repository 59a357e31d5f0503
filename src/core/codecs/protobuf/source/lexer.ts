/** The tokens of `.proto` source. https://protobuf.dev/reference/protobuf/edition-2024-spec/#lexical_elements */
import { DecodeError } from "../../record-codec.ts";

export type TokenKind = "word" | "int" | "float" | "string" | "symbol" | "end";

export interface Token {
  readonly kind: TokenKind;
  /** Of a string: its bytes, one a character; of the others as written. */
  readonly text: string;
  readonly at: number;
}

/** Far above any schema; an attacker's stops here. */
const MAX_SOURCE = 4 << 20;

const SPACE = /(?:\s|\/\/[^\n]*|\/\*[^*]*\*+(?:[^/*][^*]*\*+)*\/)+/y;
const WORD = /[A-Za-z_][A-Za-z0-9_]*/y;
const FLOAT =
  /(?:[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)[fF]?|[0-9]+[fF]/y;
const INT = /0[xX][0-9A-Fa-f]+|[0-9]+/y;
const SYMBOLS = "{}[]()<>=;,.-+:/";
const UTF8 = new TextEncoder();

const SIMPLE: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
  "'": "'",
  '"': '"',
  "?": "?",
};

export class Lexer {
  readonly file: string;
  readonly #text: string;
  #pos = 0;

  constructor(file: string, text: string) {
    this.file = file;
    this.#text = text;
    if (text.length > MAX_SOURCE)
      this.fail(0, `the source has ${text.length} characters, at most ${MAX_SOURCE} are read`);
    if (text.startsWith("\ufeff")) this.#pos = 1;
  }

  fail(at: number, reason: string): never {
    const before = this.#text.slice(0, at).split("\n");
    const line = before.length;
    const column = (before.at(-1) ?? "").length + 1;
    throw new DecodeError("decode.schema", "", `${this.file}:${line}:${column}: ${reason}`);
  }

  next(): Token {
    this.#match(SPACE);
    const at = this.#pos;
    if (at >= this.#text.length) return { kind: "end", text: "", at };
    const c = this.#text[at]!;
    if (c === '"' || c === "'") return { kind: "string", text: this.#string(c), at };
    const word = this.#match(WORD);
    if (word !== null) return { kind: "word", text: word, at };
    const float = this.#match(FLOAT);
    if (float !== null) return { kind: "float", text: float, at };
    const int = this.#match(INT);
    if (int !== null) return { kind: "int", text: int, at };
    if (!SYMBOLS.includes(c)) this.fail(at, `${JSON.stringify(c)} begins nothing that this language has`);
    this.#pos++;
    return { kind: "symbol", text: c, at };
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#pos;
    const found = pattern.exec(this.#text);
    if (found === null) return null;
    this.#pos = pattern.lastIndex;
    return found[0];
  }

  /** Each character of the result is a byte. */
  #string(quote: string): string {
    const begin = this.#pos++;
    const out: string[] = [];
    for (;;) {
      const c = this.#text[this.#pos];
      if (c === undefined || c === "\n") this.fail(begin, "the string has no end on its line");
      if (c === quote) {
        this.#pos++;
        return out.join("");
      }
      if (c === "\\") out.push(this.#escape());
      else {
        const code = this.#text.codePointAt(this.#pos)!;
        out.push(bytesOf(String.fromCodePoint(code)));
        this.#pos += code > 0xffff ? 2 : 1;
      }
    }
  }

  #escape(): string {
    const at = this.#pos;
    const rest = this.#text.slice(at + 1, at + 12);
    const simple = SIMPLE[rest[0] ?? ""];
    if (simple !== undefined) {
      this.#pos += 2;
      return simple;
    }
    const numeric = /^(?:([0-7]{1,3})|[xX]([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))/.exec(rest);
    if (numeric === null) this.fail(at, "the string has an escape that there is not");
    this.#pos += 1 + numeric[0].length;
    const [, octal, hex, short, long] = numeric;
    if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8) & 0xff);
    if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
    const code = Number.parseInt(short ?? long!, 16);
    if (code > 0x10ffff) this.fail(at, "the string has a character beyond U+10FFFF");
    return bytesOf(String.fromCodePoint(code));
  }
}

function bytesOf(text: string): string {
  return String.fromCharCode(...UTF8.encode(text));
}
