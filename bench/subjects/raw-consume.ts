/**
 * Raw consume with the real Kafka source on this thread and the real frame decoder in a Worker, as in `twg`; what
 * the lane gets is counted and thrown away. Stands beside bench/peers/franz-go and prints the like.
 *
 *   bun bench/subjects/raw-consume.ts BOOTSTRAP TOPIC COUNT [GROUP] [--hash]
 *
 * With GROUP it is a member of that group, alone in it. BENCH_HASH=1 stands for --hash.
 */
import { parseArgs } from "node:util";
import { kafkaSettings } from "../../src/adapters/kafka/settings.ts";
import { KafkaSource } from "../../src/adapters/kafka/source.ts";
import { kafkaSourceSpec } from "../../src/adapters/kafka/spec.ts";
import { createNet } from "../../src/adapters/net/net.ts";
import { systemChance } from "../../src/adapters/system/chance.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { systemSaslCrypto } from "../../src/adapters/system/sasl-crypto.ts";
import type { Resolved } from "../../src/core/config/secret.ts";
import { Budget } from "../../src/core/delivery/budget.ts";
import { BufferPool } from "../../src/core/pipeline/buffer-pool.ts";
import type { FoundStream, SourceHost, StreamStart } from "../../src/core/ports/source.ts";
import type { FrameBundle } from "../../src/core/records/frame.ts";
import type { StreamId } from "../../src/core/records/stream.ts";
import type { LaneResult, LaneWork } from "./raw-lane.ts";

/** `pipeline.max_bytes` as it is by default. */
const MAX_BYTES = 64 * 1024 * 1024;

/** A Worker with the decoder, as in `twg`. */
function spawnLane(): Worker {
  const embedded = new URL(import.meta.url).pathname.startsWith("/$bunfs/");
  const worker = new Worker(
    embedded ? "./bench/subjects/raw-lane.ts" : new URL("./raw-lane.ts", import.meta.url),
  );
  worker.addEventListener("error", (e) => {
    console.error(e.message);
    process.exit(1);
  });
  return worker;
}

class CountingHost implements SourceHost {
  readonly lanes = 1;
  records = 0;
  valueBytes = 0;
  hash = 0n;
  /** When the first record was decoded, ms of performance.now(). */
  first = 0;
  readonly done: Promise<void>;
  readonly #want: number;
  readonly #hashed: boolean;
  readonly #budget = new Budget({ maxBytes: MAX_BYTES, owners: [0] });
  readonly #buffers = new BufferPool(MAX_BYTES / 2);
  readonly #worker = spawnLane();
  readonly #streams: StreamId[] = [];
  readonly #finish: () => void;

  constructor(want: number, hashed: boolean) {
    this.#want = want;
    this.#hashed = hashed;
    this.#worker.addEventListener("message", (e: MessageEvent<LaneResult>) => this.#decoded(e.data));
    const { promise, resolve } = Promise.withResolvers<void>();
    this.done = promise;
    this.#finish = resolve;
  }

  async begin(found: readonly FoundStream[]): Promise<readonly StreamStart[]> {
    return found.map(({ transport, cluster, topic, partition, earliest }) => {
      const id = { transport, cluster, topic, partition, incarnation: 0 };
      return { id, stream: this.#streams.push(id) - 1, lane: 0, position: earliest, attempt: 0 };
    });
  }

  room = () => this.#budget.room(0);
  awaited(): void {}
  async release(): Promise<void> {}

  async abandon(): Promise<void> {}

  async gone(): Promise<void> {}
  whenRoom = (_lane: number, wake: () => void) => this.#budget.whenRoom(0, wake);
  takeBuffer = (bytes: number) => this.#buffers.take(bytes);
  giveBuffer = (buffer: ArrayBuffer) => this.#buffers.give(buffer);

  deliver(_lane: number, bundle: FrameBundle): void {
    this.#budget.take(0, bundle.buffer.byteLength);
    const work: LaneWork = { bundle, streams: this.#streams, hashed: this.#hashed };
    this.#worker.postMessage(work, [bundle.buffer]);
  }

  #decoded({ buffer, records, valueBytes, hash }: LaneResult): void {
    if (this.records === 0 && records > 0) this.first = performance.now();
    this.records += records;
    this.valueBytes += valueBytes;
    this.hash += hash;
    this.#budget.give(0, buffer.byteLength);
    this.#buffers.give(buffer);
    if (this.records >= this.#want) this.#finish();
  }

  watermark(): void {}
  healthy(): void {}
  async lost(): Promise<void> {}

  troubled(failure: Error): void {
    console.error(failure.message);
  }
}

const { values: flags, positionals } = parseArgs({
  options: { hash: { type: "boolean", default: false } },
  allowPositionals: true,
});
const [bootstrap, topic, count, group] = positionals;
if (bootstrap === undefined || topic === undefined || count === undefined) {
  console.error("usage: raw-consume.ts BOOTSTRAP TOPIC COUNT [GROUP] [--hash]");
  process.exit(2);
}
const membership = group === undefined ? {} : { group, group_protocol: "classic" };
const spec = kafkaSourceSpec.parse({ bootstrap: [bootstrap], topics: [topic], ...membership });
const host = new CountingHost(Number(count), flags.hash || process.env["BENCH_HASH"] === "1");
const parts = {
  net: createNet(systemClock),
  clock: systemClock,
  chance: systemChance,
  crypto: systemSaslCrypto,
};
const before = process.cpuUsage();
const begin = performance.now();
const source = new KafkaSource(kafkaSettings(spec as Resolved<typeof spec>, "bench"), parts);
const run = source.run(host);
await Promise.race([host.done, run]);
const seconds = (performance.now() - begin) / 1000;
await source.close();
await run;
console.log(
  JSON.stringify({
    records: host.records,
    bytes: host.valueBytes,
    first: (host.first - begin) / 1000,
    seconds,
    startup_cpu: (before.user + before.system) / 1e6,
    hash: host.hash.toString(16).padStart(16, "0"),
  }),
);
process.exit(0);
