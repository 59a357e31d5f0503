/**
 * A plan and the slots of its columns to the text of one function: payloads in, rows of columns out. All arrays are
 * local variables, there is no call for what is common, and no object for a record. Names in the text:
 *
 *   bytes src p end   the payloads, a view of them, position, end of the payload
 *   from              where the value begins; without `starts` one follows the other
 *   t                 row of the table; r7: row of the items of list 7, c7: how many there is room for
 *   i7 u7             words or bytes of slot 7; d7 w7 o7: bytes, a view of them, offsets; v7 z7: validity, its nulls
 *   x l h             the number just read: small, or as two words
 *
 * `break run` ends the function at a payload that does not fit; rows that it began are taken back (`rollBack`), and the
 * reader of Values says what was wrong.
 */

import { storeScalar } from "./generate-scalar.ts";
import type { Layout, Slot } from "./layout.ts";
import type { Plan, RecordPlan, Scalar } from "./plan.ts";
import { decimalLimit, MOST_EMPTY } from "./runtime.ts";

/** Where emitted code reads: the payload, or a field's default. */
export interface Source {
  readonly bytes: string;
  readonly view: string;
  readonly p: string;
  readonly end: string;
}

/** Parts that the text names by number. */
export interface Pieces {
  /** Values that become text by way of the reader of Values, and how deep they are. */
  readonly spelled: { readonly plan: Plan; readonly depth: number }[];
  readonly skipped: { readonly plan: Plan; readonly depth: number }[];
  readonly limits: Uint32Array[];
  readonly symbols: (Uint8Array | null)[][];
  readonly defaults: Uint8Array[];
}

export interface Generated {
  readonly text: string;
  readonly pieces: Pieces;
}

export function generate(plan: Plan, layout: Layout): Generated {
  return new Generator(layout).all(plan);
}

/** Wider tables are read by several functions: the engine leaves long ones as they are, at a tenth of the speed. */
const MOST_SLOTS_IN_ONE = 64;
/** Lines of such a function, at which it ends. */
const LINES = 400;

const PAYLOAD: Source = { bytes: "bytes", view: "src", p: "p", end: "end" };

export class Generator {
  readonly pieces: Pieces = { spelled: [], skipped: [], limits: [], symbols: [], defaults: [] };
  readonly #layout: Layout;
  readonly #lines: string[] = [];
  readonly #parts: string[] = [];
  readonly #isWide: boolean;
  source: Source = PAYLOAD;

  constructor(layout: Layout) {
    this.#layout = layout;
    this.#isWide = layout.slots.length > MOST_SLOTS_IN_ONE;
  }

  add(...lines: string[]): void {
    this.#lines.push(...lines);
  }

  all(plan: Plan): Generated {
    this.#table(plan);
    const body = this.#lines.splice(0).join("\n");
    const { slots } = this.#layout;
    const lists = slots.filter((s) => s.form === "list");
    const lets = slots.map((s) => load(s));
    for (const s of lists) lets.push(`let r${s.id} = B.slots[${s.id}].child.rows, c${s.id} = r${s.id};`);
    const sync = slots.map(
      (s) =>
        `B.slots[${s.id}].rows = ${rowsOf(s)}; ${s.canBeNull ? `B.slots[${s.id}].validity.nulls = z${s.id};` : ""}`,
    );
    const shared = ["const src = R.view(bytes), limit = bytes.length;", "let acc = 0, empty = 0;", ...lets];
    const loop = `let n = first, p = B.at, from = p, end = B.end, t = B.rows, x = 0, l = 0, h = 0;
run: for (; n < count; n++, t++) {
if (starts !== null) { p = starts[n]; end = ends[n]; }
from = p; empty = 0;
${body}
if (starts !== null && p !== end) break run;
from = p;
}
if (n < count) {
${rollBack(slots).join("\n")}
}
${sync.join("\n")}
B.rows = t; B.at = from;
R.seen |= acc;
return n;`;
    const text = this.#parts.length === 0 ? inOne(shared, loop) : inParts(shared, this.#parts, loop);
    return { text, pieces: this.pieces };
  }

  /** A record's fields are the columns; any other value is one. */
  #table(plan: Plan): void {
    const { roots } = this.#layout;
    if (plan.op === "record") this.#fields(plan, roots, "t", 1);
    else this.value(plan, roots[0]!, "t", 0);
  }

  /** Code that reads a value by the plan into row `row` of the slot. */
  value(plan: Plan, slot: Slot, row: string, depth: number): void {
    switch (plan.op) {
      case "fault":
        this.add("break run;");
        break;
      case "null":
        this.nothing(slot, row);
        break;
      case "scalar":
        storeScalar(this, plan.wire, plan.reader, slot, row);
        break;
      case "enum":
        this.#symbol(plan.symbols, slot, row);
        break;
      case "array":
        this.#items(plan.least, slot, row, (item, at) => this.value(plan.items, item, at, depth + 1));
        break;
      case "map":
        this.#entries(plan, slot, row, depth);
        break;
      case "record":
        if (slot.type.id === "json") this.spelled(plan, slot, row, depth);
        else this.#fields(plan, slot.children, row, depth + 1);
        break;
      case "union":
        this.#branches(plan.branches, (branch) => this.value(branch, slot, row, depth));
        break;
      case "branch":
        for (const [i, member] of slot.children.entries()) if (i !== plan.member) this.nothing(member, row);
        this.value(plan.plan, slot.children[plan.member]!, row, depth);
    }
  }

  #fields(plan: RecordPlan, slots: readonly Slot[], row: string, depth: number): void {
    const isSplit = this.#isWide && this.source === PAYLOAD;
    let from = this.#lines.length;
    for (const { field, plan: inner } of plan.steps) {
      if (field === null) this.#skip(inner, depth);
      else this.value(inner, slots[field]!, row, depth);
      if (isSplit && this.#lines.length - from > LINES) from = this.#apart(from);
    }
    for (const { field, bytes, plan: inner } of plan.defaults) {
      const k = this.pieces.defaults.push(bytes) - 1;
      const outer = this.source;
      this.source = { bytes: `K${k}`, view: `V${k}`, p: `p${k}`, end: `K${k}.length` };
      this.add(`{ let p${k} = 0;`);
      this.value(inner, slots[field]!, row, depth);
      this.add("}");
      this.source = outer;
    }
  }

  /** Code from line `from` on becomes a function of its own; gives where code goes on. */
  #apart(from: number): number {
    const body = this.#lines.splice(from).join("\n");
    const k = this.#parts.length;
    this.#parts.push(`function part${k}(p, end, t) {
let x = 0, l = 0, h = 0;
run: {
${body}
return p;
}
return -1;
}`);
    this.add(`p = part${k}(p, end, t); if (p < 0) break run;`);
    return this.#lines.length;
  }

  /** A null in the slot and all that is in it. */
  nothing(slot: Slot, row: string): void {
    const { id } = slot;
    if (slot.form === "bytes") this.add(`o${id}[${row} + 1] = o${id}[${row}];`);
    else if (slot.form === "list") this.add(`o${id}[${row} + 1] = r${id};`);
    else if (slot.form === "bool") this.add(`u${id}[${row} >> 3] &= ~(1 << (${row} & 7));`);
    else if (slot.form === "struct") for (const c of slot.children) this.nothing(c, row);
    else this.#zero(slot, row);
    this.add(`v${id}[${row} >> 3] &= ~(1 << (${row} & 7)); z${id}++;`);
  }

  #zero({ id, type }: Slot, row: string): void {
    const words = wordsOf(type);
    if (words === null) {
      const n = type.id === "fixed" ? type.bytes : 0;
      if (n > 0) this.add(`u${id}.fill(0, ${n} * ${row}, ${n} * ${row} + ${n});`);
    } else for (let w = 0; w < words; w++) this.add(`i${id}[${words} * ${row} + ${w}] = 0;`);
  }

  /** A varint of 32 bits to `x`. */
  int(): void {
    const { bytes, p, end } = this.source;
    this.add(
      `if (${p} >= ${end}) break run;`,
      `x = ${bytes}[${p}];`,
      `if (x < 128) { ${p}++; x = (x >>> 1) ^ -(x & 1); }`,
      `else { ${p} = long(${bytes}, ${p}, ${end}, W, 0); x = W[0]; if (${p} < 0 || W[1] !== x >> 31) break run; }`,
    );
  }

  /** A varint of 64 bits to `l` and `h`. */
  long(): void {
    const { bytes, p, end } = this.source;
    this.add(
      `if (${p} >= ${end}) break run;`,
      `x = ${bytes}[${p}];`,
      `if (x < 128) { ${p}++; l = (x >>> 1) ^ -(x & 1); h = l >> 31; }`,
      `else { ${p} = long(${bytes}, ${p}, ${end}, W, 0); if (${p} < 0) break run; l = W[0]; h = W[1]; }`,
    );
  }

  /** Length of what follows to `x`; all of it is there. */
  length(): void {
    const { p, end } = this.source;
    this.int();
    this.add(`if (x < 0 || x > ${end} - ${p}) break run;`);
  }

  /** `n` bytes are there. */
  need(n: string | number): void {
    const { p, end } = this.source;
    this.add(`if (${end} - ${p} < ${n}) break run;`);
  }

  /** Copies `x` bytes into the slot. */
  copy({ id, type }: Slot, row: string): void {
    const { bytes, view, p, end } = this.source;
    const isText = type.id === "utf8";
    const limit = bytes === "bytes" ? "limit" : end;
    if (isText) this.add(`if (careful && !R.utf8(${bytes}, ${p}, x)) break run;`);
    this.add(
      `h = o${id}[${row}]; o${id}[${row} + 1] = h + x;`,
      `if (h + x + 4 > d${id}.length) { d${id} = R.room(B.slots[${id}], ${row}, x); w${id} = R.view(d${id}); }`,
      `if (x < 64 && ${p} + x + 4 <= ${limit}) {`,
      `for (l = ${p} + x; ${p} < l; ${p} += 4, h += 4) { x = ${view}.getInt32(${p}, true); ${isText ? "acc |= x; " : ""}w${id}.setInt32(h, x, true); }`,
      `${p} = l;`,
      `} else { R.copy(${bytes}, ${p}, x, d${id}, h); ${p} += x; ${isText ? "acc = -1; " : ""}}`,
    );
  }

  /** Bytes in the variable `text` into the slot. */
  text({ id }: Slot, row: string): void {
    this.add(
      `h = o${id}[${row}]; o${id}[${row} + 1] = h + text.length;`,
      `if (h + text.length > d${id}.length) { d${id} = R.room(B.slots[${id}], ${row}, text.length); w${id} = R.view(d${id}); }`,
      `for (x = 0; x < text.length; x++) d${id}[h + x] = text[x];`,
    );
  }

  #symbol(symbols: readonly (string | null)[], slot: Slot, row: string): void {
    const utf8 = new TextEncoder();
    const k = this.pieces.symbols.push(symbols.map((s) => (s === null ? null : utf8.encode(s)))) - 1;
    this.int();
    this.add(`if (x < 0 || x >= ${symbols.length}) break run;`, `{ const text = E[${k}][x];`);
    if (symbols.includes(null)) this.add("if (text === null) break run;");
    this.text(slot, row);
    this.add("}");
  }

  #branches(branches: readonly Plan[], each: (branch: Plan) => void): void {
    this.int();
    this.add("switch (x) {");
    for (const [i, b] of branches.entries()) {
      this.add(`case ${i}: {`);
      each(b);
      this.add("break; }");
    }
    this.add("default: break run; }");
  }

  /** Blocks of items, until one of none. */
  #items(least: number, slot: Slot, row: string, item: (slot: Slot, row: string) => void): void {
    const { id } = slot;
    const { p, end } = this.source;
    this.add("for (;;) {");
    this.int();
    this.add("if (x === 0) break;", "let k = x, stop = -1;", "if (k < 0) {", "k = -k;");
    this.length();
    this.add(`stop = ${p} + x; }`);
    // -2^31 stays what it is.
    this.add("if (k < 0) break run;");
    if (least === 0) this.add(`empty += k; if (empty > ${MOST_EMPTY}) break run;`);
    else this.add(`if (k > (${end} - ${p}) / ${least}) break run;`);
    this.add(
      `if (r${id} + k > c${id}) {`,
      `c${id} = R.reserve(B.slots, ${id}, r${id}, k);`,
      ...this.#layout.slots.filter((s) => s.dimension === id).map((s) => reload(s)),
      "}",
      `for (; k > 0; k--, r${id}++) {`,
    );
    item(slot.children[0]!, `r${id}`);
    this.add("}", `if (stop >= 0 && ${p} !== stop) break run;`, "}", `o${id}[${row} + 1] = r${id};`);
  }

  #entries(plan: Extract<Plan, { op: "map" }>, slot: Slot, row: string, depth: number): void {
    const { id } = slot;
    const [key, value] = slot.children[0]!.children as readonly [Slot, Slot];
    this.#items(plan.least, slot, row, (_, at) => {
      this.length();
      this.copy(key, at);
      this.value(plan.values, value, at, depth + 1);
    });
    this.add(
      `if (r${id} - o${id}[${row}] > 1 && R.twice(o${key.id}, d${key.id}, o${id}[${row}], r${id})) break run;`,
    );
  }

  spelled(plan: Plan, slot: Slot, row: string, depth: number): void {
    const { bytes, p, end } = this.source;
    const k = this.pieces.spelled.push({ plan, depth }) - 1;
    this.add(
      `R.empty = empty; ${p} = R.spell(${k}, ${bytes}, ${p}, ${end}); if (${p} < 0) break run;`,
      "empty = R.empty;",
      "{ const text = R.spelled;",
    );
    this.text(slot, row);
    this.add("}");
  }

  #skip(plan: Plan, depth: number): void {
    const { bytes, p, end } = this.source;
    const wire = plan.op === "scalar" ? plan.wire : null;
    const size = wire === null ? null : fixedSize(wire);
    if (plan.op === "null") return;
    if (size !== null) {
      this.need(size);
      this.add(`${p} += ${size};`);
    } else if (wire?.kind === "int") this.int();
    else if (wire?.kind === "long") this.long();
    else if (wire?.kind === "string" || wire?.kind === "bytes") {
      this.length();
      this.add(`${p} += x;`);
    } else {
      const k = this.pieces.skipped.push({ plan, depth }) - 1;
      this.add(`${p} = R.skip(${k}, ${bytes}, ${p}, ${end}); if (${p} < 0) break run;`);
    }
  }

  limit(precision: number): string {
    return `L[${this.pieces.limits.push(decimalLimit(precision)) - 1}]`;
  }
}

const CONSTANTS = `"use strict"; const W = R.words, long = R.long;`;

/** Everything is a local variable. */
function inOne(shared: readonly string[], loop: string): string {
  return `${CONSTANTS}
return function decode(B, bytes, starts, ends, first, count, careful) {
${shared.join("\n")}
${loop}
};`;
}

/** Arrays belong to the call, and its parts see them. */
function inParts(shared: readonly string[], parts: readonly string[], loop: string): string {
  const names = shared.flatMap((line) => [...line.matchAll(/(?:let|const|,) ?(\w+) =/g)].map((m) => m[1]!));
  const set = shared.map((line) => line.replace(/\b(?:let|const) /g, ""));
  return `${CONSTANTS}
let B, bytes, careful, ${names.join(", ")};
${parts.join("\n")}
return function decode(B_, bytes_, starts, ends, first, count, careful_) {
B = B_; bytes = bytes_; careful = careful_;
${set.join("\n")}
${loop}
};`;
}

function fixedSize(wire: Scalar): number | null {
  if (wire.kind === "float") return 4;
  if (wire.kind === "double") return 8;
  return wire.kind === "fixed" ? wire.size : null;
}

/** Words of a row; null: bytes, by the type. */
export function wordsOf(type: Slot["type"]): 1 | 2 | 4 | null {
  switch (type.id) {
    case "int":
    case "float":
      return type.bits === 64 ? 2 : 1;
    case "date32":
      return 1;
    case "time64":
    case "timestamp":
      return 2;
    case "decimal":
    case "interval":
      return 4;
    default:
      return null;
  }
}

function rowsOf(slot: Slot): string {
  return slot.dimension === null ? "t" : `r${slot.dimension}`;
}

/** The variables of a slot, made anew after its builder has other arrays. */
function variables(slot: Slot): [string, string][] {
  const { id, form, type } = slot;
  const b = `B.slots[${id}]`;
  const out: [string, string][] = [];
  if (form === "fixed" && wordsOf(type) !== null) out.push([`i${id}`, `${b}.i32`]);
  else if (form === "fixed") out.push([`u${id}`, `${b}.u8`]);
  else if (form === "bool") out.push([`u${id}`, `${b}.bits`]);
  else if (form !== "struct") out.push([`o${id}`, `${b}.offsets`]);
  if (form === "bytes") out.push([`d${id}`, `${b}.data`], [`w${id}`, `R.view(d${id})`]);
  if (slot.canBeNull) out.push([`v${id}`, `${b}.validity.bits`]);
  return out;
}

function load(slot: Slot): string {
  const lets = variables(slot).map(([name, from]) => `let ${name} = ${from};`);
  if (slot.canBeNull) lets.push(`let z${slot.id} = B.slots[${slot.id}].validity.nulls;`);
  return lets.join(" ");
}

function reload(slot: Slot): string {
  return variables(slot)
    .map(([name, from]) => `${name} = ${from};`)
    .join(" ");
}

/** Takes back what the payload at fault began: lists say by their offsets where their items were before it. */
function rollBack(slots: readonly Slot[]): string[] {
  const lists = slots.filter((s) => s.form === "list");
  return [
    ...lists.map((s) => `const at${s.id} = r${s.id};`),
    // Outer lists come first, so that their rows are right for those within them.
    ...lists.map((s) => `r${s.id} = o${s.id}[${rowsOf(s)}];`),
    ...slots
      .filter((s) => s.canBeNull)
      .map((s) => {
        const now = s.dimension === null ? "t" : `at${s.dimension}`;
        return `z${s.id} -= R.heal(v${s.id}, ${rowsOf(s)}, ${now});`;
      }),
  ];
}
