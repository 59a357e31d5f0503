/**
 * Goal: processes that share a group land every record once, whoever of them comes, goes, dies or hangs. Method: real
 * brokers, several twg processes on one lake, a producer throughout; at the end the files are compared with the log.
 */
import { describe, expect, test } from "bun:test";
import { demandBrokers } from "./demand-brokers.ts";
import { feed } from "./feeder.ts";
import { MAIN, pythonPath, scriptPath } from "./real-kafka.ts";
import { allLanded, divides, LIMIT, PARTITIONS, reads, served, shared } from "./shared-group.ts";
import { stream } from "./twg.ts";
import { until } from "./until.ts";

demandBrokers("groups");

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
