/**
 * Kills `twg batch` with SIGKILL at random moments and compares what landed with what a run without kills lands. Rows
 * are counted by pyarrow where TWG_PYTHON names an interpreter that has it, else by hyparquet; refused rows by their lines.
 */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { Glob } from "bun";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { DuckEngine, sqlText } from "../../src/adapters/duckdb/engine.ts";
import type { SeededChance } from "../../test/sim/chance.ts";
import { orphansIn } from "./orphans.ts";
import { kill, start } from "./process.ts";

export interface BatchTorture {
  readonly folder: string;
  readonly twg: readonly string[];
  readonly kills: number;
  readonly records: number;
  readonly seed: number;
  readonly chance: SeededChance;
  readonly say: (text: string) => void;
}

const FILES = 8;
/** Every so many rows is one that is refused. */
const BAD = 997;

/** CSV and JSON, plain and compressed, and Parquet of many row groups; row `n` of all files has id `n`. */
function writeInputs({ folder, records, seed }: BatchTorture): string[] {
  const each = Math.ceil(records / FILES);
  return Array.from({ length: FILES }, (_, f) => {
    if (f === FILES - 1) return writeParquet(folder, f * each, each);
    const ids = Array.from({ length: each }, (_, i) => f * each + i);
    const note = (id: number) => String(Bun.hash(`${seed}/${id}`));
    const csv = `id,note\n${ids.map((id) => (id % BAD === 0 ? `bad,${id}\n` : `${id},"${note(id)}, ""x"""\n`)).join("")}`;
    const json = ids
      .map((id) =>
        id % BAD === 0 ? `{"id":${id},"id":0}\n` : `${JSON.stringify({ id, note: `${note(id)}, "x"` })}\n`,
      )
      .join("");
    const text = f % 2 === 0 ? csv : json;
    const name = `${f}.${f % 2 === 0 ? "csv" : "ndjson"}${f % 4 < 2 ? "" : ".gz"}`;
    const path = join(folder, name);
    writeFileSync(path, name.endsWith(".gz") ? gzipSync(text) : text);
    return path;
  });
}

/** No row of it is refused. */
function writeParquet(folder: string, first: number, rows: number): string {
  const path = join(folder, "rows.parquet");
  const engine = new DuckEngine({ threads: 1, memoryBytes: 256 << 20, spill: null, allowed: [folder] });
  const select = `SELECT i AS id, md5(i::VARCHAR) AS note FROM range(${first}, ${first + rows}) t(i)`;
  engine.run(`COPY (${select}) TO ${sqlText(path)} (format parquet, row_group_size 2048)`);
  engine.close();
  return path;
}

function writeJob(o: BatchTorture, inputs: readonly string[], out: string): string {
  const schema = join(o.folder, "schema.json");
  writeFileSync(schema, '{"columns":[{"name":"id","type":"int64"},{"name":"note","type":"string"}]}');
  const path = join(o.folder, `${out}.toml`);
  writeFileSync(
    path,
    `[pipeline]
name = "torture"
state_dir = "${join(o.folder, "state")}"
lanes = 2
[source]
type = "files"
paths = ${JSON.stringify(inputs)}
schema = "${schema}"
piece_bytes = "64KiB"
max_rejects = 1000000
[[sink]]
name = "out"
type = "parquet"
path = "${join(o.folder, out)}"
roll_bytes = "128KiB"
row_group_bytes = "64KiB"
[observability]
listen = "off"
`,
  );
  return path;
}

async function runToEnd(o: BatchTorture, config: string): Promise<void> {
  const life = start([...o.twg, "batch", "-c", config]);
  const code = await life.process.exited;
  if (code !== 0) throw new Error(`twg batch ended with ${code}:\n${life.log()}`);
}

interface Landed {
  readonly ids: readonly number[];
  readonly rejects: readonly string[];
}

const READ = `
import glob, json, sys
import pyarrow.parquet as pq
print(json.dumps([i for f in glob.glob(sys.argv[1] + "/*.parquet") for i in pq.read_table(f, columns=["id"], partitioning=None).column(0).to_pylist()]))
`;

async function landedIn(folder: string): Promise<Landed> {
  const python = process.env.TWG_PYTHON;
  let ids: number[] = [];
  if (python !== undefined) {
    const run = Bun.spawnSync([python, "-c", READ, folder]);
    if (run.exitCode !== 0) throw new Error(`pyarrow: ${run.stderr.toString().slice(-500)}`);
    ids = JSON.parse(run.stdout.toString()) as number[];
  } else {
    for (const path of new Glob("*.parquet").scanSync({ cwd: folder, absolute: true })) {
      const rows = await parquetReadObjects({
        file: await asyncBufferFromFile(path),
        columns: ["id"],
        compressors,
      });
      for (const r of rows) ids.push(Number(r.id));
    }
  }
  const files = existsSync(folder)
    ? [...new Glob("_rejects/*.ndjson").scanSync({ cwd: folder, absolute: true })]
    : [];
  const rejects = files.flatMap((f) => readFileSync(f, "utf8").trim().split("\n"));
  return { ids: ids.sort((a, b) => a - b), rejects: rejects.sort() };
}

export async function tortureBatch(
  o: BatchTorture,
): Promise<Record<string, unknown> & { readonly clean: boolean }> {
  const inputs = writeInputs(o);
  const calm = writeJob(o, inputs, "calm");
  const began = performance.now();
  await runToEnd(o, calm);
  const wholeMs = performance.now() - began;
  const want = await landedIn(join(o.folder, "calm"));
  const sum = { landed: 0, rejected: 0, lost: 0, doubled: 0, orphans: 0, differing_rejects: 0, folders: 0 };
  let kills = 0;
  // A job that got to its end is judged, and the next kills meet a new one: they must fall into work.
  while (kills < o.kills || sum.folders === 0) {
    const name = `killed-${sum.folders++}`;
    const config = writeJob(o, inputs, name);
    for (;;) {
      const life = start([...o.twg, "batch", "-c", config]);
      const limit = kills < o.kills ? wholeMs * (0.3 + 0.7 * o.chance.next()) : 600_000;
      await Promise.race([life.process.exited, Bun.sleep(limit)]);
      if (life.process.exitCode === 0) break;
      if (life.process.exitCode !== null)
        throw new Error(`twg batch ended with ${life.process.exitCode}:\n${life.log()}`);
      await kill(life, "SIGKILL");
      if (++kills % 10 === 0) o.say(`${kills} of ${o.kills} kills`);
    }
    await judge(join(o.folder, name), want, sum);
  }
  const { lost, doubled, orphans, differing_rejects } = sum;
  return {
    sink: "batch",
    kills,
    produced: (want.ids.length + want.rejects.length) * sum.folders,
    ...sum,
    reader: process.env.TWG_PYTHON === undefined ? "hyparquet" : "pyarrow",
    seed: o.seed,
    clean: lost + doubled + orphans + differing_rejects === 0,
  };
}

async function judge(folder: string, want: Landed, sum: Record<string, number>): Promise<void> {
  const got = await landedIn(folder);
  const add = (key: string, n: number): void => {
    sum[key] = (sum[key] ?? 0) + n;
  };
  const unique = new Set(got.ids);
  add("landed", got.ids.length);
  add("rejected", got.rejects.length);
  add("lost", want.ids.filter((id) => !unique.has(id)).length);
  add("doubled", got.ids.length - unique.size);
  add("differing_rejects", JSON.stringify(got.rejects) === JSON.stringify(want.rejects) ? 0 : 1);
  add("orphans", orphansIn(folder).length);
}
