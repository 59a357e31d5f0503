// Goal: every problem of a file comes out at once, each with line, path, seen, allowed and a stable code. Method: one fault per test on a
// good file, then all together.
import { describe, expect, test } from "bun:test";
import { type CheckedConfig, checkConfig } from "../../../src/core/config/check.ts";
import { describeProblems, type Problem } from "../../../src/core/config/problem.ts";
import { Secret } from "../../../src/core/config/secret.ts";
import { GOOD, SAMPLE_ADAPTERS } from "./sample-adapters.ts";

function check(text: string) {
  return checkConfig(new TextEncoder().encode(text), "x.toml", SAMPLE_ADAPTERS);
}

function problems(text: string): readonly Problem[] {
  const result = check(text);
  if (result.ok) throw new Error("was accepted");
  return result.problems;
}

function only(text: string): Problem {
  const all = problems(text);
  if (all.length !== 1 || all[0] === undefined) throw new Error(`not one problem:\n${describeProblems(all)}`);
  return all[0];
}

function good(text: string): CheckedConfig {
  const result = check(text);
  if (!result.ok) throw new Error(describeProblems(result.problems));
  return result.config;
}

describe("a good file", () => {
  test("gives every section with its defaults", () => {
    const config = good(GOOD);
    expect(config.pipeline.name).toBe("orders");
    expect(config.pipeline.max_bytes).toBe(32 * 1024 * 1024);
    expect(config.observability.listen).toBe("127.0.0.1:9464");
    expect(config.secrets.dir).toBe("/run/secrets/twg");
    expect(config.source).toEqual({
      type: "kafka",
      bootstrap: [{ host: "kafka", port: 9092 }],
      topics: ["orders"],
      start: "earliest",
      eager: false,
    });
    expect(config.sink).toEqual({
      hold_bytes: 16 * 1024 * 1024,
      metadata: "locator",
      duplicates: "keep",
      type: "parquet",
      name: "raw",
      receives: "raw",
      role: "primary_raw",
      path: "./data",
      roll_bytes: 128 * 1024 * 1024,
      roll_interval_ms: 10_000,
    });
    expect(config.written.has("sink[0].path")).toBe(true);
    expect(config.written.has("sink[0].roll_bytes")).toBe(false);
    expect(config.lineOf(["pipeline", "name"])).toBe(3);
  });

  test("windows line ends and a byte order mark change nothing", () => {
    expect(good(`\ufeff${GOOD.replaceAll("\n", "\r\n")}`).pipeline.name).toBe("orders");
  });

  test("a budget below the default batch takes the batch along", () => {
    const config = good(GOOD.replace('name = "orders"', 'name = "orders"\nmax_bytes = "4MiB"'));
    expect(config.batch.max_bytes).toBe(4 * 1024 * 1024);
  });

  test("both roles ingest; nothing else is asked of one sink", () => {
    expect(good(GOOD.replace('name = "orders"', 'name = "orders"\nrole = "both"')).pipeline.role).toBe(
      "both",
    );
  });
});

/** The good file with one line put after a line of it. */
const after = (line: string, added: string) => GOOD.replace(line, `${line}\n${added}`);

describe("one fault, one problem", () => {
  test.each([
    [
      "unknown key",
      after('type = "kafka"', "tpic = 1"),
      "config.unknown_key",
      6,
      "source.tpic",
      'did you mean "topics"?',
    ],
    [
      "unknown key, nothing near",
      after('type = "kafka"', "zzzzzz = 1"),
      "config.unknown_key",
      6,
      "source.zzzzzz",
      "",
    ],
    [
      "unknown section",
      `${GOOD}[pipelin]\n`,
      "config.unknown_key",
      12,
      "pipelin",
      'did you mean "pipeline"?',
    ],
    ["unknown top key", `x = 1${GOOD}`, "config.unknown_key", 1, "x", ""],
    [
      "number as a string",
      after('name = "orders"', 'lanes = "2"'),
      "config.type",
      4,
      "pipeline.lanes",
      "write the number without quotes",
    ],
    [
      "boolean as a string",
      after('type = "kafka"', 'eager = "true"'),
      "config.type",
      6,
      "source.eager",
      "write true or false without quotes",
    ],
    [
      "string as a number",
      GOOD.replace('name = "orders"', "name = 7"),
      "config.type",
      3,
      "pipeline.name",
      "write it in quotes",
    ],
    [
      "list as a string",
      GOOD.replace('["orders"]', '"orders"'),
      "config.type",
      7,
      "source.topics",
      "write a list: [...]",
    ],
    [
      "section as a value",
      `pipeline = 3${GOOD.replace('[pipeline]\nname = "orders"', "")}`,
      "config.type",
      1,
      "pipeline",
      "",
    ],
    [
      "wrong case of a choice",
      after('type = "kafka"', 'start = "Earliest"'),
      "config.range",
      6,
      "source.start",
      'did you mean "earliest"?',
    ],
    ["choice as a number", after('type = "kafka"', "start = 5"), "config.type", 6, "source.start", ""],
    [
      "out of range",
      after('path = "./data"', 'roll_bytes = "1KB"'),
      "config.range",
      12,
      "sink[0].roll_bytes",
      "outside the allowed range",
    ],
    [
      "beyond 2^53",
      after('path = "./data"', "roll_bytes = 9007199254740993"),
      "config.type",
      12,
      "sink[0].roll_bytes",
      "the number is too large",
    ],
    [
      "unit in lower case",
      after('path = "./data"', 'roll_bytes = "64mib"'),
      "config.type",
      12,
      "sink[0].roll_bytes",
      "unknown unit 'mib', did you mean 'MiB'?",
    ],
    [
      "missing option",
      GOOD.replace('path = "./data"', ""),
      "config.missing",
      8,
      "sink[0].path",
      'it is required, for example "./data"',
    ],
    ["empty list", GOOD.replace('["kafka:9092"]', "[]"), "config.range", 6, "source.bootstrap", ""],
    [
      "address with a scheme",
      GOOD.replace("kafka:9092", "http://kafka:9092"),
      "config.range",
      6,
      "source.bootstrap[0]",
      "a host and port without a scheme is wanted",
    ],
    [
      "option that needs another",
      GOOD.replace('topics = ["orders"]', ""),
      "config.range",
      4,
      "source.topics",
      "name a topic",
    ],
    ["bad name", GOOD.replace('name = "orders"', 'name = "Orders!"'), "config.range", 3, "pipeline.name", ""],
    [
      "no source",
      GOOD.replace(/\[source\][^[]*\["kafka:9092"\]\ntopics = \["orders"\]\n/, ""),
      "config.missing",
      0,
      "source",
      "it is required",
    ],
    [
      "no pipeline",
      GOOD.replace('[pipeline]\nname = "orders"', ""),
      "config.missing",
      0,
      "pipeline",
      "it is required",
    ],
    ["no sink", GOOD.replace(/\[\[sink\]\][\s\S]*/, ""), "config.missing", 0, "sink", "it is required"],
    [
      "sink as a table",
      GOOD.replace("[[sink]]", "[sink]"),
      "config.type",
      8,
      "sink",
      "write [[sink]], not [sink]",
    ],
    [
      "sources as a list",
      GOOD.replace("[source]", "[[source]]"),
      "config.type",
      4,
      "source",
      "write [source], not [[source]]",
    ],
    ["no type", GOOD.replace('type = "kafka"', ""), "config.missing", 4, "source.type", "it is required"],
    ["type as a number", GOOD.replace('type = "kafka"', "type = 1"), "config.type", 5, "source.type", ""],
    [
      "unknown type",
      GOOD.replace('type = "kafka"', 'type = "kafak"'),
      "config.range",
      5,
      "source.type",
      'did you mean "kafka"?',
    ],
    [
      "wrong case of a role",
      after('path = "./data"', 'role = "Primary_Raw"'),
      "config.range",
      12,
      "sink[0].role",
      'did you mean "primary_raw"?',
    ],
    [
      "batch above the budget",
      `${GOOD}[batch]\nmax_bytes = "65MiB"\n`,
      "config.conflict",
      13,
      "batch.max_bytes",
      "a batch above the budget could never be filled",
    ],
  ] as const)("%s", (_, text, code, line, path, hint) => {
    const problem = only(text);
    expect(problem.code).toBe(code);
    expect([problem.line, problem.path, problem.hint]).toEqual([line, path, hint]);
    expect(problem.allowed === "" && code !== "config.unknown_key").toBe(false);
  });

  test.each(["contract", "dq", "transform", "dlq"])(
    "the section [%s] of the design is refused, not ignored",
    (name) => {
      const problem = only(`${GOOD}[${name}]\nx = 1\n`);
      expect(problem.code).toBe("config.not_in_this_version");
      expect(problem.line).toBe(12);
    },
  );

  test.each([
    ["source", "kafka", "pulsar"],
    ["sink", "parquet", "iceberg"],
    ["sink", "parquet", "iceberg"],
  ])("%s %s becoming %s is known but not in this version", (_, from, to) => {
    expect(only(GOOD.replace(`type = "${from}"`, `type = "${to}"`)).code).toBe("config.not_in_this_version");
  });

  test.each(["audit", "base"])("receives = %p needs lanes that are not in this version", (value) => {
    expect(only(after('path = "./data"', `receives = "${value}"`)).code).toBe("config.not_in_this_version");
  });
});

test.each([
  ["otlp", `${GOOD}[observability]\notlp = { endpoint = "http://c:4317" }\n`, "observability.otlp"],
])("the option %s of the design is refused with the reason, not as a slip", (_, text, path) => {
  const problem = only(text);
  expect([problem.code, problem.path]).toEqual(["config.not_in_this_version", path]);
  expect(problem.hint).not.toContain("did you mean");
});

test("a choice within a union gets its suggestion, too", () => {
  const problem = only(after('path = "./data"', 'mode = "Fast"'));
  expect([problem.code, problem.hint]).toEqual(["config.range", 'did you mean "fast"?']);
});

describe("more than one sink", () => {
  const second = (name: string, type = "parquet") =>
    `[[sink]]\nname = "${name}"\ntype = "${type}"\npath = "./b"\n`;

  const secondary = (name: string, more = "") => `${second(name)}${more}`;
  const PRIMARY = after('path = "./data"', 'role = "primary_raw"');

  test("one is the primary, the others are secondary without a word", () => {
    const config = good(PRIMARY + secondary("b") + secondary("c", 'role = "secondary"\n'));
    expect(config.sink.name).toBe("raw");
    expect(config.sinks.map((s) => [s.name, s.role])).toEqual([
      ["raw", "primary_raw"],
      ["b", "secondary"],
      ["c", "secondary"],
    ]);
  });

  test("the primary need not come first", () => {
    const first = after('path = "./data"', 'role = "secondary"');
    expect(good(first + secondary("b", 'role = "primary_raw"\n')).sink.name).toBe("b");
  });

  test("no primary is refused, and so is one that is alone and secondary", () => {
    for (const text of [GOOD + second("b"), after('path = "./data"', 'role = "secondary"')]) {
      const problem = only(text);
      expect([problem.code, problem.path, problem.seen]).toEqual([
        "config.conflict",
        "sink",
        "no primary sink",
      ]);
    }
  });

  test("two primaries are refused, naming the first", () => {
    const problem = only(PRIMARY + secondary("b", 'role = "primary_raw"\n'));
    expect([problem.code, problem.path]).toEqual(["config.conflict", "sink[1].role"]);
    expect(problem.hint).toBe("sink[0], line 12 is it already");
  });

  test("equal names are refused, naming the first", () => {
    const problem = only(PRIMARY + second("raw"));
    expect([problem.code, problem.hint]).toEqual(["config.conflict", "it is the name of sink[0], line 9"]);
  });

  test("too many are refused", () => {
    const all = Array.from({ length: 16 }, (_, i) => second(`s${i}`)).join("");
    expect(only(PRIMARY + all).code).toBe("config.range");
  });
});

describe("observability", () => {
  const listen = (address: string, more = "") => `${GOOD}[observability]\nlisten = "${address}"\n${more}`;

  test.each(["127.0.0.1:1", "127.9.9.9:9464", "[::1]:9464", "localhost:0", "off"])(
    "%s needs nothing",
    (address) => {
      good(listen(address));
    },
  );

  test.each(["0.0.0.0:9464", "[::]:9464", "10.0.0.1:1", "twg.example:9464", "127.0.0.1.example:1"])(
    "%s needs tls or a token",
    (address) => {
      const problem = only(listen(address));
      expect([problem.code, problem.line, problem.path]).toEqual([
        "config.conflict",
        13,
        "observability.listen",
      ]);
      good(listen(address, 'token = { secret = "t" }'));
      good(listen(address, 'tls = { cert = { file = "/c" }, key = { secret = "k" } }'));
    },
  );

  test("an empty token is no token", () => {
    expect(problems(listen("0.0.0.0:1", 'token = ""')).map((p) => p.path)).toContain("observability.token");
  });

  test("port alone is no address", () => {
    expect(only(listen(":9464")).code).toBe("config.range");
  });
});

describe("what is shown", () => {
  test.each([
    ['sasl = { mechanism = "PLAIN", username = "u", password = 73217 }', "73217"],
    ['sasl = { mechanism = "PLAIN", username = "u", password = { secret = "../hunter2" } }', "hunter2"],
    ['sasl = { mechanism = "PLAIN", username = "u", password = { hunter2 = "x" } }', "hunter2"],
    ['sasl = { mechanism = "PLAIN", username = "u", password = ["hunter2"] }', "hunter2"],
    ['sasl = { mechanism = "PLAIN", username = "u", passwrd = "hunter2" }', "hunter2"],
    ['tls = { ca = "hunter2" }', "hunter2"],
  ])("%s keeps the value to itself", (line, hidden) => {
    const text = describeProblems(problems(after('type = "kafka"', line)));
    expect(text).not.toContain(hidden);
    expect(text).toContain("x.toml:6");
  });

  test("a password within an address is masked", () => {
    const text = describeProblems(problems(GOOD.replace("kafka:9092", "kafka://u:hunter2@kafka:9092")));
    expect(text).toContain("//***@kafka");
    expect(text).not.toContain("hunter2");
  });

  test("control characters and endless values do not reach the terminal", () => {
    const text = describeProblems(
      problems(
        GOOD.replace('"./data"', `"./data"\n"\\u001b[31m\\u202e" = 1\nroll_bytes = "${"x".repeat(5000)}"`),
      ),
    );
    expect(text.length).toBeLessThan(1000);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    expect(text).not.toMatch(/[\u001b\u202e]/);
  });

  test("a literal secret of a good file prints masked", () => {
    const config = good(
      after('type = "kafka"', 'sasl = { mechanism = "PLAIN", username = "u", password = "hunter2" }'),
    );
    expect((config.source.sasl as { password: Secret }).password).toBeInstanceOf(Secret);
    expect(JSON.stringify(config) + Bun.inspect(config, { depth: 9 })).not.toContain("hunter2");
  });
});

test("keys such as __proto__ and constructor are unknown keys at every level, and harmless", () => {
  const text = `__proto__ = { type = "kafka" }\n[pipeline]\nconstructor = 1\n__proto__ = 2\n[source.__proto__]\ntype = "kafka"\n`;
  const all = problems(text);
  expect(all.map((p) => [p.path, p.code])).toEqual([
    ["sink", "config.missing"],
    ["__proto__", "config.unknown_key"],
    ["pipeline.name", "config.missing"],
    ["pipeline.constructor", "config.unknown_key"],
    ["pipeline.__proto__", "config.unknown_key"],
    ["source.type", "config.missing"],
  ]);
  expect(({} as Record<string, unknown>).type).toBeUndefined();
});

test("everything wrong at once is reported at once, in the order of the file", () => {
  const all = problems(`[pipeline]
name = "Orders"
lanes = "2"
[source]
type = "kafka"
bootstrap = ["a", 5]
tpics = ["orders"]
[decode]
[[sink]]
name = "a"
type = "iceberg"
[[sink]]
name = "a"
type = "parquet"
role = "secondary"
[observability]
listen = "0.0.0.0:1"
`);
  expect(all.map((p) => [p.line, p.code, p.path])).toEqual([
    [2, "config.range", "pipeline.name"],
    [3, "config.type", "pipeline.lanes"],
    [6, "config.range", "source.bootstrap[0]"],
    [6, "config.type", "source.bootstrap[1]"],
    [7, "config.unknown_key", "source.tpics"],
    [8, "config.missing", "decode.format"],
    [9, "config.conflict", "sink"],
    [11, "config.not_in_this_version", "sink[0].type"],
    [12, "config.missing", "sink[1].path"],
    [13, "config.conflict", "sink[1].name"],
    [17, "config.conflict", "observability.listen"],
  ]);
});

test("a document of junk values of every kind is answered with problems, never an exception", () => {
  const junk = [
    "1",
    "-1.5",
    "nan",
    "inf",
    "true",
    '""',
    '"x"',
    "[]",
    "[[]]",
    "{}",
    "{ a = 1 }",
    "1979-05-27",
    "07:32:00",
    "1979-05-27T07:32:00Z",
  ];
  for (const value of junk) {
    for (const key of ["pipeline", "source", "sink", "batch", "observability", "secrets"]) {
      expect(check(`${key} = ${value}`).ok).toBe(false);
    }
    expect(check(`sink = [${value}, ${value}]`).ok).toBe(false);
    for (const line of ["name =", "lanes =", "max_bytes =", "role ="]) check(`[pipeline]\n${line} ${value}`);
    for (const line of ["bootstrap =", "topics =", "sasl =", "start =", "tls ="])
      check(`[source]\ntype = "kafka"\n${line} ${value}`);
  }
});
