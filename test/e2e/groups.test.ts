/**
 * Goal: processes that share a group land every record once, whoever of them comes, goes, dies or hangs. Method: real
 * brokers, several twg processes on one lake, a producer throughout; at the end the files are compared with the log.
 */
import { describe, expect, test } from "bun:test";
import { orphansIn } from "../../scripts/torture/orphans.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { feed } from "./feeder.ts";
import {
  commitsOf,
  compareWithKafka,
  createTopic,
  endsOf,
  fresh,
  MAIN,
  pythonPath,
  type Served,
  scriptPath,
} from "./real-kafka.ts";
import { catchUp, type Pipeline, pipeline, stream, type Twg } from "./twg.ts";
import { until } from "./until.ts";

const LIMIT = 180_000;
const PARTITIONS = 6;
const served = MAIN as Served;

demandBrokers("groups");

interface Shared extends Pipeline {
  readonly topic: string;
  readonly group: string;
}

async function shared(protocol: "classic" | "consumer", more = ""): Promise<Shared> {
  const topic = fresh("groups");
  const group = `g-${topic}`;
  await createTopic(served, topic, { partitions: PARTITIONS });
  const source = `group_protocol = "${protocol}"\nsession_timeout_ms = "6s"\n${more}`;
  return { ...pipeline({ served, topics: [topic], group, source }), topic, group };
}

/** Partitions that a process reads, by its own log. */
function reads(t: Twg): Set<number> {
  const now = new Set<number>();
  for (const line of t.log) {
    const partition = Number(line.fields["partition"]);
    if (line.event === "stream.begun") now.add(partition);
    if (line.event === "stream.ended") now.delete(partition);
  }
  return now;
}

const divided = (members: readonly Twg[]) => {
  const all = members.flatMap((m) => [...reads(m)]);
  return (
    all.length === PARTITIONS && new Set(all).size === PARTITIONS && members.every((m) => reads(m).size > 0)
  );
};

const divides = (members: readonly Twg[]) =>
  until(`${members.length} processes divide the partitions`, () => divided(members) || null);

async function allLanded(p: Shared, records: number): Promise<void> {
  await catchUp(p);
  const compared = await compareWithKafka(served, p.topic, p.lake);
  expect(compared.differences).toEqual([]);
  expect(compared.rows).toBe(records);
  expect(orphansIn(p.lake)).toEqual([]);
  expect(await commitsOf(served, p.topic, p.group)).toEqual(await endsOf(served, p.topic));
}

describe.skipIf(MAIN === null)("several processes in one group", () => {
  for (const protocol of ["classic", "consumer"] as const) {
    test(
      `${protocol}: members come, leave, and are killed; every record lands once`,
      async () => {
        const p = await shared(protocol);
        const feeder = await feed(served, p.topic, { partitions: PARTITIONS, rate: 2_000 });
        const a = stream(p);
        await a.saw("set.covered");
        const b = stream(p);
        await divides([a, b]);
        const c = stream(p);
        await divides([a, b, c]);
        b.kill("SIGTERM");
        expect((await b.ended()).code).toBe(0);
        await divides([a, c]);
        c.kill("SIGKILL");
        await c.ended();
        await divides([a]);
        const fed = await feeder.stop();
        a.kill("SIGTERM");
        expect((await a.ended()).code).toBe(0);
        // Whoever keeps its partitions keeps its open files: nothing was read twice.
        expect(a.log.filter((l) => l.event === "stream.rewound")).toEqual([]);
        await allLanded(p, fed.acknowledged);
      },
      LIMIT,
    );
  }

  for (const protocol of ["classic", "consumer"] as const) {
    test(
      `${protocol}: a member that hangs for longer than its session writes nothing of what others got, and joins again`,
      async () => {
        const p = await shared(protocol);
        const feeder = await feed(served, p.topic, { partitions: PARTITIONS, rate: 2_000 });
        const a = stream(p);
        const b = stream(p);
        await divides([a, b]);
        await b.saw("set.covered");
        b.kill("SIGSTOP");
        await until("a has everything", () => reads(a).size === PARTITIONS || null);
        await a.saw("set.covered", () => true, a.log.length);
        b.kill("SIGCONT");
        await divides([a, b]);
        expect(b.log.some((l) => l.event === "group.told" && l.message.includes("lost"))).toBe(true);
        const fed = await feeder.stop();
        for (const t of [a, b]) t.kill("SIGTERM");
        for (const t of [a, b]) expect((await t.ended()).code).toBe(0);
        await allLanded(p, fed.acknowledged);
      },
      LIMIT,
    );
  }

  test(
    "a librdkafka member takes its share and gives it back; what it did not commit lands all the same",
    async () => {
      const p = await shared("classic", 'assignors = ["range"]');
      const feeder = await feed(served, p.topic, { partitions: PARTITIONS, rate: 1_000 });
      const a = stream(p);
      await divides([a]);
      const stranger = Bun.spawn(
        [pythonPath(), scriptPath("member.py"), served.plain.join(","), p.topic, p.group],
        { stdin: "pipe", stdout: "pipe", stderr: "inherit" },
      );
      await until("a has half", () => reads(a).size === PARTITIONS / 2 || null);
      await a.saw("set.covered", () => true, a.log.length);
      stranger.stdin.end();
      await stranger.exited;
      await divides([a]);
      const fed = await feeder.stop();
      a.kill("SIGTERM");
      expect((await a.ended()).code).toBe(0);
      await allLanded(p, fed.acknowledged);
    },
    LIMIT,
  );
});
