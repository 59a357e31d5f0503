/**
 * Goal: records that were written as raw come out of raw again as they were, whatever files and row groups they lie in,
 * and files that are not what they should be are named. Method: files by the raw encoder in a folder, read as recovery does,
 * written once more and compared cell for cell by hyparquet.
 */
import { describe, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parquetSinkSpec } from "../../src/adapters/parquet/spec.ts";
import type { SinkOf } from "../../src/commands/config-file.ts";
import { sinksToFill } from "../../src/commands/recover-plan.ts";
import { rawSets } from "../../src/commands/recover-sets.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import type { StreamId } from "../../src/core/records/stream.ts";
import {
  batchOf,
  bytes,
  comparable,
  expectedRow,
  fileOf,
  type ReadRow,
  type Row,
  readBack,
  row,
  STREAM,
} from "../core/formats/parquet/rows.ts";
import { replayedBatches, type Wanted } from "./replayed.ts";
import { RICH } from "./rich-rows.ts";

const OTHER: StreamId = { ...STREAM, partition: 4 };
const EARLIER: StreamId = { ...STREAM, topic: "orders", incarnation: 1 };

/** Rows of a set of such files as recovery reads them, in a file of their own. */
async function replayed(files: readonly Uint8Array[], wanted: Wanted, written?: number) {
  const batches = await replayedBatches(files, wanted, written);
  const full = batches.filter((b) => b.rows > 0);
  const rows = full.length === 0 ? [] : (await readBack(fileOf(full))).map(comparable);
  return { rows, spans: batches.map((b) => `[${b.span.from}, ${b.span.next})`) };
}

const code = (work: Promise<unknown>) =>
  work.then(
    () => "none",
    (e: unknown) => (e instanceof Failure ? e.code : String(e)),
  );

/** A disk that gives back another bit: the file is refused, or says what it said. */
async function neverOtherRows(file: Uint8Array, wanted: Wanted) {
  const { rows } = await replayed([file], wanted);
  const footerBytes = new DataView(file.buffer, file.byteOffset).getUint32(file.length - 8, true);
  const pagesEnd = file.length - 8 - footerBytes;
  let refused = 0;
  for (let at = 4; at < pagesEnd; at += Math.ceil(pagesEnd / 40)) {
    const spoiled = file.slice();
    spoiled[at]! ^= 0x10;
    const got = await replayed([spoiled], wanted, 300).catch((e: unknown) => {
      expect(e).toBeInstanceOf(Failure);
      return null;
    });
    if (got === null) refused++;
    else expect(got.rows).toEqual(rows);
  }
  expect(refused).toBeGreaterThan(30);
}

const expected = (rows: readonly Row[], ingest = 1_700_000_000_500): ReadRow[] =>
  rows.map((r) => comparable(expectedRow(r, STREAM, ingest)));

describe("raw that is read again", () => {
  test("is what was written: nulls, empty, headers, extremes, runs, over row groups", async () => {
    const file = fileOf([batchOf(RICH.slice(0, 1700)), batchOf(RICH.slice(1700))], { rowGroupBytes: 20_000 });
    const got = await replayed([file], { stream: STREAM, from: 0n, next: 20_000n });
    expect(got.rows).toEqual(expected(RICH));
    // Up to its end, though no record is there.
    expect(got.spans.at(-1)).toBe("[14999, 20000)");
    expect(got.spans[0]?.startsWith("[0, ")).toBe(true);
  });

  test("keeps when its bytes arrived, and has what is wanted alone", async () => {
    const file = fileOf([batchOf(RICH.slice(0, 50), STREAM, 111), batchOf(RICH.slice(50, 100), STREAM, 222)]);
    const [from, next] = [RICH[40]!.offset, RICH[60]!.offset];
    const got = await replayed([file], { stream: STREAM, from, next });
    expect(got.rows).toEqual([...expected(RICH.slice(40, 50), 111), ...expected(RICH.slice(50, 60), 222)]);
  });

  test("of several files is put in order: dates in the path deal a stream's rows out", async () => {
    const deal = (n: number) => RICH.filter((_, i) => i % 3 === n);
    const files = [0, 1, 2].map((n) => fileOf([batchOf(deal(n))], { rowGroupBytes: 30_000 }));
    const got = await replayed(files, { stream: STREAM, from: 0n, next: 15_000n });
    expect(got.rows).toEqual(expected(RICH));
  });

  test("is told apart by topic, partition, and by record id where a topic was made anew", async () => {
    const rows = (text: string) =>
      Array.from({ length: 30 }, (_, i) => row(i, { value: bytes(`${text}${i}`) }));
    const file = fileOf([
      batchOf(rows("old"), STREAM),
      batchOf(rows("other"), OTHER),
      batchOf(rows("new"), EARLIER),
      batchOf(rows("name"), { ...STREAM, topic: "o'rders" }),
    ]);
    for (const [stream, text] of [
      [STREAM, "old"],
      [OTHER, "other"],
      [EARLIER, "new"],
      [{ ...STREAM, topic: "o'rders" }, "name"],
    ] as const) {
      const got = await replayed([file], { stream, from: 0n, next: 30n, others: [STREAM, EARLIER] });
      expect(got.rows.map((r) => Buffer.from(r._twg_source_value as Uint8Array).toString())).toEqual(
        rows(text).map((r) => Buffer.from(r.value!).toString()),
      );
    }
  });

  test("that is not there, is damaged, is something else, or is there twice is named", async () => {
    const file = fileOf([batchOf(RICH.slice(0, 300))]);
    const wanted = { stream: STREAM, from: 0n, next: 900n };
    const damaged = file.slice();
    damaged[2000]! ^= 0xff;
    expect(await code(replayed([damaged], wanted))).toMatch(/^files\.(not_parquet|parquet_feature)$/);
    await neverOtherRows(file, wanted);
    expect(await code(replayed([file.slice(0, -20)], wanted, 300))).toBe("files.not_parquet");
    expect(await code(replayed([file], wanted, 301))).toBe("recovery.not_raw");
    expect(await code(replayed([file, file], wanted))).toBe("recovery.raw_order");
    const alien = fileOf([batchOf(RICH.slice(0, 300), EARLIER)]);
    expect(await code(replayed([alien], wanted))).toBe("recovery.not_raw");
    const options = parquetSinkSpec.parse({ path: "/nowhere/at/all" });
    const sink = { ...options, type: "parquet" } as unknown as SinkOf<"parquet">;
    const set = { id: "s", targets: [{ key: "x.parquet", bytes: 1, rows: 1 }], spans: [], rows: 1, bytes: 1 };
    expect(await code(rawSets(sink)(set))).toBe("recovery.raw_missing");
    const renamed = parquetSinkSpec.parse({ path: tmpdir(), metadata_prefix: "my_" });
    writeFileSync(join(tmpdir(), "twg-recover-renamed.parquet"), file);
    const other = { ...renamed, type: "parquet" } as unknown as SinkOf<"parquet">;
    const targets = [{ key: "twg-recover-renamed.parquet", bytes: 1, rows: 1 }];
    expect(await code(rawSets(other)({ ...set, targets }))).toBe("recovery.not_raw");
    rmSync(join(tmpdir(), "twg-recover-renamed.parquet"));
  });
});

test("sinks of rejects are filled with those of decoded rows; names that are none are refused", () => {
  const sink = (name: string, receives: "raw" | "decoded" | "rejected", role = "secondary") =>
    ({ name, receives, role: role as "primary_raw" | "secondary" }) as const;
  const all = [
    sink("raw", "raw", "primary_raw"),
    sink("copy", "raw"),
    sink("rows", "decoded"),
    sink("bad", "rejected"),
  ];
  const names = (...named: string[]) => sinksToFill(all, named, "f.toml").map((s) => s.name);
  expect(names()).toEqual(["copy", "rows", "bad"]);
  expect(names("rows")).toEqual(["rows", "bad"]);
  expect(names("copy")).toEqual(["copy"]);
  expect(() => names("raw")).toThrow("no sink beside the primary one");
});
