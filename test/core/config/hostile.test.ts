// Goal: whatever bytes a configuration holds, the answer is a checked configuration or coded problems with lines of the file: no exception,
// no hang, no flood. Method: mutations of a good file from a fixed seed, and floods of every construct.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { checkConfig } from "../../../src/core/config/check.ts";
import { describeProblems } from "../../../src/core/config/problem.ts";
import { CODES } from "../../../src/core/failure/codes.ts";
import { GOOD, SAMPLE_ADAPTERS } from "./sample-adapters.ts";

const encoder = new TextEncoder();

function checked(bytes: Uint8Array): number {
  const result = checkConfig(bytes, "x.toml", SAMPLE_ADAPTERS);
  if (result.ok) return 0;
  const lines = new TextDecoder().decode(bytes).split("\n").length;
  for (const p of result.problems) {
    expect(Object.hasOwn(CODES, p.code)).toBe(true);
    expect(p.line >= 0 && p.line <= lines + 1).toBe(true);
    expect(p.seen.length + p.path.length + p.hint.length).toBeLessThan(4000);
  }
  expect(describeProblems(result.problems).split("\n")).toHaveLength(result.problems.length);
  return result.problems.length;
}

const PIECES = [
  "[",
  "]",
  "{",
  "}",
  "=",
  ".",
  ",",
  '"',
  "'",
  '"""',
  "'''",
  "#",
  "\n",
  "\r",
  "\\",
  "\\u0000",
  "__proto__",
  "constructor",
  "1",
  "-",
  "nan",
  "true",
  "[[sink]]",
  "[source]",
  "\u0000",
  "\u{1f600}",
  "9".repeat(40),
];

const edit = fc.record({ at: fc.nat(400), cut: fc.nat(20), put: fc.constantFrom(...PIECES) });

test("mutations of a good file", () => {
  fc.assert(
    fc.property(fc.array(edit, { maxLength: 6 }), (edits) => {
      let text = GOOD;
      for (const { at, cut, put } of edits) text = text.slice(0, at) + put + text.slice(at + cut);
      checked(encoder.encode(text));
    }),
    { seed: 7, numRuns: 1500 },
  );
});

test("random bytes", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      checked(bytes);
    }),
    { seed: 11, numRuns: 500 },
  );
});

const MIB = 1024 * 1024;
const filled = (piece: (i: number) => string) => {
  const parts: string[] = [];
  for (let length = 0, i = 0; length < MIB - 200; i++) {
    const part = piece(i);
    parts.push(part);
    length += part.length;
  }
  return parts.join("");
};

test.each([
  ["unknown keys", filled((i) => `pipelin${i} = 1\n`)],
  ["unknown keys of one section", `[pipeline]\n${filled((i) => `nam${i} = 1\n`)}`],
  ["sinks", filled(() => "[[sink]]\n")],
  ["full sinks", filled((i) => `[[sink]]\nname="s${i % 7}"\ntype="parquet"\nx=1\n`)],
  ["addresses", `[source]\ntype="kafka"\nbootstrap=[${filled(() => '"x",')}]`],
  ["empty tables in a list", `sink = [${filled(() => "{},")}]`],
  ["one long string", `[pipeline]\nname = "${"x".repeat(MIB - 100)}"`],
  ["one long key", `${"k".repeat(MIB - 100)} = 1`],
  ["one long quoted key", `"${"\\u0041".repeat((MIB - 100) / 6)}" = 1`],
  ["blank lines", "\n".repeat(MIB - 10)],
  ["a comment", `#${"x".repeat(MIB - 10)}`],
])("a mebibyte of %s", (_, text) => {
  const count = checked(encoder.encode(text));
  expect(count).toBeGreaterThan(0);
  expect(count).toBeLessThanOrEqual(500);
});
