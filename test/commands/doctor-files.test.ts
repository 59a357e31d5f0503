/**
 * Goal: doctor says of a job over files what each input stands for, whether it can be read and as which columns, and
 * touches nothing. Method: the command over real files, one fault at a time.
 */
import { afterAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { runDoctor } from "../../src/commands/doctor.ts";
import type { Finding } from "../../src/core/ports/doctor.ts";
import { BatchRoom } from "./batch-room.ts";
import { fakeCli, fileWith } from "./fake-cli.ts";

const room = new BatchRoom();
afterAll(() => room.end());

async function told(paths: readonly string[], more = ""): Promise<[number, string[]]> {
  const config = fileWith(`[pipeline]
name = "job"
state_dir = "${room.path}/state"
[source]
type = "files"
paths = ${JSON.stringify(paths)}
${more}
[[sink]]
name = "out"
type = "parquet"
path = "${room.path}/lake"
`);
  const cli = fakeCli({ TWG_SECRET_WORD: "w" });
  const code = await runDoctor({ config, json: true, strict: false, timeout: 20_000 }, cli);
  const { findings } = JSON.parse(cli.stdout()) as { findings: Finding[] };
  const ours = findings.filter((f) => f.check.startsWith("files."));
  return [code, ours.map((f) => `${f.check} ${f.verdict} ${f.code === null ? "" : `${f.code}: `}${f.seen}`)];
}

test("files that are there, with their size and columns", async () => {
  room.put("in/a.csv", "id,name\n1,x\n");
  room.put("in/b.csv", "id,name\n2,y\n");
  expect(await told([`${room.path}/in`])).toEqual([
    0,
    ["files.input ok 2 files, 24 B, readable", "files.schema ok 2 columns: id int64, name string"],
  ]);
  expect(existsSync(join(room.path, "lake"))).toBe(false);
});

test("what is not there, and what is fetched later, in one report", async () => {
  const csv = room.put("c.csv", "id\n1\n");
  const [code, lines] = await told([
    csv,
    `${room.path}/nix*.csv`,
    "https://u:secret@example.org/x.csv?key=secret",
  ]);
  expect([code, lines]).toEqual([
    3,
    [
      "files.input ok 1 file, 5 B, readable",
      "files.input failed files.none: no file matches",
      "files.input skipped it is fetched when the job runs",
      "files.schema ok 1 columns: id int64",
    ],
  ]);
});

test("files that do not fit together, and none at all", async () => {
  const paths = [room.put("d/a.csv", "a,b\n1,2\n"), room.put("d/b.csv", "a,c\n1,2\n")];
  expect((await told(paths))[1].at(-1)).toStartWith("files.schema failed files.unknown_column: ");
  expect((await told([`${room.path}/nix`]))[1].at(-1)).toBe(
    "files.schema skipped there is no file to look at",
  );
});

test("a bucket that does not answer is a finding", async () => {
  const [code, lines] = await told(
    ["s3://bucket/in/*.csv"],
    '[source.s3]\nendpoint = "http://127.0.0.1:9"\naccess_key_id = "k"\nsecret_access_key = { secret = "word" }',
  );
  expect([code, lines[0]?.slice(0, 20)]).toEqual([3, "files.input failed s"]);
});
