/**
 * Goal: pages are read back as the format says, and bytes that are no such page end in one kind of error, never in another
 * or in a hang. Method: pages made by hand, pages of the writer of which single bytes are changed, and random bytes.
 */
import { describe, expect, test } from "bun:test";
import { fallbackCodecs } from "../../../../src/adapters/duckdb/native-fallback.ts";
import { putDeltaInt64 } from "../../../../src/core/formats/parquet/delta.ts";
import { LevelWriter, putLevels } from "../../../../src/core/formats/parquet/levels.ts";
import { ENCODING } from "../../../../src/core/formats/parquet/page.ts";
import {
  BytesPages,
  IdPages,
  Int64Pages,
  ListPages,
} from "../../../../src/core/formats/parquet/read-columns.ts";
import { readDeltaLengths, readDeltaPairs } from "../../../../src/core/formats/parquet/read-delta.ts";
import { PHYSICAL } from "../../../../src/core/formats/parquet/read-footer.ts";
import { readHybrid } from "../../../../src/core/formats/parquet/read-levels.ts";
import { RunsReader } from "../../../../src/core/formats/parquet/read-runs.ts";
import {
  PageDamage,
  PageInflater,
  type StoredPages,
} from "../../../../src/core/formats/parquet/stored-pages.ts";

const page = (raw: Uint8Array, values: number, encoding: number): StoredPages => ({
  codec: 0,
  dictionary: null,
  pages: [{ at: 0, bytes: raw.length, rawBytes: raw.length, values, encoding }],
});

/** Levels 1 but where `nulls` says. */
function levels(count: number, nulls: readonly number[] = []): Uint8Array {
  const w = new LevelWriter(1);
  for (let i = 0; i < count; i++) w.add(nulls.includes(i) ? 0 : 1, 1);
  const all = new Uint8Array(32 + count);
  return all.subarray(0, putLevels(all, 0, w.finish()));
}

const joined = (...parts: (Uint8Array | readonly number[])[]) => new Uint8Array(parts.flatMap((p) => [...p]));
const textOf = (c: ReturnType<BytesPages["slice"]>, i: number) =>
  Buffer.from(c.data.subarray(c.offsets[i], c.offsets[i + 1])).toString();

describe("PLAIN pages, which other writers make", () => {
  test("of byte strings and of numbers, with nulls between", () => {
    // parquet-format Encodings.md: a length of four bytes, then the bytes.
    const raw = joined(levels(3, [1]), [2, 0, 0, 0, 97, 98, 1, 0, 0, 0, 99]);
    const strings = new BytesPages(fallbackCodecs);
    strings.open(raw, page(raw, 3, ENCODING.plain));
    strings.seek(2);
    const all = strings.slice(0, 3);
    expect([textOf(all, 0), textOf(all, 1), textOf(all, 2), all.nullCount]).toEqual(["ab", "", "c", 1]);
    expect(all.validity[0]! & 7).toBe(0b101);

    const numbers = joined(levels(2, [0]), [0x2a, 0, 0, 0, 0, 0, 0, 0x80]);
    const column = new Int64Pages(-1, fallbackCodecs);
    column.open(numbers, page(numbers, 2, ENCODING.plain));
    column.seek(0);
    expect([...column.pairs.subarray(0, 4)]).toEqual([-1, -1, 0x2a, -(2 ** 31)]);
  });

  test("of which a part is missing", () => {
    for (const [raw, read] of [
      [joined(levels(1), [9, 0, 0, 0, 97]), new BytesPages(fallbackCodecs)],
      [joined(levels(1), [1, 2, 3]), new Int64Pages(0, fallbackCodecs)],
      [new Uint8Array(15), new IdPages(fallbackCodecs)],
    ] as const) {
      read.open(raw, page(raw, 1, ENCODING.plain));
      expect(() => read.seek(0)).toThrow(PageDamage);
      read.open(raw, { codec: 0, dictionary: null, pages: [] });
      expect(() => read.seek(0)).toThrow(PageDamage);
    }
  });
});

test("a page of lists that begins within a row, which no writer of records makes, is not read as if it began one", () => {
  // Two entries of definition level 3, in runs of two bits; the first goes on with a row of another page, or begins one.
  const page3 = (first: 0 | 1) =>
    joined(levels(2, first === 0 ? [0, 1] : [1]), [2, 0, 0, 0, 4, 3], [1, 0, 0, 0, 97, 1, 0, 0, 0, 98]);
  for (const first of [0, 1] as const) {
    const raw = page3(first);
    const list = new ListPages(3, fallbackCodecs);
    list.open(raw, page(raw, 2, ENCODING.plain));
    if (first === 1) expect(() => list.seek(0)).toThrow(PageDamage);
    else {
      list.seek(1);
      expect(textOf(list.slice(1, 2), 0)).toBe("b");
    }
  }
});

test("the hybrid of runs and packed groups", () => {
  // Encodings.md: 3 times 5 as a run of 3 bits; 0 to 7 packed (its own example: 0x88 0xC6 0xFA).
  const seen: number[] = [];
  const bytes = joined([6, 5], [3, 0x88, 0xc6, 0xfa]);
  readHybrid(bytes, 0, bytes.length, 3, 11, (v, n) => {
    for (let i = 0; i < n; i++) seen.push(v);
  });
  expect(seen).toEqual([5, 5, 5, 0, 1, 2, 3, 4, 5, 6, 7]);
});

test("deltas of any width, of which those of 33 bits and more have two words", () => {
  for (const step of [0n, 1n, 1n << 20n, (1n << 40n) + 7n, -(1n << 62n)]) {
    const values = BigInt64Array.from({ length: 300 }, (_, i) =>
      BigInt.asIntN(64, step * BigInt((i * i) % 37)),
    );
    const out = new Uint8Array(8000);
    const pairs = new Int32Array(values.buffer);
    const end = putDeltaInt64(pairs, 300, out, 0);
    const back = new Int32Array(600);
    expect(readDeltaPairs(out, 0, 300, back)).toBe(end);
    expect(back).toEqual(pairs);
  }
});

test("runs with a dictionary of fixed numbers, nulls before, between and behind", () => {
  // Two values of four bytes; rows: null, 7, 7, null, 9, null.
  const dictionary = joined([7, 0, 0, 0], [9, 0, 0, 0]);
  const data = joined(levels(6, [0, 3, 5]), [1, 4, 0, 2, 1]);
  const file = joined(dictionary, data);
  const pages: StoredPages = {
    codec: 0,
    dictionary: { at: 0, bytes: 8, rawBytes: 8, values: 2, encoding: ENCODING.plain },
    pages: [
      { at: 8, bytes: data.length, rawBytes: data.length, values: 6, encoding: ENCODING.rleDictionary },
    ],
  };
  const shape = { physical: PHYSICAL.int32, required: false };
  const runs = new RunsReader(fallbackCodecs).read(file, pages, shape)!;
  expect([...runs.values.subarray(0, runs.count)]).toEqual([-1, 0, -1, 1, -1]);
  expect([...runs.ends.subarray(0, runs.count)]).toEqual([1, 3, 4, 5, 6]);
  const wrong = { ...pages, dictionary: { ...pages.dictionary!, values: 3 } };
  expect(() => new RunsReader(fallbackCodecs).read(file, wrong, shape)).toThrow(PageDamage);
  // An index beyond the dictionary, and indices of no bits, which is what some write for one value.
  const beyond = joined(dictionary, levels(1), [1, 2, 3]);
  const one = (bytes: Uint8Array, values: number) => ({
    ...pages,
    pages: [{ ...pages.pages[0]!, bytes: bytes.length - 8, rawBytes: bytes.length - 8, values }],
  });
  expect(() => new RunsReader(fallbackCodecs).read(beyond, one(beyond, 1), shape)).toThrow(PageDamage);
  const none = joined(dictionary, levels(4), [0]);
  const same = new RunsReader(fallbackCodecs).read(none, one(none, 4), shape)!;
  expect([same.count, same.ends[0], same.values[0]]).toEqual([1, 4, 0]);
});

test("a page that is longer or shorter than its header says", () => {
  const raw = new Uint8Array(100).fill(7);
  const stored = new Uint8Array(200);
  const bytes = fallbackCodecs.zstdCompress(raw, stored, 1);
  for (const rawBytes of [99, 101]) {
    const inflate = () =>
      new PageInflater(fallbackCodecs).raw(stored, 6, { at: 0, bytes, rawBytes, values: 1, encoding: 0 });
    expect(inflate).toThrow();
  }
});

test("5,000 pages of random bytes, and of right ones with some changed, end in damage or are read", () => {
  let state = 12345;
  const below = (n: number) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % n;
  };
  const good = (() => {
    const values = new Int32Array(new BigInt64Array(200).map((_, i) => BigInt(i * 3 + (i % 5))).buffer);
    const packed = new Uint8Array(4000);
    return joined(levels(200, [3, 50]), packed.subarray(0, putDeltaInt64(values, 198, packed, 0)));
  })();
  let damaged = 0;
  for (let n = 0; n < 5000; n++) {
    const raw = n % 2 === 0 ? Uint8Array.from({ length: below(80) }, () => below(256)) : good.slice();
    if (n % 2 === 1) for (let k = below(4); k >= 0; k--) raw[below(raw.length)] = below(256);
    const values = n % 2 === 0 ? below(40) + 1 : 200;
    const readers: ((of: StoredPages) => void)[] = [
      ...[
        new Int64Pages(0, fallbackCodecs),
        new BytesPages(fallbackCodecs),
        new ListPages(3, fallbackCodecs),
      ].map((reader) => (of: StoredPages) => {
        reader.open(raw, of);
        reader.seek(0);
      }),
      (of) =>
        void new RunsReader(fallbackCodecs).read(raw, of, { physical: PHYSICAL.boolean, required: false }),
      () => void readDeltaLengths(raw, 0, values, new Int32Array(values + 1)),
    ];
    for (const encoding of [ENCODING.plain, ENCODING.deltaBinaryPacked, ENCODING.deltaLengthByteArray])
      for (const read of readers)
        try {
          read(page(raw, values, encoding));
        } catch (e) {
          if (!(e instanceof PageDamage)) throw e;
          damaged++;
        }
  }
  expect(damaged).toBeGreaterThan(20_000);
});
