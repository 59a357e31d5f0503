/**
 * Goal: a data contract says which columns there are, of which types, and whatever it leaves open or says wrongly is told with
 * place and line. Method: contracts of ODCS v3 in YAML and JSON, with what facts about real ones have shown to go wrong.
 */
import { describe, expect, test } from "bun:test";
import { scalarType } from "../../../src/core/contract/column-types.ts";
import { tableOfContract, type WantedObject } from "../../../src/core/contract/odcs.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { ColumnField, ColumnType } from "../../../src/core/types/table-batch.ts";
import { typeText } from "../../../src/core/types/type-text.ts";

const ONE: WantedObject = { name: null, topic: "" };

const lines = (fields: readonly ColumnField[], above = ""): string[] =>
  fields.flatMap((f) => {
    const line = `${above}${f.name} ${typeText(f.type)}${f.nullable ? "" : "!"}`;
    return f.type.id === "struct" ? [line, ...lines(f.type.fields, `${above}${f.name}.`)] : [line];
  });

const HEAD = `apiVersion: v3.1.0
kind: DataContract
id: urn:acme:orders
version: 1.10
status: active
`;

const read = (text: string, wanted = ONE) => tableOfContract(text, wanted, "orders.odcs.yaml");
const columns = (text: string, wanted = ONE) => lines(read(text, wanted).fields);

const told = (text: string, wanted = ONE): string => {
  try {
    return `read: ${columns(text, wanted).join(", ")}`;
  } catch (e) {
    if (e instanceof Failure) return `${e.code} ${e.at}: ${e.message}`;
    throw e;
  }
};

const ORDERS = `${HEAD}
schema:
  - name: orders
    physicalName: shop.orders-v1
    logicalType: object
    quality:
      - metric: rowCount
        mustBeGreaterThan: 0
    properties:
      - name: order id
        physicalName: order_id
        logicalType: integer
        primaryKey: true
        required: false
      - name: total
        logicalType: number
        physicalType: DECIMAL(12, 2)
        logicalTypeOptions: { minimum: 0 }
      - name: placed_at
        logicalType: timestamp
        required: true
      - name: customer
        logicalType: object
        properties:
          - { name: email, logicalType: string, required: true, logicalTypeOptions: { format: email, maxLength: 100 } }
          - name: tags
            logicalType: array
            items: { logicalType: string }
      - name: note
        physicalType: varchar(20)
`;

test("columns, types, nested ones and what must be there; physical names go before", () => {
  expect(columns(ORDERS)).toEqual([
    "order_id int64!",
    "total decimal(12,2)",
    "placed_at timestamptz!",
    "customer struct<email string, tags list<string>>",
    "customer.email string!",
    "customer.tags list<string>",
    "note string",
  ]);
  expect(read(ORDERS).origin).toBe(
    "object shop.orders-v1 of the data contract urn:acme:orders 1.10; 4 of its rules about values are not applied",
  );
});

test("a contract of JSON is one too", () => {
  const contract = {
    ...{ apiVersion: "v3.2.0", kind: "DataContract", id: "c" },
    schema: [
      {
        name: "o",
        properties: [
          {
            name: "m",
            logicalType: "map",
            map: { key: { logicalType: "string" }, value: { logicalType: "integer" } },
          },
          { name: "open", logicalType: "object" },
          { name: "any", logicalType: "array" },
          { name: "e", logicalType: "vector", logicalTypeOptions: { dimensions: 3 } },
          {
            name: "p",
            customProperties: [
              { property: "precision", value: "9" },
              { property: "scale", value: 3 },
            ],
            logicalType: "number",
          },
        ],
      },
    ],
  };
  const { fields, origin } = read(JSON.stringify(contract));
  expect(lines(fields)).toEqual([
    "m map<string,int64>",
    "open json",
    "any json",
    "e list<double>",
    "p decimal(9,3)",
  ]);
  expect(origin).toBe("object o of the data contract c");
});

describe("one of several objects", () => {
  const two = `${HEAD}
schema:
  - { name: orders, physicalName: shop.orders, properties: [{ name: a, logicalType: string }] }
  - { name: clicks, properties: [{ name: b, logicalType: string }] }
`;
  test("is the one that is named, or is called as the topic", () => {
    expect(columns(two, { name: "clicks", topic: "orders" })).toEqual(["b string"]);
    for (const topic of ["orders", "shop.orders", ""])
      expect(columns(two, { name: null, topic })).toEqual(["a string"]);
    expect(columns(two, { name: null, topic: "clicks" })).toEqual(["b string"]);
  });
  test("else it is asked for", () => {
    expect(told(two, { name: null, topic: "views", how: ": say which" })).toEndWith(
      'schema, line 8: none of its objects (orders, clicks) is called "views": say which',
    );
    expect(told(two, { name: "x", topic: "" })).toEndWith(
      'no object is called "x", there are orders, clicks',
    );
  });
});

const property = (text: string) => `${HEAD}schema:\n  - name: o\n    properties:\n      - ${text}\n`;

test.each([
  ["{", "it is no YAML"],
  ["", "the document is empty"],
  ["a: 1\n---\nb: 2\n", "it holds 2 documents"],
  [`${HEAD}kind: DataContract\n`, "line 6: it is no YAML: Map keys must be unique"],
  ["[1]", "line 1: an object is wanted"],
  ["kind: Table\n", 'kind, line 1: "DataContract" is wanted'],
  ["kind: DataContract\napiVersion: v2.2.2\n", 'apiVersion, line 2: contracts of v3 are read, not "v2.2.2"'],
  ["dataContractSpecification: 1.1.0\n", "this is the Data Contract Specification"],
  ["dataset: []\n", "this is ODCS v2"],
  [HEAD, "schema, line 1: a list of objects with properties is wanted"],
  [`${HEAD}schema:\n  - name: o\n`, "schema[0].properties, line 7: a list of properties is wanted"],
  [property("logicalType: string"), "schema[0].properties[0].name, line 9: a name is wanted"],
  [
    property("{ name: a, logicalType: text }"),
    'schema[0].properties[0].logicalType, line 9: "text" is no logical type',
  ],
  [property("name: a"), "neither logicalType nor physicalType says what it is"],
  [
    property("{ name: a, physicalType: GEOGRAPHY }"),
    'physicalType, line 9: the physical type "GEOGRAPHY" is not known',
  ],
  [
    property("{ name: a, logicalType: string }\n      - { name: a, logicalType: string }"),
    'properties[1], line 10: property 0 is called "a"',
  ],
  [property("{ name: a, logicalType: string, required: yes }"), "required, line 9: true or false is wanted"],
  [property("{ name: 1, logicalType: string }"), "name, line 9: a text is wanted"],
  [property(`{ name: "${"$"}{COLUMN}", logicalType: string }`), "variables"],
  [
    property("{ name: a, logicalType: date, logicalTypeOptions: { format: MM/dd/yyyy } }"),
    'logicalTypeOptions, line 9: the format "MM/dd/yyyy" is not read',
  ],
  [
    property(
      `{ name: a, logicalType: array, items: ${"{ logicalType: array, items: ".repeat(20)}{}${" }".repeat(21)}`,
    ),
    "nest deeper than 16",
  ],
  [
    `${HEAD}schema:\n  - name: o\n    properties: &p\n      - { name: a, logicalType: object, properties: *p }\n`,
    "files.schema",
  ],
])("%p is refused with its place", (text, why) => {
  const message = told(text);
  expect(message).toStartWith("files.schema orders.odcs.yaml: ");
  expect(message).toContain(why);
});

test("much of little is refused", () => {
  const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n`;
  expect(told(bomb)).toContain("files.schema");
  expect(told(`a: ${"[".repeat(50_000)}`)).toContain("files.schema");
});

const facts = { logical: null, physical: null, format: null, zoned: null, precision: null, scale: null };
const shown = (type: ColumnType | string) => (typeof type === "string" ? `refused: ${type}` : typeText(type));

test.each([
  [{ logical: "string", format: "uuid" }, "uuid"],
  [{ logical: "string", format: "binary" }, "binary"],
  [{ logical: "integer", format: "u32" }, "uint32"],
  [{ logical: "integer", format: "i128" }, "decimal(38,0)"],
  [{ logical: "integer", format: "i7" }, "refused: i7 is no format of integers"],
  [{ logical: "number" }, "decimal(38,9)"],
  [{ logical: "number", physical: "DOUBLE PRECISION" }, "double"],
  [{ logical: "number", format: "f32" }, "float"],
  [{ logical: "number", physical: "NUMBER(50,2)" }, "refused: decimals have 1 to 38 digits, not (50, 2)"],
  [{ logical: "number", precision: 10, scale: 12 }, "refused: decimals have 1 to 38 digits, not (10, 12)"],
  [{ logical: "boolean" }, "boolean"],
  [{ logical: "date" }, "date"],
  [{ logical: "date", physical: "timestamp_ntz(9)" }, "timestamp[ns]"],
  [{ logical: "date", format: "yyyy-MM-dd'T'HH:mm:ss" }, "timestamptz"],
  [{ logical: "timestamp", zoned: false }, "timestamp"],
  [{ logical: "timestamp", format: "YYYY-MM-DDTHH:mm:ss.SSSZ" }, "timestamptz"],
  [{ logical: "timestamp", physical: "TIMESTAMP WITHOUT TIME ZONE" }, "timestamp"],
  [{ logical: "time" }, "time"],
  [{ logical: "date", format: "date-time" }, "timestamptz"],
  [{ logical: "date", format: "date" }, "date"],
  [{ physical: "varchar[50]" }, "string"],
  [{ physical: "bigserial" }, "int64"],
  [{ physical: "Decimal(7,2)" }, "decimal(7,2)"],
  [{ physical: "bigint" }, "int64"],
  [{ physical: "TIMESTAMPTZ" }, "timestamptz"],
  [{ physical: "tinyint" }, "int16"],
  [{ physical: "jsonb" }, "json"],
] as const)("%p is %p", (some, type) => {
  expect(shown(scalarType({ ...facts, ...some }))).toBe(type);
});
