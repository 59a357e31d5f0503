/**
 * Patterns of topic names, matched in time linear in the name: an automaton whose states are followed all at once, so
 * no pattern can make it go back and try again.
 *
 *   alternation  a|b        group  (a) (?:a)     any  .        class  [a-z0-9_] [^.] \d \w \s \D \W \S
 *   repetition   ? * + {2} {2,} {2,5}, lazy ones too, which match the same names        escape  \. \- and the like
 *
 * The whole name must match, as with Kafka's own client; ^ at the start and $ at the end change nothing. What needs
 * going back (references, looking around, possessive groups) is refused.
 */

/** A pattern that can't be used: what is wrong, and at which of its characters, from 0. */
export class PatternError extends Error {
  readonly at: number;

  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

/** Topic names are ASCII; one flag per character code. */
type CharSet = Uint8Array;

type Node =
  | { readonly t: "set"; readonly set: CharSet }
  | { readonly t: "all"; readonly parts: readonly Node[] }
  | { readonly t: "any"; readonly options: readonly Node[] }
  | { readonly t: "repeat"; readonly of: Node; readonly min: number; readonly max: number };

/** `set`: takes one character and goes to the next state. `fork`: goes to both. */
type State =
  | { readonly t: "set"; readonly set: CharSet; readonly next: number }
  | { readonly t: "fork"; readonly to: readonly number[] }
  | { readonly t: "end" };

const CODES = 128;
/** Of a pattern: far above what a person writes. */
const MAX_LENGTH = 1000;
/** Longest topic name; a repetition beyond it matches nothing more. */
const MAX_REPEAT = 249;
/** Bounds the work per name: states times characters. */
const MAX_STATES = 4000;
const MAX_DEPTH = 50;
/** Well before the marks of 32 bits, of one round a character, begin anew. */
const MAX_ROUND = 2 ** 31;

function setOf(has: (code: number) => boolean): CharSet {
  return Uint8Array.from({ length: CODES }, (_, code) => Number(has(code)));
}

const isDigit = (c: number) => c >= 48 && c <= 57;
const isWord = (c: number) => isDigit(c) || (c >= 65 && c <= 90) || (c >= 97 && c <= 122) || c === 95;
const isSpace = (c: number) => c === 32 || (c >= 9 && c <= 13);

const ANY = setOf(() => true);
const CLASSES: ReadonlyMap<string, CharSet> = new Map([
  ["d", setOf(isDigit)],
  ["D", setOf((c) => !isDigit(c))],
  ["w", setOf(isWord)],
  ["W", setOf((c) => !isWord(c))],
  ["s", setOf(isSpace)],
  ["S", setOf((c) => !isSpace(c))],
]);

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  parse(): Node {
    const node = this.#alternatives();
    if (this.#at < this.#text.length) throw this.#error("no group is open here");
    return node;
  }

  #error(message: string, at = this.#at): PatternError {
    return new PatternError(message, at);
  }

  #peek(): string {
    return this.#text[this.#at] ?? "";
  }

  #take(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #alternatives(): Node {
    const options = [this.#sequence()];
    while (this.#take("|")) options.push(this.#sequence());
    return options.length === 1 ? options[0]! : { t: "any", options };
  }

  #sequence(): Node {
    const parts: Node[] = [];
    for (let c = this.#peek(); c !== "" && c !== "|" && c !== ")"; c = this.#peek()) {
      if (c === "^" || c === "$") this.#anchor(c);
      else parts.push(this.#repeated(this.#atom()));
    }
    return { t: "all", parts };
  }

  /** The whole name has to match anyhow; elsewhere than at its ends an anchor could never match. */
  #anchor(c: "^" | "$"): void {
    const at = this.#at++;
    const before = this.#text[at - 1] ?? "";
    const after = this.#peek();
    const isAtEnd = c === "^" ? ["", "(", "|", ":"].includes(before) : ["", ")", "|"].includes(after);
    if (!isAtEnd) throw this.#error(`'${c}' stands where no name ${c === "^" ? "begins" : "ends"}`, at);
    if (/[?*+{]/.test(after)) throw this.#error(`'${after}' repeats nothing`);
  }

  #atom(): Node {
    const at = this.#at;
    const c = this.#text[this.#at++]!;
    if (c === "(") return this.#group(at);
    if (c === "[") return { t: "set", set: this.#bracket(at) };
    if (c === ".") return { t: "set", set: ANY };
    if (c === "\\") return { t: "set", set: this.#escape() };
    if ("?*+{".includes(c)) throw this.#error(`'${c}' repeats nothing`, at);
    return { t: "set", set: this.#char(c, at) };
  }

  #char(c: string, at: number): CharSet {
    const code = c.charCodeAt(0);
    if (code >= CODES) throw this.#error("a topic name has only A-Z, a-z, 0-9, '.', '_' and '-'", at);
    return setOf((x) => x === code);
  }

  #group(at: number): Node {
    if (this.#peek() === "?" && !this.#take("?:")) {
      throw this.#error("groups that look around, have a name or flags are not taken, only ( and (?:", at);
    }
    if (++this.#depth > MAX_DEPTH) throw this.#error(`groups within more than ${MAX_DEPTH} others`, at);
    const node = this.#alternatives();
    this.#depth--;
    if (!this.#take(")")) throw this.#error("the group has no end", at);
    return node;
  }

  /** Behind the backslash. */
  #escape(): CharSet {
    const at = this.#at;
    const c = this.#text[this.#at++];
    if (c === undefined) throw this.#error("nothing follows the backslash", at - 1);
    const known = CLASSES.get(c);
    if (known !== undefined) return known;
    if (/[1-9]/.test(c)) throw this.#error("references to groups are not taken", at - 1);
    if (/[A-Za-z0]/.test(c)) throw this.#error(`the escape \\${c} is not known`, at - 1);
    return this.#char(c, at);
  }

  #bracket(open: number): CharSet {
    const isNegated = this.#take("^");
    const set = new Uint8Array(CODES);
    for (let first = true; ; first = false) {
      const at = this.#at;
      const c = this.#text[this.#at++];
      if (c === undefined) throw this.#error("the class has no end", open);
      if (c === "]" && !first) break;
      if (c === "]") throw this.#error("the class is empty", open);
      if (c === "[" || (c === "&" && this.#peek() === "&")) {
        throw this.#error(`'${c}' in a class is written \\${c}`, at);
      }
      this.#classPart(c, at, set);
    }
    return isNegated ? set.map((has) => 1 - has) : set;
  }

  #classPart(c: string, at: number, set: CharSet): void {
    const one = c === "\\" ? this.#escape() : this.#char(c, at);
    const isRange = this.#peek() === "-" && (this.#text[this.#at + 1] ?? "]") !== "]";
    if (!isRange) {
      for (let i = 0; i < CODES; i++) set[i]! |= one[i]!;
      return;
    }
    this.#at++;
    const endAt = this.#at;
    const e = this.#text[this.#at++]!;
    const last = e === "\\" ? this.#escape() : this.#char(e, endAt);
    const [from, to] = [single(one), single(last)];
    if (from < 0 || to < from) throw this.#error("the range has no first and last character in order", at);
    for (let i = from; i <= to; i++) set[i] = 1;
  }

  #repeated(of: Node): Node {
    const at = this.#at;
    const bounds = this.#bounds();
    if (bounds === null) return of;
    this.#take("?");
    if (/[?*+{]/.test(this.#peek())) throw this.#error(`'${this.#peek()}' follows another repetition`);
    const [min, max] = bounds;
    if (min > max) throw this.#error("the repetition ends below its start", at);
    if (min > MAX_REPEAT || (max !== Number.POSITIVE_INFINITY && max > MAX_REPEAT)) {
      throw this.#error(`a topic name has at most ${MAX_REPEAT} characters`, at);
    }
    return { t: "repeat", of, min, max };
  }

  #bounds(): readonly [min: number, max: number] | null {
    if (this.#take("?")) return [0, 1];
    if (this.#take("*")) return [0, Number.POSITIVE_INFINITY];
    if (this.#take("+")) return [1, Number.POSITIVE_INFINITY];
    if (this.#peek() !== "{") return null;
    const found = /^\{(\d{1,4})(?:(,)(\d{0,4}))?\}/.exec(this.#text.slice(this.#at));
    if (found === null)
      throw this.#error("'{' begins no repetition such as {2} or {2,5}; as itself it is \\{");
    this.#at += found[0].length;
    const min = Number(found[1]);
    if (found[2] === undefined) return [min, min];
    return [min, found[3] === "" ? Number.POSITIVE_INFINITY : Number(found[3])];
  }
}

/** The one character of the set, -1: it has more. */
function single(set: CharSet): number {
  const first = set.indexOf(1);
  return set.indexOf(1, first + 1) < 0 ? first : -1;
}

/** From the end to the start: each part knows where it goes on. */
class Compiler {
  readonly states: State[] = [{ t: "end" }];

  add(state: State): number {
    if (this.states.length >= MAX_STATES) throw new PatternError("the pattern repeats too much", 0);
    return this.states.push(state) - 1;
  }

  /** First state of what matches `node` and goes on at `next`. */
  compile(node: Node, next: number): number {
    switch (node.t) {
      case "set":
        return this.add({ t: "set", set: node.set, next });
      case "all":
        return node.parts.reduceRight((after, part) => this.compile(part, after), next);
      case "any":
        return this.add({ t: "fork", to: node.options.map((o) => this.compile(o, next)) });
      case "repeat":
        return this.#repeat(node.of, node.min, node.max, next);
    }
  }

  #repeat(of: Node, min: number, max: number, next: number): number {
    let at = next;
    if (max === Number.POSITIVE_INFINITY) {
      // The loop is known before what it repeats is, so that this can lead back to it.
      const loop = this.add({ t: "fork", to: [next] });
      this.states[loop] = { t: "fork", to: [this.compile(of, loop), next] };
      at = loop;
    } else {
      for (let i = min; i < max; i++) at = this.add({ t: "fork", to: [this.compile(of, at), next] });
    }
    for (let i = 0; i < min; i++) at = this.compile(of, at);
    return at;
  }
}

export class TopicPattern {
  readonly text: string;
  readonly #states: readonly State[];
  readonly #first: number;
  readonly #seen: Uint32Array;
  #round = 0;

  /** Throws PatternError. */
  constructor(text: string) {
    if (text.length > MAX_LENGTH) throw new PatternError(`more than ${MAX_LENGTH} characters`, MAX_LENGTH);
    const compiler = new Compiler();
    this.text = text;
    this.#first = compiler.compile(new Parser(text).parse(), 0);
    this.#states = compiler.states;
    this.#seen = new Uint32Array(compiler.states.length);
  }

  /** True if the whole name matches. */
  matches(name: string): boolean {
    if (this.#round > MAX_ROUND) {
      this.#seen.fill(0);
      this.#round = 0;
    }
    let now: number[] = [];
    this.#enter(this.#first, now, ++this.#round);
    for (let i = 0; i < name.length && now.length > 0; i++) {
      const code = name.charCodeAt(i);
      const next: number[] = [];
      const round = ++this.#round;
      for (const at of now) {
        const s = this.#states[at]!;
        if (s.t === "set" && s.set[code] === 1) this.#enter(s.next, next, round);
      }
      now = next;
    }
    return now.includes(0);
  }

  /** Adds a state and all that it forks to, each once a round. */
  #enter(state: number, into: number[], round: number): void {
    const open = [state];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (this.#seen[at] === round) continue;
      this.#seen[at] = round;
      const s = this.#states[at]!;
      if (s.t === "fork") open.push(...s.to);
      else into.push(at);
    }
  }
}
