/**
 * Kills a running pipeline with SIGKILL again and again and counts what landed with a reader that is not ours.
 *
 *   bun run torture --sink parquet --kills 50 --seed 7 [--points] [--records 60000] [--partitions 6]
 *                   [--binary dist/twg] [--bootstrap VERSION|HOST:PORT [--kill-brokers]] [--keep] [--json]
 *
 * `--points` kills at each named point of delivery, of settling what the life before left, and of a write of the
 * coverage object, in turn, instead of at random moments. Without `--bootstrap` the
 * broker is the one of this repository, which speaks the same bytes; with it, a real one, below with-servers.sh:
 *
 *   scripts/with-servers.sh --kafka 4.4.0:3 bun run torture --kills 50 --seed 7 --bootstrap 4.4.0 --kill-brokers --json
 *
 * Then librdkafka writes while twg is killed, reads everything at the end, and every value is compared with the files.
 * Last line with --json: {scenario, kills, produced, landed, lost, doubled, orphans, ...}.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { LOCAL_WRITE_POINTS } from "../src/adapters/coverage/local.ts";
import { SETTLE_POINTS } from "../src/core/coverage/settle.ts";
import { CRASH_POINTS } from "../src/core/delivery/crash-points.ts";
import { SeededChance } from "../test/sim/chance.ts";
import { startBroker, type Topic, topicOf } from "./torture/broker.ts";
import { countLanded } from "./torture/landed.ts";
import { orphansIn, writersIn } from "./torture/orphans.ts";
import { kill, type Started, start } from "./torture/process.ts";
import { type RealBroker, startReal } from "./torture/real-broker.ts";

const { values: flags } = parseArgs({
  options: {
    sink: { type: "string", default: "parquet" },
    kills: { type: "string", default: "20" },
    seed: { type: "string", default: "1" },
    points: { type: "boolean", default: false },
    records: { type: "string", default: "60000" },
    partitions: { type: "string", default: "6" },
    binary: { type: "string" },
    bootstrap: { type: "string" },
    "kill-brokers": { type: "boolean", default: false },
    keep: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});

const chance = new SeededChance(Number(flags.seed));
const folder = mkdtempSync(join(tmpdir(), "twg-torture-"));
const lake = join(folder, "lake");
const say = (text: string) => void process.stderr.write(`${text}\n`);

if (flags.sink !== "parquet") {
  say(`the only sink of this version is parquet, not ${flags.sink}`);
  process.exit(2);
}

/** `twg stream` from source or from the binary, with or without a planned crash. */
function stream(config: string, crashAt: string | null, untilCaughtUp: boolean): Started {
  const twg = flags.binary === undefined ? [process.execPath, "src/main.ts"] : [flags.binary];
  const more = untilCaughtUp ? ["--until-caught-up"] : [];
  const environment: Record<string, string> = crashAt === null ? {} : { TWG_CRASH_AT: crashAt };
  return start([...twg, "stream", "-c", config, "--log-format", "json", ...more], environment);
}

async function writeConfig(topic: Topic): Promise<string> {
  const path = join(folder, "torture.toml");
  await Bun.write(
    path,
    `[pipeline]
name = "torture"
state_dir = "${join(folder, "state")}"
max_bytes = "8MiB"

[source]
type = "kafka"
bootstrap = ${JSON.stringify(topic.bootstrap.split(","))}
topics = ["${topic.name}"]
group = "twg-torture-${flags.seed}"
fetch_max_bytes = "256KiB"
partition_max_bytes = "64KiB"

[[sink]]
name = "raw"
type = "parquet"
path = "${lake}/{topic}"
roll_bytes = "256KiB"
roll_interval_ms = 150
row_group_bytes = "128KiB"

[observability]
listen = "off"
`,
  );
  return path;
}

/** From just before the first record is read to well into writing; a cluster without its leaders takes seconds. */
const LIFE = flags["kill-brokers"] ? { leastMs: 1_000, spreadMs: 5_000 } : { leastMs: 250, spreadMs: 1_500 };

/** One life: run until the planned point or a random moment, then SIGKILL. True if it was really killed. */
async function oneLife(config: string, point: string | null): Promise<boolean> {
  const life = stream(config, point, false);
  if (point === null) await Bun.sleep(LIFE.leastMs + chance.int(LIFE.spreadMs));
  else await Promise.race([life.process.exited, Bun.sleep(15_000)]);
  if (life.process.signalCode === "SIGKILL") return true;
  if (life.process.exitCode !== null) {
    throw new Error(`twg ended by itself with ${life.process.exitCode}:\n${life.log()}`);
  }
  await kill(life, "SIGKILL");
  return point === null;
}

interface Life {
  /** Null: a random moment. */
  readonly point: string | null;
  /** Staged files are taken away before it, as a cleaner of temporary files would: there is nothing to publish. */
  readonly unstaged?: true;
}

const twice = (points: readonly string[]): Life[] =>
  points.flatMap((p) => [{ point: `${p}:1` }, { point: `${p}:2` }]);

/** Settling needs a life before that left an intent: whole, or without its staged files. */
const SETTLING: readonly Life[] = [
  { point: "after_intend:1" },
  { point: "settle_before_publish:1" },
  { point: "settle_after_publish_one:1" },
  { point: "after_intend:1" },
  { point: "settle_before_discard:1", unstaged: true },
  { point: "settle_after_discard:1" },
];
for (const p of SETTLE_POINTS)
  if (!SETTLING.some((l) => l.point === `${p}:1`)) throw new Error(`no life ends at ${p}`);

const plan: readonly Life[] = flags.points
  ? [...twice(CRASH_POINTS), ...twice(LOCAL_WRITE_POINTS), ...SETTLING]
  : Array<Life>(Number(flags.kills)).fill({ point: null });
/** Seconds that a life takes on average, so that records keep coming until the last. */
const LIFE_S = flags.points ? 2 : (LIFE.leastMs + LIFE.spreadMs / 2) / 1000 + 0.3;

/** Null: the broker of this repository is asked. */
async function realBroker(records: number, partitions: number, seconds: number): Promise<RealBroker | null> {
  const { bootstrap: which, "kill-brokers": killBrokers } = flags;
  if (which === undefined) return null;
  return startReal({ which, records, partitions, seconds, killBrokers }, chance);
}

async function lives(config: string): Promise<number> {
  let kills = 0;
  for (const [i, { point, unstaged }] of plan.entries()) {
    if (unstaged) rmSync(join(lake, "_twg/torture/raw/staging"), { recursive: true });
    if (await oneLife(config, point)) kills++;
    else say(`point ${point} was not reached`);
    if ((i + 1) % 10 === 0) say(`${i + 1} of ${plan.length} lives`);
  }
  return kills;
}

async function run(): Promise<boolean> {
  const [records, partitions, seed] = [Number(flags.records), Number(flags.partitions), Number(flags.seed)];
  const seconds = plan.length * LIFE_S;
  const real = await realBroker(records, partitions, seconds);
  const broker = real ?? (await startBroker("orders", records, partitions, seed, seconds));
  try {
    const config = await writeConfig(broker.topic);
    const kills = await lives(config);
    await broker.full();
    const last = stream(config, null, true);
    const code = await last.process.exited;
    if (code !== 0) throw new Error(`the last run ended with ${code}:\n${last.log()}`);
    const topic = await topicOf(broker);
    const landed = await countLanded(lake);
    let lost = 0;
    for (const [partition, end] of topic.ends.entries()) {
      const there = (landed.ranges.get(partition) ?? []).reduce((n, [a, b]) => n + (b - a), 0);
      lost += end - there;
    }
    const orphans = orphansIn(lake);
    const compared = await real?.compare(lake);
    const differences = compared?.differences ?? [];
    const result = {
      scenario: flags.points ? "parquet-points" : "parquet",
      kills,
      produced: topic.produced,
      landed: landed.rows,
      lost,
      doubled: landed.doubled,
      orphans: orphans.length,
      ...(real === null ? {} : { differences: differences.length, broker_kills: real.kills() }),
      writers: writersIn(lake),
      reader: landed.reader,
      seed: Number(flags.seed),
    };
    if (orphans.length > 0) say(`orphans:\n${orphans.join("\n")}`);
    for (const d of differences) say(d);
    if (flags.json) console.log(JSON.stringify(result));
    else console.table([result]);
    const clean = lost === 0 && landed.doubled === 0 && orphans.length === 0 && differences.length === 0;
    // A point that no life reached proves nothing.
    return clean && kills === plan.length;
  } finally {
    await broker.stop();
  }
}

let ok = false;
try {
  ok = await run();
} catch (e) {
  say(e instanceof Error ? e.message : String(e));
} finally {
  if (flags.keep || !ok) say(`kept: ${folder}`);
  else rmSync(folder, { recursive: true });
}
process.exit(ok ? 0 : 1);
