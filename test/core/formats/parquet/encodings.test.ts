/**
 * The encodings one by one, against decoders written here from the words of parquet-format's Encodings.md, bit by
 * bit and with BigInt: slow, and sharing nothing with the encoders.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { deltaBound, putDeltaInt32, putDeltaInt64 } from "../../../../src/core/formats/parquet/delta.ts";
import { LevelWriter, putLevels } from "../../../../src/core/formats/parquet/levels.ts";
import { putUvarint, putZigzag64, ThriftWriter } from "../../../../src/core/formats/parquet/thrift.ts";

class Bits {
  at = 0;
  readonly bytes: Uint8Array;
  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }
  byte(): number {
    const b = this.bytes[this.at++];
    if (b === undefined) throw new Error("past the end");
    return b;
  }
  uvarint(): bigint {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const b = this.byte();
      value |= BigInt(b & 0x7f) << shift;
      if (b < 0x80) return value;
    }
  }
  zigzag(): bigint {
    const n = this.uvarint();
    return (n >> 1n) ^ -(n & 1n);
  }
  packed(count: number, width: number): bigint[] {
    const values: bigint[] = [];
    for (let i = 0; i < count; i++) {
      let v = 0n;
      for (let b = 0; b < width; b++) {
        const bit = i * width + b;
        v |= BigInt((this.bytes[this.at + (bit >> 3)]! >> (bit & 7)) & 1) << BigInt(b);
      }
      values.push(v);
    }
    this.at += (count * width) / 8;
    return values;
  }
}

function decodeLevels(bytes: Uint8Array, width: number, count: number): number[] {
  const r = new Bits(bytes);
  const out: number[] = [];
  while (r.at < bytes.length) {
    const header = Number(r.uvarint());
    if (header % 2 === 1) out.push(...r.packed((header >> 1) * 8, width).map(Number));
    else {
      const value = r.byte();
      for (let i = 0; i < header >> 1; i++) out.push(value);
    }
  }
  expect(out.length).toBeGreaterThanOrEqual(count);
  return out.slice(0, count);
}

function decodeDelta(bytes: Uint8Array, bits: 32 | 64): bigint[] {
  const r = new Bits(bytes);
  const block = Number(r.uvarint());
  const minis = Number(r.uvarint());
  const count = Number(r.uvarint());
  const out = [r.zigzag()];
  while (out.length < count) {
    const least = r.zigzag();
    const widths = Array.from({ length: minis }, () => r.byte());
    for (const width of widths) {
      if (out.length >= count) break;
      for (const d of r.packed(block / minis, width)) {
        if (out.length < count) out.push(BigInt.asIntN(bits, out[out.length - 1]! + least + d));
      }
    }
  }
  expect(r.at).toBe(bytes.length);
  return count === 0 ? [] : out;
}

describe("levels", () => {
  const runs = (max: number) =>
    fc.array(
      fc.tuple(
        fc.integer({ min: 0, max }),
        fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 700 })),
      ),
      {
        maxLength: 60,
      },
    );

  for (const max of [1, 2, 3]) {
    test(`property: levels up to ${max} come back, however long their runs are`, () => {
      fc.assert(
        fc.property(runs(max), (list) => {
          const w = new LevelWriter(max);
          for (const [level, n] of list) w.add(level, n);
          const expected = list.flatMap(([level, n]) => Array.from({ length: n }, () => level));
          expect(w.count).toBe(expected.length);
          expect(decodeLevels(w.finish(), max === 1 ? 1 : 2, expected.length)).toEqual(expected);
        }),
      );
    });
  }

  test("a million equal levels are four bytes, and a reset writer begins anew", () => {
    const w = new LevelWriter(1);
    w.add(0, 1_000_000);
    // varint(2,000,000) is three bytes, the value one.
    expect(w.finish().length).toBe(4);
    w.reset();
    w.add(1, 3);
    expect(decodeLevels(w.finish(), 1, 3)).toEqual([1, 1, 1]);
  });

  test("alternating levels are packed: a bit each, and a header for 504 of them", () => {
    const w = new LevelWriter(1);
    for (let i = 0; i < 1008; i++) w.add(i % 2, 1);
    expect(w.finish().length).toBe(1008 / 8 + 2);
  });

  test("in a page the length of the runs stands before them, little endian", () => {
    const out = new Uint8Array(8);
    expect(putLevels(out, 1, Uint8Array.of(7, 8, 9))).toBe(8);
    expect([...out]).toEqual([0, 3, 0, 0, 0, 7, 8, 9]);
  });
});

describe("delta binary packed", () => {
  const int64 = fc.oneof(
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    fc.bigInt({ min: -40n, max: 40n }),
    fc.constantFrom(2n ** 63n - 1n, -(2n ** 63n), 0n, -1n, 2n ** 32n, 2n ** 31n, -(2n ** 32n) - 1n),
  );

  function encode64(values: readonly bigint[]): Uint8Array {
    const out = new Uint8Array(deltaBound(values.length, 8));
    const end = putDeltaInt64(new Int32Array(BigInt64Array.from(values).buffer), values.length, out, 0);
    return out.subarray(0, end);
  }

  test("property: int64 values come back, wrapping differences included", () => {
    fc.assert(
      fc.property(fc.array(int64, { maxLength: 400 }), (values) => {
        expect(decodeDelta(encode64(values), 64)).toEqual(values);
      }),
    );
  });

  test("every width from 0 to 64 bits", () => {
    for (let width = 0n; width <= 64n; width++) {
      const jump = width === 0n ? 0n : BigInt.asIntN(64, (1n << width) - 1n);
      const values = [0n];
      for (let i = 1; i < 200; i++)
        values.push(BigInt.asIntN(64, values[i - 1]! + (i % 3 === 0 ? jump : 0n)));
      expect(decodeDelta(encode64(values), 64)).toEqual(values);
    }
  });

  test("property: int32 values come back", () => {
    const int32 = fc.oneof(
      fc.integer(),
      fc.integer({ min: 0, max: 300 }),
      fc.constantFrom(2 ** 31 - 1, -(2 ** 31)),
    );
    fc.assert(
      fc.property(fc.array(int32, { maxLength: 400 }), (values) => {
        const out = new Uint8Array(deltaBound(values.length, 4));
        const end = putDeltaInt32(Int32Array.from(values), values.length, out, 0);
        expect(decodeDelta(out.subarray(0, end), 32).map(Number)).toEqual(values);
      }),
    );
  });

  test("the bytes depend on the values alone, not on what was encoded before", () => {
    const few = [1n, 2n ** 40n, 2n];
    const before = encode64(few).slice();
    encode64(Array.from({ length: 129 }, (_, i) => (i % 2 === 0 ? 2n ** 62n : -(2n ** 61n))));
    expect(encode64(few)).toEqual(before);
    const out = new Uint8Array(deltaBound(129, 4));
    const first = out.slice(0, putDeltaInt32(Int32Array.of(1, 5, 2), 3, out, 0));
    putDeltaInt32(
      Int32Array.from({ length: 129 }, (_, i) => i * i * 1000),
      129,
      out,
      0,
    );
    expect(out.slice(0, putDeltaInt32(Int32Array.of(1, 5, 2), 3, out, 0))).toEqual(first);
  });

  test("consecutive offsets are five bytes a block of 128", () => {
    const values = Array.from({ length: 1 + 128 * 10 }, (_, i) => BigInt(i));
    // Header: 128 and 1281 take two bytes each, 4 and the first value one. Block: least delta and four widths.
    expect(encode64(values).length).toBe(6 + 10 * 5);
  });
});

describe("thrift compact", () => {
  test("property: varints and zigzag of every safe integer", () => {
    const safe = fc.oneof(
      fc.maxSafeInteger(),
      fc.constantFrom(2 ** 31, 2 ** 32, -(2 ** 31) - 1, -1, 0, 2 ** 53 - 1),
    );
    fc.assert(
      fc.property(safe, (n) => {
        const out = new Uint8Array(10);
        const z = putZigzag64(out, 0, n | 0, Math.floor(n / 2 ** 32));
        expect(new Bits(out.subarray(0, z)).zigzag()).toBe(BigInt(n));
        const u = putUvarint(out, 0, Math.abs(n));
        expect(new Bits(out.subarray(0, u)).uvarint()).toBe(BigInt(Math.abs(n)));
      }),
    );
  });

  test("the bytes of a struct: field deltas, long form, nested struct, list, text", () => {
    const w = new ThriftWriter();
    w.open()
      .i32(1, -1)
      .open(3)
      .bool(1, true)
      .bool(2, false)
      .close()
      .i64(30, 300)
      .list(31, 5, 2)
      .rawI32(1)
      .rawI32(2)
      .string(32, "é")
      .i16(33, 1);
    w.close();
    // Worked out by hand from the protocol's description: header = delta << 4 | type, zigzag varints.
    expect(Buffer.from(w.view()).toString("hex")).toBe(
      [
        "1501",
        "2c",
        "11",
        "12",
        "00",
        "063c",
        "d804",
        "19",
        "25",
        "02",
        "04",
        "18",
        "02c3a9",
        "14",
        "02",
        "00",
      ].join(""),
    );
  });

  test("a list of 15 and more has its count in a varint of its own", () => {
    const w = new ThriftWriter();
    w.open().list(1, 5, 200).close();
    expect(Buffer.from(w.view()).toString("hex")).toBe("19f5c80100");
  });

  test("it grows, and is empty after a reset", () => {
    const w = new ThriftWriter();
    w.open().binary(1, new Uint8Array(5000)).close();
    expect(w.length).toBe(1 + 2 + 5000 + 1);
    w.reset();
    expect(w.view().length).toBe(0);
  });
});
