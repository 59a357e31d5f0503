/** Goal: what the test side compresses is what the formats say. Method: the product's decoders, which share no code with it. */
import { describe, expect, test } from "bun:test";
import { fallbackCodecs } from "../../../src/adapters/duckdb/native-fallback.ts";
import { decompress } from "../../../src/core/compression/decompress.ts";
import { Output } from "../../../src/core/compression/output.ts";
import { type BatchCodec, compress, snappyXerial } from "./compress.ts";

const CODECS: readonly Exclude<BatchCodec, "none">[] = ["gzip", "snappy", "lz4", "zstd"];

function pattern(bytes: number, step: number): Uint8Array {
  return Uint8Array.from({ length: bytes }, (_, i) => (Math.imul(i, step) >>> 13) & 0xff);
}

/** Nothing, a little, repeating, hardly compressible, several LZ4 blocks, long runs. */
const INPUTS: Record<string, Uint8Array> = {
  empty: new Uint8Array(0),
  "one byte": Uint8Array.of(7),
  words: Buffer.from("the quick brown fox jumps over the lazy dog; the quick brown fox. ".repeat(40)),
  noise: pattern(5000, 0x9e3779b1),
  "200 kB of words": Buffer.from("small round clock, heavy blue shelf, ".repeat(5600)),
  "300 kB of noise": pattern(300_000, 0x85ebca6b),
  "a long run": new Uint8Array(150_000).fill(3),
};

function expand(codec: Exclude<BatchCodec, "none">, bytes: Uint8Array): Uint8Array {
  const out = new Output();
  out.begin(0, 1 << 22);
  decompress(fallbackCodecs, codec, bytes, 0, bytes.length, out);
  return out.bytes.slice(0, out.end);
}

for (const codec of CODECS) {
  describe(codec, () => {
    for (const [name, input] of Object.entries(INPUTS)) {
      test(`${name} comes back`, () => {
        expect(Buffer.compare(expand(codec, compress(codec, input)), input)).toBe(0);
      });
    }

    test("words get shorter", () => {
      expect(compress(codec, INPUTS["words"]!).length).toBeLessThan(INPUTS["words"]!.length / 3);
    });
  });
}

test("snappy in the frame of Java clients, in several blocks", () => {
  const input = INPUTS["200 kB of words"]!;
  const framed = snappyXerial(input);
  expect(Buffer.from(framed.subarray(0, 8)).toString("hex")).toBe("82534e4150505900");
  expect(Buffer.compare(expand("snappy", framed), input)).toBe(0);
});

test("none is the bytes themselves", () => {
  expect(compress("none", INPUTS["words"]!)).toBe(INPUTS["words"]!);
});
