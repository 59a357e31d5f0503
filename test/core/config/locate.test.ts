// Goal: a problem names the line of its value. Method: documents with every way to write a key, lines counted by hand.
import { describe, expect, test } from "bun:test";
import { locate } from "../../../src/core/config/locate.ts";

const DOC = `# comment with [brackets] and = signs
top = 1
[a]
x = "]["            # line 4
y.z = 2
"quoted key" = 3
'literal.key' = 4
"esc\\u0061ped" = 5

[a.b]
list = [
  1, # one
  "two ] ",

  { k = 1, "l" = 2 },
]                   # line 16
multi = """
[not.a.table]
x = 9
"""
after = 1           # line 21
lit = '''
[nor.this]'''
inline = { p = { q = 1 }, r = [ 1,
  2 ] }

[[s]]               # line 27
name = "one"
[s.tls]
ca = 1
[[s]]
name = "two"        # line 32
[[s.deep]]
k = 1
[[s.deep]]
k = 2               # line 36
last = "a\\"b"  \r
end = 1`;

describe("locate", () => {
  const at = locate(DOC);
  test.each([
    [["top"], 2],
    [["a"], 3],
    [["a", "x"], 4],
    [["a", "y"], 5],
    [["a", "y", "z"], 5],
    [["a", "quoted key"], 6],
    [["a", "literal.key"], 7],
    [["a", "escaped"], 8],
    [["a", "b"], 10],
    [["a", "b", "list"], 11],
    [["a", "b", "list", 0], 12],
    [["a", "b", "list", 1], 13],
    [["a", "b", "list", 2, "k"], 15],
    [["a", "b", "list", 2, "l"], 15],
    [["a", "b", "multi"], 17],
    [["a", "b", "after"], 21],
    [["a", "b", "lit"], 22],
    [["a", "b", "inline", "p", "q"], 24],
    [["a", "b", "inline", "r", 1], 25],
    [["s"], 27],
    [["s", 0], 27],
    [["s", 0, "name"], 28],
    [["s", 0, "tls"], 29],
    [["s", 0, "tls", "ca"], 30],
    [["s", 1], 31],
    [["s", 1, "name"], 32],
    [["s", 1, "deep", 0, "k"], 34],
    [["s", 1, "deep", 1, "k"], 36],
    [["s", 1, "deep", 1, "last"], 37],
    [["s", 1, "deep", 1, "end"], 38],
  ] as const)("%j is on line %d", (path, line) => {
    expect(at.lineOf(path)).toBe(line);
  });

  test("a path without a line of its own takes that of the nearest enclosing one, else 0", () => {
    expect(at.lineOf(["a", "b", "nothing", "here"])).toBe(10);
    expect(at.lineOf(["zzz"])).toBe(0);
    expect(at.lineOf([])).toBe(0);
  });

  test("what stands inside strings is no structure", () => {
    expect(at.lineOf(["not"])).toBe(0);
    expect(at.lineOf(["nor"])).toBe(0);
  });

  test("text that is no TOML ends all the same", () => {
    const broken = [
      "[",
      "[[",
      "a",
      "a=",
      "a=[",
      "a={",
      'a="',
      "a='''",
      "=",
      "= =",
      "[a",
      "a.b.",
      "{",
      "}",
      "]",
      "a=[{",
      "\\",
      '"',
    ];
    for (const text of broken) {
      locate(text);
      locate(`${text}\n${text}`);
    }
    locate("[".repeat(100_000));
    locate(`a=${"[".repeat(100_000)}`);
    locate(`a=${"{a=".repeat(100_000)}`);
    locate(`${"a.".repeat(300_000)}b=1`);
    expect(locate(`${"a.".repeat(300_000)}b=1\nc=2`).lineOf(["c"])).toBe(0 + 2);
  });
});
