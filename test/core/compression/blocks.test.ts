/**
 * Goal: the plain block codecs and hashes are right on their own. Method: round trips over random bytes through the
 * native codecs (property: what either compresses both read), known hashes, and hand-made damaged blocks.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { libduckdbPath } from "../../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../../src/adapters/duckdb/native.ts";
import { fallbackCodecs } from "../../../src/adapters/duckdb/native-fallback.ts";
import { lz4Bound, snappyBound, zstdBound } from "../../../src/core/compression/codec.ts";
import { lz4BlockDecode, lz4BlockStore } from "../../../src/core/compression/lz4-block.ts";
import { Output, SLACK_BYTES } from "../../../src/core/compression/output.ts";
import {
  snappyBlockDecode,
  snappyBlockStore,
  snappyLength,
} from "../../../src/core/compression/snappy-block.ts";
import { xxh32 } from "../../../src/core/compression/xxh32.ts";
import { checkZstdFrames } from "../../../src/core/compression/zstd-frame.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import { TEXT, unpacked, VECTORS, XXH32 } from "./vectors.ts";

const native = loadNative(libduckdbPath());

/** Bytes with repeats at many distances. */
const repetitive = fc
  .array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { minLength: 1, maxLength: 6 })
  .chain((words) =>
    fc
      .array(fc.nat(words.length - 1), { maxLength: 400 })
      .map((order) => Uint8Array.from(Buffer.concat(order.map((i) => words[i]!)))),
  );

test("xxh32 gives the values of the reference", () => {
  for (const [hex, length, hash] of XXH32) {
    const bytes = hex === null ? TEXT : Uint8Array.from(Buffer.from(hex, "hex"));
    expect(bytes.length).toBe(length);
    expect(xxh32(bytes)).toBe(hash);
  }
});

test("LZ4: what one compresses both read, and nothing is written behind the room", () => {
  fc.assert(
    fc.property(repetitive, (bytes) => {
      for (const codecs of [native, fallbackCodecs]) {
        const packed = new Uint8Array(lz4Bound(bytes.length));
        const n = codecs.lz4Compress(bytes, packed);
        for (const reader of [native, fallbackCodecs]) {
          const out = new Uint8Array(bytes.length + 20).fill(0xee);
          expect(reader.lz4Block(packed, 0, n, out, 10, 10 + bytes.length, 10)).toBe(bytes.length);
          expect(Buffer.compare(out.subarray(10, 10 + bytes.length), bytes)).toBe(0);
          expect(out.subarray(10 + bytes.length).every((b) => b === 0xee)).toBe(true);
          if (bytes.length > 0) expect(reader.lz4Block(packed, 0, n, out, 10, 9 + bytes.length, 10)).toBe(-1);
        }
      }
    }),
    { numRuns: 100 },
  );
});

test("Snappy: what one compresses both read, and nothing is written behind the room", () => {
  fc.assert(
    fc.property(repetitive, (bytes) => {
      for (const codecs of [native, fallbackCodecs]) {
        const packed = new Uint8Array(snappyBound(bytes.length));
        const n = codecs.snappyCompress(bytes, packed);
        expect(snappyLength(packed, 0, n)).toBe(bytes.length);
        for (const reader of [native, fallbackCodecs]) {
          const out = new Uint8Array(bytes.length + 20).fill(0xee);
          expect(reader.snappyBlock(packed, 0, n, out, 10, 10 + bytes.length)).toBe(bytes.length);
          expect(Buffer.compare(out.subarray(10, 10 + bytes.length), bytes)).toBe(0);
          expect(out.subarray(10 + bytes.length).every((b) => b === 0xee)).toBe(true);
          if (bytes.length > 0) expect(reader.snappyBlock(packed, 0, n, out, 10, 9 + bytes.length)).toBe(-1);
        }
      }
    }),
    { numRuns: 100 },
  );
});

test("Zstd: what one compresses both read at every level tried", () => {
  const out = new Output(16);
  for (const level of [1, 3, 9]) {
    for (const codecs of [native, fallbackCodecs]) {
      const packed = new Uint8Array(zstdBound(TEXT.length));
      const n = codecs.zstdCompress(TEXT, packed, level);
      for (const reader of [native, fallbackCodecs]) {
        out.begin(0, TEXT.length);
        reader.zstd(packed, 0, n, out);
        expect(Buffer.compare(out.bytes.subarray(0, out.end), TEXT)).toBe(0);
      }
    }
  }
});

test("both LZ4 decoders agree on random bytes: the same output or both refuse", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 60 }), (bytes) => {
      const a = new Uint8Array(300);
      const b = new Uint8Array(300);
      const n = lz4BlockDecode(bytes, 0, bytes.length, a, 0, 300, 0);
      const m = native.lz4Block(bytes, 0, bytes.length, b, 0, 300, 0);
      // The reference also enforces the end-of-block rules (last 5 bytes are literals): it may refuse more.
      if (m >= 0) {
        expect(n).toBe(m);
        expect(Buffer.compare(a.subarray(0, n), b.subarray(0, m))).toBe(0);
      }
    }),
    { numRuns: 2000 },
  );
});

test("both Snappy decoders agree on random bytes: the same output or both refuse", () => {
  fc.assert(
    fc.property(fc.nat(60), fc.uint8Array({ minLength: 1, maxLength: 40 }), (length, tail) => {
      const bytes = Uint8Array.of(length, ...tail);
      const a = new Uint8Array(64);
      const b = new Uint8Array(64);
      const n = snappyBlockDecode(bytes, 0, bytes.length, a, 0, 64);
      expect(native.snappyBlock(bytes, 0, bytes.length, b, 0, 64)).toBe(n);
      if (n > 0) expect(Buffer.compare(a.subarray(0, n), b.subarray(0, n))).toBe(0);
    }),
    { numRuns: 2000 },
  );
});

const hex = (text: string) => Uint8Array.from(Buffer.from(text, "hex"));

test.each([
  ["nothing at all", ""],
  ["literals that are not there", "50aabb"],
  ["a length that never ends", "f0ffffff"],
  ["a match length that never ends", "1faa0100ffff"],
  ["an offset of zero", "10aa0000"],
  ["an offset before the output", "10aa0200"],
  ["half an offset", "10aa01"],
])("LZ4 block with %s is refused", (_, text) => {
  const bytes = hex(text);
  expect(lz4BlockDecode(bytes, 0, bytes.length, new Uint8Array(100), 0, 100, 0)).toBe(-1);
});

test.each([
  ["literals that are not there", "0510aabb"],
  ["a long literal without its length", "05f0"],
  ["a copy from nowhere", "0401aa"],
  ["an offset of zero", "0500aa0e0000"],
  ["more than it declares", "0204aabb04aabb"],
  ["less than it declares", "0500aa"],
  ["a copy without its offset", "0500aa0f01"],
])("Snappy block with %s is refused", (_, text) => {
  const bytes = hex(text);
  expect(snappyBlockDecode(bytes, 0, bytes.length, new Uint8Array(100), 0, 100)).toBe(-1);
});

test("stored blocks have the sizes of their formats", () => {
  for (const n of [0, 14, 15, 16, 269, 270, 271, 70_000]) {
    const bytes = TEXT.subarray(0, n);
    expect(lz4BlockStore(bytes, new Uint8Array(lz4Bound(n)))).toBeLessThanOrEqual(lz4Bound(n));
    expect(snappyBlockStore(bytes, new Uint8Array(snappyBound(n)))).toBeLessThanOrEqual(snappyBound(n));
  }
});

test("whole zstd frames pass the walk, and no cut of them does", () => {
  for (const v of VECTORS.filter((each) => each.codec === "zstd")) {
    const bytes = unpacked(v);
    checkZstdFrames(bytes, 0, bytes.length);
    expect(() => checkZstdFrames(bytes, 0, bytes.length - 1)).toThrow(Failure);
  }
  const reserved = hex("28b52ffd2000070000");
  expect(() => checkZstdFrames(reserved, 0, reserved.length)).toThrow(/reserved/);
});

test("an output grows, keeps what stands before it, and has slack behind it", () => {
  const out = new Output(10);
  out.bytes.set([9, 8, 7]);
  out.begin(3, 1000);
  out.append(new Uint8Array(500).fill(1));
  expect([...out.bytes.subarray(0, 4)]).toEqual([9, 8, 7, 1]);
  expect(out.allowance).toBe(500);
  expect(out.bytes.length - out.capacity).toBe(SLACK_BYTES);
  // Growth stops at what the cap can use.
  out.append(new Uint8Array(400).fill(2));
  expect(out.capacity).toBeLessThanOrEqual(1003);
  expect(() => out.reserve(101)).toThrow(/limit of 1000/);
  out.shrink(100);
  expect(out.capacity).toBe(100);
});
