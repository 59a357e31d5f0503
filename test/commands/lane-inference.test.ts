/**
 * Goal: JSON without a schema gets columns from its records: from enough of them or after a while, the same in every lane and
 * after a restart, more when fields come; what does not fit is refused by itself, and nothing waits for ever. Method: the
 * stage of a lane with its real decoder, in simulated time, over learned columns in a shared object in memory.
 */
import { beforeEach, expect, test } from "bun:test";
import { MemoryVersionedStore, type SharedObject, sharedObject } from "../../src/adapters/coverage/memory.ts";
import { inferredSchemas } from "../../src/commands/lane-inference.ts";
import { decoderOptions, payloadDecoder } from "../../src/commands/payload-decoder.ts";
import { decodeSpec } from "../../src/core/config/decode-options.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import { DecodeStage } from "../../src/core/pipeline/decode-stage.ts";
import { PinnedSchemas } from "../../src/core/pipeline/pinned-schemas.ts";
import { FOLDER_TABLE } from "../../src/core/schema/folder-table.ts";
import { parseSchemaDocument } from "../../src/core/types/schema-file.ts";
import type { TableBatch } from "../../src/core/types/table-batch.ts";
import { cellValue } from "../../src/core/types/value-cells.ts";
import { valueJson } from "../../src/core/types/value-json.ts";
import { batchOf, bytes, row } from "../core/formats/parquet/rows.ts";
import { bareValues } from "../core/pipeline/bare-values.ts";
import { SimTime } from "../sim/clock.ts";

let time: SimTime;
let shared: SharedObject;
let rows: string[];
let rejects: string[];
let missed: number;
let troubles: (string | null)[];
let fatal: string[];
let versions: string[];
let asks: number;
let learns: number;
let away: Failure | null;

beforeEach(() => {
  time = new SimTime();
  shared = sharedObject();
  [rows, rejects, troubles, fatal, versions] = [[], [], [], [], []];
  [missed, asks, learns, away] = [0, 0, 0, null];
});

function texts(table: TableBatch | null, skip = /^_twg_/): string[] {
  return Array.from({ length: table?.rows ?? 0 }, (_, r) =>
    table!.fields
      .map((f, c) => [f.name, valueJson(cellValue(table!.columns[c]!, r))] as const)
      .filter(([n, v]) => v !== "null" && !skip.test(n))
      .map(([n, v]) => `${n}=${v}`)
      .join(" "),
  );
}

let processes = 0;
/** The control thread of a process. */
function control(o: ReturnType<typeof options>): PinnedSchemas {
  return new PinnedSchemas({
    store: new MemoryVersionedStore(shared),
    instance: `p${processes++}`,
    maxColumns: o.infer.max_columns,
    plainNames: false,
    grows: o.infer.new_fields === "add",
    learned: (_, version, added) => versions.push(`${version} ${added.join()}`),
  });
}

const options = (infer: object = {}, more: object = {}) =>
  decodeSpec.parse({ format: "json", infer, ...more });

function lane(o = options({ max_records: 3 }), pinned = control(o), holdBytes = 1 << 20): DecodeStage {
  const plan = { message: null };
  const inferred = inferredSchemas(o, "_twg_", async (topic, _, inferred) => {
    asks++;
    if (away !== null) throw away;
    if (inferred === null) return await pinned.find(topic);
    return await pinned.learn(topic, parseSchemaDocument(inferred, topic).fields);
  });
  return new DecodeStage(
    { pipeline: "p", prefix: "_twg_", metadata: "none", holdBytes, can: FOLDER_TABLE },
    {
      clock: time.clock(null),
      framing: bareValues,
      failsOnError: () => o.on_error === "fail",
      schema: inferred.schema,
      learn: (topic, now, take) => {
        learns++;
        return inferred.learn(topic, now, take);
      },
      compile: (_, schema, message) => payloadDecoder(schema, plan, message, decoderOptions(o, "_twg_")),
      fit: async (fields) => ({ fields }),
      give: (_s, _k, b) => {
        rows.push(...texts(b.table));
        rejects.push(...texts(b.rejects, /^_twg_|^stage$|^message$/));
      },
      miss: () => void missed++,
      trouble: (f) => void troubles.push(f?.code ?? null),
      undecodable: () => {},
      duplicates: null,
      fatal: (f) => void fatal.push(f.message),
    },
  );
}

const settle = (ms = 0) => time.runUntil(() => false, time.nowMs + ms);
let offset = 0;
const batch = (...values: (string | null)[]) =>
  batchOf(values.map((v) => row(offset++, { value: v === null ? null : bytes(v) })));

test("as soon as there are enough records they are rows; a few wait for more, and not for ever", async () => {
  const s = lane();
  s.take(0, "k", batch('{"a":1}', null, '{"b":"x"}'));
  await settle(1_000);
  expect([rows, versions]).toEqual([[], []]);
  s.take(0, "k", batch('{"a":2.5}'));
  await settle();
  expect(versions).toEqual(["1 a,b"]);
  expect(rows).toEqual(["a=1", 'b="x"', "a=2.5"]);
  s.take(0, "k", batch('{"a":3}'));
  expect(rows.at(-1)).toBe("a=3");

  shared = sharedObject();
  rows = [];
  const slow = lane();
  slow.take(0, "k", batch('{"a":1}'));
  await settle(4_900);
  expect(rows).toEqual([]);
  await settle(200);
  expect(rows).toEqual(["a=1"]);
});

test("bytes are enough as well, and so is a stop, or no room to wait in", async () => {
  const filled = lane(options({ max_bytes: "1KiB" }));
  filled.take(0, "k", batch(JSON.stringify({ a: "x".repeat(2_000) })));
  await settle();
  expect(rows.length).toBe(1);

  shared = sharedObject();
  const stopped = lane();
  stopped.take(0, "k", batch('{"a":1}'));
  await settle(100);
  expect(rows.length).toBe(1);
  const settled = stopped.settled();
  await settle();
  await settled;
  expect(rows.length).toBe(2);

  shared = sharedObject();
  const tight = lane(options(), undefined, 2_000);
  for (let i = 0; i < 12; i++) tight.take(0, "k", batch(JSON.stringify({ a: "x".repeat(100) })));
  await settle();
  expect([rows.length, missed]).toEqual([14, 0]);
});

test("lanes and restarts read by the same columns, in the same order", async () => {
  const o = options({ max_records: 1 });
  const pinned = control(o);
  lane(o, pinned).take(0, "k", batch('{"b":1,"a":"x"}'));
  await settle();
  lane(o, pinned).take(0, "k", batch('{"a":"y","b":2}'));
  await settle();
  lane(o).take(0, "k", batch('{"a":"z"}'));
  await settle();
  expect([rows, versions]).toEqual([['b=1 a="x"', 'b=2 a="y"', 'a="z"'], ["1 b,a"]]);
});

test("two lanes that learn at once come to one schema, each row in it", async () => {
  const o = options({ max_records: 1 });
  const pinned = control(o);
  const [a, b] = [lane(o, pinned), lane(o, pinned)];
  a.take(0, "k", batch('{"x":1,"y":1}'));
  b.take(1, "l", batch('{"y":2,"z":true}'));
  await settle();
  a.take(0, "k", batch('{"z":false}'));
  await settle();
  expect(rows).toEqual(["x=1 y=1", "y=2 z=true", "z=false"]);
  expect([rejects, versions]).toEqual([[], ["1 x,y", "2 z"]]);
});

test("a field that comes later is a column from then on, and no record of it is refused", async () => {
  const s = lane(options({ max_records: 2 }));
  s.take(0, "k", batch('{"a":1}', '{"a":2}'));
  await settle();
  s.take(0, "k", batch('{"a":3}', '{"a":4,"n":1}', '{"a":5,"n":0.5,"m":null}', "{"));
  await settle(5_000);
  s.take(0, "k", batch('{"a":6,"m":[1]}'));
  expect(rows).toEqual(["a=1", "a=2", "a=3", "a=4 n=1", "a=5 n=0.5", 'a=6 m="[1]"']);
  expect(rejects).toEqual(['code="decode.truncated" path=""']);
  expect(versions).toEqual(["1 a", "2 n,m"]);
});

test("what does not fit the columns is refused by itself, with code and path", async () => {
  const s = lane(options({ max_records: 1 }));
  s.take(0, "k", batch('{"a":1,"o":{"x":[1]}}'));
  await settle();
  const bad = [
    '{"a":1.5}',
    '{"a":"x"}',
    '{"o":{"x":[1,{}]}}',
    '{"o":{"y":1}}',
    '{"_twg_x":1}',
    '{"a":1,"a":1}',
    "[]",
  ];
  s.take(0, "k", batch(...bad, '{"a":7}'));
  await settle(20_000);
  expect(rejects).toEqual([
    'code="decode.range" path="a"',
    'code="decode.type" path="a"',
    'code="decode.type" path="o.x[1]"',
    'code="decode.unknown_field" path="o"',
    'code="decode.reserved" path=""',
    'code="decode.duplicate_key" path=""',
    'code="decode.type" path=""',
  ]);
  expect([rows.at(-1), versions.length]).toEqual(["a=7", 1]);
});

test("garbage alone is refused for what it is, and learned from is the first object", async () => {
  const s = lane(options({ max_records: 2 }));
  s.take(0, "k", batch("x", "{}"));
  await settle();
  expect(rejects).toEqual(['code="decode.syntax" path=""', 'code="decode.schema" path=""']);
  s.take(0, "k", batch("y"));
  expect(rejects.length).toBe(3);
  s.take(0, "k", batch('{"a":1}', "{}"));
  await settle(5_000);
  expect([rows, versions, missed]).toEqual([["a=1", ""], ["1 a"], 0]);
});

test("fields that make no column are asked for once, and refuse their records", async () => {
  const s = lane(options({ max_records: 2, max_columns: 2 }));
  s.take(0, "k", batch('{"a":1}'));
  await settle(6_000);
  const long = "x".repeat(64);
  const before = asks;
  for (let i = 0; i < 3; i++) {
    s.take(0, "k", batch(`{"a":${i},"${long}":1}`));
    await settle(6_000);
  }
  expect([rejects.length, asks, learns]).toEqual([3, before, 1]);
  s.take(0, "k", batch('{"b":1,"c":2}', '{"b":2}', '{"a":9}'));
  await settle(6_000);
  expect([rows.slice(1), rejects.length, versions]).toEqual([["b=2", "a=9"], 4, ["1 a", "2 b"]]);
  // The schema is full: nothing is asked for any more.
  const asked = asks;
  for (let i = 0; i < 20; i++) s.take(0, "k", batch(`{"new${i}":1}`));
  expect([asks, rejects.length]).toEqual([asked, 24]);
});

test('new_fields = "reject" refuses what was not in the sample', async () => {
  const s = lane(options({ max_records: 1, new_fields: "reject" }));
  s.take(0, "k", batch('{"a":1}'));
  await settle();
  s.take(0, "k", batch('{"a":1,"b":2}', '{"a":2}'));
  expect([rows, rejects]).toEqual([["a=1", "a=2"], ['code="decode.unknown_field" path=""']]);
});

test('on_error = "fail" learns fields first, and stops at what no column helps', async () => {
  const s = lane(options({ max_records: 1 }, { on_error: "fail" }));
  s.take(0, "k", batch('{"a":1}'));
  await settle();
  s.take(0, "k", batch('{"a":1,"b":2}'));
  await settle(6_000);
  expect([rows.length, fatal]).toEqual([2, []]);
  expect(() => s.take(0, "k", batch('{"a":"x"}'))).toThrow("decode.type at a");
});

test("a store that is away delays the rows, and nothing is refused or missed", async () => {
  away = new Failure("coverage.unavailable", "away", { retry: true });
  const s = lane(options({ max_records: 1 }));
  s.take(0, "k", batch('{"a":1}'));
  await settle(3_500);
  expect([rows, troubles.includes("coverage.unavailable")]).toEqual([[], true]);
  away = null;
  await settle(1_500);
  expect([rows, rejects, missed, troubles.at(-1)]).toEqual([["a=1"], [], 0, null]);
});

test("a reset in the midst of it forgets the records and learns anew from those that come", async () => {
  const s = lane();
  s.take(0, "k", batch('{"a":1}'));
  await settle(1_000);
  s.reset();
  await settle();
  s.take(0, "k", batch('{"b":1}', '{"b":2}', '{"b":3}'));
  await settle(6_000);
  expect([rows, versions]).toEqual([["b=1", "b=2", "b=3"], ["1 b"]]);
});

test("a record that is refused teaches nothing; another with the same field does, before it or behind it", async () => {
  const s = lane();
  s.take(0, "k", batch('{"a":1}'));
  await settle(6_000);
  s.take(0, "k", batch('{"a":"x","b":1}', '{"a":1.5,"c":1}'));
  await settle(6_000);
  expect([rows, versions, rejects.length]).toEqual([["a=1"], ["1 a"], 2]);
  s.take(0, "k", batch('{"a":"x","b":"text"}', '{"a":2,"b":3,"d":true}', '{"a":4,"c":"x","c":"y"}'));
  await settle(6_000);
  expect([rows.slice(1), versions.slice(1)]).toEqual([["a=2 b=3 d=true"], ["2 b,d"]]);
  s.take(0, "k", batch('{"b":"text","e":1}', '{"e":"text"}'));
  await settle(6_000);
  expect([rows.slice(2), versions.slice(2), rejects.length]).toEqual([['e="text"'], ["3 e"], 5]);
});

test("nor does it of the first sample, and what others say of a column is theirs", async () => {
  const s = lane(options({ max_records: 4 }));
  s.take(
    0,
    "k",
    batch('{"a":1}', '{"a":2,"a":3,"z":1}', '{"a":1.5,"_twg_x":1,"y":1}', '{"a":"\\ud800","x":1}'),
  );
  await settle();
  expect([rows, versions, rejects.length]).toEqual([["a=1"], ["1 a"], 3]);
  // Of two lanes that found a column of two types the second has its records refused, and adds none of theirs.
  shared = sharedObject();
  const pinned = control(options());
  const [one, two] = [lane(options({ max_records: 1 }), pinned), lane(options({ max_records: 1 }), pinned)];
  versions = [];
  rows = [];
  one.take(0, "k", batch('{"a":1}'));
  two.take(0, "k", batch('{"a":"x","b":1}'));
  await settle(6_000);
  two.take(0, "k", batch('{"a":2,"b":2}'));
  await settle(6_000);
  expect([versions.at(-1), rows.at(-1)]).toEqual(["2 b", "a=2 b=2"]);
  expect(versions[0]).toBe("1 a");
});
