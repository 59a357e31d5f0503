/**
 * Goal: patterns of topic names mean what a regular expression of the same text means, take linear time, and are
 * refused with the place where they can't be used. Method: the runtime's own expressions judge generated patterns and
 * names; a pattern that makes those go back without end shows that ours does not.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { PatternError, TopicPattern } from "../../../src/adapters/kafka/topic-pattern.ts";

const matches = (pattern: string, name: string) => new TopicPattern(pattern).matches(name);

describe("a pattern of topic names", () => {
  const char = fc.constantFrom(
    "a",
    "b",
    "c",
    "1",
    "\\.",
    "_",
    "-",
    ".",
    "\\d",
    "\\w",
    "\\W",
    "[a-c]",
    "[^b]",
    "[1.-]",
  );
  const { pattern } = fc.letrec<{ pattern: string }>((tie) => ({
    pattern: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      char,
      fc.tuple(tie("pattern"), tie("pattern")).map(([x, y]) => `${x}${y}`),
      fc.tuple(tie("pattern"), tie("pattern")).map(([x, y]) => `(${x}|${y})`),
      fc
        .tuple(tie("pattern"), fc.constantFrom("?", "*", "+", "{2}", "{1,3}", "{0,2}?", "{1,}", "+?"))
        .map(([x, times]) => `(?:${x})${times}`),
    ),
  }));
  const name = fc.string({ unit: fc.constantFrom("a", "b", "c", "1", ".", "_", "-", "X"), maxLength: 7 });

  test("matches what the runtime's expressions match, the whole name", () => {
    let matched = 0;
    fc.assert(
      fc.property(pattern, fc.array(name, { minLength: 20, maxLength: 20 }), (text, names) => {
        const ours = new TopicPattern(`^${text}$`);
        const theirs = new RegExp(`^(?:${text})$`);
        for (const n of names) {
          expect([text, n, ours.matches(n)]).toEqual([text, n, theirs.test(n)]);
          matched += Number(theirs.test(n));
        }
      }),
      { numRuns: 400, seed: 7 },
    );
    expect(matched).toBeGreaterThan(500);
  });

  test.each([
    ["orders", "orders.eu", false],
    ["orders\\..*", "orders.eu", true],
    ["orders\\..*", "myorders.eu", false],
    ["^(orders|returns)$", "returns", true],
    ["a|b|", "", true],
    ["[]", "", null],
    ["[a-]", "-", true],
  ])("%s and the name %p", (text, n, expected) => {
    if (expected === null) expect(() => matches(text, n)).toThrow(PatternError);
    else expect(matches(text, n)).toBe(expected);
  });

  // A backtracking engine needs more than 2^100 steps for each of these.
  test.each(["(a*)*b", "(a|a)*b", "(a|aa)+b", "(.*.*.*a){40}", "(a?){200}a{200}"])(
    "%s against a name of 249 characters ends",
    (text) => {
      expect(matches(text, `${"a".repeat(248)}c`)).toBe(false);
    },
  );

  test.each([
    ["(a", 0, "no end"],
    ["a)", 1, "no group is open"],
    ["[ab", 0, "no end"],
    ["a**", 2, "another repetition"],
    ["a*+", 2, "another repetition"],
    ["*a", 0, "repeats nothing"],
    ["(a)\\1", 3, "references"],
    ["a(?=b)", 1, "look around"],
    ["(?i)a", 0, "look around"],
    ["(?<n>a)", 0, "look around"],
    ["a{3,1}", 1, "below its start"],
    ["a{300}", 1, "at most 249"],
    ["(x{200}){200}", 0, "repeats too much"],
    [`${"(".repeat(60)}a`, 50, "within more than 50"],
    ["x".repeat(1001), 1000, "more than 1000"],
    ["ab\\", 2, "backslash"],
    ["\\q", 0, "not known"],
    ["caf\u00e9", 3, "a topic name has only"],
    ["a^b", 1, "no name begins"],
    ["a$b", 1, "no name ends"],
    ["^*", 1, "repeats nothing"],
    ["[z-a]", 1, "in order"],
    ["[\\d-z]", 1, "in order"],
    ["[[:alpha:]]", 1, "written \\["],
    ["a{x}", 1, "begins no repetition"],
  ])("%s is refused at character %d", (text, at, why) => {
    try {
      new TopicPattern(text);
    } catch (e) {
      expect([(e as PatternError).at, (e as PatternError).message]).toEqual([
        at,
        expect.stringContaining(why),
      ]);
      return;
    }
    throw new Error("it was taken");
  });
});
