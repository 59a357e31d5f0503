/**
 * Goal: a pipeline does not start with a schema file that nothing can be read by. Method: files that are missing, broken and
 * of another format, for all topics and for one.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkSchemaFiles } from "../../src/commands/schema-file-check.ts";
import { decodeSpec } from "../../src/core/config/decode-options.ts";
import { asFailure } from "../../src/core/failure/failure.ts";

const folder = mkdtempSync(join(tmpdir(), "twg-schema-"));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const told = async (section: object): Promise<string> => {
  try {
    await checkSchemaFiles(decodeSpec.parse(section), "_twg_");
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

test("the file of a single topic is looked at, too", async () => {
  const schema_file = file("d.json", '{"columns":[{"name":"id","type":"int64"}]}');
  const topic = [{ name: "orders", schema_file: file("e.json", "[]") }];
  expect(await told({ format: "json", schema_file, topic })).toStartWith("files.schema");
});
