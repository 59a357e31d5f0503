/**
 * Topics to read. On a real broker they are made once and kept: the name says what is in them, and one that has
 * another size is not used. Without a broker, ours serves the same events (its speed is no measure of anything).
 */
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { kafkaSettings } from "../src/adapters/kafka/settings.ts";
import { KafkaSource } from "../src/adapters/kafka/source.ts";
import { kafkaSourceSpec } from "../src/adapters/kafka/spec.ts";
import { createNet } from "../src/adapters/net/net.ts";
import { systemChance } from "../src/adapters/system/chance.ts";
import { systemClock } from "../src/adapters/system/clock.ts";
import { systemSaslCrypto } from "../src/adapters/system/sasl-crypto.ts";
import type { Resolved } from "../src/core/config/secret.ts";
import { asFailure } from "../src/core/failure/failure.ts";
import type { FoundStream, SourceHost, StreamStart } from "../src/core/ports/source.ts";
import { Draw, order } from "../test/brokers/kafka/orders.ts";
import type { BenchOptions } from "./figure.ts";
import { runProcess, serveProcess } from "./process.ts";

export const PARTITIONS = 6;
/** Of the generators: timestamps rise by 7 ms a record from here on (as bench/peers/franz-go produces them). */
export const FIRST_TIMESTAMP = 1767225600000;
export const MS_PER_RECORD = 7;

export type Codec = "none" | "lz4";
export type Kind = "orders" | "blob" | "small";

export interface Topic {
  readonly bootstrap: string;
  readonly name: string;
  readonly records: number;
  release(): Promise<void>;
}

/** Lines of a kind: JSON orders of about 250 B, 1,000 B of letters of which a quarter is random, 100 B of the same. */
function line(kind: Kind, draw: Draw, i: number): string {
  if (kind === "orders") return order(1, i).value;
  const size = kind === "blob" ? 1000 : 100;
  draw.begin(1, i);
  let random = "";
  for (let k = 0; k < size / 4; k++) random += String.fromCharCode(97 + draw.below(26));
  return random + "the quick brown fox jumps over the lazy dog ".repeat(18).slice(0, size - random.length);
}

/** Names that the shared data generators use are tried first: those topics hold the very records of the figures. */
const KNOWN: Readonly<Record<string, string>> = {
  "orders none 2000000": "orders",
  "orders none 6000000": "orders6",
  "orders none 20000000": "orders20",
  "orders lz4 2000000": "orders_lz4",
  "orders lz4 20000000": "orders20_lz4",
  "blob none 5000000": "blob5",
  "blob lz4 5000000": "blob5_lz4",
  "blob none 500000": "blob",
  "blob lz4 500000": "blob_lz4",
};

/** Null: not here, with the reason said. */
export async function topicOf(
  o: BenchOptions,
  kind: Kind,
  codec: Codec,
  records: number,
): Promise<Topic | null> {
  if (o.bootstrap === null) return await ownBroker(o, kind, codec, records);
  const release = async () => {};
  const known = KNOWN[`${kind} ${codec} ${records}`];
  if (known !== undefined && (await sizeOf(o.bootstrap, known)) === records) {
    return { bootstrap: o.bootstrap, name: known, records, release };
  }
  const name = `twg-bench-${kind}-${codec}-${records}`;
  const size = await sizeOf(o.bootstrap, name);
  if (size === records) return { bootstrap: o.bootstrap, name, records, release };
  if (o.peer === null) {
    o.say(`SKIP ${kind} ${codec}: no topic ${name}, and without Go nothing to load it with`);
    return null;
  }
  // One that was cut short, or that somebody else is loading, is left alone.
  const fresh = size === null ? name : `${name}-${process.pid}-${Date.now()}`;
  await load(o, o.bootstrap, o.peer, fresh, kind, codec, records);
  return { bootstrap: o.bootstrap, name: fresh, records, release };
}

/** Above this many lines the file is sent again and again: the records repeat, their positions do not. */
const MOST_LINES = 1_000_000;

async function load(
  o: BenchOptions,
  bootstrap: string,
  peer: string,
  name: string,
  kind: Kind,
  codec: Codec,
  records: number,
): Promise<void> {
  const lines = Math.min(records, MOST_LINES);
  o.say(`loading ${records} records into ${name}`);
  const path = join(tmpdir(), `twg-bench-${process.pid}.jsonl`);
  const draw = new Draw();
  const out = Bun.file(path).writer({ highWaterMark: 1 << 20 });
  for (let i = 0; i < lines; i++) {
    out.write(`${line(kind, draw, i)}\n`);
    if (i % 10_000 === 0) await out.flush();
  }
  await out.end();
  try {
    await runProcess([
      peer,
      "produce",
      bootstrap,
      name,
      path,
      String(PARTITIONS),
      codec,
      String(records / lines),
    ]);
  } finally {
    rmSync(path);
  }
}

async function ownBroker(o: BenchOptions, kind: Kind, codec: Codec, records: number): Promise<Topic | null> {
  if (kind !== "orders") {
    o.say(`SKIP ${kind} ${codec}: needs a real broker (--bootstrap)`);
    return null;
  }
  o.say("no real broker (--bootstrap): this project's own serves the records, its speed is in the figures");
  const options = ["--topic", kind, "--partitions", String(PARTITIONS), "--records", String(records)];
  const served = await serveProcess(
    [process.execPath, "test/brokers/kafka/serve.ts", "--port", "0", ...options, "--compression", codec],
    /^ready /,
  );
  const bootstrap = /\S+:\d+/.exec(served.line)?.[0] ?? "";
  return { bootstrap, name: kind, records, release: () => served.stop() };
}

/** Records in the topic; null if there is none of that name. */
async function sizeOf(bootstrap: string, topic: string): Promise<number | null> {
  const spec = kafkaSourceSpec.parse({ bootstrap: [bootstrap], topics: [topic], topic_wait_ms: 0 });
  const parts = {
    net: createNet(systemClock),
    clock: systemClock,
    chance: systemChance,
    crypto: systemSaslCrypto,
  };
  const source = new KafkaSource(kafkaSettings(spec as Resolved<typeof spec>, "bench"), parts);
  const host = new LookingHost();
  const run = source.run(host);
  try {
    await Promise.race([host.seen, run]);
    return host.records;
  } catch (e) {
    const failure = asFailure(e);
    if (failure.code === "kafka.unknown_topic") return null;
    throw failure;
  } finally {
    await source.close();
    await run.catch(() => {});
  }
}

/** Begins nothing: it only wants to know what is there. */
class LookingHost implements SourceHost {
  readonly lanes = 1;
  records = 0;
  readonly #seen = Promise.withResolvers<void>();
  readonly seen = this.#seen.promise;

  async begin(found: readonly FoundStream[]): Promise<readonly StreamStart[]> {
    for (const f of found) this.records += Number(f.latest - f.earliest);
    this.#seen.resolve();
    return [];
  }

  room = () => 0;
  whenRoom(): void {}
  takeBuffer = (bytes: number) => new ArrayBuffer(bytes);
  giveBuffer(): void {}
  deliver(): void {}
  watermark(): void {}
  healthy(): void {}
  troubled(): void {}
  async lost(): Promise<void> {}
  awaited(): void {}
  async release(): Promise<void> {}

  async abandon(): Promise<void> {}

  async gone(): Promise<void> {}
}
