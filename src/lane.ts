/** Entry of a lane's Worker: builds the lane from the first message, then hands every further one to it. */
import { libduckdbPath, loadRuntime } from "./adapters/duckdb/embedded.ts";
import { loadNative } from "./adapters/duckdb/native.ts";
import { createFrameDecoder } from "./adapters/kafka/wire/records/frame-decoder.ts";
import type { LaneInit } from "./adapters/lanes/worker-host.ts";
import { systemClock } from "./adapters/system/clock.ts";
import type { BatchLaneInit, BatchThread, CutterInit } from "./commands/batch-lane.ts";
import { type DecodeLaneOf, laneBranches } from "./commands/lane-branches.ts";
import type { LaneConfig, RenewSink } from "./commands/lane-config.ts";
import { type AnswerDedup, AskedDedup } from "./commands/lane-dedup-asks.ts";
import type { replayDecoder as ReplayDecoderOf_ } from "./commands/lane-replay.ts";
import { type AnswerSchema, AskedSchemas } from "./commands/lane-schemas.ts";
import { type AnswerTable, AskedTables } from "./commands/lane-tables.ts";
import { rawWriter } from "./commands/lane-writers.ts";
import { asFailure, toWire } from "./core/failure/failure.ts";
import { Lane } from "./core/pipeline/lane.ts";
import type { FromLane, ToLane } from "./core/ports/lane.ts";

declare const self: Worker;

const post = (message: FromLane, transfer: ArrayBuffer[] = []) => self.postMessage(message, transfer);

const schemas = new AskedSchemas((ask) => self.postMessage(ask));
const tables = new AskedTables((ask) => self.postMessage(ask));
const dedup = new AskedDedup((ask) => self.postMessage(ask));

let lane: Lane | null = null;
let renew: (message: RenewSink) => void = () => {};

function build(
  init: LaneInit<LaneConfig>,
  decodeLane: DecodeLaneOf | null,
  replayDecoder: ReplayDecoderOf | null,
): Lane {
  const { config } = init;
  loadRuntime();
  const codecs = loadNative(libduckdbPath());
  const instance = `${config.instance}-l${init.lane}`;
  const { sink } = config;
  let serial = 0;
  const { writer, renew: renewed } = rawWriter(sink, instance, codecs);
  const branches = laneBranches(
    config,
    {
      ...{ lane: init.lane, instance, codecs, post },
      primaryOpen: () => lane?.isOpen ?? false,
      schema: (topic, ref, inferred, part) => schemas.schema(topic, ref, inferred, part),
      register: (schema) => schemas.register(schema),
      grow: (fields) => tables.grow(fields),
      dedup: config.dedup === null ? null : { options: config.dedup, asks: dedup },
    },
    decodeLane,
  );
  renew = (message) => {
    renewed(message.sink);
    branches?.renew(message.branches);
  };
  const { batchRows: maxRows, batchBytes: maxBytes } = config;
  const replayed =
    sink.kind === "replay"
      ? replayDecoder?.({ inflate: codecs, maxRows, maxBytes, rowGroupBytes: sink.rowGroupBytes })
      : null;
  return new Lane({
    lane: init.lane,
    rollBytes: sink.rollBytes,
    rollIntervalMs: sink.rollIntervalMs,
    clock: systemClock,
    decoder:
      replayed ??
      createFrameDecoder({
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

type ReplayDecoderOf = typeof ReplayDecoderOf_;

/** Threads of batch jobs load what they need themselves, so that a streaming lane does not. */
let batch: Promise<BatchThread> | null = null;

self.onmessage = (
  e: MessageEvent<
    | LaneInit<LaneConfig>
    | ToLane
    | RenewSink
    | AnswerSchema
    | AnswerTable
    | AnswerDedup
    | BatchLaneInit
    | CutterInit
  >,
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
  if (message.t === "schema") {
    schemas.answered(message);
    return;
  }
  if (message.t === "table") {
    tables.answered(message);
    return;
  }
  if (message.t === "dedup") {
    dedup.answered(message);
    return;
  }
  if (message.t === "renew") {
    renew(message);
    return;
  }
  if (message.t !== "init") {
    if (lane !== null || starting === null) lane?.receive(message);
    else void starting.then(() => lane?.receive(message));
    return;
  }
  starting = start(message);
};

/** Until then messages wait, in their order. */
let starting: Promise<void> | null = null;

async function start(init: LaneInit<LaneConfig>): Promise<void> {
  try {
    const decode = init.config.decode === null ? null : await import("./commands/lane-decode.ts");
    const replay = init.config.sink.kind === "replay" ? await import("./commands/lane-replay.ts") : null;
    lane = build(init, decode?.decodeLane ?? null, replay?.replayDecoder ?? null);
    post({ t: "ready" });
  } catch (error) {
    post({ t: "dead", failure: toWire(asFailure(error)) });
  }
}
