/**
 * Goal: rows that we write as Protobuf and as JSON by a registered schema are what the vendor's deserializers read, and the
 * schemas are ones that another compiler and another validator take. Method: a table of every kind of column with what Python
 * has of it by hand, tables by chance, and one that grows; franz-go's registry, whose Protobuf is compiled by buf's compiler.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import fc from "fast-check";
import { RegistryClient } from "../../src/adapters/registry/client.ts";
import { systemChance } from "../../src/adapters/system/chance.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { rowEncoding } from "../../src/commands/row-encoding.ts";
import { type RowEncode, rowSchema } from "../../src/commands/row-schemas.ts";
import type { ColumnField, TableBatch } from "../../src/core/types/table-batch.ts";
import type { Value } from "../../src/core/types/value.ts";
import { EVERY, tableOf, tables, typed, types } from "../core/codecs/random-columns.ts";

interface RealRegistry {
  readonly server: string;
  readonly python: string;
}

const real = JSON.parse(process.env["TWG_REAL_REGISTRY"] ?? "null") as RealRegistry | null;
if (real === null)
  console.error(
    "SKIP: TWG_REAL_REGISTRY names no independent registry; rows are not read by the vendor's clients",
  );

const column = (name: string, type: string, nullable = true): ColumnField => ({
  name,
  type: typed(type),
  nullable,
});
const bare = (name: string, type: string): ColumnField => {
  const whole = typed(type);
  if (whole.id === "list")
    return { name, nullable: true, type: { ...whole, item: { ...whole.item, nullable: false } } };
  if (whole.id !== "map") throw new Error(type);
  return { name, nullable: true, type: { ...whole, value: { ...whole.value, nullable: false } } };
};

const long = (value: bigint): Value => ({ kind: "long", value });
const text = (value: string): Value => ({ kind: "string", value });
const list = (...items: Value[]): Value => ({ kind: "list", items });
const NULL: Value = { kind: "null" };

/** What Python has of a Protobuf message and of JSON: 64-bit numbers are texts in the one, and what is absent is not there. */
const COLUMNS: readonly (readonly [ColumnField, Value, unknown, unknown])[] = [
  [column("id", "int64", false), long(-(2n ** 63n)), "-9223372036854775808", -(2 ** 63)],
  [column("u", "uint64"), long(2n ** 53n), "9007199254740992", 2 ** 53],
  [column("small", "int8"), { kind: "int", value: -128 }, -128, -128],
  [column("yes", "boolean"), { kind: "bool", value: false }, false, false],
  [column("x", "double"), { kind: "double", value: 0 }, 0, 0],
  [column("nan", "float"), { kind: "float", value: Number.NaN }, "NaN", "NaN"],
  [column("name", "string"), text("é\u0000😀"), "é\u0000😀", "é\u0000😀"],
  [column("blob", "binary"), { kind: "bytes", value: Uint8Array.of(0, 255) }, "AP8=", "AP8="],
  [column("price", "decimal(10,2)"), { kind: "decimal", unscaled: -1999n, scale: 2 }, "-19.99", -19.99],
  [column("day", "date"), { kind: "date", days: 20_000 }, "2024-10-04", "2024-10-04"],
  [
    column("at", "timestamptz"),
    { kind: "timestamp", unit: "us", zone: "UTC", value: -1n },
    "1969-12-31T23:59:59.999999Z",
    "1969-12-31T23:59:59.999999Z",
  ],
  [
    column("local", "timestamp[ms]"),
    { kind: "timestamp", unit: "ms", zone: null, value: 1n },
    "1970-01-01T00:00:00.001",
    "1970-01-01T00:00:00.001",
  ],
  [bare("tags", "list<string>"), list(text("a"), text("")), ["a", ""], ["a", ""]],
  [bare("packed", "list<int32>"), list(long(1n), long(-1n)), [1, -1], [1, -1]],
  [column("gaps", "list<int32>"), list(long(1n), NULL), [{ value: 1 }, {}], [1, null]],
  [
    column("lines", "list<struct<sku string, qty int32>>"),
    list({
      kind: "record",
      fields: [
        { name: "sku", value: text("s") },
        { name: "qty", value: NULL },
      ],
    }),
    [{ value: { sku: "s" } }],
    [{ sku: "s", qty: null }],
  ],
  [
    bare("counts", "map<string,int64>"),
    { kind: "map", entries: [[text("k"), long(7n)]] },
    { k: "7" },
    { k: 7 },
  ],
  [
    column("pairs", "map<double,string>"),
    { kind: "map", entries: [[{ kind: "double", value: 0.5 }, text("h")]] },
    [{ key: 0.5, value: "h" }],
    [{ key: 0.5, value: "h" }],
  ],
  [column("nothing", "string"), NULL, undefined, null],
];

describe.skipIf(real === null)("rows by a registered schema", () => {
  let server: Bun.Subprocess<"ignore", "pipe", "ignore">;
  let python: Bun.Subprocess<"pipe", "pipe", "inherit">;
  let answer: () => Promise<{ readonly value?: string | undefined; readonly done: boolean }>;
  let client: RegistryClient;

  beforeAll(async () => {
    server = Bun.spawn([real!.server], { stdin: "ignore", stdout: "pipe", stderr: "ignore" });
    let url = "";
    for await (const chunk of server.stdout) {
      url = new TextDecoder().decode(chunk).trim();
      break;
    }
    const script = resolve(import.meta.dir, "../servers/registry/row_readers.py");
    python = Bun.spawn([real!.python, script, url], { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
    const answers = python.stdout.pipeThrough(new TextDecoderStream()).getReader();
    answer = () => answers.read();
    client = new RegistryClient(
      {
        ...{ urls: [url], login: { by: "nothing" as const }, headers: {}, tls: null, timeoutMs: 30_000 },
        ...{ section: "r", attempts: 1, maxSchemaBytes: 1 << 20, cacheBytes: 1 << 20, refreshMs: 0 },
        ...{ missingGraceMs: 0, missingTtlMs: 0 },
      },
      { clock: systemClock, chance: systemChance },
    );
  });
  afterAll(async () => {
    client.close();
    python.stdin.end();
    server.kill();
    await Promise.all([python.exited, server.exited]);
  });

  /** The envelope and the payload of each row. */
  async function written(format: RowEncode["format"], topic: string, table: TableBatch): Promise<string[]> {
    const encode: RowEncode = { format, subject: `${topic}-value`, record: "acme.orders.Row" };
    const schema = await rowSchema(client, encode, table.fields, true);
    const { envelope, encode: rows } = rowEncoding(encode, schema, table.fields);
    const { bytes, starts, ends } = rows(table);
    return Array.from(starts, (s, i) => envelope.toHex() + bytes.slice(s, ends[i]).toHex());
  }

  async function read(format: "protobuf" | "json", topic: string, payloads: readonly string[]) {
    python.stdin.write(`${JSON.stringify({ format, topic, payloads })}\n`);
    python.stdin.flush();
    let line = "";
    while (!line.endsWith("\n")) {
      const { value, done } = await answer();
      if (done) throw new Error(`the reader ended: ${line}`);
      line += value;
    }
    return JSON.parse(line) as unknown[];
  }

  const table = tableOf(
    COLUMNS.map(([f]) => f),
    [COLUMNS.map(([, v]) => v), COLUMNS.map(([{ name }]) => (name === "id" ? long(1n) : NULL))],
  );
  const seen = (at: 2 | 3, first: unknown) => [
    Object.fromEntries(COLUMNS.flatMap((c) => (c[at] === undefined ? [] : [[c[0].name, c[at]]]))),
    first,
  ];

  test("Protobuf, of every kind of column", async () => {
    const payloads = await written("protobuf", "all", table);
    // Magic byte, id, and the one message index 0.
    expect(payloads[1]).toMatch(/^00[0-9a-f]{8}00/);
    expect(await read("protobuf", "all", payloads)).toEqual(seen(2, { id: "1" }));
  });

  test("JSON, of every kind of column", async () => {
    const payloads = await written("json_schema", "all-json", table);
    const nulls = Object.fromEntries(COLUMNS.map(([{ name }]) => [name, name === "id" ? 1 : null]));
    expect(await read("json", "all-json", payloads)).toEqual(seen(3, nulls));
  });

  test("tables by chance: schemas compile, messages have no field beside them, JSON is valid", async () => {
    const some = fc.sample(tables(types(EVERY, ["string", "int64", "double"])), { numRuns: 60 });
    for (const [i, { fields, columns, rows }] of some.entries()) {
      const one = { fields, columns, rows };
      const proto = await written("protobuf", `p${i}`, one);
      expect((await read("protobuf", `p${i}`, proto)).length).toBe(rows);
      const json = await written("json_schema", `j${i}`, one);
      expect((await read("json", `j${i}`, json)).length).toBe(rows);
    }
  }, 60_000);

  test("a table that grew: whoever has the newest message reads the rows of every version", async () => {
    const [id, qty, note] = [column("id", "int64"), column("qty", "int32"), column("note", "string")];
    const [one, two, n] = [long(1n), long(2n), text("n")];
    const first = await written("protobuf", "grown", tableOf([id, note], [[one, n]]));
    // The next run meets another order.
    const second = await written("protobuf", "grown", tableOf([qty, id, note], [[two, one, n]]));
    expect(await read("protobuf", "grown", [...first, ...second])).toEqual([
      { id: "1", note: "n" },
      { id: "1", note: "n", qty: 2 },
    ]);
    const json = await written("json_schema", "grown-json", tableOf([id, note], [[one, n]]));
    const more = await written("json_schema", "grown-json", tableOf([qty, id, note], [[two, one, n]]));
    expect(await read("json", "grown-json", [...json, ...more])).toEqual([
      { id: 1, note: "n" },
      { id: 1, note: "n", qty: 2 },
    ]);
  });

  test.each(["protobuf", "json_schema"] as const)(
    "a newest version that lacks a field of before is followed by one that has it: %s",
    async (format) => {
      const encode: RowEncode = { format, subject: `lacks-${format}-value`, record: "acme.orders.Row" };
      const both = [column("a", "int32"), column("b", "int32")];
      const { text } = await rowSchema(client, encode, both, true);
      const less =
        format === "protobuf" ? text.replace(/.* b = .*\n/, "") : text.replace(/,"b":\{[^}]*\}/, "");
      expect(less.length).toBeLessThan(text.length);
      const schema = { format: format === "protobuf" ? format : "json", text: less } as const;
      await client.register(encode.subject, schema, false);
      for (let run = 0; run < 2; run++) await rowSchema(client, encode, both, true);
      const versions = await client.versions(encode.subject);
      expect(versions.map((v) => /\bb\b/.test(v.text))).toEqual([true, false, true]);
    },
  );
});
