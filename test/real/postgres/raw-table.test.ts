/**
 * Goal: records that landed in a raw table come out of it as they went in, in pages that are bounded, and rows that were deleted,
 * or are not those that landed, are named. Method: sets that the sink writes to the real server, read as recovery does, written
 * as Parquet and compared cell for cell by hyparquet; rows are deleted and changed by psql.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig, resolveSecrets } from "../../../src/commands/config-file.ts";
import { runCli } from "../../../src/commands/program.ts";
import { RawTable } from "../../../src/commands/raw-table.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { StreamId } from "../../../src/core/records/stream.ts";
import { streamKey } from "../../../src/core/records/stream.ts";
import type { Wanted } from "../../../src/core/recovery/replay-order.ts";
import { fakeCli, fileWith } from "../../commands/fake-cli.ts";
import { batchesOf } from "../../commands/replayed.ts";
import { RICH } from "../../commands/rich-rows.ts";
import {
  bytes,
  comparable,
  expectedRow,
  fileOf,
  type Row,
  readBack,
  row,
  STREAM,
} from "../../core/formats/parquet/rows.ts";
import { demandPostgres, freshDatabase, lines, POSTGRES, psql, server, settings } from "./server.ts";
import { Sink } from "./sink.ts";

demandPostgres("raw of a table");

const INDEX = "create index on raw (_twg_source_topic, _twg_source_partition, _twg_source_offset)";
const AGAIN: StreamId = { ...STREAM, incarnation: 1 };
const OTHER: StreamId = { ...STREAM, partition: 4 };

const code = (work: Promise<unknown>) =>
  work.then(
    () => "none",
    (e: unknown) => (e instanceof Failure ? e.code : String(e)),
  );

describe.skipIf(POSTGRES === null)("raw of a table", () => {
  let database: string;
  let sink: Sink;

  beforeEach(async () => {
    database = await freshDatabase();
    sink = new Sink({ settings: settings(database), indexed: true });
    await sink.prepare();
  });

  /** `more`: sections beside those of the raw sink. */
  function configured(more = "") {
    const { host, port, user, password } = server();
    const file = fileWith(`[pipeline]
name = "p"
[source]
type = "kafka"
bootstrap = ["localhost:9092"]
topics = ["orders"]
[[sink]]
name = "raw"
type = "postgres"
url = { secret = "place" }
sslmode = "disable"
table = "public.raw"
${more}`);
    const url = `postgres://${user}:${encodeURIComponent(password)}@${host}:${port}/${database}`;
    return { file, secrets: { TWG_SECRET_PLACE: url } };
  }

  async function table(): Promise<RawTable> {
    const { file, secrets } = configured();
    const config = await resolveSecrets(await loadConfig(file), secrets);
    if (config.sink.type !== "postgres") throw new Error("another sink");
    return new RawTable(config, config.sink);
  }

  /** Lands the rows in sets of so many. */
  async function land(rows: readonly Row[], size: number, stream = STREAM): Promise<void> {
    const authorities = await sink.claim(stream);
    for (let at = 0; at < rows.length; at += size)
      expect(await sink.land(rows.slice(at, at + size), authorities, stream)).toMatchObject({
        covered: true,
      });
  }

  async function read(raw: RawTable, from: bigint, next: bigint, stream = STREAM) {
    const wanted: Wanted = new Map([[streamKey(stream), [{ from, next }]]]);
    const sets = await raw.sets(wanted);
    const batches = [];
    for (const set of sets) {
      const own = set.spans.filter((s) => s.stream === streamKey(stream));
      const first = own[0]!.from > from ? own[0]!.from : from;
      const last = own.at(-1)!.next < next ? own.at(-1)!.next : next;
      batches.push(...(await batchesOf(set, (s) => raw.open(s), stream, { from: first, next: last })));
    }
    const full = batches.filter((b) => b.rows > 0);
    const rows = full.length === 0 ? [] : (await readBack(fileOf(full))).map(comparable);
    return { rows, sets, spans: batches.map((b) => `[${b.span.from}, ${b.span.next})`) };
  }

  const expected = (rows: readonly Row[], stream = STREAM) =>
    rows.map((r) => comparable(expectedRow(r, stream, 1_700_000_000_500)));

  test("is what was landed: nulls, empty, headers, extremes, runs; and what is wanted alone", async () => {
    await sink.coverage.open();
    await land(RICH, 700);
    await psql(database, INDEX);
    const raw = await table();
    const whole = await read(raw, 0n, 14_999n);
    expect(whole.rows).toEqual(expected(RICH));
    expect(whole.spans.at(-1)?.endsWith(", 14999)")).toBe(true);
    const [from, next] = [RICH[40]!.offset, RICH[60]!.offset];
    expect((await read(raw, from, next)).rows).toEqual(expected(RICH.slice(40, 60)));
    // Positions that no record has.
    expect((await read(raw, from + 1n, from + 2n)).rows).toEqual([]);
    await sink.close();
  });

  test("tells streams and lives of a topic apart, and reads beside other pipelines", async () => {
    const rows = (text: string) =>
      Array.from({ length: 50 }, (_, i) => row(i, { value: bytes(`${text}${i}`) }));
    await sink.coverage.open();
    await land(rows("old"), 20);
    await land(rows("other"), 50, OTHER);
    await land(rows("new"), 50, AGAIN);
    // Sets that follow one another share an entry.
    const entries = "select stream, first, next, rows from twg.raw_index order by stream";
    expect(lines(await psql(database, entries))).toEqual(
      [STREAM, OTHER, AGAIN].map((s) => `${streamKey(s)}|0|50|50`),
    );
    await psql(
      database,
      `${INDEX}; create temp table x as select * from raw; update x set _twg_pipeline = 'q'; insert into raw select * from x`,
    );
    const raw = await table();
    for (const [stream, text] of [
      [STREAM, "old"],
      [OTHER, "other"],
      [AGAIN, "new"],
    ] as const)
      expect((await read(raw, 10n, 40n, stream)).rows).toEqual(expected(rows(text).slice(10, 40), stream));
    await sink.close();
  });

  test("comes in pages of bounded bytes, a row that is larger alone", async () => {
    const sizes = [10, 3_000_000, 900_000, 10, 5_000_000, 10, 10, 4_100_000, 200_000];
    const rows = sizes.map((n, i) =>
      row(i * 7, { value: new Uint8Array(n).fill(i), headers: [[bytes("h"), new Uint8Array(n >> 4)]] }),
    );
    await sink.coverage.open();
    await land(rows, 3);
    await psql(database, INDEX);
    const raw = await table();
    const [set] = await raw.sets(new Map([[streamKey(STREAM), [{ from: 0n, next: 57n }]]]));
    const opened = await raw.open(set!);
    const pages = opened.pieces.map(({ turns, bytes: n }) => [
      turns?.map((t) => `${t.first}-${t.last}`).join(),
      n <= 4_200_000,
    ]);
    // A connection that was ended between two pages is another one for the next.
    const own =
      "from pg_stat_activity where application_name like '% recovery' and datname = current_database()";
    expect(await psql(database, `select pg_terminate_backend(pid) ${own}`)).toContain("t");
    while (Number(await psql(database, `select count(*) ${own}`)) > 0);
    for (const p of opened.pieces) expect((await p.fill(new Uint8Array(p.bytes))).bytes).toBeGreaterThan(0);
    opened.close();
    expect(pages).toEqual([
      ["0-14", true],
      ["21-21", true],
      ["28-28", false],
      ["35-35", true],
      ["42-42", true],
      ["49-49", false],
      ["56-56", true],
    ]);
    expect((await read(raw, 0n, 57n)).rows).toEqual(expected(rows));
    await sink.close();
  });

  test("is not read without an index that leads to its rows", async () => {
    await sink.coverage.open();
    await land(RICH.slice(0, 50), 50);
    const refused = await read(await table(), 0n, 10n).catch((e: unknown) => e as Failure);
    expect(refused).toMatchObject({ code: "recovery.no_index" });
    expect((refused as Failure).hint).toBe(
      'Run: CREATE INDEX CONCURRENTLY ON "public"."raw" ("_twg_source_topic", "_twg_source_partition", "_twg_source_offset")',
    );
    // One that needs a sort is none.
    await psql(database, "create index on raw (_twg_record_id)");
    expect(await code(read(await table(), 0n, 10n))).toBe("recovery.no_index");
    await psql(database, (refused as Failure).hint!.replace("Run: ", ""));
    expect((await read(await table(), 0n, 10n)).rows.length).toBeGreaterThan(0);
    await sink.close();
  });

  test("of which rows were deleted, copied or changed is named, and what is whole is read", async () => {
    await sink.coverage.open();
    await land(RICH.slice(0, 100), 100);
    await psql(database, "update twg.raw_index set bytes = 1 << 30");
    await land(RICH.slice(100, 200), 100);
    await psql(database, INDEX);
    const [start, next] = [RICH[100]!.offset, RICH[199]!.offset + 1n];
    const at = (o: bigint) => `_twg_source_offset = ${o}`;
    const change = async (statement: string, from: bigint, to: bigint) => {
      await psql(database, `create table kept as select * from raw; ${statement}`);
      const told = await code(read(await table(), from, to));
      await psql(database, "truncate raw; insert into raw select * from kept; drop table kept");
      return told;
    };
    const one = RICH[150]!.offset;
    expect(await change(`delete from raw where ${at(one)}`, start, next)).toBe("recovery.raw_missing");
    expect(await change(`delete from raw where ${at(one)}`, 0n, start)).toBe("none");
    expect(await change(`insert into raw select * from raw where ${at(one)}`, start, next)).toBe(
      "recovery.not_raw",
    );
    // Another row in its place: of as many, but with the id of another record.
    const moved = `update raw set _twg_source_offset = ${one + 1n} where ${at(one)}`;
    expect(await change(moved, start, next)).toBe("recovery.not_raw");
    const twice = `delete from raw where ${at(RICH[151]!.offset)}; insert into raw select * from raw where ${at(one)}`;
    expect(await change(twice, start, next)).toBe("recovery.raw_order");
    expect(await change("update raw set _twg_record_id = gen_random_uuid()", start, next)).toBe(
      "recovery.raw_missing",
    );
    expect((await read(await table(), start, next)).rows).toEqual(expected(RICH.slice(100, 200)));
    await sink.close();
  });

  test("says what of a gap it has, how much that is, and records as lost what it has no more", async () => {
    await sink.coverage.open();
    await land(RICH.slice(0, 100), 100);
    await land(RICH.slice(100, 200), 100);
    await sink.close();
    await psql(database, INDEX);
    const folder = mkdtempSync(join(tmpdir(), "twg-copy-"));
    const { file, secrets } = configured(
      `role = "primary_raw"\n[[sink]]\nname = "copy"\ntype = "parquet"\npath = "${folder}"\n`,
    );
    const run = async (...argv: string[]) => {
      const cli = fakeCli(secrets);
      const ended = await runCli([...argv, "-c", file], cli);
      return { ended, out: cli.stdout(), err: cli.stderr() };
    };
    const gapsOf = async (...argv: string[]) => {
      const { out } = await run("inspect", "coverage", "--json", ...argv);
      return JSON.parse(out).places.find((p: { sink: string }) => p.sink === "copy")?.gaps;
    };
    // Beside a table no plans are kept, and whoever decodes is told.
    expect((await run("recover", "--dry-run")).out).not.toContain("plan of now");
    const plain = readFileSync(file, "utf8");
    writeFileSync(
      file,
      `${plain}[[sink]]\nname = "rows"\ntype = "parquet"\nreceives = "decoded"\npath = "${folder}/rows"\n[decode]\nformat = "json"\non_error = "fail"\n`,
    );
    for (const more of [[], ["--replan"]])
      expect(await run("recover", "--dry-run", ...more)).toMatchObject({
        err: "",
        out: expect.stringMatching(/rows .* of now *\n(?:.*\n)*.*all of it is decoded by the plan of now\n$/),
      });
    writeFileSync(file, plain);
    const dry = await run("recover", "--dry-run", "--json");
    const all = [
      { from: "0", next: String(RICH[99]!.offset + 1n) },
      { from: String(RICH[100]!.offset), next: String(RICH[199]!.offset + 1n) },
    ];
    expect([dry.ended, JSON.parse(dry.out).sinks[0].gaps[0].ranges]).toEqual([0, all]);
    expect((await run("recover", "--json")).err).toBe("");
    expect(await gapsOf()).toEqual([]);

    sink = new Sink({ settings: settings(database), indexed: true });
    await sink.coverage.open();
    await land(RICH.slice(200, 300), 100);
    await land(RICH.slice(300, 400), 100);
    await sink.close();
    await psql(database, `delete from raw where _twg_source_offset = ${RICH[350]!.offset}`);
    expect((await run("recover")).err).toContain("recovery.raw_missing");
    const text = (await run("inspect", "coverage")).out;
    expect(text).toMatch(/gaps, against the primary sink\n.* of raw, the oldest \d/);
    expect(text).not.toContain("gone from raw");
    const stored = await run("inspect", "coverage", "--record-lost", "--json");
    expect(stored.err).toBe("");
    const copy = JSON.parse(stored.out).places[1];
    const rest = [200, 300].map((i) => ({
      from: String(RICH[i]!.offset),
      next: String(RICH[i + 99]!.offset + 1n),
    }));
    expect(copy.gaps[0].ranges).toEqual([rest[0]]);
    expect(copy.streams[0].lost).toEqual([{ ...rest[1], reason: "retention" }]);
    expect((await run("recover")).ended).toBe(0);
    expect(await gapsOf()).toEqual([]);
    await psql(database, "truncate raw");
    expect((await run("inspect", "coverage", "--record-lost")).err).toContain("nothing of raw is there");
    rmSync(folder, { recursive: true });
  });

  test("that landed before its rows were counted is read if the sum of them is there", async () => {
    const before = new Sink({ settings: settings(database) });
    await before.coverage.open();
    const authorities = await before.claim();
    await before.land(RICH.slice(0, 300), authorities);
    await before.close();
    await psql(database, "drop table twg.raw_index");
    sink = new Sink({ settings: settings(database), indexed: true });
    await sink.coverage.open();
    await land(RICH.slice(300, 400), 50);
    await psql(database, INDEX);
    const all = await read(await table(), 0n, RICH[399]!.offset + 1n);
    expect(all.rows).toEqual(expected(RICH.slice(0, 400)));
    const raw = await table();
    const next = RICH[299]!.offset + 1n;
    expect((await read(raw, 0n, next)).rows).toEqual(expected(RICH.slice(0, 300)));
    const wanted: Wanted = new Map([[streamKey(STREAM), [{ from: 0n, next }]]]);
    expect((await raw.stretches(wanted)).map((e) => e.spans[0])).toEqual([
      { stream: streamKey(STREAM), from: 0n, next },
    ]);
    await psql(database, `delete from raw where _twg_source_offset = ${RICH[7]!.offset}`);
    // Deleted while the process that has counted them goes on.
    expect(await code(read(raw, 0n, next))).toBe("recovery.raw_missing");
    expect(await code(read(await table(), RICH[10]!.offset, RICH[20]!.offset))).toBe("recovery.raw_missing");
    expect(await code(read(await table(), RICH[300]!.offset, RICH[349]!.offset))).toBe("none");
    await sink.close();
  });

  test("lands once more after its coverage was deleted by hand, and is read by what landed then", async () => {
    sink = new Sink({ settings: settings(database), indexed: true, rowKey: true });
    await sink.prepare();
    await sink.coverage.open();
    await land(RICH.slice(0, 300), 100);
    await psql(database, `${INDEX}; update twg.raw_index set bytes = 1 << 30`);
    await land(RICH.slice(300, 400), 100);
    await psql(database, "delete from twg.coverage");
    await land(RICH.slice(0, 70), 70);
    await land(RICH.slice(70, 400), 110);
    const raw = await table();
    const { rows, sets } = await read(raw, 0n, RICH[399]!.offset + 1n);
    expect(rows).toEqual(expected(RICH.slice(0, 400)));
    expect(sets.reduce((n, s) => n + s.rows, 0)).toBe(400);
    await sink.close();
  });
});
