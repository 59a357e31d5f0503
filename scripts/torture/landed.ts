/**
 * Counts what landed in a folder of Parquet files with a reader that is not ours: pyarrow where TWG_PYTHON names an
 * interpreter that has it, else hyparquet. A record is known by topic, partition and offset.
 */
import { Glob } from "bun";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";

export interface Landed {
  readonly reader: string;
  readonly rows: number;
  /** Rows beyond the first of a (partition, offset). */
  readonly doubled: number;
  /** Per partition the offsets that are there, as sorted half-open ranges. */
  readonly ranges: ReadonlyMap<number, readonly (readonly [number, number])[]>;
}

const COUNT = `
import glob, json, sys
import pyarrow.parquet as pq
seen, rows, doubled = {}, 0, 0
for f in glob.glob(sys.argv[1] + "/**/*.parquet", recursive=True):
    t = pq.read_table(f, columns=["_twg_source_partition", "_twg_source_offset"], partitioning=None)
    for p, o in zip(t.column(0).to_pylist(), t.column(1).to_pylist()):
        rows += 1
        s = seen.setdefault(p, set())
        if o in s: doubled += 1
        s.add(o)
out = {}
for p, s in seen.items():
    r = []
    for o in sorted(s):
        if r and r[-1][1] == o: r[-1][1] = o + 1
        else: r.append([o, o + 1])
    out[p] = r
print(json.dumps({"rows": rows, "doubled": doubled, "ranges": out}))
`;

/** `python`: an interpreter with pyarrow; null: hyparquet reads. */
export async function countLanded(
  folder: string,
  python: string | null = process.env.TWG_PYTHON ?? null,
): Promise<Landed> {
  return python === null ? await byHyparquet(folder) : byPyarrow(python, folder);
}

function byPyarrow(python: string, folder: string): Landed {
  const run = Bun.spawnSync([python, "-c", COUNT, folder]);
  if (run.exitCode !== 0) throw new Error(`pyarrow: ${run.stderr.toString().slice(-500)}`);
  const found = JSON.parse(run.stdout.toString()) as {
    rows: number;
    doubled: number;
    ranges: Record<string, [number, number][]>;
  };
  const ranges = new Map(Object.entries(found.ranges).map(([p, r]) => [Number(p), r] as const));
  return { reader: "pyarrow", rows: found.rows, doubled: found.doubled, ranges };
}

async function byHyparquet(folder: string): Promise<Landed> {
  const seen = new Map<number, Set<number>>();
  let rows = 0;
  let doubled = 0;
  for await (const path of new Glob("**/*.parquet").scan({ cwd: folder, absolute: true })) {
    const file = await asyncBufferFromFile(path);
    const columns = ["_twg_source_partition", "_twg_source_offset"];
    for (const row of await parquetReadObjects({ file, columns, compressors })) {
      rows++;
      const partition = Number(row._twg_source_partition);
      const offset = Number(row._twg_source_offset);
      let offsets = seen.get(partition);
      if (offsets === undefined) {
        offsets = new Set();
        seen.set(partition, offsets);
      }
      if (offsets.has(offset)) doubled++;
      offsets.add(offset);
    }
  }
  const ranges = new Map([...seen].map(([p, offsets]) => [p, rangesOf(offsets)] as const));
  return { reader: "hyparquet", rows, doubled, ranges };
}

function rangesOf(offsets: ReadonlySet<number>): [number, number][] {
  const out: [number, number][] = [];
  for (const o of [...offsets].sort((a, b) => a - b)) {
    const last = out[out.length - 1];
    if (last !== undefined && last[1] === o) last[1] = o + 1;
    else out.push([o, o + 1]);
  }
  return out;
}
