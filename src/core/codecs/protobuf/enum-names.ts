/**
 * Names of an enum's numbers. A number that has none, of an open enum or a closed one, is its digits: no name begins with
 * one, so nothing is lost, and a writer with a newer schema is seen.
 */
import type { DescEnum } from "@bufbuild/protobuf";

const KNOWN = new WeakMap<DescEnum, EnumNames>();
const UTF8 = new TextEncoder();

export class EnumNames {
  readonly #bytes = new Map<number, Uint8Array>();
  readonly #names: ReadonlyMap<number, string>;
  readonly #numbers: ReadonlyMap<string, number>;

  private constructor(desc: DescEnum) {
    // Of several names of one number the first declared.
    this.#names = new Map([...desc.values].reverse().map((v) => [v.number, v.name]));
    this.#numbers = new Map(desc.values.map((v) => [v.name, v.number]));
    for (const [number, name] of this.#names) this.#bytes.set(number, UTF8.encode(name));
  }

  static of(desc: DescEnum): EnumNames {
    let names = KNOWN.get(desc);
    if (names === undefined) {
      names = new EnumNames(desc);
      KNOWN.set(desc, names);
    }
    return names;
  }

  text(number: number): string {
    return this.#names.get(number) ?? String(number);
  }

  /** The same as bytes of UTF-8. */
  bytes(number: number): Uint8Array {
    return this.#bytes.get(number) ?? UTF8.encode(String(number));
  }

  /** Null: no such name, nor a number of 32 bits. */
  number(text: string): number | null {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    const number = Number(text);
    return /^-?[0-9]+$/.test(text) && (number | 0) === number ? number : null;
  }
}
