/** Entry of a lane's Worker: builds the lane from the first message, then hands every further one to it. */
import { libduckdbPath, loadRuntime } from "./adapters/duckdb/embedded.ts";
import { loadNative } from "./adapters/duckdb/native.ts";
import { KafkaWriter } from "./adapters/kafka/sink/writer.ts";
import { createFrameDecoder } from "./adapters/kafka/wire/records/frame-decoder.ts";
import type { LaneInit } from "./adapters/lanes/worker-host.ts";
import { createNet } from "./adapters/net/net.ts";
import { ParquetWriter } from "./adapters/parquet/writer.ts";
import { PostgresWriter } from "./adapters/postgres/writer.ts";
import { systemChance } from "./adapters/system/chance.ts";
import { systemClock } from "./adapters/system/clock.ts";
import { systemSaslCrypto } from "./adapters/system/sasl-crypto.ts";
import type { BatchLaneInit, BatchThread, CutterInit } from "./commands/batch-lane.ts";
import { crashHook } from "./commands/crash-hook.ts";
import type { LaneConfig, LaneSink, RenewSink } from "./commands/lane-config.ts";
import { openLaneStore } from "./commands/lane-store.ts";
import type { Codecs } from "./core/compression/codec.ts";
import { asFailure, toWire } from "./core/failure/failure.ts";
import { Lane } from "./core/pipeline/lane.ts";
import type { FromLane, ToLane } from "./core/ports/lane.ts";
import type { RawWriter } from "./core/ports/lane-parts.ts";

declare const self: Worker;

const post = (message: FromLane, transfer: ArrayBuffer[] = []) => self.postMessage(message, transfer);

let lane: Lane | null = null;
let renew: (sink: LaneSink) => void = () => {};

function build(init: LaneInit<LaneConfig>): Lane {
  const { config } = init;
  loadRuntime();
  const codecs = loadNative(libduckdbPath());
  const instance = `${config.instance}-l${init.lane}`;
  const { sink } = config;
  let serial = 0;
  const { writer, renew: renewed } = rawWriter(sink, instance, codecs);
  renew = renewed;
  return new Lane({
    lane: init.lane,
    rollBytes: sink.rollBytes,
    rollIntervalMs: sink.rollIntervalMs,
    clock: systemClock,
    decoder: createFrameDecoder({
      codecs,
      maxDecompressedBytes: config.maxDecompressedBytes,
      maxRows: config.batchRows,
      maxBytes: config.batchBytes,
    }),
    writer,
    newSetId: () => `${instance}-${serial++}`,
    post,
  });
}

interface OpenedWriter {
  readonly writer: RawWriter;
  /** Takes over secrets that were read again. */
  renew(sink: LaneSink): void;
}

function rawWriter(sink: LaneSink, instance: string, codecs: Codecs): OpenedWriter {
  switch (sink.kind) {
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
      const hook = crashHook(sink.crashAt);
      const writer = new KafkaWriter(sink.writer, {
        net: createNet(systemClock),
        clock: systemClock,
        crypto: systemSaslCrypto,
        chance: systemChance,
        codecs,
        writer: instance,
        ...(hook === null ? {} : { hook }),
      });
      return {
        writer,
        renew: (renewed) => {
          if (renewed.kind === "kafka") writer.renew(renewed.writer.settings);
        },
      };
    }
  }
}

/** Threads of batch jobs load what they need themselves, so that a streaming lane does not. */
let batch: Promise<BatchThread> | null = null;

self.onmessage = (
  e: MessageEvent<LaneInit<LaneConfig> | ToLane | RenewSink | BatchLaneInit | CutterInit>,
) => {
  const message = e.data;
  if (message.t === "batch" || message.t === "cutter") {
    loadRuntime();
    batch = import("./commands/batch-lane.ts").then((m) =>
      m.batchThread(message, (out, transfer = []) => self.postMessage(out, transfer)),
    );
    batch.catch((error) => post({ t: "dead", failure: toWire(asFailure(error)) }));
    return;
  }
  if (batch !== null) {
    void batch.then(
      (b) => b.receive(message as never),
      () => {},
    );
    return;
  }
  if (message.t === "renew") {
    renew(message.sink);
    return;
  }
  if (message.t !== "init") {
    lane?.receive(message);
    return;
  }
  try {
    lane = build(message);
    post({ t: "ready" });
  } catch (error) {
    post({ t: "dead", failure: toWire(asFailure(error)) });
  }
};
