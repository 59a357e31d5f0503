/**
 * Goal: a pipeline does not start with a schema file that nothing can be read by, and doctor tells so before. Method: files
 * that are missing, broken and of another format, for all topics and for one.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { checkSchemaFiles, schemaFilesCheckup } from "../../src/commands/schema-file-check.ts";
import { decodeSpec } from "../../src/core/config/decode-options.ts";
import { asFailure } from "../../src/core/failure/failure.ts";

const folder = mkdtempSync(join(tmpdir(), "twg-schema-"));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const told = async (section: object, topics: readonly string[] = []): Promise<string> => {
  try {
    await checkSchemaFiles(decodeSpec.parse(section), topics, "_twg_");
    return "";
  } catch (e) {
    const f = asFailure(e);
    return `${f.code} ${f.kind}: ${f.message}`;
  }
};

test("files that are right pass, and so do sections without one", async () => {
  const schema_file = file("good.json", '{"columns":[{"name":"id","type":"int64"}]}');
  expect(await told({ format: "json", schema_file })).toBe("");
  expect(await told({ format: "avro", framing: "confluent", schema_dir: folder })).toBe("");
});

test("one that is missing, broken, or of another format is told with its fault", async () => {
  const json = (schema_file: string) => told({ format: "json", schema_file });
  expect(await json(join(folder, "none.json"))).toStartWith("files.schema config: no json payload");
  expect(await json(file("a.json", "{"))).toContain("decode.schema");
  expect(await json(file("b.json", '{"columns":[{"name":"id","type":"int65"}]}'))).toContain("int65");
  const avro = { format: "avro", schema_file: file("c.avsc", '{"columns":[]}') };
  expect(await told(avro)).toContain("no avro payload can be read by this schema: decode.schema");
});

test("a reader's schema is looked at, and whether the one file of all writers goes into it", async () => {
  const record = (name: string, ...fields: object[]) =>
    file(name, JSON.stringify({ type: "record", name: "R", fields }));
  const id = { name: "id", type: "long" };
  const schema_file = record("writer.avsc", id);
  const avro = (reader_schema: string) => told({ format: "avro", schema_file, reader_schema });
  expect(await avro(record("reader.avsc", { ...id, type: "double" }))).toBe("");
  expect(await avro(record("other.avsc", { ...id, type: "string" }))).toContain(
    "decode.schema at id: the writer's long does not go into the reader's string",
  );
  expect(await avro(record("more.avsc", id, { name: "qty", type: "int" }))).toContain("qty");
  expect(await avro(file("no.avsc", "{"))).toStartWith("files.schema");
});

test("the file of the keys is looked at, too", async () => {
  const schema_file = file("v.json", '{"columns":[{"name":"id","type":"int64"}]}');
  const keyed = (key: object) => told({ format: "json", schema_file, key });
  expect(await keyed({ format: "text" })).toBe("");
  expect(await keyed({ format: "avro", schema_file: file("k.avsc", '"long"') })).toBe("");
  expect(await keyed({ format: "avro", schema_file: file("bad.avsc", '"lang"') })).toContain(
    "no avro key can be read by this schema: decode.schema",
  );
});

test("whether what a file writes goes into a contract is told before a record comes", async () => {
  const contract = (type: string) =>
    file(
      `${type}.odcs.yaml`,
      `apiVersion: v3.1.0\nkind: DataContract\nschema:\n  - { name: o, properties: [{ name: id, required: true, logicalType: ${type} }] }\n`,
    );
  const schema_file = file("id.proto", 'syntax = "proto3"; message O { int32 id = 1; }');
  const into = (type: string) => told({ format: "protobuf", schema_file, reader_schema: contract(type) });
  expect(await into("integer")).toBe("");
  expect(await into("number")).toBe("");
  expect(await into("boolean")).toContain("decode.schema at id: int32 does not go into boolean of the table");
  const other = file("other.proto", 'syntax = "proto3"; message O { int32 other = 1; }');
  expect(
    await told({ format: "protobuf", schema_file: other, reader_schema: contract("integer") }),
  ).toContain("decode.schema at id: it is required, and the writer's schema has none");
});

test("a contract of several objects is looked at for the topics that are read", async () => {
  const object = (name: string) =>
    `  - { name: ${name}, properties: [{ name: id, logicalType: integer }] }\n`;
  const contract = `apiVersion: v3.1.0\nkind: DataContract\nschema:\n${object("orders")}${object("clicks")}`;
  const section = { format: "json", schema_file: file("two.odcs.yaml", contract) };
  expect(await told(section, ["orders", "clicks"])).toBe("");
  expect(await told(section, ["orders", "views"])).toContain(
    'the contract cannot be used: schema, line 4: none of its objects (orders, clicks) is called "views"',
  );
});

test("the file of a single topic is looked at, too", async () => {
  const schema_file = file("d.json", '{"columns":[{"name":"id","type":"int64"}]}');
  const topic = [{ name: "orders", schema_file: file("e.json", "[]") }];
  expect(await told({ format: "json", schema_file, topic })).toStartWith("files.schema");
});

test("XML is read by a table's schema that documents can fill", async () => {
  const xml = (name: string, columns: string) =>
    told({ format: "xml", schema_file: file(name, `{"columns":[${columns}]}`) });
  expect(await xml("f.json", '{"name":"id","type":"int64","source":"@id"}')).toBe("");
  expect(await xml("g.json", '{"name":"any","type":"json"}')).toContain("XML has no json columns");
});

test("a .proto file is called by its own name, and so is what it imports", async () => {
  const proto = (name: string, text: string) => told({ format: "protobuf", schema_file: file(name, text) });
  expect(await proto("orders.proto", 'syntax = "proto3"; message A { strin s = 1; }')).toContain(
    "orders.proto",
  );
  file("orders_money.proto", 'syntax = "proto3"; message M { int33 n = 1; }');
  const importing = 'syntax = "proto3"; import "orders_money.proto"; message A { M m = 1; }';
  expect(await proto("a.proto", importing)).toContain("orders_money.proto");
});

async function looked(section: object, topics: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  const checkup = schemaFilesCheckup(decodeSpec.parse(section), topics, "_twg_");
  await checkup?.run({
    clock: systemClock,
    signal: new AbortController().signal,
    report: (f) => found.push(`${f.verdict} ${f.check} ${f.at}: ${f.code ?? ""} ${f.seen}`),
  });
  return found;
}

test("doctor reads files and folders as a start would, each once, and tells the columns", async () => {
  const good = file("h.json", '{"columns":[{"name":"id","type":"int64"},{"name":"a","type":"string"}]}');
  const bad = file("i.avsc", "{");
  const found = await looked(
    {
      ...{ format: "json", schema_file: good },
      topic: [{ name: "b", format: "avro", schema_file: bad }],
    },
    ["a", "b", "c"],
  );
  expect(found[0]).toBe(`ok schema.file ${good}:  json, 2 columns: id int64, a string`);
  expect(found[1]).toStartWith(`failed schema.file ${bad}: files.schema no avro payload can be read`);
  expect(found.length).toBe(2);

  const schema_dir = mkdtempSync(join(folder, "dir-"));
  writeFileSync(
    join(schema_dir, "a-value.avsc"),
    '{"type":"record","name":"R","fields":[{"name":"n","type":"int"}]}',
  );
  writeFileSync(join(schema_dir, "b-value.avsc"), '{"type":"record"}');
  const inFolder = await looked({ format: "avro", framing: "confluent", schema_dir }, ["a", "b", "c"]);
  expect(inFolder.map((f) => f.split(":")[0])).toEqual([
    `ok schema.file a in ${schema_dir}`,
    `failed schema.file b in ${schema_dir}`,
    `skipped schema.file c in ${schema_dir}`,
  ]);
  expect(await looked({ format: "json" }, ["a"])).toEqual([]);
});
