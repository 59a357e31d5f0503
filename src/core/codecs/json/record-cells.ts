/**
 * One JSON record into the cells of its nodes (cell-memory.ts), by the strict grammar, with the reason where it is refused.
 * Keys that come twice, or that the schema does not know unless it was told to look over them, refuse the record:
 * whichever value were taken, the other would be lost.
 */

import { isReserved } from "../../types/reserved.ts";
import { excerpt } from "../../types/text-cells.ts";
import { typeText } from "../../types/type-text.ts";
import { CELL, type CellMemory, type CellNode, FORM } from "../cell-memory.ts";
import type { DecodeCode } from "../record-codec.ts";
import type { RecordReader } from "../text-records.ts";
import { JsonCursor, KIND } from "./cursor.ts";
import { fits } from "./fits.ts";

const SHOWN_CHARS = 60;
/** Of keys: a mark at their begin is a character of theirs. */
const TEXT = new TextDecoder("utf-8", { ignoreBOM: true });

export interface RecordRules {
  /** What becomes of keys that the schema does not have. */
  readonly unknown: "reject" | "ignore";
  /** Of metadata columns: no key of a record may begin with it. Null: none is reserved. */
  readonly reserved: string | null;
}

export class RecordCells implements RecordReader {
  readonly #memory: CellMemory;
  readonly #rules: RecordRules;
  readonly #cursor = new JsonCursor();
  /** Why the last record was refused. */
  code: DecodeCode = "decode.syntax";
  path = "";
  reason = "";
  /** The last record was not refused: the cells of this node have no room. */
  full: CellNode | null = null;
  #from = 0;

  constructor(memory: CellMemory, rules: RecordRules) {
    this.#memory = memory;
    this.#rules = rules;
  }

  /** Reads the record in [from, to) of the text; gives where unescaped strings end then, -1: it was refused. */
  read(from: number, to: number, spareAt: number): number {
    const c = this.#cursor;
    const m = this.#memory;
    c.begin(m.textBytes, spareAt);
    c.range(from, to);
    this.#from = from;
    this.path = "";
    this.full = null;
    m.keep();
    c.blank();
    const root = m.nodes[0]!;
    if (c.bytes[c.at] !== 123 || c.at >= to) return this.#refused(this.#noObject());
    if (!this.#item(root)) return this.#refused(false);
    c.blank();
    if (c.at !== to)
      return this.#refused(
        this.#fail("decode.trailing", `bytes behind the value, from byte ${c.at - from} on`),
      );
    return c.spareAt;
  }

  #refused(_: false): number {
    this.#memory.restore();
    return -1;
  }

  #fail(code: DecodeCode, reason: string): false {
    this.code = code;
    this.reason = reason;
    return false;
  }

  #noRoom(node: CellNode): false {
    this.full = node;
    return false;
  }

  #noObject(): false {
    const c = this.#cursor;
    if (c.at >= c.end) return this.#fail("decode.truncated", "the payload is empty");
    const kind = c.value();
    return kind === KIND.none
      ? this.#broken("no JSON value")
      : this.#fail("decode.type", `${this.#seen()} is no object`);
  }

  #broken(what: string): false {
    const c = this.#cursor;
    if (c.tooDeep) return this.#fail("decode.depth", "nested too deeply");
    if (c.at >= c.end)
      return this.#fail("decode.truncated", `it ends where ${what.replace(/^no /, "a ")} is wanted`);
    return this.#fail("decode.syntax", `${what} at byte ${c.at - this.#from}`);
  }

  #seen(): string {
    const c = this.#cursor;
    return excerpt(c.bytes, c.rawStart, Math.min(c.rawStop, c.rawStart + SHOWN_CHARS));
  }

  #within(step: string): false {
    this.path = this.path === "" || this.path.startsWith("[") ? step + this.path : `${step}.${this.path}`;
    return false;
  }

  #item(node: CellNode): boolean {
    const c = this.#cursor;
    if (node.form === FORM.leaf) return this.#leaf(node);
    if (c.bytes[c.at] === 110 && c.at < c.end) {
      if (c.value() === KIND.none) return this.#broken("no JSON value");
      return this.#null(node);
    }
    const open = node.form === FORM.list ? 91 : 123;
    if (c.at >= c.end || c.bytes[c.at] !== open) {
      if (c.value() === KIND.none) return this.#broken("no JSON value");
      return this.#fail("decode.type", `${this.#seen()} is no ${typeText(node.type)}`);
    }
    c.at++;
    if (node.form === FORM.struct)
      return this.#memory.push(node, 1) ? this.#struct(node) : this.#noRoom(node);
    const cell = this.#memory.used(node);
    if (!this.#memory.push(node, 0)) return this.#noRoom(node);
    const count = node.form === FORM.list ? this.#list(node) : this.#map(node);
    if (count < 0) return false;
    this.#memory.setCell(node, cell, count);
    return true;
  }

  #leaf(node: CellNode): boolean {
    const c = this.#cursor;
    const kind = c.value();
    if (kind === KIND.none) return this.#broken("no JSON value");
    if (kind === KIND.null) return this.#null(node);
    if (!fits(node.type, kind))
      return this.#fail("decode.type", `${this.#seen()} is no ${typeText(node.type)}`);
    const raw = node.type.id === "json";
    const pushed = this.#memory.push(node, raw ? c.rawStart : c.start, raw ? c.rawStop : c.stop);
    return pushed || this.#noRoom(node);
  }

  #null(node: CellNode): boolean {
    if (!node.nullable) return this.#fail("decode.null", "null, and the field is required");
    return this.#absent(node, CELL.null);
  }

  #absent(node: CellNode, cause: number): boolean {
    if (!this.#memory.push(node, cause, cause)) return this.#noRoom(node);
    return node.form !== FORM.struct || node.children.every((child) => this.#absent(child, cause));
  }

  /** Number of items; -1: refused. */
  #list(node: CellNode): number {
    const c = this.#cursor;
    const child = node.children[0]!;
    c.blank();
    for (let count = 0; ; count++) {
      if (count === 0 && c.take(93)) return 0;
      if (count > 0) {
        if (c.take(93)) return count;
        if (!c.take(44)) return Number(this.#broken("no comma or ]")) - 1;
        c.blank();
      }
      if (!this.#item(child)) return Number(this.#within(`[${count}]`)) - 1;
      c.blank();
    }
  }

  #struct(node: CellNode): boolean {
    const c = this.#cursor;
    const done = new Set<number>();
    c.blank();
    for (let first = true; !c.take(125); first = false) {
      const key = this.#key(first);
      if (key === null) return false;
      const i = node.keys.get(key);
      if (i === undefined) {
        if (!this.#unknown(key)) return false;
        continue;
      }
      if (done.has(i))
        return this.#fail("decode.duplicate_key", `the key ${JSON.stringify(key)} comes twice`);
      done.add(i);
      if (!this.#item(node.children[i]!)) return this.#within(key);
      c.blank();
    }
    for (const [i, child] of node.children.entries()) {
      if (done.has(i)) continue;
      if (!child.nullable) {
        this.#fail("decode.null", "missing, and the field is required");
        return this.#within(child.name);
      }
      if (!this.#absent(child, CELL.missing)) return false;
    }
    return true;
  }

  #unknown(key: string): boolean {
    const c = this.#cursor;
    const { unknown, reserved } = this.#rules;
    if (reserved !== null && isReserved(key, reserved))
      return this.#fail(
        "decode.reserved",
        `the key ${JSON.stringify(shown(key))} begins with ${reserved}, which is ours`,
      );
    if (unknown === "reject")
      return this.#fail("decode.unknown_field", `the schema has no ${JSON.stringify(shown(key))}`);
    if (c.value() === KIND.none) return this.#broken("no JSON value");
    c.blank();
    return true;
  }

  /** Number of entries; -1: refused. */
  #map(node: CellNode): number {
    const c = this.#cursor;
    const entry = node.children[0]!;
    const [keyNode, valueNode] = entry.children as [CellNode, CellNode];
    const seen = new Set<string>();
    c.blank();
    for (let count = 0; ; count++) {
      if (c.take(125)) return count;
      const key = this.#key(count === 0);
      if (key === null) return -1;
      if (seen.has(key))
        return (
          Number(this.#fail("decode.duplicate_key", `the key ${JSON.stringify(shown(key))} comes twice`)) - 1
        );
      seen.add(key);
      const m = this.#memory;
      if (!m.push(entry, 1)) return Number(this.#noRoom(entry)) - 1;
      if (!m.push(keyNode, this.#keyStart, this.#keyStop)) return Number(this.#noRoom(keyNode)) - 1;
      if (!this.#item(valueNode)) return Number(this.#within(`[${JSON.stringify(shown(key))}]`)) - 1;
      c.blank();
    }
  }

  #keyStart = 0;
  #keyStop = 0;

  /** Reads up to the value behind the key's colon. Null: refused. */
  #key(first: boolean): string | null {
    const c = this.#cursor;
    const broken = (what: string): null => {
      this.#broken(what);
      return null;
    };
    if (!first) {
      if (!c.take(44)) return broken("no comma or }");
      c.blank();
    }
    if (c.at >= c.end || c.bytes[c.at] !== 34 || !c.string()) return broken("no key");
    this.#keyStart = c.start;
    this.#keyStop = c.stop;
    const key = TEXT.decode(c.bytes.subarray(c.start, c.stop));
    c.blank();
    if (!c.take(58)) return broken("no colon");
    c.blank();
    return key;
  }
}

function shown(key: string): string {
  return key.length <= SHOWN_CHARS ? key : `${key.slice(0, SHOWN_CHARS)}…`;
}
