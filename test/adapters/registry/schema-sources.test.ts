/** Goal: every topic's payloads get the schemas that its configuration means. Method: files, a folder, a registry of ours. */
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SchemaSources } from "../../../src/adapters/registry/schema-sources.ts";
import { type DecodeSection, decodeSpec } from "../../../src/core/config/decode-options.ts";
import type { Resolved } from "../../../src/core/config/secret.ts";
import { avro, ORDER, RegistryWorld } from "./world.ts";

const world = new RegistryWorld();
const folder = mkdtempSync(join(tmpdir(), "twg-sources-"));
afterEach(() => world.close());
afterAll(() => rmSync(folder, { recursive: true }));

function sources(o: object): SchemaSources {
  const decode = decodeSpec.parse(o) as Resolved<DecodeSection>;
  const chance = { next: () => 0, bytes: (n: number) => new Uint8Array(n) };
  return world.also(new SchemaSources(decode, { clock: world.clock, chance }));
}

describe("a registry", () => {
  test("the table is the latest of its subject, payloads are read by what they name", async () => {
    const server = world.server();
    server.store.add("orders-value", avro('"int"'));
    server.store.add("orders-value", avro(ORDER));
    server.store.add("acme.Order", avro('"long"'));
    server.store.add("own", avro('"bytes"'));
    server.store.add("orders-key", { schema: "{}", schemaType: "JSON", references: [] });
    const base = { format: "avro", framing: "confluent", registry: { url: [server.url] } };
    const s = sources({ ...base, key: { format: "json" }, topic: [{ name: "x", subject: "own" }] });
    expect(await s.table("orders", "value")).toMatchObject({ text: ORDER, id: "2" });
    expect(await s.writer({ by: "id", id: 1 }, "orders", "value")).toMatchObject({ text: '"int"' });
    expect(await s.writer({ by: "default" }, "orders", "value")).toMatchObject({ text: ORDER });
    expect(await s.table("orders", "key")).toMatchObject({ format: "json", subject: "orders-key" });
    expect(await s.table("x", "value")).toMatchObject({ text: '"bytes"' });
    const record = sources({ ...base, subject_strategy: "record", message: "acme.Order" });
    expect(await record.table("orders", "value")).toMatchObject({ text: '"long"' });
  });

  test("keys that are text need none", async () => {
    const server = world.server();
    const base = { format: "avro", framing: "confluent", registry: { url: [server.url] } };
    const s = sources({ ...base, key: { format: "text" } });
    expect(await s.writer({ by: "default" }, "t", "key")).toMatchObject({ format: "text" });
  });

  test("a schema of another format is refused for its records", async () => {
    const server = world.server();
    server.store.add("t-value", { schema: "{}", schemaType: "JSON", references: [] });
    const s = sources({ format: "avro", framing: "confluent", registry: { url: [server.url] } });
    const failure = await world.failure(s.writer({ by: "id", id: 1 }, "t", "value"));
    expect([failure.code, failure.message]).toEqual([
      "registry.schema_invalid",
      "schema 1 is of the format json, the topic t is configured as avro",
    ]);
  });

  test("a reader's schema is the table's and goes along with every writer's", async () => {
    const server = world.server();
    server.store.add("t-value", avro('"int"'));
    const reader_schema = join(folder, "reader.avsc");
    writeFileSync(reader_schema, ORDER);
    const base = { format: "avro", framing: "confluent", registry: { url: [server.url] } };
    const s = sources({
      ...base,
      reader_schema,
      topic: [{ name: "own", reader_schema: join(folder, "none.avsc") }],
    });
    expect(await s.table("t", "value")).toMatchObject({ text: ORDER });
    const reader = { text: ORDER, references: [] };
    expect(await s.writer({ by: "id", id: 1 }, "t", "value")).toMatchObject({
      text: '"int"',
      id: "1",
      reader,
    });
    expect(await s.writer({ by: "default" }, "t", "value")).toMatchObject({ text: '"int"', reader });
    const failure = await world.failure(s.writer({ by: "id", id: 1 }, "own", "value"));
    expect(failure.at).toContain("none.avsc");
  });

  test("a file is the table's schema, and the registry still has the writers'", async () => {
    const server = world.server();
    server.store.add("t-value", avro('"int"'));
    const path = join(folder, "order.avsc");
    writeFileSync(path, ORDER);
    const s = sources({
      format: "avro",
      framing: "confluent",
      schema_file: path,
      registry: { url: [server.url] },
    });
    expect(await s.table("t", "value")).toMatchObject({ text: ORDER, id: path });
    expect(await s.writer({ by: "id", id: 1 }, "t", "value")).toMatchObject({ text: '"int"' });
    expect(server.seen.length).toBe(1);
  });
});

test("a folder in place of a registry", async () => {
  writeFileSync(join(folder, "7.avsc"), '"int"');
  writeFileSync(join(folder, "t-value.avsc"), ORDER);
  const s = sources({ format: "avro", framing: "confluent", schema_dir: folder });
  expect(await s.table("t", "value")).toMatchObject({ text: ORDER });
  expect(await s.writer({ by: "id", id: 7 }, "t", "value")).toMatchObject({ text: '"int"' });
});

test("a file alone: envelopes are taken off, ids are not looked up; one that comes later is read then", async () => {
  const path = join(folder, "late.avsc");
  const s = sources({ format: "avro", framing: "confluent", schema_file: path });
  expect((await world.failure(s.table("t", "value"))).code).toBe("registry.folder");
  writeFileSync(path, ORDER);
  expect(await s.writer({ by: "id", id: 7 }, "t", "value")).toMatchObject({ text: ORDER });
  rmSync(path);
  expect(await s.table("t", "value")).toMatchObject({ text: ORDER });
});

test("JSON without a schema has none; keys that stay bytes have no plan", async () => {
  const s = sources({ format: "json" });
  expect(await s.table("t", "value")).toBeNull();
  expect((await world.failure(s.table("t", "key"))).code).toBe("internal.bug");
});
