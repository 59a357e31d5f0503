/** Goal: a server's clock is judged by what it cannot explain otherwise. Method: times on both sides, by hand. */
import { expect, test } from "bun:test";
import { Failure } from "../../../src/core/failure/failure.ts";
import { clockSkew, failedBy } from "../../../src/core/ports/doctor.ts";

const NOON = Date.UTC(2026, 0, 1, 12);

test.each([
  // A store that tells whole seconds may have cut off up to 999 ms, and the answer may have taken long.
  [NOON, NOON + 300, NOON + 900, "ok", "the clocks agree"],
  [NOON + 4_000, NOON - 3_000, NOON + 6_000, "ok", "the clocks agree"],
  [NOON + 10_000, NOON - 100, NOON, "warning", "our clock is 10.0 s behind"],
  [NOON, NOON + 61_000, NOON + 61_100, "warning", "our clock is 60.0 s ahead"],
  [NOON + 600_000, NOON - 100, NOON, "failed", "our clock is 600.0 s behind"],
])("a clock that says %d between %d and %d: %s", (theirs, before, after, verdict, seen) => {
  const found = clockSkew("s3.clock", "s3://lake", theirs, before, after, 1000);
  expect({ verdict: found.verdict as string, seen: found.seen }).toEqual({ verdict, seen });
});

test("a failure is told with its code, and its place where that says more", () => {
  const f = new Failure("net.refused", "connection refused", { at: "kafka:9092", hint: "Is it up?" });
  const near = {
    check: "kafka.broker",
    verdict: "failed",
    code: "net.refused",
    advice: "Is it up?",
  } as const;
  expect(failedBy("kafka.broker", "broker 1 kafka:9092", f)).toEqual({
    ...near,
    at: "broker 1 kafka:9092",
    seen: "connection refused",
  });
  expect(failedBy("kafka.broker", "broker 1", f).seen).toBe("connection refused (at kafka:9092)");
});
