/**
 * Goal: JSON payloads become the values that they say, in columns of any nesting, and a refused one costs only itself.
 * Method: values are drawn with their types and written as JSON with blanks, escapes and keys in any order; what is read by
 * the WebAssembly module and what is read without it must both be those values. Damaged texts must be refused by both
 * for the same reason, and whatever JSON.parse refuses must be.
 */
import { describe, expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import fc from "fast-check";
import { jsonRecords } from "../../../../src/core/codecs/json/compile.ts";
import type { RecordRules } from "../../../../src/core/codecs/json/record-cells.ts";
import type { DecodeFault } from "../../../../src/core/codecs/record-codec.ts";
import type { TextRecords } from "../../../../src/core/codecs/text-records.ts";
import { builderOf } from "../../../../src/core/types/column-builder.ts";
import type { ColumnField, ColumnType } from "../../../../src/core/types/table-batch.ts";
import type { Value } from "../../../../src/core/types/value.ts";
import { cellValue } from "../../../../src/core/types/value-cells.ts";
import { cellOf, schema } from "../table.ts";

const utf8 = new TextEncoder();
const WAYS = ["module", "loops"] as const;
type Way = (typeof WAYS)[number];

interface Decoded {
  readonly rows: readonly (readonly unknown[])[];
  readonly faults: readonly DecodeFault[];
}

type Options = Partial<RecordRules> & { readonly maxBytes?: number };

function decoderOf(way: Way, fields: readonly ColumnField[], options: Options = {}): TextRecords {
  const all = { unknown: "reject", reserved: null, maxBytes: 1 << 24, isUtf8, ...options } as const;
  return way === "module" ? jsonRecords(fields, all) : jsonRecords(fields, all, null);
}

/** `gap`: bytes of another kind between the payloads. */
function decode(decoder: TextRecords, payloads: readonly (string | Uint8Array)[], gap = 0): Decoded {
  const parts = payloads.map((p) => (typeof p === "string" ? utf8.encode(p) : p));
  const bytes = new Uint8Array(parts.reduce((n, p) => n + p.length + gap, 0)).fill(0xff);
  const starts = new Int32Array(parts.length);
  const ends = new Int32Array(parts.length);
  let at = 0;
  for (const [i, p] of parts.entries()) {
    at += gap;
    bytes.set(p, at);
    starts[i] = at;
    at += p.length;
    ends[i] = at;
  }
  const columns = decoder.fields.map((f) => builderOf(f.type));
  const faults: DecodeFault[] = [];
  const rows = decoder.decode({ bytes, starts, ends, count: parts.length }, columns, (f) => faults.push(f));
  const done = columns.map((c) => c.finish());
  for (const c of done) expect(c.length).toBe(rows);
  return { rows: Array.from({ length: rows }, (_, r) => done.map((c) => cellOf(c, r))), faults };
}

function both(text: string, payloads: readonly (string | Uint8Array)[], options: Options = {}): Decoded {
  const { fields } = schema(text);
  const [a, b] = WAYS.map((way) => decode(decoderOf(way, fields, options), payloads));
  const sorted = (d: Decoded) => ({ rows: d.rows, faults: d.faults.toSorted((x, y) => x.row - y.row) });
  expect(sorted(a!)).toEqual(sorted(b!));
  return sorted(a!);
}

const one = (text: string, payload: string | Uint8Array, options: Options = {}): string => {
  const { faults } = both(text, [payload], options);
  return faults.map((f) => `${f.code} ${f.path}: ${f.reason}`).join();
};

/** A value as JSON, and as `cellOf` shows it. */
interface Drawn {
  readonly json: string;
  readonly cell: unknown;
}

const blank = fc.constantFrom("", "", "", " ", "\n", "\t \r\n");

function quoted(s: string, ascii: boolean): string {
  const plain = JSON.stringify(s);
  if (!ascii) return plain;
  // Escapes stay, each taken as one: what follows an escaped backslash is none.
  return plain.replace(/\\u....|\\.|[^"\\ !]/g, (c) =>
    c.length > 1 || /[0-9a-f]/i.test(c) ? c : `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

const texts = fc
  .tuple(fc.string({ unit: "grapheme", maxLength: 40 }), fc.boolean())
  .map(([s, ascii]): Drawn => ({ json: quoted(s, ascii), cell: s }));

function drawn(type: ColumnType): fc.Arbitrary<Drawn> {
  switch (type.id) {
    case "bool":
      return fc.boolean().map((v) => ({ json: String(v), cell: v }));
    case "int":
      return type.bits === 64
        ? fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((v) => ({ json: String(v), cell: v }))
        : fc.integer().map((v) => ({ json: String(v), cell: v }));
    case "float":
      return fc
        .double({ noNaN: true, noDefaultInfinity: true })
        .map((v) => ({ json: JSON.stringify(v), cell: Object.is(v, -0) ? 0 : v }));
    case "decimal":
      return fc.bigInt({ min: -(10n ** 17n), max: 10n ** 17n }).map((v) => {
        const digits = String(v < 0n ? -v : v).padStart(3, "0");
        return { json: `${v < 0n ? "-" : ""}${digits.slice(0, -2)}.${digits.slice(-2)}`, cell: v };
      });
    case "timestamp":
      return fc.integer({ min: 0, max: 4e9 }).map((s) => {
        const ms = s * 1000 + (s % 1000);
        return { json: `"${new Date(ms).toISOString()}"`, cell: BigInt(ms) };
      });
    case "list":
      return fc.tuple(fc.array(maybe(type.item), { maxLength: 6 }), blank).map(([items, b]) => ({
        json: `[${b}${items.map((i) => i.json).join(`${b},`)}${b}]`,
        cell: items.map((i) => i.cell),
      }));
    case "struct":
      return object(type.fields);
    case "map":
      return fc.dictionary(fc.string({ maxLength: 5 }), maybe(type.value), { maxKeys: 4 }).map((d) => ({
        json: `{${Object.entries(d)
          .map(([k, v]) => `${JSON.stringify(k)}: ${v.json}`)
          .join(",")}}`,
        cell: Object.entries(d).map(([key, v]) => ({ key, value: v.cell })),
      }));
    default:
      return texts;
  }
}

function maybe({ type, nullable }: ColumnField): fc.Arbitrary<Drawn> {
  const some = drawn(type);
  return nullable
    ? fc.oneof(
        { weight: 1, arbitrary: fc.constant({ json: "null", cell: null }) },
        { weight: 5, arbitrary: some },
      )
    : some;
}

/** Keys in any order; what is null may be left out. */
function object(fields: readonly ColumnField[]): fc.Arbitrary<Drawn> {
  const members = fields.map((f) =>
    fc.tuple(maybe(f), blank, fc.boolean(), fc.boolean()).map(([v, b, out, ascii]) => ({
      cell: [f.name, v.cell] as const,
      json: out && v.cell === null ? [] : [`${quoted(f.name, ascii)}${b}:${b}${v.json}${b}`],
    })),
  );
  return fc.tuple(fc.tuple(...members), blank, fc.infiniteStream(fc.nat())).map(([ms, b, order]) => {
    const keyed = ms.flatMap((m) => m.json).map((json) => ({ json, rank: order.next().value as number }));
    if ((order.next().value as number) % 2 === 0) keyed.sort((x, y) => x.rank - y.rank);
    return {
      json: `{${b}${keyed.map((m) => m.json).join(`,${b}`)}}`,
      cell: Object.fromEntries(ms.map((m) => m.cell)),
    };
  });
}

const leaves = fc.constantFrom(
  "int64",
  "int32",
  "double",
  "string",
  "boolean",
  "decimal(18,2)",
  "timestamptz[ms]",
);
const types = fc.letrec<{ type: string }>((tie) => ({
  type: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaves,
    tie("type").map((t) => `list<${t}>`),
    fc
      .array(tie("type"), { minLength: 1, maxLength: 4 })
      .map((ts) => `struct<${ts.map((t, i) => `k${i} ${t}`).join(", ")}>`),
    tie("type").map((t) => `map<string, ${t}>`),
  ),
})).type;
const tables = fc
  .array(types, { minLength: 1, maxLength: 5 })
  .map(
    (ts) => schema(ts.map((t, i) => `c${i} ${t}`).join(";") + (ts.length === 1 ? ";x string" : "")).fields,
  );

describe("records of any nesting", () => {
  test("are the values that they say, with the module and without, with gaps and without", () => {
    const cases = tables.chain((fields) =>
      fc.tuple(fc.constant(fields), fc.array(object(fields), { maxLength: 12 }), fc.constantFrom(0, 5)),
    );
    fc.assert(
      fc.property(cases, ([fields, records, gap]) => {
        for (const way of WAYS) {
          const { rows, faults } = decode(
            decoderOf(way, fields),
            records.map((r) => r.json),
            gap,
          );
          expect(faults).toEqual([]);
          expect(rows).toEqual(records.map((r) => Object.values(r.cell as object)));
        }
      }),
      { numRuns: 60 },
    );
  });

  test("a damaged one is refused for one reason, whoever reads it, and the others stay", () => {
    const cases = tables.chain((fields) =>
      fc.tuple(
        fc.constant(fields),
        fc.array(object(fields), { minLength: 1, maxLength: 6 }),
        fc.nat(),
        fc.nat(),
        fc.constantFrom(...'{}[]",:0-.eE\\u nt1 ', "\u0000", "\n"),
      ),
    );
    fc.assert(
      fc.property(cases, ([fields, records, which, where, mark]) => {
        const payloads = records.map((r) => r.json);
        const bad = which % payloads.length;
        const at = where % (payloads[bad]!.length + 1);
        const text = payloads[bad]!;
        payloads[bad] =
          where % 3 === 0 ? text.slice(0, at) : text.slice(0, at) + mark + text.slice(at + (where % 2));
        const [a, b] = WAYS.map((way) => decode(decoderOf(way, fields), payloads));
        expect(a).toEqual(b!);
        for (const f of a!.faults) expect(f.row).toBe(bad);
        if (!isJson(payloads[bad]!)) expect(a!.faults.length).toBe(1);
      }),
      { numRuns: 120 },
    );
  });
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

test("a Value is the same record, and what it leaves out is not null", () => {
  const decoder = decoderOf(
    "module",
    schema("id int64;to struct<city string, zip string>;tags list<struct<k string>>").fields,
  );
  const bytes = utf8.encode('x{"to":{"zip":null},"tags":[{},{"k":"a"},null]}y');
  const record = (...fields: [string, unknown][]) => ({
    kind: "record",
    fields: fields.map(([name, value]) => ({ name, value })),
  });
  const nothing = { kind: "null" };
  expect(decoder.value(bytes, 1, bytes.length - 1)).toEqual(
    record(
      ["to", record(["zip", nothing])],
      ["tags", { kind: "list", items: [record(), record(["k", { kind: "string", value: "a" }]), nothing] }],
    ) as never,
  );
  expect(() => decoder.value(bytes, 0, bytes.length)).toThrow("no JSON value at byte 0");
});

test("Values say what columns say, of every record", () => {
  const cases = tables.chain((fields) => fc.tuple(fc.constant(fields), object(fields)));
  fc.assert(
    fc.property(cases, ([fields, record]) => {
      const decoder = decoderOf("module", fields);
      const bytes = utf8.encode(record.json);
      const columns = fields.map((f) => builderOf(f.type));
      decoder.decode(
        { bytes, starts: Int32Array.of(0), ends: Int32Array.of(bytes.length), count: 1 },
        columns,
        () => {},
      );
      const value = decoder.value(bytes, 0, bytes.length);
      if (value.kind !== "record") throw new Error(value.kind);
      const byName = new Map(value.fields.map((f) => [f.name, f.value]));
      for (const [i, f] of fields.entries())
        expect(filled(byName.get(f.name), f.type)).toEqual(cellValue(columns[i]!.finish(), 0));
    }),
    { numRuns: 60 },
  );
});

/** What was left out as null, as columns have it. */
function filled(value: Value | undefined, type: ColumnType): Value {
  if (value === undefined) return { kind: "null" };
  if (value.kind === "record" && type.id === "struct") {
    const byName = new Map(value.fields.map((f) => [f.name, f.value]));
    return {
      kind: "record",
      fields: type.fields.map((f) => ({ name: f.name, value: filled(byName.get(f.name), f.type) })),
    };
  }
  if (value.kind === "list" && type.id === "list")
    return { kind: "list", items: value.items.map((v) => filled(v, type.item.type)) };
  if (value.kind === "map" && type.id === "map")
    return { kind: "map", entries: value.entries.map(([k, v]) => [k, filled(v, type.value.type)]) };
  return value;
}

describe("reasons", () => {
  const TABLE =
    "id int64!;name string;items list<struct<sku string, qty int32>>;tags map<string, int32>;doc json";

  test("name the place and what is wrong", () => {
    expect(one(TABLE, "")).toBe("decode.truncated : the payload is empty");
    expect(one(TABLE, "[1]")).toBe("decode.type : [1] is no object");
    expect(one(TABLE, '{"id":1,}')).toBe("decode.syntax : no key at byte 8");
    expect(one(TABLE, '{"id":1} x')).toBe("decode.trailing : bytes behind the value, from byte 9 on");
    expect(one(TABLE, '{"name":"x"}')).toBe("decode.null id: missing, and the field is required");
    expect(one(TABLE, '{"id":null}')).toBe("decode.null id: null, and the field is required");
    expect(one(TABLE, '{"id":1,"id":1}')).toBe('decode.duplicate_key : the key "id" comes twice');
    expect(one(TABLE, '{"id":1,"idd":1}')).toBe('decode.unknown_field : the schema has no "idd"');
    expect(one(TABLE, '{"id":9223372036854775808}')).toBe(
      'decode.range id: "9223372036854775808" does not fit in int64',
    );
    expect(one(TABLE, '{"id":1,"items":[{"sku":"a"},{"qty":2.5}]}')).toBe(
      'decode.range items[1].qty: "2.5" would be rounded as int32',
    );
    expect(one(TABLE, '{"id":1,"items":[{"sku":"a"},7]}')).toBe(
      "decode.type items[1]: 7 is no struct<sku string, qty int32>",
    );
    expect(one(TABLE, '{"id":1,"tags":{"a":1,"a":2}}')).toBe(
      'decode.duplicate_key tags: the key "a" comes twice',
    );
    expect(one(TABLE, '{"id":1,"tags":{"b":"x"}}')).toBe('decode.type tags[0]: "x" is no int32');
    expect(one(TABLE, '{"id":1,"tags":{"b":true}}')).toBe('decode.type tags["b"]: true is no int32');
    expect(one(TABLE, `{"id":1,"name":"x`)).toBe(
      "decode.truncated name: it ends where a JSON value is wanted",
    );
    expect(one(TABLE, '{"id":"é１"}')).toBe('decode.type id: "é１" is no int64');
    expect(one(TABLE, Uint8Array.of(0x7b, 0xff, 0x7d))).toBe("decode.encoding : bytes that are no UTF-8");
    expect(one(TABLE, `{"id":1,"doc":${"[".repeat(500)}${"]".repeat(500)}}`)).toBe(
      "decode.depth doc: nested too deeply",
    );
    expect(one(TABLE, '{"id":1}', { maxBytes: 7 })).toBe("decode.size : 8 bytes; at most 7 are taken");
  });

  test("keys that the schema does not have may be looked over; reserved ones never", () => {
    const ignore = { unknown: "ignore", reserved: "_twg_" } as const;
    expect(one(TABLE, '{"x":[{"y":null}],"id":1}', ignore)).toBe("");
    expect(one(TABLE, '{"x":[{"y":nul}],"id":1}', ignore)).toStartWith("decode.syntax");
    expect(one(TABLE, '{"_TWG_source_offset":1,"id":1}', ignore)).toBe(
      'decode.reserved : the key "_TWG_source_offset" begins with _twg_, which is ours',
    );
  });

  test("numbers are not bent, and lone surrogates and NaN are no JSON", () => {
    const kept = both("id int64;d decimal(38,0);f double", [
      '{"id":9007199254740993,"d":18446744073709551615,"f":1e-7}',
      '{"id":"9007199254740993"}',
    ]);
    expect(kept.rows).toEqual([
      [9007199254740993n, 18446744073709551615n, 1e-7],
      [9007199254740993n, null, null],
    ]);
    for (const bad of [
      '"\\ud800"',
      '"\\udc00x"',
      '"\\ud800\\u0041"',
      "NaN",
      "Infinity",
      "01",
      "1.",
      "+1",
      "'x'",
    ])
      expect(one("v json", `{"v":${bad}}`)).toStartWith("decode.syntax");
    expect(one("f double", '{"f":1e400}')).toStartWith("decode.range f");
    expect(both("s string", ['{"s":"\\ud83d\\ude00\\u00e4\\u20ac\\u0041"}']).rows).toEqual([["😀ä€A"]]);
  });

  test("one bad record of many costs only itself, wherever it is found", () => {
    const payloads = Array.from({ length: 5000 }, (_, i) =>
      i % 1000 === 7
        ? `{"id":${i},"items":[{"qty":1.5}]}`
        : i % 1000 === 9
          ? `{"id":${i}`
          : `{"id":${i},"items":[{"qty":${i}}]}`,
    );
    const { rows, faults } = both(TABLE, payloads);
    expect(faults.map((f) => f.row)).toEqual([0, 1, 2, 3, 4].flatMap((k) => [1000 * k + 7, 1000 * k + 9]));
    expect(rows.length).toBe(4990);
    expect(rows.map((r) => r[0])).toEqual(
      payloads.map((_, i) => BigInt(i)).filter((i) => i % 1000n !== 7n && i % 1000n !== 9n),
    );
  });

  test("records with more items than there is room for", () => {
    const items = (n: number) =>
      `[${Array.from({ length: n }, (_, i) => `[${i},${"1,".repeat(i % 5)}null]`).join()}]`;
    const { rows, faults } = both("v list<list<int32>>;w int32", [
      '{"w":1}',
      `{"v":${items(70_000)},"w":2}`,
      '{"v":[[7]],"w":3}',
    ]);
    expect(faults).toEqual([]);
    expect(rows.map((r) => r[1])).toEqual([1, 2, 3]);
    expect((rows[1]![0] as unknown[]).length).toBe(70_000);
    expect(rows[2]![0]).toEqual([[7]]);
  });

  test("a record that is cut off does not go on in the next one", () => {
    const { rows, faults } = both("v list<int32>;w int32", [
      '{"v":[1',
      ',2],"w":1}',
      "",
      '{"w":5}',
      '{"w":',
      "6}",
    ]);
    expect(rows).toEqual([[null, 5]]);
    expect(faults.map((f) => [f.row, f.code])).toEqual([
      [0, "decode.truncated"],
      [1, "decode.syntax"],
      [2, "decode.truncated"],
      [4, "decode.truncated"],
      [5, "decode.type"],
    ]);
  });
});
