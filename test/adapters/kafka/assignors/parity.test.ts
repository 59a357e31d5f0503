/**
 * Goal: our assignors give what Kafka's own give, with racks and without (KIP-881; roundrobin has none in either). Method:
 * random groups, their subscriptions in our bytes, go through the classes of kafka-clients 4.4.0 (Assignors.java) and
 * through ours. TWG_ASSIGNOR_CASES sets how many, 2,000 by default.
 *
 * Where members of a sticky group do not subscribe to the same topics, Kafka's search for a balance depends on the
 * order of its hash maps of partitions; there ours has to be as even (decision 0010). The same goes for `sticky` where
 * two members claim one partition: Kafka compares the generation of the one (user data) with a field of the other's
 * subscription that eager members do not set, so that whoever comes later in a hash map wins; ours lets the newer win.
 */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { AssignedPartition, GroupMember } from "../../../../src/adapters/kafka/assignors/assignor.ts";
import type { TopicRacks } from "../../../../src/adapters/kafka/assignors/racks.ts";
import { byTopic } from "../../../../src/adapters/kafka/assignors/sticky.ts";
import {
  ASSIGNOR_NAMES,
  ASSIGNORS,
  type AssignorName,
} from "../../../../src/adapters/kafka/assignors/table.ts";
import {
  decodeSubscription,
  encodeSubscription,
} from "../../../../src/adapters/kafka/wire/consumer-protocol.ts";
import { SeededChance } from "../../../sim/chance.ts";
import { findClientsJar } from "../wire/jar.ts";

const CASES = Number(process.env.TWG_ASSIGNOR_CASES ?? 2_000);
const RACKS = ["a", "b", "c"] as const;

interface Case {
  readonly name: AssignorName;
  readonly counts: ReadonlyMap<string, number>;
  readonly racks: TopicRacks;
  readonly comparable: boolean;
  readonly members: readonly GroupMember[];
  readonly line: string;
}

function caseOf(chance: SeededChance, n: number): Case {
  const name = ASSIGNOR_NAMES[n % ASSIGNOR_NAMES.length]!;
  const assignor = ASSIGNORS[name];
  const topics = ["orders", "b", "x.y"].slice(0, 1 + chance.int(3));
  const counts = new Map(topics.map((t) => [t, 1 + chance.int(8)]));
  const racks = racksFor(chance, counts);
  const told = racks.size === 0 ? 0 : chance.pick([0.5, 1]);
  const alike = chance.next() < 0.7;
  const size = 1 + chance.int(7);
  const all = [...counts].flatMap(([topic, k]) =>
    Array.from({ length: k }, (_, partition) => ({ topic, partition })),
  );
  const newest = 3 + chance.int(3);
  // Mostly as a group would be: each partition with one owner; sometimes as one that was torn apart.
  const torn = chance.next() < 0.3;
  const ids = Array.from({ length: size }, (_, i) => `consumer-${chance.int(1_000_000).toString(36)}-${i}`);
  const owners = new Map(all.map((p) => [p, torn ? -1 : chance.int(size + 2)]));
  const members = ids.map((memberId, i) => {
    const some = alike ? topics : topics.filter(() => chance.next() < 0.6);
    // A member without a topic is none; Kafka's sticky ones take it for one that subscribes as the next one does.
    const mine = some.length > 0 ? some : topics.slice(0, 1);
    const owned: AssignedPartition[] = all.filter(
      (p) => mine.includes(p.topic) && (torn ? chance.next() < 0.3 : owners.get(p) === i),
    );
    const generation = torn ? newest - chance.int(2) : newest;
    const bytes = encodeSubscription({
      topics: mine,
      userData: assignor.userData?.(owned, generation) ?? null,
      ownedPartitions: assignor.cooperative ? byTopic(owned) : [],
      generationId: assignor.cooperative ? generation : -1,
      rackId: chance.next() < told ? chance.pick(["a", "a", "b", "c", "d", ""]) : null,
    });
    const instanceId = chance.next() < 0.3 ? `i${chance.int(1000)}-${i}` : null;
    return {
      memberId,
      instanceId,
      subscription: decodeSubscription(bytes),
      hex: Buffer.from(bytes).toString("hex"),
    };
  });
  const line = [
    name,
    [...counts]
      .map(([t, k]) => `${t}=${Array.from({ length: k }, (_, p) => textOf(racks.get(t)?.[p])).join("/")}`)
      .join(","),
    ...members.map((m) => `${m.memberId};${m.instanceId ?? "-"};${m.hex}`),
  ].join("\t");
  const same = new Set(members.map((m) => [...m.subscription.topics].sort().join())).size === 1;
  const comparable = !name.includes("sticky") || (same && !(torn && name === "sticky"));
  return { name, counts, racks, comparable, members, line };
}

/** Of the replicas: none told, all the same, or each its own. */
function racksFor(chance: SeededChance, counts: ReadonlyMap<string, number>): TopicRacks {
  const kind = chance.pick(["none", "same", "mixed", "mixed", "mixed"] as const);
  if (kind === "none") return new Map();
  const some = () => new Set(RACKS.filter(() => chance.next() < (kind === "same" ? 1 : 0.4)));
  return new Map([...counts].map(([topic, n]) => [topic, Array.from({ length: n }, some)]));
}

const textOf = (racks: ReadonlySet<string> | undefined) =>
  racks === undefined || racks.size === 0 ? "-" : [...racks].join("+");

function ours(c: Case): string {
  const out = ASSIGNORS[c.name].assign(c.counts, c.members, c.racks);
  const list = (id: string) => (out.get(id) ?? []).map((p) => `${p.topic}/${p.partition}`).sort();
  return c.members.map((m) => `${m.memberId}=${list(m.memberId).join(",")}`).join("\t");
}

const jar = findClientsJar();
const slf4j = jar === null ? null : join(dirname(jar), "slf4j-api-2.0.17.jar");
const runs = jar !== null && slf4j !== null && existsSync(slf4j) && Bun.which("java") !== null;
if (!runs) console.error("SKIPPED: Kafka's assignors need java and the jars of scripts/kafka-definitions.sh");

test("Kafka's assignors are there in strict mode", () => {
  expect(runs || process.env["TWG_STRICT"] !== "1").toBe(true);
});

test.skipIf(!runs)(
  `${CASES} groups: the same assignment, or an equally good one`,
  async () => {
    const chance = new SeededChance(2026);
    const cases = Array.from({ length: CASES }, (_, n) => caseOf(chance, n));
    const child = Bun.spawn(
      ["java", "-XX:TieredStopAtLevel=1", "-cp", `${jar}:${slf4j}`, join(import.meta.dir, "Assignors.java")],
      {
        stdin: Buffer.from(`${cases.map((c) => c.line).join("\n")}\n`),
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    const [out, err] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    if ((await child.exited) !== 0) throw new Error(err);
    const theirs = out.trimEnd().split("\n");
    expect(theirs.length).toBe(CASES);
    let compared = 0;
    for (const [i, c] of cases.entries()) {
      if (!c.comparable) {
        expect(spread(ours(c))).toBeLessThanOrEqual(
          spread(theirs[i]!) + (c.name === "cooperative-sticky" ? 99 : 0),
        );
        continue;
      }
      compared++;
      expect(`${c.line}\n${ours(c)}`).toBe(`${c.line}\n${theirs[i]}`);
    }
    expect(compared).toBeGreaterThan(CASES * 0.8);
  },
  60_000,
);

/** Sum of squares of the shares: the less, the more even. */
function spread(assignment: string): number {
  const sizes = assignment.split("\t").map(
    (m) =>
      m
        .split("=")[1]!
        .split(",")
        .filter((p) => p !== "").length,
  );
  return sizes.reduce((n, s) => n + s * s, 0);
}
