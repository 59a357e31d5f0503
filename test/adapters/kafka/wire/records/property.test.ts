/**
 * Invariant: whatever a producer may write comes out as it went in: every record with its offset, timestamp, key,
 * value and headers, in batches whose spans join without hole or overlap and cover exactly the frame, for any limits
 * of rows and bytes, any codec, any window, and with another decoder call before it.
 * Method: random logs by the test broker's own encoder (which shares no code with the decoder).
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { libduckdbPath } from "../../../../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../../../../src/adapters/duckdb/native.ts";
import { createFrameDecoder } from "../../../../../src/adapters/kafka/wire/records/frame-decoder.ts";
import { type BatchSpec, buildBatch, type Payload } from "../../../../brokers/kafka/batch-builder.ts";
import type { BatchCodec } from "../../../../brokers/kafka/compress.ts";
import { legacyMessage, legacyWrapper } from "../../../../brokers/kafka/legacy-builder.ts";
import { type Decoded, decodeWith, type Row } from "./rows.ts";

const codecs = loadNative(libduckdbPath());

interface Written {
  readonly bytes: Uint8Array;
  /** Offset after the log, and its rows. */
  readonly next: bigint;
  readonly rows: readonly Row[];
}

const payload = fc.option(fc.oneof(fc.uint8Array({ maxLength: 12 }), fc.uint8Array({ maxLength: 300 })));
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const timestamp = fc.oneof(fc.bigInt({ min: 1_700_000_000_000n, max: 1_700_000_100_000n }), int64);
const record = fc.record({
  key: payload,
  value: payload,
  timestamp,
  /** Offsets that compaction took away before it. */
  gap: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.nat(100_000)),
  headers: fc.array(fc.tuple(fc.uint8Array({ maxLength: 5 }), payload), { maxLength: 3 }),
});
const batchV2 = fc.record({
  kind: fc.constant("v2" as const),
  codec: fc.constantFrom<BatchCodec>("none", "gzip", "snappy", "lz4", "zstd"),
  records: fc.array(record, { maxLength: 12 }),
  logAppendTime: fc.boolean(),
  maxTimestamp: timestamp,
  producerId: int64.map((n) => (n < 0n ? -1n : n)),
  producerEpoch: fc.integer({ min: -1, max: 32767 }),
  baseSequence: fc.integer({ min: -1 }),
  leaderEpoch: fc.nat(1000),
  transactional: fc.boolean(),
  /** Offsets that compaction took away behind the last record. */
  tail: fc.nat(10),
});
const legacy = fc.record({
  kind: fc.constant("legacy" as const),
  magic: fc.constantFrom(0 as const, 1 as const),
  codec: fc.constantFrom("none" as const, "gzip" as const, "snappy" as const, "lz4" as const),
  records: fc.array(record, { minLength: 1, maxLength: 6 }),
});
const start = fc.oneof(
  fc.constant(0n),
  fc.bigInt({ min: 0n, max: 2n ** 33n }),
  // Around the carry from the low half of an offset to the high one.
  fc.bigInt({ min: 2n ** 32n - 20n, max: 2n ** 32n }),
  fc.bigInt({ min: 2n ** 62n, max: 2n ** 63n - 50_000_000n }),
);
const log = fc.record({ start, batches: fc.array(fc.oneof(batchV2, batchV2, legacy), { maxLength: 6 }) });

type LogSpec = typeof log extends fc.Arbitrary<infer T> ? T : never;
type V2 = typeof batchV2 extends fc.Arbitrary<infer T> ? T : never;
type Legacy = typeof legacy extends fc.Arbitrary<infer T> ? T : never;

const hex = (p: Payload): string | null => (p === null ? null : Buffer.from(p as Uint8Array).toString("hex"));

function writeV2(spec: V2, base: bigint): Written {
  let delta = -1;
  const deltas = spec.records.map((r) => {
    delta += 1 + r.gap;
    return delta;
  });
  const lastOffsetDelta = Math.max(delta, 0) + spec.tail;
  const run = {
    timestampType: spec.logAppendTime ? 2 : 1,
    transactional: spec.transactional,
    producerId: spec.producerId,
    producerEpoch: spec.producerEpoch,
    baseSequence: spec.baseSequence,
    leaderEpoch: spec.leaderEpoch,
  };
  const { kind: _, records, tail: __, ...fields } = spec;
  const built: BatchSpec = {
    ...fields,
    baseOffset: base,
    lastOffsetDelta,
    records: records.map((r, i) => ({ ...r, offsetDelta: deltas[i]! })),
  };
  return {
    bytes: buildBatch(built),
    next: base + BigInt(lastOffsetDelta) + 1n,
    rows: records.map((r, i) => ({
      offset: base + BigInt(deltas[i]!),
      timestamp: spec.logAppendTime ? spec.maxTimestamp : r.timestamp,
      key: hex(r.key),
      value: hex(r.value),
      headers: r.headers.map(([k, v]) => [hex(k)!, hex(v)] as const),
      run,
    })),
  };
}

const NO_PRODUCER = {
  transactional: false,
  producerId: -1n,
  producerEpoch: -1,
  baseSequence: -1,
  leaderEpoch: -1,
};

function writeLegacy(spec: Legacy, base: bigint): Written {
  let offset = base - 1n;
  const messages = spec.records.map((r) => {
    offset += 1n + BigInt(r.gap);
    return { offset, timestamp: r.timestamp, key: r.key, value: r.value };
  });
  const { codec, magic } = spec;
  const parts =
    codec === "none" ? messages.map((m) => legacyMessage(magic, m)) : [legacyWrapper(magic, codec, messages)];
  const rows = messages.map((m) => ({
    offset: m.offset,
    timestamp: magic === 0 ? -1n : m.timestamp,
    key: hex(m.key),
    value: hex(m.value),
    headers: [],
    run: { ...NO_PRODUCER, timestampType: magic === 0 ? 0 : 1 },
  }));
  return { bytes: Buffer.concat(parts), next: offset + 1n, rows };
}

function write(spec: LogSpec): Written {
  let next = spec.start;
  const parts = spec.batches.map((b) => {
    const written = b.kind === "v2" ? writeV2(b, next) : writeLegacy(b, next);
    next = written.next;
    return written;
  });
  return {
    bytes: Uint8Array.from(Buffer.concat(parts.map((p) => p.bytes))),
    next,
    rows: parts.flatMap((p) => p.rows),
  };
}

/** The spans join and cover the frame, and each row is inside of its batch's span. */
function checkSpans(d: Decoded, from: bigint, next: bigint): void {
  expect(d.failure).toBeNull();
  expect(d.spans[0]![0]).toBe(from);
  expect(d.spans.at(-1)![1]).toBe(next);
  let row = 0;
  d.spans.forEach(([low, high], i) => {
    if (i > 0) expect(low).toBe(d.spans[i - 1]![1]);
    for (const end = row + d.sizes[i]!; row < end; row++) {
      expect(d.rows[row]!.offset >= low && d.rows[row]!.offset < high).toBe(true);
    }
  });
}

test("a log of any batches comes out as it went in", () => {
  const decoder = createFrameDecoder({ codecs });
  fc.assert(
    fc.property(log, (spec) => {
      const { bytes, next, rows } = write(spec);
      const decoded = decodeWith(decoder, bytes, { from: spec.start, next });
      checkSpans(decoded, spec.start, next);
      expect(decoded.rows).toEqual([...rows]);
    }),
    { numRuns: 300 },
  );
});

test("limits of rows and bytes only cut it into more batches", () => {
  fc.assert(
    fc.property(
      log,
      fc.integer({ min: 1, max: 7 }),
      fc.integer({ min: 1, max: 600 }),
      (spec, maxRows, maxBytes) => {
        const { bytes, next, rows } = write(spec);
        const decoded = decodeWith(createFrameDecoder({ codecs, maxRows, maxBytes }), bytes, {
          from: spec.start,
          next,
        });
        checkSpans(decoded, spec.start, next);
        expect(decoded.rows).toEqual([...rows]);
        for (const n of decoded.sizes) expect(n).toBeLessThanOrEqual(maxRows);
      },
    ),
    { numRuns: 150 },
  );
});

test("a narrowed frame gives exactly the rows of its window", () => {
  const decoder = createFrameDecoder({ codecs, maxRows: 8 });
  fc.assert(
    fc.property(log, fc.nat(20), fc.nat(20), (spec, a, b) => {
      const { bytes, next, rows } = write(spec);
      const cuts = [spec.start, ...rows.flatMap((r) => [r.offset, r.offset + 1n]), next].sort((x, y) =>
        x < y ? -1 : 1,
      );
      const [low, high] = [cuts[a % cuts.length]!, cuts[b % cuts.length]!];
      const [from, to] = low < high ? [low, high] : [high, low];
      const decoded = decodeWith(decoder, bytes, { from, next: to });
      checkSpans(decoded, from, to);
      expect(decoded.rows).toEqual(rows.filter((r) => r.offset >= from && r.offset < to));
    }),
    { numRuns: 150 },
  );
});
