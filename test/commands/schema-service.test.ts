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
import { AskedSchemas, type AskSchema, answerSchema } from "../../src/commands/lane-schemas.ts";
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

async function asked(decode = `[decode.registry]\nurl = ["${shared.url}"]\nattempts = 1\n`) {
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
  const config = await resolveSecrets(await loadConfig(fileWith(text)), {});
  const service = schemaService(config, {}, { instance: "i", observer: { emit: () => {} } })!;
  const schemas: AskedSchemas = new AskedSchemas(
    (ask: AskSchema) => void answerSchema(ask, service).then((answer) => schemas.answered(answer)),
  );
  return schemas;
}

const schema = (...fields: string[]) =>
  JSON.stringify({
    type: "record",
    name: "Row",
    fields: fields.map((name) => ({ name, type: ["null", "int"], default: null })),
  });

const code = (p: Promise<unknown>) =>
  p.then(
    (v) => v,
    (e) => e.code,
  );

test("into the registry of the sink, else of [decode], once each", async () => {
  const schemas = await asked();
  const id = await schemas.register({ sink: "mine", subject: "s-value", schema: schema("a") });
  expect(await schemas.register({ sink: "mine", subject: "s-value", schema: schema("a") })).toBe(id);
  expect([own.seen.length, shared.seen.length]).toEqual([1, 0]);
  await schemas.register({ sink: "theirs", subject: "s-value", schema: schema("a") });
  expect(shared.store.versions("s-value")?.map((v) => v.schema)).toEqual([schema("a")]);
});

test("with register = false it has to be there", async () => {
  const schemas = await asked();
  const wanted = { sink: "there", subject: "known", schema: schema("x") };
  expect(await code(schemas.register(wanted))).toBe("registry.unknown_subject");
  const id = await schemas.register({ ...wanted, sink: "mine" });
  expect(await schemas.register(wanted)).toBe(id);
  expect(await code(schemas.register({ ...wanted, schema: schema("y") }))).toBe("registry.unknown_schema");
});

test("what the registry refuses is told as it is", async () => {
  const schemas = await asked();
  const answer = (status: number, error_code: number) => () =>
    Promise.resolve(Response.json({ error_code, message: "no" }, { status }));
  own.script.push(answer(409, 409), answer(422, 42201), answer(401, 401));
  const wanted = { sink: "mine", subject: "refused", schema: schema("z") };
  const codes = [];
  for (let i = 0; i < 3; i++) codes.push(await code(schemas.register(wanted)));
  expect(codes).toEqual(["registry.incompatible", "registry.refused", "registry.denied"]);
  // No verdict is remembered: whoever mends the subject need not start anew.
  expect(await code(schemas.register(wanted))).toBeNumber();
});

test("schemas of payloads come from where [decode] says", async () => {
  const schemas = await asked(`schema_dir = "${folder}"\n`);
  expect(await schemas.schema("t", { by: "id", id: 7 }, null, "value")).toMatchObject({
    id: "7",
    format: "avro",
  });
  expect(await code(schemas.schema("t", { by: "id", id: 8 }, null, "value"))).toBe("registry.unknown_schema");
});
