/** Raw files in a folder, read again as recovery does: the batches that a lane is given of them. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parquetMetadata } from "hyparquet";
import { parquetSinkSpec } from "../../src/adapters/parquet/spec.ts";
import type { SinkOf } from "../../src/commands/config-file.ts";
import { replayDecoder } from "../../src/commands/lane-replay.ts";
import { rawSets } from "../../src/commands/recover-sets.ts";
import type { RawBatch } from "../../src/core/records/raw-batch.ts";
import type { StreamId } from "../../src/core/records/stream.ts";
import { streamKey } from "../../src/core/records/stream.ts";
import { packedBytes, packGroups } from "../../src/core/recovery/packed-groups.ts";

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
    const packed = { ...(await rawSets(sink)({ id: "s", targets, spans, rows: 0, bytes: 0 })), serial: 3 };
    const buffer = new ArrayBuffer(packedBytes(packed));
    packGroups(packed, buffer);
    const frame = { stream: 0, attempt: 0, from, next, start: 0, end: buffer.byteLength, aborted: [] };
    const batches: RawBatch[] = [];
    const decoder = replayDecoder({ maxRows: 700, maxBytes: 10_000, rowGroupBytes: 1 << 20 });
    decoder.decode(new Uint8Array(buffer), { ...frame, committedOnly: false }, stream, 0, (b) => {
      batches.push(b);
    });
    return batches;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
