/**
 * Goal: the command line and a file say the same things under the same checks, and what a batch job cannot do is refused
 * before anything is read. Method: both ways to the same configuration; then one refusal after another, by its code.
 */
import { afterAll, expect, test } from "bun:test";
import { type BatchOptions, batchConfig } from "../../src/commands/batch-config.ts";
import { loadConfig } from "../../src/commands/config-file.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import { BatchRoom, DEFAULTS } from "./batch-room.ts";

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
  expect(sink).toMatchObject({ type: "parquet", path: `${odd}/` });
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
  const stream = file("d.toml", PARQUET, kafka);
  expect(await refusal(room.config([], { config: stream }))).toBe("config.conflict");
});

const DATABASE = 'type = "postgres"\nurl = "postgres://u:s3cret@localhost/db"\ntable = "t"';

test("a database on the command line means the same as in a file, and its password is not printed", async () => {
  const to = "postgres://u:s3cret@localhost/db";
  const { sink } = await room.config(["a.csv"], {
    to,
    table: "public.t",
    create: true,
    mode: "upsert",
    key: ["id"],
  });
  expect(sink).toMatchObject({
    type: "postgres",
    table: "public.t",
    create: true,
    mode: "upsert",
    key: ["id"],
  });
  expect(JSON.stringify(sink)).not.toContain("s3cret");
  const named = await room.config(["a.csv"], { to, table: "public.other" });
  // Two tables of a database are two sinks: what has landed in one is not in the other.
  expect(named.sink.name).not.toBe(sink.name);
  const wrong = await room.config(["a.csv"], { to, table: "a.b.c" }).catch((e: Error) => e.message);
  expect(wrong).toContain("sink[0].table");
  expect(wrong).not.toContain("s3cret");
});

test("a database's url from a secret", async () => {
  const environment = { TWG_SECRET_PLACE: "postgres://u:p@h/d" };
  const { to: _, ...options } = DEFAULTS;
  const { sink } = await batchConfig(["a.csv"], { ...options, toSecret: "place", table: "t" }, environment);
  expect(sink.type === "postgres" && sink.url.reveal()).toBe("postgres://u:p@h/d");
});

test.each<[Partial<BatchOptions>, string]>([
  [{ to: "postgres://h/d" }, "into which table"],
  [{ to: "out", table: "t" }, "--table"],
  [{ to: "out", create: true }, "--create"],
  [{ to: "out", mode: "upsert" }, "--mode"],
  [{ to: "out", key: ["a"] }, "--key"],
  [{ to: "out", toSecret: "x" }, "--to-secret"],
])("%j is refused by name", async (options, named) => {
  const message = await room.config(["a.csv"], options).catch((e: Error) => e.message);
  expect(message).toContain(named);
});

test.each([
  [`${DATABASE}\nkey = ["id"]`, FILES, "config.conflict", 'sink[0].key: saw "id"'],
  [`${DATABASE}\nmode = "upsert"`, FILES, "config.missing", "sink[0].key"],
  [
    `${DATABASE}\nmode = "upsert"\nkey = ["id"]`,
    `${FILES}\nmetadata = "none"`,
    "config.conflict",
    "source.metadata",
  ],
])("an upsert that nobody could decide is a problem of the file: %#", async (sink, source, code, place) => {
  const config = file("u.toml", sink, source);
  const e: unknown = await room.config([], { config }).catch((f: unknown) => f);
  expect(e).toMatchObject({ code, message: expect.stringContaining(place) });
});

test("records of topics name themselves", async () => {
  const kafka = 'type = "kafka"\nbootstrap = ["localhost:9092"]\ntopics = ["t"]\ngroup = "g"';
  const problemOf = (sink: string) =>
    loadConfig(file("k.toml", sink, kafka)).then(
      () => null,
      (e: Error) => e.message,
    );
  expect(await problemOf(`${DATABASE}\nmode = "upsert"`)).toBeNull();
  expect(await problemOf(`${DATABASE}\nmode = "upsert"\nkey = ["id"]`)).toContain("sink[0].key");
});
