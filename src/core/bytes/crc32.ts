/**
 * CRC-32 (ISO-HDLC, as zlib and Kafka's magic 0 and 1) and CRC-32C (Castagnoli, as Kafka's magic 2), eight bytes
 * a step ("slicing by 8"). About 2 GB/s; the native one that a lane prefers is checked against this at start.
 */

/** Reversed polynomials. */
const POLY_CRC32 = 0xedb88320;
const POLY_CRC32C = 0x82f63b78;

/** Eight tables of 256: entry [k][b] is the CRC of byte b followed by k zero bytes. */
function tables(poly: number): Int32Array {
  const t = new Int32Array(8 * 256);
  for (let b = 0; b < 256; b++) {
    let c = b;
    for (let bit = 0; bit < 8; bit++) c = (c & 1) === 1 ? (c >>> 1) ^ poly : c >>> 1;
    t[b] = c;
  }
  for (let i = 256; i < t.length; i++) {
    const before = t[i - 256]!;
    t[i] = (before >>> 8) ^ t[before & 0xff]!;
  }
  return t;
}

function run(t: Int32Array, bytes: Uint8Array, start: number, end: number, seed: number): number {
  let c = ~seed;
  let i = start;
  for (const whole = end - 7; i < whole; i += 8) {
    c ^= bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24);
    c =
      t[1792 + (c & 0xff)]! ^
      t[1536 + ((c >>> 8) & 0xff)]! ^
      t[1280 + ((c >>> 16) & 0xff)]! ^
      t[1024 + (c >>> 24)]! ^
      t[768 + bytes[i + 4]!]! ^
      t[512 + bytes[i + 5]!]! ^
      t[256 + bytes[i + 6]!]! ^
      t[bytes[i + 7]!]!;
  }
  for (; i < end; i++) c = (c >>> 8) ^ t[(c ^ bytes[i]!) & 0xff]!;
  return ~c >>> 0;
}

const TABLES_CRC32 = tables(POLY_CRC32);
const TABLES_CRC32C = tables(POLY_CRC32C);

/** CRC-32 of bytes[start, end) as uint32; `seed` is the CRC of what came before. */
export function crc32(bytes: Uint8Array, start = 0, end = bytes.length, seed = 0): number {
  return run(TABLES_CRC32, bytes, start, end, seed);
}

/** CRC-32C of bytes[start, end) as uint32; `seed` is the CRC of what came before. */
export function crc32c(bytes: Uint8Array, start = 0, end = bytes.length, seed = 0): number {
  return run(TABLES_CRC32C, bytes, start, end, seed);
}
