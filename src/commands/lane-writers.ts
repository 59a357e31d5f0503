/** The writers of a lane's sinks, from what the lane was told of them. */

import { LaneTransactions } from "../adapters/kafka/sink/lane-transactions.ts";
import { KafkaWriter } from "../adapters/kafka/sink/writer.ts";
import { createNet } from "../adapters/net/net.ts";
import { ParquetWriter } from "../adapters/parquet/writer.ts";
import { PostgresWriter } from "../adapters/postgres/writer.ts";
import { systemChance } from "../adapters/system/chance.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { systemSaslCrypto } from "../adapters/system/sasl-crypto.ts";
import type { Codecs } from "../core/compression/codec.ts";
import type { RawWriter } from "../core/ports/lane-parts.ts";
import { ReplayWriter } from "../core/recovery/replayed.ts";
import { crashHook } from "./crash-hook.ts";
import type { KafkaLaneSink, LaneSink } from "./lane-config.ts";
import { openLaneStore } from "./lane-store.ts";

export interface OpenedWriter {
  readonly writer: RawWriter;
  /** Takes over secrets that were read again. */
  renew(sink: LaneSink): void;
}

/** What the Kafka writers of a lane share; null for other sinks, whose writers share nothing. `life`: of the lane. */
export function laneTransactions(sink: LaneSink, life: string, codecs: Codecs): LaneTransactions | null {
  return sink.kind === "kafka" ? new LaneTransactions(sink.writer, kafkaParts(life, codecs)) : null;
}

function kafkaParts(life: string, codecs: Codecs) {
  return {
    net: createNet(systemClock),
    clock: systemClock,
    crypto: systemSaslCrypto,
    chance: systemChance,
    codecs,
    writer: life,
  };
}

/** Of one of its writers. */
export function kafkaWriterParts({ crashAt }: KafkaLaneSink, life: string, codecs: Codecs) {
  const hook = crashHook(crashAt);
  return { ...kafkaParts(life, codecs), ...(hook === null ? {} : { hook }) };
}

/** `transactions`: of `laneTransactions`; null: it has some of its own. */
export function rawWriter(
  sink: LaneSink,
  instance: string,
  codecs: Codecs,
  transactions: LaneTransactions | null = null,
): OpenedWriter {
  switch (sink.kind) {
    case "replay":
      return { writer: new ReplayWriter(sink.cuts), renew: () => {} };
    case "parquet": {
      const store = openLaneStore(sink.store, instance);
      return {
        writer: new ParquetWriter(sink.writer, { store: store.objects, codecs, clock: systemClock }),
        renew: (renewed) => {
          if (renewed.kind === "parquet") store.renew(renewed.store);
        },
      };
    }
    case "postgres": {
      const hook = crashHook(sink.crashAt);
      const writer = new PostgresWriter(sink.writer, {
        net: createNet(systemClock),
        clock: systemClock,
        crypto: systemSaslCrypto,
        chance: systemChance,
        writer: instance,
        ...(hook === null ? {} : { hook }),
      });
      return {
        writer,
        renew: (renewed) => {
          if (renewed.kind === "postgres") writer.renew(renewed.writer.settings);
        },
      };
    }
    case "kafka": {
      const parts = kafkaWriterParts(sink, instance, codecs);
      const lane = transactions ?? new LaneTransactions(sink.writer, parts);
      const writer = new KafkaWriter(sink.writer, parts, lane);
      return {
        writer,
        renew: (renewed) => {
          if (renewed.kind === "kafka") lane.renew(renewed.writer.settings);
        },
      };
    }
  }
}
