/**
 * Goal: every type of a decoded column is in PostgreSQL what it was, to its ends, and a value that PostgreSQL cannot hold
 * costs its row alone. Method: columns of edge values go through the binary COPY; psql shows what the server has, and the
 * expected texts are those of the PostgreSQL documentation, chapter "Data Types".
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { prepareFields } from "../../../src/adapters/postgres/prepare.ts";
import { PostgresTableWriter } from "../../../src/adapters/postgres/table-writer.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { Authority } from "../../../src/core/ports/coverage.ts";
import type { RefusedCell } from "../../../src/core/ports/table-sink.ts";
import type { ColumnType, TableBatch } from "../../../src/core/types/table-batch.ts";
import { batch, field, type Plain } from "./columns.ts";
import { demandPostgres, freshDatabase, lines, POSTGRES, parts, psql, settings } from "./server.ts";
import { KEY, Sink } from "./sink.ts";

demandPostgres("types of decoded columns");

const I64_MAX = 2n ** 63n - 1n;
const I64_MIN = -(2n ** 63n);
const int = (bits: 8 | 16 | 32 | 64, signed = true): ColumnType => ({ id: "int", bits, signed });
const decimal = (precision: number, scale: number): ColumnType => ({ id: "decimal", precision, scale });
const timestamp = (unit: "s" | "ms" | "us" | "ns", zone: string | null = null): ColumnType => ({
  id: "timestamp",
  unit,
  zone,
});
const list = (type: ColumnType): ColumnType => ({ id: "list", item: field("item", type) });
const UUID = Uint8Array.from({ length: 16 }, (_, i) => i * 17);

describe.skipIf(POSTGRES === null)("a column", () => {
  let database: string;
  let sink: Sink;
  let authorities: readonly Authority[];
  let next = 0n;
  const TABLE = { schema: "public", table: "typed" };

  beforeAll(async () => {
    database = await freshDatabase();
    sink = new Sink({ settings: settings(database) });
    authorities = await sink.claimed();
  });
  afterAll(() => sink.close());
  afterEach(() => psql(database, "drop table if exists typed; delete from twg.reject"));

  interface How {
    readonly create?: boolean;
    /** Lines of rows that were refused before they came here. */
    readonly rejected?: string;
    readonly upsert?: { key: string[]; order: string[] };
  }

  async function written(
    batches: readonly TableBatch[],
    { create = true, upsert, rejected: lines_ }: How = {},
  ) {
    const fields = batches[0]!.fields;
    const place = { settings: settings(database), table: TABLE, rejects: null };
    // Of another sink: the table is made anew in each test, and the rows of all count as landed.
    const state = { stateSchema: "twg", key: { pipeline: "p", sink: "typed" } };
    const unique = upsert?.key ?? [];
    const targets = await prepareFields({ ...place, ...state, create, unique }, fields, parts);
    const writer = new PostgresTableWriter(
      {
        ...place,
        fields,
        targets,
        pipeline: "p",
        sink: "raw",
        stateSchema: "twg",
        lockTimeoutMs: 5000,
        intervalMs: 1000,
        maxRejects: 10,
        leavesHoles: false,
        rowKey: null,
        upsert: upsert === undefined ? null : { ...upsert, across: null },
      },
      { ...parts, writer: "t" },
    );
    const refuse = ({ row, column, code }: RefusedCell) =>
      writer.reject(new TextEncoder().encode(`${JSON.stringify({ row, column, code })}\n`), 1);
    const from = next;
    next += BigInt(batches.reduce((n, b) => n + b.rows, 0));
    writer.open(`set-${from}`);
    for (const b of batches) writer.write(b, refuse);
    if (lines_ !== undefined) writer.reject(new TextEncoder().encode(lines_), 1);
    await writer.flush();
    const sealed = await writer.seal([{ stream: KEY, from, next }], authorities);
    await writer.abort();
    return { sealed, targets };
  }

  /** Values of one column, with their positions, as psql shows an expression of them. */
  async function shown(
    type: ColumnType,
    values: readonly Plain[],
    expression = "coalesce(v::text, '<null>')",
  ): Promise<string[]> {
    const at = values.map((_, i) => i);
    await written([
      batch([
        [field("i", int(32)), at],
        [field("v", type), values],
      ]),
    ]);
    return lines(
      await psql(database, `set extra_float_digits = 1; select ${expression} from typed order by i`),
    );
  }

  const typeOf = () =>
    psql(
      database,
      "select format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'typed'::regclass and attname = 'v'",
    );

  const cases: readonly [string, ColumnType, string, readonly Plain[], readonly string[]][] = [
    ["bool", { id: "bool" }, "boolean", [true, false, null, true], ["true", "false", "", "true"]],
    ["int8", int(8), "smallint", [-128, 127, null, 0], ["-128", "127", "", "0"]],
    ["uint8", int(8, false), "smallint", [255, 0], ["255", "0"]],
    ["int16", int(16), "smallint", [-32_768, 32_767], ["-32768", "32767"]],
    ["uint16", int(16, false), "integer", [65_535], ["65535"]],
    ["int32", int(32), "integer", [-2_147_483_648, 2_147_483_647], ["-2147483648", "2147483647"]],
    ["uint32", int(32, false), "bigint", [4_294_967_295, 0], ["4294967295", "0"]],
    ["int64", int(64), "bigint", [I64_MIN, I64_MAX, -1n], [String(I64_MIN), String(I64_MAX), "-1"]],
    [
      "uint64",
      int(64, false),
      "numeric(20,0)",
      [18_446_744_073_709_551_615n, 0n, 10_000n],
      ["18446744073709551615", "0", "10000"],
    ],
    [
      "float32",
      { id: "float", bits: 32 },
      "real",
      [1.5, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0, null],
      ["1.5", "NaN", "Infinity", "-Infinity", "-0", ""],
    ],
    [
      "float64",
      { id: "float", bits: 64 },
      "double precision",
      [Number.MAX_VALUE, Number.MIN_VALUE, 0.1, Number.NaN],
      ["1.7976931348623157e+308", "5e-324", "0.1", "NaN"],
    ],
    [
      "decimal(38,10)",
      decimal(38, 10),
      "numeric(38,10)",
      [0n, 1n, -1n, 10n ** 38n - 1n, -(10n ** 38n) + 1n, 12_345_678_901_234_567_890n, 10_000_000_000n, null],
      [
        "0.0000000000",
        "0.0000000001",
        "-0.0000000001",
        "9999999999999999999999999999.9999999999",
        "-9999999999999999999999999999.9999999999",
        "1234567890.1234567890",
        "1.0000000000",
        "",
      ],
    ],
    ["decimal(5,0)", decimal(5, 0), "numeric(5,0)", [99_999n, -10_000n, 1n], ["99999", "-10000", "1"]],
    ["decimal(3,3)", decimal(3, 3), "numeric(3,3)", [999n, 1n, -5n], ["0.999", "0.001", "-0.005"]],
    [
      "binary",
      { id: "binary" },
      "bytea",
      [Uint8Array.of(0, 255, 92), new Uint8Array(0), null],
      ["\\x00ff5c", "\\x", ""],
    ],
    ["fixed", { id: "fixed", bytes: 3 }, "bytea", [Uint8Array.of(1, 2, 3)], ["\\x010203"]],
    [
      "uuid",
      { id: "fixed", bytes: 16, as: "uuid" },
      "uuid",
      [UUID],
      ["00112233-4455-6677-8899-aabbccddeeff"],
    ],
    [
      "date",
      { id: "date32" },
      "date",
      [0, -1, 10_957, -2_440_588, 2_145_042_905, 2_147_483_647, -2_147_483_648],
      ["1970-01-01", "1969-12-31", "2000-01-01", "4714-11-24 BC", "5874897-12-31", "infinity", "-infinity"],
    ],
    [
      "time of microseconds",
      { id: "time64", unit: "us" },
      "time without time zone",
      [0n, 86_399_999_999n, 86_400_000_000n],
      ["00:00:00", "23:59:59.999999", "24:00:00"],
    ],
    [
      "time of nanoseconds",
      { id: "time64", unit: "ns" },
      "time without time zone",
      [1000n],
      ["00:00:00.000001"],
    ],
    [
      "timestamp",
      timestamp("us"),
      "timestamp without time zone",
      [0n, -1n, 946_684_800_000_000n, -210_866_803_200_000_000n, I64_MAX - 1n, I64_MAX, -I64_MAX],
      [
        "1970-01-01 00:00:00",
        "1969-12-31 23:59:59.999999",
        "2000-01-01 00:00:00",
        "4714-11-24 00:00:00 BC",
        "294247-01-10 04:00:54.775806",
        "infinity",
        "-infinity",
      ],
    ],
    [
      "timestamp of seconds",
      timestamp("s"),
      "timestamp without time zone",
      [1n, -1n],
      ["1970-01-01 00:00:01", "1969-12-31 23:59:59"],
    ],
    [
      "timestamp of nanoseconds",
      timestamp("ns"),
      "timestamp without time zone",
      [1_000n],
      ["1970-01-01 00:00:00.000001"],
    ],
    [
      "timestamp with a zone",
      timestamp("ms", "Europe/Berlin"),
      "timestamp with time zone",
      [1_700_000_000_123n],
      ["2023-11-14 22:13:20.123+00"],
    ],
    [
      "interval",
      { id: "interval" },
      "interval",
      [
        [14, -3, 5_000_000n],
        [0, 0, -1_000n],
      ],
      ["1 year 2 mons -3 days +00:00:00.005", "-00:00:00.000001"],
    ],
    ["json", { id: "json" }, "jsonb", ['{"a": 1}', '"ü"', "null", null], ['{"a": 1}', '"ü"', "null", ""]],
    ["null", { id: "null" }, "text", [null, null], ["", ""]],
    ["list of ints", list(int(32)), "integer[]", [[1, null, -3], [], null], ["{1,NULL,-3}", "{}", ""]],
    ["list of texts", list({ id: "utf8" }), "text[]", [["a", "", null, 'x,"y']], ['{a,"",NULL,"x,\\"y"}']],
    ["list of decimals", list(decimal(10, 2)), "numeric(10,2)[]", [[123n, -5n]], ["{1.23,-0.05}"]],
    [
      "list of timestamps",
      list(timestamp("us", "UTC")),
      "timestamp with time zone[]",
      [[0n]],
      ['{"1970-01-01 00:00:00+00"}'],
    ],
    ["list of lists", list(list(int(32))), "jsonb", [[[1], [], null]], ["[[1], [], null]"]],
    [
      "struct",
      {
        id: "struct",
        fields: [
          field("a", int(64)),
          field("b", decimal(10, 2)),
          field("c", { id: "utf8" }),
          field("d", { id: "binary" }),
        ],
      },
      "jsonb",
      [{ a: 2n ** 53n + 1n, b: -5n, c: 'q"', d: Uint8Array.of(1) }, null],
      ['{"a": 9007199254740993, "b": -0.05, "c": "q\\"", "d": "AQ=="}', ""],
    ],
    [
      "map",
      { id: "map", key: field("key", { id: "utf8" }), value: field("value", { id: "float", bits: 64 }) },
      "jsonb",
      [
        [
          ["x", 1.5],
          ["y", Number.NaN],
        ],
        [
          ["x", 1],
          ["x", 2],
        ],
      ],
      ['{"x": 1.5, "y": "NaN"}', '[{"key": "x", "value": 1}, {"key": "x", "value": 2}]'],
    ],
  ];
  for (const [name, type, becomes, values, expected] of cases) {
    test(`${name} becomes ${becomes}, and its values are the same`, async () => {
      expect(await shown(type, values)).toEqual(expected.map((e) => (e === "" ? "<null>" : e)));
      expect(await typeOf()).toBe(becomes);
    });
  }

  test("text with every code point that there is but NUL", async () => {
    const all: string[] = [];
    for (let from = 1; from < 0x110000; from += 0x1000) {
      let text = "";
      for (let c = from; c < from + 0x1000 && c < 0x110000; c++)
        if (c < 0xd800 || c > 0xdfff) text += String.fromCodePoint(c);
      all.push(text);
    }
    const digests = all.map((t) => new Bun.CryptoHasher("md5").update(t).digest("hex"));
    expect(await shown({ id: "utf8" }, all, "md5(v)")).toEqual(digests);
  });

  test("a value that PostgreSQL cannot hold costs its row, with a code; the others land in the same commit", async () => {
    const wrong: readonly [ColumnType, Plain, string][] = [
      [{ id: "utf8" }, "a\0b", "value.nul"],
      [{ id: "utf8" }, Uint8Array.of(0xc3, 0x28), "row.encoding"],
      [{ id: "json" }, '"\\u0000"', "value.nul"],
      [{ id: "json" }, '{"a": "\\ud800"}', "value.type"],
      [{ id: "json" }, '"\\udc00\\ud800"', "value.type"],
      [{ id: "json" }, "{", "value.type"],
      [{ id: "json" }, "1e400000", "value.range"],
      [{ id: "date32" }, 2_145_042_906, "value.range"],
      [timestamp("us"), -210_866_803_200_000_001n, "value.range"],
      [timestamp("ms"), 9_224_318_016_000_000n, "value.range"],
      [timestamp("s"), 10n ** 15n, "value.range"],
      [timestamp("ns"), 1n, "value.precision"],
      [{ id: "time64", unit: "ns" }, 1n, "value.precision"],
      [{ id: "interval" }, [0, 0, 1n], "value.precision"],
      [list({ id: "utf8" }), ["fine", "a\0b"], "value.nul"],
      [{ id: "struct", fields: [field("a", { id: "utf8" })] }, { a: "\0" }, "value.nul"],
    ];
    for (const [type, value, code] of wrong) {
      await psql(database, "drop table if exists typed");
      await written([
        batch([
          [field("i", int(32)), [0, 1, 2]],
          [field("v", type), [null, value, null]],
        ]),
      ]);
      expect(await psql(database, "select i from typed order by i")).toBe("0\n2");
      const line = JSON.parse(await psql(database, "select line from twg.reject order by at desc limit 1"));
      expect(line).toEqual({ row: 1, column: "v", code });
    }
  });

  test("what looks like such a value and is none lands", async () => {
    const values = ['"\\\\u0000"', '"\\ud83d\\ude00"', '"\\\\ud800"', "1e4000", '{"e5": "1E99999"}'];
    const text = await shown({ id: "json" }, values, "v is not null");
    expect(text).toEqual(values.map(() => "t"));
  });

  test("an existing table of wider types takes them", async () => {
    await psql(
      database,
      "create table public.typed(i bigint, v varchar, f double precision, n numeric, j json)",
    );
    const { targets } = await written(
      [
        batch([
          [field("i", int(16)), [-5]],
          [field("v", { id: "utf8" }), ["x"]],
          [field("f", { id: "float", bits: 32 }), [1.5]],
          [field("n", decimal(5, 2)), [-105n]],
          [field("j", { id: "json" }), ['{"a":1, "a":2}']],
        ]),
      ],
      { create: false },
    );
    expect(targets.map((t) => t.type)).toEqual([
      "bigint",
      "character varying",
      "double precision",
      "numeric",
      "json",
    ]);
    expect(await psql(database, "select i, v, f, n, j from typed")).toBe('-5|x|1.5|-1.05|{"a":1, "a":2}');
  });

  test("one of narrower types is refused, each difference by name", async () => {
    await psql(database, "create table public.typed(i smallint, n numeric(4,2), t timestamp)");
    const tried = written(
      [
        batch([
          [field("i", int(32)), [1]],
          [field("n", decimal(5, 2)), [1n]],
          [field("t", timestamp("us", "UTC")), [1n]],
        ]),
      ],
      { create: false },
    );
    const f: unknown = await tried.catch((e: unknown) => e);
    if (!(f instanceof Failure)) throw f;
    expect(f.message.split(": ")[1]?.split("; ")).toEqual([
      "column i is smallint, wanted is integer",
      "column n is numeric(4,2), wanted is numeric(5,2)",
      "column t is timestamp without time zone, wanted is timestamp with time zone",
    ]);
  });

  test("rows that were refused before become durable with the set", async () => {
    const rows = batch([[field("i", int(32)), [1]]]);
    await written([rows], { rejected: '{"row":7,"raw":"\\u0000"}\n{"row":8}\n' });
    expect(lines(await psql(database, "select line from twg.reject order by line"))).toEqual([
      '{"row":7,"raw":"\\u0000"}',
      '{"row":8}',
    ]);
  });

  test("more refused rows than go into one statement", async () => {
    const rows = batch([[field("i", int(32)), [1]]]);
    const count = 60_000;
    const refused = Array.from({ length: count }, (_, i) => JSON.stringify({ row: i, raw: "x".repeat(100) }));
    await written([rows], { rejected: `${refused.join("\n")}\n` });
    const seen = "select count(*), count(distinct line), min(length(line)) from twg.reject";
    expect(await psql(database, seen)).toBe(`${count}|${count}|${refused[0]!.length}`);
  });

  test("a null where the table has none costs its row", async () => {
    await psql(database, "create table public.typed(i int not null, v text)");
    const values: Plain[] = [1, null, 3];
    await written(
      [
        batch([
          [field("i", int(32)), values],
          [field("v", { id: "utf8" }), ["a", "b", null]],
        ]),
      ],
      { create: false },
    );
    expect(await psql(database, "select i from typed order by i")).toBe("1\n3");
    expect(await psql(database, "select line from twg.reject")).toBe(
      '{"row":1,"column":"i","code":"value.null"}',
    );
  });

  test("upsert: the latest of a key stands, whatever the order, and an older one never replaces it", async () => {
    await psql(database, "create table public.typed(k text primary key, v int, pos bigint)");
    const upsert = { key: ["k"], order: ["pos"] };
    const rows = (...r: readonly (readonly [string, number, number])[]) =>
      batch([
        [field("k", { id: "utf8" }), r.map((x) => x[0])],
        [field("v", int(32)), r.map((x) => x[1])],
        [field("pos", int(64)), r.map((x) => x[2])],
      ]);
    const how = { create: false, upsert };
    await written([rows(["a", 1, 10], ["a", 3, 30], ["a", 2, 20], ["b", 1, 11])], how);
    expect(await psql(database, "select * from typed order by k")).toBe("a|3|30\nb|1|11");
    await written([rows(["a", 0, 5], ["b", 9, 12], ["c", 1, 1])], how);
    expect(await psql(database, "select * from typed order by k")).toBe("a|3|30\nb|9|12\nc|1|1");
  });

  test("upsert without a unique index is refused by name", async () => {
    await psql(database, "create table public.typed(k text)");
    const rows = batch([[field("k", { id: "utf8" }), ["a"]]]);
    const f: unknown = await written([rows], { create: false, upsert: { key: ["k"], order: ["k"] } }).catch(
      (e: unknown) => e,
    );
    expect(f).toMatchObject({ code: "postgres.table_mismatch" });
  });
});
