/**
 * Goal: where nobody can say whether an owner lives (another machine, another container), its lease decides; an owner
 * that lost it is fenced and writes nothing more; nothing doubles. Method: twg in PID namespaces of their own, which
 * know as little of each other as two machines; SIGSTOP plays the machine that hangs.
 */
import { describe, expect, test } from "bun:test";
import { orphansIn } from "../../scripts/torture/orphans.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { feed, feedAll } from "./feeder.ts";
import { elsewhere } from "./privileges.ts";
import { compareWithKafka, createTopic, fresh, MAIN, type Served } from "./real-kafka.ts";
import { catchUp, pipeline, stream } from "./twg.ts";

const LIMIT = 120_000;
const served = MAIN as Served;

demandBrokers("fencing");

describe.skipIf(MAIN === null)("two machines", () => {
  test(
    "an owner elsewhere that lives is found out by its beats; one that hangs loses the lease and is fenced",
    async () => {
      const topic = fresh("fencing");
      await createTopic(served, topic, { partitions: 2 });
      await feedAll(served, topic, 2, 1_000);
      const p = pipeline({ served, topics: [topic], group: `g-${topic}` });
      const feeder = await feed(served, topic, { partitions: 2, rate: 500 });
      const first = await elsewhere(p);
      if (first === null) return void (await feeder.stop());
      await first.twg.saw("set.covered");

      const second = await stream(p).ended();
      expect([second.code, second.failure?.code]).toEqual([3, "coverage.owned"]);
      expect(second.output).toContain("coverage.waiting");

      process.kill(first.pid, "SIGSTOP");
      const third = stream(p);
      await third.saw("coverage.waiting");
      await third.saw("set.covered");
      process.kill(first.pid, "SIGCONT");
      const fenced = await first.twg.ended();
      expect([fenced.code, fenced.failure?.code]).toEqual([3, "coverage.fenced"]);
      await third.saw("set.covered", () => true, third.log.length);

      const fed = await feeder.stop();
      third.kill("SIGTERM");
      expect((await third.ended()).code).toBe(0);
      await catchUp(p);
      const compared = await compareWithKafka(served, topic, p.lake);
      expect(compared.differences).toEqual([]);
      expect(compared.rows).toBe(1_000 + fed.acknowledged);
      expect(orphansIn(p.lake)).toEqual([]);
    },
    LIMIT,
  );

  test(
    "two pipelines of different names share a folder and do not see each other",
    async () => {
      const topic = fresh("fencing");
      await createTopic(served, topic, { partitions: 2 });
      const feeder = await feed(served, topic, { partitions: 2, rate: 1_000 });
      const p = pipeline({ served, topics: [topic], group: `g-${topic}` });
      const config = await Bun.file(p.config).text();
      const other = { ...p, config: `${p.config}.other` };
      await Bun.write(
        other.config,
        config.replace('name = "e2e"', 'name = "other"').replace(`g-${topic}`, `o-${topic}`),
      );
      const both = [stream(p), stream(other)];
      for (const t of both) await t.saw("set.covered");
      both[0]?.kill("SIGKILL");
      await both[0]?.ended();
      const fed = await feeder.stop();
      both[1]?.kill("SIGTERM");
      expect((await both[1]?.ended())?.code).toBe(0);
      await catchUp(p);
      await catchUp(other);
      const files = [...new Bun.Glob("**/*.parquet").scanSync({ cwd: p.lake })];
      expect(files.some((f) => f.includes("/other-"))).toBe(true);
      expect(orphansIn(p.lake)).toEqual([]);
      const compared = await compareWithKafka(served, topic, p.lake);
      // Each landed everything.
      expect(compared.rows).toBe(2 * fed.acknowledged);
    },
    LIMIT,
  );
});
