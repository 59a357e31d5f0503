/**
 * Goal: whether a record is a duplicate follows from the records of its stream alone: the same whatever batches they come in,
 * where a process begins, what it passes over, reads again, or could not wait for. Method: random logs with few keys, records
 * that cannot be decoded, tombstones and holes; the judge is given them in random pieces by a simulated clock and reads what
 * it lacks from the log; every answer is compared with the definition, which looks at all records before one.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { partDecoder } from "../../../src/commands/payload-decoder.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { DecodedPart } from "../../../src/core/pipeline/decode-keys.ts";
import {
  type DecodedGroup,
  DecodeReader,
  type ReaderParts,
} from "../../../src/core/pipeline/decode-reader.ts";
import { type DedupEpoch, type DuplicateOptions, Duplicates } from "../../../src/core/pipeline/duplicates.ts";
import { KnownSchemas, type KnownSchemasParts } from "../../../src/core/pipeline/known-schemas.ts";
import type { RawBatch } from "../../../src/core/records/raw-batch.ts";
import { type StreamKey, streamKey } from "../../../src/core/records/stream.ts";
import type { SchemaText } from "../../../src/core/schema/resolver.ts";
import { schemaDocument } from "../../../src/core/types/schema-file.ts";
import type { ColumnField } from "../../../src/core/types/table-batch.ts";
import { SimTime } from "../../sim/clock.ts";
import { batchOf, bytes, row, STREAM } from "../formats/parquet/rows.ts";
import { bareValues } from "./bare-values.ts";

const STREAM_KEY = streamKey(STREAM);
const FIELDS: readonly ColumnField[] = [
  { name: "id", type: { id: "int", bits: 32, signed: true }, nullable: true },
  { name: "note", type: { id: "utf8" }, nullable: true },
];
const SCHEMA: SchemaText = {
  format: "json",
  text: schemaDocument({ fields: FIELDS }),
  references: [],
  id: "shop.yaml",
  subject: null,
  version: null,
  table: { kind: "contract", fields: FIELDS, naturalKey: ["id"], origin: "a contract" },
};
const OPTIONS = { max_payload_bytes: 1 << 20, max_depth: 64, unknown_fields: "reject" } as const;

/** key: null has none, "bad" cannot be decoded, "gone" is a tombstone; hole: no record stands there. */
type Entry = { readonly key: number | null | "bad" | "gone"; readonly time: number } | "hole";
type Log = readonly Entry[];

/** By the definition. */
function isDuplicate(
  log: Log,
  at: number,
  { windowRecords, windowMs }: DuplicateOptions,
  since: number,
): boolean {
  const one = log[at]!;
  if (one === "hole" || typeof one.key !== "number" || at < since) return false;
  for (let q = at - 1; q >= Math.max(0, since, at - windowRecords); q--) {
    const other = log[q]!;
    if (other === "hole" || other.key !== one.key) continue;
    // The nearest one before it counts.
    return windowMs === null || Math.abs(one.time - other.time) <= windowMs;
  }
  return false;
}

function batchAt(log: Log, from: number, next: number): RawBatch {
  const rows = log.slice(from, next).flatMap((e, i) => {
    if (e === "hole") return [];
    const value =
      e.key === "gone" ? null : bytes(e.key === "bad" ? '{"id":' : `{"id":${e.key},"note":"n${i}"}`);
    return [row(from + i, { value, timestamp: BigInt(e.time) })];
  });
  return { ...batchOf(rows), span: { stream: STREAM_KEY, from: BigInt(from), next: BigInt(next) } };
}

const time = new SimTime();
const settle = (ms = 0) => time.runUntil(() => false, time.nowMs + ms);

const parts: Pick<ReaderParts, "framing"> & KnownSchemasParts = {
  clock: time.clock(null),
  framing: bareValues,
  schema: async () => SCHEMA,
  compile: (_, schema, message, part) =>
    partDecoder(OPTIONS, schema, part, { message: null, prefix: "key_" }, message, "_twg_"),
  trouble: () => {},
};
const reader = () =>
  new DecodeReader({
    schemas: new KnownSchemas(parts, () => async () => []),
    framing: parts.framing,
    waiting: () => [],
  });

/** A lane's life: a judge, and the reader of what it is given. */
class Life {
  readonly judge: Duplicates;
  readonly #live = reader();
  readonly #log: Log;
  readonly #since: number;
  readonly #options: DuplicateOptions;
  judged = 0;
  unjudged = 0;

  constructor(
    log: Log,
    options: DuplicateOptions,
    epoch: (from: bigint) => Promise<DedupEpoch>,
    since = 0,
    cut = 5,
  ) {
    this.#log = log;
    this.#since = since;
    this.#options = options;
    this.judge = new Duplicates(options, {
      clock: time.clock(null),
      reader: reader(),
      epoch: (_: StreamKey, from) => epoch(from),
      async *records(_, from, next) {
        for (let at = Number(from); at < Number(next); at += cut) {
          await new Promise<void>((resolve) => void time.clock(null).after(1, resolve));
          yield batchAt(log, at, Math.min(at + cut, Number(next)));
        }
      },
    });
  }

  /** `hurried`: nobody waits for what it lacks. */
  async give(from: number, next: number, hurried: boolean): Promise<Failure | null> {
    const batch = batchAt(this.#log, from, next);
    for (;;) {
      const wait = this.judge.ready(batch);
      if (wait === null) break;
      const waited = wait();
      if (hurried) this.judge.hurry();
      else await settle(10_000);
      await waited;
    }
    const values: DecodedPart<DecodedGroup> = { groups: [], refused: [] };
    for (;;) {
      const missing = this.#live.read(batch, "value", values);
      if (missing === null) break;
      await missing();
    }
    const said = this.judge.judge(batch, values.groups, values.refused);
    if (said instanceof Failure) {
      this.unjudged++;
      return said;
    }
    this.judged++;
    let record = 0;
    for (let at = from; at < next; at++) {
      if (this.#log[at] === "hole") continue;
      const is = said?.[record++] === 1;
      expect([at, is]).toEqual([at, isDuplicate(this.#log, at, this.#options, this.#since)]);
    }
    return null;
  }
}

const SECRET = Int32Array.of(5, 6, 7, 8);
const epochOf = (since: number) => async (): Promise<DedupEpoch> => ({
  since: BigInt(since),
  until: null,
  secret: SECRET,
});

test("property: every answer is the definition's, in whatever pieces, lives and orders", async () => {
  const entry = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({ key: fc.integer({ min: 0, max: 25 }), time: fc.integer({ min: 0, max: 100 }) }),
    },
    { weight: 1, arbitrary: fc.record({ key: fc.constantFrom(null, "bad", "gone"), time: fc.constant(50) }) },
    { weight: 1, arbitrary: fc.constant("hole" as const) },
  );
  const move = fc.record({
    how: fc.constantFrom("on", "on", "on", "on", "back", "over", "new"),
    by: fc.integer({ min: 1, max: 60 }),
    rows: fc.integer({ min: 1, max: 12 }),
    hurried: fc.oneof(
      { weight: 3, arbitrary: fc.constant(false) },
      { weight: 1, arbitrary: fc.constant(true) },
    ),
  });
  let judged = 0;
  let unjudged = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(entry, { minLength: 150, maxLength: 200 }),
      fc.array(move, { minLength: 30, maxLength: 60 }),
      fc.integer({ min: 1, max: 80 }),
      fc.option(fc.integer({ min: 0, max: 60 })),
      fc.constantFrom(0, 0, 40),
      async (log, moves, windowRecords, windowMs, since) => {
        const options = { windowRecords, windowMs, maxBytes: 1 << 30 };
        let life = new Life(log, options, epochOf(since), since);
        let at = 0;
        for (const { how, by, rows, hurried } of moves) {
          if (how === "back") at = Math.max(0, at - by);
          if (how === "over") at = Math.min(log.length - 1, at + by);
          if (how === "new") {
            judged += life.judged;
            unjudged += life.unjudged;
            life = new Life(log, options, epochOf(since), since, by);
          }
          const next = Math.min(at + rows, log.length);
          await life.give(at, next, hurried);
          at = next === log.length ? 0 : next;
        }
        judged += life.judged;
        unjudged += life.unjudged;
      },
    ),
    { numRuns: 15 },
  );
  // Chance decides how often; that both happen is what makes the test one.
  expect([judged > 100, unjudged > 0]).toEqual([true, true]);
}, 60_000);

const KEYS = (n: number): Log => Array.from({ length: n }, (_, i) => ({ key: i % 10, time: i }));
const WINDOW: DuplicateOptions = { windowRecords: 10, windowMs: null, maxBytes: 1 << 20 };

test("what could not wait goes by unjudged, and once the window is known nothing does", async () => {
  const life = new Life(KEYS(100), WINDOW, epochOf(0));
  expect((await life.give(50, 55, true))?.code).toBe("dedup.loading");
  expect((await life.give(55, 60, true))?.code).toBe("dedup.loading");
  await settle(10_000);
  expect(await life.give(60, 70, true)).toBeNull();
});

test("where the book is away it is asked again; what passes by meanwhile is had from raw", async () => {
  let away = true;
  const life = new Life(KEYS(100), WINDOW, async () => {
    if (away) throw new Failure("coverage.unavailable", "no answer", { retry: true });
    return { since: 0n, until: null, secret: SECRET };
  });
  expect((await life.give(50, 60, false))?.code).toBe("coverage.unavailable");
  expect((await life.give(60, 65, true))?.code).toBe("coverage.unavailable");
  away = false;
  await settle(5_000);
  expect(await life.give(65, 75, true)).toBeNull();
});

test("records that were judged by another plan are not judged by this one", async () => {
  const life = new Life(KEYS(100), WINDOW, async () => ({ since: 0n, until: 60n, secret: SECRET }));
  expect((await life.give(50, 61, false))?.code).toBe("dedup.other_plan");
  const hole: Log = KEYS(100).map((e, i) => (i >= 60 && i < 70 ? "hole" : e));
  const beside = new Life(hole, WINDOW, async () => ({ since: 0n, until: 60n, secret: SECRET }));
  expect(await beside.give(50, 65, false)).toBeNull();
});

test("records behind the end of an epoch are judged by the next one, with its reach", async () => {
  const asked: bigint[] = [];
  const life = new Life(
    KEYS(100),
    { ...WINDOW, windowRecords: 50 },
    async (from) => {
      asked.push(from);
      return from < 60n
        ? { since: 0n, until: 60n, secret: SECRET }
        : { since: 60n, until: null, secret: SECRET };
    },
    60,
  );
  const before = new Life(KEYS(100), { ...WINDOW, windowRecords: 50 }, epochOf(0));
  expect(await before.give(50, 60, false)).toBeNull();
  // Judged by the first one, which is another definition than this life's.
  life.judge.ready(batchAt(KEYS(100), 50, 60));
  await settle(10_000);
  life.judge.judge(batchAt(KEYS(100), 50, 60), [], []);
  expect(await life.give(60, 75, false)).toBeNull();
  expect(asked).toEqual([50n, 60n]);
});

test("keys that do not fit the memory: the stream goes by unjudged from then on, and its memory is given back", async () => {
  const log: Log = Array.from({ length: 4000 }, (_, i) => ({ key: i, time: 0 }));
  const life = new Life(log, { windowRecords: 4000, windowMs: null, maxBytes: 60_000 }, epochOf(0), 0, 1000);
  expect(await life.give(0, 500, false)).toBeNull();
  expect((await life.give(500, 3000, false))?.code).toBe("dedup.memory");
  expect((await life.give(3000, 3500, false))?.code).toBe("dedup.memory");
});

test("a record that only the table refuses is not judged, nor what stands beside it", () => {
  const life = new Life(KEYS(10), WINDOW, epochOf(0));
  const batch = batchAt(KEYS(10), 0, 5);
  life.judge.ready(batch);
  const refused = [{ row: 1, code: "decode.incompatible", path: "", message: "id is text", schemaId: "1" }];
  expect((life.judge.judge(batch, [], refused) as Failure).code).toBe("dedup.unfit");
});

test("a stream that is not ours any more is forgotten: what comes is read from raw again", async () => {
  const life = new Life(KEYS(100), WINDOW, epochOf(0));
  expect(await life.give(20, 40, false)).toBeNull();
  life.judge.forget(new Set([STREAM_KEY]));
  expect((await life.give(40, 50, true))?.code).toBe("dedup.loading");
  await settle(10_000);
  life.judge.forget(new Set(["another"]));
  expect(await life.give(50, 60, true)).toBeNull();
  life.judge.forget(null);
  expect((await life.give(60, 70, true))?.code).toBe("dedup.loading");
});

test("streams that begin together are read one after the other, each by itself", async () => {
  const streams = [0, 1, 2].map((partition) => ({ ...STREAM, partition }));
  const logs = streams.map(
    (_, i): Log => Array.from({ length: 20 }, (_, n) => ({ key: 100 * i + (n % 10), time: 0 })),
  );
  const at = (i: number, from: number, next: number): RawBatch => {
    const span = { stream: streamKey(streams[i]!), from: BigInt(from), next: BigInt(next) };
    return { ...batchAt(logs[i]!, from, next), stream: streams[i]!, span };
  };
  let open = 0;
  const judge = new Duplicates(WINDOW, {
    clock: time.clock(null),
    reader: reader(),
    epoch: epochOf(0),
    async *records(stream, from, next) {
      // Memory is what one of them holds, and an engine answers one at a time.
      expect(++open).toBe(1);
      const i = streams.findIndex((s) => streamKey(s) === stream);
      for (let n = Number(from); n < Number(next); n += 5) yield at(i, n, n + 5);
      open--;
    },
  });
  const live = reader();
  const batches = streams.map((_, i) => at(i, 10, 15));
  const waits = batches.map((b) => judge.ready(b)?.());
  await settle(10_000);
  await Promise.all(waits);
  for (const batch of batches) {
    const values: DecodedPart<DecodedGroup> = { groups: [], refused: [] };
    for (
      let wait = live.read(batch, "value", values);
      wait !== null;
      wait = live.read(batch, "value", values)
    )
      await wait();
    const said = judge.judge(batch, values.groups, values.refused);
    expect(said instanceof Failure ? said.code : said?.slice(0, 5)).toEqual(new Uint8Array(5).fill(1));
  }
});

test("where records are passed over and the next ones reach back less far, what is known from before counts no more", async () => {
  const reach = async (from: bigint) => ({ since: from < 30n ? 0n : 25n, until: null, secret: SECRET });
  const life = new Life(KEYS(100), { ...WINDOW, windowRecords: 50 }, reach, 25);
  expect(await life.give(0, 10, false)).toBeNull();
  expect(await life.give(30, 40, false)).toBeNull();
});
