/**
 * Goal: the binary of each machine that twg is built for runs in its image: no shell, read-only, any user, 64 MB of /tmp,
 * and lands a topic there. Method: the build of all targets; the file tree of Dockerfile.distroless laid by hand and
 * entered as a container would be; the other processor emulated by qemu. Rows are counted by hyparquet.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { asyncBufferFromFile, parquetMetadataAsync } from "hyparquet";
import packageJson from "../../package.json";
import { glibcFiles } from "../../scripts/build/image-root.ts";
import { Unavailable } from "../../scripts/build/parts.ts";
import { hostTarget, TARGETS, type Target } from "../../scripts/build/targets.ts";
import { buildBinary } from "../../scripts/build-binary.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { FakeCluster } from "../brokers/kafka/cluster.ts";
import { ordersBatch } from "../brokers/kafka/orders.ts";
import { type Listening, listenCluster } from "../brokers/kafka/sockets.ts";
import { Container } from "./container.ts";
import { emulator, muslFiles } from "./foreign.ts";

const repo = resolve(import.meta.dir, "../..");
const room = mkdtempSync(join(tmpdir(), "twg-machines-"));
afterAll(() => rmSync(room, { recursive: true, force: true }));

const refused = Container.refused();
const strict = process.env.TWG_STRICT === "1";
const RECORDS = 3000;
const PARTITIONS = 3;

describe.each(TARGETS.map((t) => [t.name, t] as const))("%s", (name, target) => {
  let container: Container | null = null;
  let listening: Listening | null = null;

  beforeAll(async () => {
    try {
      if (refused !== null) throw new Unavailable(refused);
      container = await contain(target);
    } catch (e) {
      if (!(e instanceof Unavailable) || strict) throw e;
      console.error(`SKIP ${name} is not tried: ${e.message}`);
    }
  }, 180_000);
  afterAll(() => {
    container?.remove();
    listening?.close();
  });

  test("says its version, and checks a configuration", async () => {
    if (container === null) return;
    container.config = config(["127.0.0.1:1"], "off");
    const version = await container.run("--version");
    expect(version).toMatchObject({ code: 0, stderr: "" });
    expect(version.stdout).toContain(packageJson.version);
    const valid = await container.run("config", "validate", "-c", "/etc/twg/twg.toml");
    expect(valid).toMatchObject({ code: 0, stderr: "" });
  }, 120_000);

  test("doctor finds native codecs, and a stream lands every record", async () => {
    if (container === null) return;
    const c = container;
    listening = listenCluster(filled());
    const port = freePort();
    c.config = config(listening.bootstrap, `127.0.0.1:${port}`);
    const doctor = await c.run("doctor", "-c", "/etc/twg/twg.toml", "--json", "--timeout", "100");
    const findings = (
      JSON.parse(doctor.stdout) as { findings: { check: string; verdict: string; seen: string }[] }
    ).findings;
    expect(findings.filter((f) => f.verdict !== "ok")).toEqual([]);
    // 70 MB of library do not fit in /tmp, and no other folder can be written: it is in memory.
    expect(findings.find((f) => f.check === "native.library")?.seen).toStartWith("/proc/self/fd/");

    const health = () => c.run("health", "-c", "/etc/twg/twg.toml", "--timeout", "30");
    expect((await health()).code).toBe(1);
    const stream = c.spawn(["stream", "-c", "/etc/twg/twg.toml"]);
    const log = new Response(stream.stderr).text();
    let landed = 0;
    while (landed < RECORDS && stream.exitCode === null) {
      await Bun.sleep(100);
      landed = await rows(c.data);
    }
    const well = stream.exitCode === null ? await health() : null;
    stream.kill("SIGTERM");
    const code = await stream.exited;
    const told = await log;
    expect({ landed, code, well: well?.stdout }, told).toEqual({
      landed: RECORDS,
      code: 0,
      well: "live: ok (HTTP 200)\n",
    });
    const coverage = await c.run("inspect", "coverage", "-c", "/etc/twg/twg.toml", "--json");
    expect(coverage.code).toBe(0);
    expect(coverage.stdout).toContain(`"positions": "${RECORDS / PARTITIONS}"`);
  }, 300_000);
});

async function contain(target: Target): Promise<Container> {
  const libc = target.libc === "musl" ? await muslFiles(target) : await glibcFiles(target);
  const binary = join(room, target.name);
  await buildBinary({ root: repo, entrypoints: ["src/main.ts", "src/lane.ts"], outfile: binary, target });
  const run = target.arch === hostTarget().arch ? null : await emulator(target);
  const container = new Container({ binary, libc, emulator: run });
  rmSync(binary);
  return container;
}

function config(bootstrap: readonly string[], listen: string): string {
  return `[pipeline]
name = "orders"
[source]
type = "kafka"
bootstrap = ${JSON.stringify(bootstrap)}
topics = ["orders"]
group = "twg-orders"
[[sink]]
name = "raw"
type = "parquet"
receives = "raw"
role = "primary_raw"
path = "/data/orders/"
roll_bytes = "16MiB"
roll_interval_ms = 500
[observability]
listen = "${listen}"
`;
}

function filled(): FakeCluster {
  const cluster = new FakeCluster({ clock: systemClock });
  cluster.createTopic("orders", { partitions: PARTITIONS });
  for (let p = 0; p < PARTITIONS; p++) {
    cluster.append("orders", p, ordersBatch(1, p, PARTITIONS, RECORDS / PARTITIONS, "lz4"));
  }
  return cluster;
}

/** Freed again at once: twg takes it next. */
function freePort(): number {
  const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = server;
  server.stop(true);
  return port;
}

/** In the files that are published. */
async function rows(folder: string): Promise<number> {
  let n = 0;
  for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".parquet") || file.includes("_twg/")) continue;
    const metadata = await parquetMetadataAsync(await asyncBufferFromFile(join(folder, file)));
    n += Number(metadata.num_rows);
  }
  return n;
}
