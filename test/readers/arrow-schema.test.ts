/**
 * Goal: JSON that lands by a schema of pyarrow's is what pyarrow reads by the same schema, cell for cell. Method: random records
 * with nulls, nesting and fields that are left out; `twg batch` lands them by the schema's file, pyarrow reads both.
 */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { command, workFolder } from "../e2e/twg.ts";

const python = process.env["TWG_PYTHON"];
const RECORDS = 500;
if (python === undefined)
  console.error("SKIP: TWG_PYTHON names no Python with pyarrow; JSON by an Arrow schema is not compared");
test.skipIf(python === undefined && process.env["TWG_STRICT"] !== "1")("there is a Python to read with", () =>
  expect(python).toBeDefined(),
);

function rows(...args: readonly string[]): string[] {
  const run = Bun.spawnSync([python!, join(import.meta.dir, "arrow-schema.py"), ...args]);
  if (run.exitCode !== 0) throw new Error(run.stderr.toString());
  return run.stdout.toString().split("\n").slice(0, -1);
}

test.skipIf(python === undefined)(
  "records by an Arrow schema",
  async () => {
    const folder = workFolder();
    const wanted = rows("make", folder, String(RECORDS));
    expect(wanted).toHaveLength(RECORDS);
    const out = join(folder, "out");
    const args = ["--schema", join(folder, "schema.arrow"), "--metadata", "none", "--lanes", "1"];
    const ended = await command(["batch", join(folder, "records.ndjson"), "--to", out, ...args]);
    expect([ended.code, ended.failure]).toEqual([0, null]);
    const [landed, ...others] = readdirSync(out).filter((n) => n.endsWith(".parquet"));
    expect(others).toEqual([]);
    expect(rows("read", join(out, landed!))).toEqual(wanted);
  },
  60_000,
);
