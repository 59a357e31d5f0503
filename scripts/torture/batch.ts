/**
 * Kills `twg batch` with SIGKILL at random moments and compares what landed with what a run without kills lands. Rows
 * are counted by pyarrow where TWG_PYTHON names an interpreter that has it, else by hyparquet, or by psql; refused rows by
 * their lines.
 */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { DuckEngine, sqlText } from "../../src/adapters/duckdb/engine.ts";
import type { SeededChance } from "../../test/sim/chance.ts";
import type { BatchPlace, Landed } from "./batch-places.ts";
import { kill, start } from "./process.ts";

export interface BatchTorture {
  readonly folder: string;
  readonly place: BatchPlace;
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
${o.place.section(out)}
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

export async function tortureBatch(
  o: BatchTorture,
): Promise<Record<string, unknown> & { readonly clean: boolean }> {
  const inputs = writeInputs(o);
  const calm = writeJob(o, inputs, "calm");
  const began = performance.now();
  await runToEnd(o, calm);
  const wholeMs = performance.now() - began;
  const want = await o.place.landed("calm");
  const sum = { landed: 0, rejected: 0, lost: 0, doubled: 0, orphans: 0, differing_rejects: 0, folders: 0 };
  let kills = 0;
  const calmDown = o.place.trouble();
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
    await judge(o.place, name, want, sum);
  }
  await calmDown();
  const { lost, doubled, orphans, differing_rejects } = sum;
  return {
    sink: "batch",
    kills,
    produced: (want.ids.length + want.rejects.length) * sum.folders,
    ...sum,
    ...o.place.figures(),
    reader: o.place.reader,
    seed: o.seed,
    clean: lost + doubled + orphans + differing_rejects === 0,
  };
}

async function judge(
  place: BatchPlace,
  name: string,
  want: Landed,
  sum: Record<string, number>,
): Promise<void> {
  const got = await place.landed(name);
  const add = (key: string, n: number): void => {
    sum[key] = (sum[key] ?? 0) + n;
  };
  const unique = new Set(got.ids);
  add("landed", got.ids.length);
  add("rejected", got.rejects.length);
  add("lost", want.ids.filter((id) => !unique.has(id)).length);
  add("doubled", got.ids.length - unique.size);
  add("differing_rejects", JSON.stringify(got.rejects) === JSON.stringify(want.rejects) ? 0 : 1);
  add("orphans", place.orphans(name));
}
