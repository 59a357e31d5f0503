/** Goal: the writer grows, patches in place and refuses what does not fit. Method: small cases, each derived beside it. */
import { expect, test } from "bun:test";
import { ByteWriter } from "../../../src/core/bytes/writer.ts";

test("a size is patched into the place that was left for it", () => {
  const w = new ByteWriter();
  const at = w.i16(7).reserveI32();
  w.raw(Uint8Array.of(1, 2, 3));
  w.patchI32(at, w.length - at - 4);
  expect([...w.view()]).toEqual([0, 7, 0, 0, 0, 3, 1, 2, 3]);
});

test("a patch outside of what was written is a bug", () => {
  const w = new ByteWriter().i32(1);
  expect(() => w.patchI32(1, 0)).toThrow(/outside of 4 bytes/);
  expect(() => w.patchI32(-1, 0)).toThrow(/outside/);
});

test("growth keeps what is there, and a copy does not follow later writes", () => {
  const w = new ByteWriter(16);
  w.u32(0xdeadbeef);
  const copy = w.copy();
  w.raw(new Uint8Array(1000).fill(5)).u16(0xffff);
  expect(w.length).toBe(1006);
  expect([...w.view().subarray(0, 5)]).toEqual([0xde, 0xad, 0xbe, 0xef, 5]);
  w.reset();
  w.i32(0);
  expect([...copy]).toEqual([0xde, 0xad, 0xbe, 0xef]);
});

test("bytes of the writer itself may be written again across growth", () => {
  const w = new ByteWriter(16).raw(Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9));
  w.raw(w.view());
  expect([...w.view()]).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test("array counts and booleans in both forms", () => {
  const w = new ByteWriter().arrayCount(2).arrayCount(-1).compactArrayCount(2).compactArrayCount(-1);
  w.bool(true).bool(false).u32le(1).f64(1.5);
  expect(Buffer.from(w.view()).toString("hex")).toBe("00000002ffffffff03000100010000003ff8000000000000");
});

test("a string above 32,767 bytes has no length that an int16 holds", () => {
  expect(() => new ByteWriter().string("x".repeat(32768))).toThrow(/32767 are allowed/);
  expect(new ByteWriter().string("x".repeat(32767)).length).toBe(32769);
});
