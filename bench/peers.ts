/** The peers that stand beside a bench: librdkafka in C, built here, and franz-go. What is missing is said. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { BenchOptions } from "./figure.ts";
import { runProcess } from "./process.ts";

export interface Peer {
  readonly name: string;
  readonly command: readonly string[];
}

const root = resolve(import.meta.dir, "..");

/** `program`: of bench/peers/librdkafka, without its ending. `mode`: the first argument of the franz-go one. */
export async function peersOf(o: BenchOptions, program: string, mode: string): Promise<readonly Peer[]> {
  const found: Peer[] = [];
  const built = join(root, `.cache/bench/librdkafka-${program}`);
  const source = join(root, `bench/peers/librdkafka/${program}.c`);
  if (existsSync("/usr/include/librdkafka/rdkafka.h") && Bun.which("gcc") !== null) {
    await runProcess(["gcc", "-O2", "-Wall", "-o", built, source, "-lrdkafka"]);
    found.push({ name: "librdkafka", command: [built] });
  } else o.say("SKIP librdkafka: there is no gcc or no librdkafka-dev here");
  if (o.peer !== null) found.push({ name: "franz-go", command: [o.peer, mode] });
  return found;
}
