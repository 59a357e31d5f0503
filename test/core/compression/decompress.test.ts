/**
 * Goal: every form of the four codecs that producers write decompresses to the right bytes, never to more than the
 * cap, and damage is a coded failure. Method: vectors of the reference codecs, with native and fallback codecs.
 */
import { describe, expect, test } from "bun:test";
import { libduckdbPath } from "../../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../../src/adapters/duckdb/native.ts";
import { fallbackCodecs } from "../../../src/adapters/duckdb/native-fallback.ts";
import type { Codecs } from "../../../src/core/compression/codec.ts";
import { type CodecName, decompress } from "../../../src/core/compression/decompress.ts";
import { Output } from "../../../src/core/compression/output.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import { sha256, TEXT, TEXT_SHA256, unpacked, VECTORS, vectorNamed } from "./vectors.ts";

const OLD_KAFKA = "descriptor checksum of old Kafka";

function run(codecs: Codecs, codec: string, bytes: Uint8Array, limit: number, oldLz4 = false): Uint8Array {
  const out = new Output(16);
  // Behind seven bytes of somebody else, which must survive growth.
  out.bytes.set([1, 2, 3, 4, 5, 6, 7]);
  out.begin(7, limit);
  // Not at the start of its buffer, and with bytes behind it.
  const padded = new Uint8Array(bytes.length + 10);
  padded.set(bytes, 5);
  decompress(codecs, codec as CodecName, padded, 5, 5 + bytes.length, out, oldLz4);
  expect([...out.bytes.subarray(0, 7)]).toEqual([1, 2, 3, 4, 5, 6, 7]);
  return out.bytes.slice(out.start, out.end);
}

function codeOf(fn: () => unknown): string {
  try {
    fn();
  } catch (e) {
    if (e instanceof Failure) return e.code;
    throw e;
  }
  return "no failure";
}

const REFUSED = /^(compression\.corrupt|bytes\.(short|invalid|limit))$/;

test("the text is the generator's", () => {
  expect(sha256(TEXT)).toBe(TEXT_SHA256);
});

for (const [engine, codecs] of [
  ["native", loadNative(libduckdbPath())],
  ["fallback", fallbackCodecs],
] as const) {
  describe(`${engine} codecs`, () => {
    test.each(VECTORS.map((v) => [`${v.codec}: ${v.name}`, v] as const))("%s", (_, v) => {
      const bytes = run(codecs, v.codec, unpacked(v), v.length, v.name === OLD_KAFKA);
      expect(bytes.length).toBe(v.length);
      expect(sha256(bytes)).toBe(v.sha256);
    });

    test("a cap one byte below the size is kept by every form", () => {
      for (const v of VECTORS.filter((each) => each.length > 0)) {
        const code = codeOf(() => run(codecs, v.codec, unpacked(v), v.length - 1, true));
        expect(`${v.codec} ${v.name}: ${code}`).toBe(`${v.codec} ${v.name}: compression.limit`);
      }
    });

    test("a cut anywhere is refused, or gives fewer whole parts of a form that may end there", () => {
      for (const v of VECTORS.filter((each) => each.packed.length < 200)) {
        const bytes = unpacked(v);
        for (let n = 0; n < bytes.length; n++) {
          const code = codeOf(() => {
            const got = run(codecs, v.codec, bytes.subarray(0, n), v.length, true);
            expect(got.length).toBeLessThan(v.length);
          });
          if (code !== "no failure") expect(code).toMatch(REFUSED);
          // Only where one frame or member of several ends may a cut pass.
          else expect(`${v.name}`).toMatch(/two/);
        }
      }
    });

    test("empty input is no frame of any codec", () => {
      for (const codec of ["gzip", "snappy", "lz4", "zstd"]) {
        expect(codeOf(() => run(codecs, codec, new Uint8Array(0), 100))).toBe("compression.corrupt");
      }
    });

    test("a declared size that cannot be true costs no memory", () => {
      // Snappy: 5-byte length of 4 GiB - 1 and nothing behind. Zstd: single segment, 8-byte content size of 2^62.
      const snappy = Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0x0f, 0);
      const zstd = Uint8Array.from(Buffer.from(`28b52ffde0${"0000000000000040"}010000`, "hex"));
      expect(codeOf(() => run(codecs, "snappy", snappy, 2 ** 40))).toBe("compression.corrupt");
      expect(codeOf(() => run(codecs, "zstd", zstd, 1 << 20))).toMatch(/^compression\.(limit|corrupt)$/);
    });
  });
}

describe("LZ4 frames", () => {
  const decode = (bytes: Uint8Array, old = false) =>
    codeOf(() => run(fallbackCodecs, "lz4", bytes, 1 << 20, old));
  const damaged = (name: string, at: number, xor: number) => {
    const bytes = vectorNamed("lz4", name);
    bytes[at < 0 ? bytes.length + at : at]! ^= xor;
    return bytes;
  };

  test("the wrong descriptor checksum of old Kafka is refused unless it is to be ignored", () => {
    const bytes = vectorNamed("lz4", OLD_KAFKA);
    expect(decode(bytes)).toBe("compression.corrupt");
    expect(decode(bytes, true)).toBe("no failure");
  });

  test("content and block checksums are checked", () => {
    expect(decode(damaged("linked, all checksums, size", -1, 1))).toBe("compression.corrupt");
    // Descriptor of 15 bytes (magic, FLG, BD, size, HC), then the block's size, then its first byte.
    expect(decode(damaged("linked, all checksums, size", 25, 1))).toBe("compression.corrupt");
  });

  test.each([
    ["another magic", 0, 1],
    ["another version", 4, 0x80],
    ["a dictionary", 4, 1],
    ["a block size that does not exist", 5, 0x40],
  ] as const)("%s is refused", (_, at, xor) => {
    expect(decode(damaged("independent 64K", at, xor), true)).toBe("compression.corrupt");
  });

  test("a content size that is not what comes out is refused", () => {
    expect(decode(damaged("linked, all checksums, size", 6, 1), true)).toBe("compression.corrupt");
  });

  test("a block above the frame's block size is refused before anything is read of it", () => {
    // Block size code 4 (64 KiB), a stored block of 65,537 bytes.
    const head = "04224d186040" + "82" + "01000180";
    const bytes = Uint8Array.from(Buffer.from(head + "00".repeat(100), "hex"));
    expect(decode(bytes, true)).toBe("compression.corrupt");
  });
});

test("a snappy frame with a negative block length is refused", () => {
  const bytes = Uint8Array.from(Buffer.from("82534e4150505900" + "0000000100000001" + "ffffffff", "hex"));
  expect(codeOf(() => run(fallbackCodecs, "snappy", bytes, 100))).toBe("compression.corrupt");
});
