/**
 * Goal: a row group comes out as it went in, whatever its pages hold, and what somebody else stored otherwise is told
 * apart. Method: files of the real writer, rewritten by DuckDB for the latter; rows are compared with what was written.
 */
import { describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckEngine, sqlText } from "../../../src/adapters/duckdb/engine.ts";
import { fallbackCodecs } from "../../../src/adapters/duckdb/native-fallback.ts";
import { parquetFooter } from "../../../src/adapters/files/parquet-footer.ts";
import { groupsOf, readGroup } from "../../../src/commands/raw-groups.ts";
import { copyBatch } from "../../../src/core/records/copy-batch.ts";
import { int64At } from "../../../src/core/records/int64-at.ts";
import type { RawBatch } from "../../../src/core/records/raw-batch.ts";
import type { StreamId } from "../../../src/core/records/stream.ts";
import { OwnGroup } from "../../../src/core/recovery/own-group.ts";
import { leafOf } from "../../../src/core/recovery/raw-columns.ts";
import { replayedBatches } from "../../commands/replayed.ts";
import {
  batchOf,
  bytes,
  comparable,
  expectedRow,
  fileOf,
  readBack,
  row,
  STREAM,
} from "../formats/parquet/rows.ts";

const other = (partition: number): StreamId => ({ ...STREAM, partition });

/** Row groups of a file, each as a lane gets it. */
async function groups(file: Uint8Array): Promise<Uint8Array[]> {
  const read = async (from: number, to: number) => file.slice(from, to);
  const source = { size: file.length, read, close: () => {} };
  const footer = await parquetFooter(source, "f");
  const places = groupsOf(footer, "f", footer.rows, "_twg_");
  return await Promise.all(
    places.map(async (place) => {
      const body = new Uint8Array(place.bytes);
      await readGroup(source, place, body);
      return body;
    }),
  );
}

const reader = (maxRows = 1000, maxBytes = 1 << 20) =>
  new OwnGroup({ inflate: fallbackCodecs, maxRows, maxBytes });

/** Values as text, by position. */
function valuesOf(batches: readonly RawBatch[]): string[] {
  return batches.flatMap(({ rows, offsets, value }) =>
    Array.from({ length: rows }, (_, i) => {
      const text = Buffer.from(value.data.subarray(value.offsets[i], value.offsets[i + 1])).toString();
      return `${int64At(offsets, i)} ${text}`;
    }),
  );
}

describe("a row group of ours", () => {
  test("gives each of the streams that take turns in it its own rows, over pages that end where they like", async () => {
    // Values of 90 to 130 bytes: a page of 1 MiB ends after some 9,000 of them, positions' after 32,768.
    const text = (i: number, n: number) => `${i}-${n}-`.padEnd(90 + (n % 40), "x");
    const turns = Array.from({ length: 30 }, (_, t) => {
      const from = Math.floor(t / 3) * 1500;
      const rows = Array.from({ length: 1500 }, (_, n) =>
        row(from + n, { value: bytes(text(t % 3, from + n)), key: n % 4 === 0 ? null : bytes(`k${n}`) }),
      );
      return batchOf(rows, other(t % 3));
    });
    const [group, ...more] = await groups(fileOf(turns));
    expect(more.length).toBe(0);
    const own = reader();
    expect(own.open(group!)).toBe(true);
    for (const partition of [2, 0, 1]) {
      const batches: RawBatch[] = [];
      own.decode(other(partition), { from: 0n, next: 15_000n }, (b) => void batches.push(copyBatch(b)));
      const expected = Array.from({ length: 15_000 }, (_, n) => `${n} ${text(partition, n)}`);
      expect(valuesOf(batches)).toEqual(expected);
      // They follow one another.
      let at = 0n;
      for (const { span } of batches) {
        expect(span.from).toBe(at);
        at = span.next;
      }
    }
  });

  test("goes on where it was left, and begins anew where it is told to", async () => {
    const rows = Array.from({ length: 100 }, (_, i) => row(2 * i, { value: bytes(`v${i}`) }));
    const own = reader(10);
    for (const group of await groups(fileOf([batchOf(rows)]))) own.open(group);
    const seen: string[] = [];
    const once = (from: bigint, next: bigint, batches: number) => {
      let left = batches;
      try {
        own.decode(STREAM, { from, next }, (b) => {
          seen.push(`${b.rows} [${b.span.from}, ${b.span.next})`);
          if (--left === 0) throw new Error("enough");
        });
      } catch {}
    };
    once(0n, 200n, 2);
    once(39n, 45n, 9);
    once(45n, 47n, 9);
    once(1n, 3n, 9);
    expect(seen).toEqual([
      ...["10 [0, 19)", "10 [19, 39)"],
      ...["3 [39, 45)", "1 [45, 47)"],
      ...["1 [1, 3)"],
    ]);
  });

  test("is read whether its pages are compressed or not, and batches keep to their bytes", async () => {
    const rows = Array.from({ length: 50 }, (_, i) =>
      row(i, { value: bytes("v".repeat(100)), key: bytes("k") }),
    );
    for (const compressed of [true, false]) {
      const own = reader(1000, 1010);
      for (const group of await groups(fileOf([batchOf(rows)], { compressed })))
        expect(own.open(group)).toBe(true);
      const sizes: number[] = [];
      own.decode(STREAM, { from: 0n, next: 50n }, (b) => void sizes.push(b.rows));
      expect(sizes).toEqual([10, 10, 10, 10, 10]);
    }
  });
});

describe("a file that another program rewrote", () => {
  const rows = Array.from({ length: 3000 }, (_, i) =>
    row(i, {
      value: i % 9 === 0 ? null : bytes(`v${i % 50}`),
      key: bytes(`k${i % 7}`),
      headers: i % 5 === 0 ? [[bytes("h"), i % 2 === 0 ? null : bytes("x")]] : [],
    }),
  );
  const rewritten = (select: string): Uint8Array => {
    const folder = mkdtempSync(join(tmpdir(), "twg-own-"));
    const engine = new DuckEngine({ threads: 1, memoryBytes: 1 << 28, spill: null, allowed: [folder] });
    try {
      const [from, to] = [join(folder, "a.parquet"), join(folder, "b.parquet")];
      writeFileSync(from, fileOf([batchOf(rows.slice(0, 1000)), batchOf(rows.slice(1000))]));
      engine.run(
        `COPY (${select.replace("FILE", `read_parquet(${sqlText(from)})`)}) TO ${sqlText(to)} (FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE 2048)`,
      );
      return new Uint8Array(readFileSync(to));
    } finally {
      engine.close();
      rmSync(folder, { recursive: true });
    }
  };
  const MS = (c: string) => `"_twg_${c}"::TIMESTAMP_MS AS "_twg_${c}"`;
  const TIMES = ["source_timestamp", "ingest_ts", "emit_ts", "source_event_time"].map(MS).join(", ");

  test("is left to the engine, which reads the same of it, in the order of positions", async () => {
    const file = rewritten(`SELECT * REPLACE (${TIMES}) FROM FILE ORDER BY hash("_twg_source_offset")`);
    for (const group of await groups(file)) expect(reader().open(group)).toBe(false);
    const batches = await replayedBatches([file], { stream: STREAM, from: 0n, next: 3000n });
    const got = (await readBack(fileOf(batches.filter((b) => b.rows > 0)))).map(comparable);
    expect(got).toEqual(rows.map((r) => comparable(expectedRow(r, STREAM, 1_700_000_000_500))));
  });

  test("and now counts time in other units is refused", async () => {
    const file = rewritten("SELECT * FROM FILE");
    expect(replayedBatches([file], { stream: STREAM, from: 0n, next: 3000n })).rejects.toThrow(
      "milliseconds",
    );
  });
});

test("a group with more values than rows is refused before memory is taken for them", async () => {
  const file = fileOf([batchOf([row(0), row(1)])]);
  const source = {
    size: file.length,
    read: async (from: number, to: number) => file.slice(from, to),
    close: () => {},
  };
  const footer = await parquetFooter(source, "f");
  const more = (leaf: number) => {
    const groups = footer.groups.map((g) => ({
      ...g,
      chunks: g.chunks.map((c, i) => (i === leaf ? { ...c, values: 2 ** 31 - 1 } : c)),
    }));
    return () => groupsOf({ ...footer, groups }, "f", footer.rows, "_twg_");
  };
  expect(more(leafOf("source_offset"))).toThrow("has other than 2 values");
  expect(more(leafOf("record_id"))).toThrow("has other than 2 values");
  // Entries of headers are as many as they are.
  expect(more(leafOf("source_headers"))).not.toThrow();
});
