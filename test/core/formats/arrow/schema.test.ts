/**
 * Goal: a schema of Arrow's, as bytes or as JSON, is the columns of a table, and what no column holds is refused by field; damaged
 * bytes are a coded failure, never worse. Method: schemas as pyarrow writes them (test/golden/arrow.py) with every type, cut at
 * every byte and with single bytes changed; JSON in the form of Arrow's integration tests.
 */
import { describe, expect, test } from "bun:test";
import { Failure } from "../../../../src/core/failure/failure.ts";
import { type ArrowField, columnsOfArrow } from "../../../../src/core/formats/arrow/fields.ts";
import { arrowFieldsOfIpc, isArrowIpc } from "../../../../src/core/formats/arrow/ipc-schema.ts";
import { arrowFieldsOfJson, arrowJsonFields } from "../../../../src/core/formats/arrow/json-schema.ts";
import type { ColumnField } from "../../../../src/core/types/table-batch.ts";
import { typeText } from "../../../../src/core/types/type-text.ts";
import golden from "../../../golden/arrow.json";

const bytesOf = (text: string) => Uint8Array.fromBase64(text);
const shown = (f: ColumnField): string => `${f.name}: ${typeText(f.type)}${f.nullable ? "" : "!"}`;
const ofBytes = (bytes: Uint8Array) => columnsOfArrow(arrowFieldsOfIpc(bytes, "s.arrow"), "s.arrow");

const told = (read: () => unknown): string => {
  try {
    return `read: ${JSON.stringify(read())}`;
  } catch (e) {
    if (e instanceof Failure) return `${e.code} ${e.at}: ${e.message}`;
    throw e;
  }
};

const EVERY = [
  "null: string",
  "bool: boolean!",
  ...["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"].map((t) => `${t}: ${t}`),
  ...["halffloat: float", "float: float", "double: double"],
  ...["string: string", "large_string: string", "string_view: string"],
  ...["binary: binary", "large_binary: binary", "binary_view: binary", "fixed: fixed(5)"],
  ...["decimal: decimal(20,4)", "decimal32: decimal(7,2)", "decimal256: decimal(38,0)"],
  ...["date32: date", "date64: date"],
  ...["time time32[s]: time", "time time32[ms]: time", "time time64[us]: time", "time time64[ns]: time[ns]"],
  ...["at s: timestamp[s]", "at ms: timestamp[ms]", "at us: timestamp", "at ns: timestamp[ns]"],
  ...["zoned: timestamptz[ms]", "interval: interval", "uuid: uuid", "json: json"],
  ...["list: list<int32>", "large list: list<string>", "list view: list<string>", "fixed list: list<float>"],
  "map: map<string,int64>",
  "struct: struct<a int64, b list<struct<c string>>>",
  ...["dictionary: string", "runs: int64"],
];

describe("bytes", () => {
  test("every type that has a column, nested ones with their own nulls", () => {
    const columns = ofBytes(bytesOf(golden.message));
    expect(columns.map(shown)).toEqual(EVERY);
    const by = (name: string) => columns.find((c) => c.name === name)!.type as never;
    expect(by("list")).toMatchObject({ item: { name: "element", nullable: false } });
    expect(by("map")).toMatchObject({ key: { nullable: false }, value: { nullable: false } });
    expect(by("struct")).toMatchObject({ fields: [{ nullable: false }, { nullable: true }] });
  });

  test("a file, and a message as it was before 0.15", () => {
    const file = bytesOf(golden.file);
    expect(isArrowIpc(file)).toBe(true);
    expect(ofBytes(file).map(shown)).toEqual(["id: int64", "name: string"]);
    const message = bytesOf(golden.message);
    expect(isArrowIpc(message)).toBe(true);
    expect(ofBytes(message.subarray(4)).map(shown)).toEqual(EVERY);
    expect(isArrowIpc(Buffer.from('{"columns": []}'))).toBe(false);
  });

  test.each([
    ["union", 'field "x": a union has no column here'],
    ["duration", 'field "x": a duration has no column here'],
    ["wide decimal", 'field "x": decimals have 1 to 38 digits, not (50, 2)'],
    ["map of numbers", 'field "x": keys of a map are text here, not int32'],
    ["negative scale", 'field "x": decimals have 1 to 38 digits, not (5, -2)'],
    ["struct of nothing", 'field "x": a struct without fields'],
  ] as const)("%s is refused by field", (name, why) => {
    expect(told(() => ofBytes(bytesOf(golden.refused[name])))).toBe(
      `files.schema s.arrow: the Arrow schema cannot be used: ${why}`,
    );
  });

  test("no fields, one name twice and one of nothing are refused", () => {
    expect(told(() => ofBytes(bytesOf(golden.empty)))).toEndWith("the schema has no fields");
    const field = (name: string): ArrowField => ({
      ...{ name, nullable: true, type: { name: "bool" }, children: [], extension: null },
    });
    expect(told(() => columnsOfArrow([field("a"), field("a")], "f"))).toEndWith("two fields have this name");
    expect(told(() => columnsOfArrow([field("")], "f"))).toEndWith("it has no name");
    const deep = Array.from({ length: 40 }).reduce<ArrowField>(
      (inner) => ({ ...field("l"), type: { name: "list" }, children: [inner] }),
      field("l"),
    );
    expect(told(() => columnsOfArrow([deep], "f"))).toEndWith("it nests deeper than 32");
  });

  test("what is cut or changed anywhere is read or refused with the code", () => {
    const whole = bytesOf(golden.message);
    let refused = 0;
    for (let end = 0; end < whole.length; end++) {
      if (told(() => ofBytes(whole.subarray(0, end))).startsWith("files.schema")) refused++;
    }
    expect(refused).toBe(whole.length);
    for (let at = 0; at < whole.length; at++)
      for (const bits of [0x01, 0x80, 0xff]) {
        const changed = whole.slice();
        changed[at]! ^= bits;
        expect(told(() => ofBytes(changed))).toMatch(/^(read|files\.schema)/);
      }
  });
});

describe("JSON", () => {
  const schema = (...fields: object[]) => ({ schema: { fields } });
  const type = (name: string, more: object = {}, children: object[] = []) => ({
    ...{ name: "x", nullable: true, type: { name, ...more }, children },
  });
  const ofJson = (document: unknown) =>
    columnsOfArrow(arrowFieldsOfJson(arrowJsonFields(document)!, "s.json"), "s.json").map(shown);
  const one = (...of: Parameters<typeof type>) => told(() => ofJson(schema(type(...of))));
  const column = (t: string) => `read: ["x: ${t}"]`;

  test("types are those of the bytes", () => {
    expect(one("int", { bitWidth: 16, isSigned: false })).toBe(column("uint16"));
    expect(one("floatingpoint", { precision: "DOUBLE" })).toBe(column("double"));
    expect(one("decimal", { precision: 9, scale: 2, bitWidth: 128 })).toBe(column("decimal(9,2)"));
    expect(one("largeutf8")).toBe(column("string"));
    expect(one("binaryview")).toBe(column("binary"));
    expect(one("date", { unit: "DAY" })).toBe(column("date"));
    expect(one("time", { unit: "NANOSECOND", bitWidth: 64 })).toBe(column("time[ns]"));
    expect(one("timestamp", { unit: "SECOND", timezone: "UTC" })).toBe(column("timestamptz[s]"));
    expect(one("timestamp", { unit: "MICROSECOND" })).toBe(column("timestamp"));
    expect(one("interval", { unit: "MONTH_DAY_NANO" })).toBe(column("interval"));
    expect(one("fixedsizebinary", { byteWidth: 3 })).toBe(column("fixed(3)"));
    const item = { ...type("bool"), name: "item" };
    for (const list of ["list", "largelist", "listview", "largelistview", "fixedsizelist"])
      expect(one(list, {}, [item])).toBe(column("list<boolean>"));
    expect(one("struct", {}, [item])).toBe(column("struct<item boolean>"));
    const entries = { ...type("struct", {}, [{ ...type("utf8"), name: "k" }, item]), name: "entries" };
    expect(one("map", { keysSorted: false }, [entries])).toBe(column("map<string,boolean>"));
    expect(one("runendencoded", {}, [type("int", { bitWidth: 32 }), type("utf8")])).toBe(column("string"));
  });

  test("the schema by itself, extensions, and what is not null", () => {
    const metadata = [{ key: "ARROW:extension:name", value: "arrow.uuid" }];
    const uuid = { ...type("fixedsizebinary", { byteWidth: 16 }), metadata, nullable: false };
    expect(ofJson({ fields: [uuid] })).toEqual(["x: uuid!"]);
    expect(
      ofJson({ fields: [{ ...type("utf8"), metadata: { "ARROW:extension:name": "arrow.json" } }] }),
    ).toEqual(["x: json"]);
  });

  test("other documents are none", () => {
    for (const other of [
      null,
      [],
      {},
      { fields: [] },
      { fields: [{ name: "x", type: "string" }] },
      { type: "record" },
    ])
      expect(arrowJsonFields(other)).toBeNull();
  });

  test("what is wrong is told by field", () => {
    expect(one("int", { bitWidth: 7 })).toEndWith('field "x": bitWidth is 8, 16, 32, 64, not 7');
    expect(one("int")).toEndWith('field "x": bitWidth is a whole number');
    expect(one("timestamp", { unit: "DAY" })).toEndWith(
      "unit is one of SECOND, MILLISECOND, MICROSECOND, NANOSECOND",
    );
    expect(one("geometry")).toEndWith('field "x": "geometry" is no type of Arrow\'s');
    expect(one("union")).toEndWith('field "x": a union has no column here');
    expect(one("list")).toEndWith(`field "x[]": 0 children, 1 are wanted`);
    const inner = { ...type("int", { bitWidth: 3 }), name: "y" };
    expect(one("struct", {}, [inner])).toContain('field "x.y"');
    expect(told(() => ofJson({ fields: [{ ...type("bool"), nullable: 1 }] }))).toEndWith(
      "nullable is true or false",
    );
  });
});
