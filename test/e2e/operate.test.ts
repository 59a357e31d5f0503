/**
 * Goal: what operators see is true: probes, lag and other metrics, the log, and that no password shows anywhere; and
 * a password that was rotated is taken over by SIGHUP. Method: a running twg, asked over HTTP and by signals.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { demandBrokers } from "./demand-brokers.ts";
import { feed, feedAll } from "./feeder.ts";
import { get, metric, ready, untilMetric, urlOf } from "./http.ts";
import {
  ALICE,
  admin,
  BOB,
  commitsOf,
  compareWithKafka,
  createTopic,
  endsOf,
  fresh,
  killNode,
  MAIN,
  type Offsets,
  pythonPath,
  type Served,
  upNodes,
} from "./real-kafka.ts";
import { catchUp, command, pipeline, SECRETS, stream, Twg, workFolder } from "./twg.ts";
import { until } from "./until.ts";

const LIMIT = 90_000;
const served = MAIN as Served;
const LISTEN = 'listen = "127.0.0.1:0"';

/** Python's pty module gives a program a terminal. */
const TERMINAL = [pythonPath(), "-c", "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"];

demandBrokers("operation");

async function topicWith(records: number, partitions = 2): Promise<string> {
  const topic = fresh("operate");
  await createTopic(served, topic, { partitions });
  if (records > 0) await feedAll(served, topic, partitions, records);
  return topic;
}

describe.skipIf(MAIN === null)("operation", () => {
  test(
    "probes, metrics and lag while it runs, stands still and drains",
    async () => {
      const topic = await topicWith(2_000);
      const group = `g-${topic}`;
      const p = pipeline({ served, topics: [topic], group, observability: LISTEN });
      const twg = stream(p);
      await until("ready", async () => (await ready(twg)).status === 200);
      for (const partition of ["0", "1"]) await untilMetric(twg, "twg_source_lag", { topic, partition }, 0);
      await untilMetric(twg, "twg_acknowledged_position", { topic, partition: "0" }, 1_000);
      expect(await metric(twg, "twg_source_end_position", { topic, partition: "0" })).toBe(1_000);
      expect(await metric(twg, "twg_sink_records_total", { sink: "raw" })).toBe(2_000);
      expect(await commitsOf(served, topic, group)).toEqual({ "0": 1_000, "1": 1_000 });

      await feedAll(served, topic, 2, 500);
      await untilMetric(twg, "twg_acknowledged_position", { topic, partition: "1" }, 1_250);
      await untilMetric(twg, "twg_source_end_position", { topic, partition: "1" }, 1_250);
      await untilMetric(twg, "twg_bytes_in_flight", { owner: "0" }, 0);
      for (const [name, value] of [
        ["twg_live", 1],
        ["twg_ready", 1],
        ["twg_source_up", 1],
        ["twg_stalled", 0],
        ["twg_telemetry_errors_total", 0],
      ] as const) {
        expect([name, await metric(twg, name)]).toEqual([name, value]);
      }

      const health = await get(twg, "/health");
      expect(health.status).toBe(200);
      expect(JSON.parse(health.body)).toMatchObject({ state: "ok", live: true, ready: true });
      expect((await get(twg, "/live")).status).toBe(200);
      expect(JSON.parse((await get(twg, "/stats")).body)).toMatchObject({ pipeline: "e2e" });
      expect((await get(twg, "/")).body).toContain(topic);
      expect((await get(twg, "/nothing")).status).toBe(404);
      const url = await urlOf(twg);
      expect((await fetch(url, { method: "POST" })).status).toBe(405);

      twg.kill("SIGTERM");
      expect((await twg.ended()).code).toBe(0);
      expect(twg.strays).toEqual([]);
      for (const line of twg.log) {
        expect(Object.keys(line)).toEqual(
          expect.arrayContaining(["ts", "level", "event", "message", "fields"]),
        );
        expect(new Date(line.ts).toISOString()).toBe(line.ts);
      }
    },
    LIMIT,
  );

  test(
    "lag counts what is not durable yet, however much of it was fetched",
    async () => {
      const topic = await topicWith(1_000, 1);
      const p = pipeline({
        served,
        topics: [topic],
        group: `g-${topic}`,
        observability: LISTEN,
        sink: 'roll_interval_ms = "10m"',
      });
      const twg = stream(p);
      await untilMetric(twg, "twg_source_position", { topic, partition: "0" }, 1_000);
      expect(await metric(twg, "twg_source_lag", { topic, partition: "0" })).toBe(1_000);
      expect(await metric(twg, "twg_acknowledged_position", { topic, partition: "0" })).toBe(0);
      twg.kill("SIGTERM");
      expect((await twg.ended()).code).toBe(0);
      expect(await commitsOf(served, topic, `g-${topic}`)).toEqual({ "0": 1_000 });
    },
    LIMIT,
  );

  test(
    "a token guards everything but /live",
    async () => {
      const topic = await topicWith(10, 1);
      const token = "a-token-for-metrics-91";
      SECRETS.add(token);
      const p = pipeline({
        served,
        topics: [topic],
        observability: `${LISTEN}\ntoken = { secret = "http-token" }`,
      });
      const twg = stream(p, { environment: { TWG_SECRET_HTTP_TOKEN: token } });
      const url = await urlOf(twg);
      expect((await fetch(new URL("/live", url))).status).toBe(200);
      expect((await fetch(new URL("/metrics", url))).status).toBe(401);
      const headers = { authorization: `Bearer ${token}` };
      expect((await fetch(new URL("/metrics", url), { headers })).status).toBe(200);
      twg.kill("SIGTERM");
      expect((await twg.ended()).code).toBe(0);
    },
    LIMIT,
  );

  test(
    "a password that was rotated: SIGHUP reads it again, new connections use it, nothing is lost",
    async () => {
      const topic = await topicWith(500);
      const user = fresh("rotating");
      const [first, second] = ["first-password-5d", "second-password-8e"] as const;
      SECRETS.add(first).add(second);
      await admin(served, "scram", { user, password: first });
      const secrets = join(workFolder(), "secrets");
      mkdirSync(secrets);
      writeFileSync(join(secrets, "kafka-password"), `${first}\n`);
      const p = pipeline({
        served,
        topics: [topic],
        group: `g-${topic}`,
        bootstrap: served.sasl,
        observability: LISTEN,
        source: `metadata_refresh_ms = "1s"
sasl = { mechanism = "SCRAM-SHA-512", username = "${user}", password = { secret = "kafka-password" } }`,
        more: `[secrets]\ndir = "${secrets}"`,
      });
      const twg = stream(p);
      await untilMetric(twg, "twg_sink_records_total", { sink: "raw" }, 500);

      await admin(served, "scram", { user, password: second });
      writeFileSync(join(secrets, "kafka-password"), `${second}\n`);
      twg.kill("SIGHUP");
      const reread = await twg.saw("secrets.reread");
      expect(reread.fields).toMatchObject({ secrets: 1, changed: 1 });
      // A broker that restarts makes it connect anew, to every leader that moves.
      const leader = (await admin<Offsets>(served, "leaders", { topic }))["0"] ?? 1;
      await killNode(served, leader);
      await upNodes(served, [leader]);
      await feedAll(served, topic, 2, 500);
      await untilMetric(twg, "twg_sink_records_total", { sink: "raw" }, 1_000);
      twg.kill("SIGTERM");
      expect((await twg.ended()).code).toBe(0);
      // A start uses nothing else, so the new one is right and the old one is gone.
      await catchUp(p);
      writeFileSync(join(secrets, "kafka-password"), first);
      const refused = await stream(p).ended();
      expect([refused.code, refused.failure?.code]).toEqual([3, "kafka.auth_failed"]);
      expect((await compareWithKafka(served, topic, p.lake)).differences).toEqual([]);
    },
    LIMIT,
  );

  test(
    "a secret that is gone at a SIGHUP is reported, and what runs goes on",
    async () => {
      const topic = await topicWith(100, 1);
      const secrets = join(workFolder(), "secrets");
      mkdirSync(secrets);
      const file = join(secrets, "kafka-password");
      writeFileSync(file, BOB.password);
      const p = pipeline({
        served,
        topics: [topic],
        bootstrap: served.sasl,
        observability: LISTEN,
        source: `sasl = { mechanism = "PLAIN", username = "${BOB.user}", password = { secret = "kafka-password" } }`,
        more: `[secrets]\ndir = "${secrets}"`,
      });
      const twg = stream(p);
      await untilMetric(twg, "twg_sink_records_total", { sink: "raw" }, 100);
      writeFileSync(file, "");
      twg.kill("SIGHUP");
      const told = await twg.saw("failure");
      expect(told.message).toContain("secrets.empty");
      await feedAll(served, topic, 1, 100);
      await untilMetric(twg, "twg_sink_records_total", { sink: "raw" }, 200);
      expect((await ready(twg)).status).toBe(200);
      twg.kill("SIGTERM");
      expect((await twg.ended()).code).toBe(0);
    },
    LIMIT,
  );

  test(
    "no password in any output, file, page or command, whatever the level",
    async () => {
      const topic = await topicWith(100, 1);
      const p = pipeline({
        served,
        topics: [topic],
        group: `g-${topic}`,
        bootstrap: served.sasltls,
        observability: LISTEN,
        source: `sasl = { mechanism = "SCRAM-SHA-256", username = "${ALICE.user}", password = "${ALICE.password}" }
tls = { ca = { file = "${served.ca}" } }`,
      });
      const twg = stream(p);
      await untilMetric(twg, "twg_sink_records_total", { sink: "raw" }, 100);
      for (const path of ["/", "/metrics", "/health", "/stats", "/ready"]) await get(twg, path);
      twg.kill("SIGTERM");
      expect((await twg.ended()).code).toBe(0);
      for (const args of [
        ["config", "explain", "-c", p.config],
        ["config", "explain", "-c", p.config, "--json"],
        ["config", "validate", "-c", p.config],
        ["config", "secrets", "-c", p.config],
        ["inspect", "coverage", "-c", p.config],
        ["inspect", "parquet", p.lake],
      ]) {
        // `ended` looks for secrets in every output.
        expect([args[1], (await command(args)).code]).toEqual([args[1], 0]);
      }
      for (const name of readdirSync(p.folder, { recursive: true, encoding: "utf8" })) {
        const path = join(p.folder, name);
        if (path === p.config || !statSync(path).isFile() || statSync(path).size > 1 << 20) continue;
        for (const secret of SECRETS) expect(readFileSync(path, "latin1").includes(secret)).toBe(false);
      }
    },
    LIMIT,
  );

  test(
    "nobody reads the log, or its reader is gone: everything lands all the same",
    async () => {
      const topic = await topicWith(0);
      const feeder = await feed(served, topic, { partitions: 2, rate: 2_000 });
      // Whoever has logged enough waits for the others; the last one ends the records.
      let writing = 3;
      const { promise: over, resolve: end } = Promise.withResolvers<void>();
      const fed = async () => {
        if (--writing === 0) await feeder.stop().then(() => end());
        await over;
      };
      const withReader = async (reader: string): Promise<void> => {
        const group = fresh("unread");
        const p = pipeline({ served, topics: [topic], group, sink: 'roll_interval_ms = "50ms"' });
        const [pid, exit, log] = ["pid", "exit", "log"].map((n) => join(p.folder, n)) as [
          string,
          string,
          string,
        ];
        const args = ["stream", "-c", p.config, "--log-format", "json", "--log-level", "debug"];
        const twg = `"$@" 2>&1 >/dev/null & echo $! > ${pid}; wait $!; echo $? > ${exit}`;
        const script = `{ ${twg}; } | ${reader}${reader === "cat >" ? log : ""}`;
        const shell = new Twg(args, {}, ["setsid", "bash", "-c", script, "bash"]);
        // What the reader that keeps it has is the measure: the others log the same at the same pace.
        const logged = () =>
          reader !== "cat >" || (statSync(log, { throwIfNoEntry: false })?.size ?? 0) > 160_000;
        await until(
          "enough was logged",
          async () => logged() && (await commitsOf(served, topic, group))["0"]! > 3_500,
        );
        await fed();
        const ends = await endsOf(served, topic);
        await until("all is committed", async () =>
          Bun.deepEquals(await commitsOf(served, topic, group), ends),
        );
        process.kill(Number(readFileSync(pid, "utf8")), "SIGTERM");
        const code = await until(
          "its end",
          () => (existsSync(exit) ? readFileSync(exit, "utf8") : "") || null,
        );
        // The reader that sleeps is in the process group of the shell, of which nothing else is left.
        if (reader.startsWith("sleep")) process.kill(-shell.pid, "SIGKILL");
        await shell.ended();
        expect(code).toBe("0\n");
        expect((await compareWithKafka(served, topic, p.lake)).differences).toEqual([]);
        // A pipe holds 64 KiB: as much as was logged here the others could not get rid of.
        if (reader === "cat >") expect(statSync(log).size).toBeGreaterThan(80_000);
      };
      await Promise.all(["sleep 1000", "true", "cat >"].map(withReader));
    },
    LIMIT,
  );

  test(
    "text logs for people: no colours with NO_COLOR or without a terminal, one line each",
    async () => {
      const topic = await topicWith(100, 1);
      const p = pipeline({ served, topics: [topic] });
      const args = ["stream", "-c", p.config, "--until-caught-up"];
      for (const environment of [{ NO_COLOR: "1" }, { NO_COLOR: "" }] as const) {
        const ended = await new Twg(args, environment).ended();
        expect(ended.code).toBe(0);
        expect(ended.output).not.toContain("\u001b");
        for (const line of ended.output.trimEnd().split("\n")) {
          expect(line).toMatch(/^\d{4}-\d\d-\d\dT\S+Z (DEBUG|INFO |WARN |ERROR) /);
        }
      }
      // In a terminal there is colour and a live line, unless NO_COLOR says no.
      const inTerminal = (environment: Record<string, string>) =>
        new Twg(args, environment, TERMINAL).ended();
      expect((await inTerminal({ TERM: "xterm", NO_COLOR: "" })).output).toContain("\u001b[36mINFO");
      expect((await inTerminal({ TERM: "xterm", NO_COLOR: "1" })).output).not.toContain("\u001b[36m");
    },
    LIMIT,
  );
});
