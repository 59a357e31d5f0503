/**
 * Goal: records that are picked out of a batch are what they were, with their runs, whatever becomes of the batch's arrays.
 * Method: batches of plain rows; the picked batch must equal one that was made of these rows alone.
 */
import { expect, test } from "bun:test";
import { pickRows } from "../../../src/core/records/pick-rows.ts";
import type { BytesColumn, RawBatch } from "../../../src/core/records/raw-batch.ts";
import { batchOf, bytes, row } from "../formats/parquet/rows.ts";

const ROWS = [
  row(3, { key: bytes("a"), value: bytes("one"), producerId: 7n, leaderEpoch: 1 }),
  row(5, {
    value: null,
    headers: [
      [bytes("h"), null],
      [bytes("h"), bytes("")],
    ],
    producerId: 7n,
    leaderEpoch: 1,
  }),
  row(2n ** 40n, { key: bytes(""), value: bytes(""), timestamp: -1n, timestampType: 2 }),
  row(2n ** 40n + 1n, { value: bytes("four"), headers: [[bytes("k"), bytes("v")]], transactional: true }),
  row(2n ** 62n, { key: bytes("e"), value: bytes("5") }),
];

function cells({ offsets, data, validity, nullCount }: BytesColumn, n: number): (string | null)[] {
  return Array.from({ length: n }, (_, i) =>
    nullCount > 0 && ((validity[i >> 3]! >> (i & 7)) & 1) === 0
      ? null
      : Buffer.from(data.subarray(offsets[i], offsets[i + 1])).toString(),
  );
}

function plain(b: RawBatch) {
  const runOf = (i: number) => b.runs.end.findIndex((e) => i < e);
  return Array.from({ length: b.rows }, (_, i) => ({
    offset: b.offsets.slice(2 * i, 2 * i + 2),
    timestamp: b.timestamps.slice(2 * i, 2 * i + 2),
    key: cells(b.key, b.rows)[i],
    value: cells(b.value, b.rows)[i],
    headers: [b.headers.keys, b.headers.values].map((c) =>
      cells(c, b.headers.entries).slice(b.headers.offsets[i], b.headers.offsets[i + 1]),
    ),
    producerId: b.runs.producerId[runOf(i)],
    leaderEpoch: b.runs.leaderEpoch[runOf(i)],
    timestampType: b.runs.timestampType[runOf(i)],
    transactional: b.runs.transactional[runOf(i)],
  }));
}

for (const rows of [[], [0], [1, 3], [2, 3, 4], [0, 1, 2, 3, 4], [0, 4]]) {
  test(`rows ${rows.join(", ")}`, () => {
    const batch = batchOf(ROWS);
    const picked = pickRows(batch, Int32Array.from(rows));
    for (const a of [batch.key, batch.value, batch.headers.keys, batch.headers.values]) {
      a.data.fill(0);
      a.offsets.fill(0);
    }
    batch.offsets.fill(0);
    const wanted = plain(batchOf(ROWS)).filter((_, i) => rows.includes(i));
    expect(plain(picked)).toEqual(wanted);
  });
}

test("values may be others", () => {
  const value = batchOf([row(0, { value: bytes("x") })]).value;
  expect(plain(pickRows(batchOf(ROWS), Int32Array.of(3), value)).map((r) => r.value)).toEqual(["x"]);
});
