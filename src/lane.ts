/** Entry of a lane's Worker: builds the lane from the first message, then hands every further one to it. */
import { libduckdbPath, loadRuntime } from "./adapters/duckdb/embedded.ts";
import { loadNative } from "./adapters/duckdb/native.ts";
import { createFrameDecoder } from "./adapters/kafka/wire/records/frame-decoder.ts";
import type { LaneInit } from "./adapters/lanes/worker-host.ts";
import { systemClock } from "./adapters/system/clock.ts";
import type { BatchLaneInit, BatchThread, CutterInit } from "./commands/batch-lane.ts";
import { laneBranches } from "./commands/lane-branches.ts";
import type { LaneConfig, RenewSink } from "./commands/lane-config.ts";
import { rawWriter } from "./commands/lane-writers.ts";
import { asFailure, toWire } from "./core/failure/failure.ts";
import { Lane } from "./core/pipeline/lane.ts";
import type { FromLane, ToLane } from "./core/ports/lane.ts";

declare const self: Worker;

const post = (message: FromLane, transfer: ArrayBuffer[] = []) => self.postMessage(message, transfer);

let lane: Lane | null = null;
let renew: (message: RenewSink) => void = () => {};

function build(init: LaneInit<LaneConfig>): Lane {
  const { config } = init;
  loadRuntime();
  const codecs = loadNative(libduckdbPath());
  const instance = `${config.instance}-l${init.lane}`;
  const { sink } = config;
  let serial = 0;
  const { writer, renew: renewed } = rawWriter(sink, instance, codecs);
  const branches = laneBranches(config, init.lane, instance, codecs, () => lane?.isOpen ?? false, post);
  renew = (message) => {
    renewed(message.sink);
    branches?.renew(message.branches);
  };
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
    ...(branches === null ? {} : { branches }),
  });
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
    renew(message);
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
