/**
 * Goal: a schema that was printed is read back as the same schema, and a wrong one is refused with the place of its
 * fault. Method: there and back with every kind of type; then one document a fault, with the words that name it.
 */
import { expect, test } from "bun:test";
import { Failure } from "../../../src/core/failure/failure.ts";
import { checkSchema, parseSchemaDocument, schemaDocument } from "../../../src/core/types/schema-file.ts";
import { schema } from "../codecs/table.ts";

function refusal(fn: () => unknown): string {
  try {
    return `no failure: ${JSON.stringify(fn())}`;
  } catch (e) {
    if (!(e instanceof Failure)) throw e;
    expect({ code: e.code, at: e.at }).toEqual({ code: "files.schema", at: "s.json" });
    return e.message;
  }
}

const parse = (document: unknown) =>
  parseSchemaDocument(typeof document === "string" ? document : JSON.stringify(document), "s.json");
const parseColumn = (column: unknown) =>
  refusal(() => parse({ columns: [{ name: "a", type: "date" }, column] }));

test("there and back", () => {
  const types =
    "a boolean; b int8; c uint64!; d decimal(38,4); e timestamptz[ns]; f time; g uuid; h json; " +
    "i list<struct<x int32, y string>>; j map<string,double>; k binary; l float!; m date";
  const s = schema(types);
  expect(parse(schemaDocument(s))).toEqual(s);
  const renamed = { fields: [{ ...s.fields[0]!, source: 'the "A"' }] };
  expect(parse(schemaDocument(renamed))).toEqual(renamed);
});

test("a document has a column a line and says only what is not usual", () => {
  const { fields } = schema("id int64!, name string");
  const document = schemaDocument({ fields: [fields[0]!, { ...fields[1]!, source: "name" }] });
  expect(document).toBe(
    '{\n  "columns": [\n    {"name":"id","type":"int64","nullable":false},\n    {"name":"name","type":"string"}\n  ]\n}\n',
  );
});

test("a wrong document is refused as a whole", () => {
  expect(refusal(() => parse("{"))).toStartWith("it is no JSON: ");
  for (const d of [null, [], 1, {}, { columns: {} }, { columns: [] }])
    expect(refusal(() => parse(d))).toBe('a list "columns" is wanted');
  const column = { name: "a", type: "date" };
  expect(refusal(() => parse({ columns: new Array(10_001).fill(column) }))).toBe("more than 10000 columns");
});

test("a wrong column is named by its place", () => {
  expect(parseColumn("b")).toBe("columns[1] is no object");
  expect(parseColumn([])).toBe("columns[1] is no object");
  expect(parseColumn({ name: "b", type: "date", nulable: false })).toBe(
    'columns[1] has the key "nulable"; known are name, type, nullable, source',
  );
  for (const name of [undefined, "", 7])
    expect(parseColumn({ name, type: "date" })).toBe('columns[1] wants a "name"');
  expect(parseColumn({ name: "b" })).toBe('columns[1] wants a "type"');
  expect(parseColumn({ name: "b", type: "date", nullable: "no" })).toBe(
    "columns[1].nullable is true or false",
  );
  expect(parseColumn({ name: "b", type: "date", source: 1 })).toBe("columns[1].source is a text");
  expect(parseColumn({ name: "b", type: "decimal(99,1)" })).toStartWith('columns[1].type "decimal(99,1)": ');
});

test("names that engines take for one, or that are ours, are refused", () => {
  const check = (types: string) => refusal(() => checkSchema(schema(types), "_twg_", "s.json"));
  expect(check("Id int8, x date, iD int8")).toBe('the columns "Id" and "iD" differ in nothing but case');
  expect(check("a int8, _TWG_x date")).toBe('the column "_TWG_x" begins with _twg_, which is ours');
  expect(check("a int8, b_twg_ date")).toBe("no failure: undefined");
});
