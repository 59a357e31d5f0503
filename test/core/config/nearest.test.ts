// Goal: a mistyped name gets the name that was meant, and nothing where no guess is good. Method: known slips.
import { expect, test } from "bun:test";
import { editDistance, nearest } from "../../../src/core/config/nearest.ts";

const KNOWN = ["bootstrap", "topics", "topics_pattern", "group", "start", "tls"];

test.each([
  ["tpics", "topics"],
  ["topic", "topics"],
  ["Topics", "topics"],
  ["topics-pattern", "topics_pattern"],
  ["bootsrtap", "bootstrap"],
  ["strat", "start"],
  ["tsl", "tls"],
] as const)("%s means %s", (typed, meant) => {
  expect(nearest(typed, KNOWN)).toBe(meant);
});

test("nothing near gives nothing", () => {
  expect(nearest("compression", KNOWN)).toBeNull();
  expect(nearest("", KNOWN)).toBeNull();
  expect(nearest("x".repeat(1_000_000), KNOWN)).toBeNull();
});

test("distances of textbook pairs", () => {
  expect(editDistance("kitten", "sitting")).toBe(3);
  expect(editDistance("ab", "ba")).toBe(1);
  expect(editDistance("", "abc")).toBe(3);
  expect(editDistance("same", "same")).toBe(0);
});
