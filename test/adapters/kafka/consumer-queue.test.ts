/**
 * Goal: buffers go round, none is given back while a frame of it waits, and room comes back with every frame that was read.
 * Method: bundles by hand; which buffer `take` gives tells where the last ones went.
 */
import { expect, test } from "bun:test";
import { ConsumerQueue } from "../../../src/adapters/kafka/consumer-queue.ts";
import type { Frame } from "../../../src/core/records/frame.ts";

const SIZE = 262_144;

const frame = (stream: number, from: bigint, start: number, end: number): Frame => ({
  stream,
  attempt: 0,
  from,
  next: from + 10n,
  start,
  end,
  aborted: [],
  committedOnly: false,
});

function push(queue: ConsumerQueue, streams: readonly number[], wanted: (f: Frame) => boolean = () => true) {
  const buffer = queue.take(SIZE);
  const frames = streams.map((s, i) => frame(s, 0n, i * 100, i * 100 + 100));
  return { buffer, any: queue.push({ buffer, frames, receivedAt: 1 }, wanted) };
}

test("a buffer is taken again once all of its frames were read", () => {
  const queue = new ConsumerQueue(1_000_000);
  const { buffer } = push(queue, [0, 1]);
  expect(queue.room).toBe(999_800);
  queue.advance(4n);
  expect(queue.first?.frame).toMatchObject({ stream: 0, from: 4n, next: 10n });
  expect(queue.room).toBe(999_800);
  queue.advance(10n);
  expect(queue.first?.frame.stream).toBe(1);
  expect(queue.room).toBe(999_900);
  expect(queue.take(SIZE)).not.toBe(buffer);
  queue.advance(10n);
  expect(queue.first).toBeNull();
  expect(queue.take(SIZE)).toBe(buffer);
});

test("what is forgotten gives its buffer and its room back, also where the rest was read before", () => {
  const queue = new ConsumerQueue(1_000_000);
  const one = push(queue, [0, 1]);
  const two = push(queue, [1, 0]);
  queue.forget([1]);
  expect(queue.room).toBe(999_800);
  queue.advance(10n);
  expect(queue.take(SIZE)).toBe(one.buffer);
  queue.forget([0, 7]);
  expect(queue.first).toBeNull();
  expect(queue.room).toBe(1_000_000);
  expect(queue.take(SIZE)).toBe(two.buffer);
});

test("a bundle of which nothing is wanted gives its buffer back at once", () => {
  const queue = new ConsumerQueue(1_000_000);
  const { buffer, any } = push(queue, [0, 1], () => false);
  expect(any).toBe(false);
  expect(queue.take(SIZE)).toBe(buffer);
  expect(push(queue, [0, 1], (f) => f.stream === 1).any).toBe(true);
  expect(queue.first?.frame.stream).toBe(1);
});

test("who waits for room is woken when there is some", () => {
  const queue = new ConsumerQueue(150);
  let woken = 0;
  queue.whenRoom(() => woken++);
  expect(woken).toBe(1);
  push(queue, [0, 1]);
  expect(queue.room).toBe(0);
  queue.whenRoom(() => woken++);
  expect(woken).toBe(1);
  queue.advance(10n);
  expect([woken, queue.room]).toEqual([2, 50]);
});
