/**
 * Kills a running pipeline with SIGKILL again and again and counts what landed with a reader that is not ours.
 *
 *   bun run torture --sink parquet|postgres|s3|kafka|batch [--scenario kills|groups|sinks] [OPTION...]     --help says which
 *
 * `--points` kills at each named point of delivery, of settling what the life before left, and of a write of the
 * coverage object, in turn, instead of at random moments. Without `--bootstrap` the
 * broker is the one of this repository, which speaks the same bytes; with it, a real one, below with-servers.sh:
 *
 *   scripts/with-servers.sh --kafka 4.4.0:3 bun run torture --kills 50 --seed 7 --bootstrap 4.4.0 --kill-brokers --json
 *
 * With postgres, sessions of twg and the whole server are killed as well (psql counts; the server is that of
 * with-servers.sh --postgres, or one that is started for the run).
 * With s3 it is a server of with-servers.sh --s3 (`--store versitygw` or `seaweedfs`), and with `--proxy 0.05` every
 * twentieth request meets what networks, load balancers and overloaded stores do.
 * With kafka records go into another topic of the same real cluster, and librdkafka counts what readers
 * of committed records find there.
 * With batch there is no broker: files of several kinds are landed by `twg batch`, and refused rows are compared as well;
 * `--destination postgres` lands them in tables, and kills sessions too.
 * With --bootstrap librdkafka writes while twg is killed, reads everything at the end, and every value is compared with the files.
 * With --scenario groups several processes share a real cluster's topic (--members, --minutes, --rate, --protocol
 * classic|consumer|upgrade): see torture/groups.ts.
 *
 *   scripts/with-servers.sh --kafka 4.4.0:3 bun run torture --scenario groups --members 20 --minutes 10 --kill-brokers --json
 *
 * With --scenario sinks a primary sink, in a bucket or on disk (--store versitygw|seaweedfs|disk), and one, two or four
 * beside it (--sinks 2|3|5) are filled by members of a group and by recoveries (--members, --recoveries), all killed, while
 * the sinks' servers have every kind of trouble (--trouble-ms at most): see torture/sinks/run.ts. --minutes ends it before
 * --kills are done. With --points live ingest is killed then at each point that was not reached. --canary
 * drop|double|alter|skip|reread plants a fault, which the run must report.
 *
 *   scripts/with-servers.sh --kafka 4.4.0:1 --s3 --postgres bun run torture --scenario sinks --sinks 5 --kills 30 --json
 *
 * Last line with --json: {scenario, kills, produced, landed, lost, doubled, orphans, ...}.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MAIN } from "../test/e2e/real-kafka.ts";
import { SeededChance } from "../test/sim/chance.ts";
import { flagsOf } from "./lib/flags.ts";
import { tortureBatch } from "./torture/batch.ts";
import { type BatchPlace, databasePlace, folderPlace } from "./torture/batch-places.ts";
import { startBroker, type Topic, topicOf } from "./torture/broker.ts";
import { type GroupTorture, tortureGroups } from "./torture/groups.ts";
import { kafkaSink } from "./torture/kafka-sink.ts";
import { parquetSink } from "./torture/parquet-sink.ts";
import { postgresSink } from "./torture/postgres-sink.ts";
import { kill, type Started, start } from "./torture/process.ts";
import { type RealBroker, startReal } from "./torture/real-broker.ts";
import { faultShare, s3Sink } from "./torture/s3-sink.ts";
import type { Life, TortureSink } from "./torture/sink.ts";
import { CANARIES, type Canary } from "./torture/sinks/canary.ts";
import { tortureSinks } from "./torture/sinks/run.ts";

const { values: flags } = flagsOf({
  name: "torture",
  does: "Kills a running pipeline with SIGKILL again and again, and counts what landed with a reader that is not ours.",
  flags: {
    scenario: { type: "string", default: "kills", value: "kills|groups|sinks", text: "what is troubled" },
    sink: {
      type: "string",
      default: "parquet",
      value: "parquet|postgres|s3|kafka|batch",
      text: "where records land; batch: files, without a broker",
    },
    kills: { type: "string", default: "20", value: "N", text: "how often a process is killed" },
    points: {
      type: "boolean",
      default: false,
      text: "kills at each named point in turn instead of at random moments",
    },
    seed: { type: "string", default: "1", value: "S", text: "of all chance" },
    records: { type: "string", default: "60000", value: "N", text: "records that are produced" },
    partitions: { type: "string", default: "6", value: "N", text: "partitions of the topic" },
    binary: {
      type: "string",
      value: "FILE",
      text: "the twg that is killed",
      otherwise: "it runs from source",
    },
    bootstrap: {
      type: "string",
      value: "VERSION|HOST:PORT",
      text: "a real broker, below with-servers.sh",
      otherwise: "the broker of this repository",
    },
    "kill-brokers": { type: "boolean", default: false, text: "kills real brokers as well" },
    store: {
      type: "string",
      default: "versitygw",
      value: "versitygw|seaweedfs|disk",
      text: "server of the bucket; disk: with --scenario sinks",
    },
    proxy: { type: "string", default: "0", value: "SHARE", text: "requests to the bucket that meet a fault" },
    destination: {
      type: "string",
      default: "parquet",
      value: "parquet|postgres",
      text: "where --sink batch lands files",
    },
    members: {
      type: "string",
      value: "N",
      text: "processes of a group",
      otherwise: "4 with --scenario groups, 2 with sinks",
    },
    minutes: {
      type: "string",
      value: "M",
      text: "how long a group is troubled; with sinks at most",
      otherwise: "1 with --scenario groups, 8 with sinks",
    },
    rate: { type: "string", default: "500", value: "N", text: "records a second, for a group" },
    protocol: { type: "string", default: "upgrade", value: "classic|consumer|upgrade", text: "of the group" },
    sinks: { type: "string", default: "5", value: "2|3|5", text: "with --scenario sinks" },
    recoveries: { type: "string", default: "2", value: "N", text: "recoveries beside the members" },
    "trouble-ms": { type: "string", default: "8000", value: "MS", text: "the longest trouble of a server" },
    canary: {
      type: "string",
      value: CANARIES.join("|"),
      text: "plants a fault, which --scenario sinks must report",
    },
    keep: { type: "boolean", default: false, text: "leaves the folder of the run" },
    json: { type: "boolean", default: false, text: "the result as JSON, in the last line" },
  },
  examples: [
    ["bun run torture --sink parquet --kills 50 --seed 7", "raw files, with the broker of this repository"],
    [
      "scripts/with-servers.sh --kafka 4.4.0:3 bun run torture --scenario groups --members 20 --minutes 10 --kill-brokers",
      "a group whose members and brokers are killed",
    ],
    [
      "scripts/with-servers.sh --kafka 4.4.0:1 --s3 --postgres bun run torture --scenario sinks --sinks 5 --kills 30",
      "several sinks, live ingest and recovery at once",
    ],
  ],
  more: "Ends with 1 if something was lost, doubled or left over. What each scenario does: the head of scripts/torture.ts.",
});

// Records go into real brokers, whichever are there, and come from the same.
if (flags.sink === "kafka" && MAIN !== null) flags.bootstrap ??= MAIN.version;

const chance = new SeededChance(Number(flags.seed));
const folder = mkdtempSync(join(tmpdir(), "twg-torture-"));
const say = (text: string) => void process.stderr.write(`${text}\n`);

const twg = flags.binary === undefined ? [process.execPath, "src/main.ts"] : [flags.binary];
const inGroup = flags.scenario === "groups";
const MEMBERS = Number(flags.members ?? (inGroup ? "4" : "2"));
const MINUTES = Number(flags.minutes ?? (inGroup ? "1" : "8"));
/** Each file is a write of the coverage object, which all members of a group share. */
const ROLL_MS = inGroup ? 150 * Math.max(2, MEMBERS / 2) : 150;

async function theSink(): Promise<TortureSink> {
  switch (flags.sink) {
    case "parquet":
      return parquetSink(folder, ROLL_MS);
    case "postgres":
      return postgresSink(folder, new SeededChance(Number(flags.seed) + 1), !flags.points);
    case "s3":
      return s3Sink(folder, {
        store: flags.store,
        faults: faultShare(Number(flags.seed), Number(flags.proxy)),
        rollMs: ROLL_MS,
      });
    case "kafka":
      return kafkaSink(flags.bootstrap, `torture-${process.pid}-${flags.seed}`, Number(flags.partitions));
    default:
      say(`sinks are parquet, postgres, s3, kafka and batch, not ${flags.sink}`);
      process.exit(2);
  }
}

/** `twg stream` from source or from the binary, with or without a planned crash. */
function stream(config: string, crashAt: string | null, untilCaughtUp: boolean): Started {
  const more = untilCaughtUp ? ["--until-caught-up"] : [];
  const environment: Record<string, string> = crashAt === null ? {} : { TWG_CRASH_AT: crashAt };
  return start([...twg, "stream", "-c", config, "--log-format", "json", ...more], environment);
}

async function writeConfig(topic: Topic, sink: TortureSink): Promise<string> {
  const path = join(folder, "torture.toml");
  sink.reads?.(topic.name);
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
${sink.section}

[observability]
listen = "off"
`,
  );
  return path;
}

/** From just before the first record is read to well into writing; a cluster without its leaders takes seconds. */
const LIFE = flags["kill-brokers"] ? { leastMs: 1_000, spreadMs: 5_000 } : { leastMs: 250, spreadMs: 1_500 };

/** One life: run until the planned point or a random moment, then SIGKILL. True if it was really killed. */
async function oneLife(config: string, point: string | null, slowMs: number): Promise<boolean> {
  const life = stream(config, point, false);
  if (point === null) await Bun.sleep(LIFE.leastMs + chance.int(LIFE.spreadMs + 2 * slowMs));
  else await Promise.race([life.process.exited, Bun.sleep(15_000)]);
  if (life.process.signalCode === "SIGKILL") return true;
  if (life.process.exitCode !== null) {
    throw new Error(`twg ended by itself with ${life.process.exitCode}:\n${life.log()}`);
  }
  await kill(life, "SIGKILL");
  return point === null;
}

/** Seconds that a life takes on average, so that records keep coming until the last. */
const LIFE_S = flags.points ? 2 : (LIFE.leastMs + LIFE.spreadMs / 2) / 1000 + 0.3;

/** Null: the broker of this repository is asked. */
async function realBroker(records: number, partitions: number, seconds: number): Promise<RealBroker | null> {
  const { bootstrap: which, "kill-brokers": killBrokers } = flags;
  if (which === undefined) return null;
  return startReal({ which, records, partitions, seconds, killBrokers }, chance);
}

async function lives(config: string, sink: TortureSink, plan: readonly Life[]): Promise<number> {
  let kills = 0;
  for (const [i, life] of plan.entries()) {
    await sink.before(life);
    if (await oneLife(config, life.point, sink.slowMs ?? 0)) kills++;
    else say(`point ${life.point} was not reached`);
    if ((i + 1) % 10 === 0) say(`${i + 1} of ${plan.length} lives`);
  }
  return kills;
}

async function run(sink: TortureSink): Promise<boolean> {
  const plan = flags.points ? sink.points : Array<Life>(Number(flags.kills)).fill({ point: null });
  const [records, partitions, seed] = [Number(flags.records), Number(flags.partitions), Number(flags.seed)];
  const seconds = plan.length * (LIFE_S + (sink.slowMs ?? 0) / 1000);
  const real = await realBroker(records, partitions, seconds);
  const broker = real ?? (await startBroker("orders", records, partitions, seed, seconds));
  try {
    const config = await writeConfig(broker.topic, sink);
    const calm = sink.trouble();
    const kills = await lives(config, sink, plan);
    await calm();
    await broker.full();
    const last = stream(config, null, true);
    const code = await last.process.exited;
    if (code !== 0) throw new Error(`the last run ended with ${code}:\n${last.log()}`);
    const topic = await topicOf(broker);
    const landed = await sink.count();
    let lost = 0;
    for (const [partition, end] of topic.ends.entries()) {
      const there = (landed.ranges.get(partition) ?? []).reduce((n, [a, b]) => n + (b - a), 0);
      lost += end - there;
    }
    const orphans = await sink.orphans();
    const { bootstrap, name } = broker.topic;
    const differences = real === null ? [] : await sink.compare(bootstrap, name);
    const result = {
      scenario: flags.points ? `${flags.sink}-points` : flags.sink,
      kills,
      produced: topic.produced,
      landed: landed.rows,
      lost,
      doubled: landed.doubled,
      orphans: orphans.length,
      ...(real === null ? {} : { differences: differences.length, broker_kills: real.kills() }),
      ...sink.figures(),
      reader: landed.reader,
      seed: Number(flags.seed),
    };
    if (orphans.length > 0) say(`orphans:\n${orphans.join("\n")}`);
    for (const d of differences) say(d);
    show(result);
    const clean = lost === 0 && landed.doubled === 0 && orphans.length === 0 && differences.length === 0;
    // A point that no life reached proves nothing.
    return clean && kills === plan.length;
  } finally {
    await broker.stop();
  }
}

/** Files have an end: their lives are told apart from those of a stream. */
async function batchLives(): Promise<boolean> {
  const { destination } = flags;
  const place =
    destination === "postgres"
      ? await databasePlace(folder, new SeededChance(Number(flags.seed) + 1))
      : folderPlace(folder);
  try {
    return await batchTorture(place);
  } finally {
    await place.stop();
  }
}

async function batchTorture(place: BatchPlace): Promise<boolean> {
  const { clean, ...result } = await tortureBatch({
    folder,
    place,
    twg,
    kills: Number(flags.kills),
    records: Number(flags.records),
    seed: Number(flags.seed),
    chance,
    say,
  });
  show(result);
  return clean;
}

/** Members of a group are troubled together. */
async function groupLives(sink: TortureSink): Promise<boolean> {
  const { clean, ...result } = await tortureGroups({
    folder,
    twg,
    bootstrap: flags.bootstrap,
    members: MEMBERS,
    minutes: MINUTES,
    partitions: Number(flags.partitions),
    rate: Number(flags.rate),
    killBrokers: flags["kill-brokers"],
    protocol: protocolNamed(flags.protocol),
    chance,
    sink,
    say,
  });
  show(result);
  return clean;
}

/** Sinks and their servers are troubled together. */
async function sinksLives(): Promise<boolean> {
  const { clean, ...result } = await tortureSinks({
    folder,
    twg,
    sinks: Number(flags.sinks),
    members: MEMBERS,
    recoveries: Number(flags.recoveries),
    kills: Number(flags.kills),
    points: flags.points,
    minutes: MINUTES,
    troubleMs: Number(flags["trouble-ms"]),
    partitions: Number(flags.partitions),
    records: Number(flags.records),
    store: flags.store,
    seed: Number(flags.seed),
    canary: canaryNamed(flags.canary),
    say,
  });
  show(result);
  return clean;
}

function canaryNamed(name: string | undefined): Canary | null {
  if (name === undefined) return null;
  const known = CANARIES.find((c) => c === name);
  if (known !== undefined) return known;
  say(`canaries are ${CANARIES.join(", ")}, not ${name}`);
  process.exit(2);
}

function protocolNamed(name: string): GroupTorture["protocol"] {
  if (name === "classic" || name === "consumer" || name === "upgrade") return name;
  say(`protocols are classic, consumer and upgrade, not ${name}`);
  process.exit(2);
}

function show(result: Readonly<Record<string, unknown>>): void {
  if (flags.json) console.log(JSON.stringify(result));
  else console.table([result]);
}

async function wholeRun(): Promise<boolean> {
  if (flags.scenario === "sinks") return sinksLives();
  if (flags.sink === "batch") return batchLives();
  const sink = await theSink();
  try {
    return inGroup ? await groupLives(sink) : await run(sink);
  } finally {
    await sink.stop();
  }
}

let ok = false;
try {
  ok = await wholeRun();
} catch (e) {
  say(e instanceof Error ? e.message : String(e));
} finally {
  if (flags.keep || !ok) say(`kept: ${folder}`);
  else rmSync(folder, { recursive: true });
}
process.exit(ok ? 0 : 1);
