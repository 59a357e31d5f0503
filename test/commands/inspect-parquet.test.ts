// Goal: what is in a Parquet file is shown as it is, and damage is a coded failure. Method: files written by pyarrow (fixtures/README.md).
import { describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { runCli } from "../../src/commands/program.ts";
import { fakeCli, fileWith } from "./fake-cli.ts";

const fixture = (codec: string) => join(import.meta.dir, "fixtures", `three-rows-${codec}.parquet`);

async function inspect(...argv: string[]) {
  const cli = fakeCli();
  const code = await runCli(["inspect", "parquet", ...argv], cli);
  return { code, out: cli.stdout(), err: cli.stderr() };
}

const SAMPLE = [
  {
    _twg_source_offset: "9007199254740993",
    _twg_source_timestamp: "1970-01-01T00:00:00.000Z",
    _twg_source_key: "k",
    _twg_source_value: '{"sku":"a"}',
    _twg_source_headers: [{ key: "h", value: "v" }],
  },
  {
    _twg_source_offset: 2,
    _twg_source_timestamp: "2023-11-14T22:13:20.000Z",
    _twg_source_key: null,
    _twg_source_value: "0xff00",
    _twg_source_headers: [],
  },
  {
    _twg_source_offset: 3,
    _twg_source_timestamp: "1969-12-31T23:59:59.999Z",
    _twg_source_key: "",
    _twg_source_value: null,
    _twg_source_headers: [{ key: "h", value: null }],
  },
];

test.each(["zstd", "snappy", "none"])("%s: rows, groups, metadata and every sample row", async (codec) => {
  const { code, out } = await inspect(fixture(codec), "--json", "--rows", "10");
  expect(code).toBe(0);
  const { files, total, failures } = JSON.parse(out);
  expect(failures).toEqual([]);
  expect(files).toHaveLength(1);
  expect(files[0]).toMatchObject({
    file: fixture(codec),
    rows: 3,
    rowGroups: 2,
    metadata: { "twg.version": "0.1.0", "twg.spans": "[]" },
  });
  expect(files[0].createdBy).toContain("parquet-cpp-arrow");
  expect(files[0].columns).toEqual(Object.keys(SAMPLE[0] ?? {}));
  expect(files[0].sample).toEqual(SAMPLE);
  expect(total).toEqual({ files: 1, rows: 3, bytes: readFileSync(fixture(codec)).length });
});

test("as text, one file comes with its details and the rows asked for", async () => {
  const { code, out, err } = await inspect(fixture("zstd"), "--rows", "1");
  expect([code, err]).toEqual([0, ""]);
  expect(out).toContain("1 files, 3 rows");
  expect(out).toContain("twg.version: 0.1.0");
  expect(out).toContain('{"sku":"a"}');
  expect(out).not.toContain("0xff00");
});

test("a folder is searched, topics with odd names too; our own folder and other files are left out", async () => {
  const root = mkdtempSync(join(tmpdir(), "twg-inspect-"));
  for (const name of [
    "b/2.parquet",
    "a/1.parquet",
    "_schemas/3.parquet",
    "_twg/orders/raw/staging/4.parquet",
    "note.txt",
  ]) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), readFileSync(fixture("zstd")));
  }
  const { code, out } = await inspect(root, "--json");
  expect(code).toBe(0);
  const { files, total } = JSON.parse(out);
  expect(files.map((f: { file: string }) => f.file)).toEqual([
    join(root, "_schemas/3.parquet"),
    join(root, "a/1.parquet"),
    join(root, "b/2.parquet"),
  ]);
  expect(total.rows).toBe(9);
});

describe("damage", () => {
  const whole = readFileSync(fixture("zstd"));
  const footer = new Uint8Array(whole);
  new DataView(footer.buffer, footer.byteOffset).setUint32(whole.length - 8, 0x7fffffff, true);
  const garbled = new Uint8Array(whole).fill(0xff, whole.length - 800, whole.length - 20);

  test.each([
    ["empty", new Uint8Array(0)],
    ["text", new TextEncoder().encode("this is no Parquet file at all")],
    ["cut short", whole.subarray(0, whole.length - 1)],
    ["cut in the middle", whole.subarray(0, 1000)],
    ["no head", new Uint8Array(whole).fill(0, 0, 4)],
    ["a footer longer than the file", footer],
    ["a garbled footer", garbled],
  ] as const)("%s is inspect.not_parquet, exit 1", async (_, bytes) => {
    const { code, err } = await inspect(fileWith(bytes, "x.parquet"));
    expect(code).toBe(1);
    expect(err).toStartWith("error: inspect.not_parquet: ");
    expect(err).toContain("x.parquet");
  });

  test("a row group that lists another column than the schema", async () => {
    // The name stands in the schema first and then once in each row group; one letter of the first is changed.
    const bytes = new Uint8Array(whole);
    const schema = Buffer.from(whole).indexOf("_twg_source_value", whole.length - 1200);
    bytes[schema + 11] = 0x78;
    const { code, err } = await inspect(fileWith(bytes, "x.parquet"), "--rows", "3");
    expect(code).toBe(1);
    expect(err).toContain("a row group lists other columns than the schema");
  });

  test("one damaged file hides no other", async () => {
    const { code, out } = await inspect(fileWith("junk", "x.parquet"), fixture("zstd"), "--json");
    expect(code).toBe(1);
    const { files, failures } = JSON.parse(out);
    expect(files).toHaveLength(1);
    expect(failures[0].code).toBe("inspect.not_parquet");
  });

  test("every cut and many flipped bytes end in rows or a coded failure", async () => {
    for (let i = 0; i < 300; i++) {
      const bytes = new Uint8Array(whole);
      // A fixed walk over the file: 7919 is prime, so all places come up.
      bytes[(i * 7919) % whole.length] = (i * 31) & 0xff;
      const { code, err } = await inspect(fileWith(bytes, "x.parquet"), "--rows", "3");
      if (code !== 0) expect(err).toStartWith("error: inspect.not_parquet: ");
    }
  });
});

test("what is not there is exit 3, naming the path", async () => {
  const missing = await inspect("/does/not/exist.parquet");
  expect(missing.code).toBe(3);
  expect(missing.err).toContain("inspect.unreadable");
  expect(missing.err).toContain("/does/not/exist.parquet");
  const emptyFolder = await inspect(mkdtempSync(join(tmpdir(), "twg-inspect-")));
  expect(emptyFolder.code).toBe(3);
});
