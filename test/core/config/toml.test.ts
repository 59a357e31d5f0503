// Goal: hostile and broken documents give one coded problem with a line, quickly, and leak nothing. Method: bad bytes in, problem out.
import { describe, expect, test } from "bun:test";
import { MAX_CONFIG_BYTES, parseToml } from "../../../src/core/config/toml.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

function refusal(text: string | Uint8Array) {
  const result = parseToml(typeof text === "string" ? bytes(text) : text, "x.toml");
  if (result.ok) throw new Error("was accepted");
  expect(result.problems).toHaveLength(1);
  const [problem] = result.problems;
  if (problem === undefined) throw new Error("no problem");
  return problem;
}

describe("syntax", () => {
  test.each([
    ["a = 1\nb = [1,\n", 3],
    ["a = 1\n\nb = TRUE\n", 3],
    ["a = 1\na = 2\n", 2],
    ["[t]\nx=1\n[t]\n", 3],
    ["a = 1\nb 2\n", 2],
    ['a = "unfinished\n', 1],
    ["a = 01\n", 1],
    ["a = 1 b = 2\n", 1],
  ] as const)("%j is refused at line %d", (text, line) => {
    const problem = refusal(text);
    expect(problem.code).toBe("config.syntax");
    expect(problem.line).toBe(line);
  });

  test("the source line, which may hold a secret, is not repeated", () => {
    const problem = refusal('a = 1\npassword = "hunter2\n');
    expect(JSON.stringify(problem)).not.toContain("hunter2");
    expect(problem.line).toBe(2);
  });

  test("bytes that are not UTF-8", () => {
    expect(refusal(new Uint8Array([0x61, 0x3d, 0x22, 0xff, 0x22])).code).toBe("config.syntax");
    expect(refusal(new Uint8Array([0xff, 0xfe, 0x61, 0x00])).code).toBe("config.syntax");
  });
});

describe("limits", () => {
  test("a file above 1 MiB is not parsed", () => {
    expect(refusal(new Uint8Array(MAX_CONFIG_BYTES + 1)).code).toBe("config.too_large");
  });

  test.each([
    ["lists", `a = ${"[".repeat(5000)}${"]".repeat(5000)}`],
    ["inline tables", `a = ${"{a=".repeat(5000)}1${"}".repeat(5000)}`],
    ["dotted keys", `${"a.".repeat(400_000)}b = 1`],
    ["headers", `[${"a.".repeat(400_000)}b]\nx = 1`],
  ])("%s nested too deeply are refused", (_, text) => {
    expect(refusal(text).code).toBe("config.syntax");
  });

  test("a mebibyte of small keys is read", () => {
    const lines = Array.from({ length: 60_000 }, (_, i) => `k${i} = ${i}`).join("\n");
    const result = parseToml(bytes(lines), "x.toml");
    expect(result.ok && result.locator.lineOf(["k59999"])).toBe(60_000);
  });
});

test("keys that name parts of every object stay keys and touch nothing", () => {
  const result = parseToml(
    bytes('__proto__ = { polluted = 1 }\n[constructor]\nprototype = 1\n["__proto__x"]\ny = 2'),
    "x.toml",
  );
  if (!result.ok) throw new Error("refused");
  expect(Object.keys(result.value).sort()).toEqual(["__proto__", "__proto__x", "constructor"]);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  expect(Object.getPrototypeOf({})).toBe(Object.prototype);
});

test("integers beyond 2^53 are kept exact rather than rounded", () => {
  const result = parseToml(bytes("a = 9007199254740993\nb = 5"), "x.toml");
  expect(result.ok && result.value).toEqual({ a: 9007199254740993n, b: 5 });
});
