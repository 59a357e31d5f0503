/**
 * Goal: the values at the edges survive from a real broker to Parquet: nulls beside empties, odd headers, odd
 * timestamps, compacted holes, empty and control batches, open and aborted transactions; and, from the broker of this
 * repository, offsets beyond 2^53 and the old formats. Method: expected rows by hand, or librdkafka's; pyarrow reads.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { buildBatch } from "../brokers/kafka/batch-builder.ts";
import { FakeCluster } from "../brokers/kafka/cluster.ts";
import { legacyMessage, legacyWrapper } from "../brokers/kafka/legacy-builder.ts";
import { listenCluster } from "../brokers/kafka/sockets.ts";
import { batchesOnDisk } from "./batches-on-disk.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { feedAll } from "./feeder.ts";
import { produceRaw } from "./raw-producer.ts";
import {
  CLUSTERS,
  commitsOf,
  compareWithKafka,
  createTopic,
  endsOf,
  fresh,
  python_,
  pythonPath,
  type Served,
  scriptPath,
} from "./real-kafka.ts";
import { catchUp, command, type Pipeline, pipeline, stream, workFolder } from "./twg.ts";
import { until } from "./until.ts";

const LIMIT = 120_000;
/** Of the compacted topic; 200,000 by hand, for a log of many segments and offsets far apart. */
const COMPACTED = Number(process.env.TWG_COMPACTED_RECORDS ?? 400);
const COMPACTED_LIMIT = COMPACTED > 10_000 ? 600_000 : LIMIT;

demandBrokers("edge values");

interface Row {
  readonly partition: number;
  readonly offset: number | string;
  readonly timestamp: number | string | null;
  readonly timestamp_type: string | null;
  /** Hex. */
  readonly key: string | null;
  readonly value: string | null;
  readonly headers: readonly (readonly [string, string | null])[] | null;
  readonly transactional: boolean | null;
  readonly producer_id: number | string | null;
  readonly leader_epoch: number | null;
}

const rowsOf = (p: Pipeline): Promise<Row[]> => python_("rows.py", [p.lake]);
const hex = (text: string): string => Buffer.from(text).toString("hex");

const CODECS = ["none", "gzip", "snappy", "lz4", "zstd"] as const;
const BASE = 1_750_000_000_000;
const MANY = Array.from({ length: 200 }, (_, i) => [`h${i % 7}`, i % 3 === 0 ? null : `v${i}`] as const);
const ODD = Uint8Array.of(0xff, 0x00, 0xfe);
const TWICE = [
  ["a", "1"],
  ["a", null],
  ["a", ""],
  ["", "x"],
  ["a", "1"],
] as const;
const EDGES = [
  { key: null, value: null },
  { key: "", value: "" },
  { key: "k", value: null },
  { key: null, value: "v" },
  { key: "", value: null },
  { key: ODD, value: ODD, headers: [] },
  { key: "h", value: "200 headers", headers: MANY },
  { key: "d", value: "twice", headers: TWICE },
  { key: "t", value: "zero", timestamp: 0n },
  { key: "t", value: "one", timestamp: 1n },
  { key: "t", value: "far", timestamp: 253_402_300_800_000n },
  { key: "big", value: "x".repeat(300_000), timestamp: BigInt(BASE + 123) },
] as const;

/** The rows begin with those of EDGES, the first of them at this offset. */
function edgesAreThere(rows: readonly Row[], first: number): void {
  const seen = rows.slice(0, EDGES.length);
  expect(
    seen.map((r) => [Number(r.offset) - first, r.key, r.value === null ? null : r.value.slice(0, 60)]),
  ).toEqual([
    [0, null, null],
    [1, "", ""],
    [2, hex("k"), null],
    [3, null, hex("v")],
    [4, "", null],
    [5, "ff00fe", "ff00fe"],
    [6, hex("h"), hex("200 headers")],
    [7, hex("d"), hex("twice")],
    [8, hex("t"), hex("zero")],
    [9, hex("t"), hex("one")],
    [10, hex("t"), hex("far")],
    [11, hex("big"), hex("x".repeat(30))],
  ]);
  expect(seen[11]?.value?.length).toBe(600_000);
  const shown = (headers: readonly (readonly [string, string | null])[]) =>
    headers.map(([k, v]) => [hex(k), v === null ? null : hex(v)]);
  expect(seen[0]?.headers).toEqual([]);
  expect(seen[6]?.headers as unknown).toEqual(shown(MANY));
  expect(seen[7]?.headers as unknown).toEqual(shown(TWICE));
  const timestamps = [...Array<number>(8).fill(BASE), 0, 1, 253_402_300_800_000, BASE + 123];
  expect(seen.map((r) => r.timestamp)).toEqual(timestamps);
  expect(new Set(seen.map((r) => r.timestamp_type))).toEqual(new Set(["CreateTime"]));
}

/** All of the log is covered, in one piece. */
async function coveredTo(p: Pipeline, end: string, from = "0"): Promise<void> {
  const shown = await command(["inspect", "coverage", "-c", p.config, "--json"]);
  const { places } = JSON.parse(shown.output) as { places: { streams: { covered: unknown }[] }[] };
  expect(JSON.stringify(places[0]?.streams[0]?.covered)).toContain(`"${from}"`);
  expect(JSON.stringify(places[0]?.streams[0]?.covered)).toContain(`"${end}"`);
}

for (const served of CLUSTERS) {
  describe(`Kafka ${served.version}`, () => {
    const on = async (config: Record<string, string> = {}) => {
      const topic = fresh("edge");
      await createTopic(served, topic, { config });
      const group = `g-${topic}`;
      return { topic, group, p: pipeline({ served, topics: [topic], group }) };
    };

    test(
      "nulls, empties, headers and timestamps, in every codec",
      async () => {
        const { topic, p, group } = await on({ "message.timestamp.after.max.ms": "9223372036854775807" });
        for (const codec of CODECS) {
          const batch = buildBatch({ records: EDGES, codec, baseTimestamp: BigInt(BASE) });
          expect(await produceRaw(served, topic, batch)).toBe("NONE");
        }
        await catchUp(p);
        const rows = await rowsOf(p);
        expect(rows.length).toBe(CODECS.length * EDGES.length);
        for (const i of CODECS.keys()) edgesAreThere(rows.slice(i * EDGES.length), i * EDGES.length);
        expect((await compareWithKafka(served, topic, p.lake)).differences).toEqual([]);
        expect(await commitsOf(served, topic, group)).toEqual({ "0": rows.length });
      },
      LIMIT,
    );

    test(
      "a record above every default limit of a fetch, between small ones",
      async () => {
        const { topic, p } = await on({ "max.message.bytes": "20000000" });
        const large = crypto.getRandomValues(Buffer.alloc(65_536));
        const values = ["small", Buffer.concat(Array<Buffer>(150).fill(large)), "small again"];
        for (const value of values) {
          const batch = buildBatch({ records: [{ value }], baseTimestamp: 1n });
          expect(await produceRaw(served, topic, batch)).toBe("NONE");
        }
        await catchUp(p);
        const compared = await compareWithKafka(served, topic, p.lake);
        expect(compared.differences).toEqual([]);
        expect(compared.kafka.value_bytes).toBe(150 * 65_536 + "small".length + "small again".length);
      },
      LIMIT,
    );

    test(
      "negative timestamps: refused by the broker, or they land as they are",
      async () => {
        const { topic, p } = await on();
        const records = [
          { value: "none", timestamp: -1n },
          { value: "long ago", timestamp: -86_400_000n },
        ];
        const answers: string[] = [];
        for (const r of records) answers.push(await produceRaw(served, topic, buildBatch({ records: [r] })));
        await catchUp(p);
        const taken = records.filter((_, i) => answers[i] === "NONE");
        expect(answers.filter((a) => a !== "NONE" && a !== "INVALID_TIMESTAMP")).toEqual([]);
        expect((await rowsOf(p)).map((r) => r.timestamp)).toEqual(taken.map((r) => Number(r.timestamp)));
      },
      LIMIT,
    );

    test(
      "a topic with LogAppendTime",
      async () => {
        const { topic, p } = await on({ "message.timestamp.type": "LogAppendTime" });
        const fed = await feedAll(served, topic, 1, 2_000);
        await catchUp(p);
        const compared = await compareWithKafka(served, topic, p.lake);
        expect(compared.differences).toEqual([]);
        expect(compared.rows).toBe(fed.acknowledged);
        expect(new Set((await rowsOf(p)).map((r) => r.timestamp_type))).toEqual(new Set(["LogAppendTime"]));
      },
      LIMIT,
    );

    test(
      "a compacted topic: holes, batches without records, control batches",
      async () => {
        const { topic, p, group } = await on({
          "cleanup.policy": "compact",
          "segment.ms": "100",
          "min.cleanable.dirty.ratio": "0.001",
          "delete.retention.ms": "1",
          "max.compaction.lag.ms": "200",
        });
        const made = await python_<{ end: number; left: number }>("compacted.py", [
          served.plain.join(","),
          topic,
          String(COMPACTED),
        ]);
        const batches = batchesOnDisk(served, topic, 1);
        expect(batches.some((b) => b.count === 0)).toBe(true);
        await catchUp(p);
        const compared = await compareWithKafka(served, topic, p.lake);
        expect(compared.differences).toEqual([]);
        expect(compared.rows).toBeLessThan(made.end / 2);
        // As many as keys, or more: each has its last record still.
        expect(compared.rows).toBeGreaterThanOrEqual(COMPACTED / 10);
        const ends = await endsOf(served, topic);
        expect(await commitsOf(served, topic, group)).toEqual(ends);
        await coveredTo(p, String(ends["0"]));
      },
      COMPACTED_LIMIT,
    );

    test(
      "a transaction that is open: what follows waits; committed it lands, aborted it never does",
      async () => {
        const ended = async (end: "commit" | "abort") => {
          const { topic, p, group } = await on();
          await feedAll(served, topic, 1, 50);
          const transaction = await openTransaction(served, topic, 30);
          await feedAll(served, topic, 1, 20);
          const twg = stream(p);
          await until("what is decided lands", async () => {
            if (!twg.isRunning) throw new Error(twg.output.slice(-3000));
            return (await commitsOf(served, topic, group))["0"] === 50;
          });
          await transaction.end(end);
          const last = (await endsOf(served, topic))["0"] ?? 0;
          await until("all lands", async () => (await commitsOf(served, topic, group))["0"] === last);
          twg.kill("SIGTERM");
          expect((await twg.ended()).code).toBe(0);
          const compared = await compareWithKafka(served, topic, p.lake);
          expect(compared.differences).toEqual([]);
          expect(compared.rows).toBe(end === "commit" ? 100 : 70);
          await coveredTo(p, String(last));
        };
        await Promise.all([ended("commit"), ended("abort")]);
      },
      LIMIT,
    );

    test(
      "a topic that holds nothing but an aborted transaction: no file, yet all of it is covered",
      async () => {
        const { topic, p, group } = await on();
        const transaction = await openTransaction(served, topic, 30);
        await transaction.end("abort");
        await catchUp(p);
        expect(await rowsOf(p)).toEqual([]);
        expect([...new Bun.Glob("**/*.parquet").scanSync({ cwd: p.lake })]).toEqual([]);
        expect(await commitsOf(served, topic, group)).toEqual({ "0": 31 });
        await catchUp(p);
      },
      LIMIT,
    );

    test(
      "a sink below a link, a path with blanks and letters of other scripts, a folder that is not there yet",
      async () => {
        const topic = fresh("path");
        await createTopic(served, topic);
        await feedAll(served, topic, 1, 100);
        const folder = workFolder();
        mkdirSync(join(folder, "real"));
        symlinkSync(join(folder, "real"), join(folder, "link"));
        const lake = join(folder, "link/das Gewässer/湖");
        const path = `${lake}/{pipeline}/{topic}/{partition}/{date}/{hour}`;
        const p = pipeline({ served, topics: [topic], path }, folder);
        await catchUp(p);
        await catchUp(p);
        expect((await compareWithKafka(served, topic, lake)).differences).toEqual([]);
        const [file] = [...new Bun.Glob("e2e/*/0/*/*/*.parquet").scanSync({ cwd: lake })];
        expect(file).toMatch(new RegExp(`^e2e/${topic}/0/\\d{4}-\\d\\d-\\d\\d/\\d\\d/`));
      },
      LIMIT,
    );

    test(
      "an empty topic",
      async () => {
        const { topic, p } = await on();
        await catchUp(p);
        await feedAll(served, topic, 1, 10);
        await catchUp(p);
        expect((await rowsOf(p)).length).toBe(10);
      },
      LIMIT,
    );

    test(
      "two topics of one pipeline, one of them with a name that looks like a path",
      async () => {
        const one = fresh("a.b");
        const other = fresh("_twg");
        for (const t of [one, other]) {
          await createTopic(served, t);
          await feedAll(served, t, 1, 100);
        }
        const p = pipeline({ served, topics: [one, other], group: `g-${one}` });
        await catchUp(p);
        for (const t of [one, other]) {
          expect((await compareWithKafka(served, t, `${p.lake}/${t}`)).differences).toEqual([]);
        }
      },
      LIMIT,
    );
  });
}

async function openTransaction(served: Served, topic: string, records: number) {
  const args = [served.plain.join(","), topic, String(records), "lz4"];
  const child = Bun.spawn([pythonPath(), scriptPath("transaction.py"), ...args], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  let told = "";
  const reading = (async () => {
    for await (const chunk of child.stdout) told += new TextDecoder().decode(chunk);
  })();
  await until("the transaction is open", () => {
    if (child.exitCode !== null) throw new Error("transaction.py ended");
    return told.includes("open");
  });
  return {
    async end(how: "commit" | "abort"): Promise<void> {
      child.stdin.write(`${how}\n`);
      child.stdin.end();
      await reading;
      if ((await child.exited) !== 0) throw new Error(await new Response(child.stderr).text());
    },
  };
}

describe.skipIf(pythonPath() === "")("what no real broker of today holds", () => {
  test(
    "offsets beyond 2^53, up to the last but one of int64",
    async () => {
      const start = 2n ** 53n - 1n;
      const cluster = new FakeCluster({ clock: systemClock });
      const log = cluster.createTopic("far", { partitions: 2, start }).partitions[0]!.log;
      const records = Array.from({ length: 5 }, (_, i) => ({ value: `v${i}` }));
      log.append(buildBatch({ records, baseTimestamp: 1n }), 0);
      const last = 2n ** 63n - 10n;
      const batch = buildBatch({ records, baseTimestamp: 2n, baseOffset: last });
      log.appendRaw(batch, last, last + 5n);
      const listening = listenCluster(cluster);
      const p = pipeline({ served: { plain: listening.bootstrap }, topics: ["far"], group: "g" });
      try {
        await catchUp(p);
        await catchUp(p);
      } finally {
        listening.close();
      }
      const wanted = [start, last].flatMap((base) => [0n, 1n, 2n, 3n, 4n].map((i) => base + i));
      expect((await rowsOf(p)).map((r) => String(r.offset))).toEqual(wanted.map(String));
      expect(cluster.groups.get("g")?.get("far/0")?.offset).toBe(last + 5n);
      await coveredTo(p, String(last + 5n), String(start));
    },
    LIMIT,
  );

  test(
    "message formats 0 and 1, plain and in wrappers",
    async () => {
      const cluster = new FakeCluster({ clock: systemClock });
      const log = cluster.createTopic("old", {}).partitions[0]!.log;
      const bytes = (text: string | null) => (text === null ? null : new TextEncoder().encode(text));
      const message = (offset: bigint, key: string | null, value: string | null) => ({
        offset,
        key: bytes(key),
        value: bytes(value),
        timestamp: 1_000n + offset,
      });
      let at = 0n;
      for (const magic of [0, 1] as const) {
        log.appendRaw(legacyMessage(magic, message(at, null, "plain")), at, at + 1n);
        at += 1n;
        for (const codec of ["gzip", "snappy", "lz4"] as const) {
          const inside = [message(at, "k", null), message(at + 1n, "", ""), message(at + 2n, null, codec)];
          log.appendRaw(legacyWrapper(magic, codec, inside), at, at + 3n);
          at += 3n;
        }
      }
      const listening = listenCluster(cluster);
      const p = pipeline({ served: { plain: listening.bootstrap }, topics: ["old"] });
      try {
        await catchUp(p);
      } finally {
        listening.close();
      }
      const rows = await rowsOf(p);
      expect(rows.map((r) => r.offset)).toEqual(Array.from({ length: 20 }, (_, i) => i));
      for (const [first, magic] of [
        [0, 0],
        [10, 1],
      ] as const) {
        const part = rows.slice(first, first + 10);
        expect(part.map((r) => [r.key, r.value])).toEqual([
          [null, hex("plain")],
          ...["gzip", "snappy", "lz4"].flatMap((codec) => [
            [hex("k"), null],
            ["", ""],
            [null, hex(codec)],
          ]),
        ]);
        expect(part.map((r) => r.timestamp)).toEqual(
          part.map((r) => (magic === 0 ? null : 1_000 + Number(r.offset))),
        );
        expect(new Set(part.map((r) => r.timestamp_type))).toEqual(
          new Set([magic === 0 ? null : "CreateTime"]),
        );
      }
    },
    LIMIT,
  );
});
