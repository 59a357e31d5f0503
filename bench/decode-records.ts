/**
 * Decode of record batches to columns on one core, no network: records/s and CPU seconds per million records.
 *   bun bench/decode-records.ts [subject part...] [--rounds N]
 * Values are order lines as JSON, so that codecs have real work. `crc` lines tell what the checksum alone costs.
 */
import { libduckdbPath } from "../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../src/adapters/duckdb/native.ts";
import { createFrameDecoder } from "../src/adapters/kafka/wire/records/frame-decoder.ts";
import { buildBatch, type RecordSpec } from "../test/brokers/kafka/batch-builder.ts";

interface Case {
  readonly subject: string;
  readonly valueBytes: number;
  readonly perBatch: number;
  readonly codec: "none" | "gzip" | "snappy" | "lz4" | "zstd";
  readonly key?: boolean;
  readonly headers?: boolean;
}

/** Bytes of a fetched partition, the client's usual limit. */
const FRAME_BYTES = 1 << 20;

const CASES: readonly Case[] = [
  { subject: "247 B none", valueBytes: 247, perBatch: 250, codec: "none" },
  { subject: "1 KB none", valueBytes: 1000, perBatch: 64, codec: "none" },
  { subject: "247 B lz4", valueBytes: 247, perBatch: 250, codec: "lz4" },
  { subject: "1 KB lz4", valueBytes: 1000, perBatch: 64, codec: "lz4" },
  { subject: "247 B snappy", valueBytes: 247, perBatch: 250, codec: "snappy" },
  { subject: "247 B zstd", valueBytes: 247, perBatch: 250, codec: "zstd" },
  { subject: "247 B gzip", valueBytes: 247, perBatch: 250, codec: "gzip" },
  { subject: "247 B none, key", valueBytes: 247, perBatch: 250, codec: "none", key: true },
  {
    subject: "247 B none, key, 2 headers",
    valueBytes: 247,
    perBatch: 250,
    codec: "none",
    key: true,
    headers: true,
  },
  { subject: "247 B none, batches of 1", valueBytes: 247, perBatch: 1, codec: "none" },
  { subject: "100 B none", valueBytes: 100, perBatch: 600, codec: "none" },
];

const codecs = loadNative(libduckdbPath());
const stream = { transport: "kafka", cluster: "c", topic: "t", incarnation: 0, partition: 0 } as const;

function orderLine(i: number, bytes: number): string {
  const line = `{"order_id":${100000 + i},"customer":"customer-${(i * 7919) % 1000}","sku":"SKU-${(i * 104729) % 5000}","qty":${1 + (i % 9)},"price":${((i * 37) % 10000) / 100},"note":"`;
  let filler = "";
  for (let x = i + 1; line.length + filler.length < bytes - 2; x = (Math.imul(x, 1103515245) + 12345) >>> 0) {
    filler += `${x.toString(36)} `;
  }
  return `${(line + filler).slice(0, bytes - 2)}"}`;
}

function recordOf(c: Case, i: number): RecordSpec {
  return {
    value: orderLine(i, c.valueBytes),
    timestamp: BigInt(1_700_000_000_000 + (i % 250)),
    ...(c.key ? { key: `customer-${i % 1000}` } : {}),
    ...(c.headers
      ? {
          headers: [
            ["source", "web"],
            ["trace", `${i * 7919}`],
          ],
        }
      : {}),
  };
}

function frameOf(c: Case): { readonly bytes: Uint8Array<ArrayBuffer>; readonly rows: number } {
  const parts: Uint8Array[] = [];
  let rows = 0;
  for (let size = 0; size < FRAME_BYTES; rows += c.perBatch) {
    const records = Array.from({ length: c.perBatch }, (_, i) => recordOf(c, rows + i));
    const batch = buildBatch({ records, baseOffset: BigInt(rows), codec: c.codec });
    size += batch.length;
    parts.push(batch);
  }
  return { bytes: new Uint8Array(Buffer.concat(parts)), rows };
}

function measure(subject: string, rows: number, rounds: number, once: () => void): void {
  for (let i = 0; i < Math.min(60, rounds); i++) once();
  const cpu = process.cpuUsage();
  const start = performance.now();
  for (let i = 0; i < rounds; i++) once();
  const seconds = (performance.now() - start) / 1000;
  const used = process.cpuUsage(cpu);
  const n = rows * rounds;
  console.log(
    JSON.stringify({
      bench: "decode-records",
      subject,
      unit: "records/s",
      value: Math.round(n / seconds),
      cpu_s_per_million: Number(((used.user + used.system) / n).toFixed(4)),
      n,
    }),
  );
}

function run(c: Case, rounds: number): void {
  const { bytes, rows } = frameOf(c);
  const decoder = createFrameDecoder({ codecs });
  const next = BigInt(rows);
  const frame = {
    stream: 0,
    attempt: 0,
    from: 0n,
    next,
    start: 0,
    end: bytes.length,
    aborted: [],
    committedOnly: true,
  };
  let seen = 0;
  const emit = (b: { readonly rows: number }) => {
    seen += b.rows;
  };
  decoder.decode(bytes, frame, stream, 0, emit);
  if (seen !== rows) throw new Error(`${c.subject}: ${seen} of ${rows} rows`);
  measure(c.subject, rows, rounds, () => decoder.decode(bytes, frame, stream, 0, emit));
  measure(`${c.subject} (crc alone)`, rows, rounds, () => {
    codecs.crc32c(bytes, 0, bytes.length);
  });
}

const args = process.argv.slice(2);
const at = args.indexOf("--rounds");
const rounds = at < 0 ? 300 : Number(args[at + 1]);
const wanted = at < 0 ? args : args.filter((_, i) => i !== at && i !== at + 1);
for (const c of CASES) {
  if (wanted.length === 0 || wanted.some((w) => c.subject.includes(w))) run(c, rounds);
}
