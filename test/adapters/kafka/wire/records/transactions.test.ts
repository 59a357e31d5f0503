/**
 * Goal: reading committed records leaves out exactly the aborted ones, whatever order the broker lists them in, and
 * the span covers what is left out. Method: small logs around the rules of the Java fetcher and reported faults.
 */
import { expect, test } from "bun:test";
import { fallbackCodecs } from "../../../../../src/adapters/duckdb/native-fallback.ts";
import type { AbortedTransaction } from "../../../../../src/core/records/frame.ts";
import {
  type BatchSpec,
  buildBatch,
  controlBatch,
  sealCrc,
} from "../../../../brokers/kafka/batch-builder.ts";
import { decode } from "./rows.ts";

type Step =
  | {
      readonly data: string;
      readonly pid: bigint;
      readonly plain?: boolean;
      readonly spec?: Partial<BatchSpec>;
    }
  | { readonly end: "commit" | "abort"; readonly pid: bigint };

/** A log with one offset a step. */
function log(steps: readonly Step[]): Uint8Array {
  const parts = steps.map((s, i) => {
    const baseOffset = BigInt(i);
    if ("end" in s) return controlBatch({ type: s.end, producerId: s.pid, baseOffset });
    return buildBatch({
      records: [{ value: s.data }],
      baseOffset,
      producerId: s.pid,
      transactional: s.plain !== true,
      ...s.spec,
    });
  });
  return Uint8Array.from(Buffer.concat(parts));
}

const list = (...pairs: readonly [bigint, bigint][]): AbortedTransaction[] =>
  pairs.map(([producerId, firstOffset]) => ({ producerId, firstOffset }));

function read(steps: readonly Step[], aborted: readonly AbortedTransaction[], more: object = {}) {
  const next = BigInt(steps.length);
  const d = decode(fallbackCodecs, log(steps), { next, aborted, ...more });
  expect(d.failure).toBeNull();
  expect(d.spans.at(-1)![1]).toBe(next);
  return d.rows.map((r) => Buffer.from(r.value!, "hex").toString());
}

const MIXED: readonly Step[] = [
  { data: "a1", pid: 1n },
  { data: "b1", pid: 2n },
  { data: "plain", pid: -1n, plain: true },
  { end: "abort", pid: 1n },
  { data: "a2", pid: 1n },
  { end: "commit", pid: 2n },
  { end: "commit", pid: 1n },
];

test("an aborted transaction is left out, from its first offset to its marker", () => {
  expect(read(MIXED, list([1n, 0n]))).toEqual(["b1", "plain", "a2"]);
});

test("reading uncommitted, everything but control records passes and the list does not matter", () => {
  expect(read(MIXED, list([1n, 0n], [2n, 1n]), { committedOnly: false })).toEqual([
    "a1",
    "b1",
    "plain",
    "a2",
  ]);
});

test("a list that is not in order is read in order", () => {
  const steps: Step[] = [
    { data: "a1", pid: 1n },
    { end: "abort", pid: 1n },
    { data: "b1", pid: 2n },
    { end: "abort", pid: 2n },
    { data: "a2", pid: 1n },
    { end: "abort", pid: 1n },
    { data: "a3", pid: 1n },
    { end: "commit", pid: 1n },
  ];
  expect(read(steps, list([1n, 4n], [2n, 2n], [1n, 0n]))).toEqual(["a3"]);
});

test("commit, abort, commit of one producer: only the middle one goes", () => {
  const steps: Step[] = [
    { data: "1", pid: 7n },
    { end: "commit", pid: 7n },
    { data: "2", pid: 7n },
    { end: "abort", pid: 7n },
    { data: "3", pid: 7n },
    { end: "commit", pid: 7n },
  ];
  expect(read(steps, list([7n, 2n]))).toEqual(["1", "3"]);
});

test("an abort marker of a producer without data here does not take later records away", () => {
  const steps: Step[] = [
    { end: "abort", pid: 7n },
    { data: "kept", pid: 7n },
    { end: "commit", pid: 7n },
  ];
  expect(read(steps, list([7n, 0n]))).toEqual(["kept"]);
});

test("records of the same producer outside of a transaction pass", () => {
  const steps: Step[] = [
    { data: "gone", pid: 7n },
    { data: "stays", pid: 7n, plain: true },
    { end: "abort", pid: 7n },
  ];
  expect(read(steps, list([7n, 0n]))).toEqual(["stays"]);
});

test("a transaction that began before the fetched range is left out too", () => {
  expect(read(MIXED, list([1n, -5n]))).toEqual(["b1", "plain", "a2"]);
});

test("an aborted batch is not decompressed: one that could not be still passes", () => {
  const broken = { codec: "lz4", compressor: () => Uint8Array.of(1, 2, 3) } as const;
  const steps: Step[] = [
    { data: "x", pid: 7n, spec: broken },
    { end: "abort", pid: 7n },
    { data: "y", pid: 7n },
  ];
  expect(read(steps, list([7n, 0n]))).toEqual(["y"]);
});

test("batches before the position still end transactions", () => {
  expect(read(MIXED, list([1n, 0n]), { from: 4n })).toEqual(["a2"]);
});

test("a compressed marker is read", () => {
  const marker = buildBatch({
    records: [{ key: Uint8Array.of(0, 0, 0, 0), value: new Uint8Array(6) }],
    baseOffset: 1n,
    producerId: 7n,
    transactional: true,
    control: true,
    codec: "gzip",
  });
  const bytes = Uint8Array.from(
    Buffer.concat([
      log([{ data: "gone", pid: 7n }]),
      marker,
      buildBatch({ records: [{ value: "stays" }], baseOffset: 2n, producerId: 7n, transactional: true }),
    ]),
  );
  const { rows } = decode(fallbackCodecs, bytes, { next: 3n, aborted: list([7n, 0n]) });
  expect(rows.map((r) => r.offset)).toEqual([2n]);
});

test("a marker that compaction emptied ends nothing", () => {
  // As the Java reader: without its record the batch is a control batch, but no abort.
  const empty = buildBatch({
    records: [],
    baseOffset: 1n,
    producerId: 7n,
    transactional: true,
    control: true,
  });
  const bytes = Uint8Array.from(
    Buffer.concat([
      log([{ data: "gone", pid: 7n }]),
      empty,
      buildBatch({ records: [{ value: "gone too" }], baseOffset: 2n, producerId: 7n, transactional: true }),
    ]),
  );
  expect(decode(fallbackCodecs, bytes, { next: 3n, aborted: list([7n, 0n]) }).rows).toEqual([]);
});

test("a control record whose key is too short is a damaged batch", () => {
  const marker = controlBatch({ type: "abort", producerId: 7n, baseOffset: 0n });
  // Length, attributes, timestamp and offset delta are a byte each; then the length of the key: 2 instead of 4.
  marker[65] = 4;
  sealCrc(marker);
  const { failure } = decode(fallbackCodecs, marker, { next: 1n, aborted: list([7n, 0n]) });
  expect(failure?.code).toBe("kafka.corrupt_batch");
});
