/**
 * Goal: records become rows by the schema that each names, the table grows and nothing flaps, what is bad costs itself, and
 * what waits for a schema is bounded. Method: real Avro decoders and framing over batches built here (order n is its
 * zigzag number, then a name); the registry is scripted, the clock simulated.
 */
import { beforeEach, expect, test } from "bun:test";
import { partDecoder } from "../../../src/commands/payload-decoder.ts";
import { framingOf } from "../../../src/core/codecs/framing/framing.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import { DecodeStage, type TableFit } from "../../../src/core/pipeline/decode-stage.ts";
import { type DerivedBatch, rejectFields } from "../../../src/core/pipeline/derived.ts";
import type { RawMetadata } from "../../../src/core/pipeline/raw-origins.ts";
import { TableBranchWriter } from "../../../src/core/pipeline/table-branch.ts";
import type { TableSink } from "../../../src/core/ports/table-sink.ts";
import { FOLDER_TABLE } from "../../../src/core/schema/folder-table.ts";
import type { SchemaText } from "../../../src/core/schema/resolver.ts";
import type { ColumnField, TableBatch } from "../../../src/core/types/table-batch.ts";
import { cellValue } from "../../../src/core/types/value-cells.ts";
import { valueJson } from "../../../src/core/types/value-json.ts";
import { SimTime } from "../../sim/clock.ts";
import { batchOf, bytes, row, STREAM } from "../formats/parquet/rows.ts";

const ID = { name: "id", type: "int" };
const SCHEMAS: Record<number, unknown[]> = {
  1: [ID, { name: "name", type: "string" }],
  2: [ID, { name: "name", type: "string" }, { name: "qty", type: "int" }],
  3: [{ name: "id", type: "string" }],
  4: [{ name: "_twg_x", type: "int" }],
  5: [
    { name: "id", type: "long" },
    { name: "name", type: ["null", "string"] },
  ],
};

let time: SimTime;
let given: { readonly rows: string[]; readonly rejects: string[]; readonly batch: DerivedBatch }[];
let missed: (readonly [bigint, bigint, string | null])[];
let fits: string[];
let asked: number[];
let troubles: (string | null)[];
let fatal: Failure[];
let refusals: string[];
/** What the registry says instead, by id. */
let faults: Map<number, Failure>;
let fails: boolean;
/** Fields of the schema that payloads are resolved to. */
let reader: unknown[] | null;
/** What the sinks say to columns. */
let sinks: (fields: readonly ColumnField[]) => TableFit;
/** What keys are: Avro by id, in text, or not decoded. */
let keys: "confluent" | "text" | null;

/** Rows as JSON, by name, nulls left out. */
function texts(table: TableBatch | null): string[] {
  return Array.from({ length: table?.rows ?? 0 }, (_, r) =>
    table!.fields
      .map((f, c) => [f.name, valueJson(cellValue(table!.columns[c]!, r))] as const)
      .filter(([, v]) => v !== "null")
      .map(([n, v]) => `${n}=${v}`)
      .join(" "),
  );
}

const OPTIONS = {
  max_payload_bytes: 1 << 20,
  max_depth: 64,
  unknown_fields: "reject",
  key: { format: "avro", prefix: "key_" },
} as const;
const record = (fields: readonly unknown[]) => JSON.stringify({ type: "record", name: "R", fields });

function stage(
  metadata: RawMetadata = "none",
  holdBytes = 1 << 20,
  slowly: <T>(ask: () => Promise<T>) => Promise<T> = (ask) => ask(),
): DecodeStage {
  return new DecodeStage(
    { pipeline: "p", prefix: "_twg_", metadata, holdBytes, can: FOLDER_TABLE },
    {
      clock: time.clock(null),
      framing: (_topic, part) =>
        part === "key" && keys === null
          ? null
          : framingOf(part === "key" && keys === "text" ? "none" : "confluent", {
              part,
              protobuf: false,
              maxPayloadBytes: 1 << 20,
              codecs: { zlib: () => {} },
            }),
      failsOnError: () => fails,
      schema: (_topic, ref) =>
        slowly(async () => {
          const id = ref.by === "id" ? ref.id : -1;
          asked.push(id);
          const fault = faults.get(id);
          if (fault !== undefined) throw fault;
          if (ref.by === "default")
            return { format: "text", text: "", references: [], id: "", subject: null, version: null };
          const text = record(SCHEMAS[id]!);
          return {
            format: "avro",
            text,
            references: [],
            id: String(id),
            subject: null,
            version: null,
            ...(reader === null ? {} : { reader: { text: record(reader), references: [] } }),
          } satisfies SchemaText;
        }),
      learn: async () => null,
      compile: (_topic, schema, message, part) =>
        partDecoder(OPTIONS, schema, part, { message: null, prefix: "key_" }, message, "_twg_"),
      fit: async (fields, judged) => {
        fits.push(`${fields.map((f) => f.name).join()}${judged ? "" : " again"}`);
        return sinks(fields);
      },
      give: (_stream, _key, batch) =>
        void given.push({ rows: texts(batch.table), rejects: texts(batch.rejects), batch }),
      miss: (_key, { span }, f) => void missed.push([span.from, span.next, f?.code ?? null]),
      trouble: (f) => void troubles.push(f?.code ?? null),
      undecodable: (all) =>
        void refusals.push(all.map((u) => `${u.code} ${u.records} ${u.first} ${u.path}`.trim()).join()),
      duplicates: null,
      fatal: (f) => void fatal.push(f),
    },
  );
}

const settle = (ms = 0) => time.runUntil(() => false, time.nowMs + ms);
const order = (schema: number, n: number, name: string, ...more: number[]) =>
  Uint8Array.from([0, 0, 0, 0, schema, 2 * n, 2 * name.length, ...bytes(name), ...more]);
const batch = (first: number, values: readonly (Uint8Array | null)[]) =>
  batchOf(values.map((value, i) => row(first + i, { value, key: bytes(`k${first + i}`) })));

beforeEach(() => {
  time = new SimTime();
  given = [];
  missed = [];
  fits = [];
  asked = [];
  troubles = [];
  fatal = [];
  refusals = [];
  faults = new Map();
  fails = false;
  reader = null;
  sinks = (fields) => ({ fields });
  keys = null;
});

test("a batch waits for its schema, the next is decoded on the spot; schemas are asked for once", async () => {
  const s = stage();
  s.take(0, "k", batch(0, [order(1, 1, "a"), order(1, 2, "b")]));
  expect(given.length).toBe(0);
  await settle();
  s.take(0, "k", batch(2, [order(1, 3, "c")]));
  expect(given.map((g) => g.rows)).toEqual([['id=1 name="a"', 'id=2 name="b"'], ['id=3 name="c"']]);
  expect([asked, fits]).toEqual([[1], ["id,name"]]);
});

test("what waits of a stream that went elsewhere is missed at once, the others go on", async () => {
  const s = stage();
  s.take(0, "k", batch(0, [order(1, 1, "a")]));
  s.take(1, "l", batch(5, [order(1, 2, "b")]));
  s.take(0, "k", batch(1, [order(1, 3, "c")]));
  expect(s.forget(new Set([0]))).toEqual(["k", "k"]);
  expect(missed).toEqual([
    [0n, 1n, null],
    [1n, 2n, null],
  ]);
  await settle();
  expect(given.map((g) => g.rows)).toEqual([['id=2 name="b"']]);
  expect(s.forget(new Set([0, 1]))).toEqual([]);
});

test("schemas that alternate are a group each; the table has the columns of both and stays", async () => {
  const s = stage("locator");
  const mixed = [order(1, 1, "a"), order(2, 2, "b", 14), order(1, 3, "c"), order(2, 4, "d", 16)];
  for (const first of [0, 4, 8]) {
    s.take(0, "k", batch(first, mixed));
    await settle();
  }
  const at = (o: number, id: number) =>
    `_twg_source_topic="orders" _twg_source_partition=3 _twg_source_offset=${o} _twg_schema_id="${id}"`;
  expect(given[2]?.rows).toEqual([
    `id=1 name="a" ${at(8, 1)}`,
    `id=3 name="c" ${at(10, 1)}`,
    `id=2 name="b" qty=7 ${at(9, 2)}`,
    `id=4 name="d" qty=8 ${at(11, 2)}`,
  ]);
  expect(fits).toEqual(["id,name", "id,name,qty"]);
});

test("a schema with narrower types fills the wider columns of the table", async () => {
  const s = stage();
  const long = Uint8Array.from([0, 0, 0, 0, 5, 0x80, 0x80, 0x80, 0x80, 0x20, 0]);
  s.take(0, "k", batch(0, [long]));
  await settle();
  s.take(0, "k", batch(1, [order(1, 1, "a")]));
  await settle();
  s.take(0, "k", batch(2, [order(1, 2, "b"), long, order(1, 3, "c")]));
  expect(given.map((g) => g.rows)).toEqual([
    ["id=4294967296"],
    ['id=1 name="a"'],
    ['id=2 name="b"', 'id=3 name="c"', "id=4294967296"],
  ]);
  for (const { batch: b } of given) {
    const { fields, columns } = b.table!;
    expect(columns.map((c) => c.type)).toEqual(fields.map((f) => f.type));
  }
  expect([fits, missed]).toEqual([["id,name"], []]);
});

test("what is bad costs itself and keeps all of its bytes; a tombstone is neither row nor reject", async () => {
  faults.set(9, new Failure("registry.unknown_schema", "no schema 9"));
  const s = stage();
  const bad = [order(1, 1, "a").subarray(0, 6), Uint8Array.of(7), order(9, 1, ""), order(4, 1, ""), null];
  s.take(0, "k", batch(0, [order(1, 1, "a"), ...bad, order(1, 2, "b")]));
  await settle();
  const [g] = given;
  expect(g?.rows).toEqual(['id=1 name="a"', 'id=2 name="b"']);
  const said = g!.rejects.map((r) => /stage="decode" code="([a-z._]+)"/.exec(r)?.[1]);
  expect(said).toEqual(["decode.truncated", "decode.framing", "decode.schema", "decode.reserved"]);
  const place = (n: number) => `1 ${STREAM.topic}/3@${n}`;
  expect(refusals).toEqual([
    `decode.truncated ${place(1)} name,decode.framing ${place(2)},decode.schema ${place(3)},decode.reserved ${place(4)} _twg_x`,
  ]);
  const rejects = g!.batch.rejects!;
  expect(rejects.fields).toEqual(rejectFields("_twg_"));
  const value = rejects.fields.findIndex((f) => f.name === "_twg_source_value");
  expect(cellValue(rejects.columns[value]!, 0)).toMatchObject({
    kind: "bytes",
    value: order(1, 1, "a").subarray(0, 6),
  });
  expect(g!.rejects[2]).toContain("_twg_source_offset=3");
  expect(g!.rejects[2]).toContain('_twg_schema_id="9"');
});

test("with on_error = fail the lane stops at it, naming the place", async () => {
  fails = true;
  const s = stage();
  s.take(0, "k", batch(0, [order(1, 1, "a")]));
  await settle();
  expect(() => s.take(0, "k", batch(1, [order(1, 1, "a"), Uint8Array.of(7)]))).toThrow("decode.framing");
  s.take(0, "k", batch(3, [order(2, 1, "a").subarray(0, 6)]));
  await settle();
  expect(fatal.map((f) => [f.code, f.at])).toEqual([["decode.failed", `${STREAM.topic}/3@3`]]);
});

test("a schema that cannot share the table costs its own records, which say the difference", async () => {
  const s = stage();
  s.take(0, "k", batch(0, [order(1, 1, "a")]));
  await settle();
  s.take(0, "k", batch(1, [Uint8Array.of(0, 0, 0, 0, 3, 2, 97), order(1, 2, "b")]));
  await settle();
  expect(missed).toEqual([]);
  expect(given[1]?.rows).toEqual(['id=2 name="b"']);
  expect(given[1]?.rejects[0]).toContain('code="decode.incompatible"');
  expect(given[1]?.rejects[0]).toContain("id is int32 in the table and string in the schema");
});

test("a reader's schema gives the table; a writer's that does not go into it costs its own records", async () => {
  reader = [
    { name: "title", type: "string", aliases: ["name"] },
    { name: "id", type: "double" },
    { name: "state", type: "string", default: "new" },
  ];
  const s = stage();
  const spoiled = Uint8Array.from([0, 0, 0, 0, 3, 2, 120]);
  s.take(0, "k", batch(0, [order(1, 1, "a"), order(2, 2, "b", 14), spoiled, order(1, 3, "c")]));
  await settle();
  expect(fits).toEqual(["title,id,state"]);
  expect(given[0]?.rows).toEqual([
    'title="a" id=1 state="new"',
    'title="c" id=3 state="new"',
    'title="b" id=2 state="new"',
  ]);
  expect(given[0]?.rejects).toEqual([
    expect.stringContaining(
      `code="decode.schema" path="id" message="the writer's string does not go into the reader's double"`,
    ),
  ]);
  expect(given[0]?.rejects[0]).toContain('_twg_schema_id="3"');
});

test("the stage takes over what the tables have besides, and writes by their types", async () => {
  const int64 = { id: "int", bits: 64, signed: true } as const;
  const extra: ColumnField = { name: "old", type: { id: "utf8" }, nullable: true };
  sinks = (fields) => ({
    fields: [extra, ...fields.map((f) => (f.name === "id" ? { ...f, type: int64 } : f))],
  });
  const s = stage();
  s.take(0, "k", batch(0, [order(1, 1, "a")]));
  await settle();
  const { fields, columns } = given[0]!.batch.table!;
  expect(fields.map((f) => f.name)).toEqual(["old", "id", "name"]);
  expect(columns[1]!.type).toEqual(int64);
  expect(given[0]!.rows).toEqual(['id=1 name="a"']);
});

test("a schema that the tables refuse costs its own records, in this batch and in later ones, and is asked about once", async () => {
  sinks = (fields) =>
    fields.some((f) => f.name === "qty") ? { differences: ["qty is text elsewhere"] } : { fields };
  const s = stage();
  s.take(0, "k", batch(0, [order(2, 1, "a", 14)]));
  await settle();
  s.take(0, "k", batch(1, [order(1, 2, "b"), order(2, 3, "c", 14)]));
  await settle();
  s.take(0, "k", batch(3, [order(2, 4, "d", 14)]));
  expect(given.map((g) => g.rows)).toEqual([[], ['id=2 name="b"'], []]);
  for (const g of given) expect(g.rejects.at(-1)).toContain("qty is text elsewhere");
  expect(fits).toEqual(["id,name,qty", " again", "id,name"]);
});

test("what was not known of a table is asked for again before the next rows", async () => {
  const s = stage();
  s.take(0, "k", batch(0, [order(1, 1, "a")]));
  await settle();
  s.refit();
  s.take(0, "k", batch(1, [order(1, 2, "b")]));
  expect(given.length).toBe(1);
  await settle();
  expect([fits, given.length]).toEqual([["id,name", "id,name again"], 2]);
});

test("structs grow inside, whole numbers become wider; what was narrower is written as the table has it", async () => {
  const at = (...more: unknown[]) => ({
    name: "at",
    type: { type: "record", name: "At", fields: [{ name: "x", type: "int" }, ...more] },
  });
  SCHEMAS[6] = [ID, at()];
  SCHEMAS[7] = [{ name: "id", type: "long" }, at({ name: "y", type: "string" })];
  const s = stage();
  for (const [first, value] of [
    Uint8Array.of(0, 0, 0, 0, 6, 2, 4),
    Uint8Array.of(0, 0, 0, 0, 7, 0x80, 0x80, 0x80, 0x80, 0x20, 6, 2, 113),
    Uint8Array.of(0, 0, 0, 0, 6, 2, 4),
  ].entries()) {
    s.take(0, "k", batch(first, [value]));
    await settle();
  }
  expect(given.map((g) => g.rows[0])).toEqual([
    'id=1 at={"x":2}',
    'id=4294967296 at={"x":3,"y":"q"}',
    'id=1 at={"x":2,"y":null}',
  ]);
  expect(given[2]!.batch.table!.fields[0]!.type).toMatchObject({ bits: 64 });
  expect(fits.length).toBe(2);
});

/** Records with keys of their own. */
const keyed = (
  first: number,
  records: readonly (readonly [key: Uint8Array | null, value: Uint8Array | null])[],
) => batchOf(records.map(([key, value], i) => row(first + i, { key, value })));

test("keys that are text are a column before those of the values, null where there is none", async () => {
  keys = "text";
  const s = stage();
  const all = [
    [bytes("a"), order(1, 1, "x")],
    [null, order(2, 2, "y", 14)],
    [bytes(""), order(1, 3, "z")],
    [bytes("gone"), null],
    [bytes("é"), order(1, 4, "w")],
  ] as const;
  for (const first of [0, 5]) {
    s.take(0, "k", keyed(first, all));
    await settle();
  }
  expect(fits).toEqual(["key_value", "key_value,id,name", "key_value,id,name,qty"]);
  expect(given.map((g) => [g.rows, g.rejects])).toEqual([
    [
      [
        'key_value="a" id=1 name="x"',
        'key_value="" id=3 name="z"',
        'key_value="é" id=4 name="w"',
        'id=2 name="y" qty=7',
      ],
      [],
    ],
    [expect.anything(), []],
  ]);
  expect(given[1]?.rows).toEqual(given[0]!.rows);
});

test("a key that cannot be decoded refuses its record and says that it is the key; a value's fault goes before", async () => {
  keys = "confluent";
  faults.set(9, new Failure("registry.unknown_schema", "none"));
  const s = stage();
  const key = (n: number, name = "k") => order(1, n, name);
  s.take(
    0,
    "k",
    keyed(0, [
      [key(1), order(2, 1, "a", 2)],
      [key(2).subarray(0, 6), order(2, 2, "b", 4)],
      [bytes("x"), order(2, 3, "c", 6)],
      [bytes("x"), null],
      [bytes("x"), order(2, 4, "d", 8, 0)],
      [key(5), order(2, 5, "e", 10)],
      [order(3, 1, ""), order(2, 6, "f", 12)],
      [order(9, 1, ""), order(1, 7, "g")],
    ]),
  );
  await settle();
  expect(given[0]?.rows).toEqual([
    'key_id=1 key_name="k" id=1 name="a" qty=1',
    'key_id=5 key_name="k" id=5 name="e" qty=5',
  ]);
  const told = given[0]!.rejects.map((r) =>
    /code="([^"]*)" path="([^"]*)" message="(.{0,12}).*source_offset=(\d)/.exec(r)?.slice(1),
  );
  expect(told).toEqual([
    ["decode.truncated", "key.name", "key: the pay", "1"],
    ["decode.framing", "key", "key: the key", "2"],
    ["decode.trailing", "", "1 bytes foll", "4"],
    ["decode.incompatible", "key", "key: the sch", "6"],
    ["decode.schema", "key", expect.stringContaining("key: none"), "7"],
  ]);
});

test("a column of the value that the key has already is refused by name", async () => {
  SCHEMAS[8] = [{ name: "key_id", type: "int" }];
  keys = "confluent";
  const s = stage();
  s.take(0, "k", keyed(0, [[order(1, 1, "k"), Uint8Array.of(0, 0, 0, 0, 8, 2)]]));
  await settle();
  expect([given[0]?.rows, given[0]?.rejects]).toEqual([
    [],
    [expect.stringContaining("key_id is a column of the key already")],
  ]);
});

test("a registry that is away is told and tried again; what waits then is decoded in order", async () => {
  faults.set(1, new Failure("registry.unreachable", "away", { retry: true }));
  const s = stage();
  s.take(0, "k", batch(0, [order(1, 1, "a")]));
  s.take(0, "k", batch(1, [order(1, 2, "b")]));
  await settle(2_500);
  expect([given.length, troubles.length > 1, troubles[0]]).toEqual([0, true, "registry.unreachable"]);
  faults.clear();
  const settled = s.settled();
  await settle(1_500);
  await settled;
  expect(given.map((g) => g.rows)).toEqual([['id=1 name="a"'], ['id=2 name="b"']]);
  expect(troubles.at(-1)).toBe(null);
});

test("what waits is bounded: beyond it everything that waits is missed, and what comes later is not", async () => {
  faults.set(1, new Failure("registry.unreachable", "away", { retry: true }));
  const s = stage("none", 300);
  for (const first of [0, 1, 2, 3, 4, 5]) s.take(0, "k", batch(first, [order(1, first, "a")]));
  expect(missed[0]).toEqual([0n, 1n, "sink.behind"]);
  const before = missed.length;
  faults.clear();
  await settle(2_500);
  expect(missed.length).toBe(before);
  expect(given.length + missed.length).toBe(6);
});

test("a stop waits for what is looked up, and not for ever; a reset forgets it", async () => {
  faults.set(1, new Failure("registry.unreachable", "away", { retry: true }));
  const s = stage();
  s.take(0, "k", batch(0, [order(1, 1, "a")]));
  let over = false;
  void s.settled().then(() => {
    over = true;
  });
  await settle(4_000);
  expect(over).toBe(false);
  await settle(2_000);
  expect(over).toBe(true);
  s.reset();
  faults.clear();
  await settle(5_000);
  expect(given).toEqual([]);
});

test("all metadata columns say where a row came from", async () => {
  const s = stage("all");
  s.take(
    0,
    "k",
    batchOf([
      row(5, { value: order(1, 1, "a"), headers: [[bytes("h"), null]], leaderEpoch: 7, producerId: 3n }),
    ]),
  );
  await settle();
  for (const part of [
    '_twg_source_transport="kafka"',
    "_twg_source_leader_epoch=7",
    "_twg_source_producer_id=3",
    '_twg_source_timestamp_type="CreateTime"',
    "_twg_record_id=",
    '_twg_pipeline="p"',
  ])
    expect(given[0]?.rows[0]).toContain(part);
});

test("a group says of its columns what all of its batches have, and no more", async () => {
  const s = stage("locator");
  const groups: TableBatch[] = [];
  const sink = {
    ...{ open: () => {}, reject: () => {}, held: 0, size: 0 },
    write: (rows: TableBatch) => void groups.push({ ...rows }),
    seal: async () => ({ targets: [], covered: true, rows: 0, bytes: 0 }),
    ...{ flush: () => Promise.resolve(), abort: () => Promise.resolve() },
  } satisfies TableSink;
  const constants = () =>
    groups
      .at(-1)!
      .columns.map((c) => (c.constant === undefined ? null : new TextDecoder().decode(c.constant)));
  for (const first of [0, 1]) {
    s.take(0, "k", batch(first, [order(1, 1, "a")]));
    await settle();
  }
  const { fields } = given[0]!.batch.table!;
  const w = new TableBranchWriter(
    { fields, groupBytes: 1_000, rowsOf: (b) => b.table, originsOf: () => NOWHERE, line: () => bytes("") },
    sink,
  );
  for (const g of given) w.write(g.batch);
  w.complete();
  expect(constants()).toEqual([null, null, "orders", null, null, "1"]);
  // Now of two schemas, in two batches and in one.
  for (const values of [
    [order(1, 1, "a")],
    [order(2, 2, "b", 14)],
    [order(1, 1, "a"), order(2, 2, "b", 14)],
  ]) {
    s.take(0, "k", batch(2, values));
    await settle();
  }
  const wide = given.at(-1)!.batch.table!;
  const of = (n: number) => given[n]!.batch;
  const v = new TableBranchWriter(
    {
      fields: wide.fields,
      groupBytes: 1_000,
      rowsOf: (b) => b.table,
      originsOf: () => NOWHERE,
      line: () => bytes(""),
    },
    sink,
  );
  v.write(of(3));
  v.write(of(4));
  v.complete();
  expect(constants()).toEqual([null, null, null, "orders", null, null, null]);
  const ids = texts(groups.at(-1)!).map((t) => t.split(" ").at(-1));
  expect(ids).toEqual([2, 1, 2].map((id) => `_twg_schema_id="${id}"`));
});

/** Rows that are gathered have none. */
const NOWHERE = { stream: "", offsets: new Int32Array(0) };

test("small batches are gathered to groups of rows", async () => {
  const s = stage();
  s.take(0, "k", batch(0, [order(1, 1, "a")]));
  await settle();
  s.take(0, "k", batch(1, [order(1, 2, "b")]));
  const groups: string[][] = [];
  const sink: TableSink = {
    open: () => {},
    write: (rows, refuse) => {
      groups.push(texts(rows));
      refuse({ row: 0, code: "value.nul", column: "name", reason: "no" });
    },
    reject: (line) => void groups.push([new TextDecoder().decode(line)]),
    flush: () => Promise.resolve(),
    held: 0,
    size: 0,
    seal: async () => ({ targets: [], covered: true, rows: 2, bytes: 0 }),
    abort: () => Promise.resolve(),
  };
  const fields = given[0]!.batch.table!.fields;
  const w = new TableBranchWriter(
    {
      fields,
      groupBytes: 1_000,
      rowsOf: (b) => b.table,
      originsOf: () => NOWHERE,
      line: () => bytes("line"),
    },
    sink,
  );
  w.open("s");
  s.take(0, "k", batch(2, [order(1, 3, "c")]));
  expect(w.write(given[2]!.batch)).toBe(1);
  expect([groups.length, w.held > 0, w.largest]).toEqual([0, true, w.held]);
  await w.seal([], []);
  expect(groups).toEqual([['id=3 name="c"'], ["line"]]);
  await w.abort();
  expect(w.held).toBe(0);
});

test("positions without rows that come first are given to sinks whose tables fit", async () => {
  const s = stage();
  const batch = batchOf([row(5, { value: bytes("") })]);
  s.take(0, "s" as never, { ...batch, rows: 0 });
  expect([given.length, fits]).toEqual([0, [" again"]]);
  await s.settled();
  expect([given.length, fits, fatal]).toEqual([1, [" again"], []]);
});

test("schemas that nobody knows are asked for together, those of batches that wait as well", async () => {
  for (let id = 20; id < 60; id++) faults.set(id, new Failure("registry.unknown_schema", `no ${id}`));
  let under = 0;
  let most = 0;
  const s = stage("none", 1 << 20, async (ask) => {
    most = Math.max(most, ++under);
    await new Promise<void>((resolve) => void time.clock(null).after(2_000, resolve));
    under--;
    return await ask();
  });
  for (let first = 0; first < 40; first += 10)
    s.take(
      0,
      "k",
      batch(
        first,
        [...Array(10).keys()].map((i) => order(20 + first + i, 1, "a")),
      ),
    );
  s.take(0, "k", batch(40, [order(1, 1, "a")]));
  await settle(5_000);
  expect([given.length, given[4]?.rows, missed]).toEqual([5, ['id=1 name="a"'], []]);
  expect([asked.length, new Set(asked).size, most]).toEqual([41, 41, 31]);
});

test("a schema that comes late is taken up, and nobody waits for it meanwhile", async () => {
  faults.set(1, new Failure("registry.unknown_schema", "none yet"));
  const s = stage();
  s.take(0, "k", batch(0, [order(1, 1, "a")]));
  await settle();
  faults.clear();
  s.take(0, "k", batch(1, [order(1, 2, "b")]));
  await settle(10_000);
  s.take(0, "k", batch(2, [order(1, 3, "c")]));
  expect(given.map((g) => g.rejects.length)).toEqual([1, 1, 1]);
  await settle();
  s.take(0, "k", batch(3, [order(1, 4, "d")]));
  await settle();
  expect([given.map((g) => g.rows), asked]).toEqual([
    [[], [], [], ['id=4 name="d"']],
    [1, 1],
  ]);
});
