/**
 * Goal: a topic that is deleted and made anew, records that are deleted before they are read, and a log that is cut,
 * under a group of several processes: nothing is taken for covered that is not, and what is lost is told with its
 * range. Method: real brokers, two twg processes on one lake.
 */
import { describe, expect, test } from "bun:test";
import { countLanded } from "../../scripts/torture/landed.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { feedAll } from "./feeder.ts";
import { admin, commitsOf, compareWithKafka, createTopic, endsOf, fresh, MAIN } from "./real-kafka.ts";
import { committed, divides, LIMIT, PARTITIONS, served, shared } from "./shared-group.ts";
import { pipeline, stream, type Twg } from "./twg.ts";
import { until } from "./until.ts";

demandBrokers("topics of a group");

const RECORDS = 1_200;
/** The other one finds the new topic by name, and is tried with TWG_ALL_ASSIGNORS=1. */
const PROTOCOLS =
  process.env.TWG_ALL_ASSIGNORS === "1" ? (["consumer", "classic"] as const) : (["consumer"] as const);

async function end(members: readonly Twg[]): Promise<void> {
  for (const m of members) m.kill("SIGTERM");
  for (const m of members) expect((await m.ended()).code).toBe(0);
}

describe.skipIf(MAIN === null)("the topics of a group", () => {
  for (const protocol of PROTOCOLS) {
    test(
      `${protocol}: a topic that comes and matches lands whole, from its first record, shared by two processes`,
      async () => {
        const base = fresh("pattern");
        const source = `group_protocol = "${protocol}"\nsession_timeout_ms = "6s"\nmetadata_refresh_ms = "1s"\nstart = "latest"`;
        const topicsPattern = `${base}[.](a|b)`;
        const p = {
          ...pipeline({ served, topics: [], topicsPattern, group: `g-${base}`, source }),
          group: `g-${base}`,
        };
        await createTopic(served, `${base}.a`, { partitions: PARTITIONS });
        await createTopic(served, `${base}.other`, { partitions: 1 });
        await feedAll(served, `${base}.a`, PARTITIONS, 120);
        const members = [stream(p), stream(p)];
        await divides(members);
        await createTopic(served, `${base}.b`, { partitions: PARTITIONS });
        await feedAll(served, `${base}.b`, PARTITIONS, RECORDS);
        await until("the new topic is landed", async () => (await countLanded(p.lake)).rows === RECORDS);
        await committed({ ...p, topic: `${base}.b` });
        await end(members);
        const compared = await compareWithKafka(served, `${base}.b`, p.lake);
        // Nothing of the first topic: a start at the end leaves out what was there.
        expect([compared.differences, compared.rows]).toEqual([[], RECORDS]);
      },
      LIMIT,
    );
  }

  for (const protocol of PROTOCOLS) {
    test(
      `${protocol}: a topic made anew is read from its start, beside what was landed of the old one`,
      async () => {
        const p = await shared(protocol, 'on_recreated = "new_incarnation"\nmetadata_refresh_ms = "1s"');
        await feedAll(served, p.topic, PARTITIONS, RECORDS);
        const members = [stream(p), stream(p)];
        await divides(members);
        await committed(p);
        await admin(served, "delete", { topic: p.topic });
        await createTopic(served, p.topic, { partitions: PARTITIONS });
        await feedAll(served, p.topic, PARTITIONS, RECORDS);
        await until("the new topic is landed", async () => (await countLanded(p.lake)).rows === 2 * RECORDS);
        await committed(p);
        await end(members);
        const landed = await countLanded(p.lake);
        // Each position of the new topic was one of the old topic too.
        expect([landed.rows, landed.doubled]).toEqual([2 * RECORDS, RECORDS]);
        for (const m of members) expect(m.count("records.lost")).toBe(0);
      },
      LIMIT,
    );
  }

  test(
    "records that were deleted before a member read them are told as lost, exactly, and the rest lands",
    async () => {
      const p = await shared("consumer", 'on_out_of_range = "earliest"');
      await feedAll(served, p.topic, PARTITIONS, RECORDS);
      const first = stream(p);
      await committed(p);
      await end([first]);
      const before = await commitsOf(served, p.topic, p.group);
      await feedAll(served, p.topic, PARTITIONS, RECORDS);
      const gone = Object.fromEntries(Object.entries(before).map(([n, at]) => [n, at + 50]));
      await admin(served, "truncate", { topic: p.topic, before: gone });
      const members = [stream(p), stream(p)];
      await divides(members);
      await committed(p);
      await end(members);
      const lost = members
        .flatMap((m) => m.log.filter((l) => l.event === "records.lost"))
        .map((l) => [l.fields["partition"], Number(l.fields["from"]), Number(l.fields["next"])]);
      expect(lost.sort()).toEqual(
        Object.entries(before)
          .map(([n, at]) => [Number(n), at, at + 50])
          .sort(),
      );
      const landed = await countLanded(p.lake);
      const ends = await endsOf(served, p.topic);
      const all = Object.values(ends).reduce((a, b) => a + b, 0);
      expect([landed.doubled, landed.rows]).toEqual([0, all - PARTITIONS * 50]);
    },
    LIMIT,
  );
});
