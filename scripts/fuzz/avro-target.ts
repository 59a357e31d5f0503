/**
 * Avro payloads by chance, damaged or not, under a schema and often another reader's: columns and Values must agree,
 * cell for cell, on what is refused and why.
 */
import { isUtf8 } from "node:buffer";
import { type AvroSource, compileAvro } from "../../src/core/codecs/avro/compile.ts";
import { encodeColumns } from "../../src/core/codecs/avro/encode-columns.ts";
import { avroEncoder } from "../../src/core/codecs/avro/encode-value.ts";
import {
  DecodeError,
  type DecodeFault,
  type RecordDecoder,
  type RecordEncoder,
} from "../../src/core/codecs/record-codec.ts";
import { builderOf, type ColumnBuilder } from "../../src/core/types/column-builder.ts";
import type { ColumnType } from "../../src/core/types/table-batch.ts";
import type { Value } from "../../src/core/types/value.ts";
import { cellValue, pushValue } from "../../src/core/types/value-cells.ts";
import { valueJson } from "../../src/core/types/value-json.ts";
import { together } from "../../test/core/codecs/avro/decode.ts";
import { evolve, randomPayload, randomSchema, type Schema } from "../../test/core/codecs/avro/random-avro.ts";
import { damage, draws } from "./draws.ts";
import type { FuzzTarget } from "./target.ts";

const MOST_PAYLOADS = 4;
/** Cases of one schema: to compile it takes longer than to read some payloads. */
const CASES_PER_SCHEMA = 128;
/** Characters of a complaint; the case can be run again. */
const MOST_TOLD = 2000;

interface World {
  readonly number: number;
  readonly schema: Schema;
  readonly told: string;
  /** Null: the two schemas do not go together. */
  readonly codec: Codec | null;
}

interface Codec {
  readonly decoder: RecordDecoder;
  /** Used again and again, as a lane does. */
  readonly columns: readonly ColumnBuilder[];
  readonly wanted: readonly ColumnBuilder[];
  /** Of the reader's schema. */
  readonly reader: AvroSource;
  readonly encoder: RecordEncoder;
  readonly again: RecordDecoder;
}

const OPTIONS = { isUtf8: (bytes: Uint8Array) => isUtf8(bytes) };
let world: World | null = null;

function worldOf(number: number): World {
  const draw = draws(number);
  const schema = randomSchema(draw);
  const text = (s: Schema) => ({ text: JSON.stringify(s), references: [] });
  const writer = text(schema);
  const evolved = draw(2) === 0;
  const reader = evolved ? text(evolve(schema, draw)) : writer;
  const told = JSON.stringify({ writer, reader });
  try {
    const decoder = compileAvro(evolved ? { writer, reader } : { writer }, OPTIONS);
    const builders = () => decoder.fields.map((f) => builderOf(f.type));
    const [encoder, again] = [avroEncoder(reader), compileAvro({ writer: reader }, OPTIONS)];
    const codec = { decoder, columns: builders(), wanted: builders(), reader, encoder, again };
    return { number, schema, told, codec };
  } catch (e) {
    if (e instanceof DecodeError && e.code === "decode.schema" && evolved)
      return { number, schema, told, codec: null };
    throw new Error(`${e} of ${told}`);
  }
}

function run(n: number): boolean {
  const number = Math.floor(n / CASES_PER_SCHEMA);
  if (world?.number !== number) {
    world = null;
    // Columns of many schemas are garbage that the collector does not hurry for.
    if (number % 4 === 0) Bun.gc(true);
    world = worldOf(number);
  }
  const { schema, told, codec } = world;
  if (codec === null) return true;
  const draw = draws(n ^ 0x5bd1e995);
  const payloads = Array.from({ length: 1 + draw(MOST_PAYLOADS) }, () => {
    const bytes = randomPayload(schema, draw);
    return draw(3) === 0 ? damage(bytes, draw) : bytes;
  });
  try {
    return agree(codec, payloads);
  } catch (e) {
    const hex = payloads.map((p) => Buffer.from(p).toString("hex"));
    throw new Error(`${e} of ${told} ${hex}`.slice(0, MOST_TOLD));
  }
}

/** Throws where the two paths differ; whether a payload was refused. */
function agree(codec: Codec, payloads: readonly Uint8Array[]): boolean {
  const { decoder, columns, wanted } = codec;
  const given = together(payloads);
  const { bytes, starts, ends } = given;
  for (const b of [...columns, ...wanted]) b.reset();
  const values: Value[] = [];
  const faults: DecodeFault[] = [];
  const rows = decoder.decode(given, columns, (f) => faults.push(f));
  const wantedFaults: DecodeFault[] = [];
  for (const [row, start] of starts.entries()) {
    try {
      const value = decoder.value(bytes, start, ends[row]!);
      for (const [i, b] of wanted.entries()) pushValue(b, fieldOf(decoder, value, i));
      values.push(value);
    } catch (e) {
      if (!(e instanceof DecodeError)) throw e;
      wantedFaults.push({ row, code: e.code, path: e.path, reason: e.message });
    }
  }
  same("faults", JSON.stringify(faults), JSON.stringify(wantedFaults));
  same("rows", String(rows), String(payloads.length - faults.length));
  for (const [i, b] of wanted.entries()) {
    const [a, c] = [columns[i]!.finish(), b.finish()];
    same(`length of column ${i}`, `${a.length} ${a.nullCount}`, `${c.length} ${c.nullCount}`);
    for (let row = 0; row < rows; row++)
      same(`row ${row} of column ${i}`, valueJson(cellValue(a, row)), valueJson(cellValue(c, row)));
  }
  encodeAgain(codec, rows, values);
  return faults.length > 0;
}

/** What either encoder writes is read as what it was made from. */
function encodeAgain(
  { decoder, encoder, again, reader, columns }: Codec,
  rows: number,
  values: readonly Value[],
): void {
  for (const value of values) {
    const bytes = encoder.encode(value);
    same("a value written again", valueJson(again.value(bytes, 0, bytes.length)), valueJson(value));
  }
  // JSON text is no form of a recursive type's columns.
  if (decoder.fields.some((f) => hasJson(f.type))) return;
  const finished = columns.map((c) => c.finish());
  const p = encodeColumns(reader, { fields: decoder.fields, columns: finished, rows });
  same("rows written again", String(p.count), String(rows));
  for (const [i, value] of values.entries())
    same(
      `row ${i} written again`,
      valueJson(again.value(p.bytes, p.starts[i]!, p.ends[i]!)),
      valueJson(value),
    );
}

function hasJson(type: ColumnType): boolean {
  switch (type.id) {
    case "json":
      return true;
    case "list":
      return hasJson(type.item.type);
    case "map":
      return hasJson(type.value.type);
    case "struct":
      return type.fields.some((f) => hasJson(f.type));
    default:
      return false;
  }
}

function fieldOf({ fields }: RecordDecoder, value: Value, i: number): Value {
  if (value.kind !== "record" || (fields.length === 1 && fields[0]!.name === "value")) return value;
  return value.fields[i]!.value;
}

function same(what: string, seen: string, wanted: string): void {
  if (seen !== wanted)
    throw new Error(`${what}: ${seen.slice(0, 300)} where the Value has ${wanted.slice(0, 300)}`);
}

export const avroTarget: FuzzTarget = { name: "avro", run };
