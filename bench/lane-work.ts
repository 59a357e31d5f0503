/** A lane's work on one core, no network: frames to columns, and columns to the pages of a Parquet file. */
import { libduckdbPath } from "../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../src/adapters/duckdb/native.ts";
import { createFrameDecoder } from "../src/adapters/kafka/wire/records/frame-decoder.ts";
import { ParquetWriter } from "../src/adapters/parquet/writer.ts";
import { systemClock } from "../src/adapters/system/clock.ts";
import { type Codecs, zstdBound } from "../src/core/compression/codec.ts";
import type { FrameDecoder } from "../src/core/ports/lane-parts.ts";
import type { ObjectStore } from "../src/core/ports/object-store.ts";
import type { Frame } from "../src/core/records/frame.ts";
import type { RawBatch } from "../src/core/records/raw-batch.ts";
import { buildBatch } from "../test/brokers/kafka/batch-builder.ts";
import { ordersBatch } from "../test/brokers/kafka/orders.ts";
import { type BenchOptions, cpuSeconds, type Figure, inTurn, median, ratioOf, round } from "./figure.ts";

const STREAM = { transport: "kafka", cluster: "c", topic: "t", incarnation: 0, partition: 0 } as const;
const MIB = 1024 * 1024;

interface Frames {
  readonly bytes: Uint8Array;
  readonly frame: Frame;
  readonly rows: number;
}

/** Batches of `perBatch` records back to back, about 4 MB or a little of that. */
function framesOf(batch: (b: number) => Uint8Array, perBatch: number, batches: number): Frames {
  const parts = Array.from({ length: batches }, (_, b) => {
    const bytes = batch(b);
    new DataView(bytes.buffer, bytes.byteOffset).setBigInt64(0, BigInt(b * perBatch));
    return bytes;
  });
  const bytes = new Uint8Array(Buffer.concat(parts));
  const rows = perBatch * batches;
  const frame = {
    stream: 0,
    attempt: 0,
    from: 0n,
    next: BigInt(rows),
    start: 0,
    end: bytes.length,
    aborted: [],
    committedOnly: true,
  };
  return { bytes, frame, rows };
}

function plainBatch(size: number, count: number): Uint8Array {
  const value = "x".repeat(size);
  const records = Array.from({ length: count }, (_, i) => ({
    value,
    timestamp: BigInt(1_700_000_000_000 + i),
  }));
  return buildBatch({ records });
}

function decoderOf(codecs: Codecs): FrameDecoder {
  return createFrameDecoder({ codecs, maxDecompressedBytes: 256 * MIB });
}

interface Timed {
  readonly seconds: number;
  readonly cpu: number;
}

async function timed(work: () => Promise<void> | void): Promise<Timed> {
  const cpu = cpuSeconds();
  const begun = performance.now();
  await work();
  return { seconds: (performance.now() - begun) / 1000, cpu: cpuSeconds() - cpu };
}

export async function* decodeRecords(o: BenchOptions): AsyncGenerator<Figure> {
  const codecs = loadNative(libduckdbPath());
  for (const [size, perBatch] of [
    [247, 250],
    [1000, 64],
  ] as const) {
    const batches = Math.floor((4 * MIB) / (size * perBatch));
    const { bytes, frame, rows } = framesOf(() => plainBatch(size, perBatch), perBatch, batches);
    const decoder = decoderOf(codecs);
    let seen = 0;
    const once = () =>
      decoder.decode(bytes, frame, STREAM, 0, (b) => {
        seen += b.rows;
      });
    const times = o.small ? 3 : 100;
    for (let i = 0; i < times; i++) once();
    seen = 0;
    const repeat = (work: () => void) =>
      timed(() => {
        for (let i = 0; i < times; i++) work();
      });
    // The control: the checksum alone, which nobody can leave out.
    const sum = codecs.crc32c(bytes, 0, bytes.length);
    const check = () => {
      if (codecs.crc32c(bytes, 0, bytes.length) !== sum)
        throw new Error("the checksum is not always the same");
    };
    const runs = await inTurn(
      o.rounds,
      () => repeat(once),
      () => repeat(check),
    );
    const n = rows * times;
    if (seen !== n * o.rounds) throw new Error(`decode-records: ${seen} rows of ${n * o.rounds}`);
    const perSecond = (list: readonly Timed[]) => n / median(list.map((r) => r.seconds));
    const cpu = (list: readonly Timed[]) => round((median(list.map((r) => r.cpu)) / n) * 1e6);
    yield {
      bench: `decode-records ${size} B none`,
      subject: "frame decoder",
      peer: "CRC-32C of the same bytes",
      unit: "records/s",
      value: Math.round(perSecond(runs.subject)),
      peer_value: Math.round(perSecond(runs.peer)),
      ratio: ratioOf(perSecond(runs.subject), perSecond(runs.peer)),
      hash: sum.toString(16).padStart(8, "0"),
      n,
      cpu_per_million: cpu(runs.subject),
      peer_cpu_per_million: cpu(runs.peer),
    };
  }
}

/** Takes bytes and forgets them. */
function sinkhole(): { readonly store: ObjectStore; readonly bytes: () => number } {
  let total = 0;
  const no = async () => {};
  const store: ObjectStore = {
    place: "memory",
    stage: async (key) => {
      let bytes = 0;
      return {
        key,
        append: async (b) => {
          bytes += b.length;
          total += b.length;
        },
        seal: async (rows) => ({ key, staging: "", bytes, rows }),
        abort: no,
      };
    },
    probe: async () => "absent",
    publish: no,
    discard: no,
    sweep: async () => [],
  };
  return { store, bytes: () => total };
}

const PER_BATCH = 250;

export async function* parquetWrite(o: BenchOptions): AsyncGenerator<Figure> {
  const codecs = loadNative(libduckdbPath());
  const batch = (b: number) => ordersBatch(1, b * PER_BATCH, 1, PER_BATCH, "none");
  const { bytes, frame, rows } = framesOf(batch, PER_BATCH, o.small ? 8 : 800);
  const { store, bytes: written } = sinkhole();
  const decoder = decoderOf(codecs);
  let serial = 0;
  const land = async (take: (batch: RawBatch, writer: ParquetWriter) => void) => {
    const writer = new ParquetWriter(
      {
        path: "/lake",
        row_group_bytes: 64 * MIB,
        compression: "zstd",
        compression_level: 1,
        metadata_prefix: "_twg_",
        max_open_files: 64,
        pipeline: "bench",
        sink: "raw",
        version: "0",
      },
      { store, codecs, clock: systemClock },
    );
    writer.open(`set-${serial++}`);
    decoder.decode(bytes, frame, STREAM, 0, (b) => take(b, writer));
    await writer.flush();
    await writer.seal([]);
  };
  const whole = () => land((b, writer) => writer.write(b));
  const page = new Uint8Array(MIB);
  const out = new Uint8Array(zstdBound(MIB));
  const zstdOnly = () =>
    decoder.decode(bytes, frame, STREAM, 0, ({ value, rows: n }) => {
      for (let at = value.offsets[0]!; at < value.offsets[n]!; at += MIB) {
        const piece = page.subarray(0, Math.min(MIB, value.offsets[n]! - at));
        piece.set(value.data.subarray(at, at + piece.length));
        codecs.zstdCompress(piece, out, 1);
      }
    });
  for (let i = 0; i < 2; i++) await whole();
  const before = written();
  await whole();
  const fileBytes = written() - before;
  const runs = await inTurn(
    o.rounds,
    () => timed(whole),
    () => timed(zstdOnly),
  );
  const perSecond = (list: readonly Timed[]) => rows / median(list.map((r) => r.seconds));
  const cpu = (list: readonly Timed[]) => round((median(list.map((r) => r.cpu)) / rows) * 1e6);
  yield {
    bench: "parquet-write",
    subject: "frame decoder and raw writer, to memory",
    peer: "frame decoder and zstd level 1 of the values alone",
    unit: "records/s",
    value: Math.round(perSecond(runs.subject)),
    peer_value: Math.round(perSecond(runs.peer)),
    ratio: ratioOf(perSecond(runs.subject), perSecond(runs.peer)),
    hash: null,
    n: rows,
    cpu_per_million: cpu(runs.subject),
    peer_cpu_per_million: cpu(runs.peer),
    file_bytes: fileBytes,
  };
}
