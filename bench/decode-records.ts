/**
 * Decode of uncompressed record batches to columns, one core, no network: records/s and CPU seconds per million.
 *   bun bench/decode-records.ts
 */
import { libduckdbPath } from "../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../src/adapters/duckdb/native.ts";
import { createFrameDecoder } from "../src/adapters/kafka/wire/records/frame-decoder.ts";
import { buildBatch } from "../test/brokers/kafka/batch-builder.ts";

const decoder = createFrameDecoder({ codecs: loadNative(libduckdbPath()), maxDecompressedBytes: 1 << 28 });
const stream = { transport: "kafka", cluster: "c", topic: "t", incarnation: 0, partition: 0 } as const;

function frameOf(valueBytes: number, perBatch: number, batches: number): Uint8Array {
  const value = "x".repeat(valueBytes);
  const parts = [];
  for (let b = 0; b < batches; b++) {
    const records = Array.from({ length: perBatch }, (_, i) => ({ value, timestamp: BigInt(1_700_000_000_000 + i) }));
    parts.push(buildBatch({ records, baseOffset: BigInt(b * perBatch) }));
  }
  return new Uint8Array(Buffer.concat(parts));
}

for (const [size, perBatch] of [
  [247, 250],
  [1000, 64],
] as const) {
  const batches = Math.floor(4_000_000 / (size * perBatch));
  const bytes = frameOf(size, perBatch, batches);
  const next = BigInt(batches * perBatch);
  const frame = { stream: 0, attempt: 0, from: 0n, next, start: 0, end: bytes.length, aborted: [], committedOnly: true };
  let rows = 0;
  const once = () => decoder.decode(bytes, frame, stream, 0, (b) => void (rows += b.rows));
  for (let i = 0; i < 50; i++) once();
  rows = 0;
  const cpu = process.cpuUsage();
  const start = performance.now();
  for (let i = 0; i < 200; i++) once();
  const seconds = (performance.now() - start) / 1000;
  const used = process.cpuUsage(cpu);
  const value = Math.round(rows / seconds);
  const cpuPerMillion = (used.user + used.system) / rows;
  console.log(JSON.stringify({ bench: "decode-records", subject: `${size} B none`, unit: "records/s", value, cpuPerMillion, n: rows }));
}
