/**
 * Thrift's compact protocol read in one pass: what is asked for is taken, the rest is stepped over without a value made
 * of it, so a footer of many megabytes costs little (apache/thrift doc/specs/thrift-compact-protocol.md).
 */
import { TYPE } from "./thrift-tree.ts";

/** What was read is no compact protocol, or ends within a value. Callers say of which file. */
export class ThriftDamage extends Error {
  override readonly name = "ThriftDamage";
}

const MAX_DEPTH = 64;
const TEXT = new TextDecoder();

/** Takes the value of one field of a struct, or leaves it: then it is stepped over. */
export type FieldReader = (id: number, type: number) => void;

export class ThriftReader {
  readonly #bytes: Uint8Array;
  #at: number;
  #depth = 0;
  #taken = false;
  #bool = false;

  constructor(bytes: Uint8Array, at = 0) {
    this.#bytes = bytes;
    this.#at = at;
  }

  /** Behind what was read. */
  get position(): number {
    return this.#at;
  }

  #byte(): number {
    const b = this.#bytes[this.#at++];
    if (b === undefined) throw new ThriftDamage("it ends within a value");
    return b;
  }

  #varint(): number {
    let n = 0;
    for (let scale = 1, i = 0; i < 10; i++, scale *= 128) {
      const b = this.#byte();
      n += (b & 0x7f) * scale;
      if (b < 0x80) return n;
    }
    throw new ThriftDamage("an integer has no end");
  }

  /** Zigzag i16, i32 or i64; what a double cannot hold is damage: nothing of a footer that counts is so large. */
  int(): number {
    this.#taken = true;
    const n = this.#varint();
    if (n > 2 ** 53) throw new ThriftDamage(`a count of ${n}`);
    return n % 2 === 0 ? n / 2 : -(n + 1) / 2;
  }

  /** Of a field of type byte. */
  byte(): number {
    this.#taken = true;
    return (this.#byte() << 24) >> 24;
  }

  /** Of a field of type true or false. */
  bool(): boolean {
    this.#taken = true;
    return this.#bool;
  }

  text(): string {
    this.#taken = true;
    const length = this.#length();
    const from = this.#at;
    this.#at += length;
    return TEXT.decode(this.#bytes.subarray(from, this.#at));
  }

  #length(): number {
    const length = this.#varint();
    if (length > this.#bytes.length - this.#at) throw new ThriftDamage("a length is beyond its end");
    return length;
  }

  /** Calls `item` for every element of a list of structs (or of anything: it must read one element). */
  list(item: (index: number) => void): number {
    this.#taken = true;
    const { count } = this.#listHead();
    for (let i = 0; i < count; i++) item(i);
    return count;
  }

  #listHead(): { count: number; element: number } {
    const head = this.#byte();
    const short = head >> 4;
    const count = short === 15 ? this.#varint() : short;
    // An element takes at least a byte: a count beyond that is not believed.
    if (count > this.#bytes.length - this.#at) throw new ThriftDamage("a list is longer than it");
    return { count, element: head & 15 };
  }

  struct(field: FieldReader): void {
    if (++this.#depth > MAX_DEPTH) throw new ThriftDamage("it is nested too deeply");
    for (let id = 0; ; ) {
      const head = this.#byte();
      if (head === 0) break;
      const type = head & 15;
      id = head >> 4 === 0 ? this.int() : id + (head >> 4);
      this.#bool = type === TYPE.true;
      this.#taken = false;
      field(id, type);
      if (!this.#taken) this.#skip(type);
    }
    this.#depth--;
    this.#taken = true;
  }

  #skip(type: number): void {
    switch (type) {
      case TYPE.true:
      case TYPE.false:
        return;
      case TYPE.byte:
        this.#byte();
        return;
      case TYPE.i16:
      case TYPE.i32:
      case TYPE.i64:
        this.#varint();
        return;
      case TYPE.double:
        this.#at += 8;
        return;
      case TYPE.binary: {
        const length = this.#length();
        this.#at += length;
        return;
      }
      case TYPE.list:
      case TYPE.set:
        this.#skipList();
        return;
      case TYPE.struct:
        this.struct(() => {});
        return;
      default:
        throw new ThriftDamage(`type ${type} is not one of a footer`);
    }
  }

  #skipList(): void {
    const { count, element } = this.#listHead();
    if (++this.#depth > MAX_DEPTH) throw new ThriftDamage("it is nested too deeply");
    for (let i = 0; i < count; i++) {
      if (element === TYPE.true || element === TYPE.false) this.#byte();
      else this.#skip(element);
    }
    this.#depth--;
  }
}
