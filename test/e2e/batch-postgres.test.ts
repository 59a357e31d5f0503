/**
 * Goal: `twg batch` lands every row of every file in a table once, whatever ends it, with its refused rows in the same
 * transaction; with an upsert the later row stands. Method: the program as users run it against a real PostgreSQL,
 * killed at each point of a transaction; psql reads what landed.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { TRANSACTION_POINTS } from "../../src/core/delivery/crash-points.ts";
import { demandPostgres, freshDatabase, lines, POSTGRES, psql, server } from "../real/postgres/server.ts";
import { pipelineToml, postgresUrl, type Section } from "./pipeline-toml.ts";
import { command, type Ended, workFolder } from "./twg.ts";

demandPostgres("files into PostgreSQL");

describe.skipIf(POSTGRES === null)("files into PostgreSQL", () => {
  const urlOf = (database: string, port?: number) => `${postgresUrl(database, port)}?sslmode=disable`;
  const batch = (args: readonly string[], environment: Record<string, string> = {}): Promise<Ended> =>
    command(["batch", ...args], environment);
  const csvOf = (from: number, to: number, bad = -1): string =>
    `id,name\n${Array.from({ length: to - from }, (_, i) => (from + i === bad ? `x,bad\n` : `${from + i},"row\n${from + i}"\n`)).join("")}`;

  function job(database: string, inputs: readonly string[], sink: Section, maxRejects: number): string {
    const folder = workFolder();
    const path = join(folder, "job.toml");
    writeFileSync(
      path,
      pipelineToml(folder, {
        // The database keeps what there is to keep.
        pipeline: { name: "job", lanes: 2, state_dir: undefined },
        source: { type: "files", paths: inputs, piece_bytes: "64KiB", max_rejects: maxRejects },
        sink: [
          {
            ...{ name: "out", type: "postgres", url: urlOf(database), sslmode: "disable", create: true },
            ...sink,
          },
        ],
      }),
    );
    return path;
  }

  test("land once, refused rows beside them, also through pgbouncer, and not again", async () => {
    const database = await freshDatabase();
    const folder = workFolder();
    writeFileSync(join(folder, "a.csv"), csvOf(0, 3000, 17));
    writeFileSync(join(folder, "b.csv.gz"), gzipSync(csvOf(3000, 3500)));
    writeFileSync(join(folder, "c.csv"), `id,name\n3500,"nul \0 here"\n3501,fine\n`);
    writeFileSync(
      join(folder, "_schema.json"),
      '{"columns":[{"name":"id","type":"int64"},{"name":"name","type":"string"}]}',
    );
    const to = ["--table", "public.landed", "--create", "--max-rejects", "2", "--json"];
    const first = await batch([join(folder, "*.csv*"), "--to", urlOf(database), ...to]);
    expect([first.code, first.output]).toEqual([0, expect.stringContaining('"rejected": 2')]);
    const rows =
      "select count(*), count(distinct id), sum(id), bool_and(name = E'row\\n' || id) from landed where id < 3500";
    expect(await psql(database, rows)).toBe(`3499|3499|${(3499 * 3500) / 2 - 17}|t`);
    expect(await psql(database, "select name from landed where id > 3499")).toBe("fine");
    const refused = lines(await psql(database, "select line from twg.reject order by line")).map(
      (l) => JSON.parse(l) as Record<string, unknown>,
    );
    expect(refused).toMatchObject([
      { file: join(folder, "a.csv"), line: 36, row: 17, code: "value.type", column: "id", raw: "x,bad" },
      {
        file: join(folder, "c.csv"),
        line: 2,
        row: 0,
        code: "value.nul",
        column: "name",
        raw: '3500,"nul \0 here"',
      },
    ]);
    const { bouncerPort } = server();
    const again = await batch([join(folder, "*.csv*"), "--to", urlOf(database, bouncerPort ?? 0), ...to]);
    expect(again.output).toContain('"rows": 0');
    writeFileSync(join(folder, "d.csv"), csvOf(4000, 4100));
    const more = await batch([join(folder, "*.csv*"), "--to", urlOf(database, bouncerPort ?? 0), ...to]);
    expect([more.code, more.output]).toEqual([0, expect.stringContaining('"rows": 100')]);
    expect(await psql(database, "select count(*), count(distinct id) from landed")).toBe("3600|3600");
    // Another table of the same database knows nothing of it.
    const other = ["--table", "public.other", "--create", "--json"];
    expect((await batch([join(folder, "d.csv"), "--to", urlOf(database), ...other])).output).toContain(
      '"rows": 100',
    );
  }, 60_000);

  test("Parquet files land with every type, and a row that the server cannot hold is refused by its number", async () => {
    const database = await freshDatabase();
    const corpus = join(import.meta.dir, "../golden/files");
    const to = (table: string) => ["--to", urlOf(database), "--table", table, "--create", "--json"];
    const every = await batch([
      join(corpus, "duckdb-v2.parquet"),
      ...to("public.every"),
      "--metadata",
      "all",
    ]);
    expect([every.code, every.failure, every.output]).toEqual([
      0,
      null,
      expect.stringContaining('"rows": 40'),
    ]);
    const cases = JSON.parse(readFileSync(join(corpus, "expected.json"), "utf8")) as {
      file: string;
      rows: (string | null)[][];
    }[];
    const { rows } = cases.find((c) => c.file === "duckdb-v2.parquet")!;
    // Columns a, b, c (unscaled: three digits behind the point) and j.
    const wanted = rows.map((r) => [r[0], r[1], r[2], r[8]].join("|"));
    const shown =
      "select concat_ws('|', a, b, trim_scale(c * 1000), j) from every order by _twg_source_offset";
    expect(lines(await psql(database, shown))).toEqual(wanted);
    const ids =
      "select count(distinct _twg_record_id), min(_twg_pipeline), min(_twg_source_transport) from every";
    expect(await psql(database, ids)).toBe("40|batch|file");
    const nul = await batch([join(corpus, "nul-text.parquet"), ...to("public.nul"), "--max-rejects", "1"]);
    expect([nul.code, nul.failure, nul.output]).toEqual([0, null, expect.stringContaining('"rejected": 1')]);
    expect(await psql(database, "select string_agg(i || s, ',' order by i) from nul")).toBe("1a,3d");
    const refused = JSON.parse(await psql(database, "select line from twg.reject")) as Record<
      string,
      unknown
    >;
    expect(refused).toMatchObject({ row: 1, line: 2, code: "value.nul", column: "s" });
  }, 60_000);

  test("a kill at any point of a transaction loses and doubles nothing, rows and refused rows alike", async () => {
    const database = await freshDatabase();
    const folder = workFolder();
    const inputs = [0, 1].map((n) => {
      const path = join(folder, `${n}.csv`);
      writeFileSync(path, csvOf(n * 20_000, (n + 1) * 20_000, n * 20_000 + 5));
      return path;
    });
    writeFileSync(
      join(folder, "_schema.json"),
      '{"columns":[{"name":"id","type":"int64"},{"name":"name","type":"string"}]}',
    );
    const config = job(
      database,
      inputs,
      { table: "public.landed", rejects: "public.refused", commit_bytes: "64KiB" },
      2,
    );
    const ends: (string | null)[] = [];
    for (const point of TRANSACTION_POINTS)
      ends.push((await batch(["-c", config], { TWG_CRASH_AT: `${point}:1` })).signal);
    expect(ends).toEqual(TRANSACTION_POINTS.map(() => "SIGKILL"));
    const last = await batch(["-c", config]);
    expect([last.code, last.output]).toEqual([0, expect.stringContaining("landed")]);
    expect(await psql(database, "select count(*), count(distinct id), min(id), max(id) from landed")).toBe(
      "39998|39998|0|39999",
    );
    expect(await psql(database, "select count(*), count(distinct line) from refused")).toBe("2|2");
    expect(await psql(database, "select count(*) from twg.reject")).toBe("0");
  }, 120_000);

  test("upsert: the later row of a file and the later file stand, whatever the lanes and runs", async () => {
    const database = await freshDatabase();
    const folder = workFolder();
    const put = (name: string, text: string): string => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    // 30 versions of each of 1,000 keys in the first file; the second changes half of them, the third adds a few.
    const versions = Array.from({ length: 30_000 }, (_, i) => `${i % 1000},"a${Math.floor(i / 1000)}"\n`);
    const first = put("1.csv", `id,v\n${versions.join("")}`);
    const second = put("2.csv", `id,v\n${Array.from({ length: 500 }, (_, i) => `${i},b\n`).join("")},none\n`);
    const sink = { table: "public.state", mode: "upsert", key: ["id"], commit_bytes: "64KiB" };
    const states = () =>
      psql(database, "select v, count(*), min(id), max(id) from state group by v order by v");
    const config = job(database, [first, second], sink, 1);
    expect((await batch(["-c", config], { TWG_CRASH_AT: "rows_copied:3" })).signal).toBe("SIGKILL");
    const done = await batch(["-c", config]);
    expect([done.code, done.output]).toEqual([0, expect.stringContaining("landed")]);
    expect(await states()).toBe("a29|500|500|999\nb|500|0|499");
    expect(await psql(database, "select line::json->>'code' from twg.reject")).toBe("value.null");
    const third = put("3.csv", "id,v\n1,c\n7000,c\n");
    // In a later run, and named before the others, which have landed: it came later.
    const more = await batch(["-c", job(database, [third, first, second], sink, 1)]);
    expect(more.code).toBe(0);
    expect(await states()).toBe("a29|500|500|999\nb|499|0|499\nc|2|1|7000");
    // What is landed of an older file after a newer one changes nothing that is newer.
    await psql(
      database,
      "delete from twg.coverage where stream = (select stream from twg.coverage order by next - first desc limit 1)",
    );
    expect((await batch(["-c", config])).code).toBe(0);
    expect(await states()).toBe("a29|500|500|999\nb|499|0|499\nc|2|1|7000");
  }, 60_000);

  test("rows that only the server refuses are among the rejects with their bytes; more than the job allows, and nothing lands", async () => {
    const database = await freshDatabase();
    const folder = workFolder();
    writeFileSync(join(folder, "a.csv"), csvOf(0, 4000, 17));
    writeFileSync(join(folder, "b.csv.gz"), gzipSync(csvOf(4000, 5000)));
    writeFileSync(
      join(folder, "_schema.json"),
      '{"columns":[{"name":"id","type":"int64"},{"name":"name","type":"string"}]}',
    );
    // Each row has two lines, and the pieces have gone back when the sets are committed.
    await psql(
      database,
      `create table landed (id bigint check (id not in (1000, 1001, 4100)), name text, _twg_source_topic text,
         _twg_source_message_id bytea, _twg_source_offset bigint);
       create function no() returns trigger language plpgsql as $$ begin
         if new.id = 4999 then raise exception 'not this one'; end if; return new; end $$;
       create trigger t before insert on landed for each row execute function no()`,
    );
    const inputs = [join(folder, "a.csv"), join(folder, "b.csv.gz")];
    const run = (most: number, environment: Record<string, string> = {}) => {
      const sink = { table: "public.landed", commit_bytes: "64KiB" };
      return batch(["-c", job(database, inputs, sink, most), "--json"], environment);
    };
    const landed = () => psql(database, "select count(*), count(distinct id) from landed");
    const few = await run(1);
    expect([few.code, few.failure?.code]).toEqual([1, "files.too_many_rejects"]);
    // What had landed before has; no row that the job did not allow is among the rejects.
    expect(Number(await psql(database, "select count(*) from twg.reject"))).toBeLessThanOrEqual(2);
    const killed = await run(5, { TWG_CRASH_AT: "commit_answered:1" });
    expect(killed.signal).toBe("SIGKILL");
    expect((await run(5)).code).toBe(0);
    expect(await landed()).toBe("4995|4995");
    const rows = lines(
      await psql(database, "select line from twg.reject order by (line::json->>'line')::int"),
    );
    const [a, b] = inputs;
    const check = { code: "row.constraint", column: null, constraint: "landed_id_check", sqlstate: "23514" };
    expect(rows.map((l) => JSON.parse(l) as Record<string, unknown>)).toMatchObject([
      { file: a, line: 36, row: 17, code: "value.type", raw: "x,bad" },
      { file: b, line: 202, row: 100, ...check, raw: '4100,"row\n4100"', raw_bytes: 15 },
      { file: b, line: 2000, row: 999, code: "row.trigger", reason: "not this one", raw: '4999,"row\n4999"' },
      { file: a, line: 2001, row: 1000, ...check, raw: '1000,"row\n1000"' },
      { file: a, line: 2003, row: 1001, ...check, raw: '1001,"row\n1001"' },
    ]);
    const again = await run(0);
    expect([again.code, again.output]).toEqual([0, expect.stringContaining('"rows": 0')]);
    expect(await landed()).toBe("4995|4995");
  }, 60_000);

  test("the same of an upsert, and of files whose records are no text: their fields as they were sent", async () => {
    const database = await freshDatabase();
    const folder = workFolder();
    const path = join(folder, "1.csv");
    writeFileSync(path, `id,v\n${Array.from({ length: 400 }, (_, i) => `${i % 100},a${i}\n`).join("")}`);
    const sink = { table: "public.state", mode: "upsert", key: ["id"] };
    const config = job(database, [path], sink, 2);
    expect((await batch(["-c", config])).code).toBe(0);
    await psql(database, "alter table state add check (v not in ('b3', 'b7'))");
    const later = join(folder, "2.csv");
    writeFileSync(later, `id,v\n${Array.from({ length: 100 }, (_, i) => `${i},b${i}\n`).join("")}`);
    const ended = await batch(["-c", job(database, [later], sink, 2), "--json"]);
    expect([ended.code, ended.output]).toEqual([0, expect.stringContaining('"rejected": 2')]);
    expect(ended.output).toContain('"rows": 98');
    expect(
      await psql(database, "select count(*), string_agg(v, ',') filter (where v like 'a%') from state"),
    ).toBe("100|a303,a307");
    const refused = lines(await psql(database, "select line from twg.reject order by line"));
    expect(refused.map((l) => JSON.parse(l) as Record<string, unknown>)).toMatchObject([
      { file: later, line: 5, row: 3, code: "row.constraint", raw: "3,b3" },
      { file: later, line: 9, row: 7, code: "row.constraint", raw: "7,b7" },
    ]);
    const parquet = join(import.meta.dir, "../golden/files/duckdb-v2.parquet");
    const to = ["--to", urlOf(database), "--table", "public.every", "--json"];
    expect((await batch([parquet, ...to, "--create"])).code).toBe(0);
    await psql(database, "delete from every; delete from twg.coverage where stream like 'file/%'");
    await psql(database, "alter table every add check (_twg_source_offset <> 0)");
    const one = await batch([parquet, ...to, "--max-rejects", "1"]);
    expect([one.code, one.output]).toEqual([0, expect.stringContaining('"rejected": 1')]);
    const line: unknown = JSON.parse(
      await psql(database, "select line from twg.reject where line like '%every%'"),
    );
    expect(line).toMatchObject({
      row: 0,
      line: 1,
      code: "row.constraint",
      constraint: "every__twg_source_offset_check",
    });
    // As PostgreSQL showed the row when it had it.
    expect(line).toMatchObject({
      fields: {
        a: "0",
        b: "0",
        c: "0.000",
        d: "true",
        f: '{"x":0,"y":"z"}',
        h: "2020-01-01T00:00:00.000000",
        j: "0",
      },
    });
  }, 60_000);

  test("a table that does not fit is refused with each difference, before anything is read", async () => {
    const database = await freshDatabase();
    const folder = workFolder();
    writeFileSync(join(folder, "a.csv"), csvOf(0, 10));
    await psql(database, "create table public.landed(id int, own int not null, _twg_source_offset bigint)");
    const ended = await batch([join(folder, "a.csv"), "--to", urlOf(database), "--table", "landed"]);
    expect([ended.code, ended.failure?.code]).toEqual([3, "postgres.table_mismatch"]);
    for (const part of [
      "column id is integer, wanted is bigint",
      "column name text is missing",
      "column own is NOT NULL without a default",
    ])
      expect(ended.failure?.line).toContain(part);
    expect(await psql(database, "select count(*) from landed")).toBe("0");
    const none = await batch([join(folder, "a.csv"), "--to", urlOf(database), "--table", "absent"]);
    expect([none.code, none.failure?.code]).toEqual([3, "postgres.missing"]);
  }, 60_000);
});
