/**
 * Goal: what a job will read, as what, and into which schema is settled before the first row, and whatever would lose a
 * column or guess ends it with a code. Method: real files through the configuration of the command line.
 */
import { afterAll, expect, test } from "bun:test";
import type { Scratch } from "../../src/adapters/files/fetch.ts";
import type { BatchPlan } from "../../src/commands/batch-plan.ts";
import { locate } from "../../src/commands/batch-plan.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import { typeText } from "../../src/core/types/type-text.ts";
import { containerFile, containerHeader } from "../core/codecs/avro/container-file.ts";
import { BatchRoom } from "./batch-room.ts";

const room = new BatchRoom();
afterAll(() => room.end());

const types = ({ schema }: BatchPlan) =>
  schema.fields.map((f) => `${f.name} ${typeText(f.type)}${f.nullable ? "" : "!"}`).join(", ");

const refusal = (p: Promise<unknown>) =>
  p.then(
    (v) => `no failure: ${JSON.stringify(v)}`,
    (e) => {
      if (e instanceof Failure) return `${e.code}: ${e.message}`;
      throw e;
    },
  );

const schemaOf = (...columns: object[]) => JSON.stringify({ columns });

test("CSV: layout and schema inferred over several files", async () => {
  const a = room.put("csv/a.csv", "id;price\n1;2\n2;\n");
  const b = room.put("csv/b.csv.gz", Bun.gzipSync(new TextEncoder().encode("price,id\n2.5,3\n")));
  const plan = await room.plan([a, b]);
  expect(types(plan)).toBe("id int64, price double");
  expect(plan.schemaFrom).toBe("inferred from 3 rows");
  expect(plan.works.map((w) => [w.file, w.path, w.compression, w.encoding])).toEqual([
    [0, a, "none", "utf-8"],
    [1, b, "gzip", "utf-8"],
  ]);
  expect(plan.works[0]?.layout).toMatchObject({
    columns: ["id", "price"],
    header: true,
    dialect: { delimiter: 59 },
  });
  expect(plan.works[1]?.layout).toMatchObject({
    columns: ["price", "id"],
    header: true,
    dialect: { delimiter: 44 },
  });
});

test("rows to infer from are counted over all files, header apart", async () => {
  const a = room.put("few/a.csv", "id\n1\n2\n");
  const b = room.put("few/b.csv", "id\n3\nx\n");
  expect((await room.plan([a, b], { inferRows: 3 })).schemaFrom).toBe("inferred from 3 rows");
  expect(types(await room.plan([a, b], { inferRows: 3 }))).toBe("id int64");
  expect(types(await room.plan([a, b], { inferRows: 2 }))).toBe("id int64");
  expect(types(await room.plan([a, b], { inferRows: 4 }))).toBe("id string");
});

test("rows that the first look does not hold are looked for further on", async () => {
  const csv = `id\n${"1\n".repeat(600_000)}x\n`;
  const path = room.put("far/a.csv", csv);
  expect(types(await room.plan([path], { inferRows: 600_000, header: "yes" }))).toBe("id int64");
  expect(types(await room.plan([path], { inferRows: 600_001, header: "yes" }))).toBe("id string");
  const json = room.put("far/a.ndjson", `${'{"a":1}\n'.repeat(200_000)}{"b":true}\n`);
  expect(types(await room.plan([json], { inferRows: 200_000 }))).toBe("a int64");
  expect(types(await room.plan([json], { inferRows: 200_001 }))).toBe("a int64, b boolean");
});

test("JSON: an object a line or one array; other encodings by their mark", async () => {
  const lines = room.put("json/a.json", '{"a":1}\n{"a":2}\n');
  const array = room.put("json/b.json", '\n [{"a":3}]');
  const wide = room.put("json/c.ndjson", Buffer.from('\ufeff{"a":4}\n', "utf16le"));
  const plan = await room.plan([lines, array, wide]);
  expect(types(plan)).toBe("a int64");
  expect(plan.schemaFrom).toBe("inferred from 4 rows");
  expect(plan.works.map((w) => w.layout)).toEqual([
    { format: "ndjson", array: false },
    { format: "ndjson", array: true },
    { format: "ndjson", array: false },
  ]);
  expect(plan.works.map((w) => w.encoding)).toEqual(["utf-8", "utf-8", "utf-16le"]);
  expect(await refusal(room.plan([room.put("json/d.json", "{}\n")]))).toStartWith(
    "files.schema: no object with a key",
  );
});

test("the command line's dialect; a .tsv is parted by tabs", async () => {
  const path = room.put("opt/a.csv", "a|b\n'x|y'|N/A\n");
  const plan = await room.plan([path], { delimiter: "|", quote: "'", null: ["N/A"], header: "no" });
  expect(plan.works[0]?.layout).toMatchObject({
    columns: ["column_1", "column_2"],
    header: false,
    dialect: { delimiter: 124, quote: 39, escape: 39, nulls: ["N/A"] },
  });
  const tsv = room.put("opt/b.tsv", "a,b\tc\n1,2\t3\n");
  expect((await room.plan([tsv])).works[0]?.layout).toMatchObject({
    columns: ["a,b", "c"],
    dialect: { delimiter: 9 },
  });
});

test("a schema: given, else beside the file, else of the folder", async () => {
  const path = room.put("pin/a.csv", "id\n1\n");
  const folder = room.put("pin/_schema.json", schemaOf({ name: "id", type: "int8" }));
  expect(await room.plan([path])).toMatchObject({ schemaFrom: folder });
  const beside = room.put("pin/a.csv.schema.json", schemaOf({ name: "id", type: "int16" }));
  expect(types(await room.plan([path]))).toBe("id int16");
  expect(await room.plan([path])).toMatchObject({ schemaFrom: beside });
  const given = room.put(
    "elsewhere.json",
    schemaOf({ name: "key", type: "int32", source: "id", nullable: false }),
  );
  expect(types(await room.plan([path], { schema: given }))).toBe("key int32!");
  expect(await refusal(room.plan([path], { schema: `${given}.nix` }))).toStartWith(
    "files.schema: a schema file cannot be used: there is no such file",
  );
});

test("a schema settles what the first record is", async () => {
  const schema = room.put("s1.json", schemaOf({ name: "2023", type: "int64" }, { name: "b", type: "int64" }));
  const named = room.put("settle/a.csv", "b,2023\n1,2\n");
  expect((await room.plan([named], { schema })).works[0]?.layout).toMatchObject({
    columns: ["b", "2023"],
    header: true,
  });
  const rows = room.put("settle/b.csv", "1,2\n3,4\n");
  expect((await room.plan([rows], { schema })).works[0]?.layout).toMatchObject({
    columns: ["2023", "b"],
    header: false,
  });
  const empty = room.put("settle/c.csv", "");
  expect((await room.plan([empty], { schema })).works[0]?.layout).toMatchObject({
    columns: ["2023", "b"],
    header: false,
  });
  expect(await refusal(room.plan([empty], { schema, header: "yes" }))).toStartWith("files.header: ");
  expect(await refusal(room.plan([empty]))).toStartWith("files.header: ");
});

test("what would lose a column, or has no place in CSV, ends the job", async () => {
  const a = room.put("stray/a.csv", "id,x\n1,2\n");
  const b = room.put("stray/b.csv", "id,y\n1,2\n");
  expect(await refusal(room.plan([a, b]))).toBe('files.unknown_column: the column "y" is not in the schema');
  const id = { name: "id", type: "int8" };
  const against = (...columns: object[]) =>
    refusal(room.plan([a], { schema: room.put("stray.json", schemaOf(id, ...columns)) }));
  expect(await against()).toBe('files.unknown_column: the column "x" is not in the schema');
  const x = { name: "x", type: "int8" };
  expect(await against(x, { name: "z", type: "date" })).toStartWith("no failure: ");
  expect(await against(x, { name: "z", type: "date", nullable: false })).toBe(
    'files.schema: the required column "z" is missing',
  );
  expect(await against({ name: "x", type: "list<int8>" })).toBe(
    'files.schema: the column "x" has a type that CSV cannot hold',
  );
  expect(await against(x, { name: "ID", type: "int8" })).toContain("differ in nothing but case");
  expect(await against(x, { name: "_twg_a", type: "int8" })).toContain("which is ours");
});

const avro = (...fields: object[]) => ({ type: "record", name: "R", fields });
const ID = { name: "id", type: "int" };
const NOTE = { name: "note", type: ["null", "string"], default: null };

test("Avro: the header says columns and codec, whatever packs the file", async () => {
  const a = room.put("avro/a.avro", containerFile(avro(ID, NOTE), [], { codec: "zstandard" }));
  const b = room.put("avro/b.avro.gz", Bun.gzipSync(Uint8Array.from(containerFile(avro(NOTE, ID), []))));
  const plan = await room.plan([a, b]);
  expect([types(plan), plan.schemaFrom]).toEqual(["id int32!, note string", "of the first file"]);
  const header = containerHeader(avro(ID, NOTE), "zstandard").length;
  expect(plan.works.map((w) => w.compression)).toEqual(["none", "gzip"]);
  expect(plan.works[0]?.layout).toMatchObject({ format: "avro", codec: "zstandard", reader: null, header });
  // What the file lacks is null; what the schema lacks would be lost.
  const schema = room.put("avro.json", schemaOf({ name: "id", type: "int64" }, { name: "x", type: "date" }));
  const c = room.put("avro/c.avro", containerFile(avro(ID), []));
  expect(types(await room.plan([c], { schema }))).toBe("id int64, x date");
  expect(await refusal(room.plan([a], { schema }))).toStartWith("files.unknown_column");
  const narrow = room.put("narrow.json", schemaOf({ name: "id", type: "string" }));
  expect(await refusal(room.plan([c], { schema: narrow }))).toBe(
    'files.schema: the column "id" is int32, the schema wants string',
  );
});

test("Avro: a schema that is Avro's resolves what every file was written by", async () => {
  const schema = room.put("reader.avsc", JSON.stringify(avro({ ...ID, type: "long" }, NOTE)));
  const a = room.put("evolved/a.avro", containerFile(avro(ID), []));
  const plan = await room.plan([a], { schema });
  expect(types(plan)).toBe("id int64!, note string");
  expect(plan.works[0]?.layout).toMatchObject({
    reader: JSON.stringify(avro({ ...ID, type: "long" }, NOTE)),
  });
  const other = room.put("other.avsc", JSON.stringify(avro({ ...ID, type: "string" })));
  expect(await refusal(room.plan([a], { schema: other }))).toBe(
    "files.schema: its Avro schema cannot be used at id: the writer's int does not go into the reader's string",
  );
  // Files of other formats have its columns.
  const csv = room.put("evolved/b.csv", "id,note\n1,x\n");
  expect(types(await room.plan([csv], { schema }))).toBe("id int64!, note string");
});

test("Avro: what is none, is cut short or packed by another codec is refused by name", async () => {
  const put = (name: string, bytes: Uint8Array) => room.plan([room.put(`bad/${name}.avro`, bytes)]);
  const whole = containerFile(avro(ID), []);
  expect(await refusal(put("empty", new Uint8Array(0)))).toStartWith(
    "files.not_avro: the file ends within its header",
  );
  expect(await refusal(put("cut", whole.subarray(0, 40)))).toStartWith(
    "files.not_avro: the file ends within its header",
  );
  expect(await refusal(put("csv", Buffer.from("a,b\n1,2\n")))).toStartWith(
    "files.not_avro: no Avro file begins so",
  );
  expect(await refusal(put("bzip2", containerHeader(avro(ID), "bzip2")))).toStartWith(
    'files.avro_codec: the codec is "bzip2"',
  );
  expect(await refusal(put("schema", containerHeader({ type: "recard" }, "null")))).toStartWith(
    "files.schema: its Avro schema",
  );
  expect(await refusal(put("none", containerHeader(avro(), "null")))).toBe(
    "files.schema: the file has no columns",
  );
});

test("formats that are not known are refused by name, a Parquet file that is none too", async () => {
  expect(await refusal(room.plan([room.put("p/a.parquet", "PAR1")]))).toStartWith("files.not_parquet: ");
  expect(await refusal(room.plan([room.put("p/data", "a\n1\n")]))).toStartWith("files.format: ");
  expect(types(await room.plan([room.put("p/data", "a\n1\n")], { format: "csv" }))).toBe("a int64");
});

test("a file that two inputs name is read once, in the place of the first", async () => {
  const a = room.put("twice/a.csv", "a\n1\n");
  const b = room.put("twice/b.csv", "a\n1\n");
  const scratch = {
    fetch: () => Promise.reject(new Error("nothing is to be fetched here")),
  } as unknown as Scratch;
  const nowhere = { objects: () => Promise.reject(new Error("no bucket is named here")) };
  const files = await locate([b, `${room.path}/twice/*.csv`, a], scratch, nowhere);
  expect(files.map((f) => f.path)).toEqual([b, a]);
});

test("a data contract says the columns: of the object that is called as the first file, or of its only one", async () => {
  const object = (name: string) =>
    `  - { name: ${name}, properties: [{ name: id, logicalType: integer, required: true }, { name: ${name}_at, logicalType: date }] }\n`;
  const head = "apiVersion: v3.1.0\nkind: DataContract\nschema:\n";
  const two = room.put("two.odcs.yaml", `${head}${object("orders")}${object("clicks")}`);
  const csv = room.put("contract/clicks.csv.gz", Bun.gzipSync(Buffer.from("id,clicks_at\n1,2026-01-01\n")));
  expect(types(await room.plan([csv], { schema: two }))).toBe("id int64!, clicks_at date");
  const json = room.put("contract/part-1.ndjson", '{"id":1}\n');
  expect(await refusal(room.plan([json], { schema: two }))).toEndWith(
    'none of its objects (orders, clicks) is called "part-1", the first file\'s name',
  );
  const one = room.put("one.odcs.yaml", `${head}${object("orders")}`);
  expect(types(await room.plan([json], { schema: one }))).toBe("id int64!, orders_at date");
});
