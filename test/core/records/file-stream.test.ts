/**
 * Goal: a file counts as complete only if all its rows and its end are covered. Method: coverage as it grows, row by
 * row, with the end before, between and behind them.
 */
import { expect, test } from "bun:test";
import {
  endSpan,
  fileCoverage,
  fileStreamKey,
  isComplete,
  isFileStream,
} from "../../../src/core/records/file-stream.ts";

const key = fileStreamKey({ sha256: "ab", bytes: 7 });
const span = (from: number, next: number) => ({ from: BigInt(from), next: BigInt(next) });
const end = (rows: number) => endSpan(key, rows);
const complete = (...spans: { from: bigint; next: bigint }[]) => isComplete(fileCoverage(spans));

test("the key holds digest and size", () => {
  expect(key).toBe("file/ab/7");
  expect(isFileStream(key)).toBe(true);
  expect(isFileStream("kafka/c/t/0")).toBe(false);
  expect(fileStreamKey({ sha256: "ab", bytes: 8 })).not.toBe(key);
});

test("the end tells how many rows there are, and is no row", () => {
  const { rows, total } = fileCoverage([span(0, 3), end(10)]);
  expect(rows).toEqual([span(0, 3)]);
  expect(total).toBe(10n);
  expect(fileCoverage([span(0, 3)]).total).toBeNull();
  expect(end(10).next - end(10).from).toBe(1n);
});

test("complete is all rows and the end", () => {
  expect(complete(span(0, 10), end(10))).toBe(true);
  expect(complete(end(0))).toBe(true);
  expect(complete()).toBe(false);
  expect(complete(span(0, 10))).toBe(false);
  expect(complete(end(10))).toBe(false);
  expect(complete(span(0, 9), end(10))).toBe(false);
  expect(complete(span(1, 10), end(10))).toBe(false);
  expect(complete(span(0, 4), span(5, 10), end(10))).toBe(false);
});
