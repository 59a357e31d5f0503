/**
 * The self-check of native codecs: each must read vectors that the reference implementations wrote, give back
 * what it compressed itself in a form that our plain decoders read, and refuse damage. Each check returns what
 * was wrong, or null. Together they take about a millisecond.
 */
import { crc32c } from "../../core/bytes/crc32.ts";
import { type Codecs, lz4Bound, snappyBound, zstdBound } from "../../core/compression/codec.ts";
import { lz4BlockDecode } from "../../core/compression/lz4-block.ts";
import { Output } from "../../core/compression/output.ts";
import { snappyBlockDecode } from "../../core/compression/snappy-block.ts";

/** Read by interpreted code at every start; larger inputs are compared in the tests. */
const SAMPLE_BYTES = 8 * 1024;

/** Text-like bytes: runs that repeat with noise between them, so that matches of many lengths appear. */
export function sample(length = SAMPLE_BYTES): Uint8Array {
  const out = new Uint8Array(length);
  let x = 12345;
  for (let i = 0; i < length; i++) {
    x = (Math.imul(x, 1103515245) + 12345) >>> 0;
    out[i] = x >>> 30 === 0 ? x >>> 16 : i % 61;
  }
  return out;
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && Buffer.compare(a, b) === 0;
}

function hex(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

/** "twg twg twg twg twg twg " */
const PLAIN = Uint8Array.from("twg ".repeat(6), (c) => c.charCodeAt(0));
/** As liblz4 1.9.4, libsnappy and libzstd 1.5.7 (level 3, with content size) write it through their Python bindings. */
const LZ4_VECTOR = hex("4b747767200400502074776720");
const SNAPPY_VECTOR = hex("180c747767204e0400");
const ZSTD_VECTOR = hex("28b52ffd201855000020747767200100d38e08");

export function checkLz4(c: Pick<Codecs, "lz4Block" | "lz4Compress">): string | null {
  const out = new Uint8Array(PLAIN.length);
  if (
    c.lz4Block(LZ4_VECTOR, 0, LZ4_VECTOR.length, out, 0, out.length, 0) !== PLAIN.length ||
    !same(out, PLAIN)
  ) {
    return "lz4: a known block decodes wrongly";
  }
  const bytes = sample();
  const packed = new Uint8Array(lz4Bound(bytes.length));
  const n = c.lz4Compress(bytes, packed);
  const plain = new Uint8Array(bytes.length);
  if (lz4BlockDecode(packed, 0, n, plain, 0, plain.length, 0) !== plain.length || !same(plain, bytes)) {
    return "lz4: what it compresses cannot be read";
  }
  plain.fill(0);
  if (c.lz4Block(packed, 0, n, plain, 0, plain.length, 0) !== plain.length || !same(plain, bytes)) {
    return "lz4: it cannot read what it compressed";
  }
  return c.lz4Block(packed, 0, n, plain, 0, plain.length - 1, 0) === -1
    ? null
    : "lz4: it writes past the room";
}

export function checkSnappy(c: Pick<Codecs, "snappyBlock" | "snappyCompress">): string | null {
  const out = new Uint8Array(PLAIN.length);
  if (
    c.snappyBlock(SNAPPY_VECTOR, 0, SNAPPY_VECTOR.length, out, 0, out.length) !== PLAIN.length ||
    !same(out, PLAIN)
  ) {
    return "snappy: a known block decodes wrongly";
  }
  const bytes = sample();
  const packed = new Uint8Array(snappyBound(bytes.length));
  const n = c.snappyCompress(bytes, packed);
  const plain = new Uint8Array(bytes.length);
  if (snappyBlockDecode(packed, 0, n, plain, 0, plain.length) !== plain.length || !same(plain, bytes)) {
    return "snappy: what it compresses cannot be read";
  }
  plain.fill(0);
  if (c.snappyBlock(packed, 0, n, plain, 0, plain.length) !== plain.length || !same(plain, bytes)) {
    return "snappy: it cannot read what it compressed";
  }
  return c.snappyBlock(packed, 0, n, plain, 0, plain.length - 1) === -1
    ? null
    : "snappy: it writes past the room";
}

/** What `zstd` gives for src[0, end) with a cap, or null if it refuses. */
function unzstd(c: Pick<Codecs, "zstd">, src: Uint8Array, end: number, cap: number): Uint8Array | null {
  const out = new Output(16);
  out.begin(0, cap);
  try {
    c.zstd(src, 0, end, out);
  } catch {
    return null;
  }
  return out.bytes.subarray(0, out.end);
}

export function checkZstd(c: Pick<Codecs, "zstd" | "zstdCompress">): string | null {
  const known = unzstd(c, ZSTD_VECTOR, ZSTD_VECTOR.length, PLAIN.length);
  if (known === null || !same(known, PLAIN)) return "zstd: a known frame decodes wrongly";
  const bytes = sample();
  const packed = new Uint8Array(zstdBound(bytes.length));
  const n = c.zstdCompress(bytes, packed, 1);
  const plain = unzstd(c, packed, n, bytes.length);
  if (plain === null || !same(plain, bytes)) return "zstd: it cannot read what it compressed";
  if (unzstd(c, packed, n - 1, bytes.length) !== null) return "zstd: it accepts a cut frame";
  return unzstd(c, packed, n, bytes.length - 1) === null ? null : "zstd: it writes past the cap";
}

/** CRC-32C of "123456789" is 0xE3069283 (the check value of the catalogue of CRCs). */
export function checkCrc(c: Pick<Codecs, "crc32c">): string | null {
  const bytes = sample(4096);
  bytes.set(Uint8Array.from("123456789", (ch) => ch.charCodeAt(0)));
  if (c.crc32c(bytes, 0, 9) !== 0xe3069283) return "crc32c: the check value is wrong";
  for (const [start, end] of [
    [0, 4096],
    [3, 1027],
    [1, 4000],
  ] as const) {
    if (c.crc32c(bytes, start, end) !== crc32c(bytes, start, end))
      return `crc32c: wrong over [${start}, ${end})`;
  }
  return null;
}
