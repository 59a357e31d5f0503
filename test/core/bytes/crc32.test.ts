/**
 * Goal: both checksums are right for every length and alignment. Method: the catalogue's check values, the runtime's
 * own crc32, the iSCSI vectors (RFC 3720, B.4), and a property: a seed continues a checksum.
 */
import { expect, test } from "bun:test";
import { crc32 as zlibCrc32 } from "node:zlib";
import fc from "fast-check";
import { crc32, crc32c } from "../../../src/core/bytes/crc32.ts";

const CHECK = new TextEncoder().encode("123456789");

test("check values", () => {
  expect(crc32(CHECK)).toBe(0xcbf43926);
  expect(crc32c(CHECK)).toBe(0xe3069283);
  expect(crc32(new Uint8Array(0))).toBe(0);
});

test("CRC-32C of the iSCSI vectors", () => {
  // The RFC gives the bytes as sent, lowest first.
  expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa);
  expect(crc32c(new Uint8Array(32).fill(0xff))).toBe(0x62a8ab43);
  expect(crc32c(Uint8Array.from({ length: 32 }, (_, i) => i))).toBe(0x46dd794e);
  expect(crc32c(Uint8Array.from({ length: 32 }, (_, i) => 31 - i))).toBe(0x113fdb5c);
});

test("CRC-32 is zlib's for any part of any bytes, and a seed continues both", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(100), fc.nat(100), (bytes, a, b) => {
      const start = Math.min(a, bytes.length);
      const end = Math.min(start + b, bytes.length);
      expect(crc32(bytes, start, end)).toBe(zlibCrc32(bytes.subarray(start, end)));
      for (const crc of [crc32, crc32c]) {
        expect(crc(bytes, start, bytes.length, crc(bytes, 0, start))).toBe(crc(bytes));
      }
    }),
  );
});
