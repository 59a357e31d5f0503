/**
 * Goal: topics of a real broker land in other topics exactly once and as they are, and a pipeline into Kafka starts, stops,
 * is taken over, is killed at every point and is refused as any other. Method: librdkafka reads source and copy, committed
 * records only, and compares them record for record. TWG_E2E_RECORDS sets the size (default 6,000).
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { columnsOf } from "../../src/adapters/kafka/producer/columns.ts";
import { TRANSACTION_POINTS } from "../../src/core/delivery/crash-points.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { realProducer } from "./kafka-producer-parts.ts";
import { ALICE, admin, createTopic, fresh, MAIN, python_, type Served } from "./real-kafka.ts";
import { catchUp, command, type Pipeline, SECRETS, stream, workFolder } from "./twg.ts";
import { until } from "./until.ts";

const RECORDS = Number(process.env.TWG_E2E_RECORDS ?? "6000");
const PARTITIONS = 6;
const LIMIT = 120_000 + RECORDS;

demandBrokers("Kafka into Kafka");

interface Wanted {
  readonly served: Served;
  readonly topic: string;
  readonly pipeline?: string;
  readonly sink?: string;
  readonly source?: string;
  readonly to?: string;
  readonly name?: string;
  /** Of the sink. */
  readonly bootstrap?: readonly string[];
}

function pipeline(w: Wanted, folder = workFolder()): Pipeline {
  const { served, topic, pipeline: more = "", sink = "", source = "", to = "copy.{topic}" } = w;
  mkdirSync(folder, { recursive: true });
  const config = join(folder, "twg.toml");
  writeFileSync(
    config,
    `[pipeline]
name = "${w.name ?? topic}"
state_dir = "${join(folder, "state")}"
${more}
[source]
type = "kafka"
bootstrap = ${JSON.stringify(served.plain)}
topics = ["${topic}"]
group = "g-${topic}"
${source.replaceAll("@folder@", folder)}
[[sink]]
name = "raw"
type = "kafka"
bootstrap = ${JSON.stringify(w.bootstrap ?? served.plain)}
topic = "${to}"
commit_interval_ms = "300ms"
${sink}
[observability]
listen = "off"
`,
  );
  return { folder, lake: "", config };
}

/** The raw sink, beside which the topic is. */
const FILES = `[[sink]]
name = "files"
type = "parquet"
role = "primary_raw"
path = "@folder@/lake"
roll_interval_ms = "300ms"`;

interface Compared {
  readonly records: number;
  readonly copied: number;
  readonly lost: number;
  readonly doubled: number;
  readonly foreign: number;
  readonly differences: readonly string[];
}

async function filled(served: Served, records: number, partitions = PARTITIONS) {
  const topic = fresh("ksink");
  const replicas = Math.min(3, served.plain.length);
  const config = { "min.insync.replicas": String(Math.min(2, replicas)) };
  await createTopic(served, topic, { partitions, config });
  await createTopic(served, `copy.${topic}`, { partitions, config });
  const visible = await more(served, topic, records, partitions);
  return { topic, visible };
}

async function more(
  served: Served,
  topic: string,
  records: number,
  partitions = PARTITIONS,
): Promise<number> {
  const wanted = JSON.stringify({ records, partitions, seed: 12 });
  return (await python_<{ visible: number }>("produce.py", [served.plain.join(","), topic, wanted])).visible;
}

const compare = (served: Served, topic: string, how: "order" | "bag" | "locator") =>
  python_<Compared>("compare_topics.py", [served.plain.join(","), topic, `copy.${topic}`, how]);

const clean = (records: number) => ({
  records,
  copied: records,
  lost: 0,
  doubled: 0,
  foreign: 0,
  differences: [],
});

describe.skipIf(MAIN === null)("Kafka into Kafka", () => {
  const served = MAIN as Served;

  test(
    `${RECORDS} records of mixed kinds land in their order as librdkafka reads them, once`,
    async () => {
      const { topic, visible } = await filled(served, RECORDS);
      // Read in plain text, and written by TLS with a login.
      SECRETS.add(ALICE.password);
      const login = `[sink.tls]\nca = { file = "${served.ca}" }\n[sink.sasl]\nmechanism = "SCRAM-SHA-512"\nusername = "${ALICE.user}"\npassword = "${ALICE.password}"`;
      const sink = `partition = "same"\ncompression = "zstd"\n${login}`;
      const p = pipeline({ served, topic, sink, bootstrap: served.sasltls });
      await catchUp(p);
      expect(await compare(served, topic, "order")).toMatchObject(clean(visible));
      const again = await catchUp(p);
      expect(again.output).toContain("stopped after 0 rows");
      expect(await compare(served, topic, "order")).toMatchObject(clean(visible));
      const inspected = await command(["inspect", "coverage", "-c", p.config, "--json"]);
      const { places } = JSON.parse(inspected.output) as {
        places: { rows: number; streams: { holes: unknown[] }[] }[];
      };
      expect(places.map((x) => [x.rows, x.streams.length])).toEqual([[visible, PARTITIONS]]);
      expect(places[0]?.streams.flatMap((s) => s.holes)).toEqual([]);
    },
    LIMIT,
  );

  test(
    "killed at each point of its transactions, with another number of lanes each time, nothing is lost or doubled",
    async () => {
      const { topic } = await filled(served, 2000);
      const sink = 'metadata = "locator"\ncommit_bytes = "64KiB"';
      let visible = 2000;
      // Those of delivery, which every sink passes: torture.
      for (const [i, point] of TRANSACTION_POINTS.entries()) {
        const p = pipeline({ served, topic, sink, pipeline: `lanes = ${1 + (i % 3)}` });
        const killed = await stream(p, { environment: { TWG_CRASH_AT: `${point}:${1 + (i % 2)}` } }).ended();
        expect([point, killed.signal]).toEqual([point, "SIGKILL"]);
        visible += await more(served, topic, 500);
      }
      await catchUp(pipeline({ served, topic, sink }));
      expect(await compare(served, topic, "locator")).toMatchObject(clean(visible));
    },
    LIMIT,
  );

  test(
    "what a copy beside raw files lacks is filled beside live records, though recovery is killed in the middle of its transactions",
    async () => {
      const { topic } = await filled(served, 1500, 3);
      const p = pipeline({
        ...{ served, topic, sink: 'metadata = "locator"' },
        source: FILES,
      });
      let visible = 1500;
      const killed = await stream(p, { environment: { TWG_CRASH_AT: "raw/before_commit:1" } }).ended();
      expect(killed.signal).toBe("SIGKILL");
      const live = stream(p);
      await live.saw("stream.begun");
      // What the first one had committed or not is the second one's to find out, and then the third one's.
      const before = await command(["recover", "-c", p.config], { TWG_CRASH_AT: "raw/before_commit:1" });
      expect(before.signal).toBe("SIGKILL");
      visible += await more(served, topic, 200, 3);
      const behind = await command(["recover", "-c", p.config], { TWG_CRASH_AT: "raw/commit_answered:1" });
      expect(behind.signal).toBe("SIGKILL");
      live.kill("SIGTERM");
      expect((await live.ended()).code).toBe(0);
      await catchUp(p);
      expect((await command(["recover", "-c", p.config])).code).toBe(0);
      expect(await compare(served, topic, "locator")).toMatchObject(clean(visible));
    },
    LIMIT,
  );

  test(
    "a second process is refused while the first lives, and takes over when it was killed",
    async () => {
      const { topic, visible } = await filled(served, 2000);
      const p = pipeline({ served, topic });
      const first = stream(p);
      await first.saw("set.covered");
      const second = await stream(p).ended();
      expect([second.code, second.failure?.code]).toEqual([3, "coverage.owned"]);
      first.kill("SIGKILL");
      await first.ended();
      await catchUp(p);
      expect(await compare(served, topic, "bag")).toMatchObject(clean(visible));
    },
    LIMIT,
  );

  test(
    "two members of a group share the partitions, and one that is killed leaves its own to the other",
    async () => {
      const { topic, visible } = await filled(served, 2000);
      const source = 'group_protocol = "classic"\nsession_timeout_ms = "6s"';
      const sink = 'metadata = "locator"';
      const [first, second] = [0, 1].map(() => stream(pipeline({ served, topic, source, sink })));
      // Whoever was first may have read everything by now; what counts is that both have partitions.
      await Promise.all([first?.saw("stream.begun"), second?.saw("stream.begun")]);
      first?.kill("SIGKILL");
      await first?.ended();
      const all = visible + (await more(served, topic, 1000));
      await until("all records in the copy", async () => {
        const { copied } = await compare(served, topic, "locator");
        return copied >= all;
      });
      second?.kill("SIGTERM");
      expect((await second?.ended())?.code).toBe(0);
      expect(await compare(served, topic, "locator")).toMatchObject(clean(all));
    },
    LIMIT,
  );

  test(
    "beside Parquet files topics get what the files have, killed in the middle or not",
    async () => {
      const { topic, visible } = await filled(served, 2000);
      const lake = join(workFolder(), "lake");
      const files = `[[sink]]\nname = "files"\ntype = "parquet"\nrole = "primary_raw"\npath = "${lake}"\nroll_interval_ms = "300ms"`;
      const p = pipeline({ served, topic, sink: `metadata = "locator"\nrole = "secondary"\n${files}` });
      await catchUp(p);
      expect(await compare(served, topic, "locator")).toMatchObject(clean(visible));
      const all = visible + (await more(served, topic, 1000));
      const killed = await stream(p, { environment: { TWG_CRASH_AT: "raw/before_commit:1" } }).ended();
      expect(killed.signal).toBe("SIGKILL");
      await catchUp(p);
      // What the files had and the topic had not when twg was killed is a gap; nothing is there twice, and nothing but that.
      const { copied, doubled, foreign, differences } = await compare(served, topic, "locator");
      expect({ doubled, foreign, differences }).toEqual({ doubled: 0, foreign: 0, differences: [] });
      expect(copied).toBeLessThanOrEqual(all);
      expect(copied).toBeGreaterThanOrEqual(visible);
    },
    LIMIT,
  );

  test(
    "what cannot be is refused at the start, each with its code, and nothing is written",
    async () => {
      const { topic } = await filled(served, 100);
      const refused = async (w: Partial<Wanted>) => {
        const ended = await stream(pipeline({ served, topic, ...w }), { untilCaughtUp: true }).ended();
        return [ended.code, ended.failure?.code];
      };
      const name = (n: string) => ({ name: `${topic}-${n}` });
      expect(await refused({ ...name("a"), to: "{topic}" })).toEqual([2, "kafka.sink_is_source"]);
      const compacted = fresh("coverage");
      await createTopic(served, compacted, { partitions: 2, config: { "cleanup.policy": "compact,delete" } });
      expect(await refused({ ...name("f"), sink: `coverage_topic = "${compacted}"` })).toEqual([
        3,
        "kafka.coverage_topic",
      ]);
      expect((await compare(served, topic, "bag")).copied).toBe(0);
    },
    LIMIT,
  );

  test(
    "a record that the topic does not take ends the run with its place; with room for it the next run goes on",
    async () => {
      const topic = fresh("large");
      await createTopic(served, topic, { config: { "max.message.bytes": "3000000" } });
      await createTopic(served, `copy.${topic}`, { config: { "max.message.bytes": "100000" } });
      const { signal } = new AbortController();
      const { producer, close } = await realProducer(served.plain, { maxRecordBytes: 1 << 22 }, signal);
      const values = [100, 200_000, 300].map((n) => ({ value: "x".repeat(n) }));
      await (await producer.send(topic, columnsOf(values), { signal })).done;
      await close();
      const p = pipeline({ served, topic, sink: 'compression = "none"' });
      const ended = await stream(p, { untilCaughtUp: true }).ended();
      expect([ended.code, ended.failure?.code]).toEqual([1, "kafka.record_too_large"]);
      expect(ended.failure?.line).toContain(`${topic}/0@1`);
      expect((await compare(served, topic, "order")).copied).toBe(0);
      await admin(served, "alter", { topic: `copy.${topic}`, config: { "max.message.bytes": "3000000" } });
      await catchUp(p);
      expect(await compare(served, topic, "order")).toMatchObject(clean(3));
    },
    LIMIT,
  );

  test(
    "beside raw files such a record alone is left out: a gap of one, which recovery fills once the topic has room for it",
    async () => {
      const topic = fresh("large");
      await createTopic(served, topic, { config: { "max.message.bytes": "3000000" } });
      await createTopic(served, `copy.${topic}`, { config: { "max.message.bytes": "100000" } });
      const { signal } = new AbortController();
      const { producer, close } = await realProducer(served.plain, { maxRecordBytes: 1 << 22 }, signal);
      const values = [100, 200_000, 300, 400].map((n) => ({ value: "x".repeat(n) }));
      await (await producer.send(topic, columnsOf(values), { signal })).done;
      await close();
      const p = pipeline({ served, topic, sink: 'compression = "none"', source: FILES });
      const live = stream(p);
      const told = await live.saw("sink.rejects_failed");
      expect(JSON.stringify(told)).toContain(`${topic}/0@1`);
      live.kill("SIGTERM");
      expect((await live.ended()).code).toBe(0);
      await catchUp(p);
      expect(await compare(served, topic, "bag")).toMatchObject({
        ...clean(4),
        copied: 3,
        lost: 1,
        differences: expect.anything(),
      });
      const { places } = JSON.parse(
        (await command(["inspect", "coverage", "-c", p.config, "--json"])).output,
      ) as {
        places: { sink: string; gaps?: { ranges: unknown[] }[] }[];
      };
      const gaps = places.find((x) => x.sink === "raw")?.gaps ?? [];
      expect(gaps.flatMap((g) => g.ranges)).toMatchObject([{ from: "1", next: "2" }]);
      await admin(served, "alter", { topic: `copy.${topic}`, config: { "max.message.bytes": "3000000" } });
      expect((await command(["recover", "-c", p.config])).code).toBe(0);
      expect(await compare(served, topic, "bag")).toMatchObject(clean(4));
    },
    LIMIT,
  );

  test(
    "doctor looks at topics, rights and coverage and leaves nothing behind",
    async () => {
      const { topic } = await filled(served, 10);
      const p = pipeline({ served, topic });
      const looked = await command(["doctor", "-c", p.config, "--json"]);
      const { findings } = JSON.parse(looked.output) as {
        findings: { check: string; verdict: string; at: string }[];
      };
      const mine = findings.filter((f) => f.check.startsWith("kafka_sink."));
      expect(mine.map((f) => f.check)).toEqual(
        expect.arrayContaining([
          "kafka_sink.bootstrap",
          "kafka_sink.topic",
          "kafka_sink.coverage",
          "kafka_sink.transactions",
        ]),
      );
      expect(mine.filter((f) => f.verdict === "failed")).toEqual([]);
      expect((await compare(served, topic, "bag")).copied).toBe(0);
    },
    LIMIT,
  );
});
