/** What a Protobuf type becomes: as a column and as a Value. Written once; the reference page is rendered from it. */
import { ScalarType } from "@bufbuild/protobuf";
import type { ColumnType } from "../../types/table-batch.ts";
import type { Value } from "../../types/value.ts";

export interface ScalarMapping {
  /** As in .proto. */
  readonly name: string;
  readonly column: ColumnType;
  readonly value: Value["kind"];
  readonly wire: 0 | 1 | 2 | 5;
}

const INT32: ColumnType = { id: "int", bits: 32, signed: true };
const UINT32: ColumnType = { id: "int", bits: 32, signed: false };
const INT64: ColumnType = { id: "int", bits: 64, signed: true };
const UINT64: ColumnType = { id: "int", bits: 64, signed: false };

export const SCALARS: Readonly<Record<ScalarType, ScalarMapping>> = {
  [ScalarType.DOUBLE]: { name: "double", column: { id: "float", bits: 64 }, value: "double", wire: 1 },
  [ScalarType.FLOAT]: { name: "float", column: { id: "float", bits: 32 }, value: "float", wire: 5 },
  [ScalarType.INT32]: { name: "int32", column: INT32, value: "int", wire: 0 },
  [ScalarType.SINT32]: { name: "sint32", column: INT32, value: "int", wire: 0 },
  [ScalarType.SFIXED32]: { name: "sfixed32", column: INT32, value: "int", wire: 5 },
  [ScalarType.UINT32]: { name: "uint32", column: UINT32, value: "long", wire: 0 },
  [ScalarType.FIXED32]: { name: "fixed32", column: UINT32, value: "long", wire: 5 },
  [ScalarType.INT64]: { name: "int64", column: INT64, value: "long", wire: 0 },
  [ScalarType.SINT64]: { name: "sint64", column: INT64, value: "long", wire: 0 },
  [ScalarType.SFIXED64]: { name: "sfixed64", column: INT64, value: "long", wire: 1 },
  [ScalarType.UINT64]: { name: "uint64", column: UINT64, value: "long", wire: 0 },
  [ScalarType.FIXED64]: { name: "fixed64", column: UINT64, value: "long", wire: 1 },
  [ScalarType.BOOL]: { name: "bool", column: { id: "bool" }, value: "bool", wire: 0 },
  [ScalarType.STRING]: { name: "string", column: { id: "utf8" }, value: "string", wire: 2 },
  [ScalarType.BYTES]: { name: "bytes", column: { id: "binary" }, value: "bytes", wire: 2 },
};

/** Well-known messages that are no struct. Wrappers become what they wrap, null when absent. */
export const WELL_KNOWN: Readonly<Record<string, "timestamp" | "duration" | "json" | "wrapper">> = {
  "google.protobuf.Timestamp": "timestamp",
  "google.protobuf.Duration": "duration",
  "google.protobuf.Struct": "json",
  "google.protobuf.Value": "json",
  "google.protobuf.ListValue": "json",
  "google.protobuf.DoubleValue": "wrapper",
  "google.protobuf.FloatValue": "wrapper",
  "google.protobuf.Int64Value": "wrapper",
  "google.protobuf.UInt64Value": "wrapper",
  "google.protobuf.Int32Value": "wrapper",
  "google.protobuf.UInt32Value": "wrapper",
  "google.protobuf.BoolValue": "wrapper",
  "google.protobuf.StringValue": "wrapper",
  "google.protobuf.BytesValue": "wrapper",
};

/** The types that hold others, or are none of the format's own scalars, for the reference page. */
export const NESTED: readonly {
  readonly protobuf: string;
  readonly column: string;
  readonly value: string;
  readonly note?: string;
}[] = [
  {
    protobuf: "enum",
    column: "string",
    value: "enum",
    note: "The name; a number without one is its digits.",
  },
  { protobuf: "message, group", column: "struct", value: "record" },
  { protobuf: "repeated T", column: "list<T>", value: "list", note: "Packed or not; never null." },
  {
    protobuf: "map",
    column: "map<K,T>",
    value: "map",
    note: "Never null. Of several entries of one key the last stands.",
  },
  { protobuf: "oneof", column: "its members, nullable", value: "the member that is set" },
  {
    protobuf: "google.protobuf.Timestamp",
    column: "timestamptz[ns]",
    value: "timestamp",
    note: "Outside of 1677 to 2262: refused.",
  },
  { protobuf: "google.protobuf.Duration", column: "decimal(21,9)", value: "decimal", note: "Seconds." },
  { protobuf: "google.protobuf.*Value (wrappers)", column: "what they wrap, nullable", value: "the same" },
  {
    protobuf: "google.protobuf.Struct, Value, ListValue",
    column: "json",
    value: "map, any, list",
    note: "A Value that holds nothing is null.",
  },
  { protobuf: "google.protobuf.Any", column: "struct<type_url string, value binary>", value: "record" },
  {
    protobuf: "a message without fields (Empty)",
    column: "bool",
    value: "bool",
    note: "True where it is there.",
  },
  {
    protobuf: "a message within itself",
    column: "struct, then json",
    value: "record",
    note: "Twice within itself it is columns, deeper the text of a JSON value. Once or never, where there would be more than 4,000 columns.",
  },
  {
    protobuf: "a message set (message_set_wire_format)",
    column: "binary",
    value: "bytes",
    note: "As it stands in the payload.",
  },
];

/** An instant to the nanosecond. Those outside of the years 1677 to 2262 do not fit and are refused. */
export const TIMESTAMP: ColumnType = { id: "timestamp", unit: "ns", zone: "UTC" };
/** Seconds: every Duration fits exactly. */
export const DURATION: ColumnType = { id: "decimal", precision: 21, scale: 9 };
