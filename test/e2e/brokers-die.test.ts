/**
 * Goal: brokers that are killed, and elections, while records keep coming and twg itself is killed, cost nothing:
 * nothing lost, nothing doubled. Method: three brokers, min.insync.replicas 2, SIGKILL of leaders in turn; librdkafka
 * counts its acknowledgements, and the files are compared with what it reads at the end.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { orphansIn } from "../../scripts/torture/orphans.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { feed, feedAll } from "./feeder.ts";
import {
  admin,
  CLUSTERS,
  commitsOf,
  compareWithKafka,
  createTopic,
  endsOf,
  fresh,
  killNode,
  type Offsets,
  type Served,
  upNodes,
} from "./real-kafka.ts";
import { catchUp, pipeline, stream, type Twg } from "./twg.ts";
import { until } from "./until.ts";

const LIMIT = 240_000;
const PARTITIONS = 6;
const three = CLUSTERS.filter((c) => c.plain.length >= 3);

demandBrokers("death of brokers");

afterEach(async () => {
  for (const served of three) await upNodes(served, [1, 2, 3]);
});

/** Rows that twg has covered since its start. */
const covered = (t: Twg): number =>
  t.log.filter((l) => l.event === "set.covered").reduce((n, l) => n + Number(l.fields.rows), 0);

async function moreLands(t: Twg, rows: number): Promise<void> {
  const before = covered(t);
  await until(`${rows} more rows from ${t.pid}`, () => {
    if (!t.isRunning) throw new Error(`twg ended:\n${t.output.slice(-3000)}`);
    return covered(t) >= before + rows;
  });
}

const leaderOf = async (served: Served, topic: string, partition: string): Promise<number> =>
  (await admin<Offsets>(served, "leaders", { topic }))[partition] ?? -1;

for (const served of three) {
  describe(`Kafka ${served.version}`, () => {
    test(
      "two leaders killed in turn while records come, and twg with the second of them",
      async () => {
        const topic = fresh("deaths");
        await createTopic(served, topic, {
          partitions: PARTITIONS,
          config: { "min.insync.replicas": "2" },
        });
        const p = pipeline({
          served,
          topics: [topic],
          group: `g-${topic}`,
          source: 'metadata_refresh_ms = "5s"\nrequest_timeout_ms = "5s"',
        });
        const feeder = await feed(served, topic, { partitions: PARTITIONS, rate: 2_000 });
        let twg = stream(p);
        await moreLands(twg, 1_000);

        const first = await leaderOf(served, topic, "0");
        await killNode(served, first);
        await moreLands(twg, 4_000);
        await upNodes(served, [first]);

        const second = await leaderOf(served, topic, "1");
        await killNode(served, second);
        twg.kill("SIGKILL");
        expect((await twg.ended()).signal).toBe("SIGKILL");
        twg = stream(p);
        await moreLands(twg, 4_000);
        await upNodes(served, [second]);

        const fed = await feeder.stop();
        expect(fed.failed).toBe(0);
        twg.kill("SIGTERM");
        expect((await twg.ended()).code).toBe(0);
        await catchUp(p);

        const compared = await compareWithKafka(served, topic, p.lake);
        expect(compared.differences).toEqual([]);
        expect(compared.rows).toBe(fed.acknowledged);
        expect(orphansIn(p.lake)).toEqual([]);
        expect(await commitsOf(served, topic, `g-${topic}`)).toEqual(await endsOf(served, topic));
      },
      LIMIT,
    );

    test(
      "until caught up waits for a partition without a leader, and says which",
      async () => {
        const topic = fresh("leaderless");
        await admin(served, "create", {
          topic,
          partitions: 3,
          replicas: 1,
          config: { "min.insync.replicas": "1", "retention.ms": "-1" },
        });
        await feedAll(served, topic, 3, 300);
        await killNode(served, await leaderOf(served, topic, "1"));
        const p = pipeline({ served, topics: [topic], source: 'connect_timeout_ms = "2s"' });
        const twg = stream(p, { untilCaughtUp: true });
        await moreLands(twg, 200);
        const told = await twg.saw("source.troubled", (l) => l.message.includes("has no leader"));
        expect(told.message).toContain(`${topic}/1`);
        await Bun.sleep(1_000);
        expect(twg.isRunning).toBe(true);
        await upNodes(served, [1, 2, 3]);
        expect((await twg.ended()).code).toBe(0);
        expect((await compareWithKafka(served, topic, p.lake)).differences).toEqual([]);
      },
      LIMIT,
    );

    test(
      "all brokers gone for a while: twg waits, says so, and goes on by itself",
      async () => {
        const topic = fresh("outage");
        await createTopic(served, topic, { partitions: 2 });
        const p = pipeline({
          served,
          topics: [topic],
          group: `g-${topic}`,
          source: 'request_timeout_ms = "5s"\nconnect_timeout_ms = "2s"',
        });
        const before = await feedAll(served, topic, 2, 5_000);
        const twg = stream(p);
        await moreLands(twg, before.acknowledged);
        for (const n of [1, 2, 3]) await killNode(served, n);
        await twg.saw("source.troubled");
        // Longer than connect_timeout_ms: that one is for the start only.
        await Bun.sleep(4_000);
        expect(twg.isRunning).toBe(true);
        await upNodes(served, [1, 2, 3]);
        const after = await feedAll(served, topic, 2, 5_000);
        await moreLands(twg, 1);
        twg.kill("SIGTERM");
        expect((await twg.ended()).code).toBe(0);
        await catchUp(p);
        const compared = await compareWithKafka(served, topic, p.lake);
        expect(compared.differences).toEqual([]);
        expect(compared.rows).toBe(before.acknowledged + after.acknowledged);
      },
      LIMIT,
    );
  });
}
