/** Goal: people see the tables that [decode] will make, without any server. Method: schema files of each format on disk. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeText, explainDecode } from "../../src/commands/explain-decode.ts";
import { decodeSpec } from "../../src/core/config/decode-options.ts";
import golden from "../golden/arrow.json";

const folder = mkdtempSync(join(tmpdir(), "twg-explain-"));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const AVRO = file(
  "order.avsc",
  JSON.stringify({
    type: "record",
    name: "Order",
    fields: [
      { name: "id", type: "long" },
      { name: "note", type: ["null", "string"], default: null },
      {
        name: "items",
        type: {
          type: "array",
          items: {
            type: "record",
            name: "Item",
            fields: [
              { name: "sku", type: "string" },
              { name: "at", type: { type: "long", logicalType: "timestamp-millis" } },
            ],
          },
        },
      },
    ],
  }),
);

const explain = (o: object, topics: readonly string[] = ["orders"]) =>
  explainDecode(decodeSpec.parse(o), topics, "_twg_");

test("Avro by a file: columns, types, null and where each comes from, nested ones too", async () => {
  const [table] = await explain({ format: "avro", framing: "confluent", schema_file: AVRO });
  expect([table!.schema, table!.note]).toEqual([`avro by ${AVRO}`, ""]);
  expect(table!.columns!.map((c) => [c.column, c.type, c.nullable])).toEqual([
    ["id", "int64", false],
    ["note", "string", true],
    ["items", "list<struct>", false],
    ["items[].sku", "string", false],
    ["items[].at", "timestamptz[ms]", false],
  ]);
  expect(decodeText([table!], false)).toBe(`
Table of orders: avro by ${AVRO}
COLUMN       TYPE             NULL  FROM
id           int64            no    id
note         string           yes   note
items        list<struct>     no    items
items[].sku  string           no    items[].sku
items[].at   timestamptz[ms]  no    items[].at
`);
});

test("Protobuf and JSON by files, a topic of its own", async () => {
  const proto = file(
    "a.proto",
    'syntax = "proto3"; package acme; message A { string s = 1; } message B { int64 n = 1; }',
  );
  const json = file("a.json", '{"type":"object","properties":{"x":{"type":"boolean"}}}');
  const tables = await explain(
    {
      format: "protobuf",
      schema_file: proto,
      message: "acme.B",
      topic: [{ name: "j", format: "json", schema_file: json }],
    },
    ["p", "j"],
  );
  expect(tables.map((t) => [t.topic, t.schema, t.columns?.map((c) => `${c.column} ${c.type}`)])).toEqual([
    ["p", `protobuf by ${proto}, acme.B`, ["n int64"]],
    ["j", `json by ${json}`, ["x boolean"]],
  ]);
});

test("keys have columns of their own before those of the values", async () => {
  const keyed = (key: object) => explain({ format: "avro", schema_file: AVRO, key });
  const [key, value] = await keyed({ format: "avro", schema_file: AVRO, prefix: "k_" });
  expect([key!.part, value!.part, value!.columns![0]!.column]).toEqual(["key", "value", "id"]);
  expect(key!.columns!.slice(2, 4).map((c) => [c.column, c.type, c.nullable, c.from])).toEqual([
    ["k_items", "list<struct>", true, "key items"],
    ["k_items[].sku", "string", false, "key items[].sku"],
  ]);
  const [text] = await keyed({ format: "text" });
  expect(decodeText([text!], false)).toBe(`
Keys of orders: text
COLUMN     TYPE    NULL  FROM
key_value  string  yes   key value
`);
});

test("Avro resolved to a reader's schema has its columns, whatever a registry says", async () => {
  const registry = { url: ["http://127.0.0.1:1"] };
  const [table] = await explain({ format: "avro", framing: "confluent", registry, reader_schema: AVRO });
  expect(table!.schema).toBe(`avro resolved to ${AVRO}`);
  expect(table!.columns!.map((c) => c.column).slice(0, 3)).toEqual(["id", "note", "items"]);
});

test("XML by a file: where each column is in the document", async () => {
  const schema_file = file(
    "x.json",
    JSON.stringify({
      namespaces: { o: "urn:o" },
      columns: [
        { name: "id", type: "int64", source: "@id" },
        { name: "items", type: 'list<struct<"@sku" string, "o:qty" int32>>', source: "o:item" },
      ],
    }),
  );
  const [table] = await explain({ format: "xml", schema_file });
  expect(table!.columns!.map((c) => [c.column, c.type, c.from])).toEqual([
    ["id", "int64", "@id"],
    ["items", "list<struct>", "o:item"],
    ["items[].@sku", "string", "o:item[].@sku"],
    ["items[].o:qty", "int32", "o:item[].o:qty"],
  ]);
});

test("a folder is looked into, a registry is not asked", async () => {
  writeFileSync(
    join(folder, "orders-value.avsc"),
    '{"type":"record","name":"R","fields":[{"name":"n","type":"int"}]}',
  );
  const [inFolder] = await explain({ format: "avro", framing: "confluent", schema_dir: folder });
  expect(inFolder).toMatchObject({ schema: `avro by orders-value in ${folder}`, columns: [{ column: "n" }] });
  const registry = { url: ["http://127.0.0.1:1"] };
  const [remote] = await explain({ format: "avro", framing: "confluent", registry });
  expect(remote).toMatchObject({ schema: "avro by orders-value in the registry", columns: null });
  const [pinned] = await explain({ format: "avro", framing: "confluent", registry, schema_file: AVRO });
  expect(pinned!.columns!.length).toBe(5);
});

test("columns that were learned are shown, topic by topic", async () => {
  const learned = new Map([["a", '{"columns":[{"name":"n_2","type":"int64","source":"N"}]}']]);
  const decode = decodeSpec.parse({ format: "json" });
  const [a, b] = await explainDecode(decode, ["a", "b"], "_twg_", learned);
  expect(a!.columns).toEqual([{ column: "n_2", type: "int64", nullable: true, from: "N" }]);
  expect([b!.columns, b!.note]).toEqual([null, "columns come with the records, and stay"]);
  const [remote] = await explainDecode(decode, ["a"], "_twg_", null);
  expect(remote!.note).toEndWith("kept in the bucket");
});

test("what cannot be used is said", async () => {
  const bad = file("bad.avsc", '{"type":"record","name":"R","fields":[{"name":"_twg_x","type":"int"}]}');
  const notes = await Promise.all(
    [
      { format: "avro", schema_file: bad },
      { format: "avro", schema_file: join(folder, "none.avsc") },
      { format: "json" },
    ].map(async (o) => (await explain(o))[0]!),
  );
  expect(notes.map((t) => [t.columns, t.note.split(":")[0]])).toEqual([
    [null, "decode.reserved at _twg_x"],
    [null, "registry.folder"],
    [null, "columns come with the records, and stay"],
  ]);
  expect(decodeText([notes[2]!], false)).toBe(
    "\nTable of orders: json without a schema, columns learned from its records\n  columns come with the records, and stay\n",
  );
});

const CONTRACT = file(
  "shop.odcs.yaml",
  `apiVersion: v3.1.0
kind: DataContract
id: shop
version: "2.0"
schema:
  - name: orders
    properties:
      - { name: id, logicalType: integer, required: true, unique: true }
      - { name: at, logicalType: timestamp }
      - name: lines
        logicalType: array
        items: { logicalType: object, properties: [{ name: sku, logicalType: string }] }
  - name: clicks
    properties:
      - { name: url, logicalType: string }
`,
);

test("a data contract: the object of the topic's name, or the one that is named, for JSON and XML", async () => {
  const section = { format: "json", schema_file: CONTRACT };
  const [orders, clicks, other] = await explain(section, ["orders", "clicks", "views"]);
  expect(orders!.schema).toBe(
    `json by ${CONTRACT}: object orders of the data contract shop 2.0; 1 of its rules about values are not applied`,
  );
  expect(orders!.columns).toEqual([
    { column: "id", type: "int64", nullable: false, from: "id" },
    { column: "at", type: "timestamptz", nullable: true, from: "at" },
    { column: "lines", type: "list<struct>", nullable: true, from: "lines" },
    { column: "lines[].sku", type: "string", nullable: true, from: "lines[].sku" },
  ]);
  expect(clicks!.columns!.map((c) => c.column)).toEqual(["url"]);
  expect([other!.columns, other!.note]).toEqual([null, expect.stringContaining('called "views", the topic')]);
  const [named] = await explain({ ...section, message: "clicks" }, ["views"]);
  expect(named!.columns!.map((c) => c.column)).toEqual(["url"]);
  const [xml] = await explain({ format: "xml", schema_file: CONTRACT });
  expect(xml!.columns).toEqual(orders!.columns);
});

test("an Arrow schema, as bytes and as JSON; where neither fits is said", async () => {
  const arrow = join(folder, "s.arrow");
  writeFileSync(arrow, Uint8Array.fromBase64(golden.file));
  const [bytes] = await explain({ format: "json", schema_file: arrow });
  expect(bytes).toMatchObject({
    schema: `json by ${arrow}: an Arrow schema`,
    columns: [
      { column: "id", type: "int64" },
      { column: "name", type: "string" },
    ],
  });
  const json = file(
    "s.json",
    '{"schema":{"fields":[{"name":"a","nullable":false,"type":{"name":"bool"},"children":[]}]}}',
  );
  const [fields] = await explain({ format: "json", schema_file: json });
  expect(fields!.columns).toEqual([{ column: "a", type: "boolean", nullable: false, from: "a" }]);
  const [avro] = await explain({ format: "avro", schema_file: arrow });
  expect(avro!.note).toContain("no avro is written by an Arrow schema");
  const [named] = await explain({ format: "json", schema_file: json, message: "orders" });
  expect(named!.note).toContain('`message` names "orders", an object of a data contract');
});

test("Avro and Protobuf resolved to a contract have its columns", async () => {
  const written = {
    avro: AVRO,
    protobuf: file("o.proto", 'syntax = "proto3"; message Order { int32 id = 1; }'),
  };
  for (const [format, schema_file] of Object.entries(written)) {
    const [table] = await explain({ format, schema_file, reader_schema: CONTRACT });
    expect(table!.schema).toStartWith(
      `${format} resolved to ${CONTRACT}: object orders of the data contract shop`,
    );
    expect(table!.columns!.map((c) => c.column)).toEqual(["id", "at", "lines", "lines[].sku"]);
  }
  const [none] = await explain({ format: "protobuf", schema_file: written.protobuf, reader_schema: AVRO });
  expect(none!.note).toBe(
    "protobuf is resolved to a data contract or an Arrow schema, and the file is neither",
  );
});
