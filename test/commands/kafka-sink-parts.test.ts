/**
 * Goal: the options of a Kafka sink reach its lanes, secrets that were read again too, and what does not fit is refused.
 * Method: configurations, joined without a broker.
 */
import { expect, test } from "bun:test";
import { checkFile, loadConfig, resolveSecrets } from "../../src/commands/config-file.ts";
import { checkupOf, kafkaSinkParts } from "../../src/commands/kafka-sink-parts.ts";
import { planOf } from "../../src/commands/plan.ts";
import type { SinkContext } from "../../src/commands/sink-parts.ts";
import { fileWith } from "./fake-cli.ts";

const CONTEXT: SinkContext = {
  instance: "i",
  shared: false,
  lanes: 4,
  laneLife: (lane) => `i.0-l${lane}`,
  observer: { emit: () => {} },
  hook: null,
  secondary: null,
};

const text = (sink: string, source = 'type = "kafka"\nbootstrap = ["a:9092"]\ntopics = ["t"]') => `[pipeline]
name = "p"
[source]
${source}
[[sink]]
name = "raw"
type = "kafka"
bootstrap = ["b:9092"]
topic = "copy.{topic}"
${sink}
[sink.sasl]
mechanism = "PLAIN"
username = "u"
password = { secret = "pw" }
`;

async function configured(sink: string, password = "one") {
  const loaded = await loadConfig(fileWith(text(sink)));
  const config = await resolveSecrets(loaded, { TWG_SECRET_PW: password });
  if (config.sink.type !== "kafka") throw new Error("another sink");
  return { loaded, config, sink: config.sink };
}

test("options reach the lane, and the budget bounds its sets", async () => {
  const { config, sink } = await configured('partition = "same"\nmetadata = "locator"\ncompression = "zstd"');
  const parts = kafkaSinkParts(config, sink, CONTEXT);
  const { lane } = parts;
  if (lane.kind !== "kafka") throw new Error("another lane");
  expect(lane.writer).toMatchObject({
    topic: "copy.{topic}",
    samePartition: true,
    coverageTopic: "_twg_coverage.p.raw",
    compression: "zstd",
    headers: { choice: "locator", prefix: "_twg_", pipeline: "p" },
    commitBytes: 8 * 1024 * 1024,
    key: { pipeline: "p", sink: "raw" },
  });
  expect(lane.rollBytes).toBe(lane.writer.commitBytes);
  expect(lane.writer.settings.sasl).toMatchObject({ username: "u", password: "one" });
  expect(checkupOf(config, sink).idPrefix).toBe("twg.p.raw");
  await parts.sweep();
  await parts.coverage.close();
});

test("a password that was read again is in what later lanes get", async () => {
  const { config, sink } = await configured("");
  const parts = kafkaSinkParts(config, sink, CONTEXT);
  expect(parts.renew((await configured("")).config)).toBe(false);
  expect(parts.renew((await configured("", "two")).config)).toBe(true);
  expect(parts.lane.kind === "kafka" && parts.lane.writer.settings.sasl).toMatchObject({ password: "two" });
  await parts.coverage.close();
});

test("explain says where coverage lies and what class of delivery it is", async () => {
  const { loaded } = await configured('partition = "same"');
  const plan = Object.fromEntries(planOf(loaded, 2));
  expect(plan.coverage).toContain("_twg_coverage.p.raw");
  expect(plan.raw).toContain("the partition of the same number");
  expect(plan.delivery).toContain("for readers of committed records");
  expect(plan.memory).toContain("records until they are sent");
});

test("rows of files do not go there", async () => {
  const source = 'type = "files"\npaths = ["/data/*.csv"]';
  const result = await checkFile(fileWith(text("", source)));
  expect(result.ok ? [] : result.problems.map((p) => [p.code, p.path])).toEqual([
    ["config.conflict", "sink[0].type"],
  ]);
});
