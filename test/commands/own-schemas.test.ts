/** Goal: learned columns are shown from where the pipeline keeps them. Method: configurations of each place, columns learned there. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkBytes, typed } from "../../src/commands/config-file.ts";
import { objectSinkStores } from "../../src/commands/object-stores.ts";
import { learnedHere, ownSchemas } from "../../src/commands/own-schemas.ts";
import { PinnedSchemas } from "../../src/core/pipeline/pinned-schemas.ts";
import type { VersionedStore } from "../../src/core/ports/versioned-store.ts";

const folder = mkdtempSync(join(tmpdir(), "twg-own-schemas-"));
afterAll(() => rmSync(folder, { recursive: true }));

function configOf(sink: string) {
  const source = `[source]\ntype = "kafka"\nbootstrap = ["k:1"]\ntopics = ["t"]\ngroup = "g"\n`;
  const text = `[pipeline]\nname = "p"\nstate_dir = "${join(folder, "state")}"\n${source}[[sink]]\nname = "raw"\nrole = "primary_raw"\n${sink}\n`;
  const result = checkBytes(new TextEncoder().encode(text), "f.toml");
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return typed(result.config);
}

async function learn(store: VersionedStore): Promise<void> {
  const rules = { maxColumns: 9, plainNames: false, grows: true };
  const pinned = new PinnedSchemas({ store, instance: "i", ...rules, learned: () => {} });
  await pinned.learn("t", [{ name: "a", type: { id: "bool" }, nullable: true }]);
}

test("beside the coverage of files", async () => {
  const config = configOf(`type = "parquet"\npath = "${join(folder, "lake")}/{topic}"`);
  expect(await learnedHere(config)).toEqual(new Map());
  if (config.sink.type !== "parquet") throw new Error(config.sink.type);
  await learn(objectSinkStores("p", config.sink as never, "i", null).schemas);
  expect([...(await learnedHere(config))!.keys()]).toEqual(["t"]);
});

test("in the state folder where the primary sink is a table, and not to be seen from here in a bucket", async () => {
  const config = configOf('type = "postgres"\nurl = { secret = "db" }\ntable = "public.t"');
  await learn(ownSchemas(config.pipeline));
  expect((await learnedHere(config))!.get("t")).toContain('"a"');
  expect(await learnedHere(configOf('type = "parquet"\npath = "s3://lake/raw"'))).toBeNull();
});
