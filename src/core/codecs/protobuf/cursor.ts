/** Reads the wire format with an answer for everything that is wrong: what was seen, what is allowed, and where. */
import { type DecodeCode, DecodeError } from "../record-codec.ts";
import { MAX_DEPTH } from "./wire.ts";

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const MAX_LENGTH = 0x7fffffffn;

/** Where in the value a reader is. */
export class Path {
  readonly #steps: string[] = [];

  in<T>(step: string, read: () => T): T {
    this.#steps.push(step);
    try {
      return read();
    } finally {
      this.#steps.pop();
    }
  }

  refuse(code: DecodeCode, reason: string): never {
    throw new DecodeError(code, this.#steps.join("").replace(/^\./, ""), reason);
  }
}

export class Cursor {
  readonly bytes: Uint8Array;
  pos: number;
  readonly end: number;
  readonly path: Path;

  constructor(bytes: Uint8Array, from: number, to: number, path: Path) {
    this.bytes = bytes;
    this.pos = from;
    this.end = to;
    this.path = path;
  }

  get done(): boolean {
    return this.pos >= this.end;
  }

  #need(n: number, what: string): void {
    const left = this.end - this.pos;
    if (n > left)
      this.path.refuse("decode.truncated", `${what} of ${n} bytes begins ${left} bytes before the end`);
  }

  /** 64 bits; `most` bytes at most. */
  varint(what: string, most = 10): bigint {
    let value = 0n;
    for (let i = 0; ; i++) {
      if (i === most) this.path.refuse("decode.syntax", `${what} is a varint of more than ${most} bytes`);
      if (this.done) this.path.refuse("decode.truncated", `the payload ends within the varint of ${what}`);
      const x = this.bytes[this.pos++]!;
      value |= BigInt(x & 0x7f) << BigInt(7 * i);
      // What the tenth byte has beyond 64 bits is dropped, as Google's readers do.
      if (x < 0x80) return BigInt.asUintN(64, value);
    }
  }

  tag(): { readonly number: number; readonly wire: number } {
    const tag = this.varint("a tag", 5);
    if (tag > 0xffffffffn) this.path.refuse("decode.syntax", `the tag ${tag} has more than 32 bits`);
    const number = Number(tag >> 3n);
    if (number === 0) this.path.refuse("decode.syntax", "a field has the number 0; they begin with 1");
    return { number, wire: Number(tag & 7n) };
  }

  /** A view of fixed width. */
  fixed(n: 4 | 8): DataView {
    this.#need(n, "a fixed value");
    const view = new DataView(this.bytes.buffer, this.bytes.byteOffset + this.pos, n);
    this.pos += n;
    return view;
  }

  /** Bytes behind their length; not a copy. */
  block(): Uint8Array {
    const n = this.varint("a length", 5);
    if (n > MAX_LENGTH) this.path.refuse("decode.size", `a length of ${n} bytes; at most 2 GiB`);
    this.#need(Number(n), "a value");
    this.pos += Number(n);
    return this.bytes.subarray(this.pos - Number(n), this.pos);
  }

  text(): string {
    const block = this.block();
    try {
      return UTF8.decode(block);
    } catch {
      return this.path.refuse("decode.encoding", `a string of ${block.length} bytes is not UTF-8`);
    }
  }

  /** The content of the group that begins here. `depth`: of its message. */
  group(number: number, depth: number): Uint8Array {
    if (depth > MAX_DEPTH)
      this.path.refuse("decode.depth", `groups and messages more than ${MAX_DEPTH} deep`);
    const from = this.pos;
    while (!this.done) {
      const at = this.pos;
      const tag = this.tag();
      if (tag.wire !== 4) this.skip(tag, depth);
      else if (tag.number === number) return this.bytes.subarray(from, at);
      else this.path.refuse("decode.syntax", `group ${number} is ended by an end tag of group ${tag.number}`);
    }
    return this.path.refuse("decode.truncated", `group ${number} has no end`);
  }

  /** `depth`: of the message that holds the value. */
  skip({ number, wire }: { readonly number: number; readonly wire: number }, depth: number): void {
    switch (wire) {
      case 0:
        this.varint(`field ${number}`);
        return;
      case 1:
        this.fixed(8);
        return;
      case 2:
        this.block();
        return;
      case 3:
        this.group(number, depth + 1);
        return;
      case 5:
        this.fixed(4);
        return;
      default:
        this.path.refuse(
          "decode.syntax",
          wire === 4
            ? `the end of group ${number}, which did not begin`
            : `field ${number} has the wire type ${wire}; there are 0 to 5`,
        );
    }
  }
}
