/** The peers that stand beside a bench: librdkafka in C, built here, franz-go, and Kafka's own client. What is missing is said. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { BenchOptions } from "./figure.ts";
import { runProcess } from "./process.ts";

export interface Peer {
  readonly name: string;
  readonly command: readonly string[];
}

const root = resolve(import.meta.dir, "..");

/** `program`: of bench/peers/librdkafka and java, without its ending. `mode`: the first argument of the franz-go one. */
export async function peersOf(o: BenchOptions, program: string, mode: string): Promise<readonly Peer[]> {
  const found: Peer[] = [];
  const built = join(root, `.cache/bench/librdkafka-${program}`);
  const source = join(root, `bench/peers/librdkafka/${program}.c`);
  if (existsSync("/usr/include/librdkafka/rdkafka.h") && Bun.which("gcc") !== null) {
    await runProcess(["gcc", "-O2", "-Wall", "-o", built, source, "-lrdkafka"]);
    found.push({ name: "librdkafka", command: [built] });
  } else o.say("SKIP librdkafka: there is no gcc or no librdkafka-dev here");
  if (o.peer !== null) found.push({ name: "franz-go", command: [o.peer, mode] });
  // In a small run it would measure how long a JVM takes to start.
  if (o.small) return found;
  const java = await javaPeer(program);
  if (java !== null) found.push(java);
  else o.say("SKIP Kafka's own client: needs javac, and a broker's distribution in .cache/servers");
  return found;
}

/** With the libraries of the broker's own distribution, and the heap that its tools get. */
async function javaPeer(program: string): Promise<Peer | null> {
  const libs = join(root, ".cache/servers/kafka-4.4.0/libs");
  if (!existsSync(libs) || Bun.which("javac") === null) return null;
  const name = `${program[0]!.toUpperCase()}${program.slice(1)}`;
  const classes = join(root, ".cache/bench/java");
  const source = join(root, `bench/peers/java/${name}.java`);
  await runProcess(["javac", "-d", classes, "-cp", `${libs}/*`, source]);
  return { name: "Java", command: ["java", "-Xmx512m", "-cp", `${classes}:${libs}/*`, name] };
}
