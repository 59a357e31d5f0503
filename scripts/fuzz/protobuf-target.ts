/**
 * Protobuf payloads by chance, damaged or not, under schemas by chance: columns and Values must agree, cell for cell, and on
 * what is refused and why; what was read is written again and read as the same.
 */
import { protobufCodec } from "../../src/core/codecs/protobuf/compile.ts";
import { registryOf } from "../../src/core/codecs/protobuf/descriptors.ts";
import { encodeProtobufColumns } from "../../src/core/codecs/protobuf/encode-columns.ts";
import { DecodeError } from "../../src/core/codecs/record-codec.ts";
import type { TableColumn } from "../../src/core/types/table-batch.ts";
import { cellValue } from "../../src/core/types/value-cells.ts";
import { valueJson } from "../../src/core/types/value-json.ts";
import { agree, decodeAll } from "../../test/core/codecs/protobuf/agree.ts";
import {
  randomPayload,
  randomSchema,
  type SchemaModel,
} from "../../test/core/codecs/protobuf/random-protobuf.ts";
import { damage, draws } from "./draws.ts";
import type { FuzzTarget } from "./target.ts";

const MOST_PAYLOADS = 4;
/** Cases of one schema: to compile it takes longer than to read some payloads. */
const CASES_PER_SCHEMA = 128;

interface World {
  readonly number: number;
  readonly schema: SchemaModel;
  readonly codec: ReturnType<typeof protobufCodec>;
}

let world: World | null = null;

function worldOf(number: number): World {
  const draw = draws(number);
  const schema = randomSchema(draw);
  const text = {
    format: "protobuf",
    text: schema.text,
    references: [],
    id: "1",
    subject: null,
    version: null,
  } as const;
  try {
    const flatten = draw(3) === 0 ? { separator: "__" } : null;
    return { number, schema, codec: protobufCodec(registryOf(text), { flatten }) };
  } catch (e) {
    throw new Error(`${e} of ${schema.text}`);
  }
}

function run(n: number): boolean {
  const number = Math.floor(n / CASES_PER_SCHEMA);
  if (world?.number !== number) world = worldOf(number);
  const { schema, codec } = world;
  const draw = draws(n ^ 0x5bd1e995);
  const payloads = Array.from({ length: 1 + draw(MOST_PAYLOADS) }, () => {
    const bytes = randomPayload(schema, draw);
    return draw(3) === 0 ? damage(bytes, draw) : bytes;
  });
  try {
    for (const p of payloads) again(codec, p);
    const refused = agree(codec.decoder, payloads);
    columnsAgain(codec, payloads);
    return refused > 0;
  } catch (e) {
    throw new Error(`${e} of ${schema.text} ${payloads.map((p) => Buffer.from(p).toString("hex"))}`);
  }
}

/** What was read is written again and read as the same. */
function again({ decoder, encoder }: World["codec"], payload: Uint8Array): void {
  let value: ReturnType<typeof decoder.value>;
  try {
    value = decoder.value(payload, 0, payload.length);
  } catch (e) {
    if (e instanceof DecodeError) return;
    throw e;
  }
  const bytes = encoder.encode(value);
  const [seen, wanted] = [valueJson(decoder.value(bytes, 0, bytes.length)), valueJson(value)];
  if (seen !== wanted) throw new Error(`written and read again: ${seen} instead of ${wanted}`);
}

/** So are columns. */
function columnsAgain(codec: World["codec"], payloads: readonly Uint8Array[]): void {
  const first = decodeAll(codec.decoder, payloads);
  const wanted = texts(first.columns, first.rows);
  const { bytes, starts, ends } = encodeProtobufColumns(codec, { ...first, fields: codec.decoder.fields });
  const written = Array.from(starts, (start, i) => bytes.subarray(start, ends[i]));
  const second = decodeAll(codec.decoder, written);
  const seen = texts(second.columns, second.rows);
  if (second.rows !== first.rows || seen !== wanted)
    throw new Error(`columns written and read again: ${seen} instead of ${wanted}`);
}

function texts(columns: readonly TableColumn[], rows: number): string {
  return columns
    .map((c) => Array.from({ length: rows }, (_, row) => inOneOrder(valueJson(cellValue(c, row)))))
    .join("\n");
}

/** A Struct has no order, and keys that are whole numbers come first in a JavaScript object: JSON in a string as well. */
function inOneOrder(json: string): string {
  const keep = (_: string, value: unknown, { source }: { readonly source?: string }): unknown => {
    if (typeof value === "number") return { digits: source };
    return typeof value === "string" && /^[[{]/.test(value) ? nested(value) : value;
  };
  return JSON.stringify((JSON.parse as (text: string, reviver: typeof keep) => unknown)(json, keep));
}

function nested(text: string): string {
  try {
    return inOneOrder(text);
  } catch {
    return text;
  }
}

export const protobufTarget: FuzzTarget = { name: "protobuf", run };
