/**
 * Bytes to Values by a plan. It also says why a payload is refused, since generated code only finds that it is: for
 * every payload the two agree.
 */
import type { Value, ValueField } from "../../types/value.ts";
import { type DecodeCode, DecodeError } from "../record-codec.ts";
import type { Plan, RecordPlan, Scalar } from "./plan.ts";
import { MOST_DEPTH, MOST_EMPTY, readLong } from "./runtime.ts";
import { scalarValue } from "./scalar-value.ts";

const NULL: Value = { kind: "null" };
const STRICT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export class ValueReader {
  #bytes: Uint8Array = new Uint8Array(0);
  #end = 0;
  #empty = 0;
  readonly #words = new Int32Array(2);
  readonly #path: (string | number)[] = [];
  /** Values of defaults, by their bytes: read once. */
  readonly #defaults = new Map<Uint8Array, Value>();
  /** Where it stands. */
  at = 0;

  /** `empty`: items of no bytes that came before. */
  begin(bytes: Uint8Array, from: number, end: number, empty = 0): void {
    this.#bytes = bytes;
    this.at = from;
    this.#end = end;
    this.#empty = empty;
    this.#path.length = 0;
  }

  get empty(): number {
    return this.#empty;
  }

  /** The whole payload is one value. */
  all(plan: Plan): Value {
    const value = this.read(plan, 0);
    if (this.at < this.#end) this.refuse("decode.trailing", `${this.#end - this.at} bytes follow the value`);
    return value;
  }

  refuse(code: DecodeCode, reason: string): never {
    let path = "";
    for (const p of this.#path) path += typeof p === "number" ? `[${p}]` : path === "" ? p : `.${p}`;
    throw new DecodeError(code, path, reason);
  }

  read(plan: Plan, depth: number): Value {
    switch (plan.op) {
      case "null":
        return NULL;
      case "fault":
        return this.refuse("decode.type", plan.reason);
      case "scalar":
        return scalarValue(this, plan.wire, plan.reader);
      case "enum": {
        const symbol = this.#symbol(plan.symbols.length, plan.symbols);
        return { kind: "enum", symbol };
      }
      case "array":
        return this.#list(plan, this.#deeper(depth));
      case "map":
        return this.#map(plan, this.#deeper(depth));
      case "record":
        return this.#record(plan, this.#deeper(depth));
      case "union":
        return this.read(plan.branches[this.#branch(plan.branches.length)]!, depth);
      case "branch":
        return { kind: "union", branch: plan.name, value: this.read(plan.plan, depth) };
    }
  }

  #deeper(depth: number): number {
    if (depth >= MOST_DEPTH) this.refuse("decode.depth", `nested deeper than ${MOST_DEPTH}`);
    return depth + 1;
  }

  #within<T>(place: string | number, inner: () => T): T {
    this.#path.push(place);
    const out = inner();
    this.#path.pop();
    return out;
  }

  #symbol(count: number, symbols: readonly (string | null)[]): string {
    const index = this.int();
    if (index < 0 || index >= count)
      this.refuse("decode.type", `symbol ${index} of an enum that has ${count}`);
    return (
      symbols[index] ??
      this.refuse("decode.type", `symbol ${index} is none of the reader's, which has no default`)
    );
  }

  #branch(count: number): number {
    const index = this.int();
    if (index < 0 || index >= count)
      this.refuse("decode.type", `branch ${index} of a union that has ${count}`);
    return index;
  }

  #record(plan: RecordPlan, depth: number): Value {
    const fields: ValueField[] = [];
    const names = plan.reader.fields;
    for (const { name, field, plan: inner } of plan.steps) {
      if (field === null) this.#within(name, () => this.skip(inner, depth));
      else {
        const to = names[field]!.name;
        fields[field] = { name: to, value: this.#within(to, () => this.read(inner, depth)) };
      }
    }
    for (const { field, bytes, plan: inner } of plan.defaults) {
      const { name } = names[field]!;
      fields[field] = { name, value: this.#within(name, () => this.#default(bytes, inner, depth)) };
    }
    return { kind: "record", fields };
  }

  /** What a default is does not depend on the payload, but how deep it may nest and how much it holds does. */
  #default(bytes: Uint8Array, plan: Plan, depth: number): Value {
    const known = this.#defaults.get(bytes);
    if (known !== undefined) return known;
    const [outer, at, end] = [this.#bytes, this.at, this.#end];
    [this.#bytes, this.at, this.#end] = [bytes, 0, bytes.length];
    const value = this.read(plan, depth);
    [this.#bytes, this.at, this.#end] = [outer, at, end];
    if (value.kind !== "list" && value.kind !== "record" && value.kind !== "map" && value.kind !== "union")
      this.#defaults.set(bytes, value);
    return value;
  }

  #list(plan: Extract<Plan, { op: "array" }>, depth: number): Value {
    const items: Value[] = [];
    this.#blocks(plan.least, () => {
      items.push(this.#within(items.length, () => this.read(plan.items, depth)));
    });
    return { kind: "list", items };
  }

  #map(plan: Extract<Plan, { op: "map" }>, depth: number): Value {
    const entries: [Value, Value][] = [];
    const keys = new Set<string>();
    this.#blocks(plan.least, () => {
      const key = this.string();
      const value = this.#within(key.length > 40 ? `${key.slice(0, 40)}…` : key, () =>
        this.read(plan.values, depth),
      );
      keys.add(key);
      entries.push([{ kind: "string", value: key }, value]);
    });
    if (keys.size < entries.length) this.refuse("decode.duplicate_key", "the map has a key twice");
    return { kind: "map", entries };
  }

  /** Blocks of items up to one of none. */
  #blocks(least: number, item: () => void): void {
    for (;;) {
      const { count, size } = this.#block();
      if (count === 0) return;
      if (least === 0) {
        this.#empty += count;
        if (this.#empty > MOST_EMPTY)
          this.refuse("decode.size", `more than ${MOST_EMPTY} items that take no bytes`);
      } else if (count > (this.#end - this.at) / least)
        this.refuse("decode.truncated", `${count} items in ${this.#end - this.at} bytes`);
      const stop = size < 0 ? -1 : this.at + size;
      for (let i = 0; i < count; i++) item();
      if (stop >= 0 && this.at !== stop)
        this.refuse("decode.syntax", "the items of a block do not take the bytes that it says");
    }
  }

  /** Size -1: not said. */
  #block(): { readonly count: number; readonly size: number } {
    const count = this.int();
    if (count >= 0) return { count, size: -1 };
    const size = this.length();
    if (count === -0x80000000) this.refuse("decode.truncated", "a block of 2^31 items");
    return { count: -count, size };
  }

  /** A varint that must fit in 32 bits. */
  int(): number {
    this.#varint();
    const [lo, hi] = this.#words as unknown as [number, number];
    if (hi !== lo >> 31) this.refuse("decode.range", "a number of more than 32 bits where 32 are allowed");
    return lo;
  }

  long(): bigint {
    this.#varint();
    return (BigInt(this.#words[1]!) << 32n) | BigInt(this.#words[0]! >>> 0);
  }

  #varint(): void {
    const next = readLong(this.#bytes, this.at, this.#end, this.#words, 0);
    if (next < 0) {
      let last = this.at;
      while (last < this.#end && last - this.at < 10 && this.#bytes[last]! > 127) last++;
      if (last >= this.#end) this.refuse("decode.truncated", "the payload ends within a number");
      this.refuse("decode.range", "a number of more than 64 bits");
    }
    this.at = next;
  }

  /** Of what follows; all of it is there. */
  length(): number {
    const n = this.int();
    if (n < 0) this.refuse("decode.syntax", `a length of ${n}`);
    return this.#need(n);
  }

  #need(n: number): number {
    if (n > this.#end - this.at)
      this.refuse("decode.truncated", `${n} bytes are wanted, ${this.#end - this.at} are left`);
    return n;
  }

  /** The next n bytes, not copied. */
  take(n: number): Uint8Array {
    this.#need(n);
    this.at += n;
    return this.#bytes.subarray(this.at - n, this.at);
  }

  /** The bytes of a value of bytes, string or fixed. */
  bytes(wire: Scalar): Uint8Array {
    return this.take(wire.kind === "fixed" ? wire.size : this.length());
  }

  string(): string {
    return this.text(this.take(this.length()));
  }

  text(bytes: Uint8Array): string {
    try {
      return STRICT.decode(bytes);
    } catch {
      return this.refuse("decode.encoding", "bytes that are no UTF-8");
    }
  }

  /** Passes over a value that the reader has no field for; what it holds is not looked at. */
  skip(plan: Plan, depth: number): void {
    switch (plan.op) {
      case "scalar":
        this.#skipScalar(plan.wire);
        break;
      case "enum":
        this.#symbol(plan.symbols.length, plan.symbols);
        break;
      case "array":
        this.#skipBlocks(plan.least, () => this.skip(plan.items, this.#deeper(depth)));
        break;
      case "map":
        this.#skipBlocks(plan.least, () => {
          this.take(this.length());
          this.skip(plan.values, this.#deeper(depth));
        });
        break;
      case "record": {
        const inner = this.#deeper(depth);
        for (const s of plan.steps) this.skip(s.plan, inner);
        break;
      }
      case "union":
        this.skip(plan.branches[this.#branch(plan.branches.length)]!, depth);
        break;
      case "branch":
        this.skip(plan.plan, depth);
        break;
      default:
        break;
    }
  }

  #skipScalar(wire: Scalar): void {
    switch (wire.kind) {
      case "boolean":
        this.take(1);
        break;
      case "int":
        this.int();
        break;
      case "long":
        this.#varint();
        break;
      case "float":
        this.take(4);
        break;
      case "double":
        this.take(8);
        break;
      default:
        this.bytes(wire);
    }
  }

  #skipBlocks(least: number, item: () => void): void {
    for (;;) {
      const { count, size } = this.#block();
      if (count === 0) return;
      if (size >= 0) this.take(size);
      else if (least > 0) {
        if (count > (this.#end - this.at) / least)
          this.refuse("decode.truncated", `${count} items in ${this.#end - this.at} bytes`);
        for (let i = 0; i < count; i++) item();
      }
    }
  }
}
