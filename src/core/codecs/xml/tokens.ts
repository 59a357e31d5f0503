/**
 * XML 1.0 with namespaces as a row of tokens over UTF-8 bytes, strictly: tags must match, names, references and characters
 * must be allowed. There are no DTDs, so no entities but the five of the language, nothing external, and nothing that
 * grows: text of n bytes has at most n bytes of content.
 */
import { latin1 } from "../../types/text-cells.ts";

export const TOKEN = { end: 0, open: 1, close: 2, text: 3 } as const;

export interface Attribute {
  /** Namespace, empty: none. */
  readonly uri: string;
  readonly local: string;
  /** Range of the value, references resolved. */
  readonly start: number;
  readonly stop: number;
}

const XML_URI = "http://www.w3.org/XML/1998/namespace";
const XMLNS_URI = "http://www.w3.org/2000/xmlns/";
const MAX_ATTRIBUTES = 1000;
const MAX_DECLARATION = 300;
/** With zeros before its digits, from & to ;. */
const MAX_REFERENCE = 64;
/** Between `<?xml` and `?>`. */
const DECLARATION =
  /^[ \t\r\n]+version[ \t\r\n]*=[ \t\r\n]*(["'])1\.[0-9]+\1([ \t\r\n]+encoding[ \t\r\n]*=[ \t\r\n]*(["'])[A-Za-z][A-Za-z0-9._-]*\3)?([ \t\r\n]+standalone[ \t\r\n]*=[ \t\r\n]*(["'])(yes|no)\5)?[ \t\r\n]*$/;

/** Letters of names beyond ASCII, by the fifth edition of XML 1.0 (section 2.3), and what else may stand within one. */
const LETTERS =
  "A-Z_a-z\\u{C0}-\\u{D6}\\u{D8}-\\u{F6}\\u{F8}-\\u{2FF}\\u{370}-\\u{37D}\\u{37F}-\\u{1FFF}\\u{200C}\\u{200D}" +
  "\\u{2070}-\\u{218F}\\u{2C00}-\\u{2FEF}\\u{3001}-\\u{D7FF}\\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFFD}\\u{10000}-\\u{EFFFF}";
const PART = `[${LETTERS}][${LETTERS}0-9.\\-\\u{B7}\\u{300}-\\u{36F}\\u{203F}\\u{2040}]*`;
const NAME = new RegExp(`^${PART}(:${PART})?$`, "u");

const UTF8 = new TextDecoder();
const ENTITIES: ReadonlyMap<string, number> = new Map([
  ["lt", 60],
  ["gt", 62],
  ["amp", 38],
  ["apos", 39],
  ["quot", 34],
]);

/** What is wrong and where, bytes from the begin of the record. */
export class XmlError extends Error {
  readonly code: "decode.syntax" | "decode.depth";

  constructor(message: string, code: XmlError["code"] = "decode.syntax") {
    super(message);
    this.code = code;
  }
}

interface Scope {
  /** As it is written, prefix included. */
  readonly name: string;
  /** Namespaces declared on the element, prefix -> URI. */
  readonly declared: ReadonlyMap<string, string> | null;
}

const isBlank = (c: number): boolean => c === 32 || c === 9 || c === 10 || c === 13;
const isNameStart = (c: number): boolean =>
  (c >= 97 && c <= 122) || (c >= 65 && c <= 90) || c === 95 || c >= 128;
const isNamePart = (c: number): boolean => isNameStart(c) || (c >= 48 && c <= 57) || c === 45 || c === 46;

export class XmlTokens {
  #b: Uint8Array = new Uint8Array(0);
  #at = 0;
  #end = 0;
  #from = 0;
  readonly #scopes: Scope[] = [];
  #started = false;
  /** The open tag closed itself: its close comes next. */
  #empty = false;
  readonly #maxDepth: number;
  /** Of the tag. */
  uri = "";
  local = "";
  attributes: Attribute[] = [];
  /** Range of the text: of one piece, without marks around. */
  start = 0;
  stop = 0;
  /** Where the next text goes that has to be changed. */
  spareAt = 0;

  /** `maxDepth`: of elements within each other, the outermost included. */
  constructor(maxDepth: number) {
    this.#maxDepth = maxDepth;
  }

  begin(bytes: Uint8Array, from: number, end: number, spareAt: number): void {
    this.#b = bytes;
    this.#from = from;
    this.#at = from;
    this.#end = end;
    this.#scopes.length = 0;
    this.#started = false;
    this.#empty = false;
    this.spareAt = spareAt;
    if (this.#looksAt("<?xml") && isBlank(this.#peek(from + 5))) this.#declaration();
  }

  get depth(): number {
    return this.#scopes.length;
  }

  /** The next token. Throws an XmlError. */
  next(): number {
    if (this.#empty) {
      this.#empty = false;
      this.#scopes.pop();
      return TOKEN.close;
    }
    for (;;) {
      if (this.#at >= this.#end) return this.#ended();
      if (this.#b[this.#at] !== 60) {
        if (this.#text()) return TOKEN.text;
      } else if (this.#looksAt("<!--")) this.#comment();
      else if (this.#looksAt("<![CDATA[")) {
        this.#cdata();
        return TOKEN.text;
      } else if (this.#looksAt("<!")) this.#fail("a DTD or other declaration, which is not read");
      else if (this.#looksAt("<?")) this.#instruction();
      else return this.#peek(this.#at + 1) === 47 ? this.#close() : this.#open();
    }
  }

  #fail(what: string, at = this.#at, code: XmlError["code"] = "decode.syntax"): never {
    throw new XmlError(`${what} at byte ${at - this.#from}`, code);
  }

  /** 0 behind the end: what stands there is another record's. */
  #peek(at: number): number {
    return at < this.#end ? this.#b[at]! : 0;
  }

  #looksAt(mark: string): boolean {
    if (this.#at + mark.length > this.#end) return false;
    for (let i = 0; i < mark.length; i++) if (this.#b[this.#at + i] !== mark.charCodeAt(i)) return false;
    return true;
  }

  /** First such byte in [from, to), -1: none. */
  #find(byte: number, from: number, to: number): number {
    const at = this.#b.subarray(from, to).indexOf(byte);
    return at < 0 ? -1 : from + at;
  }

  /** Goes behind the next `mark`; gives where it stands. */
  #behind(mark: string, skip: number, what: string): number {
    const begin = this.#at;
    for (this.#at += skip; this.#at < this.#end; this.#at++) {
      if (!this.#looksAt(mark)) continue;
      const at = this.#at;
      this.#at += mark.length;
      return at;
    }
    return this.#fail(`${what} does not end`, begin);
  }

  #ended(): number {
    const open = this.#scopes.at(-1);
    if (open !== undefined) this.#fail(`<${open.name}> is not closed`);
    if (!this.#started) this.#fail("no element");
    return TOKEN.end;
  }

  #declaration(): void {
    const from = this.#at;
    const at = this.#behind("?>", 5, "the XML declaration");
    if (at - from > MAX_DECLARATION || !DECLARATION.test(latin1(this.#b, from + 5, at)))
      this.#fail("an XML declaration of other than version 1, encoding and standalone", from);
  }

  #comment(): void {
    const from = this.#at;
    const at = this.#behind("--", 4, "the comment");
    if (this.#peek(at + 2) !== 62) this.#fail("-- within a comment", from);
    this.#characters(from, at);
    this.#at++;
  }

  #instruction(): void {
    const from = this.#at;
    this.#at += 2;
    const target = this.#name();
    if (target.includes(":")) this.#fail("a processing instruction with a colon in its name", from);
    if (target.toLowerCase() === "xml") this.#fail("an XML declaration that is not at the begin", from);
    const next = this.#peek(this.#at);
    if (!isBlank(next) && !this.#looksAt("?>")) this.#fail("a blank is wanted");
    this.#characters(from, this.#behind("?>", 0, "the processing instruction"));
  }

  #cdata(): void {
    if (this.depth === 0) this.#fail("text outside of the element");
    const from = this.#at + 9;
    const to = this.#behind("]]>", 9, "the CDATA section");
    this.#take(from, to, false);
  }

  /** Text up to the next tag. False: it is blank and outside of the element. */
  #text(): boolean {
    const from = this.#at;
    const next = this.#find(60, from, this.#end);
    const to = next < 0 ? this.#end : next;
    this.#at = to;
    if (this.depth === 0) {
      for (let i = from; i < to; i++) if (!isBlank(this.#b[i]!)) this.#fail("text outside of the element", i);
      return false;
    }
    for (let i = from; i + 2 < to; i++)
      if (this.#b[i] === 93 && this.#b[i + 1] === 93 && this.#b[i + 2] === 62)
        this.#fail("]]> within text", i);
    this.#take(from, to, true);
    return true;
  }

  /** Allowed characters in [from, to). The bytes are UTF-8. */
  #characters(from: number, to: number): void {
    const b = this.#b;
    for (let i = from; i < to; i++) {
      const c = b[i]!;
      if (c < 32 && !isBlank(c)) this.#fail("a character that XML does not allow", i);
      // U+FFFE and U+FFFF
      if (c === 0xef && b[i + 1] === 0xbf && b[i + 2]! >= 0xbe)
        this.#fail("a character that XML does not allow", i);
    }
  }

  /** The text of [from, to): where it stands, or in the spare room if references or line ends change it. */
  #take(from: number, to: number, references: boolean, attribute = false): void {
    const b = this.#b;
    this.#characters(from, to);
    let plain = true;
    for (let i = from; i < to && plain; i++) {
      const c = b[i]!;
      plain = c !== 13 && (!references || c !== 38) && (!attribute || (c !== 9 && c !== 10));
    }
    this.start = from;
    this.stop = to;
    if (plain) return;
    this.start = this.spareAt;
    let out = this.spareAt;
    for (let i = from; i < to; i++) {
      const c = b[i]!;
      if (c === 38 && references) {
        i = this.#reference(i, to, out);
        out = this.#after;
      } else if (c === 13) {
        // A line ends with LF, whatever it ended with.
        b[out++] = attribute ? 32 : 10;
        if (b[i + 1] === 10 && i + 1 < to) i++;
      } else b[out++] = attribute && isBlank(c) ? 32 : c;
    }
    this.stop = out;
    this.spareAt = out;
  }

  #after = 0;

  /** Writes what the reference at `at` stands for; gives where its semicolon is. */
  #reference(at: number, to: number, out: number): number {
    const close = this.#find(59, at, Math.min(to, at + MAX_REFERENCE));
    if (close < 0) this.#fail("a reference that does not end", at);
    const name = UTF8.decode(this.#b.subarray(at + 1, close));
    const code = name.startsWith("#") ? numbered(name.slice(1)) : (ENTITIES.get(name) ?? -1);
    if (code < 0) this.#fail(`&${name}; is no character, and entities are not read`, at);
    const text = new TextEncoder().encode(String.fromCodePoint(code));
    this.#b.set(text, out);
    this.#after = out + text.length;
    return close;
  }

  #name(): string {
    const from = this.#at;
    const b = this.#b;
    if (from >= this.#end || !isNameStart(b[from]!)) this.#fail("a name is wanted");
    let colons = 0;
    let wide = false;
    while (
      this.#at < this.#end &&
      (isNamePart(b[this.#at]!) ||
        (b[this.#at] === 58 && isNameStart(this.#peek(this.#at + 1)) && colons++ === 0))
    ) {
      wide ||= b[this.#at]! >= 128;
      this.#at++;
    }
    const name = UTF8.decode(b.subarray(from, this.#at));
    if (wide && !NAME.test(name)) this.#fail("a name with a character that XML does not allow there", from);
    return name;
  }

  #blanks(): boolean {
    const from = this.#at;
    while (this.#at < this.#end && isBlank(this.#b[this.#at]!)) this.#at++;
    return this.#at > from;
  }

  #open(): number {
    if (this.depth === 0 && this.#started) this.#fail("a second element; a record is one");
    if (this.depth >= this.#maxDepth)
      this.#fail(`elements nested deeper than ${this.#maxDepth}`, this.#at, "decode.depth");
    this.#started = true;
    this.#at++;
    const name = this.#name();
    const written: {
      readonly name: string;
      readonly start: number;
      readonly stop: number;
      readonly at: number;
    }[] = [];
    for (;;) {
      const blank = this.#blanks();
      if (this.#looksAt(">") || this.#looksAt("/>")) break;
      if (!blank) this.#fail("> or a blank is wanted");
      if (written.length === MAX_ATTRIBUTES) this.#fail(`more than ${MAX_ATTRIBUTES} attributes`);
      written.push(this.#attribute());
    }
    this.#empty = this.#b[this.#at] === 47;
    this.#at += this.#empty ? 2 : 1;
    this.#scopes.push({ name, declared: this.#declarations(written) });
    [this.uri, this.local] = this.#resolved(name, true);
    this.attributes = [];
    const seen = new Set<string>();
    for (const { name: full, start, stop, at } of written) {
      if (full === "xmlns" || full.startsWith("xmlns:")) continue;
      const [uri, local] = this.#resolved(full, false);
      const key = `${uri} ${local}`;
      if (seen.has(key)) this.#fail(`the attribute ${full} comes twice`, at);
      seen.add(key);
      this.attributes.push({ uri, local, start, stop });
    }
    return TOKEN.open;
  }

  #attribute() {
    const at = this.#at;
    const name = this.#name();
    this.#blanks();
    if (!this.#looksAt("=")) this.#fail("= is wanted");
    this.#at++;
    this.#blanks();
    const quote = this.#peek(this.#at);
    if (quote !== 34 && quote !== 39) this.#fail("a value in quotes is wanted");
    const from = this.#at + 1;
    const to = this.#find(quote, from, this.#end);
    if (to < 0) this.#fail("the value does not end");
    const less = this.#find(60, from, to);
    if (less >= 0) this.#fail("< within a value", less);
    this.#take(from, to, true, true);
    this.#at = to + 1;
    return { name, start: this.start, stop: this.stop, at };
  }

  #declarations(
    written: readonly {
      readonly name: string;
      readonly start: number;
      readonly stop: number;
      readonly at: number;
    }[],
  ): ReadonlyMap<string, string> | null {
    let declared: Map<string, string> | null = null;
    for (const { name, start, stop, at } of written) {
      if (name !== "xmlns" && !name.startsWith("xmlns:")) continue;
      const prefix = name === "xmlns" ? "" : name.slice(6);
      const uri = UTF8.decode(this.#b.subarray(start, stop));
      declared ??= new Map();
      if (declared.has(prefix)) this.#fail(`the attribute ${name} comes twice`, at);
      const wrong = prefix === "xmlns" || uri === XMLNS_URI || (prefix === "xml") !== (uri === XML_URI);
      if (wrong || (prefix !== "" && uri === "")) this.#fail(`${name} may not be ${JSON.stringify(uri)}`, at);
      declared.set(prefix, uri);
    }
    return declared;
  }

  #resolved(name: string, element: boolean): readonly [string, string] {
    const colon = name.indexOf(":");
    const prefix = colon < 0 ? "" : name.slice(0, colon);
    const local = colon < 0 ? name : name.slice(colon + 1);
    // An attribute without prefix is of no namespace.
    if (prefix === "" && !element) return ["", local];
    if (prefix === "xml") return [XML_URI, local];
    for (let i = this.#scopes.length - 1; i >= 0; i--) {
      const uri = this.#scopes[i]!.declared?.get(prefix);
      if (uri !== undefined) return [uri, local];
    }
    return prefix === "" ? ["", local] : this.#fail(`the prefix ${prefix} is of no namespace`);
  }

  #close(): number {
    const at = this.#at;
    this.#at += 2;
    const name = this.#name();
    this.#blanks();
    if (!this.#looksAt(">")) this.#fail("> is wanted");
    this.#at++;
    const open = this.#scopes.pop();
    if (open?.name !== name)
      this.#fail(`</${name}> closes ${open === undefined ? "nothing" : `<${open.name}>`}`, at);
    return TOKEN.close;
  }
}

/** The character of a numeric reference, -1: there is none that XML allows. */
function numbered(digits: string): number {
  if (!/^(x0*[0-9a-fA-F]{1,6}|0*[0-9]{1,7})$/.test(digits)) return -1;
  const code = digits.startsWith("x") ? Number.parseInt(digits.slice(1), 16) : Number(digits);
  const allowed =
    code === 9 ||
    code === 10 ||
    code === 13 ||
    (code >= 0x20 && code <= 0xd7ff) ||
    (code >= 0xe000 && code <= 0xfffd) ||
    (code >= 0x10000 && code <= 0x10ffff);
  return allowed ? code : -1;
}
