/**
 * Goal: every check of the house catches what it is for. Method: one planted fault each, and its harmless
 * neighbour.
 */
import { afterAll, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { runChecks } from "../../scripts/check.ts";
import { bansIn } from "../../scripts/checks/bans.ts";
import { programCheck } from "../../scripts/checks/check.ts";
import {
  advisoryProblems,
  isPermissive,
  licences,
  platformPackages,
  purity,
} from "../../scripts/checks/dependencies.ts";
import { deploy, imageProblems, unitProblems } from "../../scripts/checks/deploy.ts";
import { linkProblems } from "../../scripts/checks/docs.ts";
import { hygiene, textProblems } from "../../scripts/checks/hygiene.ts";
import {
  addLcov,
  coveragePercent,
  coverageProblems,
  hasCode,
  lengthProblems,
} from "../../scripts/checks/ratchets.ts";
import { shell } from "../../scripts/checks/shell.ts";

const room = mkdtempSync(join(tmpdir(), "twg-checks-"));
afterAll(() => rmSync(room, { recursive: true, force: true }));
let repositories = 0;

function repository(files: Record<string, string | Uint8Array>): string {
  const repo = join(room, String(repositories++));
  mkdirSync(repo);
  Bun.spawnSync(["git", "init", "-q"], { cwd: repo });
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(dirname(join(repo, file)), { recursive: true });
    writeFileSync(join(repo, file), content);
  }
  return repo;
}

test.each([
  ["src/core/a.ts", "const t = Date.now();", "Date.now"],
  ["src/core/a.ts", "const r = Math.random();", "Math.random"],
  ["src/core/a.ts", "setTimeout(() => {}, 1);", "setTimeout"],
  ["src/core/a.ts", "const e = process.env;", "process"],
  ["src/core/a.ts", "const f = Bun.file('x');", "Bun"],
  ["src/core/a.ts", "const d = new Date();", "new Date()"],
  ["src/core/a.ts", 'import type { Stats } from "node:fs";', "node:fs"],
  ["src/core/a.ts", 'const m = await import("bun:ffi");', "bun:ffi"],
  ["src/core/a.ts", 'export { v } from "bun";', "bun"],
  ["src/adapters/x/a.ts", "Bun.zstdDecompressSync(b);", "Bun.zstdDecompressSync"],
  ["src/adapters/x/a.ts", "new Bun.S3Client();", "Bun.S3Client"],
])("bans: %s: %s", (file, text, what) => {
  expect(bansIn(file, text).join("\n")).toContain(`${file}:${what === "new Date()" ? "" : "1:"} ${what}`);
});

test.each([
  ["src/core/a.ts", "// Date.now and setTimeout are banned here"],
  ["src/core/a.ts", "const x = clock.now(); const y = a.process.b; interface Z { process: number }"],
  ["src/adapters/x/a.ts", 'import { readFileSync } from "node:fs"; setTimeout(f, 1);'],
])("bans let pass: %s: %s", (file, text) => {
  expect(bansIn(file, text)).toEqual([]);
});

test.each(["MIT", "Apache-2.0 OR GPL-3.0-only", "(MIT AND BSD-3-Clause)", "MIT OR Apache-2.0"])(
  "permissive: %s",
  (l) => {
    expect(isPermissive(l)).toBeTrue();
  },
);

test.each([
  "GPL-3.0-only",
  "MIT AND GPL-2.0-only",
  "",
  "SEE LICENSE IN LICENSE",
  "UNLICENSED",
  "AGPL-3.0 OR SSPL-1.0",
])("not permissive: %s", (l) => {
  expect(isPermissive(l)).toBeFalse();
});

test("licences: a package without one is named, nested ones too", async () => {
  const repo = repository({
    "node_modules/good/package.json": '{"name":"good","version":"1.0.0","license":"MIT"}',
    "node_modules/good/node_modules/@s/bad/package.json": '{"name":"@s/bad","version":"2.0.0"}',
    "node_modules/good/lib/package.json": '{"type":"module"}',
  });
  expect((await licences.run(repo)).problems).toEqual([
    '@s/bad@2.0.0: licence "" is not on the permissive list',
  ]);
});

test("purity: native code, WebAssembly, install scripts and stale entries are named", async () => {
  const manifest = (name: string, more = "") => `{"name":"${name}","version":"1.0.0","license":"MIT"${more}}`;
  const repo = repository({
    "node_modules/addon/package.json": manifest("addon"),
    "node_modules/addon/build/a.node": "x",
    "node_modules/wasm/package.json": manifest("wasm"),
    "node_modules/wasm/index.js": 'const code = "AGFzbQEAAAA=";',
    "node_modules/tool/package.json": manifest("tool"),
    "node_modules/tool/bin/tool": new Uint8Array([0x7f, 0x45, 0x4c, 0x46, 2]),
    "node_modules/runs/package.json": manifest("runs", ',"scripts":{"postinstall":"node x.js"}'),
    "node_modules/known/package.json": manifest("known"),
    "node_modules/known/k.so.1": "x",
    "node_modules/pure/package.json": manifest("pure"),
    "node_modules/pure/index.js": "export const a = 1;",
    "scripts/purity.json":
      '{"native":{"known":"r","gone":"r"},"platforms":{},"embedded":{},"installScripts":{}}',
    "scripts/build/parts.ts": '{ name: "libnew.so.6", path }',
    "scripts/build/pins/bun.lock": "",
    "bun.lock": "",
  });
  expect([...(await purity.run(repo)).problems].sort()).toEqual([
    "addon holds build/a.node: not on the list",
    "gone is on the purity list but is gone or holds nothing native: take it off",
    "runs has install scripts (postinstall): not on the list",
    "scripts/build/parts.ts embeds libnew.so.6: not on the list",
    "tool holds the program bin/tool: not on the list",
    "wasm holds WebAssembly inside index.js: not on the list",
  ]);
});

test("purity: packages for one platform are found in the lock file", () => {
  const lock = [
    '    "@x/y-linux": ["@x/y-linux@1.0.0", "", { "os": "linux", "cpu": "x64" }, "sha512-a=="],',
    '    "plain": ["plain@1.0.0", "", {}, "sha512-b=="],',
    '    "z": ["z@2.0.0", "", { "dependencies": { "a": "1" }, "cpu": "arm64" }, "sha512-c=="],',
  ].join("\n");
  expect(platformPackages(lock)).toEqual(["@x/y-linux", "z"]);
});

test("advisories: low ones pass, all others are named", () => {
  const of = (severity: string) => ({ id: 1, title: "T", severity, url: "U" });
  const json = JSON.stringify({ a: [of("low")], b: [of("moderate")], c: [of("critical")] });
  expect(advisoryProblems(json)).toEqual(["b: moderate: T (U)", "c: critical: T (U)"]);
});

test.each([
  ["a path of one machine", `see /${"root"}/x`],
  ["an unfinished note", `// ${"TO"}DO: later`],
  ["a merge conflict", `${"<".repeat(7)} HEAD`],
  ["white space at the end", "a "],
  ["a carriage return", "a\r"],
  ["names the host", `https://${"registry"}.somewhere.org/x`],
])("hygiene: %s", (what, line) => {
  expect(textProblems("a.md", `ok\n${line}\n`).join("\n")).toContain(`a.md:2: ${what}`);
});

test.each([
  "http://127.0.0.1:9464/metrics and http://[::1]/ and http://localhost:1",
  "https://registry:8081, http://collector:4317, https://a.example.com/x",
  "https://json-schema.org/draft/2020-12/schema",
  "`http://{host}:{port}/`",
  "src/root/of/it and /workspace/x and framework/",
])("hygiene lets pass: %s", (line) => {
  expect(textProblems("a.md", `${line}\n`)).toEqual([]);
});

test("hygiene: large files, scripts that cannot be run, a missing last line break", async () => {
  const repo = repository({
    "big.bin": new Uint8Array((1 << 20) + 1),
    "run.sh": "#!/usr/bin/env bash\n",
    "fine.sh": "#!/usr/bin/env bash\n",
    "cut.md": "no end",
  });
  chmodSync(join(repo, "fine.sh"), 0o755);
  expect((await hygiene.run(repo)).problems).toEqual([
    "big.bin: 1048577 bytes: too large for the repository",
    "cut.md: no line break at its end",
    "run.sh: has a #! line but is not executable",
  ]);
});

test("shell: a script that does not parse is named", async () => {
  const repo = repository({ "bad.sh": "if true; then\n", "good.sh": "#!/usr/bin/env bash\ntrue\n" });
  const { problems } = await shell.run(repo);
  expect(problems.join("\n")).toContain("bad.sh: line");
  expect(problems.join("\n")).not.toContain("good.sh");
});

test("deploy: YAML that does not parse is named", async () => {
  const repo = repository({ "deploy/a.yaml": "a: [1,\n", "deploy/b.yaml": "a: 1\n---\nb: 2\n" });
  const { problems } = await deploy.run(repo);
  expect(problems).toHaveLength(1);
  expect(problems[0]).toStartWith("deploy/a.yaml: ");
});

// Not a skip where systemd is missing: the check itself says so in a note.
if (Bun.which("systemd-analyze") !== null)
  test("deploy: a unit with a mistake and without its fences is named", async () => {
    const found = await unitProblems("u", "[Service]\nExecStart=/bin/true\nProtectSystm=strict\n");
    expect(found.join("\n")).toMatch(/ProtectSystm/);
    expect(found.join("\n")).toMatch(/exposure level/);
  });

test("links: files and headings must be there; fences, code and other sites are left alone", () => {
  const text = [
    "# Top",
    "[a](b.md) [c](none.md) [d](#top) [e](#nope) [f](b.md#second-part) [g](b.md#third) `[h](x.md)`",
    "```",
    "[i](none2.md)",
    "```",
    "[j](https://example.com) [k](../../out.md)",
  ].join("\n");
  const documents = new Map([
    ["docs/a.md", text],
    ["docs/b.md", "## Second part\n"],
  ]);
  expect(linkProblems("docs/a.md", text, (p) => documents.has(p), documents)).toEqual([
    "docs/a.md:2: none.md leads nowhere",
    "docs/a.md:2: #nope: there is no such heading",
    "docs/a.md:2: b.md#third: there is no such heading",
    "docs/a.md:6: ../../out.md leads out of the repository",
  ]);
});

test("length: over the limit, over the exception, and exceptions that could be tighter", () => {
  const lengths = new Map([
    ["src/long.ts", 451],
    ["src/fine.ts", 450],
    ["src/grown.ts", 601],
    ["src/shrunk.ts", 500],
    ["src/small.ts", 100],
  ]);
  const exceptions = { "src/grown.ts": 600, "src/shrunk.ts": 550, "src/small.ts": 470 };
  expect(lengthProblems(lengths, exceptions)).toEqual([
    "src/long.ts: 451 lines, at most 450: split it by ideas",
    "src/grown.ts: 601 lines, at most 600: split it by ideas",
    "scripts/ratchets.json: src/shrunk.ts has 500 lines now: lower its number from 550",
    "scripts/ratchets.json: src/small.ts needs no exception any more: take it off",
  ]);
});

test("coverage: reports are united line by line; a file that no test loads counts as 0", () => {
  const coverage = new Map();
  addLcov(coverage, "SF:src/a.ts\nDA:1,1\nDA:2,0\nDA:3,0\nDA:4,0\nend_of_record\n");
  addLcov(
    coverage,
    "SF:/some/clone/src/a.ts\nDA:1,0\nDA:2,5\nend_of_record\nSF:src/b.ts\nDA:1,1\nend_of_record\n",
  );
  expect(coveragePercent(coverage, "src/a.ts")).toBe(50);
  expect(coveragePercent(coverage, "src/b.ts")).toBe(100);
  expect(coveragePercent(coverage, "src/never.ts")).toBe(0);
});

test("coverage: below the limit or the exception, and exceptions that could be tighter", () => {
  const percents = new Map([
    ["low.ts", 84.9],
    ["fine.ts", 85],
    ["worker.ts", 10],
    ["worse.ts", 9],
    ["better.ts", 40],
    ["healed.ts", 90],
  ]);
  const e = (min: number) => ({ min, reason: "r" });
  const exceptions = {
    "worker.ts": e(10),
    "worse.ts": e(10),
    "better.ts": e(10),
    "healed.ts": e(50),
    "gone.ts": e(1),
  };
  expect(coverageProblems(percents, exceptions)).toEqual([
    "low.ts: 84.9 % of lines covered, at least 85 %",
    "worse.ts: 9.0 % of lines covered, at least 10 %",
    "scripts/ratchets.json: better.ts is at 40.0 % now: raise its number from 10",
    "scripts/ratchets.json: healed.ts is at 90.0 % now: take it off",
    "scripts/ratchets.json: gone.ts is not there any more: take it off",
  ]);
});

test("coverage: a file of types and comments needs no test", () => {
  expect(
    hasCode('/** c */\nimport type { A } from "./a.ts";\nexport interface B { a: A }\nexport type C = 1;\n'),
  ).toBeFalse();
  expect(hasCode("export type C = 1;\nexport const c = 1;\n")).toBeTrue();
});

test("a program's output becomes the problems; a check that throws has failed", async () => {
  const checks = [
    programCheck("bad", ["bash", "-c", "echo seen; exit 3"]),
    programCheck("good", ["true"]),
    { name: "throws", run: () => Promise.reject(new Error("no")) },
  ];
  const results = await runChecks(room, checks, () => {});
  const problems = Object.fromEntries(results.map((r) => [r.name, r.problems]));
  expect(problems).toEqual({ bad: ["seen"], good: [], throws: ["the check itself failed: Error: no"] });
});

const IMAGE = `FROM debian AS build
RUN make
FROM scratch
LABEL org.opencontainers.image.version="1.2.3"
USER 65532:65532
HEALTHCHECK --interval=15s \\
  CMD ["/usr/local/bin/twg", "health", "-c", "/etc/twg/twg.toml"]
ENTRYPOINT ["/usr/local/bin/twg"]
CMD ["stream"]
`;

test.each([
  ["", IMAGE],
  ["the shipped stage is not FROM scratch", IMAGE.replace("FROM scratch", "FROM debian")],
  ["USER is no number above 0", IMAGE.replace("65532:65532", "root")],
  ["USER is no number above 0", IMAGE.replace("65532:65532", "0")],
  ["RUN needs a shell, which the image lacks", `${IMAGE}RUN ls\n`],
  ["ENTRYPOINT is not a JSON list: it would need a shell", IMAGE.replace(/ENTRYPOINT .*/, "ENTRYPOINT twg")],
  ["HEALTHCHECK does not ask by twg health", IMAGE.replace('"health"', '"--version"')],
  ["no label says version 1.2.3", IMAGE.replace("1.2.3", "1.2.2")],
])("image: %s", (problem, text) => {
  expect(imageProblems(text, "1.2.3")).toEqual(problem === "" ? [] : [problem]);
});
