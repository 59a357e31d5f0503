/**
 * Strict reading of our own JSON: every value is asked for with its type, every key is accounted for, and a
 * failure names the object and the place in it. Persisted state is hostile input like any other.
 */
import { Failure } from "../failure/failure.ts";

const INT64_TEXT = /^(0|-?[1-9]\d{0,18})$/;
const INT64_MAX = 2n ** 63n - 1n;

/** A value and where it is: `coverage/v000000000012.json $.streams[3].covered`. */
export interface Place {
  readonly value: unknown;
  readonly object: string;
  readonly path: string;
}

/** Its path is made when it is asked for: states have thousands of places, and mostly nothing is wrong with them. */
class PlaceWithin implements Place {
  readonly value: unknown;
  readonly object: string;
  readonly #parent: Place;
  readonly #step: string | number;

  constructor(value: unknown, parent: Place, step: string | number) {
    this.value = value;
    this.object = parent.object;
    this.#parent = parent;
    this.#step = step;
  }

  get path(): string {
    const step = typeof this.#step === "number" ? `[${this.#step}]` : `.${this.#step}`;
    return `${this.#parent.path}${step}`;
  }
}

export function corrupt(at: Place, seen: string, allowed: string): Failure {
  return new Failure("coverage.corrupt", `coverage state: ${seen}, allowed is ${allowed}`, {
    at: `${at.object} ${at.path}`,
    hint: "Restore the object from a backup or ask for help; deleting it makes records be written twice",
  });
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

/** Parses a whole object. Throws coverage.corrupt for anything that is not JSON. */
export function parseJson(bytes: Uint8Array, object: string): Place {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return { value: JSON.parse(text), object, path: "$" };
  } catch (e) {
    const cut = bytes.length === 0 ? "an empty object" : `${bytes.length} bytes that are not whole JSON`;
    throw corrupt(
      { value: null, object, path: "$" },
      `${cut} (${e instanceof Error ? e.message : e})`,
      "JSON",
    );
  }
}

/** The fields of an object that has exactly the keys `keys`. */
export function fields<K extends string>(at: Place, ...keys: readonly K[]): Record<K, Place> {
  return fieldsOf(at, keys, []);
}

/** The same with keys that may be absent. */
export function fieldsOf<K extends string, O extends string>(
  at: Place,
  needed: readonly K[],
  optional: readonly O[],
): Record<K, Place> & Partial<Record<O, Place>> {
  const { value } = at;
  const allowed = () => [...needed, ...optional].join(", ");
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw corrupt(at, show(value), "an object");
  }
  const source = value as Readonly<Record<string, unknown>>;
  const out: Record<string, Place> = {};
  for (const key of Object.keys(source)) {
    if (!isOneOf(needed, key) && !isOneOf(optional, key))
      throw corrupt(at, `unknown key ${show(key)}`, allowed());
    out[key] = new PlaceWithin(source[key], at, key);
  }
  const missing = needed.find((key) => !Object.hasOwn(source, key));
  if (missing !== undefined) throw corrupt(at, `no key "${missing}"`, allowed());
  return out as Record<K, Place> & Partial<Record<O, Place>>;
}

const isOneOf = (keys: readonly string[], key: string): boolean => keys.includes(key);

export function list<T>(at: Place, read: (item: Place) => T): T[] {
  if (!Array.isArray(at.value)) throw corrupt(at, show(at.value), "a list");
  return at.value.map((value: unknown, i) => read(new PlaceWithin(value, at, i)));
}

/** A list whose items have a key of their own; a second item with the same key is refused. */
export function keyed<T>(at: Place, read: (item: Place) => readonly [string, T]): Map<string, T> {
  const out = new Map<string, T>();
  list(at, (item) => {
    const [key, value] = read(item);
    if (out.has(key)) throw corrupt(item, `${show(key)} a second time`, "each once");
    out.set(key, value);
  });
  return out;
}

export function text(at: Place): string {
  if (typeof at.value !== "string") throw corrupt(at, show(at.value), "a string");
  return at.value;
}

export function oneOf<T extends string>(at: Place, allowed: readonly T[]): T {
  const found = allowed.find((a) => a === at.value);
  if (found === undefined) throw corrupt(at, show(at.value), allowed.join(", "));
  return found;
}

/** A count: a whole number from 0 to 2^53 - 1. */
export function count(at: Place): number {
  if (typeof at.value !== "number" || !Number.isSafeInteger(at.value) || at.value < 0) {
    throw corrupt(at, show(at.value), "a whole number from 0");
  }
  return at.value;
}

/** A position: decimal text, since JSON numbers end at 2^53 in too many readers. */
export function int64(at: Place): bigint {
  if (typeof at.value !== "string" || !INT64_TEXT.test(at.value)) {
    throw corrupt(at, show(at.value), "an int64 as decimal text");
  }
  const n = BigInt(at.value);
  if (n > INT64_MAX || n < -INT64_MAX - 1n) throw corrupt(at, show(at.value), "an int64 as decimal text");
  return n;
}

export function nullable<T>(at: Place, read: (at: Place) => T): T | null {
  return at.value === null ? null : read(at);
}
