/**
 * Benchmarks beside their peers.
 *
 *   bun run bench [NAME...] [OPTION...]     --help says which
 *
 * With --json one object a line: {bench, subject, peer, unit, value, peer_value, ratio, hash, n, cpu_per_million,
 * peer_cpu_per_million, ...}. --small takes seconds in total and proves that everything still runs, nothing else.
 * Without --bootstrap the broker of TWG_REAL_KAFKA is used if the test runner started one, else this project's own.
 * What each figure means: docs/benchmarks.md.
 */
import { existsSync } from "node:fs";
import { csvToParquet, ndjsonToParquet } from "../bench/batch-files.ts";
import { coverage } from "../bench/coverage.ts";
import { decodeAvro } from "../bench/decode-avro.ts";
import { decodeJson } from "../bench/decode-json.ts";
import { decodeProtobuf } from "../bench/decode-protobuf.ts";
import type { Bench, BenchOptions, Figure } from "../bench/figure.ts";
import { group } from "../bench/group.ts";
import { kafkaParquet, memory } from "../bench/kafka-parquet.ts";
import { kafkaPostgres } from "../bench/kafka-postgres.ts";
import { kafkaTyped } from "../bench/kafka-typed.ts";
import { decodeRecords, parquetWrite } from "../bench/lane-work.ts";
import { runProcess } from "../bench/process.ts";
import { produce } from "../bench/produce.ts";
import { rawConsume } from "../bench/raw-consume.ts";
import { recovery, recoveryTwo } from "../bench/recovery/recovery.ts";
import { startup } from "../bench/startup.ts";
import { flagsOf } from "./lib/flags.ts";

const BENCHES: Readonly<Record<string, Bench>> = {
  "decode-records": decodeRecords,
  "decode-protobuf": decodeProtobuf,
  "parquet-write": parquetWrite,
  "decode-avro": decodeAvro,
  "lane-host": laneHost,
  startup,
  coverage,
  "raw-consume": rawConsume,
  produce,
  group,
  "kafka-parquet": kafkaParquet,
  "kafka-postgres": kafkaPostgres,
  memory,
  "csv-to-parquet": csvToParquet,
  "ndjson-to-parquet": ndjsonToParquet,
  "decode-json": decodeJson,
  "kafka-typed": kafkaTyped,
  recovery,
  "recovery-two": recoveryTwo,
};

const { values: flags, positionals } = flagsOf({
  name: "bench",
  does: "Benchmarks beside their peers.",
  words: "NAME...",
  flags: {
    small: {
      type: "boolean",
      default: false,
      text: "seconds in total: proves that everything still runs, and nothing else",
    },
    bootstrap: {
      type: "string",
      value: "HOST:PORT",
      text: "a broker",
      otherwise: "that of with-servers.sh, else this project's own",
    },
    peer: { type: "string", value: "FILE", text: "the program of the peer", otherwise: "it is built once" },
    binary: { type: "string", value: "FILE", text: "the twg that is measured", otherwise: "dist/twg" },
    rounds: { type: "string", value: "N", text: "rounds of each", otherwise: "5, or 1 with --small" },
    json: { type: "boolean", default: false, text: "a line of JSON for each figure" },
  },
  examples: [
    ["bun run bench", "all of them"],
    [
      "scripts/with-servers.sh --full-jvm --kafka 4.4.0:1 bun run bench kafka-parquet",
      "one, with a real broker",
    ],
  ],
  more: `There are ${Object.keys(BENCHES).join(", ")}.\nWhat each figure means: docs/benchmarks.md.`,
});
const say = (text: string) => void process.stderr.write(`${text}\n`);

/** It measures itself; its lines come through. */
async function* laneHost(o: BenchOptions): AsyncGenerator<Figure> {
  const { stdout } = await runProcess([
    process.execPath,
    "bench/lane-host.ts",
    "--json",
    ...(o.small ? ["--small"] : []),
  ]);
  for (const line of stdout.trim().split("\n")) {
    yield { ...(JSON.parse(line) as Figure), cpu_per_million: null, peer_cpu_per_million: null };
  }
}

const PEER = ".cache/bench/franz-go-4";

/** The franz-go peer, built once; null if that cannot be. */
async function peerOf(): Promise<string | null> {
  if (flags.peer !== undefined) return flags.peer;
  if (existsSync(PEER)) return PEER;
  if (Bun.which("go") === null) {
    say("SKIP franz-go: there is no Go here, so figures have no peer");
    return null;
  }
  try {
    await runProcess(["bench/peers/franz-go/build.sh", `${process.cwd()}/${PEER}`]);
    return PEER;
  } catch (e) {
    say(`SKIP franz-go: it does not build, so figures have no peer: ${String(e).slice(0, 500)}`);
    return null;
  }
}

/** The first plain listener of the brokers that the test runner started. */
function served(): string | null {
  const brokers = JSON.parse(process.env["TWG_REAL_KAFKA"] ?? "{}") as Record<
    string,
    { plain?: readonly string[] }
  >;
  return Object.values(brokers)[0]?.plain?.[0] ?? null;
}

function twgOf(): readonly string[] {
  const binary = flags.binary ?? process.env["TWG_BINARY"] ?? "dist/twg";
  if (existsSync(binary)) return [binary];
  say(`there is no ${binary}: twg is run from its source, which starts slower`);
  return [process.execPath, "src/main.ts"];
}

const NEED_BROKER = new Set([
  ...[
    "raw-consume",
    "produce",
    "group",
    "kafka-parquet",
    "kafka-postgres",
    "memory",
    "recovery",
    "recovery-two",
  ],
]);

async function run(): Promise<void> {
  const names = positionals.length > 0 ? positionals : Object.keys(BENCHES);
  for (const name of names) {
    if (BENCHES[name] === undefined)
      throw new Error(`no bench ${name}; there are ${Object.keys(BENCHES).join(", ")}`);
  }
  const options: BenchOptions = {
    small: flags.small,
    bootstrap: flags.bootstrap ?? served(),
    peer: names.some((n) => NEED_BROKER.has(n)) ? await peerOf() : null,
    twg: twgOf(),
    rounds: Number(flags.rounds ?? (flags.small ? 1 : 5)),
    say,
  };
  for (const name of names) {
    for await (const figure of BENCHES[name]!(options)) print(figure);
  }
}

function print(f: Figure): void {
  if (flags.json) {
    console.log(JSON.stringify(f));
    return;
  }
  const peer = f.peer === null ? "no peer" : `${f.peer_value} (${f.peer}), ratio ${f.ratio}`;
  const cpu =
    f.cpu_per_million === null
      ? ""
      : `; CPU-s per million ${f.cpu_per_million} against ${f.peer_cpu_per_million}`;
  console.log(`${f.bench}: ${f.value} ${f.unit}, ${peer}${cpu}`);
}

try {
  await run();
} catch (e) {
  say(e instanceof Error ? e.message : String(e));
  process.exit(1);
}
