/**
 * Goal: encoded rows and Values go out as the values of records, in order and byte for byte. Method: payloads that lie
 * together and such that do not are read back from the columns.
 */
import { expect, test } from "bun:test";
import { columnsOfPayloads, columnsOfValues } from "../../../../src/adapters/kafka/producer/columns.ts";
import { jsonEncoder } from "../../../../src/core/codecs/json/encode.ts";
import type { BytesColumn } from "../../../../src/core/records/raw-batch.ts";

const text = new TextDecoder();
const bytes = new TextEncoder().encode("-abcde-");

function cells(column: BytesColumn | null, rows: number): (string | null)[] {
  const { offsets, data, validity, nullCount } = column!;
  return Array.from({ length: rows }, (_, i) =>
    nullCount > 0 && ((validity[i >> 3]! >> (i & 7)) & 1) === 0
      ? null
      : text.decode(data.subarray(offsets[i], offsets[i + 1])),
  );
}

test("payloads one behind the other, apart, in another order, and none", () => {
  const of = (ranges: readonly (readonly [number, number])[]) => {
    const [starts, ends] = [0, 1].map((k) => Int32Array.from(ranges, (r) => r[k]!));
    const payloads = { bytes, starts: starts!, ends: ends!, count: ranges.length };
    const columns = columnsOfPayloads(payloads, payloads);
    expect(cells(columns.key, columns.rows)).toEqual(cells(columns.value, columns.rows));
    return cells(columns.value, columns.rows);
  };
  expect(
    of([
      [1, 3],
      [3, 3],
      [3, 6],
    ]),
  ).toEqual(["ab", "", "cde"]);
  expect(
    of([
      [1, 3],
      [4, 6],
    ]),
  ).toEqual(["ab", "de"]);
  expect(
    of([
      [4, 6],
      [1, 3],
      [3, 5],
    ]),
  ).toEqual(["de", "ab", "cd"]);
  expect(of([])).toEqual([]);
});

test("Values as an encoder writes them, and tombstones", () => {
  const columns = columnsOfValues(
    [{ kind: "record", fields: [{ name: "a", value: { kind: "long", value: 2n ** 60n } }] }, null],
    jsonEncoder(),
  );
  expect(cells(columns.value, 2)).toEqual(['{"a":1152921504606846976}', null]);
});
