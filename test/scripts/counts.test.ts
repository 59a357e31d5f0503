/** Goal: what CI counts is what ran, and a crash never counts as success. Method: outputs as the tools print them. */
import { expect, test } from "bun:test";
import { bunTestCounts, jsonLines, longRunProblem, secondsByFile } from "../../scripts/test-counts.ts";

const CLOSING =
  " 8 pass\n 1 skip\n 2 todo\n 0 fail\n 12 expect() calls\nRan 11 tests across 2 files. [10.00ms]\n";

test("reads Bun's closing lines; a todo is a skip", () => {
  expect(bunTestCounts(CLOSING, 0)).toEqual({ passed: 8, failed: 0, skipped: 3 });
  expect(bunTestCounts(CLOSING.replace("0 fail", "2 fail"), 1)).toEqual({ passed: 8, failed: 2, skipped: 3 });
});

test("a bad end without a failed test is one failure", () => {
  expect(bunTestCounts(CLOSING, 1).failed).toBe(1);
  expect(bunTestCounts("(pass) a\nSegmentation fault", 139)).toEqual({ passed: 0, failed: 1, skipped: 0 });
  expect(bunTestCounts("", 0).failed).toBe(1); // it ran nothing and said nothing
});

test("a test's own print does not count", () => {
  expect(bunTestCounts(` 99 pass\n${CLOSING}`, 0).passed).toBe(8);
});

test("finds the JSON lines of a long run", () => {
  expect(jsonLines('progress\n{"a":1}\n{broken\n  {"b":2}\n{"c":3}\n')).toEqual([{ a: 1 }, { c: 3 }]);
});

test("a long run fails on its exit code, on silence, on a count that is not 0, and if it did nothing", () => {
  expect(longRunProblem([{ lost: 0, produced: 5 }], 0, ["lost"])).toBeNull();
  expect(longRunProblem([{ lost: 0 }], 1, ["lost"])).toBe("ended with 1");
  expect(longRunProblem([], 0, ["lost"])).toBe("printed no JSON line");
  expect(longRunProblem([{ lost: 0 }, { lost: 2 }], 0, ["lost"])).toStartWith("lost is 2");
  expect(longRunProblem([{}], 0, ["lost"])).toStartWith("lost is undefined");
  expect(longRunProblem([{ lost: 0, produced: 0 }], 0, ["lost"])).toStartWith("nothing was produced");
});

test("adds up the seconds of each file's tests, failed ones too", () => {
  const output =
    "\ntest/e2e/a.test.ts:\n(pass) x > y [1200.50ms]\n(fail) z [800.00ms]\n(pass) quick\n\ntest/real/b.test.ts:\n(pass) w [31000.1ms]\n";
  expect(secondsByFile(`(pass) before any file [9000.00ms]\n${output}`)).toEqual({
    "test/e2e/a.test.ts": 2,
    "test/real/b.test.ts": 31,
  });
});
