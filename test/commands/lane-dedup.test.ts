/**
 * Goal: a lane judges a stream's next records by those that stand in raw before them, wherever raw has them; raw that is gone
 * counts no more from then on, durably; another natural key begins anew. Method: raw files by the raw encoder in a folder, with
 * the coverage that names them; the control thread's and the lane's ends joined by their messages; what is stored otherwise DuckDB reads.
 */
import { afterAll, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { coverageFolderOf, LocalVersionedStore } from "../../src/adapters/coverage/local.ts";
import { DuckEngine, sqlText } from "../../src/adapters/duckdb/engine.ts";
import { fallbackCodecs } from "../../src/adapters/duckdb/native-fallback.ts";
import { parquetSinkSpec } from "../../src/adapters/parquet/spec.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import type { ResolvedConfig } from "../../src/commands/config-file.ts";
import { DedupAnswers, type DedupService, dedupService } from "../../src/commands/dedup-service.ts";
import { laneDuplicates, Undecided } from "../../src/commands/lane-dedup.ts";
import { AskedDedup } from "../../src/commands/lane-dedup-asks.ts";
import { partDecoder } from "../../src/commands/payload-decoder.ts";
import { decodeSpec } from "../../src/core/config/decode-options.ts";
import { dedupSpec } from "../../src/core/config/dedup-options.ts";
import { type CoverageState, EMPTY_STATE, NEW_STREAM } from "../../src/core/coverage/state.ts";
import { encodeState } from "../../src/core/coverage/state-json.ts";
import { Failure, type FailureWire } from "../../src/core/failure/failure.ts";
import type { DecodedPart } from "../../src/core/pipeline/decode-keys.ts";
import { type DecodedGroup, DecodeReader } from "../../src/core/pipeline/decode-reader.ts";
import type { Duplicates } from "../../src/core/pipeline/duplicates.ts";
import { KnownSchemas, type KnownSchemasParts } from "../../src/core/pipeline/known-schemas.ts";
import { streamKey } from "../../src/core/records/stream.ts";
import type { SchemaText } from "../../src/core/schema/resolver.ts";
import { schemaDocument } from "../../src/core/types/schema-file.ts";
import type { ColumnField } from "../../src/core/types/table-batch.ts";
import { batchOf, bytes, fileOf, row, STREAM } from "../core/formats/parquet/rows.ts";
import { bareValues } from "../core/pipeline/bare-values.ts";

const KEY = streamKey(STREAM);
const root = mkdtempSync(join(tmpdir(), "twg-lane-dedup-"));
afterAll(() => rmSync(root, { recursive: true }));

const FIELDS: readonly ColumnField[] = ["id", "other"].map((name) => ({
  ...{ name, type: { id: "int", bits: 32, signed: true } as const, nullable: true },
}));
const schemaBy = (naturalKey: string): SchemaText => ({
  ...{ format: "json", text: schemaDocument({ fields: FIELDS }), references: [], id: "shop.yaml" },
  ...{ subject: null, version: null },
  table: { kind: "contract", fields: FIELDS, naturalKey: [naturalKey], origin: "a contract" },
});
const DECODE = decodeSpec.parse({ format: "json", schema_file: "shop.yaml" });

let folder: string;
let made = 0;

/** Record n is of the order n % 10, and of nothing else twice. */
const batch = (from: number, next: number) =>
  batchOf(
    Array.from({ length: next - from }, (_, i) =>
      row(from + i, { value: bytes(`{"id":${(from + i) % 10},"other":${from + i}}`) }),
    ),
  );

/** `sets`: of files, each. */
function coverageOf(...sets: readonly string[][]): CoverageState {
  const index = sets.map((keys) => {
    const targets = keys.map((key) => ({ key, bytes: statSync(join(folder, key)).size, rows: 50 }));
    const spans = keys.map((key) => {
      const from = BigInt(Number.parseInt(key, 10));
      return { stream: KEY, from, next: from + 50n };
    });
    return { id: keys[0]!, targets, spans, rows: 50 * keys.length, bytes: 0 };
  });
  const stream = { ...NEW_STREAM, origin: 0n, covered: [{ from: 0n, next: 100n }] };
  return { ...EMPTY_STATE, serial: 1, streams: new Map([[KEY, stream]]), index };
}

/** Two files of 50 records each. */
beforeEach(async () => {
  folder = join(root, String(made++));
  mkdirSync(folder);
  for (const from of [0, 50])
    writeFileSync(
      join(folder, `${from}.parquet`),
      fileOf([batch(from, from + 25), batch(from + 25, from + 50)]),
    );
  const store = new LocalVersionedStore(coverageFolderOf(folder, "p", "raw"));
  await store.prepare();
  expect(await store.write(null, encodeState(coverageOf(["0.parquet"], ["50.parquet"])), "t")).toBe("won");
});

function service(live: boolean, window: number, naturalKey = "id"): DedupService {
  const raw = {
    ...parquetSinkSpec.parse({ path: folder }),
    type: "parquet",
    name: "raw",
    duplicates: "keep",
  };
  const config = {
    ...{ pipeline: { name: "p" }, decode: DECODE, sink: raw },
    dedup: dedupSpec.parse({ window_records: window }),
    sinks: [raw, { duplicates: "drop" }],
  };
  const schemas = {
    find: async () => schemaBy(naturalKey),
    register: () => Promise.reject(new Error("none")),
  };
  return dedupService(config as unknown as ResolvedConfig, schemas, { instance: "i", live })!;
}

const reading: KnownSchemasParts = {
  clock: systemClock,
  schema: async () => schemaBy("id"),
  compile: (_, schema, message, part) =>
    partDecoder(DECODE, schema, part, { message: null, prefix: "key_" }, message, "_twg_"),
  trouble: () => {},
};
const reader = () =>
  new DecodeReader({
    schemas: new KnownSchemas(reading, () => async () => []),
    framing: bareValues,
    waiting: () => [],
  });

function lane(of: DedupService, windowRecords: number): Duplicates {
  const answers = new DedupAnswers(of);
  const asks: AskedDedup = new AskedDedup((ask) => void answers.answer(ask).then((a) => asks.answered(a)));
  const options = { windowRecords, windowMs: null, maxBytes: 1 << 20, rowGroupBytes: 1 << 20 };
  return laneDuplicates({
    options: { ...options, maxRows: 20, maxBatchBytes: 1 << 20 },
    inflate: fallbackCodecs,
    asks,
    reader: reader(),
  });
}

const live = reader();

/** Positions of the batch that are duplicates; or why that is not known. */
async function duplicates(judge: Duplicates, from: number, next: number): Promise<number[] | string> {
  const one = batch(from, next);
  for (let wait = judge.ready(one); wait !== null; wait = judge.ready(one)) await wait();
  const values: DecodedPart<DecodedGroup> = { groups: [], refused: [] };
  for (let wait = live.read(one, "value", values); wait !== null; wait = live.read(one, "value", values))
    await wait();
  const said = judge.judge(one, values.groups, values.refused);
  if (said instanceof Failure) return said.code;
  return said === null
    ? []
    : Array.from({ length: next - from }, (_, i) => from + i).filter((n) => said[n - from] === 1);
}

const all = (from: number, next: number) => Array.from({ length: next - from }, (_, i) => from + i);

test("the window before the next record is read from raw, from one file or several", async () => {
  // Record 100 + i is of the order of 90 + i: with 10 positions each is a duplicate, with 9 none is.
  for (const [window, wanted] of [
    [9, []],
    [10, all(100, 109)],
    [70, all(100, 109)],
  ] as const) {
    const of = service(true, window);
    await of.epoch(KEY, 0n);
    expect(await duplicates(lane(of, window), 100, 109)).toEqual([...wanted]);
  }
  expect(await duplicates(lane(service(false, 9), 9), 100, 109)).toBe("dedup.other_plan");
});

test("row groups of a set that hold nothing of the range are not read", async () => {
  const files = coverageOf(["0.parquet", "50.parquet"]);
  const store = new LocalVersionedStore(coverageFolderOf(folder, "p", "raw"));
  expect(await store.write(1, encodeState({ ...files, serial: 2 }), "u")).toBe("won");
  const groups = async (from: bigint, next: bigint) =>
    (await Array.fromAsync(service(true, 20).groups(KEY, { from, next }))).length;
  expect([await groups(40n, 75n), await groups(50n, 75n), await groups(0n, 50n)]).toEqual([2, 1, 1]);
});

test("raw that another program has rewritten, in another order, is read by the engine", async () => {
  const [from, to] = ["50.parquet", "new.parquet"].map((name) => join(folder, name)) as [string, string];
  const engine = new DuckEngine({ threads: 1, memoryBytes: 1 << 28, spill: null, allowed: [folder] });
  const times = ["source_timestamp", "ingest_ts", "emit_ts", "source_event_time"]
    .map((c) => `"_twg_${c}"::TIMESTAMP_MS AS "_twg_${c}"`)
    .join(", ");
  engine.run(
    `COPY (SELECT * REPLACE (${times}) FROM read_parquet(${sqlText(from)}) ORDER BY "_twg_source_offset" DESC) TO ${sqlText(to)} (FORMAT parquet)`,
  );
  engine.close();
  renameSync(to, from);
  const of = service(true, 30);
  await of.epoch(KEY, 0n);
  expect(await duplicates(lane(of, 30), 100, 110)).toEqual(all(100, 110));
});

test("recovery says the same of records that are in raw; of those before there was a plan none is one", async () => {
  const of = service(true, 20);
  await of.epoch(KEY, 60n);
  expect(await duplicates(lane(service(false, 20), 20), 0, 50)).toEqual([]);
  // The window does not reach back over where it began.
  expect(await duplicates(lane(service(false, 20), 20), 60, 100)).toEqual(all(70, 100));
  expect(await of.cuts()).toEqual(new Map([[KEY, [60n]]]));
});

test("raw that is gone counts no more for what comes, and is missed where it counted", async () => {
  const before = service(true, 100);
  await before.epoch(KEY, 20n);
  rmSync(join(folder, "0.parquet"));
  const now = service(true, 100);
  expect(await duplicates(lane(now, 100), 100, 110)).toEqual(all(100, 110));
  expect(await now.epoch(KEY, 100n)).toMatchObject({ since: 50n, until: null });
  expect(await before.cuts()).toEqual(new Map([[KEY, [20n, 100n]]]));
  expect(await duplicates(lane(service(false, 100), 100), 60, 70)).toBe("recovery.raw_missing");
});

test("another natural key is another plan", async () => {
  await service(true, 20).epoch(KEY, 0n);
  const { since } = await service(true, 20, "other").epoch(KEY, 100n);
  expect(since).toBe(100n);
});

test("where nothing leaves duplicates out nobody is asked", () => {
  const config = { sinks: [{ duplicates: "keep" }], sink: { type: "parquet" } };
  expect(dedupService(config as unknown as ResolvedConfig, null, { instance: "i", live: true })).toBeNull();
});

test("sinks say that they let streams go by until none is left", () => {
  const told: (string | null)[] = [];
  const undecided = new Undecided((f: FailureWire | null) => void told.push(f?.code ?? null));
  const [loading, memory] = [new Failure("dedup.loading", ""), new Failure("dedup.memory", "")];
  for (const [stream, why] of [
    [1, null],
    [1, loading],
    [1, loading],
    [2, memory],
    [1, null],
    [2, null],
    [2, null],
  ] as const)
    undecided.set(stream, why);
  expect(told).toEqual(["dedup.loading", "dedup.memory", null]);
});
