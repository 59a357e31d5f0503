/** Entry of a lane's Worker: builds the lane from the first message, then hands every further one to it. */
import { libduckdbPath, loadRuntime } from "./adapters/duckdb/embedded.ts";
import { loadNative } from "./adapters/duckdb/native.ts";
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
import type { LaneConfig, LaneSink } from "./commands/lane-config.ts";
import { openLaneStore } from "./commands/lane-store.ts";
import type { Codecs } from "./core/compression/codec.ts";
import { asFailure, toWire } from "./core/failure/failure.ts";
import { Lane } from "./core/pipeline/lane.ts";
import type { FromLane, ToLane } from "./core/ports/lane.ts";
import type { RawWriter } from "./core/ports/lane-parts.ts";

declare const self: Worker;

const post = (message: FromLane, transfer: ArrayBuffer[] = []) => self.postMessage(message, transfer);

let lane: Lane | null = null;

function build(init: LaneInit<LaneConfig>): Lane {
  const { config } = init;
  loadRuntime();
  const codecs = loadNative(libduckdbPath());
  const instance = `${config.instance}-l${init.lane}`;
  const { sink } = config;
  let serial = 0;
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
    writer: rawWriter(sink, instance, codecs),
    newSetId: () => `${instance}-${serial++}`,
    post,
  });
}

function rawWriter(sink: LaneSink, instance: string, codecs: Codecs): RawWriter {
  switch (sink.kind) {
    case "parquet": {
      const store = openLaneStore(sink.store, instance);
      return new ParquetWriter(sink.writer, { store, codecs, clock: systemClock });
    }
    case "postgres": {
      const hook = crashHook(sink.crashAt);
      return new PostgresWriter(sink.writer, {
        net: createNet(systemClock),
        clock: systemClock,
        crypto: systemSaslCrypto,
        chance: systemChance,
        writer: instance,
        ...(hook === null ? {} : { hook }),
      });
    }
  }
}

/** Threads of batch jobs load what they need themselves, so that a streaming lane does not. */
let batch: Promise<BatchThread> | null = null;

self.onmessage = (e: MessageEvent<LaneInit<LaneConfig> | ToLane | BatchLaneInit | CutterInit>) => {
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
