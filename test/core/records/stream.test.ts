/** Goal: the lives of a topic under one name are told apart, and nothing else is taken for one. Method: pairs of keys. */
import { expect, test } from "bun:test";
import { isEarlierLife, streamKey } from "../../../src/core/records/stream.ts";

const id = { transport: "kafka", cluster: "c", topic: "t", incarnation: 1, partition: 3 } as const;

test.each([
  ["the life before", { incarnation: 0 }, true],
  ["the same", {}, false],
  ["a later one", { incarnation: 2 }, false],
  ["another partition", { incarnation: 0, partition: 4 }, false],
  ["another topic", { incarnation: 0, topic: "u" }, false],
  ["another cluster", { incarnation: 0, cluster: "d" }, false],
])("%s", (_, other, earlier) => {
  expect(isEarlierLife(streamKey({ ...id, ...other }), streamKey(id))).toBe(earlier);
});

test("lives are counted, not compared as text", () => {
  const of = (incarnation: number) => streamKey({ ...id, incarnation });
  expect(isEarlierLife(of(9), of(10))).toBe(true);
});

test("a file's key is no life of a topic", () => {
  expect(isEarlierLife("file/abc", streamKey(id))).toBe(false);
});
