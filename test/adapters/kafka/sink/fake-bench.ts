/** The test cluster in simulated time as the ground of a Kafka sink. */
import { libduckdbPath } from "../../../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../../../src/adapters/duckdb/native.ts";
import { KafkaClient } from "../../../../src/adapters/kafka/client.ts";
import type { KafkaSinkSettings } from "../../../../src/adapters/kafka/sink/settings.ts";
import { scanBatches } from "../../../../src/adapters/kafka/source-scan.ts";
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import { createFrameDecoder } from "../../../../src/adapters/kafka/wire/records/frame-decoder.ts";
import { systemSaslCrypto } from "../../../../src/adapters/system/sasl-crypto.ts";
import type { Clock } from "../../../../src/core/time/clock.ts";
import { FakeCluster } from "../../../brokers/kafka/cluster.ts";
import { memoryNet } from "../../../brokers/kafka/memory-net.ts";
import { committedValues } from "../../../contract/committed-values.ts";
import { MOST_BYTES, type SinkBench } from "../../../contract/kafka-sink-contract.ts";
import { SeededChance } from "../../../sim/chance.ts";
import { SimTime } from "../../../sim/clock.ts";

const codecs = loadNative(libduckdbPath());

const COMPACTED = "compacted";

/** As brokers do for a topic with cleanup.policy=compact. */
function keysAreThere(batch: Uint8Array): number {
  let nulls = 0;
  const place = { stream: 0, attempt: 0, from: 0n, start: 0, ...scanBatches(batch) };
  const id = { transport: "kafka", cluster: "", topic: COMPACTED, incarnation: 0, partition: 0 } as const;
  createFrameDecoder({ codecs }).decode(
    batch,
    { ...place, aborted: [], committedOnly: false },
    id,
    0,
    ({ key }) => {
      nulls += key.nullCount;
    },
  );
  return nulls > 0 ? ERROR.INVALID_RECORD : 0;
}

export class FakeSinkBench implements SinkBench {
  readonly pipeline = "p";
  readonly target = "copy.orders";
  readonly settings: KafkaSinkSettings;
  readonly time = new SimTime();
  readonly clock: Clock;
  readonly chance: SeededChance;
  readonly cluster: FakeCluster;

  constructor(seed: number) {
    this.clock = this.time.clock(null);
    this.chance = new SeededChance(seed);
    this.cluster = new FakeCluster({ clock: this.clock, brokers: 2, clusterId: "sink" });
    this.cluster.createTopic(this.target, { partitions: 4 });
    this.cluster.maxBatchBytes = MOST_BYTES;
    this.cluster.validates = (topic, batch) => (topic === COMPACTED ? keysAreThere(batch) : 0);
    this.settings = {
      bootstrap: this.cluster.brokers.map(({ host, port }) => ({ host, port })),
      clientId: "test",
      version: "0",
      tls: null,
      sasl: null,
      dialTimeoutMs: 1_000,
      requestTimeoutMs: 3_000,
      maxResponseBytes: 1 << 24,
      connectTimeoutMs: 5_000,
    };
  }

  client(): KafkaClient {
    return new KafkaClient(this.settings, this.parts());
  }

  parts() {
    const { clock } = this;
    const chance = this.chance.fork();
    return {
      net: memoryNet(this.cluster, { clock, chance }),
      clock,
      chance,
      crypto: systemSaslCrypto,
      codecs,
    };
  }

  async run<T>(work: Promise<T>): Promise<T> {
    let settled = false;
    const noted = work.finally(() => {
      settled = true;
    });
    noted.catch(() => {});
    if (!(await this.time.runUntil(() => settled, this.time.nowMs + 600_000)))
      throw new Error("it never settled");
    return noted;
  }

  /** No end of a lane's transaction is answered any more, carried out (`arrives`) or not. */
  loseEndTxn(arrives: boolean): void {
    this.cluster.script.on({
      api: "EndTxn",
      times: 1_000,
      when: (r) => r.api === "EndTxn" && !r.body.transactionalId.endsWith(".coverage"),
      action: { do: "drop", when: arrives ? "after" : "before" },
    });
  }

  heal(): void {
    this.cluster.script.clear();
  }

  async compacted(): Promise<string> {
    this.cluster.createTopic(COMPACTED, { partitions: 1 });
    return COMPACTED;
  }

  values(topic = this.target, partitions = 4): Promise<readonly string[]> {
    return this.run(committedValues(this.client(), topic, partitions, codecs));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
