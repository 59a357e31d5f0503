/**
 * Goal: schemas are had, remembered and registered as the registry keeps them, and what it says of one counts for just as
 * long as it should. Method: a registry on a real socket; the clock is ours.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { failed } from "../../brokers/registry/server.ts";
import type { Version } from "../../brokers/registry/store.ts";
import { avro, ORDER, RegistryWorld } from "./world.ts";

const world = new RegistryWorld();
afterEach(() => world.close());

describe("schemas", () => {
  test("by id, by GUID and by subject, of every type", async () => {
    const server = world.server();
    server.store.add("a-value", avro());
    server.store.add("p-value", { schema: 'syntax = "proto3";', schemaType: "PROTOBUF", references: [] });
    const json = server.store.add("j/ä-value", {
      schema: '{"type":"object"}',
      schemaType: "JSON",
      references: [],
    });
    const client = world.client(server.url);
    const found = [
      await client.schema({ by: "id", id: 1 }),
      await client.schema({ by: "id", id: 2 }),
      await client.schema({ by: "guid", guid: (json as Version).guid }),
      await client.latest("j/ä-value"),
    ];
    expect(found.map((s) => [s.format, s.text, s.id, s.subject, s.version])).toEqual([
      ["avro", ORDER, "1", null, null],
      ["protobuf", 'syntax = "proto3";', "2", null, null],
      ["json", '{"type":"object"}', (json as Version).guid, null, null],
      ["json", '{"type":"object"}', "3", "j/ä-value", 1],
    ]);
  });

  test("all versions of a subject, in their order and as they are now", async () => {
    const server = world.server();
    server.store.add("s/ä", avro('"int"'));
    const client = world.client(server.url);
    expect(await client.versions("none")).toEqual([]);
    expect((await client.versions("s/ä")).map((v) => v.text)).toEqual(['"int"']);
    server.store.add("s/ä", avro('"long"'));
    const versions = await client.versions("s/ä");
    expect(versions.map((v) => [v.version, v.text])).toEqual([
      [1, '"int"'],
      [2, '"long"'],
    ]);
    for (const odd of [{}, ["1"], Array.from({ length: 1001 }, (_, i) => i)]) {
      server.script.push(() => Response.json(odd));
      expect((await world.failure(client.versions("s/ä"))).code).toMatch(/answer_invalid|schema_invalid/);
    }
  });

  test("references come with their own, what is common is asked for once", async () => {
    const server = world.server();
    const { store } = server;
    store.add("base", avro('"base"'));
    const base = { name: "Base", subject: "base", version: 1 };
    store.add("left", { ...avro('"left"'), references: [base] });
    store.add("right", { ...avro('"right"'), references: [base] });
    const references = ["left", "right"].map((subject) => ({
      name: subject.toUpperCase(),
      subject,
      version: 1,
    }));
    store.add("top", { ...avro('"top"'), references });
    const schema = await world.client(server.url).schema({ by: "id", id: 4 });
    const common = { name: "Base", text: '"base"', references: [] };
    expect(schema.references).toEqual([
      { name: "LEFT", text: '"left"', references: [common] },
      { name: "RIGHT", text: '"right"', references: [common] },
    ]);
    expect(server.seen.filter((s) => s.path.startsWith("/subjects/base")).map((s) => s.path)).toEqual([
      "/subjects/base/versions/1?deleted=true",
    ]);
  });

  test("an id is asked for once, however many want it and whenever", async () => {
    const server = world.server();
    server.store.add("a-value", avro());
    const client = world.client(server.url);
    await Promise.all(Array.from({ length: 20 }, () => client.schema({ by: "id", id: 1 })));
    world.clock.advance(86_400_000);
    await client.schema({ by: "id", id: 1 });
    expect(server.seen.length).toBe(1);
  });

  test("the least used schemas are forgotten above the bound", async () => {
    const server = world.server();
    for (let i = 1; i <= 4; i++)
      server.store.add(`s${i}`, avro(JSON.stringify({ i, doc: "x".repeat(60_000) })));
    const client = world.client(server.url, { cacheBytes: 600_000 });
    for (const id of [1, 2, 1, 3, 1, 2]) await client.schema({ by: "id", id });
    expect(server.seen.map((s) => s.path)).toEqual([1, 2, 3, 2].map((id) => `/schemas/ids/${id}`));
  });
});

describe("the latest version", () => {
  test("is asked for again after its time", async () => {
    const server = world.server();
    server.store.add("a-value", avro());
    const client = world.client(server.url, { refreshMs: 1000 });
    const versions: (number | null)[] = [(await client.latest("a-value")).version];
    server.store.add("a-value", avro('"int"'));
    versions.push((await client.latest("a-value")).version);
    world.clock.advance(1001);
    versions.push((await client.latest("a-value")).version);
    expect(versions).toEqual([1, 1, 2]);
  });

  test("stays what it was while the registry cannot be asked", async () => {
    const server = world.server();
    server.store.add("a-value", avro());
    const client = world.client(server.url, { refreshMs: 1000 });
    await client.latest("a-value");
    await server.close();
    world.clock.advance(5000);
    expect((await world.of(client.latest("a-value"))).version).toBe(1);
  });
});

describe("what the registry does not know", () => {
  test("is a verdict, remembered for a while and asked again then", async () => {
    const server = world.server();
    const client = world.client(server.url, { missingTtlMs: 1000 });
    for (let i = 0; i < 3; i++) {
      const failure = await world.failure(client.schema({ by: "id", id: 7 }));
      expect([failure.code, failure.retry, failure.message]).toEqual([
        "registry.unknown_schema",
        false,
        "schema id 7: the registry has none: Schema not found",
      ]);
    }
    expect(server.seen.length).toBe(1);
    for (let i = 1; i <= 7; i++) server.store.add("a", avro(`${i}`));
    world.clock.advance(1001);
    expect((await client.schema({ by: "id", id: 7 })).text).toBe("7");
  });

  test("is asked again within the grace, and found if it comes", async () => {
    const server = world.server();
    const client = world.client(server.url, { missingGraceMs: 2000 });
    const asked = client.schema({ by: "id", id: 1 });
    while (server.seen.length < 2) {
      await Bun.sleep(1);
      world.clock.advance(20);
    }
    server.store.add("a", avro());
    expect((await world.of(asked)).text).toBe(ORDER);
    expect((await world.failure(client.schema({ by: "id", id: 2 }))).code).toBe("registry.unknown_schema");
  });

  test("subjects and versions", async () => {
    const server = world.server();
    server.store.add("a", { ...avro(), references: [] });
    server.store.force({
      ...avro('"x"'),
      id: 9,
      guid: "g",
      subject: "b",
      version: 1,
      references: [{ name: "A", subject: "a", version: 5 }],
    });
    const client = world.client(server.url);
    const failures = [
      await world.failure(client.latest("none")),
      await world.failure(client.schema({ by: "id", id: 9 })),
    ];
    expect(failures.map((f) => [f.code, f.message])).toEqual([
      [
        "registry.unknown_subject",
        "the latest version of none: the registry has none: Subject 'none' not found.",
      ],
      ["registry.unknown_subject", "a version 5: the registry has none: Version 5 not found."],
    ]);
  });
});

describe("schemas that cannot be used", () => {
  const refused = async (...versions: readonly Partial<Version>[]) => {
    const server = world.server();
    for (const [i, v] of versions.entries())
      server.store.force({ ...avro(), id: i + 1, guid: "", subject: `s${i + 1}`, version: 1, ...v });
    const failure = await world.failure(world.client(server.url).schema({ by: "id", id: 1 }));
    expect([failure.code, failure.retry]).toEqual(["registry.schema_invalid", false]);
    return failure.message;
  };
  const to = (...subjects: readonly string[]) =>
    subjects.map((subject) => ({ name: subject, subject, version: 1 }));

  test("circles of references", async () => {
    expect(await refused({ references: to("s2") }, { references: to("s3") }, { references: to("s2") })).toBe(
      "schema id 1: references go in a circle: s2 version 1 -> s3 version 1 -> s2 version 1",
    );
  });

  test("references too deep, too many, too large, a tree out of few schemas", async () => {
    const chain = Array.from({ length: 40 }, (_, i) => ({ references: i === 39 ? [] : to(`s${i + 2}`) }));
    expect(await refused(...chain)).toBe("schema id 1: references go deeper than 32");
    const diamonds = Array.from({ length: 20 }, (_, i) => ({
      references: i === 19 ? [] : to(`s${i + 2}`, `s${i + 2}`),
    }));
    expect(await refused(...diamonds)).toBe(
      "schema id 1: more than 1000 references, those of references included",
    );
    const large = "x".repeat(600_000);
    expect(await refused({ schema: large, references: to("s2") }, { schema: large })).toBe(
      "schema id 1: with its references it is above the limit of 1048576 bytes",
    );
    expect(await refused({ schema: `${large}${large}` })).toBe(
      "schema id 1: it is above the limit of 1048576 bytes",
    );
    expect(await refused({ references: Array.from({ length: 1001 }, () => to("s2")[0]!) })).toBe(
      "schema id 1: 1001 references",
    );
  });

  test("an unknown type", async () => {
    expect(await refused({ schemaType: "XML" })).toBe(
      'schema id 1: a schema of type "XML"; known are AVRO, PROTOBUF and JSON',
    );
  });

  test("JSON without an end is not read on above the limit", async () => {
    const server = world.server();
    const chunk = new TextEncoder().encode("x".repeat(65_536));
    const left = Promise.withResolvers<void>();
    server.always = () =>
      new Response(
        new ReadableStream({
          async pull(controller) {
            controller.enqueue(chunk);
            await Bun.sleep(0);
          },
          cancel: () => left.resolve(),
        }),
        { headers: { "content-type": "application/json" } },
      );
    const failure = await world.failure(world.client(server.url).schema({ by: "id", id: 1 }));
    expect([failure.code, failure.message]).toEqual([
      "registry.schema_invalid",
      "schema id 1: the answer is above the limit for 1048576 bytes",
    ]);
    await left.promise;
  });
});

describe("registering", () => {
  const schema = { format: "avro", text: ORDER } as const;

  test("gives the id, the same one again without a question, normalised where that is wanted", async () => {
    const server = world.server();
    server.store.add("other", avro('"int"'));
    const client = world.client(server.url);
    const first = await client.register("a/b-value", schema, true);
    expect(first).toEqual({ id: 2, guid: (server.store.versions("a/b-value")![0] as Version).guid });
    expect(await client.register("a/b-value", schema, true)).toEqual(first);
    expect(server.seen.map((s) => [s.method, s.path])).toEqual([
      ["POST", "/subjects/a%2Fb-value/versions?normalize=true"],
    ]);
    expect((await client.schema({ by: "id", id: 2 })).text).toBe(ORDER);
  });

  test("with references; Protobuf keeps its type", async () => {
    const server = world.server();
    server.store.add("base", { schema: 'syntax="proto3";', schemaType: "PROTOBUF", references: [] });
    const references = [{ name: "base.proto", subject: "base", version: 1 }];
    await world
      .client(server.url)
      .register("p", { format: "protobuf", text: 'import "base.proto";', references }, false);
    expect(server.store.versions("p")).toMatchObject([{ schemaType: "PROTOBUF", references }]);
    expect(server.seen[0]!.path).toBe("/subjects/p/versions");
  });

  test("what breaks compatibility or is no schema is refused with the registry's words, at once", async () => {
    const server = world.server();
    server.store.incompatible = () => "reader field 'id' has no default";
    const client = world.client(server.url);
    const failures = [
      await world.failure(client.register("a", schema, false)),
      await world.failure(client.register("a", { format: "avro", text: "{" }, false)),
    ];
    expect(failures.map((f) => [f.code, f.retry, f.message])).toEqual([
      [
        "registry.incompatible",
        false,
        "registering a schema under a: the registry refused it as incompatible: reader field 'id' has no default",
      ],
      ["registry.refused", false, "registering a schema under a: the registry answered 422: Invalid schema"],
    ]);
    expect(server.seen.length).toBe(2);
  });

  test("a lookup finds the version, or says that there is none", async () => {
    const server = world.server();
    server.store.add("a", avro('"int"'));
    server.store.add("a", avro());
    const client = world.client(server.url);
    expect(await client.lookup("a", schema, true)).toMatchObject({ id: 2, version: 2, subject: "a" });
    expect((await world.failure(client.lookup("a", { format: "avro", text: '"x"' }, false))).code).toBe(
      "registry.unknown_schema",
    );
    expect((await world.failure(client.lookup("b", schema, false))).code).toBe("registry.unknown_subject");
  });
});

test("many at once are asked for a few at a time, and none is forgotten", async () => {
  const server = world.server();
  let [under, most] = [0, 0];
  server.always = async () => {
    most = Math.max(most, ++under);
    await Bun.sleep(1);
    under--;
    return failed(404, 40403, "none");
  };
  const client = world.client(server.url);
  const codes = await Promise.all(
    Array.from({ length: 100 }, (_, id) => world.failure(client.schema({ by: "id", id }))),
  );
  expect([new Set(codes.map((f) => f.code)), most]).toEqual([
    new Set(["registry.unknown_schema"] as const),
    16,
  ]);
});
