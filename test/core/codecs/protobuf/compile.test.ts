/**
 * Goal: each type becomes the column and the cell that the type map promises; presence, oneofs, merging, maps, recursion,
 * flattening, limits. Method: payloads written by hand, byte by byte after the format's encoding page; expected cells
 * from that page and the language guide. Both ways of reading are held against each other in every case.
 */
import { describe, expect, test } from "bun:test";
import { compileProtobuf, type ProtobufOptions } from "../../../../src/core/codecs/protobuf/compile.ts";
import { DecodeError } from "../../../../src/core/codecs/record-codec.ts";
import { typeText } from "../../../../src/core/types/type-text.ts";
import { cellValue } from "../../../../src/core/types/value-cells.ts";
import { valueJson } from "../../../../src/core/types/value-json.ts";
import { agree, decodeAll } from "./agree.ts";
import { block, tag, varint } from "./random-protobuf.ts";
import { schemaText } from "./schema-text.ts";

const PROTO3 = 'syntax = "proto3";';
const KNOWN = ["any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers"]
  .map((f) => `import "google/protobuf/${f}.proto";`)
  .join("");

const bytes = (...parts: (Uint8Array | readonly number[])[]): Uint8Array =>
  Uint8Array.from(Buffer.concat(parts.map((p) => Uint8Array.from(p))));
const text = (s: string): Uint8Array => block(Buffer.from(s));

function decoderOf(schema: string, options: ProtobufOptions = {}) {
  return compileProtobuf(schemaText(schema), options);
}

/** Rows as JSON, and refusals as code at path. */
function read(schema: string, payloads: readonly Uint8Array[], options: ProtobufOptions = {}) {
  const decoder = decoderOf(schema, options);
  agree(decoder, payloads);
  const { columns, rows, faults } = decodeAll(decoder, payloads);
  const out = Array.from({ length: rows }, (_, row) =>
    columns.map((c) => valueJson(cellValue(c, row))).join(" "),
  );
  return [...out, ...faults.map((f) => `${f.row}: ${f.code} at ${f.path}`)];
}

const columnsOf = (schema: string, options: ProtobufOptions = {}) =>
  decoderOf(schema, options).fields.map(
    (f) => `${f.name} ${typeText(f.type)}${f.nullable ? "" : " not null"}`,
  );

describe("types", () => {
  test("scalars at their ends, unsigned 64 bits exactly", () => {
    const schema = `${PROTO3} message A { int32 a=1; int64 b=2; uint32 c=3; uint64 d=4; sint32 e=5; sint64 f=6; fixed32 g=7;
      fixed64 h=8; sfixed32 i=9; sfixed64 j=10; float k=11; double l=12; bool m=13; string n=14; bytes o=15; }`;
    const full = bytes(
      [...tag(1, 0), ...varint(-(1n << 31n))],
      [...tag(2, 0), ...varint(-(1n << 63n))],
      [...tag(3, 0), ...varint((1n << 32n) - 1n)],
      [...tag(4, 0), ...varint((1n << 64n) - 1n)],
      [...tag(5, 0), ...varint((1n << 32n) - 1n)],
      [...tag(6, 0), ...varint((1n << 64n) - 1n)],
      [...tag(7, 5), 255, 255, 255, 255],
      [...tag(8, 1), 255, 255, 255, 255, 255, 255, 255, 255],
      [...tag(9, 5), 0, 0, 0, 128],
      [...tag(10, 1), 0, 0, 0, 0, 0, 0, 0, 128],
      [...tag(11, 5), 0, 0, 192, 127],
      [...tag(12, 1), 0, 0, 0, 0, 0, 0, 0, 128],
      [...tag(13, 0), 128, 128, 128, 128, 128, 128, 128, 128, 128, 1],
      [...tag(14, 2), ...text("é🙂")],
      [...tag(15, 2), ...block(Uint8Array.of(0, 255))],
    );
    expect(read(schema, [full, bytes()])).toEqual([
      '-2147483648 -9223372036854775808 4294967295 18446744073709551615 -2147483648 -9223372036854775808 4294967295 18446744073709551615 -2147483648 -9223372036854775808 "NaN" -0.0 true "é🙂" "AP8="',
      '0 0 0 0 0 0 0 0 0 0 0 0 false "" ""',
    ]);
    expect(columnsOf(schema).map((c) => c.split(" ").slice(1).join(" "))).toMatchInlineSnapshot(`
      [
        "int32 not null",
        "int64 not null",
        "uint32 not null",
        "uint64 not null",
        "int32 not null",
        "int64 not null",
        "uint32 not null",
        "uint64 not null",
        "int32 not null",
        "int64 not null",
        "float not null",
        "double not null",
        "boolean not null",
        "string not null",
        "binary not null",
      ]
    `);
  });

  test("well-known types", () => {
    const schema = `${PROTO3}${KNOWN} package google.protobuf.test; message A { Timestamp t=1; Duration d=2; Struct s=3;
      Value v=4; ListValue l=5; Int64Value w=6; Empty e=7; Any y=8; FieldMask m=9; repeated BoolValue r=10; }`;
    const struct = bytes([
      ...tag(1, 2),
      ...block(bytes([...tag(1, 2), ...text("__proto__")], [...tag(2, 2), ...block(bytes(tag(4, 0), [1]))])),
    ]);
    const payload = bytes(
      [...tag(1, 2), ...block(bytes(tag(1, 0), varint(-1n), tag(2, 0), varint(999_999_999n)))],
      [...tag(2, 2), ...block(bytes(tag(1, 0), varint(-315_576_000_000n), tag(2, 0), varint(-1n)))],
      [...tag(3, 2), ...block(struct)],
      [...tag(4, 2), ...block(bytes(tag(1, 0), [0]))],
      [...tag(5, 2), ...block(bytes(tag(1, 2), block(bytes(tag(2, 1), [0, 0, 0, 0, 0, 0, 248, 63]))))],
      [...tag(6, 2), 0],
      [...tag(7, 2), 0],
      [...tag(8, 2), ...block(bytes(tag(1, 2), text("t/x"), tag(2, 2), block(Uint8Array.of(1))))],
      [...tag(9, 2), ...block(bytes(tag(1, 2), text("a.b")))],
      [...tag(10, 2), ...block(bytes(tag(1, 0), [1])), ...tag(10, 2), 0],
    );
    expect(read(schema, [payload, bytes()])).toEqual([
      '"1969-12-31T23:59:59.999999999Z" -315576000000.000000001 "{\\"__proto__\\":true}" "null" "[1.5]" 0 true {"type_url":"t/x","value":"AQ=="} {"paths":["a.b"]} [true,false]',
      "null null null null null null null null null []",
    ]);
    expect(columnsOf(schema)).toMatchInlineSnapshot(`
      [
        "t timestamptz[ns]",
        "d decimal(21,9)",
        "s json",
        "v json",
        "l json",
        "w int64",
        "e boolean",
        "y struct<type_url string, value binary>",
        "m struct<paths list<string>>",
        "r list<boolean> not null",
      ]
    `);
  });

  test("instants and durations that do not fit", () => {
    const schema = `${PROTO3}${KNOWN} message A { google.protobuf.Timestamp t=1; google.protobuf.Duration d=2; }`;
    const time = (field: number, seconds: bigint, nanos: bigint) =>
      bytes(tag(field, 2), block(bytes(tag(1, 0), varint(seconds), tag(2, 0), varint(nanos))));
    const ends = [9_223_372_036n, -9_223_372_037n];
    expect(
      read(schema, [
        time(1, ends[0]!, 854_775_807n),
        time(1, ends[0]!, 854_775_808n),
        time(1, ends[1]!, 145_224_192n),
        time(1, ends[1]!, 145_224_191n),
        time(1, 0n, 1_000_000_000n),
        time(1, 0n, -1n),
        time(1, 253_402_300_800n, 0n),
        time(2, 1n, -1n),
        time(2, 315_576_000_001n, 0n),
        time(2, 0n, -999_999_999n),
      ]),
    ).toEqual([
      '"2262-04-11T23:47:16.854775807Z" null',
      '"1677-09-21T00:12:43.145224192Z" null',
      "null -0.999999999",
      ...[1, 3, 4, 5, 6].map((row) => `${row}: decode.range at t`),
      ...[7, 8].map((row) => `${row}: decode.range at d`),
    ]);
  });

  test("enums: names, the first of several, digits where there is none, of closed ones too", () => {
    const enums = (rule: string) =>
      `edition = "2023"; enum E { option allow_alias = true; ${rule} Z = 0; Y = 0; N = -1; } message A { E e = 1; repeated E r = 2; }`;
    const payload = bytes(
      tag(1, 0),
      varint(7n),
      tag(2, 2),
      block(bytes(varint(-1n), varint(0n), varint(-9n))),
    );
    for (const rule of ["", "option features.enum_type = CLOSED;"])
      expect(read(enums(rule), [payload])).toEqual(['"7" ["N","Z","-9"]']);
  });
});

describe("presence", () => {
  // protobuf#1606, #7270, #8237: a zero that was set and a field that was not.
  const zero = bytes(tag(1, 0), [0]);
  test.each([
    ["proto3, implicit", `${PROTO3} message A { int32 a=1; }`, ["0", "0"], "a int32 not null"],
    ["proto3, optional", `${PROTO3} message A { optional int32 a=1; }`, ["0", "null"], "a int32"],
    ["proto3, oneof", `${PROTO3} message A { oneof x { int32 a=1; } }`, ["0", "null"], "a int32"],
    ["proto2, with a default", "message A { optional int32 a=1 [default=5]; }", ["0", "null"], "a int32"],
    ["editions, explicit", 'edition="2023"; message A { int32 a=1; }', ["0", "null"], "a int32"],
    [
      "editions, implicit",
      'edition="2023"; option features.field_presence=IMPLICIT; message A { int32 a=1; }',
      ["0", "0"],
      "a int32 not null",
    ],
  ])("%s", (_, schema, rows, column) => {
    expect(read(schema, [zero, bytes()])).toEqual(rows);
    expect(columnsOf(schema)).toEqual([column]);
  });

  test("required", () => {
    const schema = "message A { required int32 a=1; optional B b=2; } message B { required int32 c=1; }";
    expect(read(schema, [zero, bytes(), bytes(zero, tag(2, 2), [0])])).toEqual([
      "0 null",
      "1: decode.null at a",
      "2: decode.null at b.c",
    ]);
  });
});

describe("what writers may do", () => {
  test("the last of several stands, lists packed or not, fields in any order, unknown ones in between", () => {
    const schema = `${PROTO3} message A { int32 a=1; repeated int32 r=2; string s=3; repeated fixed32 u=4 [packed=false]; }`;
    expect(
      read(schema, [
        bytes(
          tag(3, 2),
          text("long"),
          tag(2, 0),
          [1],
          tag(1, 0),
          [1],
          tag(2, 2),
          block(bytes([2, 3])),
          tag(77, 0),
          [9],
          tag(1, 0),
          [2],
          tag(3, 2),
          text("x"),
          tag(4, 2),
          block(bytes([1, 0, 0, 0])),
          tag(4, 5),
          [2, 0, 0, 0],
        ),
        bytes(tag(2, 2), [0]),
      ]),
    ).toEqual(['2 [1,2,3] "x" [1,2]', '0 [] "" []']);
  });

  test("a message in pieces is one", () => {
    const schema = `${PROTO3} message A { B b=1; } message B { int32 x=1; int32 y=2; repeated int32 r=3; B n=4; }`;
    const piece = (...p: (Uint8Array | readonly number[])[]) => bytes(tag(1, 2), block(bytes(...p)));
    const n = (...p: (Uint8Array | readonly number[])[]) => bytes(tag(4, 2), block(bytes(...p)));
    const [row] = read(schema, [
      bytes(piece([8, 1, 16, 1, 24, 1], n([8, 5])), piece([16, 2, 24, 2], n([16, 6]))),
    ]);
    expect(row).toBe('{"x":1,"y":2,"r":[1,2],"n":{"x":5,"y":6,"r":[],"n":null}}');
  });

  test("of a oneof the last member, and a member of the same message merges", () => {
    const schema = `${PROTO3} message A { oneof o { int32 a=1; B b=2; string c=3; } } message B { int32 x=1; int32 y=2; }`;
    const b = (...p: number[]) => bytes(tag(2, 2), block(bytes(p)));
    expect(
      read(schema, [
        bytes(tag(1, 0), [1], b(8, 1)),
        bytes(b(8, 1), b(16, 2)),
        bytes(b(8, 1), tag(3, 2), text("s"), b(16, 2)),
      ]),
    ).toEqual(['null {"x":1,"y":0} null', 'null {"x":1,"y":2} null', 'null {"x":0,"y":2} null']);
  });

  // What Google's package for Python says of each of these payloads; it reads a message when it comes by it.
  test("what a later member or piece replaces must be sound all the same", () => {
    const schema = `${PROTO3}${KNOWN} message A { oneof o { google.protobuf.Timestamp t=1; int32 n=2; B b=3; } google.protobuf.Duration d=4;
      map<int32, google.protobuf.StringValue> m=5; } message B { google.protobuf.Timestamp t=1; google.protobuf.StringValue s=2; }`;
    const t = (...p: number[]) => bytes(tag(1, 2), block(bytes(p)));
    const b = (...p: (Uint8Array | readonly number[])[]) => bytes(tag(3, 2), block(bytes(...p)));
    const d = (...p: number[]) => bytes(tag(4, 2), block(bytes(p)));
    const n = bytes(tag(2, 0), [7]);
    const m = (...p: number[]) => bytes(tag(2, 2), block(bytes(p)));
    const entry = (...p: Uint8Array[]) => bytes(tag(5, 2), block(bytes([8, 1], ...p)));
    const refused = [
      bytes(t(8), n),
      bytes(t(8, 128), t(8, 1), n),
      bytes(b(t(16, 255)), n),
      bytes(b(m(10, 1, 0xff)), n),
      bytes(d(8), d(5)),
      entry(m(10, 2, 97), m(98)),
    ];
    for (const payload of refused)
      expect(
        read(schema, [payload])[0]?.match(/decode\.(truncated|encoding|syntax) at (o|t|b|d|m)/)?.[0],
      ).toBeDefined();
    // No instant that a Timestamp may hold, and none that a column holds: it is gone.
    expect(
      read(schema, [bytes(t(16, 255, 255, 255, 255, 15), n), bytes(t(8, 1), n, d(8, 1), d(16, 2))]),
    ).toEqual(["null 7 null null {}", "null 7 null 1.000000002 {}"]);
  });

  test("maps: parts left out, keys that come again", () => {
    const schema = `${PROTO3} message A { map<int32, B> m=1; map<bool, string> t=2; map<string, int64> s=3; } message B { int32 x=1; }`;
    const entry = (n: number, ...p: (Uint8Array | readonly number[])[]) =>
      bytes(tag(n, 2), block(bytes(...p)));
    expect(
      read(schema, [
        bytes(entry(1), entry(2, [8, 1], tag(2, 2), text("v")), entry(3, tag(1, 2), text("k"), [16, 7])),
        bytes(entry(1, [8, 1], tag(2, 2), [2, 8, 9]), entry(1, [8, 2]), entry(1, [8, 1])),
        bytes(entry(2, [8, 0]), entry(2, [8, 1]), entry(2, [8, 0], tag(2, 2), text("z"))),
        bytes(...Array.from({ length: 40 }, (_, i) => entry(3, tag(1, 2), text(`k${i % 20}`), [16, i]))),
      ]).slice(0, 3),
    ).toEqual([
      '[{"key":0,"value":{"x":0}}] [{"key":true,"value":"v"}] {"k":7}',
      '[{"key":1,"value":{"x":0}},{"key":2,"value":{"x":0}}] {} {}',
      '{} [{"key":false,"value":"z"},{"key":true,"value":""}] {}',
    ]);
  });

  test("groups, and messages between tags in editions", () => {
    const proto2 =
      "message A { optional group G = 1 { optional int32 x = 1; repeated group H = 2 { optional int32 y = 1; } } }";
    const inner = bytes([8, 1], tag(2, 3), [8, 2], tag(2, 4), tag(2, 3), tag(2, 4));
    expect(read(proto2, [bytes(tag(1, 3), inner, tag(1, 4))])).toEqual(['{"x":1,"h":[{"y":2},{"y":null}]}']);
    const edition =
      'edition="2023"; message A { G g=1 [features.message_encoding=DELIMITED]; } message G { int32 x=1; }';
    expect(read(edition, [bytes(tag(1, 3), [8, 1], tag(1, 4)), bytes(tag(1, 2), [2, 8, 1])])).toEqual([
      '{"x":1}',
      "null",
    ]);
  });

  test("extensions", () => {
    const schema = `package p; message A { optional int32 a=1; extensions 100 to max; } extend A { repeated B more=100; }
      message B { optional string s=1; extend A { optional int32 inner=101; } }`;
    expect(columnsOf(schema).map((c) => c.split(" ")[0])).toEqual(["a", "[p.more]", "[p.B.inner]"]);
    expect(read(schema, [bytes(tag(100, 2), block(bytes(tag(1, 2), text("x"))), tag(101, 0), [5])])).toEqual([
      'null [{"s":"x"}] 5',
    ]);
  });
});

describe("recursion", () => {
  // protoc-gen-jsonschema#20, #34, risingwave#10443, redpanda#5573: types that hold themselves, Struct, Any in a oneof.
  test("three levels of structs, then JSON", () => {
    const schema = `${PROTO3} message Node { uint64 id=1; Node next=2; }`;
    const node = (depth: number): Uint8Array =>
      depth === 0 ? bytes() : bytes([8, depth], tag(2, 2), block(node(depth - 1)));
    expect(columnsOf(schema)[1]).toBe("next struct<id uint64, next struct<id uint64, next json>>");
    expect(read(schema, [node(5)])).toEqual([
      '5 {"id":4,"next":{"id":3,"next":"{\\"id\\":2,\\"next\\":{\\"id\\":1,\\"next\\":{\\"id\\":0}}}"}}',
    ]);
  });

  test("by way of lists, maps, other messages and oneofs; wide ones with fewer levels", () => {
    const loop = `${PROTO3}${KNOWN} message A { repeated B b=1; map<string, A> m=2; oneof o { google.protobuf.Any any=3;
      google.protobuf.Value v=4; A self=5; } } message B { A a=1; }`;
    expect(read(loop, [bytes(tag(1, 2), [0])]).length).toBe(1);
    const wide = `${PROTO3} message A { ${Array.from({ length: 60 }, (_, i) => `A f${i + 1}=${i + 1};`).join("")} }`;
    expect(columnsOf(wide)[0]).toBe(
      `f1 struct<${Array.from({ length: 60 }, (_, i) => `f${i + 1} json`).join(", ")}>`,
    );
  });

  test("depth is bounded, in messages, groups, Struct and unknown fields", () => {
    const schema = `${PROTO3}${KNOWN} message A { A a=1; google.protobuf.Value v=2; }`;
    const nest = (depth: number, wrap: (inner: Uint8Array) => Uint8Array): Uint8Array => {
      let inner = bytes();
      for (let i = 0; i < depth; i++) inner = wrap(inner);
      return inner;
    };
    const message = (depth: number) => nest(depth, (i) => bytes(tag(1, 2), block(i)));
    const group = (depth: number) => nest(depth, (i) => bytes(tag(9, 3), i, tag(9, 4)));
    const list = (depth: number) => nest(depth, (i) => bytes(tag(6, 2), block(bytes(tag(1, 2), block(i)))));
    const found = read(schema, [
      message(99),
      message(100),
      message(500),
      group(99),
      group(100),
      group(500),
      bytes(tag(2, 2), block(list(49))),
      bytes(tag(2, 2), block(list(50))),
    ]);
    expect(found.slice(3).map((f) => f.slice(0, 16))).toEqual(
      [1, 2, 4, 5, 7].map((row) => `${row}: decode.depth `.slice(0, 16)),
    );
  });

  // protobuf#25587: an Any in an Any escaped the limit. Here an Any's value stays bytes.
  test("an Any in an Any in an Any is bytes", () => {
    const schema = `${PROTO3}${KNOWN} message A { google.protobuf.Any any=1; }`;
    const any = (inner: Uint8Array) =>
      bytes(tag(1, 2), text("type.x/google.protobuf.Any"), tag(2, 2), block(inner));
    let inner = bytes();
    for (let i = 0; i < 500; i++) inner = any(inner);
    const decoder = decoderOf(schema);
    expect(agree(decoder, [bytes(tag(1, 2), block(inner))])).toBe(0);
  });
});

describe("flattening", () => {
  const schema = `${PROTO3} message A { int32 id=1; B b=2; repeated B r=3; } message B { string s=1; C c=2; } message C { optional int32 x=1; }`;
  const flatten = { separator: "_" };

  test("columns of messages in messages, not of those in lists", () => {
    expect(columnsOf(schema, { flatten })).toEqual([
      "id int32 not null",
      "b_s string",
      "b_c_x int32",
      "r list<struct<s string, c_x int32>> not null",
    ]);
    expect(
      read(schema, [bytes(), bytes(tag(2, 2), [0]), bytes(tag(2, 2), block(bytes(tag(2, 2), [2, 8, 5])))], {
        flatten,
      }),
    ).toEqual(["0 null null []", '0 "" null []', '0 "" 5 []']);
  });

  test("two columns of one name are refused", () => {
    const clash = `${PROTO3} message A { int32 b_s=1; B b=2; } message B { string s=1; }`;
    expect(() => decoderOf(clash, { flatten })).toThrow("two fields become the column b_s");
    expect(columnsOf(clash, { flatten: { separator: "__" } }).length).toBe(2);
  });
});

describe("hostile bytes", () => {
  const schema = `${PROTO3} message A { int32 a=1; string s=2; B b=3; repeated B r=4; repeated fixed64 f=5; bytes y=6; } message B { int32 x=1; }`;
  test.each([
    ["a varint of eleven bytes", [8, ...Array(10).fill(255), 1], "decode.syntax at a"],
    ["a varint that ends too early", [8, 255], "decode.truncated at a"],
    ["a tag of six bytes", [0x88, 0x80, 0x80, 0x80, 0x80, 0, 1], "decode.syntax at "],
    ["a tag of 35 bits", [0xff, 0xff, 0xff, 0xff, 0x7f, 1], "decode.syntax at "],
    ["field 0", [0, 1], "decode.syntax at "],
    ["wire type 6", [0x0e, 1], "decode.syntax at "],
    ["wire type 7", [0x7f, 1], "decode.syntax at "],
    ["an end without a begin", [0x0c], "decode.syntax at "],
    ["a group without an end", [0x7b, 8, 1], "decode.truncated at "],
    ["a group with another's end", [0x7b, 0x84, 1], "decode.syntax at "],
    ["a length beyond the end", [0x12, 5, 65], "decode.truncated at s"],
    ["a length of 2 GiB", [0x12, 255, 255, 255, 255, 7], "decode.truncated at s"],
    ["a length above 2 GiB", [0x12, 255, 255, 255, 255, 15], "decode.size at s"],
    ["a length of six bytes", [0x12, 128, 128, 128, 128, 128, 0], "decode.syntax at s"],
    ["a string that is no UTF-8", [0x12, 2, 0xc0, 0x80], "decode.encoding at s"],
    ["a surrogate", [0x12, 3, 0xed, 0xa0, 0x80], "decode.encoding at s"],
    ["beyond Unicode", [0x12, 4, 0xf4, 0x90, 0x80, 0x80], "decode.encoding at s"],
    ["a message that ends within a field", [0x1a, 1, 8], "decode.truncated at b.x"],
    ["an item that does", [0x22, 0, 0x22, 1, 8], "decode.truncated at r[2].x"],
    ["seven bytes of eight, packed", [0x2a, 7, 1, 2, 3, 4, 5, 6, 7], "decode.truncated at f[0]"],
  ])("%s", (_, payload, wanted) => {
    const good = [0x12, 1, 65, 0x22, 2, 8, 1];
    const found = read(schema, [bytes(good), bytes(good, payload), bytes(good)]);
    expect(found.length).toBe(3);
    expect(found[0]).toBe(found[1]!);
    expect(found[2]).toBe(`1: ${wanted}`);
  });

  test("empty messages in a list cost what they make, and that is bounded", () => {
    const wide = `${PROTO3} message A { repeated B b=1; } message B { ${Array.from({ length: 99 }, (_, i) => `int64 f${i}=${i + 1};`).join("")} }`;
    const empty = (n: number) => Uint8Array.from({ length: 2 * n }, (_, i) => (i % 2 === 0 ? 10 : 0));
    // (1,000,000 + 16 n) cells, 100 an item: 11,904 items fit.
    const decoder = decoderOf(wide);
    const { rows, faults } = decodeAll(decoder, [empty(11_904), empty(11_905)]);
    expect([rows, faults.map((f) => `${f.row} ${f.code}`)]).toEqual([1, ["1 decode.size"]]);
  });
});

describe("which message", () => {
  const schema = `${PROTO3} package p; message A { int32 a=1; message X { int32 x=1; } map<int32,int32> m=2; message Y { int32 y=1; } } message B { int32 b=1; }`;
  test("by indexes, as envelopes give them, or by name", () => {
    const first = (message: ProtobufOptions["message"]) =>
      decoderOf(schema, message === undefined ? {} : { message }).fields[0]!.name;
    expect([first(undefined), first([1]), first([0, 0]), first([0, 1]), first("p.A.Y")]).toEqual([
      "a",
      "b",
      "x",
      "y",
      "y",
    ]);
  });

  test("one that is not there", () => {
    expect(() => decoderOf(schema, { message: [2] })).toThrow("no message at [2]; it has p.A, p.B");
    expect(() => decoderOf(schema, { message: "A" })).toThrow("no message A; it has p.A, p.B");
    expect(() => decoderOf(`${PROTO3} message E {}`)).toThrow(DecodeError);
  });
});
