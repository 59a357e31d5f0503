/** A producer of ours on a real cluster. */
import { libduckdbPath } from "../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../src/adapters/duckdb/native.ts";
import { type ClientOptions, KafkaClient } from "../../src/adapters/kafka/client.ts";
import type { ProducerOptions } from "../../src/adapters/kafka/producer/options.ts";
import { KafkaProducer } from "../../src/adapters/kafka/producer/producer.ts";
import { createNet } from "../../src/adapters/net/net.ts";
import { systemChance } from "../../src/adapters/system/chance.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { systemSaslCrypto } from "../../src/adapters/system/sasl-crypto.ts";

const parts = {
  net: createNet(systemClock),
  clock: systemClock,
  chance: systemChance,
  crypto: systemSaslCrypto,
};
const codecs = loadNative(libduckdbPath());

export function realClient(bootstrap: readonly string[]): KafkaClient {
  const options: ClientOptions = {
    bootstrap: bootstrap.map((b) => {
      const [host = "", port = "0"] = b.split(":");
      return { host, port: Number(port) };
    }),
    clientId: "twg-e2e",
    version: "0",
    tls: null,
    sasl: null,
    dialTimeoutMs: 5_000,
    requestTimeoutMs: 20_000,
    maxResponseBytes: 1 << 24,
  };
  return new KafkaClient(options, parts);
}

export interface Opened {
  readonly producer: KafkaProducer;
  close(): Promise<void>;
}

/** A started producer with a client of its own. */
export async function realProducer(
  bootstrap: readonly string[],
  options: ProducerOptions,
  signal: AbortSignal,
): Promise<Opened> {
  const client = realClient(bootstrap);
  const producer = new KafkaProducer(client, options, { ...parts, codecs });
  await producer.start(signal);
  return {
    producer,
    close: async () => {
      await producer.close(signal).finally(() => client.close());
    },
  };
}
