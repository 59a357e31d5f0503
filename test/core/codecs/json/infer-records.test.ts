/**
 * Goal: columns that are learned from records hold every one of them, whatever is in it, as columns and as Values, and what
 * is added later changes nothing of what was there. Method: drawn objects, a few of them as the sample, all of them decoded;
 * types by tables of records.
 */
import { expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import fc from "fast-check";
import { compileJson } from "../../../../src/core/codecs/json/compile.ts";
import { inferRecords } from "../../../../src/core/codecs/json/infer.ts";
import { DecodeError, type DecodeFault } from "../../../../src/core/codecs/record-codec.ts";
import { appendFields } from "../../../../src/core/schema/append-fields.ts";
import { builderOf } from "../../../../src/core/types/column-builder.ts";
import { schemaDocument } from "../../../../src/core/types/schema-file.ts";
import type { TableField } from "../../../../src/core/types/table-schema.ts";
import { typeText } from "../../../../src/core/types/type-text.ts";
import { cellValue } from "../../../../src/core/types/value-cells.ts";
import { valueJson } from "../../../../src/core/types/value-json.ts";

const utf8 = new TextEncoder();
const RESERVED = "_twg_";

const learn = (
  records: readonly (string | Uint8Array)[],
  now: readonly TableField[] = [],
  most = 500,
  plainNames = false,
) =>
  appendFields(
    now,
    inferRecords(
      records.map((r) => (typeof r === "string" ? utf8.encode(r) : r)),
      RESERVED,
    ),
    { maxColumns: most, plainNames },
  );
const told = (fields: readonly TableField[]) =>
  fields.map((f) => `${f.name} ${typeText(f.type)}${f.source === undefined ? "" : ` <- ${f.source}`}`);

test.each([
  ["whole numbers", ['{"a":1}', '{"a":-9223372036854775808}'], ["a int64"]],
  ["numbers with a fraction among them", ['{"a":1}', '{"a":1.5}'], ["a double"]],
  ["numbers above 64 bits keep their digits", ['{"a":18446744073709551615}'], ["a decimal(38,0)"]],
  ["digits that no double keeps", ['{"a":0.12345678901234567}'], ["a json"]],
  [
    "text that looks like a time, a number or a truth",
    ['{"a":"2026-01-01","b":"1","c":"true"}'],
    ["a string", "b string", "c string"],
  ],
  ["null and missing", ['{"a":null}', '{"a":1,"b":true}', "{}"], ["a int64", "b boolean"]],
  ["null alone", ['{"a":null}'], ["a json"]],
  ["several kinds", ['{"a":1}', '{"a":"x"}'], ["a json"]],
  [
    "objects and lists",
    ['{"a":{"b":1}}', '{"a":{"c":[{"d":1.5}]}}', '{"a":{"b":2,"c":[{"e":null}]}}'],
    ["a struct<b int64, c list<struct<d double, e json>>>"],
  ],
  ["empty ones", ['{"a":{},"b":[]}'], ["a json", "b list<json>"]],
  [
    "names that differ in case",
    ['{"id":1,"ID":"x","Id":true}', '{"id_2":1}'],
    ["id int64", "ID_2 string <- ID", "Id_3 boolean <- Id", "id_2_2 int64 <- id_2"],
  ],
  ["names that differ in case within an object", ['{"a":{"x":1,"X":2}}'], ["a json"]],
  [
    "names that no sink can have, and ours",
    [`{"":1,"${"x".repeat(64)}":1,"\\ud800":1,"a\\u0000":1,"_TWG_x":1,"b":1}`],
    ["b int64"],
  ],
  ["what is no object of JSON", ["[1]", "1", "{", '{"a":1}x', "", '{"ok":1}'], ["ok int64"]],
])("%s", (_, records, want) => {
  expect(told(learn(records))).toEqual([...want]);
});

test("bytes that are no UTF-8, and nestings beyond reason, are looked over", () => {
  const deep = `{"a":${"[".repeat(200_000)}${"]".repeat(200_000)}}`;
  expect(told(learn([Uint8Array.of(0x7b, 0xff), deep, '{"b":1}']))).toContain("b int64");
  const nested = `${'{"a":'.repeat(40)}1${"}".repeat(40)}`;
  expect(told(learn([nested]))[0]).toEndWith(`<a json${">".repeat(17)}`);
});

test("what grows is bounded: columns, and what is inside of them", () => {
  const wide = JSON.stringify(Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`k${i}`, i])));
  expect(learn([wide], [], 12).length).toBe(12);
  const data = Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`user${i}`, 1]));
  expect(told(learn([JSON.stringify({ data })]))).toEqual(["data json"]);
  const inner = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`k${i}`, 1]));
  const outer = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`o${i}`, inner]));
  expect(told(learn([JSON.stringify({ outer, inner })]))[0]).toBe("outer json");
});

test("what comes later is added at the end, and changes nothing", () => {
  const first = learn(['{"b":1,"a":"x"}']);
  const next = learn(['{"a":1.5,"B":true,"c":2,"b":"y"}'], first);
  expect(told(next)).toEqual(["b int64", "a string", "B_2 boolean <- B", "c int64"]);
  expect(learn(['{"a":1,"b":2}'], next)).toBe(next);
  expect(learn(['{"z":1}'], next, 4)).toBe(next);
});

test("plain names, for sinks that can have no others", () => {
  const record = '{"my-field":1,"1st":2,"my_field":3,"名":4,"o":{"a b":1},"p":{"ab":[{"c":1}]}}';
  expect(told(learn([record], [], 500, true))).toEqual([
    "my_field int64 <- my-field",
    "_1st int64 <- 1st",
    "my_field_2 int64 <- my_field",
    "_ int64 <- 名",
    "o json",
    "p struct<ab list<struct<c int64>>>",
  ]);
});

const key = fc.oneof(
  fc.constantFrom("a", "b", "B", "c d", 'q"', "1", "__proto__", "constructor", "ü"),
  fc.string({ maxLength: 5 }),
);
const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(
      ...["null", "true", "0", "-1", "1.5", "1e3", "9223372036854775807", "9223372036854775808", "1e400"],
      ...["0.1234567890123456789", '"2026-01-01"', '"x\\n\\u00e4\\ud83d\\ude00"', "[]", "{}"],
    ),
    fc.integer().map(String),
    fc.string().map((s) => JSON.stringify(s)),
    fc.array(tie("any"), { maxLength: 3 }).map((items) => `[${items.join(" , ")}]`),
    tie("object"),
  ),
  object: fc
    .uniqueArray(fc.tuple(key, tie("any")), { maxLength: 4, selector: ([k]) => k })
    .map((all) => `{${all.map(([k, v]) => `${JSON.stringify(k)}:${v as string}`).join()}}`),
}));

interface Read {
  readonly rows: string[];
  readonly faults: DecodeFault[];
}

/** Both ways: they have to agree. */
function read(fields: readonly TableField[], records: readonly string[]): Read {
  const options = { isUtf8, maxBytes: 1 << 20, unknown: "reject", reserved: RESERVED } as const;
  const decoder = compileJson({ text: schemaDocument({ fields }), references: [] }, options);
  expect(decoder.fields.map((f) => `${f.name} ${typeText(f.type)}`)).toEqual(
    fields.map((f) => `${f.name} ${typeText(f.type)}`),
  );
  const parts = records.map((r) => utf8.encode(r));
  const ends = new Int32Array(parts.length);
  for (const [i, p] of parts.entries()) ends[i] = (ends[i - 1] ?? 0) + p.length;
  const starts = ends.map((end, i) => end - parts[i]!.length);
  const columns = fields.map((f) => builderOf(f.type));
  const faults: DecodeFault[] = [];
  const bytes = Uint8Array.from(Buffer.concat(parts));
  const count = decoder.decode({ bytes, starts, ends, count: parts.length }, columns, (f) => faults.push(f));
  const done = columns.map((c) => c.finish());
  const rows = Array.from({ length: count }, (_, r) =>
    fields.map((f, i) => `${f.name}=${valueJson(cellValue(done[i]!, r))}`).join(" "),
  );
  const bad = new Map(faults.map((f) => [f.row, `${f.code} ${f.path} ${f.reason}`]));
  let row = 0;
  for (const [i, p] of parts.entries()) {
    try {
      const one = decoder.value(p, 0, p.length);
      if (one.kind !== "record") throw new Error(one.kind);
      const named = new Map(one.fields.map((f) => [f.name, f.value]));
      const cells = rows[row++]!;
      // What a record left out is missing in the Value and null in its column; inside of structs too, so only whole ones compare.
      for (const f of fields) {
        const v = named.get(f.name);
        if (v === undefined) expect(cells).toContain(`${f.name}=null`);
        else if (!typeText(f.type).includes("struct")) expect(cells).toContain(`${f.name}=${valueJson(v)}`);
      }
    } catch (e) {
      if (!(e instanceof DecodeError)) throw e;
      expect(`${e.code} ${e.path} ${e.message}`).toBe(bad.get(i)!);
    }
  }
  expect(row).toBe(count);
  return { rows, faults };
}

test("every record of the sample is a row of the columns that were learned from it", () => {
  fc.assert(
    fc.property(fc.array(value.object as fc.Arbitrary<string>, { minLength: 1, maxLength: 6 }), (records) => {
      const fields = learn(records);
      if (fields.length === 0) return;
      for (const f of read(fields, records).faults) {
        // Names that no sink can have are no columns; nothing else is refused.
        expect(f.code).toBe("decode.unknown_field");
        const odd = Object.keys(JSON.parse(records[f.row]!) as object).filter(
          (k) => k === "" || k.includes("\0") || !k.isWellFormed(),
        );
        expect(odd.length).toBeGreaterThan(0);
      }
    }),
    { numRuns: 60 },
  );
});

test("records beyond the sample are rows, or refused with code and path; after they were learned from no field is unknown", () => {
  const some = fc.array(value.object as fc.Arbitrary<string>, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(some, some, (first, later) => {
      const fields = learn(first);
      if (fields.length === 0) return;
      const before = read(fields, later);
      const grown = learn(later, fields);
      const after = read(grown, later);
      expect(after.faults.length).toBeLessThanOrEqual(before.faults.length);
      const top = (f: DecodeFault) => f.code === "decode.unknown_field" && f.path === "";
      expect(
        after.faults.filter(top).every((f) => /\\u|"\\"|""|\\0/.test(f.reason) || f.reason.includes("\0")),
      ).toBe(true);
    }),
    { numRuns: 30 },
  );
});
