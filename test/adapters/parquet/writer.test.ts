/** The Parquet sink's writer over a store in memory that can refuse: files, names, footers, retries. */
import { describe, expect, test } from "bun:test";
import { parquetMetadata } from "hyparquet";
import { parquetSinkSpec } from "../../../src/adapters/parquet/spec.ts";
import { ParquetWriter } from "../../../src/adapters/parquet/writer.ts";
import type { Codecs } from "../../../src/core/compression/codec.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { ObjectStore, StagedObject, Target } from "../../../src/core/ports/object-store.ts";
import type { RawBatch } from "../../../src/core/records/raw-batch.ts";
import type { Span } from "../../../src/core/records/stream.ts";
import {
  batchOf,
  bytes,
  comparable,
  concat,
  EMIT_TS,
  expectedRow,
  readBack,
  row,
  STREAM,
  zstd,
} from "../../core/formats/parquet/rows.ts";

/** A store in memory; `refuse` is asked before every call. */
class MemoryStore implements ObjectStore {
  readonly place = "memory";
  readonly sealed = new Map<string, Uint8Array<ArrayBuffer>>();
  aborted = 0;
  calls: string[] = [];
  refuse: (call: string) => boolean = () => false;

  #ask(call: string): void {
    this.calls.push(call);
    if (this.refuse(call)) throw new Failure("store.full", `refused ${call}`);
  }

  async stage(key: string): Promise<StagedObject> {
    this.#ask("stage");
    const parts: Uint8Array[] = [];
    return {
      key,
      append: async (b) => {
        this.#ask("append");
        parts.push(b.slice());
      },
      seal: async (rows) => {
        this.#ask("seal");
        if (this.sealed.has(key)) throw new Error(`${key} is sealed twice`);
        const all = concat(parts);
        this.sealed.set(key, all);
        return { key, staging: `${key}.staged`, bytes: all.length, rows };
      },
      abort: async () => {
        this.aborted++;
        this.#ask("abort");
      },
    };
  }
  async probe(): Promise<"absent"> {
    return "absent";
  }
  async publish(): Promise<void> {}
  async discard(): Promise<void> {}
  async sweep(): Promise<readonly string[]> {
    return [];
  }
}

const codecs = { zstdCompress: (a: Uint8Array, b: Uint8Array) => zstd.compress(a, b) } as unknown as Codecs;
const clock = { now: () => EMIT_TS, monotonic: () => 0, after: () => ({ cancel() {} }) };

function writerOver(store: ObjectStore, given: Record<string, unknown> = {}): ParquetWriter {
  const options = parquetSinkSpec.parse({ path: "/d", ...given });
  return new ParquetWriter(
    { ...options, pipeline: "p", sink: "raw", version: "1.2.3" },
    { store, codecs, clock },
  );
}

const rowsFrom = (from: number, n: number, timestamp = 1_700_000_000_000n) =>
  Array.from({ length: n }, (_, i) => row(from + i, { value: bytes(`v${from + i}`), timestamp }));
const spansOf = (...batches: RawBatch[]): Span[] => batches.map((b) => b.span);
const DAY = 86_400_000n;

async function read(store: MemoryStore, target: Target | undefined) {
  return readBack(store.sealed.get(target?.key ?? "")!);
}

function footerOf(store: MemoryStore, target: Target | undefined): Record<string, string> {
  const meta = parquetMetadata(store.sealed.get(target?.key ?? "")!.buffer);
  return Object.fromEntries((meta.key_value_metadata ?? []).map((e) => [e.key, e.value ?? ""]));
}

describe("a set", () => {
  test("is one file without a template, named by pipeline, id and number, with everything in its footer", async () => {
    const store = new MemoryStore();
    const w = writerOver(store);
    const rows = rowsFrom(0, 10);
    const batch = batchOf(rows);
    w.open("i7");
    expect(w.write(batch)).toBe(10);
    const set = await w.seal([{ stream: batch.span.stream, from: 0n, next: 2n ** 53n + 1n }]);
    expect(set.rows).toBe(10);
    expect(set.targets.map((t) => [t.key, t.rows])).toEqual([["p-i7-0.parquet", 10]]);
    expect(set.bytes).toBe(store.sealed.get("p-i7-0.parquet")!.length);
    expect((await read(store, set.targets[0])).map(comparable)).toEqual(rows.map((r) => expectedRow(r)));
    expect(footerOf(store, set.targets[0])).toEqual({
      "twg.version": "1.2.3",
      "twg.pipeline": "p",
      "twg.sink": "raw",
      "twg.intent": "i7",
      "twg.files": "1",
      "twg.spans": '[{"stream":"kafka/c1/orders/0/3","from":"0","next":"9007199254740993"}]',
    });
  });

  test("with dates in the path a batch goes to a file per date, each row to its own", async () => {
    const store = new MemoryStore();
    const w = writerOver(store, { path: "/d/{topic}/{date}" });
    const rows = [
      ...rowsFrom(0, 3),
      ...rowsFrom(3, 2, 1_700_000_000_000n + DAY),
      ...rowsFrom(5, 4),
      ...rowsFrom(9, 1, -1n),
    ];
    const batch = batchOf(rows);
    w.open("i");
    w.write(batch);
    const set = await w.seal(spansOf(batch));
    expect(set.targets.map((t) => [t.key, t.rows])).toEqual([
      ["orders/2023-11-14/p-i-0.parquet", 7],
      ["orders/2023-11-15/p-i-1.parquet", 2],
      ["orders/unknown/p-i-2.parquet", 1],
    ]);
    const offsets = await Promise.all(
      set.targets.map(async (t) => (await read(store, t)).map((r) => Number(r._twg_source_offset))),
    );
    expect(offsets).toEqual([[0, 1, 2, 5, 6, 7, 8], [3, 4], [9]]);
    expect(footerOf(store, set.targets[1])["twg.files"]).toBe("3");
  });

  test("whose spans hold no rows has no file, and the store is not asked", async () => {
    const store = new MemoryStore();
    const w = writerOver(store);
    w.open("i");
    w.write(batchOf([]));
    await w.flush();
    expect(await w.seal([{ stream: "kafka/c1/orders/0/3", from: 5n, next: 9n }])).toEqual({
      targets: [],
      covered: false,
      rows: 0,
      bytes: 0,
    });
    expect(store.calls).toEqual([]);
  });

  test("after it the next one begins with files of its own", async () => {
    const store = new MemoryStore();
    const w = writerOver(store);
    for (const id of ["a", "b"]) {
      const batch = batchOf(rowsFrom(0, 2));
      w.open(id);
      w.write(batch);
      const { targets } = await w.seal(spansOf(batch));
      expect(targets.map((t) => t.key)).toEqual([`p-${id}-0.parquet`]);
    }
  });

  test("that is begun while another is open, or rows without one, are bugs that are told", () => {
    const w = writerOver(new MemoryStore());
    expect(() => w.write(batchOf(rowsFrom(0, 1)))).toThrow("before a set");
    w.open("a");
    w.write(batchOf(rowsFrom(0, 1)));
    expect(() => w.open("b")).toThrow("is open");
  });

  test("can be without compression", async () => {
    const store = new MemoryStore();
    const w = writerOver(store, { compression: "none", metadata_prefix: "m_" });
    const batch = batchOf(rowsFrom(0, 2));
    w.open("a");
    w.write(batch);
    const { targets } = await w.seal(spansOf(batch));
    const file = store.sealed.get(targets[0]!.key)!;
    const columns = parquetMetadata(file.buffer).row_groups[0]!.columns;
    expect(new Set(columns.map((c) => c.meta_data?.codec))).toEqual(new Set(["UNCOMPRESSED"]));
    expect((await readBack(file)).map((r) => r.m_source_offset)).toEqual([0n, 1n]);
  });
});

describe("memory and size", () => {
  test("the batch's arrays may be reused as soon as `write` returns", async () => {
    const store = new MemoryStore();
    const w = writerOver(store);
    const batch = batchOf(rowsFrom(0, 3));
    w.open("a");
    w.write(batch);
    batch.value.data.fill(0);
    batch.offsets.fill(-1);
    batch.timestamps.fill(-1);
    const { targets } = await w.seal(spansOf(batch));
    const read3 = await read(store, targets[0]);
    expect(read3.map(comparable)).toEqual(rowsFrom(0, 3).map((r) => expectedRow(r)));
  });

  test("never has more files open than it may: the rest of the rows is for the next set", async () => {
    const store = new MemoryStore();
    const w = writerOver(store, { path: "/d/{date}", max_open_files: 2 });
    const days = [0n, 1n, 0n, 2n, 0n, 3n];
    const rows = days.map((d, i) => row(i, { timestamp: 1_700_000_000_000n + d * DAY }));
    const batch = batchOf(rows);
    w.open("a");
    expect(w.write(batch)).toBe(3);
    // Those that are open take rows still.
    expect(w.write(batchOf(rows.slice(0, 3)))).toBe(3);
    expect((await w.seal(spansOf(batch))).targets.map((t) => t.rows)).toEqual([4, 2]);
    w.open("b");
    expect(w.write(batchOf(rows.slice(3)))).toBe(2);
  });

  test("`largest` grows to the size of the largest file, `held` falls when it is flushed", async () => {
    const store = new MemoryStore();
    const w = writerOver(store, { row_group_bytes: "1MiB", compression: "none", path: "/d/{date}" });
    const big = Array.from({ length: 60 }, (_, i) => row(i, { value: new Uint8Array(50_000).fill(i) }));
    w.open("a");
    w.write(batchOf(rowsFrom(0, 5, 0n)));
    w.write(batchOf(big));
    expect(w.largest).toBeGreaterThan(3_000_000);
    expect(w.largest).toBeLessThan(3_200_000);
    const before = w.held;
    await w.flush();
    const pool = before - w.held;
    expect(pool).toBeGreaterThanOrEqual(0);
    await w.abort();
    expect(w.largest).toBe(0);
    expect(store.aborted).toBe(2);
  });
});

describe("a store that refuses", () => {
  /** Goal: nothing is lost or doubled wherever it refuses. Method: refuse the n-th call once, for every n. */
  test("once, at each call of a set in turn: the same calls again end in the same files", async () => {
    const batches = [
      batchOf(rowsFrom(0, 2000)),
      batchOf(rowsFrom(2000, 2000, 0n)),
      batchOf(rowsFrom(4000, 100)),
    ];
    const run = async (refuseAt: number) => {
      const store = new MemoryStore();
      let refused = 0;
      store.refuse = () => store.calls.length === refuseAt && refused++ === 0;
      const w = writerOver(store, { path: "/d/{date}", row_group_bytes: "64KiB" });
      const insist = async <T>(work: () => Promise<T>): Promise<T> => {
        try {
          return await work();
        } catch (e) {
          expect((e as Failure).code).toBe("store.full");
          return work();
        }
      };
      w.open("a");
      for (const b of batches) {
        w.write(b);
        await insist(() => w.flush());
      }
      const set = await insist(() => w.seal(spansOf(...batches)));
      return { store, set, refused };
    };
    const clean = await run(-1);
    const calls = clean.store.calls.length;
    expect(calls).toBeGreaterThan(6);
    for (let at = 1; at <= calls; at++) {
      const { store, set, refused } = await run(at);
      expect(refused).toBe(1);
      expect(set).toEqual(clean.set);
      for (const [key, file] of clean.store.sealed)
        expect(Buffer.from(store.sealed.get(key)!).equals(Buffer.from(file))).toBe(true);
    }
  });

  test("to abort: the files are dropped all the same", async () => {
    const store = new MemoryStore();
    const w = writerOver(store);
    w.open("a");
    w.write(batchOf(rowsFrom(0, 1)));
    await w.flush();
    store.refuse = () => true;
    await w.abort();
    store.refuse = () => false;
    w.open("b");
    const batch = batchOf(rowsFrom(7, 1), STREAM);
    w.write(batch);
    const { targets } = await w.seal(spansOf(batch));
    expect((await read(store, targets[0])).map((r) => r._twg_source_offset)).toEqual([7n]);
  });
});

describe("options", () => {
  const problems = (given: unknown) =>
    parquetSinkSpec.safeParse(given).error?.issues.map((i) => i.path.join(".")) ?? [];

  test("defaults", () => {
    const { path: _, ...rest } = parquetSinkSpec.parse({ path: "/d" });
    expect(rest).toEqual({
      roll_bytes: 256 * 2 ** 20,
      roll_interval_ms: 10_000,
      row_group_bytes: 32 * 2 ** 20,
      compression: "zstd",
      compression_level: 1,
      metadata_prefix: "_twg_",
      max_open_files: 64,
    });
  });

  test("what is out of bounds or unknown is named", () => {
    expect(problems({ path: "/d/{nope}" })).toEqual(["path"]);
    expect(problems({})).toEqual(["path"]);
    expect(problems({ path: "/d", compression: "lz4" })).toEqual(["compression"]);
    expect(problems({ path: "/d", compression_level: 20 })).toEqual(["compression_level"]);
    expect(problems({ path: "/d", metadata_prefix: "1-" })).toEqual(["metadata_prefix"]);
    expect(problems({ path: "/d", row_group_bytes: "1KiB" })).toEqual(["row_group_bytes"]);
    expect(parquetSinkSpec.safeParse({ path: "/d", sync: true }).success).toBe(false);
  });
});
