/**
 * Reads JSON values by their place in the bytes, strictly by RFC 8259: what a value means is the reader's of its type.
 * A string's range is what stands between its quotes, unescaped into spare room where it has escapes.
 */

export const KIND = {
  none: 0,
  string: 1,
  number: 2,
  true: 3,
  false: 4,
  null: 5,
  object: 6,
  array: 7,
} as const;

/** Deeper values are refused: readers of what we write recurse. */
const MAX_DEPTH = 128;
/** Room for unescaped strings that is made at a time. */
const SPARE_BYTES = 1 << 16;
const UTF8 = new TextEncoder();

const isDigit = (c: number | undefined): boolean => c !== undefined && c >= 48 && c <= 57;

export class JsonCursor {
  bytes: Uint8Array = new Uint8Array(0);
  at = 0;
  end = 0;
  /** Range of the last value; of a string without its quotes. */
  start = 0;
  stop = 0;
  /** Range with quotes, as it stands in the source. */
  rawStart = 0;
  rawStop = 0;
  tooDeep = false;
  /** Where the next unescaped string goes. */
  spareAt = 0;

  begin(bytes: Uint8Array, spareAt: number): void {
    this.bytes = bytes;
    this.spareAt = spareAt;
  }

  /** Looks at [from, to); what was unescaped before stays where it is. */
  range(from: number, to: number): void {
    this.at = from;
    this.end = to;
    this.tooDeep = false;
  }

  blank(): void {
    const b = this.bytes;
    while (this.at < this.end) {
      const c = b[this.at];
      if (c !== 32 && c !== 9 && c !== 10 && c !== 13) return;
      this.at++;
    }
  }

  /** Takes one byte if it is this one. */
  take(c: number): boolean {
    if (this.at >= this.end || this.bytes[this.at] !== c) return false;
    this.at++;
    return true;
  }

  /** The value at the cursor; KIND.none: it is none. */
  value(): number {
    const c = this.at < this.end ? this.bytes[this.at]! : 0;
    this.rawStart = this.at;
    let kind: number;
    if (c === 34) kind = this.string() ? KIND.string : KIND.none;
    else if (c === 123 || c === 91) kind = this.#nested(c);
    else if (c === 116) kind = this.#word("true", KIND.true);
    else if (c === 102) kind = this.#word("false", KIND.false);
    else if (c === 110) kind = this.#word("null", KIND.null);
    else kind = this.#number() ? KIND.number : KIND.none;
    this.rawStop = this.at;
    if (kind !== KIND.string) {
      this.start = this.rawStart;
      this.stop = this.at;
    }
    return kind;
  }

  #word(word: string, kind: number): number {
    for (let i = 0; i < word.length; i++)
      if (this.at + i >= this.end || this.bytes[this.at + i] !== word.charCodeAt(i)) return KIND.none;
    this.at += word.length;
    return kind;
  }

  #number(): boolean {
    const b = this.bytes;
    let i = this.at;
    if (b[i] === 45) i++;
    // No digit may follow a leading zero.
    const whole = b[i] === 48 && i < this.end ? i + 1 : this.#digits(i);
    if (whole < 0) return false;
    i = whole;
    if (i < this.end && b[i] === 46) i = this.#digits(i + 1);
    if (i < 0) return false;
    if (i < this.end && (b[i] === 101 || b[i] === 69)) {
      const sign = b[i + 1] === 43 || b[i + 1] === 45 ? 1 : 0;
      i = this.#digits(i + 1 + sign);
    }
    if (i < 0) return false;
    this.at = i;
    return true;
  }

  /** Behind the digits at `from`; -1: there is none. */
  #digits(from: number): number {
    let i = from;
    while (i < this.end && isDigit(this.bytes[i])) i++;
    return i === from ? -1 : i;
  }

  /** From the opening quote to behind the closing one. */
  string(): boolean {
    const b = this.bytes;
    const { end } = this;
    const from = this.at + 1;
    let i = from;
    for (; i < end; i++) {
      const c = b[i]!;
      if (c === 34) {
        this.start = from;
        this.stop = i;
        this.at = i + 1;
        return true;
      }
      if (c === 92) return this.#escaped(from, i);
      if (c < 32) return false;
    }
    return this.#cut();
  }

  /** The text ends within a string. */
  #cut(): false {
    this.at = this.end;
    return false;
  }

  #escaped(from: number, first: number): boolean {
    let close = first;
    for (; close < this.end && this.bytes[close] !== 34; close++) {
      if (this.bytes[close]! < 32) return false;
      if (this.bytes[close] === 92) close++;
    }
    if (close >= this.end) return this.#cut();
    this.#reserve(close - from);
    const b = this.bytes;
    const start = this.spareAt;
    let out = start;
    for (let i = from; i < close; i++) {
      if (b[i] !== 92) {
        b[out++] = b[i]!;
        continue;
      }
      const plain = SIMPLE_ESCAPES[b[++i]!] ?? -1;
      if (plain >= 0) b[out++] = plain;
      else {
        const taken = b[i] === 117 ? this.#unicode(i + 1, close, out) : 0;
        if (taken === 0) return false;
        i += taken;
        out = this.#after;
      }
    }
    this.start = start;
    this.stop = out;
    this.spareAt = out;
    this.at = close + 1;
    return true;
  }

  #after = 0;

  /** Four hexadecimal digits, or a pair of surrogates; how many bytes behind `\u` were taken, 0: it is no character. */
  #unicode(at: number, close: number, out: number): number {
    const high = this.#hex(at, close);
    if (high < 0 || (high >= 0xdc00 && high <= 0xdfff)) return 0;
    let code = high;
    let taken = 4;
    if (high >= 0xd800 && high <= 0xdbff) {
      const low = this.bytes[at + 4] === 92 && this.bytes[at + 5] === 117 ? this.#hex(at + 6, close) : -1;
      if (low < 0xdc00 || low > 0xdfff) return 0;
      code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
      taken = 10;
    }
    const { written } = UTF8.encodeInto(String.fromCodePoint(code), this.bytes.subarray(out));
    this.#after = out + written;
    return taken;
  }

  #hex(at: number, close: number): number {
    if (at + 4 > close) return -1;
    let n = 0;
    for (let i = at; i < at + 4; i++) {
      const c = this.bytes[i]!;
      const d = isDigit(c) ? c - 48 : (c | 32) >= 97 && (c | 32) <= 102 ? (c | 32) - 87 : -1;
      if (d < 0) return -1;
      n = n * 16 + d;
    }
    return n;
  }

  #reserve(more: number): void {
    const need = this.spareAt + more + 4;
    if (need <= this.bytes.length) return;
    const grown = new Uint8Array(need + SPARE_BYTES);
    grown.set(this.bytes.subarray(0, this.spareAt));
    this.bytes = grown;
  }

  /** Skips an object or array, by its grammar. */
  #nested(open: number, depth = 1): number {
    if (depth > MAX_DEPTH) {
      this.tooDeep = true;
      return KIND.none;
    }
    const close = open === 123 ? 125 : 93;
    this.at++;
    this.blank();
    const kind = open === 123 ? KIND.object : KIND.array;
    if (this.take(close)) return kind;
    for (;;) {
      if (open === 123) {
        if (this.bytes[this.at] !== 34 || !this.#skipString()) return KIND.none;
        this.blank();
        if (!this.take(58)) return KIND.none;
        this.blank();
      }
      if (!this.#skip(depth)) return KIND.none;
      this.blank();
      if (this.take(close)) return kind;
      if (!this.take(44)) return KIND.none;
      this.blank();
    }
  }

  #skip(depth: number): boolean {
    const c = this.at < this.end ? this.bytes[this.at]! : 0;
    if (c === 34) return this.#skipString();
    if (c === 123 || c === 91) return this.#nested(c, depth + 1) !== KIND.none;
    if (c === 116) return this.#word("true", 1) !== 0;
    if (c === 102) return this.#word("false", 1) !== 0;
    return c === 110 ? this.#word("null", 1) !== 0 : this.#number();
  }

  /** A string is read whole, so that a bad escape is found; what was unescaped is forgotten. */
  #skipString(): boolean {
    const spare = this.spareAt;
    const good = this.string();
    this.spareAt = spare;
    return good;
  }
}

/** Of the byte behind a backslash. */
const SIMPLE_ESCAPES: Readonly<Record<number, number>> = {
  34: 34,
  92: 92,
  47: 47,
  98: 8,
  102: 12,
  110: 10,
  114: 13,
  116: 9,
};
