/**
 * Who wrote which part of a partition, by the names of the files that hold it: a process that goes on where another
 * one was must have begun the partition anew.
 */
const TURNS = `
import glob, json, os, re, sys
import pyarrow.compute as pc
import pyarrow.parquet as pq
pieces = {}
for f in glob.glob(sys.argv[1] + "/**/*.parquet", recursive=True):
    writer = re.search(r"-([0-9a-f]{16})[^0-9a-f]", os.path.basename(f)).group(1)
    t = pq.read_table(f, columns=["_twg_source_partition", "_twg_source_offset"], partitioning=None)
    g = t.group_by("_twg_source_partition").aggregate([("_twg_source_offset", "min")]).to_pydict()
    for p, first in zip(g["_twg_source_partition"], g["_twg_source_offset_min"]):
        pieces.setdefault(p, []).append((first, writer))
turns = {}
for p, list_ in pieces.items():
    writers = [w for _, w in sorted(list_)]
    turns[p] = sum(1 for i, w in enumerate(writers) if i == 0 or w != writers[i - 1])
print(json.dumps(turns))
`;

/** Per partition, in the order of offsets: how often another process went on than the one that wrote before. */
export function turnsIn(folder: string): ReadonlyMap<number, number> {
  const python = process.env.TWG_PYTHON;
  if (python === undefined) throw new Error("TWG_PYTHON must name a Python with pyarrow");
  const run = Bun.spawnSync([python, "-c", TURNS, folder]);
  if (run.exitCode !== 0) throw new Error(`pyarrow: ${run.stderr.toString().slice(-500)}`);
  return new Map(
    Object.entries(JSON.parse(run.stdout.toString()) as Record<string, number>).map(([p, n]) => [
      Number(p),
      n,
    ]),
  );
}
