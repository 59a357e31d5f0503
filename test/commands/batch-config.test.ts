/**
 * Goal: the command line and a file say the same things under the same checks, and what a batch job cannot do is refused
 * before anything is read. Method: both ways to the same configuration; then one refusal after another, by its code.
 */
import { afterAll, expect, test } from "bun:test";
import { Failure } from "../../src/core/failure/failure.ts";
import { BatchRoom } from "./batch-room.ts";

const room = new BatchRoom();
afterAll(() => room.end());

const refusal = (p: Promise<unknown>) =>
  p.then(
    () => "no failure",
    (e) => {
      if (e instanceof Failure) return e.code;
      throw e;
    },
  );

const file = (name: string, sink: string, source: string) =>
  room.put(name, `[pipeline]\nname = "p"\n[source]\n${source}\n[[sink]]\nname = "out"\n${sink}\n`);
const PARQUET = 'type = "parquet"\npath = "lake"';
const FILES = 'type = "files"\npaths = ["in/*.csv"]';

test("the command line and a file give the same", async () => {
  const config = file(
    "a.toml",
    PARQUET,
    `${FILES}\nmax_rejects = 3\n[source.csv]\ndelimiter = "\\t"\nnulls = ["", "-"]`,
  );
  const said = await room.config(["in/*.csv"], {
    to: "lake",
    name: "p",
    maxRejects: 3,
    delimiter: "\\t",
    null: ["", "-"],
  });
  const { source, sink, pipeline } = await room.config([], { config });
  expect(said.source).toEqual(source);
  expect(said.sink).toEqual(sink);
  expect(said.pipeline).toEqual(pipeline);
  expect(source).toMatchObject({
    paths: ["in/*.csv"],
    max_rejects: 3,
    csv: { delimiter: "\t", nulls: ["", "-"] },
  });
});

test("texts of the command line are texts, whatever they hold", async () => {
  const odd = 'a"b\\c\n[sink]#.csv';
  const { source, sink } = await room.config([odd], { to: `${odd}/` });
  expect(source.paths).toEqual([odd]);
  expect(sink.path).toBe(`${odd}/`);
});

test("strictness, lanes and schema of the command line go over the file's", async () => {
  const config = file("b.toml", PARQUET, `${FILES}\nmax_rejects = 3\nschema = "a.json"`);
  const { source, pipeline } = await room.config([], { config, maxRejects: 0, lanes: 2, schema: "b.json" });
  expect(source).toMatchObject({ max_rejects: 0, schema: "b.json" });
  expect(pipeline.lanes).toBe(2);
});

test("a command line that says too little or too much", async () => {
  const config = file("c.toml", PARQUET, FILES);
  expect(await refusal(room.config([]))).toBe("cli.usage");
  expect(await refusal(room.config(["a.csv"], { to: undefined as unknown as string }))).toBe("cli.usage");
  expect(await refusal(room.config(["a.csv"], { to: "out/a.PARQUET" }))).toBe("cli.usage");
  expect(await refusal(room.config(["a.csv"], { config }))).toBe("cli.usage");
  expect(await refusal(room.config(["a.csv"], { format: "xml" }))).toStartWith("config.");
});

test("a source without an end and a sink of another type are refused", async () => {
  const kafka = 'type = "kafka"\nbootstrap = ["localhost:9092"]\ntopics = ["t"]\ngroup = "g"';
  const postgres = 'type = "postgres"\nurl = "postgres://localhost/db"\ntable = "t"';
  const stream = file("d.toml", PARQUET, kafka);
  expect(await refusal(room.config([], { config: stream }))).toBe("config.conflict");
  const other = file("e.toml", postgres, FILES);
  expect(await refusal(room.config([], { config: other }))).toBe("config.not_in_this_version");
});
