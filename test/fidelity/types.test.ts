/**
 * Goal: a value of every type of docs/reference/types.md is the same after it was encoded, produced, consumed and decoded, as a
 * Value and as columns. Method: values of each type with its extremes, by hand; payloads that come of columns must be those
 * that came of Values, byte for byte. A type that is added to a format's list has no entry here until somebody writes it, and
 * tsc, or the first test of the format, says so. That the bytes are those of the format, tests beside the codecs prove against
 * its reference implementations.
 */
import { describe, expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import { ScalarType } from "@bufbuild/protobuf";
import { columnsOfPayloads, columnsOfValues } from "../../src/adapters/kafka/producer/columns.ts";
import { encodeColumns } from "../../src/core/codecs/avro/encode-columns.ts";
import { avroEncoder } from "../../src/core/codecs/avro/encode-value.ts";
import { NESTED as AVRO_NESTED, type ScalarKey } from "../../src/core/codecs/avro/type-map.ts";
import { compileJson } from "../../src/core/codecs/json/compile.ts";
import { encodeJsonColumns } from "../../src/core/codecs/json/encode.ts";
import { protobufCodec } from "../../src/core/codecs/protobuf/compile.ts";
import { registryOf } from "../../src/core/codecs/protobuf/descriptors.ts";
import { encodeProtobufColumns } from "../../src/core/codecs/protobuf/encode-columns.ts";
import type { Payloads, RecordDecoder, RecordEncoder } from "../../src/core/codecs/record-codec.ts";
import type { TableBatch } from "../../src/core/types/table-batch.ts";
import type { Value } from "../../src/core/types/value.ts";
import { compile, text, together } from "../core/codecs/avro/decode.ts";
import type { Schema } from "../core/codecs/avro/random-avro.ts";
import { decodeAll } from "../core/codecs/protobuf/agree.ts";
import { schemaText } from "../core/codecs/protobuf/schema-text.ts";
import { cellOf, schema } from "../core/codecs/table.ts";
import { produced } from "./produced.ts";
import { CORPUS, consumed } from "./records.ts";

const UTF8 = new TextEncoder();
const NULL: Value = { kind: "null" };
const int = (value: number): Value => ({ kind: "int", value });
const long = (value: bigint): Value => ({ kind: "long", value });
const string = (value: string): Value => ({ kind: "string", value });
const bytes = (...value: number[]): Value => ({ kind: "bytes", value: Uint8Array.from(value) });
const decimal = (unscaled: bigint, scale: number): Value => ({ kind: "decimal", unscaled, scale });
const list = (...items: Value[]): Value => ({ kind: "list", items });
const map = (...entries: (readonly [Value, Value])[]): Value => ({ kind: "map", entries });
const union = (branch: string, value: Value): Value => ({ kind: "union", branch, value });
const record = (fields: Readonly<Record<string, Value>>): Value => ({
  kind: "record",
  fields: Object.entries(fields).map(([name, value]) => ({ name, value })),
});
const at = (unit: "ms" | "us" | "ns", zone: string | null, ...values: bigint[]): Value[] =>
  values.map((value) => ({ kind: "timestamp", unit, zone, value }));
const time = (unit: "ms" | "us" | "ns", ...values: bigint[]): Value[] =>
  values.map((value) => ({ kind: "time", unit, value }));
const enumOf = (symbol: string): Value => ({ kind: "enum", symbol });

const [MAX, MIN] = [2n ** 63n - 1n, -(2n ** 63n)];
const LONGS = [0n, -1n, 2n ** 53n + 1n, MAX, MIN].map(long);
const INTS = [0, -1, 2 ** 31 - 1, -(2 ** 31)].map(int);
const TEXTS = ["", "é世\u{1f600}", "\0\n\"'\\", "x".repeat(300)].map(string);
const BLOBS = [bytes(), bytes(0, 255, 0xc3, 0x28), bytes(...Array.from({ length: 300 }, (_, i) => i & 255))];
const BOOLS: Value[] = [true, false].map((value) => ({ kind: "bool", value }));
const DOUBLES: Value[] = [0, -0, 1 / 3, Number.MAX_VALUE, 5e-324, Infinity, -Infinity, Number.NaN].map(
  (value) => ({
    kind: "double",
    value,
  }),
);
const FLOATS: Value[] = [0, -0, Math.fround(1 / 3), Math.fround(3.4e38), Infinity, Number.NaN].map(
  (value) => ({
    kind: "float",
    value,
  }),
);
const UUIDS: Value[] = [0, 255].map((b) => ({ kind: "uuid", value: new Uint8Array(16).fill(b) }));

/** Encoder, decoder and the way back from columns of one schema. */
interface Codec {
  readonly encoder: RecordEncoder;
  readonly decoder: RecordDecoder;
  readonly back: (table: TableBatch) => Payloads;
}

const payloadsIn = ({ bytes: b, starts, ends, count }: Payloads): Uint8Array[] =>
  Array.from({ length: count }, (_, i) => b.slice(starts[i], ends[i]));

/** Values of records that were produced and consumed. */
function overTopic(columns: Parameters<typeof produced>[0]): (Uint8Array | null)[] {
  const { bytes: log, next } = produced(columns);
  return consumed(log, CORPUS, next).flatMap(({ rows, value: v }) =>
    Array.from({ length: rows }, (_, i) =>
      v.nullCount > 0 && ((v.validity[i >> 3]! >> (i & 7)) & 1) === 0
        ? null
        : v.data.slice(v.offsets[i], v.offsets[i + 1]),
    ),
  );
}

/**
 * `refused`: columns are not written back by the schema of the values, since what has no column of its own is JSON text there;
 * a Kafka sink writes it by the schema of its columns, as the text that it is.
 */
function keeps({ encoder, decoder, back }: Codec, values: readonly Value[], refused = false): void {
  const rows = values.map((f) => record({ f }));
  const sent = overTopic(columnsOfValues([...rows, null], encoder));
  // A tombstone is none of the codec's.
  expect(sent.pop()).toBeNull();
  const payloads = sent.map((p) => p!);
  expect(payloads.map((p) => decoder.value(p, 0, p.length))).toEqual(rows);
  const { columns, rows: decoded, faults } = decodeAll(decoder, payloads);
  expect([decoded, faults]).toEqual([rows.length, []]);
  const table = { fields: decoder.fields, columns, rows: decoded };
  if (refused) {
    expect(() => back(table)).toThrow("a column of json");
    return;
  }
  const again = back(table);
  expect(overTopic(columnsOfPayloads(again)).map((p) => p!.toHex())).toEqual(payloads.map((p) => p.toHex()));
  expect(payloadsIn(again).map((p) => decoder.value(p, 0, p.length))).toEqual(rows);
}

describe("Avro", () => {
  const of = (f: Schema): Codec => {
    const type = { type: "record", name: "R", namespace: "n", fields: [{ name: "f", type: f }] };
    return {
      encoder: avroEncoder(text(type)),
      decoder: compile(type),
      back: (table) => encodeColumns(text(type), table),
    };
  };
  const logical = (type: Schema, logicalType: string, more: object = {}): Schema => {
    const base = typeof type === "string" ? { type } : (type as object);
    return { ...base, logicalType, ...more } as Schema;
  };
  const NINES = 10n ** 38n - 1n;

  const SCALARS: Readonly<Record<ScalarKey, readonly (readonly [Schema, readonly Value[]])[]>> = {
    null: [["null", [NULL]]],
    boolean: [["boolean", BOOLS]],
    int: [["int", INTS]],
    long: [["long", LONGS]],
    float: [["float", FLOATS]],
    double: [["double", DOUBLES]],
    bytes: [["bytes", BLOBS]],
    string: [["string", TEXTS]],
    fixed: [[{ type: "fixed", name: "F", size: 3 }, [bytes(0, 128, 255), bytes(1, 2, 3)]]],
    decimal: [
      [
        logical("bytes", "decimal", { precision: 38, scale: 10 }),
        [0n, 1n, -1n, 128n, -129n, NINES, -NINES].map((n) => decimal(n, 10)),
      ],
      [
        logical({ type: "fixed", name: "F", size: 5 }, "decimal", { precision: 9, scale: 0 }),
        [0n, 999_999_999n, -5n].map((n) => decimal(n, 0)),
      ],
      [
        logical("bytes", "decimal", { precision: 60, scale: 3 }),
        [-1n, 10n ** 60n - 1n].map((n) => decimal(n, 3)),
      ],
    ],
    "big-decimal": [
      [logical("bytes", "big-decimal"), [decimal(0n, 0), decimal(-(10n ** 50n), 7), decimal(15n, 40)]],
    ],
    uuid: [
      [logical("string", "uuid"), UUIDS],
      [logical({ type: "fixed", name: "U", size: 16 }, "uuid"), UUIDS],
    ],
    date: [[logical("int", "date"), [0, -719_162, 2_932_896].map((days) => ({ kind: "date", days }))]],
    "time-ms": [[logical("int", "time-millis"), time("ms", 0n, 86_399_999n)]],
    "time-us": [[logical("long", "time-micros"), time("us", 0n, 86_399_999_999n)]],
    "time-ns": [
      [{ type: "long", "connect.name": "io.debezium.time.NanoTime" }, time("ns", 0n, 86_399_999_999_999n)],
    ],
    "timestamp-ms": [[logical("long", "timestamp-millis"), at("ms", "UTC", 0n, -1n, MAX, MIN)]],
    "timestamp-us": [[logical("long", "timestamp-micros"), at("us", "UTC", 0n, -1n, MAX, MIN)]],
    "timestamp-ns": [[logical("long", "timestamp-nanos"), at("ns", "UTC", 0n, -1n, MAX, MIN)]],
    "local-timestamp-ms": [[logical("long", "local-timestamp-millis"), at("ms", null, 0n, -1n, MAX, MIN)]],
    "local-timestamp-us": [[logical("long", "local-timestamp-micros"), at("us", null, 0n, -1n, MAX, MIN)]],
    "local-timestamp-ns": [[logical("long", "local-timestamp-nanos"), at("ns", null, 0n, -1n, MAX, MIN)]],
    duration: [
      [
        logical({ type: "fixed", name: "D", size: 12 }, "duration"),
        [
          { kind: "interval", months: 0, days: 0, nanoseconds: 0n },
          { kind: "interval", months: 2 ** 31 - 1, days: 2 ** 31 - 1, nanoseconds: 4_294_967_295_000_000n },
        ],
      ],
    ],
  };

  const NODE: Schema = {
    type: "record",
    name: "Node",
    fields: [
      { name: "v", type: "int" },
      { name: "next", type: ["null", "Node"] },
    ],
  };
  const node = (depth: number): Value =>
    record({ v: int(depth), next: depth === 0 ? NULL : node(depth - 1) });
  const MONEY = logical("bytes", "decimal", { precision: 9, scale: 2 });
  const SIDE: Schema = { type: "record", name: "Side", fields: [{ name: "x", type: "string" }] };

  const AS_JSON = "JSON text where there are columns";
  const NESTED: Readonly<Record<string, readonly (readonly [Schema, readonly Value[], string?])[]>> = {
    enum: [[{ type: "enum", name: "E", symbols: ["A", "B"] }, [enumOf("A"), enumOf("B")]]],
    array: [
      [{ type: "array", items: ["null", "long"] }, [list(), list(NULL, long(MAX), NULL), list(...LONGS)]],
    ],
    map: [
      [
        { type: "map", values: ["null", "string"] },
        [map(), map([string(""), NULL], [string("é"), string("")])],
      ],
    ],
    record: [
      [SIDE, TEXTS.map((x) => record({ x }))],
      [{ type: "record", name: "Empty", fields: [] }, [record({})], AS_JSON],
    ],
    "union of null and T": [
      [
        ["null", "long"],
        [NULL, ...LONGS],
      ],
      [
        ["string", "null"],
        [NULL, ...TEXTS],
      ],
    ],
    "union of several": [
      [
        ["null", "long", "string", MONEY, SIDE],
        [
          NULL,
          union("long", long(MIN)),
          union("string", string("")),
          union("bytes", decimal(-105n, 2)),
          union("Side", record({ x: string("s") })),
        ],
      ],
    ],
    "record within itself": [[NODE, [0, 1, 2, 5].map(node), AS_JSON]],
  };

  test("every row of the format's list has its values here", () => {
    expect(Object.keys(NESTED)).toEqual(AVRO_NESTED.map((row) => row.avro));
  });

  for (const [name, cases] of Object.entries<readonly (readonly [Schema, readonly Value[], string?])[]>({
    ...SCALARS,
    ...NESTED,
  }))
    test(name, () => {
      for (const [type, values, lost = ""] of cases) keeps(of(type), values, lost !== "");
    });
});

describe("Protobuf", () => {
  const VALUES: Readonly<Record<ScalarType, readonly Value[]>> = {
    [ScalarType.DOUBLE]: DOUBLES,
    [ScalarType.FLOAT]: FLOATS,
    [ScalarType.INT32]: INTS,
    [ScalarType.SINT32]: INTS,
    [ScalarType.SFIXED32]: INTS,
    [ScalarType.UINT32]: [0n, 2n ** 32n - 1n].map(long),
    [ScalarType.FIXED32]: [0n, 2n ** 32n - 1n].map(long),
    [ScalarType.INT64]: LONGS,
    [ScalarType.SINT64]: LONGS,
    [ScalarType.SFIXED64]: LONGS,
    [ScalarType.UINT64]: [0n, 2n ** 53n + 1n, 2n ** 64n - 1n].map(long),
    [ScalarType.FIXED64]: [0n, 2n ** 53n + 1n, 2n ** 64n - 1n].map(long),
    [ScalarType.BOOL]: BOOLS,
    [ScalarType.STRING]: TEXTS,
    [ScalarType.BYTES]: BLOBS,
  };
  const of = (field: string): Codec => {
    const source = `syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
      enum E { Z = 0; ONE = 1; } message N { int32 v = 1; N next = 2; } message M { ${field} f = 1; }`;
    const codec = protobufCodec(registryOf(schemaText(source)), { message: "M" });
    return { encoder: codec.encoder, decoder: codec.decoder, back: (t) => encodeProtobufColumns(codec, t) };
  };
  const SCALARS = Object.entries(ScalarType).filter(([, n]) => typeof n === "number");

  test.each(SCALARS.map(([name, n]) => [name.toLowerCase(), n as ScalarType] as const))("%s", (name, n) => {
    keeps(of(`optional ${name}`), VALUES[n]);
    keeps(of(`repeated ${name}`), [list(...VALUES[n]), list(VALUES[n][0]!)]);
  });

  test("enum, map, message within itself, timestamp and duration", () => {
    keeps(of("optional E"), [enumOf("Z"), enumOf("ONE"), enumOf("7")]);
    keeps(of("map<int64, string>"), [map([long(MIN), string("")], [long(MAX), string("é")])]);
    keeps(of("google.protobuf.Timestamp"), at("ns", "UTC", 0n, -1n, MAX, MIN));
    keeps(
      of("google.protobuf.Duration"),
      [0n, 1n, -1n, 315_576_000_000_999_999_999n].map((n) => decimal(n, 9)),
    );
  });
});

describe("JSON", () => {
  /** A payload for each column type, as a table's schema names them. */
  const CASES: readonly (readonly [string, readonly string[]])[] = [
    ["boolean", ["true", "false", "null"]],
    ["int64", ["9007199254740993", "-9223372036854775808", "9223372036854775807"]],
    ["uint64", ["18446744073709551615", "0"]],
    ["double", ["1e+300", "-0.0", "0.1"]],
    ["decimal(38,10)", ["1234567890123456789012345678.0123456789", "-0.0000000001"]],
    ["string", ['""', '"é世😀"', '"\\u0000\\n\\"\\\\"', "null"]],
    ["date", ['"0001-01-01"', '"9999-12-31"']],
    ["time", ['"23:59:59.999999"']],
    ["timestamptz[ms]", ['"1969-12-31T23:59:59.999Z"']],
    ["timestamp[ns]", ['"2262-04-11T23:47:15.999999999"']],
    ["uuid", ['"00112233-4455-6677-8899-aabbccddeeff"']],
    ["json", ['{"a":[1,null,{"b":18446744073709551616}]}']],
    ["list<int64>", ["[]", "[1,null,9007199254740993]", "null"]],
    ["map<string,string>", ['{"b":"1","a":null,"":""}', "{}"]],
    ["struct<a int64, b list<string>>", ['{"a":null,"b":["x"]}', "null"]],
  ];

  test.each(CASES.map(([type, cells]) => [type, cells] as const))("%s", (type, cells) => {
    const { fields } = schema(`f ${type};g int32`);
    const document = JSON.stringify({
      columns: [
        { name: "f", type },
        { name: "g", type: "int32" },
      ],
    });
    const options = { isUtf8, maxBytes: 1 << 20, unknown: "reject", reserved: "_twg_" } as const;
    const decoder = compileJson({ text: document, references: [] }, options);
    const payloads = cells.map((c) => UTF8.encode(`{"f":${c},"g":1}`));
    const read = (given: readonly Uint8Array[]) => {
      const { columns, rows, faults } = decodeAll(decoder, given);
      expect([rows, faults]).toEqual([given.length, []]);
      return {
        table: { fields, columns, rows },
        cells: Array.from({ length: rows }, (_, r) => cellOf(columns[0]!, r)),
      };
    };
    const first = read(payloads);
    const again = overTopic(columnsOfPayloads(encodeJsonColumns(first.table))).map((p) => p!);
    expect(read(again).cells).toEqual(first.cells);
    // By digits and texts: where a cell was written canonically, its bytes come back.
    expect(again.map((p) => new TextDecoder().decode(p))).toEqual(cells.map((c) => `{"f":${c},"g":1}`));
    expect(together(again).count).toBe(cells.length);
  });
});
