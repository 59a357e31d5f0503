/** Goal: subjects are the names that Confluent's serializers use. Method: the three strategies by their documentation. */
import { expect, test } from "bun:test";
import { SUBJECT_STRATEGIES, subjectOf } from "../../../src/core/schema/subjects.ts";

test("topic, record, topic and record", () => {
  const parts = { topic: "orders", part: "value", record: "acme.Order" } as const;
  expect(SUBJECT_STRATEGIES.map((s) => subjectOf(s, parts))).toEqual([
    "orders-value",
    "acme.Order",
    "orders-acme.Order",
  ]);
  expect(SUBJECT_STRATEGIES.map((s) => subjectOf(s, { ...parts, part: "key", record: null }))).toEqual([
    "orders-key",
    null,
    null,
  ]);
});
