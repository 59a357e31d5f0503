/**
 * The language in which the messages are written down: a message is data, a list of fields with the versions that
 * carry them, as Kafka itself publishes its protocol. `codec.ts` compiles it; a test compares it, field by field and
 * version by version, with the definitions inside the kafka-clients jar.
 */

/** `3`: from version 3 on. `[0, 12]`: versions 0 to 12. */
export type Versions = number | readonly [from: number, to: number];

export type Scalar =
  | "bool"
  | "int8"
  | "int16"
  | "int32"
  /** bigint */
  | "int64"
  /** URL-safe base64 of the 16 bytes, without padding: the way Kafka's own tools print topic ids. */
  | "uuid"
  | "string"
  | "bytes"
  /** Like bytes; decoded as a view on the response, never copied. */
  | "records";

export type DefaultValue = number | bigint | string | boolean | null;

export interface Field {
  /** The published name with a small first letter: the property of the body. */
  readonly name: string;
  /** Absent: the field is a structure (or, with `array`, a list of them) of `fields`. */
  readonly type?: Scalar;
  readonly array?: true;
  readonly fields?: readonly Field[];
  readonly since: Versions;
  /** Versions in which null is allowed. */
  readonly nullable?: Versions;
  /** Value that stands in where a version has no such field, and for one that the sender leaves out. Default: the zero of its type. */
  readonly preset?: DefaultValue;
  /** Number in the structure's tag buffer, and the versions that carry the field there. */
  readonly tag?: number;
  readonly tagged?: Versions;
  /** Some brokers end the message, where no tags follow, before this last field: it then takes its preset. */
  readonly mayBeCut?: true;
}

export interface Message {
  /** Versions that this definition describes. */
  readonly versions: readonly [from: number, to: number];
  /** First version with compact lengths and tag buffers; null: none. */
  readonly flexible: number | null;
  readonly fields: readonly Field[];
}

export interface ApiSpec {
  readonly key: number;
  readonly request: Message;
  readonly response: Message;
}

export type FieldOptions = Omit<Field, "name" | "type" | "since" | "fields" | "array">;

export function field(name: string, type: Scalar, since: Versions, options: FieldOptions = {}): Field {
  return { name, type, since, ...options };
}

export function list(name: string, type: Scalar, since: Versions, options: FieldOptions = {}): Field {
  return { name, type, array: true, since, ...options };
}

export function struct(
  name: string,
  since: Versions,
  fields: readonly Field[],
  options: FieldOptions = {},
): Field {
  return { name, since, fields, ...options };
}

export function structs(
  name: string,
  since: Versions,
  fields: readonly Field[],
  options: FieldOptions = {},
): Field {
  return { name, array: true, since, fields, ...options };
}

export function inVersions(versions: Versions | undefined, version: number): boolean {
  if (versions === undefined) return false;
  if (typeof versions === "number") return version >= versions;
  return version >= versions[0] && version <= versions[1];
}
