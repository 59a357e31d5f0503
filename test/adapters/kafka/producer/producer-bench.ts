/** A producer of ours and the test cluster in simulated time: a seed replays a run. What is in the logs is the judge. */
import { libduckdbPath } from "../../../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../../../src/adapters/duckdb/native.ts";
import { KafkaClient } from "../../../../src/adapters/kafka/client.ts";
import type { ProducerOptions } from "../../../../src/adapters/kafka/producer/options.ts";
import { KafkaProducer } from "../../../../src/adapters/kafka/producer/producer.ts";
import { systemSaslCrypto } from "../../../../src/adapters/system/sasl-crypto.ts";
import type { Clock } from "../../../../src/core/time/clock.ts";
import { type ClusterOptions, FakeCluster } from "../../../brokers/kafka/cluster.ts";
import { memoryNet } from "../../../brokers/kafka/memory-net.ts";
import { SeededChance } from "../../../sim/chance.ts";
import { SimTime } from "../../../sim/clock.ts";

const codecs = loadNative(libduckdbPath());
const TRANSACTIONAL = 16;
const CONTROL = 32;

export class ProducerBench {
  readonly time = new SimTime();
  readonly clock: Clock;
  readonly chance: SeededChance;
  readonly cluster: FakeCluster;
  readonly signal = new AbortController().signal;

  constructor(seed: number, cluster: Omit<ClusterOptions, "clock"> = {}) {
    this.clock = this.time.clock(null);
    this.chance = new SeededChance(seed);
    this.cluster = new FakeCluster({ ...cluster, clock: this.clock });
    this.cluster.createTopic("t", { partitions: 3 });
  }

  client(): KafkaClient {
    const chance = this.chance.fork();
    return new KafkaClient(
      {
        bootstrap: this.cluster.brokers.map(({ host, port }) => ({ host, port })),
        clientId: "test",
        version: "0",
        tls: null,
        sasl: null,
        dialTimeoutMs: 1_000,
        requestTimeoutMs: 3_000,
        maxResponseBytes: 1 << 20,
      },
      {
        net: memoryNet(this.cluster, { clock: this.clock, chance }),
        clock: this.clock,
        chance,
        crypto: systemSaslCrypto,
      },
    );
  }

  producer(options: ProducerOptions = {}): KafkaProducer {
    return new KafkaProducer(this.client(), options, {
      clock: this.clock,
      chance: this.chance.fork(),
      codecs,
    });
  }

  /** Lets simulated time pass until the promise is settled. */
  async run<T>(work: Promise<T>, limitMs = 600_000): Promise<T> {
    let settled = false;
    const noted = work.finally(() => {
      settled = true;
    });
    noted.catch(() => {});
    if (!(await this.time.runUntil(() => settled, this.time.nowMs + limitMs)))
      throw new Error("it never settled");
    return noted;
  }

  /** Texts `<...>` in the values of a partition's log, in its order; those of aborted transactions are left out. */
  texts(partition: number, topic = "t"): string[] {
    const { log } = this.cluster.partition(topic, partition);
    return log.entries.flatMap(({ bytes, base }) => {
      const view = new DataView(bytes.buffer, bytes.byteOffset);
      const attributes = view.getInt16(21);
      const producerId = view.getBigInt64(43);
      const aborted = log.aborted.some(
        (a) => a.producerId === producerId && base >= a.firstOffset && base <= a.lastOffset,
      );
      if ((attributes & CONTROL) !== 0 || ((attributes & TRANSACTIONAL) !== 0 && aborted)) return [];
      return (
        Buffer.from(bytes.subarray(61))
          .toString("latin1")
          .match(/<[a-z-]*\d+>/g) ?? []
      );
    });
  }
}
