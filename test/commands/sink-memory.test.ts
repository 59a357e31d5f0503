/** Goal: what a sink holds is bounded by the budget and told in figures. Method: configurations whose products are known. */
import { expect, test } from "bun:test";
import { loadConfig } from "../../src/commands/config-file.ts";
import { planOf } from "../../src/commands/plan.ts";
import { commitBytesOf, sinkMemory } from "../../src/commands/sink-memory.ts";
import { fileWith } from "./fake-cli.ts";

const MIB = 1024 * 1024;

const withSink = (sink: string, pipeline = "") =>
  loadConfig(
    fileWith(`[pipeline]
name = "p"
${pipeline}
[source]
type = "kafka"
bootstrap = ["localhost:9092"]
topics = ["t"]
[[sink]]
name = "raw"
${sink}
`),
  );
const POSTGRES = 'type = "postgres"\nurl = "postgres://u@h/d"\ntable = "t"';

test.each([
  // By default: 32 MiB of budget, 16 MiB a commit.
  ["", "", 2, 16],
  ["", "", 4, 8],
  ['max_bytes = "256MiB"', "", 4, 16],
  ['max_bytes = "256MiB"', 'commit_bytes = "128MiB"', 2, 128],
  ['max_bytes = "256MiB"', 'commit_bytes = "1GiB"', 2, 128],
] as const)("%s %s with %d lanes: each commits at %d MiB", async (pipeline, sink, lanes, each) => {
  const config = await withSink(`${POSTGRES}\n${sink}`, `${pipeline}\nlanes = ${lanes}`);
  if (config.sink.type !== "postgres") throw new Error("another sink");
  expect(commitBytesOf(config.pipeline, config.sink, lanes)).toBe(each * MIB);
  const memory = sinkMemory(config, lanes);
  expect(memory?.bytes).toBe(lanes * each * MIB);
  expect(memory!.bytes).toBeLessThanOrEqual(config.pipeline.max_bytes);
  const plan = new Map(planOf(config, 2));
  expect(plan.get("memory")).toContain(`rows until they are committed: ${lanes * each}MiB`);
  expect(plan.get("raw")).toContain(`each lane commits at ${each}MiB`);
});

test("uploads: three parts for each open file", async () => {
  const config = await withSink(
    'type = "parquet"\npath = "s3://lake/raw"\nmax_open_files = 10\n[sink.s3]\npart_bytes = "16MiB"',
  );
  expect(sinkMemory(config, 2)?.bytes).toBe(2 * 48 * MIB);
  expect(new Map(planOf(config, 2)).get("memory")).toContain("up to 48MiB for each open file");
  expect(sinkMemory(config, 2)?.text).toContain("960MiB where all 2 lanes");
  const plain = await withSink('type = "parquet"\npath = "s3://lake/raw"');
  expect(sinkMemory(plain, 1)?.bytes).toBe(24 * MIB);
});

test("files on this machine's disk keep nothing besides", async () => {
  expect(sinkMemory(await withSink('type = "parquet"\npath = "lake"'), 2)).toBeNull();
});

test("recovery beside live records holds its own share, and a process that only recovers nothing else", async () => {
  const beside =
    'type = "parquet"\npath = "lake"\nrole = "primary_raw"\n[[sink]]\nname = "copy"\ntype = "parquet"\npath = "copy"\nhold_bytes = "32MiB"\n[recovery]\nmax_bytes = "8MiB"';
  const [ingest, both, recovery] = [
    await withSink(beside),
    await withSink(beside, 'role = "both"'),
    await withSink(beside, 'role = "recovery"'),
  ];
  expect(sinkMemory(both, 2)!.bytes - sinkMemory(ingest, 2)!.bytes).toBe(48 * MIB);
  const plans = [ingest, both, recovery].map((c) => new Map(planOf(c, 2)));
  expect(plans.map((p) => p.get("recovery")?.match(/filled by (.*?):/)?.[1])).toEqual([
    "`twg recover`, or a process with role recovery",
    "this process, beside live records, for which it waits while they fall behind",
    "this process, which does not read the source and holds nothing while no sink is behind",
  ]);
  expect(plans[2]?.get("memory")).toContain("48MiB more");
  expect([...(plans[2]?.keys() ?? [])]).toEqual(["source", "memory", "coverage", "copy", "recovery", "http"]);
});
