/**
 * Records of a topic one at a time, as Values: what the payload says, and beside it, under a reserved name, a record of what is
 * known of it. The fields of that record are the metadata columns of tables without their prefix (raw-origins.ts makes both),
 * so whoever works record by record is told the same as whoever reads columns.
 *
 *   { id: 1, name: "a", _twg_metadata: { source_topic: "orders", source_partition: 3, source_offset: 17, schema_id: "7" } }
 */
import { DecodeError, type DecodeFault, type Payloads, type RecordDecoder } from "../codecs/record-codec.ts";
import type { RawBatch } from "../records/raw-batch.ts";
import { isReserved } from "../types/reserved.ts";
import type { Value, ValueField } from "../types/value.ts";
import { cellValue } from "../types/value-cells.ts";
import { type OriginStamps, type RawMetadata, rawOriginColumns, rawOrigins } from "./raw-origins.ts";

/** As of columns. all: every metadata column but the value as received, which the payload is. */

/** Behind the prefix of metadata columns. */
const METADATA = "metadata";

export interface ValuePolicy {
  readonly metadata: RawMetadata;
  /** Of metadata, in lower case; no field of a payload begins with it. */
  readonly prefix: string;
  /** `schemas` counts the records that are given, refused ones too. */
  readonly stamps: OriginStamps;
}

export type ValueRow =
  /** `row`: index of the record in its batch. */
  | { readonly row: number; readonly value: Extract<Value, { kind: "record" }> }
  | { readonly row: number; readonly fault: Omit<DecodeFault, "row"> };

/**
 * `payloads`: of one writer schema, without framing; payload i is that of record `rows[i]` of the batch. In their order; a
 * payload that is refused is told with what columns would be told of it.
 */
export function* valueRows(
  batch: RawBatch,
  rows: Int32Array,
  payloads: Payloads,
  decoder: RecordDecoder,
  { metadata, prefix, stamps }: ValuePolicy,
): Generator<ValueRow> {
  const names = rawOriginColumns(metadata).map((c) => c.name);
  const columns = rawOrigins(metadata, batch, rows, stamps);
  const own = prefix + METADATA;
  for (const [i, row] of rows.entries()) {
    let fields: readonly ValueField[];
    try {
      fields = payloadFields(decoder, payloads, i, prefix);
    } catch (e) {
      if (!(e instanceof DecodeError)) throw e;
      yield { row, fault: { code: e.code, path: e.path, reason: e.message } };
      continue;
    }
    const known = names.map((name, c): ValueField => ({ name, value: cellValue(columns[c]!, i) }));
    const beside: ValueField[] =
      metadata === "none" ? [] : [{ name: own, value: { kind: "record", fields: known } }];
    yield { row, value: { kind: "record", fields: [...fields, ...beside] } };
  }
}

/** A payload that is no record is the one field that its column would be. */
function payloadFields(
  decoder: RecordDecoder,
  { bytes, starts, ends }: Payloads,
  i: number,
  prefix: string,
): readonly ValueField[] {
  const value = decoder.value(bytes, starts[i]!, ends[i]!);
  const fields = value.kind === "record" ? value.fields : [{ name: decoder.fields[0]!.name, value }];
  const taken = fields.find((f) => isReserved(f.name, prefix));
  if (taken === undefined) return fields;
  throw new DecodeError("decode.reserved", taken.name, `names that begin with ${prefix} are reserved`);
}

export interface SplitValue {
  /** What encoders take. */
  readonly payload: Value;
  /** Null: there is none. */
  readonly metadata: Value | null;
}

/** The payload and what stands beside it. */
export function splitMetadata(value: Value, prefix: string): SplitValue {
  if (value.kind !== "record") return { payload: value, metadata: null };
  const own = value.fields.find((f) => f.name === prefix + METADATA);
  if (own === undefined) return { payload: value, metadata: null };
  return { payload: { ...value, fields: value.fields.filter((f) => f !== own) }, metadata: own.value };
}
