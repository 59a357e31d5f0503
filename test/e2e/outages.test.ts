/**
 * Goal: an outage is waited out: a full disk, a disk that turns read-only, rights that are taken away, a broker that
 * restarts, passwords that change. twg says what is wrong, keeps everything, and goes on by itself; readiness is
 * false meanwhile. Method: real faults made from outside while it runs, and a full comparison at the end.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, renameSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { orphansIn } from "../../scripts/torture/orphans.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { feed, feedAll } from "./feeder.ts";
import { get, ready, untilMetric } from "./http.ts";
import { confinedStream, smallDisk } from "./privileges.ts";
import {
  CLUSTERS,
  commitsOf,
  compareWithKafka,
  createTopic,
  fresh,
  killNode,
  MAIN,
  type Served,
  upNodes,
} from "./real-kafka.ts";
import { catchUp, type PipelineSpec, pipeline, stream, type Twg, workFolder } from "./twg.ts";
import { until } from "./until.ts";

const LIMIT = 180_000;
const served = MAIN as Served;
const MIB = 1024 * 1024;
const LISTEN = 'listen = "127.0.0.1:0"';

demandBrokers("outages");

async function topicWith(records: number, on: Served = served): Promise<string> {
  const topic = fresh("outage");
  await createTopic(on, topic, { partitions: 2 });
  if (records > 0) await feedAll(on, topic, 2, records);
  return topic;
}

async function same(topic: string, lake: string, records: number, on: Served = served): Promise<void> {
  const compared = await compareWithKafka(on, topic, lake);
  expect(compared.differences).toEqual([]);
  expect(compared.rows).toBe(records);
  expect(orphansIn(lake)).toEqual([]);
}

/** It stands still with the sink's failure, and says so everywhere. */
async function sinkIsDown(twg: Twg, code: RegExp): Promise<void> {
  const line = await twg.saw("sink.troubled");
  const failure = line.fields.failure as { code: string; hint: string };
  expect(failure.code).toMatch(code);
  expect(failure.hint).not.toBe("");
  await until("not ready", async () => (await ready(twg)).status === 503);
  const answer = await ready(twg);
  expect(answer.body).toMatch(/^primary_raw: /);
  expect((await get(twg, "/live")).status).toBe(200);
  expect(twg.isRunning).toBe(true);
}

describe.skipIf(MAIN === null)("outages of the sink", () => {
  const disks: { remove(): void }[] = [];
  afterAll(() => {
    for (const d of disks) d.remove();
  });

  function disk(bytes: number) {
    const folder = workFolder();
    const made = smallDisk(folder, bytes);
    if (made === null) return null;
    disks.push(made);
    return { folder, ...made };
  }

  test(
    "a disk that is full: twg waits, and goes on once there is space",
    async () => {
      const d = disk(8 * MIB);
      if (d === null) return;
      const topic = await topicWith(20_000);
      // Everything but a few hundred KB is somebody else's.
      const ballast = join(d.folder, "ballast");
      const free = statfsSync(d.folder);
      writeFileSync(ballast, Buffer.alloc(free.bavail * free.bsize - 256 * 1024));
      const spec = {
        served,
        topics: [topic],
        group: `g-${topic}`,
        path: `${d.folder}/lake/{topic}`,
        observability: LISTEN,
      };
      const p = pipeline({ ...spec, sink: 'roll_interval_ms = "300ms"\ncompression = "none"' });
      const twg = stream(p);
      await sinkIsDown(twg, /^(store|coverage)\.full$/);
      const covered = twg.count("set.covered");
      await Bun.sleep(2_000);
      expect(twg.count("set.covered")).toBe(covered);
      rmSync(ballast);
      await until("ready again", async () => (await ready(twg)).status === 200);
      await twg.saw("sink.recovered");
      await twg.saw("set.covered");
      twg.kill("SIGTERM");
      expect((await twg.ended()).code).toBe(0);
      await catchUp(p);
      await same(topic, join(d.folder, "lake"), 20_000);
    },
    LIMIT,
  );

  test(
    "a disk that is full from the start: refused or waited for, and nothing is lost",
    async () => {
      const d = disk(MIB);
      if (d === null) return;
      const topic = await topicWith(500);
      const ballast = join(d.folder, "ballast");
      const free = statfsSync(d.folder);
      writeFileSync(ballast, Buffer.alloc(free.bavail * free.bsize));
      const p = pipeline({ served, topics: [topic], group: `g-${topic}`, path: `${d.folder}/lake/{topic}` });
      const ended = await stream(p).ended();
      expect(ended.code).toBe(3);
      expect(ended.failure?.code).toMatch(/^(store|coverage)\.full$/);
      rmSync(ballast);
      await catchUp(p);
      await same(topic, join(d.folder, "lake"), 500);
    },
    LIMIT,
  );

  test(
    "a file system that turns read-only, and back",
    async () => {
      const d = disk(64 * MIB);
      if (d === null) return;
      const topic = await topicWith(1_000);
      const spec = {
        served,
        topics: [topic],
        group: `g-${topic}`,
        path: `${d.folder}/lake/{topic}`,
        observability: LISTEN,
      };
      const p = pipeline(spec);
      const twg = stream(p);
      await until("all landed", () => rowsCovered(twg) >= 1_000);
      await until("it is idle", () => tryReadOnly(d));
      await feedAll(served, topic, 2, 1_000);
      await sinkIsDown(twg, /^(store|coverage)\.(read_only|denied)$/);
      d.readOnly(false);
      await until("all landed", () => rowsCovered(twg) >= 2_000);
      expect((await ready(twg)).status).toBe(200);
      twg.kill("SIGTERM");
      expect((await twg.ended()).code).toBe(0);
      await same(topic, join(d.folder, "lake"), 2_000);
      d.readOnly(true);
      const refused = await stream(p).ended();
      expect(refused.code).toBe(3);
      expect(refused.failure?.code).toMatch(/^(store|coverage)\.(read_only|denied)$/);
      d.readOnly(false);
    },
    LIMIT,
  );

  test(
    "rights on the folder that are taken away while it runs, and given back",
    async () => {
      const topic = await topicWith(1_000);
      const p = pipeline({ served, topics: [topic], group: `g-${topic}`, observability: LISTEN });
      const twg = confinedStream(p);
      await until("all landed", () => rowsCovered(twg) >= 1_000);
      const staging = join(p.lake, "_twg/e2e/raw/staging");
      chmodSync(staging, 0o500);
      await feedAll(served, topic, 2, 1_000);
      await sinkIsDown(twg, /^(store|coverage)\.denied$/);
      chmodSync(staging, 0o755);
      await until("all landed", () => rowsCovered(twg) >= 2_000);
      twg.kill("SIGTERM");
      expect((await twg.ended()).code).toBe(0);
      await same(topic, p.lake, 2_000);
    },
    LIMIT,
  );

  test(
    "a stop while the sink is down: exit 1 after drain_ms, and what was read is read again",
    async () => {
      const topic = await topicWith(1_000);
      const p = pipeline({ served, topics: [topic], group: `g-${topic}`, pipeline: 'drain_ms = "3s"' });
      const twg = stream(p);
      await until("all landed", () => rowsCovered(twg) >= 1_000);
      renameSync(join(p.lake, topic), join(p.lake, "away"));
      writeFileSync(join(p.lake, topic), "a file where the folder should be");
      await feedAll(served, topic, 2, 1_000);
      await twg.saw("sink.troubled");
      twg.kill("SIGTERM");
      const ended = await twg.ended();
      expect([ended.code, ended.failure?.code]).toEqual([1, "delivery.drain_timeout"]);
      rmSync(join(p.lake, topic));
      renameSync(join(p.lake, "away"), join(p.lake, topic));
      await catchUp(p);
      await same(topic, p.lake, 2_000);
    },
    LIMIT,
  );

  test(
    "folders that somebody removes while it runs are made again; what was not published yet lands",
    async () => {
      const topic = await topicWith(1_000);
      const p = pipeline({ served, topics: [topic], group: `g-${topic}` });
      const twg = stream(p);
      await until("all landed", () => rowsCovered(twg) >= 1_000);
      rmSync(join(p.lake, "_twg/e2e/raw/staging"), { recursive: true });
      await feedAll(served, topic, 2, 1_000);
      await until("all landed", () => rowsCovered(twg) >= 2_000);
      twg.kill("SIGTERM");
      expect((await twg.ended()).code).toBe(0);
      await same(topic, p.lake, 2_000);
    },
    LIMIT,
  );
});

const covered = (t: Twg): number =>
  t.log.filter((l) => l.event === "set.covered").reduce((n, l) => n + Number(l.fields.rows), 0);

/** Of a process that must be running. */
function rowsCovered(t: Twg): number {
  if (!t.isRunning) throw new Error(`twg ended:\n${t.output.slice(-3000)}`);
  return covered(t);
}

/** The kernel refuses while a file is open for writing. */
function tryReadOnly(d: { readOnly(on: boolean): void }): boolean {
  try {
    d.readOnly(true);
    return true;
  } catch {
    return false;
  }
}

// A cluster of one has nobody to take over, so every restart is an outage. Where there are only larger ones, all
// nodes go (brokers-die.test.ts does that too).
const single = CLUSTERS.find((c) => c.plain.length === 1);

describe.skipIf(MAIN === null)("outages of the source", () => {
  test.skipIf(single === undefined)(
    "a stop while the broker is away: what was fetched lands, exit 0, and the commit is made up for later",
    async () => {
      const on = single as Served;
      const topic = await topicWith(1_000, on);
      const group = `g-${topic}`;
      const spec: PipelineSpec = { served: on, topics: [topic], group, observability: LISTEN };
      const p = pipeline({ ...spec, sink: 'roll_interval_ms = "10m"' });
      const twg = stream(p);
      for (const partition of ["0", "1"]) {
        await untilMetric(twg, "twg_source_position", { topic, partition }, 500);
      }
      await killNode(on, 1);
      await twg.saw("source.troubled");
      twg.kill("SIGTERM");
      expect((await twg.ended()).code).toBe(0);
      expect(covered(twg)).toBe(1_000);
      expect(twg.count("source.acknowledge_failed")).toBeGreaterThan(0);
      await upNodes(on, [1]);
      expect(await commitsOf(on, topic, group)).toEqual({ "0": -1001, "1": -1001 });
      await catchUp(p);
      expect(await commitsOf(on, topic, group)).toEqual({ "0": 500, "1": 500 });
    },
    LIMIT,
  );

  test.skipIf(single === undefined)(
    "the only broker restarts: not ready meanwhile, and it goes on by itself",
    async () => {
      const on = single as Served;
      const topic = await topicWith(1_000, on);
      const spec: PipelineSpec = { served: on, topics: [topic], group: `g-${topic}`, observability: LISTEN };
      const p = pipeline({ ...spec, source: 'request_timeout_ms = "5s"' });
      const feeder = await feed(on, topic, { partitions: 2, rate: 200 });
      const twg = stream(p);
      await until("it is ready", async () => (await ready(twg)).status === 200);
      await until("records land", () => rowsCovered(twg) >= 1_000);
      await killNode(on, 1);
      await until("not ready", async () => (await ready(twg)).status === 503);
      expect((await ready(twg)).body).toMatch(/^source: /);
      expect((await get(twg, "/live")).status).toBe(200);
      expect((await get(twg, "/metrics")).body).toMatch(/^twg_source_up 0$/m);
      await Bun.sleep(10_000);
      await upNodes(on, [1]);
      await until("it is ready", async () => (await ready(twg)).status === 200);
      const before = rowsCovered(twg);
      await until("records land again", () => rowsCovered(twg) > before);
      const fed = await feeder.stop();
      expect(fed.failed).toBe(0);
      twg.kill("SIGTERM");
      expect((await twg.ended()).code).toBe(0);
      await catchUp(p);
      await same(topic, p.lake, 1_000 + fed.acknowledged, on);
    },
    LIMIT,
  );
});
