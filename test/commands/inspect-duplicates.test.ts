/**
 * Goal: operators see since when records are judged by which plan, and what running the configuration does about duplicates.
 * Method: a book that a service wrote, shown by the command; the same configuration explained.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig, resolveSecrets } from "../../src/commands/config-file.ts";
import { dedupService } from "../../src/commands/dedup-service.ts";
import { runInspectDuplicates } from "../../src/commands/inspect-duplicates.ts";
import { offlineSchemas } from "../../src/commands/offline-schemas.ts";
import { planOf } from "../../src/commands/plan.ts";
import type { DecodeSection } from "../../src/core/config/decode-options.ts";
import { asFailure } from "../../src/core/failure/failure.ts";
import { fakeCli } from "./fake-cli.ts";

const folder = mkdtempSync(join(tmpdir(), "twg-inspect-duplicates-"));
afterAll(() => rmSync(folder, { recursive: true }));

const contract = join(folder, "shop.yaml");
writeFileSync(
  contract,
  `apiVersion: v3.1.0
kind: DataContract
id: c
version: 1.0.0
status: active
schema:
  - name: orders
    properties:
      - { name: id, logicalType: integer, primaryKey: true }
`,
);
const file = join(folder, "twg.toml");
writeFileSync(
  file,
  `[pipeline]
name = "p"
lanes = 2
[source]
type = "kafka"
bootstrap = ["k:9092"]
topics = ["orders"]
[decode]
format = "json"
schema_file = "${contract}"
[dedup]
window_records = 500
window_ms = "1m"
[[sink]]
name = "raw"
type = "parquet"
role = "primary_raw"
path = "${join(folder, "raw")}"
[[sink]]
name = "typed"
type = "parquet"
path = "${join(folder, "typed")}"
receives = "decoded"
duplicates = "drop"
[[sink]]
name = "bad"
type = "parquet"
receives = "rejected"
path = "${join(folder, "bad")}"
`,
);

async function shown(json = false): Promise<string> {
  const cli = fakeCli();
  expect(await runInspectDuplicates({ config: file, json }, cli)).toBe(0);
  return cli.stdout();
}

/** A stream begins, as it does live. */
async function begin(stream: string, from: bigint): Promise<void> {
  const config = await resolveSecrets(await loadConfig(file), {});
  const sources = offlineSchemas(config.decode as DecodeSection);
  const schemas = {
    find: (topic: string, ref: { readonly by: "default" }, _: string | null, part: "key" | "value") =>
      sources.writer(ref, topic, part),
    register: () => Promise.reject(new Error("none")),
  };
  await dedupService(config, schemas as never, { instance: "i", live: true })!.epoch(stream, from);
}

test("each partition with its epochs, and which plan is that of now", async () => {
  expect(await shown()).toBe("no record was judged yet\n");
  await begin("kafka/c/orders/0/1", 40n);
  await begin("kafka/c/orders/2/0", 7n);
  expect(await shown()).toMatch(/orders +1 +40 +40 +[0-9a-f]{8}, of now\norders \(incarnation 2\) +0 +7 +7 /);
  writeFileSync(file, readFileSync(file, "utf8").replace("window_records = 500", "window_records = 600"));
  await begin("kafka/c/orders/0/1", 90n);
  const { epochs } = JSON.parse(await shown(true));
  expect(epochs.map((e: Record<string, unknown>) => [e.partition, e.from, e.reach, e.current])).toEqual([
    [1, "40", "40", false],
    [1, "90", "90", true],
    [0, "7", "7", false],
  ]);
});

test("what will happen is said, and asked of no pipeline that keeps them", async () => {
  const plan = new Map(planOf(await loadConfig(file), 4));
  expect(plan.get("duplicates")).toBe(
    "of records with one natural key within 600 positions of a partition, at most 1m apart the first is a row of typed; what a window holds is read from raw when a partition begins, and each of 2 lanes keeps at most 128MiB of keys",
  );
  const other = join(folder, "other.toml");
  writeFileSync(other, readFileSync(file, "utf8").replace('duplicates = "drop"', ""));
  expect(new Map(planOf(await loadConfig(other), 4)).has("duplicates")).toBe(false);
  const refused = await runInspectDuplicates({ config: other, json: false }, fakeCli()).catch(asFailure);
  expect(refused).toMatchObject({ code: "cli.usage" });
});
