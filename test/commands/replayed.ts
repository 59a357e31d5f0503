/** Raw files in a folder, read again as recovery does: the batches that a lane is given of them. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parquetMetadata } from "hyparquet";
import { fallbackCodecs } from "../../src/adapters/duckdb/native-fallback.ts";
import { parquetSinkSpec } from "../../src/adapters/parquet/spec.ts";
import type { SinkOf } from "../../src/commands/config-file.ts";
import { replayDecoder } from "../../src/commands/lane-replay.ts";
import { rawSets } from "../../src/commands/recover-sets.ts";
import type { IndexEntry } from "../../src/core/coverage/state.ts";
import type { Range } from "../../src/core/ports/coverage.ts";
import type { SourceHost } from "../../src/core/ports/source.ts";
import { copyBatch } from "../../src/core/records/copy-batch.ts";
import type { FrameBundle } from "../../src/core/records/frame.ts";
import type { RawBatch } from "../../src/core/records/raw-batch.ts";
import type { StreamId } from "../../src/core/records/stream.ts";
import { streamKey } from "../../src/core/records/stream.ts";
import { ReplayOrder } from "../../src/core/recovery/replay-order.ts";
import { type ReadSet, ReplaySource } from "../../src/core/recovery/replay-source.ts";

export interface Wanted {
  readonly stream: StreamId;
  readonly from: bigint;
  readonly next: bigint;
  /** Also in the set. */
  readonly others?: readonly StreamId[];
}

/** `written`: rows that each file is said to have, where they are not what it has. */
export async function replayedBatches(
  files: readonly Uint8Array[],
  { stream, from, next, others = [] }: Wanted,
  written?: number,
): Promise<RawBatch[]> {
  const folder = mkdtempSync(join(tmpdir(), "twg-recover-"));
  try {
    const targets = files.map((f, i) => {
      writeFileSync(join(folder, `${i}.parquet`), f);
      return {
        key: `${i}.parquet`,
        bytes: f.length,
        rows: written ?? Number(parquetMetadata(f.slice().buffer).num_rows),
      };
    });
    const options = parquetSinkSpec.parse({ path: folder });
    const sink = { ...options, type: "parquet", name: "raw" } as unknown as SinkOf<"parquet">;
    const spans = [stream, ...others].map((s) => ({ stream: streamKey(s), from, next }));
    const set = { id: "s", targets, spans, rows: 0, bytes: 0 };
    return await batchesOf(set, rawSets(sink), stream, { from, next });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** As the source gives them to a lane and its decoder reads them. */
export async function batchesOf(
  set: IndexEntry,
  read: ReadSet,
  id: StreamId,
  span: Range,
): Promise<RawBatch[]> {
  const order = new ReplayOrder([set], new Map([[streamKey(id), [span]]]));
  const source = new ReplaySource([{ id, span }], { order, read });
  const decoder = replayDecoder({
    inflate: fallbackCodecs,
    ...{ maxRows: 700, maxBytes: 10_000, rowGroupBytes: 1 << 20 },
  });
  const batches: RawBatch[] = [];
  const host = {
    begin: async () => [{ id, stream: 0, lane: 0, position: span.from, attempt: 0 }],
    healthy: () => {},
    room: () => 1,
    whenRoom: () => {},
    takeBuffer: (n: number) => new ArrayBuffer(n),
    giveBuffer: () => {},
    deliver: (_: number, { buffer, frames }: FrameBundle) => {
      for (const f of frames) {
        // What is emitted lives until the next batch.
        decoder.decode(new Uint8Array(buffer), f, id, 0, (b) => void batches.push(copyBatch(b)));
        if (f.next === span.next) void source.close();
      }
      source.consumed(buffer);
    },
  } as unknown as SourceHost;
  await source.run(host);
  return batches;
}
