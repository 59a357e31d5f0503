/**
 * Goal: a page of a raw table that is not what it should be is refused, never read as other records, and one that is read in the
 * middle goes on there. Method: pages by hand, spoiled at each byte. That pages of a server are the records that landed is shown in
 * test/real/postgres/raw-table.test.ts.
 */
import { expect, test } from "bun:test";
import { millisecondsAt, putMilliseconds } from "../../../src/adapters/postgres/copy/timestamps.ts";
import { PAGE_COLUMNS, PageRows } from "../../../src/adapters/postgres/replay/page-rows.ts";
import { ByteWriter } from "../../../src/core/bytes/writer.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import { int64At } from "../../../src/core/records/int64-at.ts";
import { fillRecordIds, recordIdBase } from "../../../src/core/records/record-id.ts";
import { bytes, STREAM } from "../../core/formats/parquet/rows.ts";

const HEAD = [0x50, 0x47, 0x43, 0x4f, 0x50, 0x59, 0x0a, 0xff, 0x0d, 0x0a, 0x00, 0, 0, 0, 0, 0, 0, 0, 0];

function stamp(ms: bigint): Uint8Array {
  const out = new Uint8Array(8);
  putMilliseconds(new DataView(out.buffer), 0, Number(ms >> 32n), Number(BigInt.asIntN(32, ms)));
  return out;
}

function idOf(offset: bigint): Uint8Array {
  const id = new Int32Array(4);
  const halves = Int32Array.of(Number(BigInt.asIntN(32, offset)), Number(offset >> 32n));
  fillRecordIds(recordIdBase(STREAM), STREAM.partition, halves, 0, 1, id, 0);
  return new Uint8Array(id.buffer);
}

const int64 = (n: bigint) => new ByteWriter().i64(n).copy();
const int32 = (n: number) => new ByteWriter().i32(n).copy();

function headers(pairs: readonly (readonly [string, string | null])[]): Uint8Array {
  const w = new ByteWriter();
  if (pairs.length === 0) return w.i32(0).i32(0).i32(17).copy();
  w.i32(2).i32(1).i32(17).i32(pairs.length).i32(1).i32(2).i32(1);
  for (const [k, v] of pairs) {
    w.sizedBytes(bytes(k));
    w.sizedBytes(v === null ? null : bytes(v));
  }
  return w.copy();
}

type Fields = Partial<Record<(typeof PAGE_COLUMNS)[number], Uint8Array | null>>;

function page(rows: readonly (readonly [bigint, Fields?])[]): Uint8Array {
  const w = new ByteWriter();
  w.raw(Uint8Array.from(HEAD));
  for (const [offset, other = {}] of rows) {
    const fields: Fields = {
      source_offset: int64(offset),
      source_timestamp: stamp(1_700_000_000_000n),
      record_id: idOf(offset),
      ingest_ts: stamp(1_700_000_000_500n),
      source_timestamp_type: bytes("CreateTime"),
      source_leader_epoch: int32(7),
      source_transactional: Uint8Array.of(0),
      source_value: bytes(`v${offset}`),
      source_headers: headers([]),
      ...other,
    };
    w.i16(PAGE_COLUMNS.length);
    for (const name of PAGE_COLUMNS) w.sizedBytes(fields[name] ?? null);
  }
  return w.i16(-1).copy();
}

function read(body: Uint8Array, from = 0n, next = 1000n, limits = { maxRows: 100, maxBytes: 10_000 }) {
  const rows = new PageRows(limits);
  rows.open(body);
  const found: string[] = [];
  const spans: string[] = [];
  rows.decode(STREAM, { from, next }, (b) => {
    spans.push(`${b.span.from}-${b.span.next}`);
    for (let i = 0; i < b.rows; i++) {
      const value = b.value.data.subarray(b.value.offsets[i], b.value.offsets[i + 1]);
      found.push(`${int64At(b.offsets, i)}:${new TextDecoder().decode(value)}`);
    }
  });
  return { found, spans };
}

const code = (work: () => unknown): string => {
  try {
    work();
    return "none";
  } catch (e) {
    return e instanceof Failure ? e.code : String(e);
  }
};

test("rows come in batches that follow one another, and go on where they were left", () => {
  const body = page([[1n], [3n], [4n, { ingest_ts: stamp(2n) }], [9n, { ingest_ts: stamp(2n) }], [20n]]);
  expect(read(body)).toEqual({
    found: ["1:v1", "3:v3", "4:v4", "9:v9", "20:v20"],
    spans: ["0-4", "4-10", "10-21", "21-1000"],
  });
  expect(read(body, 2n, 9n)).toEqual({ found: ["3:v3", "4:v4"], spans: ["2-4", "4-5", "5-9"] });
  expect(read(body, 0n, 10n, { maxRows: 1, maxBytes: 1 }).spans).toEqual(["0-2", "2-4", "4-5", "5-10"]);
  // What is emitted is taken, though its taker has enough; an earlier position begins anew.
  const rows = new PageRows({ maxRows: 2, maxBytes: 100 });
  rows.open(body);
  const spans: string[] = [];
  const emit = (b: { readonly span: { readonly from: bigint; readonly next: bigint } }) => {
    spans.push(`${b.span.from}-${b.span.next}`);
    throw new Error("enough");
  };
  for (const from of [0n, 4n, 0n])
    expect(() => rows.decode(STREAM, { from, next: 21n }, emit)).toThrow("enough");
  expect(spans).toEqual(["0-4", "4-10", "0-4"]);
});

test("what is null, empty, or beyond what a timestamp can be is as it was", () => {
  const beyond = {
    source_timestamp: stamp(9_223_372_036_854_775_807n),
    source_timestamp_beyond: int64(9_223_372_036_854_775_807n),
  };
  const rows = new PageRows({ maxRows: 10, maxBytes: 1000 });
  rows.open(
    page([
      [
        1n,
        {
          source_value: null,
          source_key: bytes(""),
          source_headers: headers([
            ["a", null],
            ["", ""],
            ["a", "x"],
          ]),
        },
      ],
      [
        2n,
        {
          ...beyond,
          source_producer_id: int64(5n),
          source_producer_epoch: int32(2),
          source_base_sequence: int32(9),
        },
      ],
      [
        3n,
        {
          source_timestamp: null,
          source_timestamp_type: null,
          source_transactional: null,
          source_leader_epoch: null,
        },
      ],
    ]),
  );
  const seen: unknown[] = [];
  rows.decode(STREAM, { from: 0n, next: 4n }, ({ key, value, headers: h, runs, timestamps }) => {
    seen.push([key.nullCount, value.nullCount, [...h.offsets], h.values.nullCount, [...h.keys.offsets]]);
    seen.push(
      [...runs.end].map((end, i) => [end, runs.leaderEpoch[i], runs.producerId[i], runs.timestampType[i]]),
    );
    seen.push([0, 1, 2].map((i) => int64At(timestamps, i)));
  });
  expect(seen).toEqual([
    [2, 1, [0, 3, 3, 3], 1, [0, 1, 1, 2]],
    [
      [1, 7, -1n, 1],
      [2, 7, 5n, 1],
      [3, -1, -1n, 0],
    ],
    [1_700_000_000_000n, 9_223_372_036_854_775_807n, -1n],
  ]);
});

test("another record, an order that is none, and other fields are refused", () => {
  expect(code(() => read(page([[1n, { record_id: idOf(2n) }]])))).toBe("recovery.not_raw");
  expect(code(() => read(page([[2n], [2n]])))).toBe("recovery.raw_order");
  expect(code(() => read(page([[2n], [1n]]), 5n))).toBe("recovery.raw_order");
  for (const wrong of [
    { source_offset: null },
    { source_offset: int32(1) },
    { record_id: bytes("short") },
    { source_headers: headers([]).subarray(0, 8) },
    { source_headers: new ByteWriter().i32(1).i32(0).i32(17).i32(2).i32(1).i32(-1).i32(-1).copy() },
  ])
    expect(code(() => read(page([[1n, wrong]])))).toBe("recovery.not_raw");
});

test("a page that is cut or spoiled gives what it held, or is refused", () => {
  const body = page([[1n, { source_headers: headers([["h", "x"]]) }], [3n]]);
  for (let end = 0; end < body.length; end++)
    expect(code(() => read(body.subarray(0, end)))).toBe("recovery.not_raw");
  const heads = [4, 12, HEAD.length, HEAD.length + 2];
  for (const at of heads) {
    const spoiled = body.slice();
    spoiled[at]! ^= 0xc0;
    expect([at, code(() => read(spoiled))]).toEqual([at, at === 12 ? "none" : "recovery.not_raw"]);
  }
});

test("milliseconds of a timestamp are those that were put, to the ends of its range", () => {
  const view = new DataView(new ArrayBuffer(8));
  for (const ms of [
    0n,
    -1n,
    1n,
    999n,
    946_684_800_000n,
    -210_866_803_200_000n,
    9_007_199_254_740_990n,
    1_700_000_000_123n,
  ]) {
    putMilliseconds(view, 0, Number(ms >> 32n), Number(BigInt.asIntN(32, ms)));
    expect(millisecondsAt(view, 0)).toBe(Number(ms));
  }
});
