/** Sends batches to a real broker byte by byte as a test builds them: what no client library would produce. */
import { type ClientOptions, CONTROL, KafkaClient } from "../../src/adapters/kafka/client.ts";
import { errorName } from "../../src/adapters/kafka/wire/errors.ts";
import { createNet } from "../../src/adapters/net/net.ts";
import { systemChance } from "../../src/adapters/system/chance.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { systemSaslCrypto } from "../../src/adapters/system/sasl-crypto.ts";
import type { Served } from "./real-kafka.ts";

const parts = {
  net: createNet(systemClock),
  clock: systemClock,
  chance: systemChance,
  crypto: systemSaslCrypto,
};

/** Appends the batch to partition 0 and gives the broker's error name, `NONE` if it took it. */
export async function produceRaw(served: Served, topic: string, batch: Uint8Array): Promise<string> {
  const bootstrap = served.plain.map((b) => {
    const [host = "", port = "0"] = b.split(":");
    return { host, port: Number(port) };
  });
  const options: ClientOptions = {
    bootstrap,
    clientId: "twg-e2e",
    version: "0",
    tls: null,
    sasl: null,
    dialTimeoutMs: 5_000,
    requestTimeoutMs: 20_000,
    maxResponseBytes: 1 << 24,
  };
  const client = new KafkaClient(options, parts);
  const signal = new AbortController().signal;
  try {
    await client.refresh([topic], signal);
    const { leader } = client.metadata.leader(topic, 0);
    const link = await client.link(leader, CONTROL, signal);
    const partitionData = [{ index: 0, records: batch }];
    const topicData = [{ name: topic, topicId: client.metadata.idOf(topic), partitionData }];
    const response = await client.ask(link, "Produce", { acks: -1, timeoutMs: 10_000, topicData }, signal);
    return errorName(response.responses[0]?.partitionResponses[0]?.errorCode ?? -1);
  } finally {
    client.close();
  }
}
