/**
 * Goal: what doctor says of a real cluster is what a start would meet, and asking leaves no trace there. Method: real
 * brokers with TLS, SCRAM and ACLs set by librdkafka's admin client; one right at a time.
 */
import { describe, expect, test } from "bun:test";
import { demandBrokers } from "./demand-brokers.ts";
import { ALICE, admin, BOB, createTopic, fresh, MAIN, type Served } from "./real-kafka.ts";
import { command, type PipelineSpec, pipeline } from "./twg.ts";

const LIMIT = 60_000;
const served = MAIN as Served;

demandBrokers("doctor");

interface Told {
  readonly exit: number | null;
  /** Of kafka's checks: `check verdict code`. */
  readonly kafka: readonly string[];
}

async function doctor(spec: PipelineSpec): Promise<Told> {
  const p = pipeline(spec);
  const { code, output } = await command(["doctor", "-c", p.config, "--json"]);
  const { findings } = JSON.parse(output) as {
    findings: { check: string; verdict: string; code: string | null }[];
  };
  const kafka = findings.filter((f) => f.check.startsWith("kafka."));
  const words = kafka.map((f) => [f.check.slice("kafka.".length), f.verdict, f.code ?? ""].join(" ").trim());
  return { exit: code, kafka: [...new Set(words)].sort() };
}

const WELL = ["bootstrap ok", "broker ok", "commit ok", "positions ok", "read ok", "topic ok"];

describe.skipIf(MAIN === null)("doctor of a real cluster", () => {
  const login = (user: string, password: string) =>
    `sasl = { mechanism = "SCRAM-SHA-512", username = "${user}", password = "${password}" }`;

  test(
    "TLS and a login: all well, and the group is not there afterwards",
    async () => {
      const topic = fresh("doctor");
      await createTopic(served, topic, { partitions: 2 });
      const source = `${login(ALICE.user, ALICE.password)}\ntls = { ca = { file = "${served.ca}" } }`;
      const group = `g-${topic}`;
      const told = await doctor({ served, topics: [topic], bootstrap: served.sasltls, source, group });
      expect(told).toEqual({ exit: 0, kafka: WELL });
      // RD_KAFKA_OFFSET_INVALID: there is none.
      expect(await admin<unknown>(served, "commits", { group, topic })).toEqual({ "0": -1001, "1": -1001 });
    },
    LIMIT,
  );

  test(
    "a topic that may be described and not read; a group that may be looked at and not committed to",
    async () => {
      const topic = fresh("doctor-acl");
      const group = `g-${topic}`;
      await createTopic(served, topic, { partitions: 1 });
      const spec: PipelineSpec = {
        served,
        topics: [topic],
        bootstrap: served.sasl,
        source: login(ALICE.user, ALICE.password),
        group,
      };
      try {
        await admin(served, "acl", { kind: "TOPIC", name: topic, user: ALICE.user, operation: "DESCRIBE" });
        expect((await doctor(spec)).kafka).toContain("read failed kafka.topic_denied");
        await admin(served, "acl", { kind: "TOPIC", name: topic, user: ALICE.user });
        await admin(served, "acl", { kind: "GROUP", name: group, user: ALICE.user, operation: "DESCRIBE" });
        const told = await doctor(spec);
        expect(told.exit).toBe(3);
        expect(told.kafka).toContain("read ok");
        expect(told.kafka).toContain("commit failed kafka.group_denied");
        await admin(served, "acl", { kind: "GROUP", name: group, user: ALICE.user });
        expect(await doctor(spec)).toEqual({ exit: 0, kafka: WELL });
        await admin(served, "acl", { kind: "TOPIC", name: topic, user: BOB.user });
      } finally {
        await admin(served, "no_acls", { kind: "TOPIC", name: topic });
        await admin(served, "no_acls", { kind: "GROUP", name: group });
      }
    },
    LIMIT,
  );
});
