/**
 * Goal: twg, librdkafka and Kafka's own client are members of one group: they share the partitions, hand them over to
 * each other, and read together every record once, by the positions that they commit. Method: real brokers, a producer
 * throughout; strangers commit what they read and say so, and what twg landed must be all the rest.
 *
 * In CI two protocols are tried, with TWG_ALL_ASSIGNORS=1 all of them.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { dirname, join } from "node:path";
import { countLanded } from "../../scripts/torture/landed.ts";
import { findClientsJar } from "../adapters/kafka/wire/jar.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { feed } from "./feeder.ts";
import { endsOf, MAIN, pythonPath, scriptPath } from "./real-kafka.ts";
import { divides, LIMIT, PARTITIONS, type Shared, served, shared } from "./shared-group.ts";
import { catchUp, pipeline, stream } from "./twg.ts";
import { until } from "./until.ts";

demandBrokers("mixed groups");

const JAVA = "org.apache.kafka.clients.consumer.";
const KINDS = [
  { name: "cooperative-sticky", java: `${JAVA}CooperativeStickyAssignor` },
  { name: "consumer", java: "consumer" },
  ...(process.env.TWG_ALL_ASSIGNORS === "1"
    ? [
        { name: "range", java: `${JAVA}RangeAssignor` },
        { name: "roundrobin", java: `${JAVA}RoundRobinAssignor` },
      ]
    : []),
] as const;

/** Those that the Java client reads without further libraries. */
const CODECS = ["none", "gzip"];

interface Read {
  readonly partition: number;
  readonly from: number;
  readonly next: number;
}

/** A member that is not ours. */
class Stranger {
  readonly read: Read[] = [];
  #isMember = false;
  readonly #process: Bun.Subprocess<"pipe", "pipe", "inherit">;
  readonly #lines: Promise<void>;

  constructor(command: readonly string[]) {
    this.#process = Bun.spawn([...command], { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
    this.#lines = this.#follow();
    started.add(this);
  }

  async #follow(): Promise<void> {
    let partial = "";
    const decoder = new TextDecoder();
    for await (const chunk of this.#process.stdout) {
      const lines = (partial + decoder.decode(chunk, { stream: true })).split("\n");
      partial = lines.pop() ?? "";
      for (const line of lines) this.#took(line);
    }
  }

  #took(line: string): void {
    if (line === "member") this.#isMember = true;
    const found = /^(\d+) (\d+) (\d+)$/.exec(line);
    if (found === null) return;
    const [partition = -1, from = -1, next = -1] = found.slice(1).map(Number);
    this.read.push({ partition, from, next });
  }

  /** Until it has partitions, and has committed something. */
  works(): Promise<true> {
    return until("a stranger reads", () => (this.#isMember && this.read.length > 0) || null);
  }

  async leave(): Promise<void> {
    this.#process.stdin.end();
    await this.#process.exited;
    await this.#lines;
    expect(this.#process.exitCode).toBe(0);
  }

  kill(): void {
    this.#process.kill("SIGKILL");
  }
}

const started = new Set<Stranger>();
afterEach(() => {
  for (const s of started) s.kill();
  started.clear();
});

function librdkafka(p: Shared, name: string): Stranger {
  const classic = { "partition.assignment.strategy": name, "session.timeout.ms": 6_000 };
  const more = name === "consumer" ? { "group.protocol": "consumer" } : classic;
  const bootstrap = served.plain.join(",");
  return new Stranger([
    pythonPath(),
    scriptPath("stranger.py"),
    bootstrap,
    p.topic,
    p.group,
    JSON.stringify(more),
  ]);
}

function java(p: Shared, protocol: string): Stranger {
  const jars = join(dirname(findClientsJar() ?? ""), "*");
  const source = join(import.meta.dir, "java/Stranger.java");
  const options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m"];
  return new Stranger([
    "java",
    ...options,
    "-cp",
    jars,
    source,
    served.plain.join(","),
    p.topic,
    p.group,
    protocol,
  ]);
}

/** Pieces that together must be [0, end), each once. */
function wholeOnce(pieces: readonly Omit<Read, "partition">[], end: number): string[] {
  const problems: string[] = [];
  let at = 0;
  for (const { from, next } of [...pieces].sort((a, b) => a.from - b.from)) {
    if (from !== at)
      problems.push(from > at ? `${at} to ${from} is missing` : `${from} to ${at} is there twice`);
    at = next;
  }
  if (at !== end) problems.push(`ends at ${at}, not ${end}`);
  return problems;
}

test("pieces are joined, and a hole or an overlap is told", () => {
  expect(
    wholeOnce(
      [
        { from: 5, next: 9 },
        { from: 0, next: 5 },
      ],
      9,
    ),
  ).toEqual([]);
  expect(
    wholeOnce(
      [
        { from: 0, next: 4 },
        { from: 5, next: 9 },
      ],
      9,
    ),
  ).toEqual(["4 to 5 is missing"]);
  expect(
    wholeOnce(
      [
        { from: 0, next: 6 },
        { from: 5, next: 9 },
      ],
      9,
    ),
  ).toEqual(["5 to 6 is there twice"]);
});

/** What strangers read and what twg landed, together: each record of the topic once. */
async function readOnce(p: Shared, strangers: readonly Stranger[]): Promise<void> {
  const landed = await countLanded(p.lake);
  expect(landed.doubled).toBe(0);
  const ends = await endsOf(served, p.topic);
  const problems = Object.entries(ends).map(([partition, end]) => {
    const theirs = strangers.flatMap((s) => s.read).filter((r) => r.partition === Number(partition));
    const own = (landed.ranges.get(Number(partition)) ?? []).map(([from, next]) => ({ from, next }));
    return wholeOnce([...theirs, ...own], end);
  });
  expect(problems.flat()).toEqual([]);
  expect(strangers.every((s) => s.read.length > 0)).toBe(true);
}

describe.skipIf(MAIN === null)("members that are not ours", () => {
  for (const { name, java: protocol } of KINDS) {
    test(
      `${name}: twg, librdkafka and Kafka's own client read every record once`,
      async () => {
        const ours = name === "consumer" ? "" : `assignors = ["${name}"]`;
        const p = await shared(name === "consumer" ? "consumer" : "classic", ours);
        const feeder = await feed(served, p.topic, { partitions: PARTITIONS, rate: 600, codecs: CODECS });
        // What strangers committed twg has not landed: that is meant, and has to be said.
        const flags = { more: ["--accept-gap"] };
        const a = stream(p, flags);
        await divides([a]);
        await a.saw("set.covered");
        const strangers = [librdkafka(p, name), java(p, protocol)];
        for (const s of strangers) await s.works();
        await a.saw("set.covered", () => true, a.log.length);
        for (const s of strangers) {
          await s.leave();
          await a.saw("set.covered", () => true, a.log.length);
        }
        await divides([a]);
        await feeder.stop();
        a.kill("SIGTERM");
        expect((await a.ended()).code).toBe(0);
        await catchUp(p, flags);
        await readOnce(p, strangers);
      },
      LIMIT,
    );
  }

  // KIP-429. librdkafka takes no list with both kinds, so the other member is Kafka's own client.
  test(
    "a group goes from eager to cooperative in two rounds of restarts, one member after the other",
    async () => {
      const p = await shared("classic", 'assignors = ["range"]');
      const feeder = await feed(served, p.topic, { partitions: PARTITIONS, rate: 300, codecs: CODECS });
      const flags = { more: ["--accept-gap"] };
      const ours = (assignors: readonly string[]) => {
        const source = `group_protocol = "classic"\nsession_timeout_ms = "6s"\nassignors = ${JSON.stringify(assignors)}`;
        return stream(pipeline({ served, topics: [p.topic], group: p.group, source }, p.folder), flags);
      };
      const theirs = (...names: string[]) => java(p, names.map((n) => `${JAVA}${n}Assignor`).join(","));
      const strangers: Stranger[] = [];
      let a = stream(p, flags);
      await a.saw("set.covered");
      for (const names of [["Range"], ["CooperativeSticky", "Range"], ["CooperativeSticky"]]) {
        const before = strangers.at(-1);
        const next = theirs(...names);
        strangers.push(next);
        await next.works();
        // The earlier one, beside two of other lists for a while.
        await before?.leave();
        if (names.length === 1 && names[0] === "Range") continue;
        a.kill("SIGTERM");
        expect((await a.ended()).code).toBe(0);
        a = ours(names.map((n) => (n === "Range" ? "range" : "cooperative-sticky")));
        await a.saw("set.covered");
      }
      const { log } = a;
      const told = log.filter((l) => l.event === "group.told").map((l) => String(l.fields["text"]));
      expect(told.some((t) => t.includes("(cooperative-sticky)"))).toBe(true);
      await strangers.at(-1)!.leave();
      await divides([a]);
      await feeder.stop();
      a.kill("SIGTERM");
      expect((await a.ended()).code).toBe(0);
      await catchUp(p, flags);
      await readOnce(p, strangers);
    },
    LIMIT,
  );
});
