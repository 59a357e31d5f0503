/** Payloads in hex to rows in JSON text, as tests write both. */
import { isUtf8 } from "node:buffer";
import { compileAvro } from "../../../../src/core/codecs/avro/compile.ts";
import { DecodeError, type DecodeFault, type Payloads } from "../../../../src/core/codecs/record-codec.ts";
import { builderOf } from "../../../../src/core/types/column-builder.ts";
import { typeText } from "../../../../src/core/types/type-text.ts";
import { cellValue } from "../../../../src/core/types/value-cells.ts";
import { valueJson } from "../../../../src/core/types/value-json.ts";
import type { Schema } from "./random-avro.ts";

export const text = (schema: Schema) => ({ text: JSON.stringify(schema), references: [] });

/** One field, f. */
export const field = (type: Schema, more: Schema = {}) => ({
  type: "record",
  name: "R",
  fields: [{ name: "f", type, ...more }],
});

export function compile(writer: Schema, reader?: Schema) {
  const schemas =
    reader === undefined ? { writer: text(writer) } : { writer: text(writer), reader: text(reader) };
  return compileAvro(schemas, { isUtf8: (bytes) => isUtf8(bytes) });
}

/** Rows as JSON texts, and the faults. */
export function decode(writer: Schema, payloads: readonly string[], reader?: Schema) {
  const decoder = compile(writer, reader);
  const given = together(payloads.map((hex) => Uint8Array.fromHex(hex.replaceAll(" ", ""))));
  const columns = decoder.fields.map((f) => builderOf(f.type));
  const faults: DecodeFault[] = [];
  const rows = decoder.decode(given, columns, (f) => faults.push(f));
  const finished = columns.map((c) => c.finish());
  const cells = Array.from({ length: rows }, (_, r) =>
    finished.map((c) => valueJson(cellValue(c, r))).join(" "),
  );
  return { types: decoder.fields.map((f) => typeText(f.type)), cells, faults };
}

export function refusal(writer: Schema, reader?: Schema): string {
  try {
    compile(writer, reader);
  } catch (e) {
    if (e instanceof DecodeError) return `${e.code} ${e.path}: ${e.message}`;
    throw e;
  }
  return "";
}

export function together(list: readonly Uint8Array[]): Payloads {
  const ends = new Int32Array(list.length);
  let at = 0;
  for (const [i, p] of list.entries()) {
    at += p.length;
    ends[i] = at;
  }
  const starts = Int32Array.from(ends, (end, i) => end - list[i]!.length);
  return { bytes: Uint8Array.from(Buffer.concat(list)), starts, ends, count: list.length };
}
