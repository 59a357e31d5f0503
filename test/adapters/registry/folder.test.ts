/** Goal: schemas are found in files by name or index, and nothing outside of the folder is read. Method: folders on disk. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { SchemaFolder, schemaOfFile } from "../../../src/adapters/registry/folder.ts";
import { asFailure, type Failure } from "../../../src/core/failure/failure.ts";

const root = mkdtempSync(join(tmpdir(), "twg-schemas-"));
afterAll(() => rmSync(root, { recursive: true }));
let folders = 0;

function folder(files: Readonly<Record<string, string | Uint8Array>>): string {
  const at = join(root, String(folders++));
  mkdirSync(at);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(at, name)), { recursive: true });
    writeFileSync(join(at, name), text);
  }
  return at;
}

const failure = (p: Promise<unknown>): Promise<Failure> =>
  p.then(
    () => Promise.reject(new Error("it did not fail")),
    (e) => asFailure(e),
  );

const GUID = "84667069-737e-468e-b257-e2451fbc27d5";

describe("by name", () => {
  test("id, GUID and subject, the format by the ending", async () => {
    const at = folder({
      "7.avsc": '"int"',
      [`${GUID}.json`]: "{}",
      "a%2Fb-value.proto": 'syntax = "proto3";',
    });
    const schemas = new SchemaFolder(at);
    expect(await schemas.schema({ by: "id", id: 7 })).toEqual({
      format: "avro",
      text: '"int"',
      references: [],
      id: "7",
      subject: null,
      version: null,
    });
    expect(await schemas.schema({ by: "guid", guid: GUID })).toMatchObject({ format: "json", id: GUID });
    expect(await schemas.latest("a/b-value")).toMatchObject({
      format: "protobuf",
      id: "a/b-value",
      subject: "a/b-value",
    });
    const missing = await failure(schemas.schema({ by: "id", id: 8 }));
    expect([missing.code, missing.retry]).toEqual(["registry.unknown_schema", false]);
    expect((await failure(schemas.latest("../7"))).code).toBe("registry.unknown_subject");
  });

  test("what a .proto file imports comes with it, comments aside", async () => {
    const at = folder({
      "1.proto":
        'syntax = "proto3";\n// import "no.proto";\n/* import "no.proto"; */ import "common/money.proto";\nimport public \'b.proto\'; import "google/protobuf/any.proto";',
      "common/money.proto": 'import "b.proto";',
      "b.proto": "",
      "no.proto": "",
    });
    const b = { name: "b.proto", text: "", references: [] };
    const wanted = [{ name: "common/money.proto", text: 'import "b.proto";', references: [b] }, b];
    expect((await new SchemaFolder(at).schema({ by: "id", id: 1 })).references).toEqual(wanted);
    expect((await schemaOfFile(join(at, "1.proto"), "protobuf")).references).toEqual(wanted);
  });

  test("imports from outside, in a circle", async () => {
    const out = folder({ "1.proto": 'import "../x.proto";' });
    expect((await failure(new SchemaFolder(out).schema({ by: "id", id: 1 }))).message).toContain(
      "outside of the folder",
    );
    const circle = folder({
      "1.proto": 'import "a.proto";',
      "a.proto": 'import "b.proto";',
      "b.proto": 'import "a.proto";',
    });
    expect((await failure(new SchemaFolder(circle).schema({ by: "id", id: 1 }))).message).toContain(
      "files import each other: a.proto -> b.proto -> a.proto",
    );
  });
});

describe("by index", () => {
  test("ids, GUIDs, the latest version of a subject, references with their own", async () => {
    const index = {
      schemas: [
        { file: "v1.avsc", id: 1, subject: "s", version: 1 },
        {
          file: "v10.avsc",
          id: 3,
          guid: GUID.toUpperCase(),
          subject: "s",
          version: 10,
          references: [{ name: "M", file: "m.avsc" }],
        },
        { file: "v2.avsc", id: 2, subject: "s", version: 2 },
        { file: "m.avsc", references: [{ name: "N", file: "deep/n.avsc" }] },
      ],
    };
    const at = folder({
      "index.json": JSON.stringify(index),
      "v1.avsc": "1",
      "v2.avsc": "2",
      "v10.avsc": "10",
      "m.avsc": "m",
      "deep/n.avsc": "n",
      "9.avsc": "not in the index",
    });
    const schemas = new SchemaFolder(at);
    const wanted = {
      format: "avro",
      text: "10",
      id: "3",
      subject: "s",
      version: 10,
      references: [{ name: "M", text: "m", references: [{ name: "N", text: "n", references: [] }] }],
    };
    expect(await schemas.latest("s")).toEqual(wanted as never);
    expect(await schemas.schema({ by: "guid", guid: GUID })).toEqual(wanted as never);
    expect((await schemas.schema({ by: "id", id: 2 })).text).toBe("2");
    expect((await failure(schemas.schema({ by: "id", id: 9 }))).code).toBe("registry.unknown_schema");
  });

  const bad: [string, string, string][] = [
    ["no JSON", "{", "it is no JSON"],
    ["no list", "{}", 'a list "schemas" is wanted'],
    ["no object", '{"schemas":[1]}', "schemas[0] is no object"],
    ["an unknown key", '{"schemas":[{"fil":1}]}', 'schemas[0] has the key "fil"'],
    ["no file", '{"schemas":[{"id":1}]}', 'schemas[0] wants a "file"'],
    ["an id of text", '{"schemas":[{"file":"a.avsc","id":"1"}]}', "schemas[0].id is a whole number"],
    ["a subject of no text", '{"schemas":[{"file":"a.avsc","subject":1}]}', "schemas[0].subject is a text"],
    [
      "references of no list",
      '{"schemas":[{"file":"a.avsc","references":1}]}',
      "schemas[0].references is a list",
    ],
    [
      "a reference of nothing",
      '{"schemas":[{"file":"a.avsc","references":[1]}]}',
      'wants a "name" and a "file"',
    ],
    ["a file that is not there", '{"schemas":[{"file":"a.avsc","id":1}]}', "there is no such file"],
    ["a file of no format", '{"schemas":[{"file":"a.txt","id":1}]}', "ends with none of"],
    ["a file outside", '{"schemas":[{"file":"../a.avsc","id":1}]}', "../a.avsc is outside of the folder"],
    [
      "a circle",
      '{"schemas":[{"file":"c.avsc","id":1,"references":[{"name":"C","file":"c.avsc"}]}]}',
      "references go in a circle: c.avsc -> c.avsc",
    ],
  ];
  for (const [name, text, why] of bad) {
    test(name, async () => {
      const found = await failure(
        new SchemaFolder(folder({ "index.json": text, "c.avsc": "c" })).schema({ by: "id", id: 1 }),
      );
      expect([found.code, found.retry]).toEqual(["registry.folder", true]);
      expect(found.message).toContain(why);
    });
  }
});

describe("a file of the configuration", () => {
  test("is read, or why it is not", async () => {
    const at = folder({
      "a.avsc": "1",
      "b.avsc": new Uint8Array([0xff]),
      "c.avsc": "x".repeat((4 << 20) + 1),
      "d.avsc/x": "",
    });
    expect(await schemaOfFile(join(at, "a.avsc"), "avro")).toMatchObject({ format: "avro", text: "1" });
    const why = async (name: string) => (await failure(schemaOfFile(join(at, name), "avro"))).message;
    expect(await why("b.avsc")).toContain("it is no UTF-8");
    expect(await why("c.avsc")).toContain("at most 4194304 are read");
    expect(await why("d.avsc")).toContain("no regular file");
    expect(await why("e.avsc")).toContain("there is no such file");
  });
});
