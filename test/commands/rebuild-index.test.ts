/**
 * Goal: `inspect coverage --rebuild` brings index and coverage of raw back from its files, beside nobody, and says what it left
 * out. Method: files by the raw sink's own writer in a folder, published as it does; what the state holds then is read by the
 * same command without the flag.
 */
import { beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { linuxIdentity } from "../../src/adapters/coverage/host-identity.ts";
import { coverageFolderOf, LocalVersionedStore } from "../../src/adapters/coverage/local.ts";
import { DuckEngine, sqlText } from "../../src/adapters/duckdb/engine.ts";
import { fallbackCodecs } from "../../src/adapters/duckdb/native-fallback.ts";
import { LocalObjectStore, stagingOf } from "../../src/adapters/object-store/local.ts";
import { ParquetWriter } from "../../src/adapters/parquet/writer.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { parquetFilesOf, readParquetFacts } from "../../src/commands/parquet-file.ts";
import { runCli } from "../../src/commands/program.ts";
import { CoverageKeeper } from "../../src/core/coverage/keeper.ts";
import { EMPTY_STATE, NEW_STREAM } from "../../src/core/coverage/state.ts";
import { encodeState } from "../../src/core/coverage/state-json.ts";
import { streamKey } from "../../src/core/records/stream.ts";
import { batchOf, row, STREAM } from "../core/formats/parquet/rows.ts";
import { fakeCli, fileWith, ORDERS } from "./fake-cli.ts";

let root: string;
let config: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "twg-rebuild-"));
  config = fileWith(ORDERS.replace("./data", `${root}/{topic}/{partition}`));
});

/** Rows of partitions 0 and 1, from these offsets on, ten of each, published as one set of a file each. */
async function landed(
  set: string,
  from: number,
  pipeline = "orders",
  partitions: readonly number[] = [0, 1],
): Promise<readonly string[]> {
  const objects = new LocalObjectStore({ root, staging: stagingOf(root, pipeline, "raw"), instance: set });
  await objects.prepare();
  const writer = new ParquetWriter(
    {
      ...{
        path: `${root}/{topic}/{partition}`,
        row_group_bytes: 4096,
        compression: "none",
        compression_level: 1,
      },
      ...{ metadata_prefix: "_twg_", max_open_files: 4, pipeline, sink: "raw", version: "0" },
    },
    { store: objects, codecs: fallbackCodecs, clock: systemClock },
  );
  writer.open(set);
  const spans = partitions.map((partition) => {
    const rows = Array.from({ length: 10 }, (_, i) => row(from + i));
    const batch = batchOf(rows, { ...STREAM, partition });
    writer.write(batch);
    return batch.span;
  });
  const { targets } = await writer.seal(spans);
  for (const t of targets) await objects.publish(t);
  return targets.map((t) => t.key);
}

async function inspect(...argv: string[]) {
  const cli = fakeCli({ TWG_SECRET_KAFKA_PASSWORD: "k" });
  const code = await runCli(["inspect", "coverage", "-c", config, ...argv], cli);
  return { code, out: cli.stdout(), err: cli.stderr() };
}

async function covered() {
  const [place] = JSON.parse((await inspect("--json")).out).places;
  return {
    files: place.files,
    rows: place.rows,
    covered: place.streams.map((s: { covered: { from: string; next: string }[] }) =>
      s.covered.map((r) => `${r.from}-${r.next}`).join(),
    ),
  };
}

test("a state that is gone comes back from the files", async () => {
  await landed("a", 0);
  await landed("b", 10);
  const { code, out, err } = await inspect("--rebuild");
  expect([code, err]).toEqual([0, ""]);
  expect(out).toContain("4 files, 2 sets in the index, 2 of them new to it");
  expect(await covered()).toEqual({ files: 4, rows: 40, covered: ["0-20", "0-20"] });
  // Again it finds nothing new.
  expect(JSON.parse((await inspect("--rebuild", "--json")).out)).toMatchObject({
    ...{ files: 4, sets: 2, added: [], covered: [], torn: [], gone: [], others: [] },
  });
  rmSync(coverageFolderOf(root, "orders", "raw"), { recursive: true });
  expect((await inspect("--rebuild")).code).toBe(0);
  expect(await covered()).toEqual({ files: 4, rows: 40, covered: ["0-20", "0-20"] });
});

test("what is not whole, not ours or not readable is told and not covered", async () => {
  await landed("a", 0);
  const [torn] = await landed("b", 10);
  await landed("x", 50, "another");
  rmSync(join(root, torn!));
  writeFileSync(join(root, "orders/spoiled.parquet"), "PAR1 and nothing else");
  const { code, out, err } = await inspect("--rebuild", "--json");
  expect(code).toBe(1);
  expect(err).toContain("inspect.not_parquet");
  const told = JSON.parse(out);
  expect(told).toMatchObject({ files: 6, sets: 1, added: ["a"], torn: [{ set: "b", found: 1, files: 2 }] });
  expect(told.others.length).toBe(2);
  expect(await covered()).toEqual({ files: 2, rows: 20, covered: ["0-10", "0-10"] });
});

test("files that are gone stay in the index by name", async () => {
  await landed("a", 0);
  const keys = await landed("b", 10);
  await inspect("--rebuild");
  for (const key of keys) rmSync(join(root, key));
  const { out } = await inspect("--rebuild");
  expect(out).toContain(`gone: set b, which held ${streamKey({ ...STREAM, partition: 0 })} [10, 20)`);
  expect((await covered()).covered).toEqual(["0-20", "0-20"]);
});

test("beside a pipeline that runs it does nothing", async () => {
  await landed("a", 0);
  const objects = new LocalObjectStore({ root, staging: stagingOf(root, "orders", "raw"), instance: "i" });
  const versions = new LocalVersionedStore(coverageFolderOf(root, "orders", "raw"));
  const other = new CoverageKeeper(
    { instance: "running", leaseMs: 15_000, minIntervalMs: 0 },
    { versions, objects, clock: systemClock, host: linuxIdentity() },
  );
  await other.open();
  const { code, err } = await inspect("--rebuild");
  expect(code).toBe(3);
  expect(err).toContain("coverage.owned");
  await other.close();
});

/** A second sink that has [0, 5) of partition 0 and [0, 20) of partition 1, of two sets that raw has. */
async function besideRaw(): Promise<readonly string[]> {
  const first = await landed("a", 0);
  await landed("b", 10);
  await inspect("--rebuild");
  copied();
  return first;
}

function copied(): void {
  const raw = `${root}/{topic}/{partition}`;
  const copy = mkdtempSync(join(tmpdir(), "twg-copy-"));
  config = fileWith(
    `${ORDERS.replace("./data", raw)}retention_ms = "4d"\nrole = "primary_raw"\n[[sink]]\nname = "copy"\ntype = "parquet"\nreceives = "raw"\npath = "${copy}"\n`,
  );
  const range = (from: bigint, next: bigint) => ({ from, next });
  const has = (n: number, next: bigint) =>
    [streamKey({ ...STREAM, partition: n }), { ...NEW_STREAM, covered: [range(0n, next)] }] as const;
  const state = { ...EMPTY_STATE, serial: 1, streams: new Map([has(0, 5n), has(1, 20n)]) };
  const folder = coverageFolderOf(copy, "orders", "copy");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "coverage-000000000001.json"), encodeState(state));
}

/** Another program's file of all rows of these; `metadata`: as it keeps of the first one. */
async function putTogether(keys: readonly string[], to: string, metadata: "none" | "first"): Promise<void> {
  const paths = keys.map((key) => join(root, key));
  const [first] = await parquetFilesOf([paths[0]!]);
  const kept = Object.entries((await readParquetFacts(first!, 0)).metadata).filter(
    ([k]) => k !== "ARROW:schema",
  );
  const pairs = kept.map(([k, v]) => `${sqlText(k)}: ${sqlText(v)}`).join(", ");
  const engine = new DuckEngine({ threads: 1, memoryBytes: 1 << 28, spill: null, allowed: [root] });
  engine.run(
    `COPY (FROM read_parquet([${paths.map(sqlText).join(", ")}])) TO ${sqlText(join(root, to))} (FORMAT parquet${metadata === "none" ? "" : `, KV_METADATA {${pairs}}`})`,
  );
  engine.close();
  for (const path of paths) rmSync(path);
}

async function refusedFor(...named: readonly string[]): Promise<void> {
  const { code, err } = await inspect("--record-lost");
  expect([code, err]).toEqual([3, expect.stringContaining("recovery.not_indexed")]);
  for (const name of named) expect(err).toContain(name);
  const [, { streams }] = JSON.parse((await inspect("--json")).out).places;
  expect(streams[0].lost).toEqual([]);
}

test("a gap has a size, an age and an end, which raw knows", async () => {
  await besideRaw();
  const [place, other] = JSON.parse((await inspect("--json")).out).places;
  expect(other.gaps).toEqual([
    expect.objectContaining({
      ...{ partition: 0, ranges: [{ from: "5", next: "20" }], ageMs: expect.any(Number), gone: [] },
    }),
  ]);
  // Five of the twenty positions of the one set and ten of those of the other.
  const [{ bytes, ageMs, expiresMs }] = other.gaps;
  expect(expiresMs).toBe(4 * 86_400_000 - ageMs);
  expect(bytes / place.bytes).toBeCloseTo(15 / 40, 1);
  expect(ageMs).toBeGreaterThanOrEqual(0);
  expect((await inspect()).out).toMatch(
    /orders\/0: \[5, 20\), 15 positions, about .* of raw, the oldest .* old/,
  );
});

test("what raw has no more is told, and recorded as lost when that is asked for", async () => {
  const keys = await besideRaw();
  for (const key of keys) rmSync(join(root, key));
  const lacks = async (...argv: string[]) => {
    const [, { gaps, streams }] = JSON.parse((await inspect("--json", ...argv)).out).places;
    return {
      gaps: gaps.map((g: { ranges: unknown; gone: unknown }) => [g.ranges, g.gone]),
      lost: streams[0].lost,
    };
  };
  const r = (from: string, next: string) => ({ from, next });
  expect(await lacks()).toEqual({ gaps: [[[r("5", "20")], [r("5", "10")]]], lost: [] });
  const lost = [{ ...r("5", "10"), reason: "retention" }];
  expect(await lacks("--record-lost")).toEqual({ gaps: [[[r("10", "20")], []]], lost });
  // Nothing is forgotten, and nothing is added.
  expect(await lacks("--record-lost")).toEqual({ gaps: [[[r("10", "20")], []]], lost });
});

test("what somebody moved is not lost: the index is made anew first", async () => {
  const keys = await besideRaw();
  const moved = (key: string) => join(root, key.replace(/[^/]+$/, "moved-$&"));
  for (const key of keys) renameSync(join(root, key), moved(key));
  const refused = await inspect("--record-lost");
  expect([refused.code, refused.err]).toEqual([3, expect.stringContaining("recovery.not_indexed")]);
  expect((await inspect("--rebuild")).code).toBe(0);
  const told = await inspect("--record-lost", "--json");
  const [, { gaps, streams }] = JSON.parse(told.out).places;
  expect([told.code, gaps[0].gone, streams[0].lost]).toEqual([0, [], []]);
});

test("while a file of no set lies in raw, nothing is taken for lost: it may hold what is gone", async () => {
  const keys = await besideRaw();
  await putTogether(keys, "together.parquet", "none");
  writeFileSync(join(root, "orders/spoiled.parquet"), "PAR1 and nothing else");
  // A pipeline beside it has files of its own there.
  await landed("x", 50, "another");
  await refusedFor("together.parquet (of no set)", "orders/spoiled.parquet");
  rmSync(join(root, "orders/spoiled.parquet"));
  renameSync(join(root, "together.parquet"), join(root, "elsewhere"));
  expect((await inspect("--record-lost")).code).toBe(0);
  const [, { streams }] = JSON.parse((await inspect("--json")).out).places;
  expect(streams[0].lost).toEqual([{ from: "5", next: "10", reason: "retention" }]);
}, 120_000);

test("files put together under the metadata of the first one are not that one's set", async () => {
  const keys = [...(await landed("a", 0, "orders", [0])), ...(await landed("b", 10, "orders", [0]))];
  await landed("c", 20, "orders", [0]);
  await inspect("--rebuild");
  const before = await covered();
  copied();
  await putTogether(keys, "together.parquet", "first");
  const text = "together.parquet (20 rows, and not those of the set a";
  await refusedFor(text);
  const rebuilt = JSON.parse((await inspect("--rebuild", "--json")).out);
  expect(rebuilt).toMatchObject({
    sets: 1,
    covered: [],
    misfits: [{ file: "together.parquet", rows: 20, set: "a" }],
  });
  expect(rebuilt.gone.map((g: { set: string }) => g.set)).toEqual(["a", "b"]);
  expect(await covered()).toEqual(before);
  await refusedFor(text);
  // Under the name of a file that the index knows.
  renameSync(join(root, "together.parquet"), join(root, keys[1]!));
  await refusedFor(`${keys[1]} (20 rows`);
  // The set that it names is known by nothing else.
  rmSync(coverageFolderOf(root, "orders", "raw"), { recursive: true });
  const { out } = await inspect("--rebuild");
  expect(out).toContain(`left out: ${keys[1]} has 20 rows`);
  expect(await covered()).toMatchObject({ rows: 10, covered: ["20-30"] });
}, 120_000);

test("where nothing of raw is there, nothing is taken for lost", async () => {
  await besideRaw();
  rmSync(join(root, "orders"), { recursive: true });
  const { code, err } = await inspect("--record-lost");
  expect(code).not.toBe(0);
  expect(err).toContain("recovery.raw_missing");
  const [, { streams }] = JSON.parse((await inspect("--json")).out).places;
  expect(streams[0].lost).toEqual([]);
});

test("it needs the configuration", async () => {
  for (const flag of ["--rebuild", "--record-lost"]) {
    const cli = fakeCli();
    expect(await runCli(["inspect", "coverage", root, flag], cli)).toBe(2);
    expect(cli.stderr()).toContain(`${flag} needs the configuration`);
  }
});
