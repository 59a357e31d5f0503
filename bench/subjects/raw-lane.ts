/** The lane of raw-consume.ts: decodes what it is handed with the real decoder, counts, and gives the buffer back. */
import { libduckdbPath, loadRuntime } from "../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../src/adapters/duckdb/native.ts";
import { createFrameDecoder } from "../../src/adapters/kafka/wire/records/frame-decoder.ts";
import type { FrameBundle } from "../../src/core/records/frame.ts";
import type { StreamId } from "../../src/core/records/stream.ts";
import { hashOf } from "./hash.ts";

declare const self: Worker;

export interface LaneWork {
  readonly bundle: FrameBundle;
  readonly streams: readonly StreamId[];
  readonly hashed: boolean;
}

export interface LaneResult {
  readonly buffer: ArrayBuffer;
  readonly records: number;
  readonly valueBytes: number;
  /** Sum of the CRC-32 of all values: the order of partitions does not matter. */
  readonly hash: bigint;
}

loadRuntime();
const decoder = createFrameDecoder({
  codecs: loadNative(libduckdbPath()),
  maxDecompressedBytes: 1 << 29,
});

self.onmessage = (e: MessageEvent<LaneWork>) => {
  const { bundle, streams, hashed } = e.data;
  const bytes = new Uint8Array(bundle.buffer);
  let records = 0;
  let valueBytes = 0;
  let hash = 0n;
  for (const frame of bundle.frames) {
    decoder.decode(bytes, frame, streams[frame.stream]!, bundle.receivedAt, (batch) => {
      records += batch.rows;
      valueBytes += batch.value.offsets[batch.rows]! - batch.value.offsets[0]!;
      if (hashed) hash += hashOf(batch.rows, batch.value);
    });
  }
  const result: LaneResult = { buffer: bundle.buffer, records, valueBytes, hash };
  self.postMessage(result, [bundle.buffer]);
};
