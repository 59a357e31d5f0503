/**
 * Goal: `twg batch` lands every row of every file once, whatever ends it, and refuses what it cannot read right. Method:
 * the program as users run it, killed at each point of delivery; hyparquet reads what landed.
 */
import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { Glob } from "bun";
import { CRASH_POINTS } from "../../src/core/delivery/crash-points.ts";
import { landedRows } from "./landed-rows.ts";
import { pipelineToml } from "./pipeline-toml.ts";
import { command, type Ended, workFolder } from "./twg.ts";

const batch = (args: readonly string[], environment: Record<string, string> = {}): Promise<Ended> =>
  command(["batch", ...args], environment);

async function landed(folder: string): Promise<Record<string, unknown>[]> {
  const rows = await landedRows(folder);
  return rows.sort((a, b) => Number(a["_twg_source_offset"]) - Number(b["_twg_source_offset"]));
}

function rejects(folder: string): Record<string, unknown>[] {
  const files = new Glob("_rejects/*.ndjson").scanSync({ cwd: folder, absolute: true });
  return [...files].flatMap((f) =>
    readFileSync(f, "utf8")
      .trim()
      .split("\n")
      .map((l) => JSON.parse(l) as Record<string, unknown>)
      .sort((a, b) => Number(a.row) - Number(b.row)),
  );
}

const csvOf = (from: number, to: number) =>
  `id,name\n${Array.from({ length: to - from }, (_, i) => `${from + i},"row ${Bun.hash(String(from + i))}"\n`).join("")}`;

test("files of all compressions land once, and not again", async () => {
  const folder = workFolder();
  const text = [csvOf(0, 1000), csvOf(1000, 1500), csvOf(1500, 1600)];
  writeFileSync(join(folder, "a.csv"), text[0]!);
  writeFileSync(join(folder, "b.csv.gz"), gzipSync(text[1]!));
  writeFileSync(join(folder, "c.csv.zst"), zstdCompressSync(Buffer.from(text[2]!)));
  writeFileSync(join(folder, "copy of a.csv"), text[0]!);
  const out = join(folder, "out");
  const first = await batch([join(folder, "*.csv*"), "--to", out, "--json"]);
  expect(first.output).toContain('"rows": 1600');
  expect(first.code).toBe(0);
  const rows = await landed(out);
  expect(rows.map((r) => Number(r.id)).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 1600 }, (_, i) => i),
  );
  const again = await batch([join(folder, "*.csv*"), "--to", out, "--json"]);
  expect(again.output).toContain('"rows": 0');
  expect(await landed(out)).toHaveLength(1600);
});

test("refused rows are written with file, line and reason, as many as are allowed", async () => {
  const folder = workFolder();
  const input = join(folder, "in.csv");
  writeFileSync(input, 'id,name\n1,"two\nlines"\nx,bad\n3\n4,ok\n');
  writeFileSync(
    `${input}.schema.json`,
    '{"columns":[{"name":"id","type":"int64"},{"name":"name","type":"string"}]}',
  );
  const strict = await batch([input, "--to", join(folder, "strict")]);
  expect(strict.code).toBe(1);
  expect(strict.failure?.code).toBe("files.too_many_rejects");
  expect(readdirSync(join(folder, "strict")).filter((n) => n !== "_twg")).toEqual([]);
  const out = join(folder, "out");
  expect((await batch([input, "--to", out, "--max-rejects", "2"])).code).toBe(0);
  expect((await landed(out)).map((r) => r.name)).toEqual(["two\nlines", "ok"]);
  expect(rejects(out)).toEqual([
    {
      file: input,
      line: 4,
      row: 1,
      code: "value.type",
      column: "id",
      reason: '"x" is no int64',
      raw: "x,bad",
      raw_bytes: 5,
    },
    {
      file: input,
      line: 5,
      row: 2,
      code: "row.columns",
      column: null,
      reason: "1 field, the file has 2 columns",
      raw: "3",
      raw_bytes: 1,
    },
  ] as never);
});

test("a kill at any point of delivery loses and doubles nothing", async () => {
  const folder = workFolder();
  const inputs = [0, 1, 2].map((n) => {
    const path = join(folder, `${n}.csv`);
    writeFileSync(path, csvOf(n * 20_000, (n + 1) * 20_000));
    return path;
  });
  const out = join(folder, "out");
  const config = join(folder, "job.toml");
  writeFileSync(
    config,
    pipelineToml(folder, {
      pipeline: { name: "job", lanes: 2 },
      source: { type: "files", paths: inputs, piece_bytes: "64KiB" },
      sink: [{ name: "out", type: "parquet", path: out, roll_bytes: "64KiB", row_group_bytes: "64KiB" }],
    }),
  );
  let kills = 0;
  // Points of the source's acknowledgement and of a lane are not passed: nobody is acknowledged.
  const points = CRASH_POINTS.filter((p) => /intend|publish|cover/.test(p));
  for (const point of points) {
    const ended = await batch(["-c", config], { TWG_CRASH_AT: `${point}:1` });
    if (ended.signal === "SIGKILL") kills++;
  }
  // What is left when the last points are tried may fit in fewer rounds.
  expect(kills).toBeGreaterThanOrEqual(points.length - 2);
  const last = await batch(["-c", config]);
  expect([last.code, last.output]).toEqual([0, expect.stringContaining("landed")]);
  const ids = (await landed(out)).map((r) => Number(r.id)).sort((a, b) => a - b);
  expect(ids).toEqual(Array.from({ length: 60_000 }, (_, i) => i));
  expect(readdirSync(join(out, "_twg/job/out/staging"))).toEqual([]);
}, 60_000);

test("what cannot be right is refused before anything is written", async () => {
  const folder = workFolder();
  const file = (name: string, text: string | Uint8Array): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const out = join(folder, "out");
  for (const [args, code] of [
    [[file("doubtful.csv", "id,2024\n1,x\n")], "files.header"],
    [[file("twice.csv", "a,a\n1,2\n")], "files.header"],
    [[file("x.bin", "a,b\n")], "files.format"],
    [[join(folder, "none*.csv")], "files.none"],
    [[file("a.csv", "a,b\n1,2\n"), file("b.csv", "a,c\n1,2\n")], "files.unknown_column"],
  ] as const) {
    const ended = await batch([...args, "--to", out]);
    expect([args, ended.failure?.code]).toEqual([args, code]);
  }
  expect((await batch([file("ok.csv", "a,b\n1,2\n"), "--to", "out.parquet"])).code).toBe(2);
  expect(readdirSync(folder)).not.toContain("out");
  // A cut file is found when it is read; nothing of it is visible.
  const cut = file("cut.csv.gz", gzipSync(csvOf(0, 5000)).subarray(0, 2000));
  expect((await batch([cut, "--to", out])).failure?.code).toBe("files.compression");
  expect(await landed(out)).toEqual([]);
});

test("JSON of both shapes lands with its nested values, and odd rows beside it", async () => {
  const folder = workFolder();
  const line = (i: number) =>
    JSON.stringify({ id: i, at: "2026-01-01T00:00:00Z", tags: [`t${i}`], o: { x: i / 2 } });
  const ids = Array.from({ length: 500 }, (_, i) => i);
  writeFileSync(join(folder, "a.ndjson"), `${ids.map(line).join("\n")}\n{"id":1,"id":2}\n`);
  writeFileSync(join(folder, "b.json"), `[\n  ${ids.map((i) => line(i + 500)).join(",\n  ")}\n]\n`);
  const out = join(folder, "out");
  const ended = await batch([
    join(folder, "a.ndjson"),
    join(folder, "b.json"),
    "--to",
    out,
    "--max-rejects",
    "1",
  ]);
  expect([ended.code, ended.output]).toEqual([0, expect.stringContaining("1.00k rows landed, 1 refused")]);
  const rows = (await landed(out)).sort((a, b) => Number(a.id) - Number(b.id));
  expect(rows.map((r) => Number(r.id))).toEqual(Array.from({ length: 1000 }, (_, i) => i));
  expect(rows[7]).toMatchObject({ at: new Date("2026-01-01T00:00:00Z"), tags: ["t7"], o: { x: 3.5 } });
  expect(rejects(out)).toMatchObject([
    { line: 501, row: 500, code: "json.duplicate_key", raw: '{"id":1,"id":2}' },
  ]);
  writeFileSync(join(folder, "cut.json"), '[{"id":1},{"id":2}');
  expect((await batch([join(folder, "cut.json"), "--to", out])).failure?.code).toBe("files.not_json");
});

test("HTTP answers and standard input land like files, and a refused address says so", async () => {
  const folder = workFolder();
  const out = join(folder, "out");
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (r) =>
      r.url.includes("/a.csv") ? new Response(csvOf(0, 100)) : new Response("no", { status: 404 }),
  });
  try {
    expect((await batch([`${server.url}a.csv?token=s3cret`, "--to", out])).code).toBe(0);
    const gone = await batch([`${server.url}b.csv`, "--to", out]);
    expect([gone.code, gone.failure?.code]).toEqual([3, "files.http"]);
  } finally {
    await server.stop(true);
  }
  const piped = Bun.spawn([process.execPath, "src/main.ts", "batch", "-", "--format", "csv", "--to", out], {
    stdin: Buffer.from(csvOf(100, 150)),
    stderr: "pipe",
  });
  expect(await piped.exited).toBe(0);
  const rows = await landed(out);
  expect(rows.map((r) => Number(r.id)).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 150 }, (_, i) => i),
  );
  expect(new Set(rows.map((r) => r["_twg_source_topic"]))).toEqual(
    new Set([`${server.url}a.csv`, "standard input"]),
  );
});

test("the plan and the schema are printed and nothing is written", async () => {
  const folder = workFolder();
  mkdirSync(join(folder, "in"));
  writeFileSync(join(folder, "in/a.csv"), "id;when;price\n1;2026-01-01;1.50\n2;2026-01-02;2.25\n");
  const plan = await batch([join(folder, "in"), "--to", join(folder, "out"), "--dry-run"]);
  expect(plan.output).toContain('delimiter ";", 3 columns, header');
  const printed = await batch([join(folder, "in"), "--to", join(folder, "out"), "--print-schema"]);
  expect(JSON.parse(printed.output)).toEqual({
    columns: [
      { name: "id", type: "int64" },
      { name: "when", type: "date" },
      { name: "price", type: "double" },
    ],
  });
  expect(readdirSync(folder)).toEqual(["in"]);
});
