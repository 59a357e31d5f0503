/**
 * Goal: the reader gives back what the writer wrote, never reads past its end, and refuses sizes that cannot be true
 * before anything is allocated. Method: known encodings, a property over all cuts, and limits.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ByteReader } from "../../../src/core/bytes/reader.ts";
import { ByteWriter } from "../../../src/core/bytes/writer.ts";
import { Failure } from "../../../src/core/failure/failure.ts";

const hex = (text: string) => Uint8Array.from(Buffer.from(text.replace(/ /g, ""), "hex"));
const reader = (text: string) => new ByteReader(hex(text), 0, undefined, "a test");

function codeOf(fn: () => unknown): string {
  try {
    fn();
  } catch (e) {
    if (e instanceof Failure) return e.code;
    throw e;
  }
  return "no failure";
}

describe("known encodings", () => {
  test("integers are big endian and signed as named", () => {
    const r = reader("ff ff 8000 ffff 80000000 ffffffff 01000000 8000000000000000 3ff8000000000000 00 02");
    expect([r.i8(), r.u8(), r.i16(), r.u16(), r.i32(), r.u32(), r.u32le()]).toEqual([
      -1,
      255,
      -32768,
      65535,
      -(2 ** 31),
      2 ** 32 - 1,
      1,
    ]);
    expect(r.i64()).toBe(-(2n ** 63n));
    expect(r.f64()).toBe(1.5);
    expect([r.bool(), r.bool()]).toEqual([false, true]);
    expect(r.remaining).toBe(0);
  });

  // Zigzag: 0, -1, 1, -2 are 0, 1, 2, 3; the extremes fill all bits (protocol buffers, encoding).
  test.each([
    ["00", 0],
    ["01", -1],
    ["02", 1],
    ["7f", -64],
    ["8001", 64],
    ["feffffff0f", 2 ** 31 - 1],
    ["ffffffff0f", -(2 ** 31)],
  ])("varint %s", (text, value) => {
    expect(reader(text).varint()).toBe(value);
    expect(Buffer.from(new ByteWriter().varint(value).view()).toString("hex")).toBe(text);
  });

  test.each([
    ["01", -1n],
    ["feffffffffffffffff01", 2n ** 63n - 1n],
    ["ffffffffffffffffff01", -(2n ** 63n)],
  ])("varlong %s", (text, value) => {
    expect(reader(text).varlong()).toBe(value);
    expect(Buffer.from(new ByteWriter().varlong(value).view()).toString("hex")).toBe(text);
  });

  test("null and empty are told apart in every form", () => {
    expect(reader("ffff").nullableString()).toBeNull();
    expect(reader("0000").nullableString()).toBe("");
    expect(reader("00").compactNullableString()).toBeNull();
    expect(reader("01").compactNullableString()).toBe("");
    expect(reader("ffffffff").nullableBytes()).toBeNull();
    expect(reader("00000000").nullableBytes()).toEqual(new Uint8Array(0));
    expect(reader("00").compactNullableBytes()).toBeNull();
    expect(reader("01").compactNullableBytes()).toEqual(new Uint8Array(0));
  });

  test("a byte order mark is text", () => {
    expect(reader("0003 efbbbf").string()).toBe("\ufeff");
  });

  test("unknown tagged fields are read over by their size", () => {
    const seen: [number, number][] = [];
    const r = reader("02 00 01 2a 05 03 ffffff 07");
    r.taggedFields((tag, value) => {
      seen.push([tag, value.remaining]);
      if (tag === 0) expect(value.u8()).toBe(42);
    });
    expect(seen).toEqual([
      [0, 1],
      [5, 3],
    ]);
    expect(r.u8()).toBe(7);
  });
});

describe("limits", () => {
  test.each([
    ["a varint of six bytes", "808080808000", (r: ByteReader) => r.uvarint(), "bytes.invalid"],
    ["a varint over 32 bits", "ffffffff1f", (r: ByteReader) => r.uvarint(), "bytes.invalid"],
    ["a varlong over 64 bits", "ffffffffffffffffff02", (r: ByteReader) => r.uvarlong(), "bytes.invalid"],
    ["a varlong of eleven bytes", "8080808080808080808000", (r: ByteReader) => r.uvarlong(), "bytes.invalid"],
    ["a string longer than the rest", "0005 61", (r: ByteReader) => r.string(), "bytes.short"],
    ["a negative length", "fffe", (r: ByteReader) => r.nullableString(), "bytes.invalid"],
    ["null where it may not be", "ffff", (r: ByteReader) => r.string(), "bytes.invalid"],
    ["compact null where it may not be", "00", (r: ByteReader) => r.compactString(), "bytes.invalid"],
    ["null bytes where they may not be", "ffffffff", (r: ByteReader) => r.sizedBytes(), "bytes.invalid"],
    ["compact null bytes likewise", "00", (r: ByteReader) => r.compactBytes(), "bytes.invalid"],
    ["more items than bytes", "7fffffff 00", (r: ByteReader) => r.arrayCount(), "bytes.limit"],
    [
      "more items of four bytes than fit",
      "00000002 00000000 000000",
      (r: ByteReader) => r.arrayCount(4),
      "bytes.limit",
    ],
    ["a negative count", "fffffffe", (r: ByteReader) => r.arrayCount(), "bytes.invalid"],
    [
      "a compact count above the rest",
      "ffffffff0f 00",
      (r: ByteReader) => r.compactArrayCount(),
      "bytes.limit",
    ],
    ["tags above the rest", "ff7f 00", (r: ByteReader) => r.taggedFields(), "bytes.limit"],
    ["a tag longer than the rest", "01 00 7f 00", (r: ByteReader) => r.taggedFields(), "bytes.short"],
    ["a negative skip", "00", (r: ByteReader) => r.skip(-1), "bytes.invalid"],
    ["a slice past the end", "00", (r: ByteReader) => r.slice(2), "bytes.short"],
  ] as const)("%s", (_, text, read, code) => {
    const r = reader(text);
    expect(codeOf(() => read(r))).toBe(code);
  });

  test("a shortage names the place and leaves the position", () => {
    const r = reader("000000");
    r.u8();
    try {
      r.i32();
      throw new Error("not refused");
    } catch (e) {
      expect((e as Failure).message).toBe("4 bytes needed at 1, 2 left");
      expect((e as Failure).at).toBe("a test");
    }
    expect(r.pos).toBe(1);
  });

  test("a reader over a range outside of its bytes is a bug", () => {
    expect(codeOf(() => new ByteReader(new Uint8Array(4), 0, 5))).toBe("internal.bug");
    expect(codeOf(() => new ByteReader(new Uint8Array(4), 3, 2))).toBe("internal.bug");
  });

  test("a null array is -1 in both forms", () => {
    expect(reader("ffffffff").arrayCount()).toBe(-1);
    expect(reader("00").compactArrayCount()).toBe(-1);
    expect(reader("00000001 00").arrayCount()).toBe(1);
  });
});

type Field =
  | { readonly t: "i32"; readonly v: number }
  | { readonly t: "uvarint"; readonly v: number }
  | { readonly t: "varint"; readonly v: number }
  | { readonly t: "i64"; readonly v: bigint }
  | { readonly t: "varlong"; readonly v: bigint }
  | { readonly t: "string"; readonly v: string | null }
  | { readonly t: "compactString"; readonly v: string | null }
  | { readonly t: "bytes"; readonly v: Uint8Array | null }
  | { readonly t: "compactBytes"; readonly v: Uint8Array | null };

const text = fc.option(fc.string({ unit: "grapheme", maxLength: 20 }));
const bytes = fc.option(fc.uint8Array({ maxLength: 20 }));
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const field: fc.Arbitrary<Field> = fc.oneof(
  fc.record({ t: fc.constant("i32" as const), v: fc.integer() }),
  fc.record({ t: fc.constant("uvarint" as const), v: fc.integer({ min: 0, max: 2 ** 32 - 1 }) }),
  fc.record({ t: fc.constant("varint" as const), v: fc.integer() }),
  fc.record({ t: fc.constant("i64" as const), v: int64 }),
  fc.record({ t: fc.constant("varlong" as const), v: int64 }),
  fc.record({ t: fc.constant("string" as const), v: text }),
  fc.record({ t: fc.constant("compactString" as const), v: text }),
  fc.record({ t: fc.constant("bytes" as const), v: bytes }),
  fc.record({ t: fc.constant("compactBytes" as const), v: bytes }),
);

function write(w: ByteWriter, f: Field): void {
  switch (f.t) {
    case "i32":
      w.i32(f.v);
      break;
    case "uvarint":
      w.uvarint(f.v);
      break;
    case "varint":
      w.varint(f.v);
      break;
    case "i64":
      w.i64(f.v);
      break;
    case "varlong":
      w.varlong(f.v);
      break;
    case "string":
      w.string(f.v);
      break;
    case "compactString":
      w.compactString(f.v);
      break;
    case "bytes":
      w.sizedBytes(f.v);
      break;
    case "compactBytes":
      w.compactBytes(f.v);
      break;
  }
}

const READ = {
  i32: (r: ByteReader) => r.i32(),
  uvarint: (r: ByteReader) => r.uvarint(),
  varint: (r: ByteReader) => r.varint(),
  i64: (r: ByteReader) => r.i64(),
  varlong: (r: ByteReader) => r.varlong(),
  string: (r: ByteReader) => r.nullableString(),
  compactString: (r: ByteReader) => r.compactNullableString(),
  bytes: (r: ByteReader) => r.nullableBytes(),
  compactBytes: (r: ByteReader) => r.compactNullableBytes(),
} as const;

test("what is written is read back, and every cut of it is a shortage, not a wrong value past the end", () => {
  fc.assert(
    fc.property(fc.array(field, { minLength: 1, maxLength: 8 }), (fields) => {
      const w = new ByteWriter(16);
      for (const f of fields) write(w, f);
      const whole = w.copy();
      const r = new ByteReader(whole);
      for (const f of fields) expect(READ[f.t](r) as unknown).toEqual(f.v);
      expect(r.remaining).toBe(0);
      const cut = new ByteReader(whole, 0, whole.length - 1);
      const code = codeOf(() => {
        for (const f of fields) READ[f.t](cut);
      });
      expect(code).toBe("bytes.short");
    }),
    { numRuns: 300 },
  );
});
