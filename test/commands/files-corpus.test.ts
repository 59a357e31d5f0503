/**
 * Goal: hard files of the kinds that csv-spectrum, pandas, Arrow, DuckDB and parquet-testing collect are read right or
 * refused with a code, and never with a row more or less. Method: test/golden/files, written and read by pyarrow,
 * DuckDB and Python's own modules (files.py); here the real plan, cutter, decoders and lane read them.
 *
 * Of the public list of data defects this holds the integers above 2^53 (18), duplicate keys (19), NaN and Infinity
 * (20), what CSV sniffers drop (23) and windows-1252 (24). Not 21 and 22, which are of XML, nor 25, of Excel: neither
 * is a format that is read here.
 */
import { afterAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { localFiles } from "../../src/adapters/files/locate.ts";
import type { BatchOptions } from "../../src/commands/batch-config.ts";
import { planBatch } from "../../src/commands/batch-plan.ts";
import { BatchRoom } from "./batch-room.ts";
import { outcomeOf, type Plain, type ReadFile, readFiles } from "./read-files.ts";

interface Case {
  readonly file: string;
  readonly rows?: Plain[][];
  readonly rejects?: [row: number, code: string][];
  readonly failure?: string;
  /** All columns are text. */
  readonly text?: boolean;
  /** Types of the columns that a schema pins. */
  readonly columns?: readonly string[];
  readonly options?: Partial<BatchOptions>;
}

const CORPUS = join(import.meta.dir, "../golden/files");
const CASES = JSON.parse(readFileSync(join(CORPUS, "expected.json"), "utf8")) as Case[];
const room = new BatchRoom();
afterAll(() => room.end());

/** The names that the plan finds, with the types that the case wants. */
async function pinned({ file, text, columns, options }: Case): Promise<string | undefined> {
  if (text !== true && columns === undefined) return undefined;
  const path = join(CORPUS, file);
  const config = await room.config([path], { ...options, header: "yes" });
  const fields = await planBatch(config, localFiles(path)).then(
    (plan) => plan.schema.fields.map((f) => f.name),
    () => ["a"],
  );
  const list = fields.map((name, i) => ({ name, type: columns?.[i] ?? "string" }));
  return room.put(`${file}.schema.json`, JSON.stringify({ columns: list }));
}

async function read(c: Case, pieceBytes: number): Promise<ReadFile | { readonly failure: string }> {
  const path = join(CORPUS, c.file);
  const schema = await pinned(c);
  const options: Partial<BatchOptions> = {
    ...c.options,
    ...(c.text ? { header: "yes" } : {}),
    ...(schema === undefined ? {} : { schema }),
  };
  return outcomeOf(async () =>
    readFiles(await planBatch(await room.config([path], options), localFiles(path)), { pieceBytes }),
  );
}

for (const c of CASES)
  test(`${c.file}${c.columns === undefined ? "" : ` as ${c.columns.join(", ")}`}`, async () => {
    const got = await read(c, 64 << 10);
    if ("failure" in got || c.failure !== undefined) {
      expect(got).toEqual({ failure: c.failure ?? "none" });
      return;
    }
    expect(got.rejects.map((r) => [r.row, r.code])).toEqual(c.rejects ?? []);
    expect(got.rows).toEqual(c.rows!);
    expect(got.rows.length + got.rejects.length).toBe(got.records);
  });

test("every file of the corpus is in a case", () => {
  const files = [...new Glob("*.{csv,tsv,json,ndjson,parquet}").scanSync({ cwd: CORPUS })];
  const used = new Set(CASES.map((c) => c.file));
  expect(files.filter((f) => f !== "expected.json" && !used.has(f))).toEqual([]);
});
