/**
 * Payloads of records, one value each, to columns or to a Value. Framing was taken off before; one decoder serves the
 * payloads of one writer schema.
 */
import type { ColumnBuilder } from "../types/column-builder.ts";
import type { ColumnField } from "../types/table-batch.ts";
import type { Value } from "../types/value.ts";

/** Payload i is bytes[starts[i], ends[i]). */
export interface Payloads {
  readonly bytes: Uint8Array;
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  readonly count: number;
}

/** Why a payload is refused. Names are a promise: they stand in rejects. */
export type DecodeCode =
  /** Ends before the value does, or has bytes behind it. */
  | "decode.truncated"
  | "decode.trailing"
  /** Not of the format's grammar. */
  | "decode.syntax"
  /** Well formed, and not what the schema allows. */
  | "decode.type"
  | "decode.range"
  | "decode.null"
  | "decode.unknown_field"
  | "decode.duplicate_key"
  | "decode.encoding"
  | "decode.depth"
  | "decode.size"
  /** The envelope before the payload is not the framing's. */
  | "decode.framing"
  /** The registry knows no such schema, or one that cannot be used. */
  | "decode.schema"
  /** The schema cannot share the table with those before it. */
  | "decode.incompatible"
  /** The payload has a field under the reserved prefix of metadata columns. */
  | "decode.reserved";

export interface DecodeFault {
  /** Index in the payloads. */
  readonly row: number;
  readonly code: DecodeCode;
  /** Where in the value, like items[3].price; empty: the value as a whole. */
  readonly path: string;
  /** What was seen and what is allowed; at most some 200 characters, no payload values beyond a short excerpt. */
  readonly reason: string;
  /** Where the value stands, of values that lie one behind the other. */
  readonly range?: { readonly from: number; readonly to: number };
}

export interface RecordDecoder {
  /** The columns that it fills, in order. */
  readonly fields: readonly ColumnField[];
  /**
   * Appends every good payload as a row to all of `columns` (builders of `fields`), in order; a bad one is left out of all
   * of them and told. Gives the number of rows appended. Throws only for faults of ours.
   */
  decode(payloads: Payloads, columns: readonly ColumnBuilder[], fault: (f: DecodeFault) => void): number;
  /** The same bytes as a Value. Throws a DecodeError with what `fault` would be told. */
  value(bytes: Uint8Array, from: number, to: number): Value;
}

/** The other way: payloads of one schema, without framing. */
export interface RecordEncoder {
  encode(value: Value): Uint8Array;
}

export class DecodeError extends Error {
  readonly code: DecodeCode;
  readonly path: string;

  constructor(code: DecodeCode, path: string, reason: string) {
    super(reason);
    this.code = code;
    this.path = path;
  }
}
