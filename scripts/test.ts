/**
 * Every check and test, counted. Called by scripts/test.sh, which sets the machine up first.
 *
 *   --fast     checks and unit tests only: what the git hooks run
 *   --strict   a skip is a failure (TWG_STRICT=1 says the same)
 *
 * The last line is `N passed, N failed, N skipped`; the exit code is 0 only if nothing failed, and in strict mode
 * nothing was skipped. Whole outputs are in .cache/logs.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { Glob } from "bun";
import packageJson from "../package.json";
import { CHECKS, printCheck, runChecks } from "./check.ts";
import { coverageRatchet } from "./checks/ratchets.ts";
import {
  addCounts,
  bunTestCounts,
  type Counts,
  jsonLines,
  longRunProblem,
  NOTHING,
  ONE_FAILED,
  ONE_PASSED,
  ONE_SKIPPED,
} from "./test-counts.ts";

const repo = resolve(import.meta.dir, "..");
const logs = join(repo, ".cache/logs");
const binary = join(repo, "dist/twg");
const coverageOf = (phase: string) => join(repo, ".cache/coverage", phase);

/** Folders whose tests need real servers. */
const SERVED = ["test/real/", "test/e2e/", "test/servers/", "test/readers/"];
/** Builds for every machine, run in containers: too long for the hooks. */
const MACHINES = "test/machines/";
const MINUTE = 60_000;

/** Long commands in a small size, so that they cannot rot; each is one test. */
interface LongRun {
  readonly script: string;
  readonly args: readonly string[];
  /** Fields that must be 0 in every JSON line. */
  readonly zero: readonly string[];
  readonly served: boolean;
}
const LONG_RUNS: readonly LongRun[] = [
  { script: "sim", args: ["--scenario", "raw", "--seeds", "100", "--json"], zero: ["failed"], served: false },
  { script: "fuzz", args: ["--cases", "20000", "--json"], zero: ["crashes", "hangs"], served: false },
  {
    script: "torture",
    args: ["--sink", "parquet", "--kills", "8", "--seed", "1", "--json"],
    zero: ["lost", "doubled", "orphans"],
    served: true,
  },
  {
    script: "torture",
    args: ["--sink", "s3", "--proxy", "0.05", "--kills", "5", "--seed", "2", "--json"],
    zero: ["lost", "doubled", "orphans"],
    served: true,
  },
  {
    script: "torture",
    args: ["--sink", "postgres", "--kills", "6", "--records", "20000", "--seed", "2", "--json"],
    zero: ["lost", "doubled", "orphans"],
    served: true,
  },
  {
    script: "torture",
    args: ["--sink", "kafka", "--kills", "2", "--records", "3000", "--seed", "3", "--json"],
    zero: ["lost", "doubled", "orphans", "differences"],
    served: true,
  },
  {
    script: "torture",
    args: ["--scenario", "groups", "--members", "3", "--minutes", "0.2", "--seed", "1", "--json"],
    zero: ["lost", "doubled", "orphans", "stuck", "intruders", "died", "differences"],
    served: true,
  },
  {
    script: "torture",
    args: ["--sink", "batch", "--destination", "postgres", "--kills", "4", "--records", "20000", "--json"],
    zero: ["lost", "doubled", "orphans", "differing_rejects"],
    served: true,
  },
  { script: "bench", args: ["--small", "--json"], zero: [], served: true },
];

interface Options {
  readonly strict: boolean;
  readonly fast: boolean;
}

interface Ran {
  readonly code: number;
  readonly output: string;
}

const running = new Set<Bun.Subprocess>();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.on(signal, async () => {
    for (const p of running) p.kill("SIGTERM");
    await Promise.all([...running].map((p) => p.exited));
    process.exit(130);
  });

/** Runs a command to its end or its limit; its whole output goes to a log file. */
async function run(
  name: string,
  argv: readonly string[],
  limitMs: number,
  env: Record<string, string> = {},
): Promise<Ran> {
  const began = performance.now();
  const log = join(logs, `${name}.log`);
  const child = Bun.spawn(
    ["bash", "-c", 'log=$1; shift; exec "$@" >"$log" 2>&1 </dev/null', "bash", log, ...argv],
    {
      cwd: repo,
      env: { ...process.env, ...env },
      stdin: "ignore",
    },
  );
  running.add(child);
  const limit = setTimeout(() => child.kill("SIGTERM"), limitMs);
  const hard = setTimeout(() => child.kill("SIGKILL"), limitMs + MINUTE);
  const code = await child.exited;
  clearTimeout(limit);
  clearTimeout(hard);
  running.delete(child);
  const ms = performance.now() - began;
  const late = ms >= limitMs ? `, stopped at its limit of ${limitMs / MINUTE} min` : "";
  console.log(`--    ${name}: ${(ms / 1000).toFixed(1)} s${late}`);
  return { code, output: readFileSync(log, "utf8") };
}

function showEnd(output: string, lines: number): void {
  for (const line of output.trimEnd().split("\n").slice(-lines)) console.log(`        ${line}`);
}

function testFiles(): string[] {
  return [...new Glob("test/**/*.test.ts").scanSync({ cwd: repo })].sort();
}

async function tests(phase: string, files: readonly string[], limitMs: number): Promise<Counts> {
  if (files.length === 0) return NOTHING;
  const dir = coverageOf(phase);
  rmSync(dir, { recursive: true, force: true });
  const coverage = ["--coverage", "--coverage-reporter=lcov", `--coverage-dir=${dir}`];
  const argv = [process.execPath, "test", "--timeout=30000", ...coverage, ...files.map((f) => `./${f}`)];
  const { code, output } = await run(
    `tests-${phase}`,
    argv,
    limitMs,
    existsSync(binary) ? { TWG_BINARY: binary } : {},
  );
  const counts = bunTestCounts(output, code);
  for (const line of output.split("\n"))
    if (/^SKIP|^\((skip|todo)\)/.test(line)) console.log(`        ${line}`);
  if (counts.failed > 0) {
    showFailures(output);
    showEnd(output, 12);
  }
  console.log(`${counts.failed === 0 ? "ok  " : "FAIL"}  ${phase} tests: ${sentence(counts)}`);
  return counts;
}

/** Each failed test with what Bun printed before it. */
function showFailures(output: string): void {
  let block: string[] = [];
  for (const line of output.split("\n")) {
    if (line.startsWith("1 tests failed:") || /^\d+ tests failed:/.test(line)) break;
    if (line.startsWith("(fail)")) for (const l of [...block.slice(-40), line]) console.log(`        ${l}`);
    if (/^\((pass|fail|skip|todo)\)/.test(line)) block = [];
    else block.push(line);
  }
}

async function build(): Promise<Counts> {
  if (!existsSync(join(repo, "src/main.ts"))) {
    console.log("SKIP  build: there is no src/main.ts yet");
    return ONE_SKIPPED;
  }
  const { code, output } = await run("build", [process.execPath, "scripts/build-binary.ts"], 5 * MINUTE);
  showEnd(output, code === 0 ? 4 : 30);
  return code === 0 ? ONE_PASSED : ONE_FAILED;
}

async function longRun({ script, args, zero }: LongRun): Promise<Counts> {
  const line = (packageJson.scripts as Record<string, string | undefined>)[script];
  const file = line?.split(" ").find((w) => w.endsWith(".ts"));
  if (file === undefined || !existsSync(join(repo, file))) {
    console.log(`SKIP  ${script}: package.json has no script of that name with a file that exists`);
    return ONE_SKIPPED;
  }
  const { code, output } = await run(script, [process.execPath, "run", script, ...args], 6 * MINUTE);
  const lines = jsonLines(output);
  const problem = longRunProblem(lines, code, zero);
  for (const l of lines) console.log(`        ${JSON.stringify(l)}`);
  if (problem !== null) {
    console.log(`FAIL  ${script}: ${problem}`);
    showEnd(output, 30);
    return ONE_FAILED;
  }
  console.log(`ok    ${script}`);
  return ONE_PASSED;
}

async function longRuns(served: boolean): Promise<Counts> {
  let counts = NOTHING;
  for (const r of LONG_RUNS) if (r.served === served) counts = addCounts(counts, await longRun(r));
  return counts;
}

async function coverage(): Promise<Counts> {
  const reports = ["unit", "served"]
    .map((p) => join(coverageOf(p), "lcov.info"))
    .filter((f) => existsSync(f));
  const problems =
    reports.length === 0 ? ["no test run left a coverage report"] : await coverageRatchet(repo, reports);
  printCheck({ name: "coverage of every file", ms: 0, problems });
  return problems.length === 0 ? ONE_PASSED : ONE_FAILED;
}

/** The tests and long runs that need servers, in a process of its own below scripts/with-servers.sh. */
async function servedPhases(report: string): Promise<void> {
  const files = testFiles().filter((f) => SERVED.some((s) => f.startsWith(s)));
  const counts = addCounts(await tests("served", files, 45 * MINUTE), await longRuns(true));
  writeFileSync(report, JSON.stringify(counts));
}

async function served(strict: boolean): Promise<Counts> {
  const report = join(logs, "served.json");
  rmSync(report, { force: true });
  const inner = [process.execPath, join(import.meta.dir, "test.ts"), "--served-report", report];
  const argv = [join(import.meta.dir, "with-servers.sh"), ...inner];
  const { output } = await run("served", argv, 60 * MINUTE, strict ? { TWG_STRICT: "1" } : {});
  showEnd(output, 400);
  if (existsSync(report)) return JSON.parse(readFileSync(report, "utf8")) as Counts;
  console.log("FAIL  tests with real servers: they did not run to their end");
  return ONE_FAILED;
}

async function checks(): Promise<Counts> {
  const results = await runChecks(repo, CHECKS, printCheck);
  const failed = results.filter((r) => r.problems.length > 0).length;
  return { passed: results.length - failed, failed, skipped: 0 };
}

async function everything({ strict, fast }: Options): Promise<Counts> {
  const unit = testFiles().filter((f) => ![...SERVED, MACHINES].some((s) => f.startsWith(s)));
  let counts = await checks();
  if (fast) return addCounts(counts, await tests("unit", unit, 5 * MINUTE));
  counts = addCounts(counts, await build());
  counts = addCounts(counts, await tests("unit", unit, 8 * MINUTE));
  const machines = testFiles().filter((f) => f.startsWith(MACHINES));
  counts = addCounts(counts, await tests("machines", machines, 8 * MINUTE));
  counts = addCounts(counts, await served(strict));
  counts = addCounts(counts, await longRuns(false));
  return addCounts(counts, await coverage());
}

const sentence = (c: Counts) => `${c.passed} passed, ${c.failed} failed, ${c.skipped} skipped`;

const { values } = parseArgs({
  options: {
    strict: { type: "boolean", default: process.env["TWG_STRICT"] === "1" },
    fast: { type: "boolean", default: false },
    "served-report": { type: "string" },
  },
});
mkdirSync(logs, { recursive: true });
if (values["served-report"] !== undefined) {
  await servedPhases(values["served-report"]);
  process.exit(0);
}
const counts = await everything(values);
const skipsFail = values.strict && counts.skipped > 0;
if (skipsFail) console.log(`\nstrict: ${counts.skipped} skipped, which is a failure here`);
console.log(`\n${sentence(counts)}`);
process.exit(counts.failed > 0 || skipsFail ? 1 : 0);
