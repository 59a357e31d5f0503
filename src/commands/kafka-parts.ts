/** What the Kafka client needs of the machine: network, time, chance, cryptography; for records, the codecs too. */
import { libduckdbPath } from "../adapters/duckdb/embedded.ts";
import { nativeOnDemand } from "../adapters/duckdb/native.ts";
import type { ClientParts } from "../adapters/kafka/client.ts";
import type { ConsumerParts } from "../adapters/kafka/consumer.ts";
import { createNet } from "../adapters/net/net.ts";
import { systemChance } from "../adapters/system/chance.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { systemSaslCrypto } from "../adapters/system/sasl-crypto.ts";

export function kafkaParts(): ClientParts {
  return {
    net: createNet(systemClock),
    clock: systemClock,
    chance: systemChance,
    crypto: systemSaslCrypto,
  };
}

/** With native compression where that works on this machine: for `KafkaProducer` and `KafkaConsumer`. */
export function kafkaRecordParts(): ConsumerParts {
  return { ...kafkaParts(), codecs: nativeOnDemand(libduckdbPath()) };
}
