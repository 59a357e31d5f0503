// Goal: every example is a configuration that this version runs. Method: validate each file of examples/ and each
// block of the page on security.
import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../src/commands/config-file.ts";
import { explainDecode } from "../../src/commands/explain-decode.ts";

const folder = join(import.meta.dir, "../../examples");
const files = readdirSync(folder).filter((name) => name.endsWith(".toml"));

test("there are examples", () => {
  expect(files).toContain("quickstart.toml");
});

test.each(files)("%s", async (name) => {
  const config = await loadConfig(join(folder, name));
  // A file source has paths, any other topics.
  const { topics, paths } = config.source as { topics?: readonly string[]; paths?: readonly string[] };
  expect(topics ?? paths).toContain(paths === undefined ? "orders" : "in/*.ndjson");
});

test.each(files)("the tables that %s makes are known", async (name) => {
  const config = await loadConfig(join(folder, name));
  const { decode } = config;
  if (decode === null) return;
  // The tests run from the folder that the example says.
  const tables = await explainDecode(decode, ["orders"], config.sink.metadata_prefix);
  const learned = config.decode?.format === "json";
  expect(tables.map((t) => t.note)).toEqual([learned ? "columns come with the records, and stay" : ""]);
});

/** The fenced TOML blocks of a page. */
function blocksOf(page: string): string[] {
  const text = readFileSync(join(import.meta.dir, "../../docs", page), "utf8");
  return [...text.matchAll(/```toml\n([\s\S]*?)```/g)].map((m) => m[1]!);
}

const blocks = blocksOf("security.md");

test("the page on security has an example of each mechanism", () => {
  for (const mechanism of ["SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM"])
    expect(blocks.join("\n")).toContain(`mechanism = "${mechanism}"`);
});

test.each(blocks)("a block of security.md: %s", async (block) => {
  const dir = mkdtempSync(join(tmpdir(), "twg-security-"));
  const file = join(dir, "c.toml");
  const rest = `[pipeline]\nname = "p"\nstate_dir = "${dir}"\n[source]\ntype = "kafka"\nbootstrap = ["k:1"]\ntopics = ["t"]\n`;
  const sink = `[[sink]]\nname = "raw"\ntype = "parquet"\nreceives = "raw"\nrole = "primary_raw"\npath = "${dir}/out/"\n`;
  writeFileSync(file, rest + block + sink);
  await loadConfig(file);
});
