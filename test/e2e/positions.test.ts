/**
 * Goal: where a pipeline goes on is never ahead of what is durable: retention, recreated topics, foreign commits,
 * damaged coverage and foreign files each stop it with a code, change nothing, and have a way on. Method: a real
 * broker whose topics are truncated, deleted and committed to behind twg's back.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { countLanded } from "../../scripts/torture/landed.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { feedAll } from "./feeder.ts";
import {
  ALICE,
  admin,
  BOB,
  commitsOf,
  compareWithKafka,
  createTopic,
  fresh,
  killNode,
  MAIN,
  type Offsets,
  pythonPath,
  type Served,
  scriptPath,
  upNodes,
} from "./real-kafka.ts";
import { catchUp, command, type Pipeline, type PipelineSpec, pipeline, stream } from "./twg.ts";
import { until } from "./until.ts";

const LIMIT = 90_000;
const served = MAIN as Served;

demandBrokers("positions");

interface Ready extends Pipeline {
  readonly topic: string;
  readonly group: string;
  readonly spec: PipelineSpec;
}

/** One partition with records, all of them landed. */
async function landed(records: number, more: Partial<PipelineSpec> = {}): Promise<Ready> {
  const topic = fresh("positions");
  const group = `g-${topic}`;
  await createTopic(served, topic);
  const spec = { served, topics: [topic], group, ...more };
  const p = pipeline(spec);
  if (records > 0) {
    await feedAll(served, topic, 1, records);
    await catchUp(p);
  }
  return { ...p, topic, group, spec };
}

/** Same folder, other settings. */
const again = (p: Ready, more: Partial<PipelineSpec>): Pipeline => pipeline({ ...p.spec, ...more }, p.folder);

async function rows(p: Pipeline): Promise<number> {
  const found = await countLanded(p.lake);
  expect(found.doubled).toBe(0);
  return found.rows;
}

const coverageFolder = (p: Pipeline) => join(p.lake, "_twg/e2e/raw/coverage");

function coverageFile(p: Pipeline): string {
  const newest = readdirSync(coverageFolder(p))
    .filter((n) => n.startsWith("coverage-"))
    .sort()
    .at(-1);
  return join(coverageFolder(p), newest ?? "");
}

/** A consumer of librdkafka in the group, as long as it is wanted. */
async function groupMember(topic: string, group: string): Promise<{ leave(): Promise<void> }> {
  const args = [served.plain.join(","), topic, group];
  const child = Bun.spawn([pythonPath(), scriptPath("member.py"), ...args], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await child.stdout.getReader().read();
  if (!new TextDecoder().decode(value).includes("member")) throw new Error("member.py has not joined");
  return {
    async leave() {
      child.stdin.end();
      await child.exited;
    },
  };
}

describe.skipIf(MAIN === null)("positions", () => {
  test(
    "retention overtakes a stopped pipeline: refused, and by policy recorded as lost",
    async () => {
      const p = await landed(1_000);
      await feedAll(served, p.topic, 1, 1_000);
      await admin(served, "truncate", { topic: p.topic, before: { "0": 1_500 } });
      const refused = await stream(p).ended();
      expect([refused.code, refused.failure?.code]).toEqual([1, "delivery.retention_gap"]);
      expect(refused.failure?.line).toContain("[1000, 1500)");
      expect(refused.failure?.line).toContain("on_out_of_range");
      expect(await rows(p)).toBe(1_000);

      const q = again(p, { source: 'on_out_of_range = "earliest"' });
      const ended = await catchUp(q);
      expect(ended.output).toContain("records.lost");
      expect(await rows(q)).toBe(1_500);
      const shown = await command(["inspect", "coverage", "-c", q.config, "--json"]);
      expect(shown.output).toContain("retention");
      // It is remembered: the strict policy has nothing to complain about any more.
      await catchUp(p);
    },
    LIMIT,
  );

  test(
    "retention overtakes a running pipeline that stood still",
    async () => {
      const p = await landed(1_000);
      const twg = stream(p);
      await twg.saw("source.healthy");
      twg.kill("SIGSTOP");
      await feedAll(served, p.topic, 1, 1_000);
      await admin(served, "truncate", { topic: p.topic, before: { "0": 1_500 } });
      twg.kill("SIGCONT");
      const ended = await twg.ended();
      // What was on its way to the process before it stood still may have landed.
      if (ended.code !== null && ended.failure !== null) {
        expect([ended.code, ended.failure.code]).toEqual([1, "kafka.offset_out_of_range"]);
        expect(ended.failure.line).toContain(`${p.topic}/0`);
        expect(ended.failure.line).toContain("on_out_of_range");
      }
      await catchUp(again(p, { source: 'on_out_of_range = "earliest"' }));
      expect(await rows(p)).toBeGreaterThanOrEqual(1_500);
    },
    LIMIT,
  );

  test(
    "a topic deleted and made anew while stopped: refused; as a new incarnation both are kept",
    async () => {
      const p = await landed(300);
      await admin(served, "delete", { topic: p.topic });
      await createTopic(served, p.topic);
      await feedAll(served, p.topic, 1, 200);
      const refused = await stream(p).ended();
      expect([refused.code, refused.failure?.code]).toEqual([1, "kafka.topic_recreated"]);
      expect(refused.failure?.line).toContain("on_recreated");
      expect(await rows(p)).toBe(300);

      const q = again(p, { source: 'on_recreated = "new_incarnation"' });
      await catchUp(q);
      // Offsets 0 to 199 are there twice now, of two topics: their record ids tell them apart.
      expect((await countLanded(q.lake)).rows).toBe(500);
      const offsets = await commitsOf(served, p.topic, p.group);
      expect(offsets).toEqual({ "0": 200 });
      const ended = await catchUp(q);
      expect(ended.output).toContain('"rows":0');
    },
    LIMIT,
  );

  test(
    "a topic deleted and made anew while running: the same, after what was read has landed",
    async () => {
      const p = await landed(0, { source: 'metadata_refresh_ms = "1s"' });
      await feedAll(served, p.topic, 1, 300);
      const twg = stream(p);
      await twg.saw("source.acknowledged");
      await admin(served, "delete", { topic: p.topic });
      await createTopic(served, p.topic);
      await feedAll(served, p.topic, 1, 200);
      const ended = await twg.ended();
      expect([ended.code, ended.failure?.code]).toEqual([1, "kafka.topic_recreated"]);
      expect(twg.count("failure")).toBe(1);
      expect(await rows(p)).toBe(300);

      const q = again(p, { source: 'on_recreated = "new_incarnation"\nmetadata_refresh_ms = "1s"' });
      await catchUp(q);
      expect((await countLanded(q.lake)).rows).toBe(500);
    },
    LIMIT,
  );

  test(
    "a topic made anew while running goes on as a new incarnation where that is allowed",
    async () => {
      const source = 'on_recreated = "new_incarnation"\nmetadata_refresh_ms = "1s"';
      const p = await landed(0, { source });
      await feedAll(served, p.topic, 1, 300);
      const twg = stream(p);
      await twg.saw("source.acknowledged");
      await admin(served, "delete", { topic: p.topic });
      await createTopic(served, p.topic);
      await feedAll(served, p.topic, 1, 400);
      await until("the new topic lands", async () => {
        if (!twg.isRunning) throw new Error(twg.output.slice(-3000));
        return (await countLanded(p.lake)).rows === 700;
      });
      twg.kill("SIGTERM");
      expect((await twg.ended()).code).toBe(0);
      expect(await commitsOf(served, p.topic, p.group)).toEqual({ "0": 400 });
    },
    LIMIT,
  );

  test(
    "made anew, and killed between the first cover and the first commit: the old commit still means nothing",
    async () => {
      const p = await landed(300);
      await admin(served, "delete", { topic: p.topic });
      await createTopic(served, p.topic);
      // As brokers keep it that were not there when the topic went.
      await admin(served, "commit", { topic: p.topic, group: p.group, offsets: { "0": 300 } });
      await feedAll(served, p.topic, 1, 200);
      const q = again(p, { source: 'on_recreated = "new_incarnation"' });
      const killed = await stream(q, { environment: { TWG_CRASH_AT: "before_acknowledge:1" } }).ended();
      expect(killed.signal).toBe("SIGKILL");
      expect((await commitsOf(served, p.topic, p.group))["0"]).toBe(300);
      await catchUp(q);
      expect((await countLanded(q.lake)).rows).toBe(500);
      expect((await commitsOf(served, p.topic, p.group))["0"]).toBe(200);
    },
    LIMIT,
  );

  test(
    "until caught up ends where a topic was made anew unread; what was left of the old one is recorded as lost",
    async () => {
      const source = 'on_recreated = "new_incarnation"\nmetadata_refresh_ms = "1s"\nfetch_max_bytes = "1KiB"';
      const p = await landed(0, { source, pipeline: "max_records_per_s = 20" });
      // Batches of their own, or the first fetch would have them all; many, since some are fetched before it is known
      // how many records were in the first.
      for (let i = 0; i < 12; i++) await feedAll(served, p.topic, 1, 100);
      const twg = stream(p, { untilCaughtUp: true });
      await twg.saw("set.covered");
      await admin(served, "delete", { topic: p.topic });
      await createTopic(served, p.topic);
      await feedAll(served, p.topic, 1, 20);
      expect((await twg.ended()).code).toBe(0);
      const lost = twg.log.filter((l) => l.event === "records.lost");
      expect(lost.map((l) => [l.fields.next, l.fields.reason])).toEqual([["1200", "deleted"]]);
      // The new topic was perhaps found before there was anything in it.
      await catchUp(p);
      expect((await countLanded(p.lake)).rows).toBe(Number(lost[0]?.fields.from) + 20);
    },
    LIMIT,
  );

  test(
    "partitions that are added while running are read from their start",
    async () => {
      const p = await landed(0, { source: 'metadata_refresh_ms = "1s"' });
      await feedAll(served, p.topic, 1, 100);
      const twg = stream(p);
      await twg.saw("set.covered");
      await admin(served, "add_partitions", { topic: p.topic, total: 3 });
      await feedAll(served, p.topic, 3, 300);
      await until("all partitions land", async () => (await countLanded(p.lake)).rows === 400);
      twg.kill("SIGTERM");
      expect((await twg.ended()).code).toBe(0);
      expect((await compareWithKafka(served, p.topic, p.lake)).differences).toEqual([]);
    },
    LIMIT,
  );

  test(
    "a commit beyond coverage: refused; --accept-gap goes on and records the gap for ever",
    async () => {
      const p = await landed(1_000);
      await feedAll(served, p.topic, 1, 1_000);
      await admin(served, "commit", { topic: p.topic, group: p.group, offsets: { "0": 1_600 } });
      const refused = await stream(p).ended();
      expect([refused.code, refused.failure?.code]).toEqual([1, "delivery.commit_beyond_coverage"]);
      expect(refused.failure?.line).toContain("[1000, 1600)");
      expect(refused.failure?.line).toContain("--accept-gap");
      expect(await commitsOf(served, p.topic, p.group)).toEqual({ "0": 1_600 });

      const ended = await catchUp(p, { more: ["--accept-gap"] });
      expect(ended.output).toContain("accepted_gap");
      expect(await rows(p)).toBe(1_400);
      await catchUp(p);
      expect(await rows(p)).toBe(1_400);
      const shown = await command(["inspect", "coverage", "-c", p.config, "--json"]);
      expect(shown.output).toContain("accepted_gap");
    },
    LIMIT,
  );

  test(
    "a commit behind coverage: what is covered is skipped, counted and logged, nothing doubles",
    async () => {
      const p = await landed(1_000);
      await admin(served, "commit", { topic: p.topic, group: p.group, offsets: { "0": 100 } });
      await feedAll(served, p.topic, 1, 500);
      const ended = await catchUp(p);
      expect(ended.output).toContain("900 records from 100 up to 1000 are covered already");
      expect(await rows(p)).toBe(1_500);
      expect(await commitsOf(served, p.topic, p.group)).toEqual({ "0": 1_500 });
    },
    LIMIT,
  );

  for (const [name, damage] of [
    ["cut short", (text: string) => text.slice(0, text.length / 2)],
    ["edited by hand", (text: string) => text.replace('"segments"', '"segmnts"')],
    ["empty", () => ""],
  ] as const) {
    test(
      `coverage that is ${name}: refused, and nothing is written`,
      async () => {
        const p = await landed(500);
        const path = coverageFile(p);
        const good = readFileSync(path, "utf8");
        expect(damage(good)).not.toBe(good);
        writeFileSync(path, damage(good));
        await feedAll(served, p.topic, 1, 100);
        const before = readdirSync(p.lake, { recursive: true, encoding: "utf8" }).sort();
        const refused = await stream(p).ended();
        expect([refused.code, refused.failure?.code]).toEqual([1, "coverage.corrupt"]);
        expect(refused.failure?.line).toContain(path);
        expect(readdirSync(p.lake, { recursive: true, encoding: "utf8" }).sort()).toEqual(before);
        writeFileSync(path, good);
        await catchUp(p);
        expect(await rows(p)).toBe(600);
      },
      LIMIT,
    );
  }

  test(
    "a foreign file under one of our keys is left alone; once it is gone the set lands",
    async () => {
      const p = await landed(0);
      await feedAll(served, p.topic, 1, 500);
      const twg = stream(p, { environment: { TWG_CRASH_AT: "after_intend:1" } });
      expect((await twg.ended()).signal).toBe("SIGKILL");
      const state = JSON.parse(readFileSync(coverageFile(p), "utf8")) as {
        intents: { targets: { key: string }[] }[];
      };
      const key = state.intents[0]?.targets[0]?.key ?? "";
      const path = join(p.lake, key);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, "not ours");
      const refused = await stream(p).ended();
      expect([refused.code, refused.failure?.code]).toEqual([1, "store.foreign"]);
      expect(refused.failure?.line).toContain(path);
      expect(readFileSync(path, "utf8")).toBe("not ours");
      unlinkSync(path);
      await catchUp(p);
      expect((await compareWithKafka(served, p.topic, p.lake)).differences).toEqual([]);
    },
    LIMIT,
  );

  test(
    "files and folders of others in the sink's path are never touched",
    async () => {
      const p = await landed(100);
      const others = { "notes.txt": "n", "other.parquet": "PAR1", "_twg.old": "x" };
      for (const [name, text] of Object.entries(others)) {
        writeFileSync(join(p.lake, name), text);
        writeFileSync(join(p.lake, p.topic, name), text);
      }
      await feedAll(served, p.topic, 1, 100);
      await catchUp(p);
      for (const [name, text] of Object.entries(others)) {
        expect(readFileSync(join(p.lake, name), "utf8")).toBe(text);
        expect(readFileSync(join(p.lake, p.topic, name), "utf8")).toBe(text);
      }
    },
    LIMIT,
  );

  test.skipIf(MAIN !== null && served.plain.length < 3)(
    "an unclean election cuts what was read: stopped, since other records took those offsets",
    async () => {
      const topic = fresh("unclean");
      await admin(served, "create", {
        topic,
        partitions: 1,
        replicas: 2,
        config: {
          "unclean.leader.election.enable": "true",
          "min.insync.replicas": "1",
          "retention.ms": "-1",
        },
      });
      await feedAll(served, topic, 1, 1_000);
      const p = pipeline({ served, topics: [topic], source: 'metadata_refresh_ms = "1s"' });
      const { "0": first = -1 } = await admin<Offsets>(served, "leaders", { topic });
      const { "0": both = [] } = await admin<Record<string, number[]>>(served, "replicas", { topic });
      const other = both.find((n) => n !== first) ?? -1;
      const twg = stream(p);
      try {
        await killNode(served, other);
        await feedAll(served, topic, 1, 1_000);
        await until("it is read to its end", async () => (await rows(p)) === 2_000);
        await killNode(served, first);
        await upNodes(served, [other]);
        await feedAll(served, topic, 1, 400);
        const ended = await twg.ended();
        expect([ended.code, ended.failure?.code]).toEqual([1, "kafka.truncated"]);
        expect(ended.failure?.line).toContain(`${topic}/0`);
      } finally {
        twg.kill("SIGKILL");
        await upNodes(served, [1, 2, 3]);
      }
      // Nor does a new start go on: the log is shorter than what was read of it.
      const refused = await stream(p).ended();
      expect([refused.code, refused.failure?.code]).toEqual([1, "delivery.position_beyond_log"]);
      expect(await rows(p)).toBe(2_000);
    },
    LIMIT,
  );

  test(
    "a group whose members are others: records land, commits are refused and say why",
    async () => {
      const p = await landed(0);
      await feedAll(served, p.topic, 1, 500);
      const member = await groupMember(p.topic, p.group);
      const twg = stream(p);
      const failed = await twg.saw("source.acknowledge_failed");
      expect(failed.message).toContain(p.group);
      expect(failed.message).toContain("members");
      await until("all landed", async () => (await rows(p)) === 500);
      await member.leave();
      // The next try succeeds once the others are gone.
      await until("it is committed", async () => (await commitsOf(served, p.topic, p.group))["0"] === 500);
      twg.kill("SIGTERM");
      expect((await twg.ended()).code).toBe(0);
    },
    LIMIT,
  );

  test(
    "permission on the topic is taken away while it runs: exit 3, nothing lost; given back it goes on",
    async () => {
      const p = await landed(500, {
        bootstrap: served.sasl,
        source: `sasl = { mechanism = "SCRAM-SHA-256", username = "${ALICE.user}", password = "${ALICE.password}" }
metadata_refresh_ms = "1s"`,
      });
      const twg = stream(p);
      await twg.saw("source.healthy");
      await admin(served, "acl", { kind: "TOPIC", name: p.topic, user: BOB.user });
      const ended = await twg.ended();
      expect([ended.code, ended.failure?.code]).toEqual([3, "kafka.topic_denied"]);
      await admin(served, "no_acls", { kind: "TOPIC", name: p.topic });
      await feedAll(served, p.topic, 1, 500);
      await catchUp(p);
      expect(await rows(p)).toBe(1_000);
    },
    LIMIT,
  );

  test(
    "another cluster at the same address is not taken for the old one",
    async () => {
      const p = await landed(100);
      const path = coverageFile(p);
      // The same as an address that leads elsewhere: coverage knows the topic under another cluster's id.
      const other = "AAAAAAAAAAAAAAAAAAAAAA";
      writeFileSync(path, readFileSync(path, "utf8").replaceAll(served.clusterId, other));
      const q = again(p, { group: fresh("other-group") });
      const ended = await stream(q, { untilCaughtUp: true }).ended();
      // Streams carry the cluster's id: nothing of the new one counts as covered.
      expect(ended.code).toBe(0);
      expect((await countLanded(p.lake)).rows).toBe(200);
    },
    LIMIT,
  );

  test(
    "coverage moved away: refused while the group has commits, since twg cannot know what is there",
    async () => {
      const p = await landed(200);
      renameSync(coverageFolder(p), `${coverageFolder(p)}.away`);
      const refused = await stream(p).ended();
      expect([refused.code, refused.failure?.code]).toEqual([1, "delivery.commit_beyond_coverage"]);
      expect(await rows(p)).toBe(200);
    },
    LIMIT,
  );
});
