// Goal: every example is a configuration that this version runs. Method: validate each file of examples/.
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { loadConfig } from "../../src/commands/config-file.ts";

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
