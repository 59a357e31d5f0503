/**
 * Goal: one pipeline, several processes and signals: whoever comes second is told who is there, whoever comes after
 * a death goes on at once, and a stop lands everything that was fetched. Method: real processes, real signals.
 */
import { expect, test } from "bun:test";
import { orphansIn } from "../../scripts/torture/orphans.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { feed, feedAll } from "./feeder.ts";
import { commitsOf, compareWithKafka, createTopic, endsOf, fresh, MAIN, type Served } from "./real-kafka.ts";
import { catchUp, type Pipeline, pipeline, stream } from "./twg.ts";
import { until } from "./until.ts";

const LIMIT = 120_000;
const served = MAIN as Served;

demandBrokers("several processes");

async function ready(records: number, sink?: string): Promise<Pipeline & { topic: string; group: string }> {
  const topic = fresh("processes");
  const group = `g-${topic}`;
  await createTopic(served, topic, { partitions: 3 });
  if (records > 0) await feedAll(served, topic, 3, records);
  const p = pipeline({ served, topics: [topic], group, ...(sink === undefined ? {} : { sink }) });
  return { ...p, topic, group };
}

async function allLanded(p: Pipeline & { topic: string; group: string }): Promise<void> {
  await catchUp(p);
  const compared = await compareWithKafka(served, p.topic, p.lake);
  expect(compared.differences).toEqual([]);
  expect(orphansIn(p.lake)).toEqual([]);
  expect(await commitsOf(served, p.topic, p.group)).toEqual(await endsOf(served, p.topic));
}

test.skipIf(MAIN === null)(
  "a second process exits 3 and names the first; after kill -9 of the first a new one goes on at once",
  async () => {
    const p = await ready(20_000);
    const feeder = await feed(served, p.topic, { partitions: 3, rate: 2_000 });
    const first = stream(p);
    await first.saw("set.covered");

    const second = await stream(p).ended();
    expect(second.code).toBe(3);
    expect(second.failure?.code).toBe("coverage.owned");
    expect(second.failure?.line).toContain(String(first.pid));

    first.kill("SIGKILL");
    await first.ended();
    const third = stream(p);
    await third.saw("set.covered");
    await feeder.stop();
    third.kill("SIGTERM");
    expect((await third.ended()).code).toBe(0);
    await allLanded(p);
  },
  LIMIT,
);

// On one machine /proc says for sure whether an owner lives, so no lease runs out: a process that is only stopped
// would write on when it wakes. It must be killed before another takes over.
test.skipIf(MAIN === null)(
  "a process that is stopped (SIGSTOP) still owns the pipeline, and goes on when it wakes",
  async () => {
    const p = await ready(5_000);
    const first = stream(p);
    await first.saw("set.covered");
    first.kill("SIGSTOP");
    await feedAll(served, p.topic, 3, 5_000);
    const second = await stream(p).ended();
    expect([second.code, second.failure?.code]).toEqual([3, "coverage.owned"]);
    expect(second.failure?.line).toContain(String(first.pid));
    const before = first.log.length;
    first.kill("SIGCONT");
    await first.saw("set.covered", () => true, before);
    first.kill("SIGTERM");
    expect((await first.ended()).code).toBe(0);
    await allLanded(p);
  },
  LIMIT,
);

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  test.skipIf(MAIN === null)(
    `${signal} drains: what was fetched lands, commits are where coverage is, exit 0`,
    async () => {
      // Nothing would be closed by itself within the test.
      const p = await ready(30_000, 'roll_interval_ms = "10m"');
      const twg = stream(p);
      // All is fetched once the lanes have read to the end: nothing has been covered by then.
      await until("everything is fetched", async () => {
        const progress = twg.log.some((l) => l.event === "stream.begun");
        return progress && (await staged(p)) > 0;
      });
      await Bun.sleep(1_000);
      expect(twg.count("set.covered")).toBe(0);
      twg.kill(signal);
      const ended = await twg.ended();
      expect([ended.code, ended.failure]).toEqual([0, null]);
      expect(twg.count("set.covered")).toBeGreaterThan(0);
      expect(await commitsOf(served, p.topic, p.group)).toEqual(await endsOf(served, p.topic));
      await allLanded(p);
    },
    LIMIT,
  );
}

async function staged(p: Pipeline): Promise<number> {
  return [...new Bun.Glob("_twg/*/*/staging/*").scanSync({ cwd: p.lake, onlyFiles: true })].length;
}

test.skipIf(MAIN === null)(
  "a second signal ends it at once with exit 1; nothing is lost by that",
  async () => {
    const p = await ready(10_000);
    const twg = stream(p);
    await twg.saw("set.covered");
    twg.kill("SIGSTOP");
    // Both are pending when it wakes, so the second cannot come too late.
    twg.kill("SIGTERM");
    twg.kill("SIGINT");
    twg.kill("SIGCONT");
    const ended = await twg.ended();
    expect(ended.code).toBe(1);
    await allLanded(p);
  },
  LIMIT,
);

test.skipIf(MAIN === null)(
  "a stop right after the start ends in order, whatever it was doing",
  async () => {
    const p = await ready(1_000);
    for (const waitMs of [150, 250, 350, 500]) {
      const twg = stream(p);
      await Bun.sleep(waitMs);
      twg.kill("SIGTERM");
      const { code, signal } = await twg.ended();
      // Before it listens to signals the system ends it; from then on it drains.
      expect([0, "SIGTERM"]).toContain(code ?? signal ?? "nothing");
    }
    await allLanded(p);
  },
  LIMIT,
);

test.skipIf(MAIN === null)(
  'start = "latest": what comes after the first start lands, also if it is killed before anything was covered',
  async () => {
    const topic = fresh("latest");
    await createTopic(served, topic, { partitions: 2 });
    await feedAll(served, topic, 2, 1_000);
    const begin = await endsOf(served, topic);
    const spec = { served, topics: [topic], group: `g-${topic}`, source: 'start = "latest"' };
    const slow = pipeline({ ...spec, sink: 'roll_interval_ms = "10m"' });
    const twg = stream(slow);
    await twg.saw("stream.begun", (l) => l.fields.partition === 1);
    await feedAll(served, topic, 2, 1_000);
    twg.kill("SIGKILL");
    await twg.ended();
    expect(twg.count("set.covered")).toBe(0);
    await catchUp(pipeline(spec, slow.folder));
    const ends = await endsOf(served, topic);
    const wanted = Object.keys(ends).reduce((n, k) => n + (ends[k] ?? 0) - (begin[k] ?? 0), 0);
    const compared = await compareWithKafka(served, topic, slow.lake);
    expect(compared.rows).toBe(wanted);
  },
  LIMIT,
);
