/**
 * Thrift's compact protocol as a generic tree, for footers that others wrote and that are changed in a few places:
 * what is not understood is kept as it was (apache/thrift doc/specs/thrift-compact-protocol.md).
 */
import { Failure } from "../../failure/failure.ts";

/** Type codes of struct fields and list elements. */
export const TYPE = {
  true: 1,
  false: 2,
  byte: 3,
  i16: 4,
  i32: 5,
  i64: 6,
  double: 7,
  binary: 8,
  list: 9,
  set: 10,
  map: 11,
  struct: 12,
} as const;

export type ThriftValue = boolean | number | bigint | Uint8Array | ThriftList | ThriftStruct;
export interface ThriftList {
  readonly element: number;
  readonly items: ThriftValue[];
}
export type ThriftStruct = Map<number, { readonly type: number; value: ThriftValue }>;

const MAX_DEPTH = 64;

class TreeReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  #byte(): number {
    const b = this.#bytes[this.#at++];
    if (b === undefined) throw damaged("it ends within a value");
    return b;
  }

  #varint(): bigint {
    let n = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const b = this.#byte();
      n |= BigInt(b & 0x7f) << shift;
      if (b < 0x80) return n;
    }
    throw damaged("an integer has no end");
  }

  #zigzag(): bigint {
    const n = this.#varint();
    return (n >> 1n) ^ -(n & 1n);
  }

  #raw(length: number): Uint8Array {
    if (length > this.#bytes.length - this.#at) throw damaged("a length is beyond its end");
    const out = this.#bytes.slice(this.#at, this.#at + length);
    this.#at += length;
    return out;
  }

  #value(type: number, depth: number): ThriftValue {
    switch (type) {
      case TYPE.byte:
        return this.#byte();
      case TYPE.i16:
      case TYPE.i32:
      case TYPE.i64:
        return this.#zigzag();
      case TYPE.double:
        return this.#raw(8);
      case TYPE.binary:
        return this.#raw(Number(this.#varint()));
      case TYPE.list:
      case TYPE.set:
        return this.#list(depth);
      case TYPE.struct:
        return this.struct(depth + 1);
      default:
        throw damaged(`type ${type} is not one of a footer`);
    }
  }

  #list(depth: number): ThriftList {
    const head = this.#byte();
    const short = head >> 4;
    const count = short === 15 ? Number(this.#varint()) : short;
    const element = head & 15;
    // An element takes at least a byte: a count beyond that is not believed.
    if (count > this.#bytes.length - this.#at) throw damaged("a list is longer than it");
    const bool = element === TYPE.true || element === TYPE.false;
    const items: ThriftValue[] = [];
    for (let i = 0; i < count; i++)
      items.push(bool ? this.#byte() === TYPE.true : this.#value(element, depth));
    return { element, items };
  }

  struct(depth = 0): ThriftStruct {
    if (depth > MAX_DEPTH) throw damaged("it is nested too deeply");
    const fields: ThriftStruct = new Map();
    for (let id = 0; ; ) {
      const head = this.#byte();
      if (head === 0) return fields;
      const type = head & 15;
      id = head >> 4 === 0 ? Number(this.#zigzag()) : id + (head >> 4);
      const bool = type === TYPE.true || type === TYPE.false;
      fields.set(id, { type, value: bool ? type === TYPE.true : this.#value(type, depth) });
    }
  }
}

function damaged(why: string): Failure {
  return new Failure("inspect.not_parquet", `a footer can't be read: ${why}`);
}

export function readTree(bytes: Uint8Array): ThriftStruct {
  return new TreeReader(bytes).struct();
}

class TreeWriter {
  #bytes = new Uint8Array(4096);
  #length = 0;

  bytes(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }

  #byte(b: number): void {
    if (this.#length === this.#bytes.length) this.#grow(1);
    this.#bytes[this.#length++] = b;
  }

  #grow(more: number): void {
    const grown = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length + more));
    grown.set(this.#bytes);
    this.#bytes = grown;
  }

  #varint(value: bigint): void {
    let n = value;
    for (; n > 0x7fn; n >>= 7n) this.#byte(Number(n & 0x7fn) | 0x80);
    this.#byte(Number(n));
  }

  #zigzag(n: bigint): void {
    this.#varint(n >= 0n ? n << 1n : (-n << 1n) - 1n);
  }

  #raw(b: Uint8Array): void {
    if (this.#length + b.length > this.#bytes.length) this.#grow(b.length);
    this.#bytes.set(b, this.#length);
    this.#length += b.length;
  }

  #value(type: number, value: ThriftValue): void {
    if (type === TYPE.struct) this.struct(value as ThriftStruct);
    else if (type === TYPE.list || type === TYPE.set) this.#list(value as ThriftList);
    else if (typeof value === "bigint") this.#zigzag(value);
    else if (typeof value === "number") this.#byte(value);
    else if (typeof value === "boolean") this.#byte(value ? TYPE.true : TYPE.false);
    else {
      if (type === TYPE.binary) this.#varint(BigInt((value as Uint8Array).length));
      this.#raw(value as Uint8Array);
    }
  }

  #list({ element, items }: ThriftList): void {
    if (items.length < 15) this.#byte((items.length << 4) | element);
    else {
      this.#byte(0xf0 | element);
      this.#varint(BigInt(items.length));
    }
    for (const item of items) this.#value(element, item);
  }

  struct(fields: ThriftStruct): void {
    let before = 0;
    for (const id of [...fields.keys()].sort((a, b) => a - b)) {
      const { type, value } = fields.get(id)!;
      const delta = id - before;
      if (delta > 0 && delta < 16) this.#byte((delta << 4) | type);
      else {
        this.#byte(type);
        this.#zigzag(BigInt(id));
      }
      before = id;
      if (type !== TYPE.true && type !== TYPE.false) this.#value(type, value);
    }
    this.#byte(0);
  }
}

export function writeTree(tree: ThriftStruct): Uint8Array {
  const w = new TreeWriter();
  w.struct(tree);
  return w.bytes();
}
