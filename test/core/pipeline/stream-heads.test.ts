/**
 * From where on a stream is live ingest's own in a sink beside the primary one. Method: the order of events is written
 * down, and what may be recovery's after each.
 */
import { expect, test } from "bun:test";
import { StreamHeads } from "../../../src/core/pipeline/stream-heads.ts";

const S = "kafka/c/orders/0/0";
const span = (from: number, next: number) => [{ stream: S, from: BigInt(from), next: BigInt(next) }];
const CLAIMED = new Set([S]);

function heads(position: number) {
  const of = new StreamHeads();
  of.begin(S, BigInt(position));
  return { of, head: () => Number(of.take(CLAIMED).get(S)) };
}

test("what the primary sink has moves the head once it is covered here or missed, in whatever order that comes", () => {
  const { of, head } = heads(100);
  expect(head()).toBe(100);
  of.settled(span(100, 120));
  expect(head()).toBe(100);
  of.landed(span(100, 150));
  expect(head()).toBe(120);
  of.settled(span(130, 150));
  expect(head()).toBe(120);
  of.settled(span(120, 130));
  expect(head()).toBe(150);
});

test("what was never landed, as it was lost at the source, holds nothing up", () => {
  const { of, head } = heads(0);
  of.landed(span(0, 10));
  of.settled(span(0, 10));
  of.landed(span(50, 60));
  expect(head()).toBe(50);
  of.settled(span(50, 60));
  expect(head()).toBe(60);
});

test("a set that waits holds the head, though its positions were missed once before", () => {
  const { of, head } = heads(0);
  of.settled(span(0, 10));
  of.open(span(0, 10));
  of.landed(span(0, 10));
  expect(head()).toBe(0);
  of.settled(span(0, 10));
  expect(head()).toBe(10);
});

test("a stream that begins anew counts from there; what landed below is of no concern; one that was not claimed has no head", () => {
  const { of, head } = heads(0);
  of.begin(S, 40n);
  of.landed(span(0, 40));
  expect(head()).toBe(40);
  expect(of.take(new Set()).size).toBe(0);
  of.forget([S]);
  of.landed(span(40, 50));
  expect(of.take(CLAIMED).size).toBe(0);
});
