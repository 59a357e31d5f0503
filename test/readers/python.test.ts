/** Raw files read by pyarrow and by PyPI's DuckDB, in a Python that TWG_PYTHON names. */
import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { corpus } from "./corpus.ts";

const python = process.env["TWG_PYTHON"];
const strict = process.env["TWG_STRICT"] === "1";
if (python === undefined)
  console.error("SKIP: TWG_PYTHON names no Python with pyarrow and duckdb; raw files are not read by them");

const { files, remove } = corpus();
afterAll(remove);

test.skipIf(python === undefined && !strict)("there is a Python to read with", () =>
  expect(python).toBeDefined(),
);

/** All files in one run: starting Python costs more than reading. */
function readAll(reader: string, paths: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const run = Bun.spawnSync([python!, join(import.meta.dir, "lines.py"), reader, ...paths]);
  if (run.exitCode !== 0) throw new Error(`${reader}: ${run.stderr.toString()}`);
  const found = new Map<string, string[]>();
  let lines: string[] = [];
  for (const line of run.stdout.toString().split("\n").slice(0, -1)) {
    if (line.startsWith("# ")) {
      lines = [];
      found.set(line.slice(2), lines);
    } else lines.push(line);
  }
  return found;
}

for (const reader of ["pyarrow", "duckdb"]) {
  // DuckDB holds microseconds, in which the ends of int64 have no place: see library.test.ts.
  const read = files.filter((f) => reader === "pyarrow" || f.name !== "extremes");
  test.skipIf(python === undefined)(
    `${reader} finds every row of every file as it was written`,
    () => {
      const paths = read.map((f) => f.path);
      const found = readAll(reader, paths);
      expect([...found.keys()]).toEqual(paths);
      for (const { name, path, lines } of read) {
        const seen = found.get(path) ?? [];
        expect([name, seen.length]).toEqual([name, lines.length]);
        expect([name, seen.findIndex((l, i) => l !== lines[i])]).toEqual([name, -1]);
      }
    },
    60_000,
  );
}
