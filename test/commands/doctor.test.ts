/**
 * Goal: doctor finds what would stop the pipeline, says what to do, leaves nothing, ends in time, prints no secret.
 * Method: the command against the test brokers on real sockets, one fault at a time.
 */
import { afterEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ERROR } from "../../src/adapters/kafka/wire/errors.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { type DoctorOptions, runDoctor } from "../../src/commands/doctor.ts";
import { runCheckups } from "../../src/commands/doctor-run.ts";
import { type Finding, ok } from "../../src/core/ports/doctor.ts";
import { type ClusterOptions, FakeCluster } from "../brokers/kafka/cluster.ts";
import { ManualClock } from "../brokers/kafka/manual-clock.ts";
import { type Listening, listenCluster } from "../brokers/kafka/sockets.ts";
import { fakeCli, fileWith } from "./fake-cli.ts";

const PASSWORD = "hunter2-and-more";
const room = mkdtempSync(join(tmpdir(), "twg-doctor-"));
let listening: Listening | null = null;
afterEach(() => {
  listening?.close();
  listening = null;
});
process.on("exit", () => rmSync(room, { recursive: true, force: true }));

interface Bench {
  readonly cluster: FakeCluster;
  readonly lake: string;
  run(options?: Partial<DoctorOptions>, environment?: Record<string, string>): Promise<Ran>;
}

interface Ran {
  readonly code: number;
  readonly output: string;
  readonly findings: readonly Finding[];
  /** `check verdict` of all, sorted, host and library left out. */
  readonly told: readonly string[];
}

function bench(source = "", options: Partial<ClusterOptions> = {}, topics = 'topics = ["orders"]'): Bench {
  const cluster = new FakeCluster({ clock: systemClock, ...options });
  cluster.createTopic("orders", { partitions: 2 });
  listening = listenCluster(cluster);
  const lake = join(room, `lake-${Math.random().toString(36).slice(2)}`);
  const config = fileWith(`
[pipeline]
name = "orders"
state_dir = "${join(room, "state")}"
[source]
type = "kafka"
bootstrap = ${JSON.stringify(listening.bootstrap)}
${topics}
group = "g"
${source}
[[sink]]
name = "raw"
type = "parquet"
role = "primary_raw"
receives = "raw"
path = "${lake}"
roll_bytes = "1MiB"
`);
  return {
    cluster,
    lake,
    async run(more = {}, environment = {}) {
      const cli = fakeCli(environment);
      const code = await runDoctor({ config, json: true, strict: false, timeout: 20_000, ...more }, cli);
      const output = cli.stdout() + cli.stderr();
      const findings =
        more.json === false ? [] : (JSON.parse(cli.stdout()) as { findings: Finding[] }).findings;
      const told = findings
        .filter((f) => !/^(host|native)\./.test(f.check))
        .map((f) => `${f.check} ${f.verdict}`)
        .sort();
      return { code, output, findings, told };
    },
  };
}

const WELL = [
  "kafka.bootstrap ok",
  "kafka.broker ok",
  "kafka.commit ok",
  "kafka.positions ok",
  "kafka.read ok",
  "kafka.topic ok",
];

test("all well: exit 0, and nothing is left behind", async () => {
  const b = bench();
  const { code, told, findings } = await b.run();
  expect({ code, told }).toEqual({ code: 0, told: WELL });
  expect(findings.some((f) => f.verdict === "failed")).toBeFalse();
  expect(existsSync(b.lake)).toBeFalse();
  expect(b.cluster.groups.size).toBe(0);
  expect(b.cluster.complaints).toEqual([]);
});

test("topics by a pattern: those that match are looked at, none is a warning", async () => {
  const some = await bench("", {}, 'topics_pattern = "ord.*"').run();
  expect({ code: some.code, told: some.told }).toEqual({ code: 0, told: WELL });
  listening?.close();
  const none = await bench("", {}, 'topics_pattern = "x.*"').run();
  expect(none.code).toBe(0);
  expect(none.findings.find((f) => f.check === "kafka.topic")).toMatchObject({
    verdict: "warning",
    at: "x.*",
  });
});

test("for people: a table, and what to do below it", async () => {
  const b = bench();
  b.cluster.topics.clear();
  const { code, output } = await b.run({ json: false });
  expect(code).toBe(3);
  expect(output).toMatch(/^VERDICT +CHECK +AT +SEEN\n/);
  expect(output).toMatch(/failed +kafka\.topic +orders +kafka\.unknown_topic: does not exist/);
  expect(output).toContain("What to do:\n  kafka.topic orders: Check its spelling, or create it.");
  expect(output).toMatch(/\d+ ok, \d+ warnings, 1 failed, 0 skipped\n$/);
});

test("a topic that may be described and not read", async () => {
  const b = bench();
  b.cluster.script.on({
    api: "Fetch",
    times: 100,
    action: {
      do: "edit",
      change: (r) => {
        for (const t of (r as { responses: { partitions: { errorCode: number }[] }[] }).responses)
          for (const p of t.partitions) p.errorCode = ERROR.TOPIC_AUTHORIZATION_FAILED;
        return r;
      },
    },
  });
  const { code, told, findings } = await b.run();
  expect(code).toBe(3);
  expect(told).toEqual(WELL.map((w) => (w === "kafka.read ok" ? "kafka.read failed" : w)));
  const found = findings.find((f) => f.check === "kafka.read");
  expect(found).toMatchObject({ code: "kafka.topic_denied", at: "orders" });
  expect(found?.advice).toContain("Grant READ and DESCRIBE");
});

test("a group that may be looked at and not committed to", async () => {
  const b = bench();
  b.cluster.script.on({
    api: "OffsetCommit",
    times: 100,
    action: {
      do: "edit",
      change: (r) => {
        for (const t of (r as { topics: { partitions: { errorCode: number }[] }[] }).topics)
          for (const p of t.partitions) p.errorCode = ERROR.GROUP_AUTHORIZATION_FAILED;
        return r;
      },
    },
  });
  const { code, findings } = await b.run();
  expect(code).toBe(3);
  expect(findings.find((f) => f.check === "kafka.commit")).toMatchObject({ code: "kafka.group_denied" });
});

const SASL = `[source.sasl]\nmechanism = "SCRAM-SHA-512"\nusername = "twg"\npassword = { secret = "kafka-password" }`;
const USERS = { mechanisms: ["SCRAM-SHA-512"], users: { twg: PASSWORD } } as const;

test("a login is tried, and a wrong password is told without it", async () => {
  const b = bench(SASL, { sasl: USERS });
  const good = await b.run({}, { TWG_SECRET_KAFKA_PASSWORD: PASSWORD });
  expect({ code: good.code, told: good.told }).toEqual({ code: 0, told: [...WELL, "secrets ok"] });
  expect(good.output).not.toContain(PASSWORD);
  const bad = await b.run({}, { TWG_SECRET_KAFKA_PASSWORD: `${PASSWORD}x` });
  expect(bad.code).toBe(3);
  expect(bad.findings.find((f) => f.check === "kafka.bootstrap")?.code).toBe("kafka.auth_failed");
  expect(bad.output).not.toContain(PASSWORD);
});

test("without a secret nobody is asked: exit 2", async () => {
  const b = bench(SASL, { sasl: USERS });
  const { code, told } = await b.run();
  expect({ code, told }).toEqual({ code: 2, told: ["connections skipped", "secrets failed"] });
  expect(b.cluster.trace).toEqual([]);
});

test("one dead bootstrap address is a warning: exit 0, and 1 under --strict", async () => {
  const b = bench("", { brokers: 2 });
  const dead = b.cluster.brokers[1]!;
  b.cluster.kill(dead.id);
  const { code, told } = await b.run();
  expect(code).toBe(0);
  expect(told).toContain("kafka.bootstrap warning");
  expect((await b.run({ strict: true })).code).toBe(1);
});

test("a broker that never answers ends with the time, and what was seen before counts", async () => {
  const b = bench();
  b.cluster.script.on({ api: "FindCoordinator", times: 100, action: { do: "stall" } });
  const { code, told } = await b.run({ timeout: 1500 });
  expect(code).toBe(3);
  expect(told).toContain("kafka.topic ok");
  expect(told).toContain("kafka.finished failed");
});

test("what a checkup reports too late, or throws, is a finding or nothing", async () => {
  const clock = new ManualClock();
  let late: (() => void) | null = null;
  let aborted = false;
  const checkups = [
    {
      name: "slow",
      at: "there",
      run: ({ report, signal }: { report(f: Finding): void; signal: AbortSignal }) =>
        new Promise<void>((resolve) => {
          report(ok("slow.begun", "there", "yes"));
          signal.addEventListener("abort", () => {
            aborted = true;
          });
          late = () => {
            report(ok("slow.late", "there", "yes"));
            resolve();
          };
        }),
    },
    { name: "broken", at: "here", run: () => Promise.reject(new Error("a bug")) },
  ];
  const running = runCheckups(checkups, clock, 1000);
  await new Promise((resolve) => setImmediate(resolve));
  clock.advance(1000);
  // Before anybody has looked at what was found.
  (late as (() => void) | null)?.();
  const findings = await running;
  expect(aborted).toBeTrue();
  expect(findings.map((f) => `${f.check} ${f.verdict} ${f.code}`)).toEqual([
    "slow.begun ok null",
    "slow.finished failed null",
    "broken.finished failed internal.bug",
  ]);
});
