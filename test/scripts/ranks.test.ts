/**
 * Goal: the import rules catch what they forbid and let pass what they allow. Method: a small tree with one planted
 * import each, checked with the project's own configuration.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ranks } from "../../scripts/checks/ranks.ts";

const room = mkdtempSync(join(tmpdir(), "twg-ranks-"));
afterAll(() => rmSync(room, { recursive: true, force: true }));

function write(file: string, text: string): void {
  mkdirSync(dirname(join(room, file)), { recursive: true });
  writeFileSync(join(room, file), text);
}

/** `from` imports `to`: a file, made too, or a module. */
function plant(from: string, to: string, statement: (target: string) => string): void {
  const isFile = to.startsWith("src/") || to.startsWith("test/");
  if (isFile) write(to, "export type T = number;\nexport const v = 1;\n");
  write(from, statement(isFile ? `${"../".repeat(from.split("/").length - 1)}${to}` : to));
}

const value = (target: string) => `import { v } from "${target}";\nexport const w = v;\n`;
const typeOnly = (target: string) => `import type { T } from "${target}";\nexport type U = T;\n`;
const bare = (target: string) => `import * as m from "${target}";\nexport const n = m;\n`;

type Case = readonly [name: string, from: string, to: string, statement: (target: string) => string];

const FORBIDDEN: readonly (readonly [...Case, rule: string])[] = [
  ["a higher rank", "src/core/bytes/a.ts", "src/core/ports/b.ts", value, "rank-bytes-imports-higher"],
  [
    "a higher rank, types only",
    "src/core/bytes/a.ts",
    "src/core/ports/b.ts",
    typeOnly,
    "rank-bytes-imports-higher",
  ],
  ["a sibling of the same rank", "src/core/sasl/a.ts", "src/core/config/b.ts", value, "imports-sibling"],
  [
    "an adapter from core",
    "src/core/pipeline/a.ts",
    "src/adapters/kafka/b.ts",
    value,
    "rank-pipeline-recovery-imports-higher",
  ],
  ["a Node module from core", "src/core/records/a.ts", "node:fs", bare, "core-does-io"],
  ["a Bun module from core", "src/core/records/a.ts", "bun:ffi", bare, "core-does-io"],
  [
    "a folder of core that has no rank",
    "src/core/misc/a.ts",
    "src/core/bytes/b.ts",
    value,
    "core-folder-without-rank",
  ],
  [
    "an adapter from an adapter",
    "src/adapters/kafka/a.ts",
    "src/adapters/parquet/b.ts",
    typeOnly,
    "adapter-imports-adapter",
  ],
  [
    "a command from an adapter",
    "src/adapters/kafka/a.ts",
    "src/commands/b.ts",
    value,
    "adapter-imports-command",
  ],
  ["a socket from wire", "src/adapters/kafka/wire/a.ts", "node:net", bare, "protocol-does-io"],
  [
    "adapters/net from session",
    "src/adapters/kafka/session/a.ts",
    "src/adapters/net/b.ts",
    value,
    "protocol-imports-net",
  ],
  [
    "apache-arrow outside core/arrow",
    "src/core/records/a.ts",
    "apache-arrow",
    bare,
    "apache-arrow-outside-core-arrow",
  ],
  [
    "a codec from a codec",
    "src/core/codecs/avro/a.ts",
    "src/core/codecs/json/b.ts",
    value,
    "codec-imports-codec",
  ],
  [
    "a codec from a source",
    "src/adapters/kafka/source.ts",
    "src/core/codecs/json/b.ts",
    value,
    "source-imports-codec",
  ],
  ["a test from the product", "src/commands/a.ts", "test/b.ts", value, "product-imports-house"],
  ["a file that is not there", "src/commands/a.ts", "./none.ts", bare, "unresolvable"],
];

const ALLOWED: readonly Case[] = [
  ["its own folder", "src/core/coverage/a.ts", "src/core/coverage/b.ts", value],
  ["a lower rank", "src/core/delivery/a.ts", "src/core/failure/b.ts", value],
  ["net from an adapter", "src/adapters/kafka/client.ts", "src/adapters/net/b.ts", value],
  ["a Node module from an adapter", "src/adapters/net/a.ts", "node:net", bare],
  ["an adapter from a command", "src/commands/a.ts", "src/adapters/kafka/b.ts", value],
];

/** Every case has a file of its own; a source keeps its name, which a rule is about. */
const own = (from: string, i: number) => from.replace(/\/(\w)\.ts$/, `/$1${i}.ts`);
let found: string[] = [];

beforeAll(async () => {
  write("package.json", '{"type":"module"}');
  [...FORBIDDEN, ...ALLOWED].forEach(([, from, to, statement], i) => {
    plant(own(from, i), to, statement);
  });
  found = [...(await ranks.run(room)).problems];
});

test.each(FORBIDDEN.map((c, i) => [c[0], own(c[1], i), c[4]] as const))(
  "forbidden: %s",
  (_name, file, rule) => {
    expect(found.filter((p) => p.includes(`: ${file} -> `)).join("\n")).toContain(rule);
  },
);

test.each(ALLOWED.map((c, i) => [c[0], own(c[1], i + FORBIDDEN.length)] as const))(
  "allowed: %s",
  (_name, file) => {
    expect(found.filter((p) => p.includes(`: ${file} -> `))).toEqual([]);
  },
);

test("an empty tree is a failure, not a success", async () => {
  const empty = join(room, "empty");
  mkdirSync(join(empty, "src"), { recursive: true });
  expect((await ranks.run(empty)).problems).not.toEqual([]);
});
