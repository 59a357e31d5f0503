/**
 * Damaged XML documents beside whole ones: those stay whole, and the damaged one is read or refused by a code, the same by
 * itself as among others.
 */
import { isUtf8 } from "node:buffer";
import { DecodeError, type DecodeFault } from "../../src/core/codecs/record-codec.ts";
import { XmlRecords } from "../../src/core/codecs/xml/compile.ts";
import { builderOf } from "../../src/core/types/column-builder.ts";
import type { ColumnField } from "../../src/core/types/table-batch.ts";
import { parseType } from "../../src/core/types/type-text.ts";
import { damage, draws, pick } from "./draws.ts";
import type { FuzzTarget } from "./target.ts";

const TABLE: Readonly<Record<string, string>> = {
  "@id": "int64",
  "p:name": "string",
  at: "timestamptz[ms]",
  item: 'list<struct<"@sku" string, qty int32, "#text" string>>',
  to: "struct<city string, geo struct<lat double, lon double>>",
};
const DOCUMENTS = [
  '<?xml version="1.0" encoding="UTF-8"?><o xmlns:q="urn:p" id="7"><q:name>A &amp;&#228; <![CDATA[<B>]]></q:name><at>2026-01-01T00:00:00.5Z</at></o>',
  "<o id='-1'><item sku='x&lt;'>lamp<qty>2</qty></item>\r\n<item><qty/></item><to><city>K\u00f6ln</city><geo><lat>1.5</lat></geo></to></o>",
  '<!-- c --><o xmlns:i="http://www.w3.org/2001/XMLSchema-instance" xmlns="urn:q"><to i:nil="1"/><?pi x?><item/></o >',
];

const UTF8 = new TextEncoder();
const FIELDS: readonly ColumnField[] = Object.entries(TABLE).map(([name, text]) => {
  const type = parseType(text);
  if (typeof type === "string") throw new Error(type);
  return { name, type, nullable: true };
});

let decoder: XmlRecords | null = null;

/** Null: it is read. */
function aloneOf(decoder: XmlRecords, bytes: Uint8Array): string | null {
  try {
    decoder.value(bytes, 0, bytes.length);
    return null;
  } catch (e) {
    if (!(e instanceof DecodeError)) throw e;
    return `${e.code} ${e.path}: ${e.message}`;
  }
}

function run(n: number): boolean {
  decoder ??= new XmlRecords(FIELDS, {
    unknown: n % 2 === 0 ? "ignore" : "reject",
    prefixes: new Map([["urn:p", "p"]]),
    reserved: "_twg_",
    maxBytes: 1 << 20,
    maxDepth: 64,
    isUtf8,
  });
  const draw = draws(n);
  const whole = DOCUMENTS.map((d) => UTF8.encode(d));
  const payloads = [pick(draw, whole), damage(pick(draw, whole), draw), pick(draw, whole)];
  const ends = new Int32Array(3);
  for (const [i, p] of payloads.entries()) ends[i] = (ends[i - 1] ?? 0) + p.length;
  const starts = ends.map((end, i) => end - payloads[i]!.length);
  const columns = FIELDS.map((f) => builderOf(f.type));
  const faults: DecodeFault[] = [];
  const bytes = Uint8Array.from(Buffer.concat(payloads));
  const rows = decoder.decode({ bytes, starts, ends, count: 3 }, columns, (f) => faults.push(f));
  if (faults.some((f) => f.row !== 1))
    throw new Error(`a whole document was refused: ${JSON.stringify(faults)}`);
  const alone = aloneOf(decoder, payloads[1]!);
  const [among = null] = faults.map((f) => `${f.code} ${f.path}: ${f.reason}`);
  if (alone !== among) throw new Error(`by itself ${alone}, among others ${among}`);
  if (rows + faults.length !== 3) throw new Error(`${rows} rows and ${faults.length} faults of 3`);
  if (columns.some((c) => c.finish().length !== rows)) throw new Error("columns of different lengths");
  return faults.length > 0;
}

export const xmlTarget: FuzzTarget = { name: "xml", run };
