/**
 * Goal: lanes get schemas and have theirs registered by the control thread, in the registry that their sink names or in
 * that of [decode], and hear of refusals as they are. Method: configurations with a fake registry that real clients take
 * for one; questions go through the same messages as between threads.
 */
import { afterAll, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig, resolveSecrets } from "../../src/commands/config-file.ts";
import {
  AskedSchemas,
  type AskSchema,
  answerSchema,
  type NewSchema,
} from "../../src/commands/lane-schemas.ts";
import type { RowEncode } from "../../src/commands/row-schemas.ts";
import { schemaService } from "../../src/commands/schema-service.ts";
import { RegistryServer } from "../brokers/registry/server.ts";
import { fileWith } from "./fake-cli.ts";

const folder = mkdtempSync(join(tmpdir(), "twg-schemas-"));
writeFileSync(join(folder, "7.avsc"), '{"type":"record","name":"R","fields":[]}');
const [own, shared] = [new RegistryServer(), new RegistryServer()];
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await Promise.all([own.close(), shared.close()]);
});

beforeEach(() => {
  own.seen.length = 0;
  shared.seen.length = 0;
});

const sink = (name: string, encode: string) =>
  `[[sink]]\nname = "${name}"\ntype = "kafka"\nbootstrap = ["b:1"]\ntopic = "${name}"\nreceives = "decoded"\n[sink.encode]\nformat = "avro"\n${encode}\n`;

const CONTEXT = { instance: "i", observer: { emit: () => {} } };

async function asked(decode?: string): Promise<AskedSchemas> {
  const service = schemaService(await configOf(decode), {}, CONTEXT)!;
  const schemas: AskedSchemas = new AskedSchemas(
    (ask: AskSchema) => void answerSchema(ask, service).then((answer) => schemas.answered(answer)),
  );
  return schemas;
}

/** `token`: the secret of all registries. */
async function configOf(
  decode = `[decode.registry]\nurl = ["${shared.url}"]\nattempts = 1\nmissing_grace_ms = 0\n`,
  token: string | null = null,
) {
  const text = `[pipeline]
name = "p"
state_dir = "${folder}"
[source]
type = "kafka"
bootstrap = ["a:1"]
topics = ["t"]
[[sink]]
name = "raw"
type = "parquet"
role = "primary_raw"
path = "${folder}/lake"
[[sink]]
name = "bad"
type = "kafka"
bootstrap = ["b:1"]
topic = "bad"
receives = "rejected"
${sink("mine", `[sink.encode.registry]\nurl = ["${own.url}"]`)}
${sink("theirs", decode.includes("registry") ? "" : `[sink.encode.registry]\nurl = ["${own.url}"]`)}
${sink("there", `register = false\n[sink.encode.registry]\nurl = ["${own.url}"]`)}
[decode]
format = "avro"
framing = "confluent"
${decode}`;
  const secret = token === null ? text : text.replaceAll(/^url = .*$/gm, '$&\ntoken = { secret = "token" }');
  return await resolveSecrets(
    await loadConfig(fileWith(secret)),
    token === null ? {} : { TWG_SECRET_TOKEN: token },
  );
}

const schema = (...fields: string[]) =>
  JSON.stringify({
    type: "record",
    name: "Row",
    fields: fields.map((name) => ({ name, type: ["null", "int"], default: null })),
  });

/** A table of whole numbers, as Avro unless something else is said. */
const table = (
  to: string,
  subject: string,
  columns: string[],
  format: RowEncode["format"] = "avro",
): NewSchema => ({
  sink: to,
  encode: { format, subject, record: "Row" },
  fields: columns.map((name) => ({ name, type: { id: "int", bits: 32, signed: true }, nullable: true })),
});

const code = (p: Promise<unknown>) =>
  p.then(
    (v) => v,
    (e) => e.code,
  );

test("into the registry of the sink, else of [decode], once each", async () => {
  const schemas = await asked();
  const had = await schemas.register(table("mine", "s-value", ["a"]));
  expect(had.text).toBe(schema("a"));
  expect(await schemas.register(table("mine", "s-value", ["a"]))).toEqual(had);
  expect([own.seen.length, shared.seen.length]).toEqual([1, 0]);
  await schemas.register(table("theirs", "s-value", ["a"]));
  expect(shared.store.versions("s-value")?.map((v) => v.schema)).toEqual([schema("a")]);
});

test("with register = false it has to be there", async () => {
  const schemas = await asked();
  for (const format of ["avro", "protobuf", "json_schema"] as const) {
    const wanted = table("there", `known-${format}`, ["x"], format);
    expect(await code(schemas.register(wanted))).toBe("registry.unknown_subject");
    const had = await schemas.register({ ...wanted, sink: "mine" });
    expect(await schemas.register(wanted)).toEqual(had);
    const other = { ...table("there", "", ["y"], format), encode: wanted.encode };
    expect(await code(schemas.register(other))).toBe("registry.unknown_schema");
  }
});

test("each format has its type in the registry, and Protobuf's fields keep their numbers", async () => {
  const schemas = await asked();
  for (const format of ["protobuf", "json_schema"] as const) {
    await schemas.register(table("mine", format, ["a"], format));
    await schemas.register(table("mine", format, ["b", "a"], format));
  }
  const stored = (subject: string) => own.store.versions(subject)!.map((v) => [v.schemaType, v.schema]);
  expect(stored("json_schema").map(([type]) => type)).toEqual(["JSON", "JSON"]);
  expect(stored("protobuf")[1]).toEqual([
    "PROTOBUF",
    'syntax = "proto3";\n\nmessage Row {\n  optional int32 a = 1;\n  optional int32 b = 2;\n}\n',
  ]);
});

test("secrets that were read again are used from the next question on, by sinks as by [decode]", async () => {
  const service = schemaService(await configOf(undefined, "old"), {}, CONTEXT)!;
  let n = 0;
  const ask = async () => {
    await service.register(table("mine", `a-${++n}`, ["a"]));
    await service.register(table("theirs", `b-${n}`, ["a"]));
    await code(service.find("t", { by: "id", id: 1000 + n }, null, "value"));
    return [own, shared].map((r) => r.seen.splice(0).map((q) => q.authorization));
  };
  const by = (token: string) => [[`Bearer ${token}`], [`Bearer ${token}`, `Bearer ${token}`]];
  expect(await ask()).toEqual(by("old"));
  expect(service.renew(await configOf(undefined, "old"))).toBe(false);
  expect(service.renew(await configOf(undefined, "new"))).toBe(true);
  expect(await ask()).toEqual(by("new"));
});

test("what the registry refuses is told as it is", async () => {
  const schemas = await asked();
  const answer = (status: number, error_code: number) => () =>
    Promise.resolve(Response.json({ error_code, message: "no" }, { status }));
  own.script.push(answer(409, 409), answer(422, 42201), answer(401, 401));
  const wanted = table("mine", "refused", ["z"]);
  const codes = [];
  for (let i = 0; i < 3; i++) codes.push(await code(schemas.register(wanted)));
  expect(codes).toEqual(["registry.incompatible", "registry.refused", "registry.denied"]);
  // No verdict is remembered: whoever mends the subject need not start anew.
  expect(await code(schemas.register(wanted))).toMatchObject({ text: schema("z") });
  // A column that the format has no name for is the table's fault, and no registry hears of it.
  const seen = own.seen.length;
  expect(await code(schemas.register(table("mine", "odd", ["a-b"], "protobuf")))).toBe("encode.unsupported");
  expect(own.seen.slice(seen).map((s) => s.method)).toEqual(["GET"]);
});

test("schemas of payloads come from where [decode] says", async () => {
  const schemas = await asked(`schema_dir = "${folder}"\n`);
  expect(await schemas.schema("t", { by: "id", id: 7 }, null, "value")).toMatchObject({
    id: "7",
    format: "avro",
  });
  expect(await code(schemas.schema("t", { by: "id", id: 8 }, null, "value"))).toBe("registry.unknown_schema");
});
