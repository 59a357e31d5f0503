/** Goal: a plan tells a person what would be read, how, and where it would land. Method: the text of real plans. */

import { afterAll, expect, test } from "bun:test";
import type { BatchOptions } from "../../src/commands/batch-config.ts";
import { planText } from "../../src/commands/batch-plan-text.ts";
import { BatchRoom } from "./batch-room.ts";

const room = new BatchRoom();
afterAll(() => room.end());

async function textOf(inputs: readonly string[], options: Partial<BatchOptions> = {}): Promise<string> {
  const text = planText(await room.config(inputs, options), await room.plan(inputs, options));
  return text.replaceAll(`${room.path}/`, "");
}

test("files with how they are read, the schema, and where it lands", async () => {
  const inputs = [
    room.put("a.tsv", "id\tname\n1\tx\n"),
    room.put("b.csv.gz", Bun.gzipSync(new TextEncoder().encode("1,x\n2,y\n"))),
  ];
  const schema = room.put(
    "s.json",
    '{"columns":[{"name":"id","type":"int8"},{"name":"name","type":"string"}]}',
  );
  const text = await textOf(inputs, { schema, to: "lake/orders", lanes: 3, maxRejects: 7, metadata: "none" });
  expect(text).toMatch(/^a\.tsv +12 B +csv, delimiter "\\t", 2 columns, header$/m);
  expect(text).toMatch(/^b\.csv\.gz +\d+ B +csv, delimiter ",", 2 columns, no header, gzip$/m);
  expect(text).toMatch(/^2 files, \d+ B$/m);
  expect(text).toContain('schema (s.json):\n{\n  "columns": [\n    {"name":"id","type":"int8"},\n');
  expect(text).toMatch(/^lands in lake\/orders as Parquet, .*, 3 lanes; metadata columns: none$/m);
  expect(text).toContain("at most 7 rows may be refused");
});

test("JSON and encodings; one column is one", async () => {
  const inputs = [
    room.put("c.json", '[{"a":1}]'),
    room.put("d.ndjson", Buffer.from('\ufeff{"a":1}\n', "utf16le")),
  ];
  const text = await textOf(inputs);
  expect(text).toMatch(/^c\.json .* json array$/m);
  expect(text).toMatch(/^d\.ndjson .* ndjson, utf-16le$/m);
  expect(text).toContain("schema (inferred from 2 rows):");
  expect(await textOf([room.put("e.csv", "a\n1\n")])).toMatch(/csv, delimiter ",", 1 column, header$/m);
});

test("of very many files only the first are shown, and how many more", async () => {
  const inputs = Array.from({ length: 53 }, (_, i) => room.put(`many/${i}.csv`, "a\n1\n"));
  const text = await textOf(inputs);
  expect(text.match(/^many\//gm)).toHaveLength(50);
  expect(text).toContain("\n... and 3 more\n53 files, 212 B\n");
});

test("control characters of a name do not reach the terminal", async () => {
  const text = await textOf([room.put("a\x1b[2J.csv", "a\n1\n")], { to: "out\x1b[2J" });
  expect(text).not.toContain("\x1b");
});

test("Parquet by its row groups, into a table of a database", async () => {
  const input = new URL("../golden/files/codec-none.parquet", import.meta.url).pathname;
  const into = async (options: string) => {
    const sink = `[[sink]]\nname = "out"\ntype = "postgres"\nurl = "postgres://u:hidden@127.0.0.1/d"\ntable = "t"\n${options}\n`;
    const source = `[source]\ntype = "files"\npaths = [${JSON.stringify(input)}]\n`;
    const config = room.put("pg.toml", `[pipeline]\nname = "p"\n${source}${sink}`);
    return planText(await room.config([], { config }), await room.plan([input], {}));
  };
  const added = await into("");
  expect(added).toMatch(/parquet, 1 row group *$/m);
  expect(added).toMatch(/^lands in the table t of a database, every row added, transactions of about /m);
  expect(added).toContain("they would go to the table twg.reject");
  expect(added).not.toContain("hidden");
  const latest = await into('mode = "upsert"\nkey = ["a", "b"]\nrejects = "bad"');
  expect(latest).toContain("the latest row of each a, b,");
  expect(latest).toContain("they would go to the table bad");
});
