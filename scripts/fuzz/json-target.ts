/**
 * Damaged JSON payloads beside whole ones: those stay whole, and the module and the loops say the same of every one. Columns
 * that are learned from some of them hold what they were learned from.
 */
import { isUtf8 } from "node:buffer";
import { jsonRecords } from "../../src/core/codecs/json/compile.ts";
import { inferRecords } from "../../src/core/codecs/json/infer.ts";
import { DecodeError, type DecodeFault } from "../../src/core/codecs/record-codec.ts";
import type { TextRecords } from "../../src/core/codecs/text-records.ts";
import { appendFields } from "../../src/core/schema/append-fields.ts";
import { builderOf } from "../../src/core/types/column-builder.ts";
import { parseSchemaDocument, schemaDocument } from "../../src/core/types/schema-file.ts";
import type { ColumnField, TableColumn } from "../../src/core/types/table-batch.ts";
import { parseType } from "../../src/core/types/type-text.ts";
import { damage, draws, pick } from "./draws.ts";
import type { FuzzTarget } from "./target.ts";

const TABLE: Readonly<Record<string, string>> = {
  id: "int64",
  at: "timestamptz[ms]",
  amount: "decimal(18,2)",
  ratio: "double",
  name: "string",
  items: "list<struct<sku string, qty int32, marks list<boolean>>>",
  to: "struct<city string, geo struct<lat double, lon double>>",
  tags: "map<string, list<int32>>",
  rest: "json",
};

const PAYLOADS = [
  '{"id":9223372036854775807,"at":"2026-01-01T00:00:00.123Z","amount":"-123456789.01","ratio":1e-7,"name":"a\\u00e4\\n\\ud83d\\ude00"}',
  '{"items":[{"sku":"red","qty":1,"marks":[true,false,null]},{"qty":null,"marks":[]},null],"to":{"geo":{"lat":1.5}}}',
  '{"tags":{"a":[1,2],"b":null,"":[]},"rest":{"x":[1,{"y":"\\""}],"z":null} , "to":null }',
  ' {\t"name" : "\u20ac\u{1f600}", "rest" : [[[[]]]], "items" : [ ] ,\r\n"id": "-1" } ',
];

const UTF8 = new TextEncoder();
const FIELDS: readonly ColumnField[] = Object.entries(TABLE).map(([name, text]) => {
  const type = parseType(text);
  if (typeof type === "string") throw new Error(type);
  return { name, type, nullable: true };
});
const OPTIONS = { unknown: "reject", reserved: "_twg_", maxBytes: 1 << 20, isUtf8 } as const;

let decoders: readonly TextRecords[] | null = null;

function bytesOf(column: TableColumn): readonly unknown[] {
  const { length, nullCount, offsets, data, children } = column;
  return [length, nullCount, offsets?.join() ?? "", data.toHex(), ...children.map(bytesOf)];
}

/** What one way makes of the payloads, as text. */
function told(decoder: TextRecords, payloads: readonly Uint8Array[], faults: DecodeFault[]): string {
  const bytes = Uint8Array.from(Buffer.concat(payloads));
  const ends = new Int32Array(payloads.length);
  let at = 0;
  for (const [i, p] of payloads.entries()) {
    at += p.length;
    ends[i] = at;
  }
  const starts = ends.map((end, i) => end - payloads[i]!.length);
  const columns = FIELDS.map((f) => builderOf(f.type));
  const rows = decoder.decode({ bytes, starts, ends, count: payloads.length }, columns, (f) =>
    faults.push(f),
  );
  return JSON.stringify([rows, ...columns.map((c) => bytesOf(c.finish()))]);
}

/** Every so many cases: a decoder for each costs more than the rest. */
const LEARN_EVERY = 64;

function learn(payloads: readonly Uint8Array[]): void {
  const fields = appendFields([], inferRecords(payloads, OPTIONS.reserved), {
    maxColumns: 100,
    plainNames: false,
  });
  const read = parseSchemaDocument(schemaDocument({ fields }), "learned").fields;
  const decoder = jsonRecords(read, OPTIONS);
  for (const [i, p] of payloads.entries()) {
    try {
      decoder.value(p, 0, p.length);
    } catch (e) {
      if (!(e instanceof DecodeError)) throw e;
      if (i !== 1) throw new Error(`learned from it, and refused: ${e.code} ${e.path} ${e.message}`);
    }
  }
}

function run(n: number): boolean {
  decoders ??= [jsonRecords(FIELDS, OPTIONS), jsonRecords(FIELDS, OPTIONS, null)];
  const draw = draws(n);
  const whole = PAYLOADS.map((p) => UTF8.encode(p));
  const bad = damage(pick(draw, whole), draw);
  const [first, second]: [DecodeFault[], DecodeFault[]] = [[], []];
  const payloads = [pick(draw, whole), bad, pick(draw, whole)];
  const [a, b] = [told(decoders[0]!, payloads, first), told(decoders[1]!, payloads, second)];
  if (a !== b) throw new Error(`the module and the loops differ:\n${a}\n${b}`);
  if (JSON.stringify(first) !== JSON.stringify(second))
    throw new Error("they refuse it for different reasons");
  if (first.some((f) => f.row !== 1))
    throw new Error(`a whole payload was refused: ${JSON.stringify(first)}`);
  if (n % LEARN_EVERY === 0) learn(payloads);
  return first.length > 0;
}

export const jsonTarget: FuzzTarget = { name: "json", run };
