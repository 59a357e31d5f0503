/** Phrases of `.proto` source that several declarations share: names, numbers, ranges, options. */
import { Lexer, type Token } from "./lexer.ts";
import type { OptionValue, RawOption } from "./options.ts";

const MAX_DEPTH = 32;

export class Tokens {
  readonly #lexer: Lexer;
  #now: Token;
  #next: Token;

  constructor(file: string, text: string) {
    this.#lexer = new Lexer(file, text);
    this.#now = this.#lexer.next();
    this.#next = this.#lexer.next();
  }

  fail(at: number, reason: string): never {
    return this.#lexer.fail(at, reason);
  }

  unexpected(wanted: string): never {
    const seen = this.#now.kind === "end" ? "the end of the file" : JSON.stringify(this.#now.text);
    return this.fail(this.#now.at, `${seen} where ${wanted} is expected`);
  }

  get at(): number {
    return this.#now.at;
  }

  get isEnd(): boolean {
    return this.#now.kind === "end";
  }

  get isNumber(): boolean {
    return this.#now.kind === "int" || this.is("-");
  }

  /** A label is one only before a type. */
  get isLabel(): boolean {
    const label = this.is("optional") || this.is("required") || this.is("repeated");
    return label && (this.#next.kind === "word" || this.#next.text === ".");
  }

  is(text: string): boolean {
    return this.#now.text === text && this.#now.kind !== "string";
  }

  peekIs(text: string): boolean {
    return this.#next.text === text && this.#next.kind !== "string";
  }

  #take(): Token {
    const token = this.#now;
    this.#now = this.#next;
    this.#next = this.#lexer.next();
    return token;
  }

  accept(text: string): boolean {
    if (!this.is(text)) return false;
    this.#take();
    return true;
  }

  expect(text: string): void {
    if (!this.accept(text)) this.unexpected(JSON.stringify(text));
  }

  /** `export` and `local` of edition 2024 stand before a declaration. */
  acceptVisibility(): void {
    if ((this.is("export") || this.is("local")) && (this.peekIs("message") || this.peekIs("enum")))
      this.#take();
  }

  /** `message` or `enum` with a name behind; such a word may also be the type of a field. */
  isDeclaration(word: "message" | "enum"): boolean {
    this.acceptVisibility();
    return this.accept(word);
  }

  word(): string {
    if (this.#now.kind !== "word") this.unexpected("a name");
    return this.#take().text;
  }

  dotted(): string {
    let name = this.accept(".") ? "." : "";
    name += this.word();
    while (this.accept(".")) name += `.${this.word()}`;
    return name;
  }

  typeName(): string {
    return this.dotted();
  }

  /** One string or several behind each other, as text. */
  string(): string {
    return new TextDecoder().decode(Uint8Array.from(this.#strings(), (c) => c.charCodeAt(0)));
  }

  #strings(): string {
    if (this.#now.kind !== "string") this.unexpected("a string");
    let text = "";
    while (this.#now.kind === "string") text += this.#take().text;
    return text;
  }

  integer(): number {
    const negative = this.accept("-");
    if (this.#now.kind !== "int") this.unexpected("a whole number");
    const { text } = this.#take();
    const octal = /^0[0-7]+$/.test(text);
    const value = octal ? Number.parseInt(text, 8) : Number(text);
    return negative ? -value : value;
  }

  /** Inclusive. */
  ranges(max: number): (readonly [number, number])[] {
    const ranges: (readonly [number, number])[] = [];
    do {
      const start = this.integer();
      let end = start;
      if (this.accept("to")) end = this.accept("max") ? max : this.integer();
      ranges.push([start, end]);
    } while (this.accept(","));
    return ranges;
  }

  names(): string[] {
    const names: string[] = [];
    do names.push(this.#now.kind === "string" ? this.string() : this.word());
    while (this.accept(","));
    return names;
  }

  /** Behind `option`. */
  optionStatement(): RawOption {
    const option = this.#option(0);
    this.expect(";");
    return option;
  }

  /** [a = 1, (b).c = "d"], or nothing. */
  options(): RawOption[] {
    const options: RawOption[] = [];
    if (!this.accept("[")) return options;
    do options.push(this.#option(0));
    while (this.accept(","));
    this.expect("]");
    return options;
  }

  #option(depth: number): RawOption {
    const { at } = this;
    const name: string[] = [];
    do {
      if (this.accept("(")) {
        name.push(`(${this.dotted()}`);
        this.expect(")");
      } else name.push(this.word());
    } while (this.accept("."));
    this.expect("=");
    return { name, value: this.#value(depth), at };
  }

  #value(depth: number): OptionValue {
    if (depth > MAX_DEPTH) this.fail(this.at, `option values more than ${MAX_DEPTH} deep`);
    if (this.is("{") || this.is("<")) return { is: "group", entries: this.#group(depth) };
    if (this.#now.kind === "string") return { is: "string", text: this.#strings() };
    const sign = this.accept("-") ? "-" : this.accept("+") ? "" : "";
    if (this.#now.kind === "word") return { is: "word", text: sign + this.#take().text };
    if (this.#now.kind !== "int" && this.#now.kind !== "float") this.unexpected("a value");
    return { is: "number", text: sign + numberText(this.#take()) };
  }

  /** Text format: name: value, name { ... }, [extension]: value, lists in square brackets. */
  #group(depth: number): RawOption[] {
    const close = this.is("{") ? "}" : ">";
    this.#take();
    const entries: RawOption[] = [];
    while (!this.accept(close)) {
      const { at } = this;
      let name: string;
      if (this.accept("[")) {
        name = `(${this.dotted()}`;
        while (this.accept("/")) name += `/${this.dotted()}`;
        this.expect("]");
      } else name = this.word();
      this.accept(":");
      if (this.accept("[")) {
        while (!this.accept("]")) {
          entries.push({ name: [name], value: this.#value(depth + 1), at });
          this.accept(",");
        }
      } else entries.push({ name: [name], value: this.#value(depth + 1), at });
      if (!this.accept(",")) this.accept(";");
    }
    return entries;
  }

  /** Whatever is between braces. */
  skipBraces(): void {
    this.expect("{");
    for (let open = 1; open > 0; ) {
      if (this.isEnd) this.unexpected('"}"');
      const { kind, text } = this.#take();
      if (kind !== "symbol") continue;
      if (text === "{") open++;
      else if (text === "}") open--;
    }
  }
}

function numberText({ kind, text }: Token): string {
  if (kind === "float") return String(Number(text.replace(/[fF]$/, "")));
  if (/^0[xX]/.test(text)) return BigInt(text).toString();
  return /^0[0-7]+$/.test(text) ? BigInt(`0o${text.slice(1)}`).toString() : text.replace(/^0+(?=[0-9])/, "");
}
