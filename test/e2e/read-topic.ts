/** What independent clients read in a topic, record for record. */
import { createHash } from "node:crypto";
import { join, resolve } from "node:path";
import type { OneRecord } from "../../src/adapters/kafka/producer/columns.ts";
import { pythonPath, type Served, scriptPath } from "./real-kafka.ts";

export type Isolation = "read_committed" | "read_uncommitted";

/** Partition, offset, timestamp, key and value as length and SHA-1, headers with values in hex. */
export type Read = readonly [
  partition: number,
  offset: number,
  timestamp: number,
  key: string | null,
  value: string | null,
  headers: readonly (readonly [string, string | null])[],
];

const LIBS = resolve(import.meta.dir, "../../.cache/servers/kafka-4.4.0/libs");

async function lastLine(argv: readonly string[]): Promise<readonly Read[]> {
  const child = Bun.spawn([...argv], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(`${argv.slice(0, 4).join(" ")}: ${err.slice(-2000)}`);
  return JSON.parse(out.trim().split("\n").at(-1) ?? "") as Read[];
}

/** `atLeast` records are waited for, 30 s long: needed after leaders moved (see read_topic.py). */
export function readByLibrdkafka(
  served: Served,
  topic: string,
  isolation: Isolation,
  atLeast = 0,
): Promise<readonly Read[]> {
  const script = scriptPath("read_topic.py");
  return lastLine([pythonPath(), script, served.plain.join(","), topic, isolation, String(atLeast)]);
}

export function readByJava(served: Served, topic: string, isolation: Isolation): Promise<readonly Read[]> {
  const file = join(import.meta.dir, "java/ReadTopic.java");
  return lastLine(["java", "-Xmx512m", "-cp", `${LIBS}/*`, file, served.plain.join(","), topic, isolation]);
}

const UTF8 = new TextEncoder();
const bytesOf = (v: Uint8Array | string): Uint8Array => (typeof v === "string" ? UTF8.encode(v) : v);

function digest(value: Uint8Array | string | null | undefined): string | null {
  if (value === null || value === undefined) return null;
  const bytes = bytesOf(value);
  return `${bytes.length}:${createHash("sha1").update(bytes).digest("hex")}`;
}

/** A record that was sent, as the readers above show it. */
export function asRead(record: OneRecord, partition: number, offset: number): Read {
  const headers = (record.headers ?? []).map(
    ([name, value]) =>
      [
        new TextDecoder().decode(bytesOf(name)),
        value === null ? null : Buffer.from(bytesOf(value)).toString("hex"),
      ] as const,
  );
  return [partition, offset, record.timestamp ?? -1, digest(record.key), digest(record.value), headers];
}
