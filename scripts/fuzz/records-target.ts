/**
 * Damaged record batches through the frame decoder. In half of the cases the checksums are made right again after
 * the damage, or nothing would ever get past them. What comes out must be rows that fit their span, or a Failure
 * of the source with its place; emitted spans must join; nothing may be emitted above the frame.
 */
import { readFileSync } from "node:fs";
import { libduckdbPath } from "../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../src/adapters/duckdb/native.ts";
import { fallbackCodecs } from "../../src/adapters/duckdb/native-fallback.ts";
import { createFrameDecoder } from "../../src/adapters/kafka/wire/records/frame-decoder.ts";
import { crc32, crc32c } from "../../src/core/bytes/crc32.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import type { FrameDecoder } from "../../src/core/ports/lane-parts.ts";
import type { Frame } from "../../src/core/records/frame.ts";
import type { BytesColumn, RawBatch } from "../../src/core/records/raw-batch.ts";
import { type Draw, damage, draws, pick } from "./draws.ts";
import type { FuzzTarget } from "./target.ts";

const VECTORS = new URL("../../test/golden/kafka/records.json", import.meta.url);
const STREAM = { transport: "kafka", cluster: "c", topic: "t", incarnation: 0, partition: 3 } as const;
/** Low, so that bombs are found by it and memory stays flat. */
const MAX_DECOMPRESSED_BYTES = 1 << 21;
const LARGEST_VECTOR_BYTES = 4096;

interface World {
  readonly vectors: readonly Uint8Array[];
  readonly decoders: readonly FrameDecoder[];
}

let world: World | null = null;

export function goldenVectors(): Uint8Array[] {
  const { vectors } = JSON.parse(readFileSync(VECTORS, "utf8")) as { vectors: { hex: string }[] };
  return vectors
    .map((v) => Uint8Array.from(Buffer.from(v.hex, "hex")))
    .filter((bytes) => bytes.length > 0 && bytes.length <= LARGEST_VECTOR_BYTES);
}

function load(): World {
  const native = loadNative(libduckdbPath());
  const limits = { maxDecompressedBytes: MAX_DECOMPRESSED_BYTES };
  const small = { ...limits, maxRows: 3, maxBytes: 64 };
  world ??= {
    vectors: goldenVectors(),
    decoders: [
      createFrameDecoder({ codecs: native, ...limits }),
      createFrameDecoder({ codecs: native, ...small }),
      createFrameDecoder({ codecs: fallbackCodecs, ...limits }),
    ],
  };
  return world;
}

/** Makes the checksums of whole batches right. */
export function reseal(bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at + 17 <= bytes.length; ) {
    const end = at + 12 + view.getInt32(at + 8);
    if (end > bytes.length || end < at + 26) return;
    if (bytes[at + 16] === 2) view.setUint32(at + 17, crc32c(bytes, at + 21, end));
    else view.setUint32(at + 12, crc32(bytes, at + 16, end));
    at = end;
  }
}

function frameFor(bytes: Uint8Array, draw: Draw): Frame {
  const from = BigInt(draw(4) === 0 ? draw(200) : 0);
  const aborted = Array.from({ length: draw(3) }, () => ({
    producerId: pick(draw, [5n, 6n, 4711n]),
    firstOffset: BigInt(draw(50)),
  }));
  return {
    stream: 0,
    attempt: 0,
    from,
    next: from + BigInt(pick(draw, [0, 1, 3, 5, 100, 2 ** 40])),
    start: 0,
    end: bytes.length,
    aborted,
    committedOnly: draw(4) !== 0,
  };
}

function must(truth: boolean, what: string): void {
  if (!truth) throw new Error(what);
}

function checkBytes(c: BytesColumn, rows: number): void {
  must(c.offsets[0] === 0, "a column that does not begin at 0");
  let nulls = 0;
  for (let i = 0; i < rows; i++) {
    const empty = c.offsets[i + 1] === c.offsets[i];
    must(c.offsets[i + 1]! >= c.offsets[i]!, "offsets of a column that fall");
    if ((c.validity[i >> 3]! & (1 << (i & 7))) !== 0) continue;
    nulls++;
    must(empty, "a null with bytes");
  }
  must(nulls === c.nullCount, `${nulls} nulls where ${c.nullCount} are counted`);
  must(c.offsets[rows]! <= c.data.length, "a column longer than its bytes");
}

function checkBatch(b: RawBatch): void {
  let before = b.span.from - 1n;
  for (let i = 0; i < b.rows; i++) {
    const offset = (BigInt(b.offsets[2 * i + 1]!) << 32n) | BigInt(b.offsets[2 * i]! >>> 0);
    must(
      offset > before && offset < b.span.next,
      `offset ${offset} after ${before}, the span ends at ${b.span.next}`,
    );
    before = offset;
  }
  checkBytes(b.key, b.rows);
  checkBytes(b.value, b.rows);
  checkBytes(b.headers.keys, b.headers.entries);
  checkBytes(b.headers.values, b.headers.entries);
  must(b.headers.offsets[b.rows] === b.headers.entries, "headers of no row");
  must(
    (b.runs.count === 0 ? 0 : b.runs.end[b.runs.count - 1]!) === b.rows,
    "runs that do not end at the last row",
  );
}

function run(n: number): boolean {
  const { vectors, decoders } = world ?? load();
  const draw = draws(n);
  let bytes = damage(pick(draw, vectors), draw);
  if (draw(6) === 0) bytes = Uint8Array.from(Buffer.concat([pick(draw, vectors), bytes]));
  if (draw(2) === 0) reseal(bytes);
  const frame = frameFor(bytes, draw);
  let reached = frame.from;
  const emit = (b: RawBatch) => {
    must(b.span.from === reached, `a span from ${b.span.from} after ${reached}`);
    must(b.span.next >= reached && b.span.next <= frame.next, `a span up to ${b.span.next}`);
    reached = b.span.next;
    checkBatch(b);
  };
  try {
    pick(draw, decoders).decode(bytes, frame, STREAM, 0, emit);
    must(reached === frame.next, `success at ${reached} of ${frame.next}`);
    return false;
  } catch (e) {
    if (!(e instanceof Failure) || !e.code.startsWith("kafka.")) throw e;
    must(e.at === `t/3@${reached}`, `a failure at ${e.at} where ${reached} is reached`);
    return true;
  }
}

export const recordsTarget: FuzzTarget = { name: "records", run };
