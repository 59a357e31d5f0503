/**
 * A batch job on the caller's thread: the product's runner, cutter and lanes over real files, with whatever sink a test gives it. A set is a
 * piece of a file, and a piece some rows.
 */
import { isUtf8 } from "node:buffer";
import { libduckdbPath } from "../../src/adapters/duckdb/embedded.ts";
import { nativeOnDemand } from "../../src/adapters/duckdb/native.ts";
import { BLOCK_BYTES, digestOf, hashRange } from "../../src/adapters/files/blocks.ts";
import { Cutter } from "../../src/adapters/files/cutter.ts";
import { openLocalFile } from "../../src/adapters/files/file-bytes.ts";
import { decoderOf } from "../../src/commands/batch-lane.ts";
import type { BatchPlan } from "../../src/commands/batch-plan.ts";
import type { CommitListener, SetCommitter } from "../../src/core/delivery/committer.ts";
import { AvroDecoders } from "../../src/core/pipeline/avro-rows.ts";
import { BatchRunner } from "../../src/core/pipeline/batch-runner.ts";
import { RowLane } from "../../src/core/pipeline/row-lane.ts";
import type { FromBatchLane, FromCutter, TableSpec } from "../../src/core/ports/batch-lane.ts";
import type { StreamCoverage } from "../../src/core/ports/coverage.ts";
import type { TableSink } from "../../src/core/ports/table-sink.ts";
import type { Clock } from "../../src/core/time/clock.ts";

const PIECE_BYTES = 16;
const LANES = 2;
const MAX_REJECTS = 10;
const NEVER_MS = 1e9;

export interface JobSink {
  readonly clock: Clock;
  readonly coverage: StreamCoverage;
  readonly committer: (listener: CommitListener) => SetCommitter;
  readonly tableSink: (lane: number) => TableSink;
  /** The server may refuse rows. */
  readonly refusing: boolean;
}

export const tableOf = ({ schema }: BatchPlan): TableSpec => ({
  ...{ schema, metadata: "none", prefix: "_twg_", pipeline: "p", ranked: false },
});

export function batchJob(plan: BatchPlan, sink: JobSink): BatchRunner {
  const avro = {
    ...{ isUtf8: (b: Uint8Array) => isUtf8(b), maxBlockBytes: 1 << 20 },
    codecs: nativeOnDemand(libduckdbPath()),
    decoders: new AvroDecoders((b) => isUtf8(b)),
  };
  const laneOf = (lane: number, post: (m: FromBatchLane) => void) => {
    let sets = 0;
    return new RowLane(
      {
        ...{ lane, table: tableOf(plan), groupBytes: 1, rollBytes: 1 },
        ...{ refusing: sink.refusing, maxRejects: MAX_REJECTS },
      },
      {
        ...{ clock: sink.clock, sink: sink.tableSink(lane), hash: hashRange, post },
        newSetId: () => `l${lane}-${sets++}`,
        decoderOf: (work, { schema }) => decoderOf(work, schema, avro),
        readRange: () => Promise.reject(new Error("no row groups here")),
      },
    );
  };
  return new BatchRunner(
    plan.works,
    {
      ...{
        sink: "raw",
        lanes: LANES,
        credits: 2 * LANES + 1,
        heartbeatMs: NEVER_MS,
        maxRejects: MAX_REJECTS,
      },
      ...{ ranked: false, blockBytes: BLOCK_BYTES },
      columnsOf: ({ layout }) => (layout.format === "csv" ? layout.columns.length : 0),
    },
    {
      ...{ clock: sink.clock, coverage: sink.coverage, committer: sink.committer, digestOf },
      sweep: async () => {},
      spawnLane: (lane) => hosted((post: (m: FromBatchLane) => void) => laneOf(lane, post)),
      spawnCutter: () =>
        hosted(
          (post: (m: FromCutter) => void) =>
            new Cutter({ pieceBytes: PIECE_BYTES, maxRecordBytes: 1 << 16 }, openLocalFile, post),
        ),
      observer: { emit: () => {} },
      onSample: () => {},
    },
  );
}

/** Messages are handed over by a queued job, as threads do. */
function hosted<To, From>(build: (post: (m: From) => void) => { receive(m: To): void }) {
  let handler: (m: From) => void = () => {};
  let dead = false;
  const end = build((m) => queueMicrotask(() => void (dead || handler(m))));
  return {
    post: (m: To) => queueMicrotask(() => void (dead || end.receive(m))),
    onMessage: (h: (m: From) => void) => {
      handler = h;
    },
    kill: () => {
      dead = true;
    },
  };
}
