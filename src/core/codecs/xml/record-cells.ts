/**
 * One XML document into the cells of its nodes (cell-memory.ts). A column is found by its name: that of an element, `@name`
 * an attribute, `#text` the text of the element itself. With a prefix (`x:name`) it is of the namespace that the prefix stands
 * for in the configuration, whatever the document calls it; without one it is of any namespace that has no prefix there. A
 * list takes every element of its name, one or many. What the schema does not have, what comes twice where there is room for
 * one, and text where none is wanted refuse the record: it would be lost.
 */
import { isReserved } from "../../types/reserved.ts";
import { typeText } from "../../types/type-text.ts";
import { CELL, type CellMemory, type CellNode, FORM } from "../cell-memory.ts";
import type { DecodeCode } from "../record-codec.ts";
import type { RecordReader } from "../text-records.ts";
import { type Attribute, TOKEN, XmlError, XmlTokens } from "./tokens.ts";

const XSI = "http://www.w3.org/2001/XMLSchema-instance";
const SHOWN_CHARS = 60;

export interface XmlRules {
  /** What becomes of elements, attributes and text that the schema does not have. */
  readonly unknown: "reject" | "ignore";
  /** Namespaces of the schema's names, by URI: their prefix. */
  readonly prefixes: ReadonlyMap<string, string>;
  /** Of metadata columns: no element of a record may begin with it. Null: none is reserved. */
  readonly reserved: string | null;
  /** Of elements within each other, the outermost included; deeper ones refuse the record. */
  readonly maxDepth: number;
}

/** The record is refused, or its cells have no room (`full`). */
class Refusal {
  readonly code: DecodeCode;
  readonly reason: string;
  readonly full: CellNode | null;

  constructor(code: DecodeCode, reason: string, full: CellNode | null = null) {
    this.code = code;
    this.reason = reason;
    this.full = full;
  }
}

/** An element of a struct that is being read. */
interface Frame {
  readonly node: CellNode;
  /** Namespace under which each child was met; absent: it was not. */
  readonly met: Map<number, string>;
  /** Cells of children that are lists, and how many items they have. */
  readonly lists: Map<number, { readonly cell: number; count: number }>;
}

export class XmlCells implements RecordReader {
  readonly #memory: CellMemory;
  readonly #rules: XmlRules;
  readonly #tokens: XmlTokens;
  code: DecodeCode = "decode.syntax";
  path = "";
  reason = "";
  full: CellNode | null = null;
  readonly #steps: string[] = [];

  constructor(memory: CellMemory, rules: XmlRules) {
    this.#memory = memory;
    this.#rules = rules;
    this.#tokens = new XmlTokens(rules.maxDepth);
  }

  read(from: number, to: number, spareAt: number): number {
    const m = this.#memory;
    this.full = null;
    this.path = "";
    this.#steps.length = 0;
    m.keep();
    try {
      this.#tokens.begin(m.textBytes, from, to, spareAt);
      while (this.#tokens.next() !== TOKEN.open);
      this.#push(m.nodes[0]!, 1);
      this.#struct(m.nodes[0]!);
      while (this.#tokens.next() !== TOKEN.end);
      return this.#tokens.spareAt;
    } catch (e) {
      m.restore();
      if (e instanceof Refusal) {
        this.code = e.code;
        this.reason = e.reason;
        this.full = e.full;
      } else if (e instanceof XmlError) {
        this.code = e.code;
        this.reason = e.message;
      } else throw e;
      this.path = this.#steps.join(".");
      return -1;
    }
  }

  #push(node: CellNode, start: number, stop = 0): void {
    if (!this.#memory.push(node, start, stop)) throw new Refusal("decode.size", "no room", node);
  }

  /** A null cell, and of a struct one in each of its members. */
  #absent(node: CellNode, cause: number): void {
    this.#push(node, cause, cause);
    if (node.form === FORM.struct) for (const child of node.children) this.#absent(child, cause);
  }

  #refuse(code: DecodeCode, reason: string, step?: string): never {
    if (step !== undefined) this.#steps.push(step);
    throw new Refusal(code, reason);
  }

  /** The element at hand, up to its end. Its own cell is there. */
  #struct(node: CellNode): void {
    const lists: Frame["lists"] = new Map();
    for (const [i, child] of node.children.entries()) {
      if (child.form !== FORM.list) continue;
      lists.set(i, { cell: this.#memory.used(child), count: 0 });
      this.#push(child, 0);
    }
    const frame: Frame = { node, met: new Map(), lists };
    for (const a of this.#tokens.attributes) this.#attribute(frame, a);
    this.#content(frame);
    for (const [i, child] of node.children.entries()) {
      if (frame.met.has(i) || child.form === FORM.list) continue;
      if (!child.nullable) this.#refuse("decode.null", "missing, and the field is required", child.name);
      this.#absent(child, CELL.missing);
    }
    for (const [i, { cell, count }] of lists) this.#memory.setCell(node.children[i]!, cell, count);
  }

  #content(frame: Frame): void {
    const t = this.#tokens;
    const own = frame.node.keys.get("#text");
    const pieces: [number, number][] = [];
    for (let token = t.next(); token !== TOKEN.close; token = t.next()) {
      if (token === TOKEN.open) this.#element(frame);
      else if (own !== undefined) pieces.push([t.start, t.stop]);
      else if (!this.#isBlank(t.start, t.stop) && this.#rules.unknown === "reject")
        this.#refuse(
          "decode.unknown_field",
          `text beside elements: ${this.#shown(t.start, t.stop)}`,
          "#text",
        );
    }
    if (own === undefined) return;
    const [start, stop] = this.#joined(pieces);
    frame.met.set(own, "");
    this.#leaf(frame.node.children[own]!, start, stop);
  }

  #nameOf(uri: string, local: string): string {
    const prefix = this.#rules.prefixes.get(uri);
    return prefix === undefined ? local : `${prefix}:${local}`;
  }

  #attribute(frame: Frame, { uri, local, start, stop }: Attribute): void {
    if (uri === XSI) return;
    const name = `@${this.#nameOf(uri, local)}`;
    const i = frame.node.keys.get(name);
    if (i === undefined) {
      if (this.#rules.unknown === "reject")
        this.#refuse("decode.unknown_field", `the schema has no attribute ${JSON.stringify(name.slice(1))}`);
      return;
    }
    this.#once(frame, i, uri, name);
    this.#leaf(frame.node.children[i]!, start, stop);
  }

  /** One name of one namespace, and once, unless it is a list. */
  #once(frame: Frame, i: number, uri: string, name: string): void {
    const before = frame.met.get(i);
    if (before !== undefined && before !== uri)
      this.#refuse(
        "decode.duplicate_key",
        `it is of two namespaces, ${JSON.stringify(before)} and ${JSON.stringify(uri)}`,
        name,
      );
    if (before !== undefined && frame.node.children[i]!.form !== FORM.list)
      this.#refuse("decode.duplicate_key", "it comes twice, and the column is no list", name);
    frame.met.set(i, uri);
  }

  #element(frame: Frame): void {
    const { uri, local } = this.#tokens;
    const name = this.#nameOf(uri, local);
    const i = frame.node.keys.get(name);
    if (i === undefined) return this.#unknown(name);
    this.#once(frame, i, uri, name);
    const child = frame.node.children[i]!;
    const list = frame.lists.get(i);
    this.#steps.push(list === undefined ? name : `${name}[${list.count}]`);
    if (list !== undefined) list.count++;
    this.#value(list === undefined ? child : child.children[0]!);
    this.#steps.pop();
  }

  #unknown(name: string): void {
    const { unknown, reserved } = this.#rules;
    if (reserved !== null && isReserved(name, reserved))
      this.#refuse(
        "decode.reserved",
        `the element ${JSON.stringify(name)} begins with ${reserved}, which is ours`,
      );
    if (unknown === "reject")
      this.#refuse(
        "decode.unknown_field",
        `the schema has no element ${JSON.stringify(name.slice(0, SHOWN_CHARS))}`,
      );
    for (let depth = 1; depth > 0; ) {
      const token = this.#tokens.next();
      if (token === TOKEN.open) depth++;
      else if (token === TOKEN.close) depth--;
    }
  }

  #value(node: CellNode): void {
    const t = this.#tokens;
    const nil = t.attributes.find((a) => a.uri === XSI && a.local === "nil");
    if (nil !== undefined && /^\s*(true|1)\s*$/.test(this.#text(nil.start, nil.stop))) return this.#nil(node);
    if (node.form === FORM.struct) {
      this.#push(node, 1);
      return this.#struct(node);
    }
    this.#noAttributes((name) => `the schema has no attribute ${name}`);
    const pieces: [number, number][] = [];
    for (let token = t.next(); token !== TOKEN.close; token = t.next()) {
      if (token === TOKEN.open)
        this.#refuse("decode.type", `it has elements, and ${typeText(node.type)} is wanted`);
      pieces.push([t.start, t.stop]);
    }
    const [start, stop] = this.#joined(pieces);
    this.#leaf(node, start, stop);
  }

  #noAttributes(reason: (name: string) => string): void {
    if (this.#rules.unknown !== "reject") return;
    const own = this.#tokens.attributes.find((a) => a.uri !== XSI);
    if (own !== undefined)
      this.#refuse("decode.unknown_field", reason(JSON.stringify(this.#nameOf(own.uri, own.local))));
  }

  /** A cell that is null has no room for attributes either. */
  #nil(node: CellNode): void {
    this.#noAttributes((name) => `it is nil, and has the attribute ${name}`);
    if (this.#tokens.next() !== TOKEN.close) this.#refuse("decode.type", "it is nil, and has content");
    if (!node.nullable) this.#refuse("decode.null", "nil, and the field is required");
    this.#absent(node, CELL.null);
  }

  /** Blanks around everything but text are not part of the value; nothing at all is null there. */
  #leaf(node: CellNode, start: number, stop: number): void {
    if (node.type.id === "utf8") return this.#push(node, start, stop);
    const b = this.#memory.textBytes;
    let from = start;
    let to = stop;
    while (from < to && b[from]! <= 32) from++;
    while (to > from && b[to - 1]! <= 32) to--;
    if (from < to) return this.#push(node, from, to);
    if (!node.nullable) this.#refuse("decode.null", "empty, and the field is required");
    this.#push(node, CELL.null, CELL.null);
  }

  #joined(pieces: readonly (readonly [number, number])[]): readonly [number, number] {
    if (pieces.length === 1) return pieces[0]!;
    const t = this.#tokens;
    const start = t.spareAt;
    for (const [from, to] of pieces) {
      this.#memory.textBytes.copyWithin(t.spareAt, from, to);
      t.spareAt += to - from;
    }
    return [start, t.spareAt];
  }

  #isBlank(start: number, stop: number): boolean {
    const b = this.#memory.textBytes;
    for (let i = start; i < stop; i++) if (b[i]! > 32) return false;
    return true;
  }

  #text(start: number, stop: number): string {
    return new TextDecoder().decode(this.#memory.textBytes.subarray(start, stop));
  }

  #shown(start: number, stop: number): string {
    return JSON.stringify(this.#text(start, Math.min(stop, start + SHOWN_CHARS)).trim());
  }
}
