/** The decoder of one schema's payloads, whatever their format. */
import { isUtf8 } from "node:buffer";
import { compileAvro } from "../core/codecs/avro/compile.ts";
import { castDecoder } from "../core/codecs/cast-decoder.ts";
import { compileJson } from "../core/codecs/json/compile.ts";
import { compileProtobuf } from "../core/codecs/protobuf/compile.ts";
import type { RecordDecoder } from "../core/codecs/record-codec.ts";
import { refuseReserved } from "../core/codecs/table-document.ts";
import { compileText } from "../core/codecs/text/compile.ts";
import { compileXml } from "../core/codecs/xml/compile.ts";
import type { DecodeSection, PayloadPlan } from "../core/config/decode-options.ts";
import { Failure } from "../core/failure/failure.ts";
import type { SchemaText } from "../core/schema/resolver.ts";
import { sourceOf, type TableField } from "../core/types/table-schema.ts";

import { decoderOfNothing } from "./lane-inference.ts";

export interface DecoderOptions {
  /** Of metadata columns. */
  readonly prefix: string;
  readonly maxPayloadBytes: number;
  /** Of XML: elements within each other. */
  readonly maxDepth: number;
  /** Of JSON and XML: fields that the schema does not have. */
  readonly unknown: "reject" | "ignore";
}

/** What `[decode]` says of all payloads. */
export function decoderOptions(
  {
    max_payload_bytes: maxPayloadBytes,
    max_depth: maxDepth,
    unknown_fields: unknown,
  }: Pick<DecodeSection, "max_payload_bytes" | "max_depth" | "unknown_fields">,
  prefix: string,
): DecoderOptions {
  return { prefix, maxPayloadBytes, maxDepth, unknown };
}

/** `message`: as the envelope names it, null where it does not. Throws a DecodeError where the schema cannot be used. */
export function payloadDecoder(
  schema: SchemaText,
  plan: Pick<PayloadPlan, "message">,
  message: readonly number[] | null,
  options: DecoderOptions,
): RecordDecoder {
  const { reader, ...written } = schema;
  const table = reader?.table ?? (isWritten(schema) ? undefined : schema.table);
  if (table === undefined) return ownDecoder(schema, plan, message, options);
  refuseReserved(table.fields, options.prefix);
  // Of a table by itself, before there is a payload: only what its columns are.
  if (reader?.table === undefined) return columnsOnly(table.fields);
  return castDecoder(ownDecoder(written, plan, message, { ...options, prefix: null }), table.fields);
}

/** Whether payloads are read by the schema as it stands, a table or not. */
function isWritten({ format }: SchemaText): boolean {
  return format !== "avro" && format !== "protobuf";
}

function columnsOnly(fields: RecordDecoder["fields"]): RecordDecoder {
  const never = () => {
    throw new Failure("internal.bug", "payloads were to be read by a schema that none is written by");
  };
  return { fields, decode: never, value: never };
}

/** `prefix` null: names are reserved elsewhere. */
function ownDecoder(
  schema: SchemaText,
  plan: Pick<PayloadPlan, "message">,
  message: readonly number[] | null,
  {
    prefix,
    maxPayloadBytes: maxBytes,
    maxDepth,
    unknown: unknownFields,
  }: Omit<DecoderOptions, "prefix"> & { readonly prefix: string | null },
): RecordDecoder {
  switch (schema.format) {
    case "avro":
      return compileAvro(
        schema.reader === undefined ? { writer: schema } : { writer: schema, reader: schema.reader },
        { isUtf8, reserved: prefix },
      );
    case "text":
      return compileText({ isUtf8 });
    case "json": {
      // What is learned learns by the fields that it does not know.
      const unknown = schema.inferred === undefined ? unknownFields : "reject";
      const options = { isUtf8, maxBytes, unknown, reserved: prefix } as const;
      return decoderOfNothing(schema, options) ?? compileJson(schema, options);
    }
    case "xml":
      return compileXml(schema, { isUtf8, maxBytes, maxDepth, unknown: unknownFields, reserved: prefix });
    case "protobuf": {
      const named = message ?? plan.message;
      const decoder = compileProtobuf(schema, named === null ? {} : { message: named });
      refuseReserved(decoder.fields, prefix);
      return decoder;
    }
  }
}

/** The decoder of a topic's keys or values; columns of keys have names of their own, and a record may be without a key. */
export function partDecoder(
  decode: Pick<DecodeSection, "max_payload_bytes" | "max_depth" | "unknown_fields">,
  schema: SchemaText,
  part: "key" | "value",
  plan: Pick<PayloadPlan, "message" | "prefix">,
  message: readonly number[] | null,
  prefix: string,
): RecordDecoder {
  const decoder = payloadDecoder(schema, plan, message, decoderOptions(decode, prefix));
  return part === "value" ? decoder : keyDecoder(decoder, plan.prefix);
}

function keyDecoder(decoder: RecordDecoder, prefix: string): RecordDecoder {
  const fields = decoder.fields.map((f): TableField => {
    return { ...f, name: `${prefix}${f.name}`, nullable: true, source: sourceOf(f) };
  });
  return {
    fields,
    decode: (payloads, columns, fault) => decoder.decode(payloads, columns, fault),
    value: (bytes, from, to) => decoder.value(bytes, from, to),
  };
}
