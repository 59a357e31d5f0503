/**
 * Goal: native codecs are used only where they prove themselves, and what replaces them says why. Method: load with
 * the library, without it, with a file that is none; and feed each self-check a codec with one fault.
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { libduckdbPath } from "../../../src/adapters/duckdb/embedded.ts";
import { loadNative, nativeOnDemand } from "../../../src/adapters/duckdb/native.ts";
import {
  checkCrc,
  checkLz4,
  checkSnappy,
  checkZstd,
  sample,
} from "../../../src/adapters/duckdb/native-check.ts";
import { fallbackCodecs } from "../../../src/adapters/duckdb/native-fallback.ts";
import { crc32c } from "../../../src/core/bytes/crc32.ts";
import { zstdBound } from "../../../src/core/compression/codec.ts";
import { Output } from "../../../src/core/compression/output.ts";

const native = loadNative(libduckdbPath());

test("with the library everything is native", () => {
  expect(native.report.fallback).toEqual({ crc32c: null, lz4: null, snappy: null, zstd: null });
  expect(native.lz4Block).not.toBe(fallbackCodecs.lz4Block);
});

test.each([
  ["no library", null],
  ["a path that is not there", "/nonexistent/libduckdb.so"],
  ["a file that is no library", import.meta.path],
])("%s: the fallbacks are in use and the report says why", (_, path) => {
  const codecs = loadNative(path);
  for (const group of ["lz4", "snappy", "zstd"] as const) {
    expect(codecs.report.fallback[group]).toBeString();
    expect(codecs.report.fallback[group]).not.toBe("");
  }
  expect(codecs.report.fallback.crc32c).toBeNull();
  expect(codecs.zstd).toBe(fallbackCodecs.zstd);
});

test.each([
  ["the library", libduckdbPath()],
  ["no library", null],
])("on demand, with %s: every codec proves itself", (_, path) => {
  const codecs = nativeOnDemand(path);
  expect(checkCrc(codecs)).toBeNull();
  expect(checkLz4(codecs)).toBeNull();
  expect(checkSnappy(codecs)).toBeNull();
  expect(checkZstd(codecs)).toBeNull();
});

// Method: a process of its own, since here the library is loaded already; what is loaded stands in its memory map.
test("on demand the library is loaded by the first codec, not by a checksum", () => {
  const program = `
    import { readFileSync } from "node:fs";
    import { libduckdbPath } from "./src/adapters/duckdb/embedded.ts";
    import { nativeOnDemand } from "./src/adapters/duckdb/native.ts";
    const isLoaded = () => readFileSync("/proc/self/maps", "latin1").includes("libduckdb");
    const codecs = nativeOnDemand(libduckdbPath());
    const seen = [isLoaded()];
    codecs.crc32c(new Uint8Array(5000), 0, 5000);
    codecs.crc32(new Uint8Array(5000), 0, 5000);
    seen.push(isLoaded());
    codecs.lz4Compress(new Uint8Array(100), new Uint8Array(200));
    seen.push(isLoaded());
    console.log(JSON.stringify(seen));
  `;
  const child = Bun.spawnSync([process.execPath, "-e", program], { cwd: join(import.meta.dir, "../../..") });
  expect(child.stderr.toString()).toBe("");
  expect(JSON.parse(child.stdout.toString())).toEqual([false, false, true]);
});

test("checksums are the same on both sides of the size where the native one takes over", () => {
  const bytes = sample(5000);
  for (const n of [0, 1, 127, 128, 129, 511, 512, 513, 4000]) {
    expect(native.crc32c(bytes, 3, 3 + n)).toBe(crc32c(bytes, 3, 3 + n));
    expect(native.crc32(bytes, 3, 3 + n)).toBe(Bun.hash.crc32(bytes.subarray(3, 3 + n)));
  }
});

test("a zstd context that refused one frame reads the next one", () => {
  const bytes = sample(3000);
  const packed = new Uint8Array(zstdBound(bytes.length));
  const n = native.zstdCompress(bytes, packed, 3);
  const out = new Output();
  for (const end of [n - 1, n]) {
    out.begin(0, bytes.length);
    if (end < n) expect(() => native.zstd(packed, 0, end, out)).toThrow(/zstd/);
    else native.zstd(packed, 0, end, out);
  }
  expect(Buffer.compare(out.bytes.subarray(0, out.end), bytes)).toBe(0);
});

test("a zstd frame that grows far beyond the first guess is read in a few steps", () => {
  const bytes = new Uint8Array(20_000_000).fill(7);
  const packed = new Uint8Array(zstdBound(bytes.length));
  const n = native.zstdCompress(bytes, packed, 1);
  expect(n).toBeLessThan(5000);
  const out = new Output();
  out.begin(0, bytes.length);
  native.zstd(packed, 0, n, out);
  expect(out.end).toBe(bytes.length);
  expect(out.bytes.subarray(0, out.end).every((b) => b === 7)).toBe(true);
});

test("compression into too little room is refused, not written past", () => {
  const bytes = sample(3000);
  expect(() => native.zstdCompress(bytes, new Uint8Array(10), 3)).toThrow(/zstd/);
  expect(() => native.lz4Compress(bytes, new Uint8Array(10))).toThrow(/lz4/);
});

describe("self-checks find", () => {
  const f = fallbackCodecs;

  test("nothing in codecs that are right", () => {
    expect([checkLz4(f), checkSnappy(f), checkZstd(f), checkCrc(f)]).toEqual([null, null, null, null]);
  });

  test("a decoder that gives wrong bytes", () => {
    const wrong = (dst: Uint8Array, at: number, n: number) => {
      if (n > 0) dst[at]! ^= 1;
      return n;
    };
    expect(
      checkLz4({ ...f, lz4Block: (s, a, b, d, at, l, w) => wrong(d, at, f.lz4Block(s, a, b, d, at, l, w)) }),
    ).toMatch(/known block/);
    expect(
      checkSnappy({
        ...f,
        snappyBlock: (s, a, b, d, at, l) => wrong(d, at, f.snappyBlock(s, a, b, d, at, l)),
      }),
    ).toMatch(/known block/);
    expect(checkZstd({ ...f, zstd: () => undefined })).toMatch(/known frame/);
  });

  test("an encoder whose output nobody can read", () => {
    expect(checkLz4({ ...f, lz4Compress: () => 5 })).toMatch(/cannot be read/);
    expect(checkSnappy({ ...f, snappyCompress: () => 5 })).toMatch(/cannot be read/);
    expect(checkZstd({ ...f, zstdCompress: () => 5 })).toMatch(/cannot read/);
  });

  test("a decoder that knows only the known block", () => {
    let calls = 0;
    const once =
      (run: (...args: never[]) => number) =>
      (...args: never[]) =>
        calls++ === 0 ? run(...args) : -1;
    expect(checkLz4({ ...f, lz4Block: once(f.lz4Block as never) as never })).toMatch(/what it compressed/);
    calls = 0;
    expect(checkSnappy({ ...f, snappyBlock: once(f.snappyBlock as never) as never })).toMatch(
      /what it compressed/,
    );
  });

  test("a checksum that is wrong, everywhere or for long input only", () => {
    expect(checkCrc({ crc32c: () => 0 })).toMatch(/check value/);
    expect(checkCrc({ crc32c: (b, s, e) => crc32c(b, s, Math.min(e, s + 100)) })).toMatch(/wrong over/);
  });
});
