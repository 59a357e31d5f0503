/**
 * Goal: what cannot be read fails with a code and a place, what stands before it is handed out, a position never
 * passes what was not read, and the decoder is as good as new for the next frame. Method: one fault a case.
 */
import { describe, expect, test } from "bun:test";
import { fallbackCodecs } from "../../../../../src/adapters/duckdb/native-fallback.ts";
import { createFrameDecoder } from "../../../../../src/adapters/kafka/wire/records/frame-decoder.ts";
import { Failure } from "../../../../../src/core/failure/failure.ts";
import {
  type BatchSpec,
  buildBatch,
  type RecordSpec,
  sealCrc,
} from "../../../../brokers/kafka/batch-builder.ts";
import { compress } from "../../../../brokers/kafka/compress.ts";
import {
  type LegacyMessage,
  legacyMessage,
  legacyWrapper,
} from "../../../../brokers/kafka/legacy-builder.ts";
import { type Decoded, decode, decodeWith, frameOf, STREAM } from "./rows.ts";

const join = (...parts: readonly Uint8Array[]) => Uint8Array.from(Buffer.concat(parts));
const some = (n: number): RecordSpec[] =>
  Array.from({ length: n }, (_, i) => ({ key: null, value: `v${i}` }));
const good = (baseOffset: bigint, n = 3) => buildBatch({ records: some(n), baseOffset });

/** A good batch of offsets 0 to 2, then the bad one at 3; the frame claims up to 100. */
function behindGood(bad: Uint8Array): Decoded {
  return decode(fallbackCodecs, join(good(0n), bad), { next: 100n });
}

function expectBroken(d: Decoded, code: string): void {
  expect(d.failure?.code as string).toBe(code);
  expect(d.failure?.at).toBe("t/3@3");
  expect(d.rows.map((r) => r.offset)).toEqual([0n, 1n, 2n]);
  expect(d.spans).toEqual([[0n, 3n]]);
}

/** A batch whose records section is given as it is, with a right checksum. */
function rawBatch(section: Uint8Array, spec: Partial<BatchSpec> = {}): Uint8Array {
  return buildBatch({ records: [], baseOffset: 3n, count: 1, compressor: () => section, ...spec });
}

const hex = (text: string) => Uint8Array.from(Buffer.from(text.replace(/ /g, ""), "hex"));

describe("a damaged record", () => {
  // length, attributes, timestamp delta, offset delta, key, value, headers; zigzag varints.
  test.each([
    ["is longer than the batch", "7e 00 00 00 01 02 61 00"],
    ["has a negative length", "01 00 00 00 01 01 00"],
    ["ends before its key", "04 00 00"],
    ["has a key beyond its end", "0e 00 00 00 7e 01 00 00"],
    ["has a key length below -1", "0c 00 00 00 03 01 00"],
    ["has a value beyond its end", "0e 00 00 00 01 7e 00 00"],
    ["has a value length below -1", "0c 00 00 00 01 05 00"],
    ["has bytes behind its headers", "0e 00 00 00 01 01 00 00"],
    ["declares more headers than fit", "0e 00 00 00 01 01 14 00"],
    ["declares a negative number of headers", "0c 00 00 00 01 01 01"],
    ["has a header without a key", "10 00 00 00 01 01 02 01 01"],
    ["has a header key beyond its end", "10 00 00 00 01 01 02 7e 01"],
    ["has a header value beyond its end", "10 00 00 00 01 01 02 00 7e"],
    ["has a varint of six bytes as its length", "80 80 80 80 80 00"],
    ["has an offset delta over 32 bits", "18 00 00 ffffffff7f 01 01 00 00 00 00"],
    ["has a timestamp of eleven bytes", "22 00 8080808080808080808000 00 01 01 00"],
    ["has a negative offset delta", "0c 00 00 01 01 01 00"],
    ["has an offset delta above the batch's last", "0c 00 00 02 01 01 00"],
  ])("that %s", (_, section) => {
    expectBroken(behindGood(rawBatch(hex(section))), "kafka.corrupt_batch");
  });

  const whole = "0c 00 00 00 01 01 00";

  test("no fault is in the record that these vary", () => {
    const { failure, rows } = decode(fallbackCodecs, rawBatch(hex(whole)), { next: 4n });
    expect(failure).toBeNull();
    expect(rows.length).toBe(1);
  });

  test("an offset that is there twice would be one record id for two records", () => {
    const twice = rawBatch(hex(whole + whole), { count: 2, lastOffsetDelta: 1 });
    expectBroken(behindGood(twice), "kafka.corrupt_batch");
  });

  test.each([
    ["one record less than declared", 2],
    ["bytes behind the last record", 0],
    ["a negative count", -1],
    ["a count that cannot be true", 2 ** 31 - 1],
  ])("%s", (_, count) => {
    expectBroken(behindGood(rawBatch(hex(whole), { count, lastOffsetDelta: 5 })), "kafka.corrupt_batch");
  });
});

describe("a damaged batch", () => {
  const patched = (at: number, ...bytes: readonly number[]) => {
    const batch = good(3n);
    batch.set(bytes, at);
    return batch;
  };
  const sealed = (at: number, ...bytes: readonly number[]) => {
    const batch = patched(at, ...bytes);
    sealCrc(batch);
    return batch;
  };

  test.each([
    ["a wrong checksum", patched(40, 1, 2, 3), "kafka.crc"],
    ["an unknown magic", patched(16, 3), "kafka.unknown_magic"],
    ["a negative magic", patched(16, 0xff), "kafka.unknown_magic"],
    ["a length below the header", patched(8, 0, 0, 0, 10), "kafka.corrupt_batch"],
    ["a negative length", patched(8, 0xff, 0xff, 0xff, 0xff), "kafka.corrupt_batch"],
    ["a length beyond the frame", patched(8, 0x7f, 0xff, 0xff, 0xff), "kafka.corrupt_batch"],
    ["a negative base offset", patched(0, 0x80), "kafka.corrupt_batch"],
    [
      "a base offset at the end of the numbers",
      patched(0, 0x7f, 255, 255, 255, 255, 255, 255, 254),
      "kafka.corrupt_batch",
    ],
    ["a negative last offset delta", sealed(23, 0xff, 0xff, 0xff, 0xff), "kafka.corrupt_batch"],
    ["an unknown codec", sealed(22, 7), "kafka.unknown_codec"],
    ["a base offset inside of the batch before", patched(7, 1), "kafka.corrupt_batch"],
    ["a few bytes only", good(3n).subarray(0, 10), "kafka.corrupt_batch"],
    ["a cut header", good(3n).subarray(0, 40), "kafka.corrupt_batch"],
    ["a cut end", good(3n).subarray(0, 70), "kafka.corrupt_batch"],
  ])("%s", (_, bytes, code) => {
    expectBroken(behindGood(bytes), code);
  });

  test.each(["gzip", "snappy", "lz4", "zstd"] as const)("%s bytes that are none", (codec) => {
    expectBroken(behindGood(rawBatch(new Uint8Array(50).fill(0xab), { codec })), "kafka.decompress");
  });

  test("bytes that end before the offset that the frame claims", () => {
    // The position must not lead: the frame says 100, the bytes reach 3.
    const d = decode(fallbackCodecs, good(0n), { next: 100n });
    expectBroken(d, "kafka.corrupt_batch");
  });
});

describe("messages of magic 0 and 1", () => {
  const message = (offset: bigint, value = "v"): LegacyMessage => ({
    offset,
    key: null,
    value: Buffer.from(value),
  });
  const attributes = (codec: number, value: Uint8Array | null, magic: 0 | 1 = 1) =>
    legacyMessage(magic, { offset: 3n, key: null, value }, codec);
  const packed = (...inner: readonly Uint8Array[]) => compress("gzip", join(...inner));

  test.each([
    [
      "a wrong checksum",
      () => legacyMessage(1, message(3n)).map((b, i) => (i === 34 ? b ^ 1 : b)),
      "kafka.crc",
    ],
    ["zstd, which these have not", () => attributes(4, Buffer.from("x")), "kafka.corrupt_batch"],
    ["an unknown codec", () => attributes(5, Buffer.from("x")), "kafka.unknown_codec"],
    ["a compressed message without a value", () => attributes(1, null), "kafka.corrupt_batch"],
    ["a compressed message that holds none", () => attributes(1, packed()), "kafka.corrupt_batch"],
    [
      "a cut inner message",
      () => attributes(1, packed(legacyMessage(1, message(0n)).subarray(0, 30))),
      "kafka.corrupt_batch",
    ],
    ["a few inner bytes", () => attributes(1, packed(new Uint8Array(5))), "kafka.corrupt_batch"],
    [
      "an inner message of another magic",
      () => attributes(1, packed(legacyMessage(0, message(0n)))),
      "kafka.corrupt_batch",
    ],
    ["an inner batch of magic 2", () => attributes(1, packed(good(0n))), "kafka.corrupt_batch"],
    [
      "a compressed inner message",
      () => attributes(1, packed(legacyMessage(1, message(0n), 1))),
      "kafka.corrupt_batch",
    ],
    [
      "inner offsets that do not rise",
      () => attributes(1, packed(legacyMessage(1, message(1n)), legacyMessage(1, message(1n)))),
      "kafka.corrupt_batch",
    ],
    [
      "an inner offset above the wrapper's",
      () => attributes(1, packed(legacyMessage(1, message(9n)))),
      "kafka.corrupt_batch",
    ],
    ["compressed bytes that are none", () => attributes(1, new Uint8Array(40)), "kafka.decompress"],
  ] as const)("%s", (_, bad, code) => {
    expectBroken(behindGood(bad()), code);
  });

  test("lengths of key and value beyond the message", () => {
    for (const at of [26, 30]) {
      for (const length of [1000, -2]) {
        const bad = legacyMessage(1, message(3n));
        const view = new DataView(bad.buffer);
        view.setInt32(at, length);
        view.setUint32(12, fallbackCodecs.crc32(bad, 16, bad.length));
        expectBroken(behindGood(bad), "kafka.corrupt_batch");
      }
    }
  });

  test("a wrapper of an old producer that left its offset at 0", () => {
    // Inner offsets from 0, wrapper 0. They stand as they are.
    const inner = [message(0n, "a"), message(1n, "b")];
    const wrapper = legacyMessage(
      1,
      { offset: 0n, key: null, value: packed(...inner.map((m) => legacyMessage(1, m))) },
      1,
    );
    const { rows, failure, spans } = decode(fallbackCodecs, wrapper, { next: 2n });
    expect(failure).toBeNull();
    expect(rows.map((r) => r.offset)).toEqual([0n, 1n]);
    expect(spans).toEqual([[0n, 2n]]);
  });

  test("a wrapper larger than one RawBatch is cut", () => {
    const wrapper = legacyWrapper(1, "gzip", [message(5n), message(6n), message(7n)]);
    const decoder = createFrameDecoder({ codecs: fallbackCodecs, maxRows: 2 });
    const { sizes, spans } = decodeWith(decoder, wrapper, { next: 8n });
    expect(sizes).toEqual([2, 1]);
    expect(spans).toEqual([
      [0n, 7n],
      [7n, 8n],
    ]);
  });
});

describe("limits", () => {
  test.each(["gzip", "snappy", "lz4", "zstd"] as const)("a %s bomb is stopped at the cap", (codec) => {
    const bomb = buildBatch({ records: [{ value: new Uint8Array(3_000_000) }], baseOffset: 3n, codec });
    expect(bomb.length).toBeLessThan(200_000);
    const decoder = createFrameDecoder({ codecs: fallbackCodecs, maxDecompressedBytes: 1 << 20 });
    expectBroken(decodeWith(decoder, join(good(0n), bomb), { next: 100n }), "kafka.batch_too_large");
  });

  test("uncompressed bytes are theirs already: the cap is not about them", () => {
    const batch = buildBatch({ records: [{ value: new Uint8Array(3_000_000) }] });
    const decoder = createFrameDecoder({ codecs: fallbackCodecs, maxDecompressedBytes: 1 << 20 });
    expect(decodeWith(decoder, batch, { next: 1n }).failure).toBeNull();
  });

  test("a record larger than a RawBatch is one of its own", () => {
    const records = [{ value: "a" }, { value: new Uint8Array(5000) }, { value: "b" }];
    const decoder = createFrameDecoder({ codecs: fallbackCodecs, maxBytes: 1000 });
    const { sizes, rows } = decodeWith(decoder, buildBatch({ records }), { next: 3n });
    expect(sizes).toEqual([2, 1]);
    expect(rows.map((r) => r.value!.length / 2)).toEqual([1, 5000, 1]);
  });

  test("many batches in one frame are emitted before the buffer grows for their sum", () => {
    const value = new Uint8Array(7_000_000);
    const frame = join(
      ...[0n, 1n, 2n, 3n].map((baseOffset) => buildBatch({ records: [{ value }], baseOffset })),
    );
    const decoder = createFrameDecoder({ codecs: fallbackCodecs, maxBytes: 100_000_000 });
    const seen: number[] = [];
    decoder.decode(frame, frameOf(frame, { next: 4n }), STREAM, 0, (b) => {
      seen.push(b.rows);
      expect(b.value.data.length).toBeLessThan(40_000_000);
    });
    expect(seen).toEqual([2, 2]);
  });

  test("a batch that breaks in its second RawBatch: what is emitted stays, the failure is behind it", () => {
    const record = "0c 00 00 %% 01 01 00";
    const four = ["00", "02", "04", "06"].map((d) => record.replace("%%", d)).join("");
    const section = hex(`${four} 7e 000000000000`);
    const batch = rawBatch(section, { count: 5, lastOffsetDelta: 9 });
    const decoder = createFrameDecoder({ codecs: fallbackCodecs, maxRows: 3 });
    // Checksum and framing are right, so the first records are; the fifth is not there.
    const d = decodeWith(decoder, batch, { from: 3n, next: 100n });
    expect(d.failure?.code).toBe("kafka.corrupt_batch");
    expect(d.rows.map((r) => r.offset)).toEqual([3n, 4n, 5n]);
    expect(d.spans).toEqual([[3n, 6n]]);
    expect(d.failure?.at).toBe("t/3@6");
  });
});

test("nothing of a broken batch is left for the next frame: nulls, headers, keys, runs", () => {
  const decoder = createFrameDecoder({ codecs: fallbackCodecs });
  const record = { key: null, value: null, headers: [["h", null]] } as const;
  const whole = buildBatch({ records: [{ key: "k", value: "v" }], baseOffset: 0n });
  const broken = buildBatch({
    records: [record, record, { key: "x", value: "y" }],
    baseOffset: 1n,
    count: 4,
  });
  const failed = decodeWith(decoder, join(whole, broken), { next: 4n });
  expect(failed.rows.map((r) => [r.key, r.value, r.headers])).toEqual([["6b", "76", []]]);
  // The last record has nulls, so the bitmaps count; those before must not have one of the broken batch.
  const records = Array.from({ length: 4 }, () => ({ key: "k", value: "v", headers: [["a", "b"]] as const }));
  const after = decodeWith(decoder, buildBatch({ records: [...records, record] }), { next: 5n });
  expect(after.failure).toBeNull();
  expect(after.rows.map((r) => [r.key, r.value, r.headers])).toEqual([
    ...records.map((): [string, string, [string, string][]] => ["6b", "76", [["61", "62"]]]),
    [null, null, [["68", null]]],
  ] as never);
});

test("what the sink throws goes out as it is, and the sink is not called again", () => {
  const full = new Failure("internal.stalled", "the sink is full");
  for (const maxRows of [2, 100]) {
    const decoder = createFrameDecoder({ codecs: fallbackCodecs, maxRows });
    const frame = join(good(0n), good(3n));
    let calls = 0;
    const run = () =>
      decoder.decode(frame, frameOf(frame, { next: 6n }), STREAM, 0, () => {
        calls++;
        throw full;
      });
    expect(run).toThrow(full);
    expect(calls).toBe(1);
  }
});

test("an empty frame has its span and no rows", () => {
  const d = decode(fallbackCodecs, new Uint8Array(0), { from: 7n, next: 7n });
  expect(d).toEqual({ rows: [], spans: [[7n, 7n]], sizes: [0], failure: null });
});

test("a frame reads only its own part of the buffer", () => {
  const [a, b, c] = [good(0n), good(3n), good(6n)];
  const bytes = join(a, b, c);
  const { rows } = decode(fallbackCodecs, bytes, {
    from: 3n,
    next: 6n,
    start: a.length,
    end: a.length + b.length,
  });
  expect(rows.map((r) => r.offset)).toEqual([3n, 4n, 5n]);
});
