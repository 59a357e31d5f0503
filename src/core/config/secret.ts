/**
 * Secret values and references to them. A `Secret` can travel through configuration, errors and logs without
 * ever printing: the only way to its text is `reveal()`, called where the bytes go on the wire.
 */
const MASK = "***";

export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** The text. Never into a message, an event or a config dump. */
  reveal(): string {
    return this.#text;
  }

  get empty(): boolean {
    return this.#text.length === 0;
  }

  toString(): string {
    return MASK;
  }

  toJSON(): string {
    return MASK;
  }

  [Symbol.toPrimitive](): string {
    return MASK;
  }

  // Named by the registry key, since core imports nothing of node:.
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return MASK;
  }
}

/** `{ secret = "name" }` as written, before a backend was asked. */
export class SecretRef {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  toJSON(): { readonly secret: string } {
    return { secret: this.name };
  }
}

/** `{ file = "path" }`: text that is not secret by itself but lives in a file, such as a CA bundle. */
export class FileRef {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  toJSON(): { readonly file: string } {
    return { file: this.path };
  }
}

/** What a secret option holds after validation; `resolveSecrets` leaves `Secret` only. */
export type SecretOption = Secret | SecretRef | FileRef;

/** The same configuration with every reference replaced by the text it stands for. */
export type Resolved<T> = T extends SecretOption
  ? Secret
  : T extends readonly (infer E)[]
    ? readonly Resolved<E>[]
    : T extends object
      ? { readonly [K in keyof T]: Resolved<T[K]> }
      : T;
