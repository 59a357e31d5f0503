/**
 * Every check and test, counted. Called by scripts/test.sh, which sets the machine up first.
 *
 *   --fast     checks and unit tests only: what the git hooks run
 *   --served   the tests with real servers and the long runs only
 *   --strict   a skip is a failure (TWG_STRICT=1 says the same)
 *   --lanes N  processes for tests with real servers, each with servers of its own (2 where there is memory for it)
 *
 * The last line is `N passed, N failed, N skipped`; the exit code is 0 only if nothing failed, and in strict mode
 * nothing was skipped. Whole outputs are in .cache/logs.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { Glob } from "bun";
import packageJson from "../package.json";
import { PORTS } from "../test/servers/ports.ts";
import { CHECKS, printCheck, runChecks } from "./check.ts";
import { coverageRatchet } from "./checks/ratchets.ts";
import { LONG_RUNS, type LongRun } from "./long-runs.ts";
import { lanesFor, portsOf, split } from "./served-lanes.ts";
import servedSeconds from "./served-seconds.json";
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
  secondsByFile,
} from "./test-counts.ts";

const repo = resolve(import.meta.dir, "..");
const logs = join(repo, ".cache/logs");
const binary = join(repo, "dist/twg");
const coverageOf = (phase: string) => join(repo, ".cache/coverage", phase);

/** Folders whose tests need real servers. */
const SERVED = ["test/real/", "test/e2e/", "test/servers/", "test/readers/"];
/** Of unit tests, which use little but the CPU. */
const UNIT_PHASES: readonly string[] = availableParallelism() > 1 ? ["unit-1", "unit-2"] : ["unit-1"];
/** Builds for every machine, run in containers: too long for the hooks. */
const MACHINES = "test/machines/";
const MINUTE = 60_000;
/** Of one test that sets no limit itself: it ends what hangs, and is far above any real wait. */
const TEST_LIMIT_MS = 60_000;

interface Options {
  readonly strict: boolean;
  readonly fast: boolean;
  readonly served: boolean;
  readonly lanes: number;
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

/** Seconds of test files and long runs, as they took now. */
const took: Record<string, number> = {};

async function tests(phase: string, files: readonly string[], limitMs: number): Promise<Counts> {
  if (files.length === 0) return NOTHING;
  const dir = coverageOf(phase);
  rmSync(dir, { recursive: true, force: true });
  const coverage = ["--coverage", "--coverage-reporter=lcov", `--coverage-dir=${dir}`];
  const argv = [
    process.execPath,
    "test",
    `--timeout=${TEST_LIMIT_MS}`,
    ...coverage,
    ...files.map((f) => `./${f}`),
  ];
  const { code, output } = await run(
    `tests-${phase}`,
    argv,
    limitMs,
    existsSync(binary) ? { TWG_BINARY: binary } : {},
  );
  const counts = bunTestCounts(output, code);
  Object.assign(took, secondsByFile(output));
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

async function longRun({ name, script, args, zero }: LongRun): Promise<Counts> {
  const line = (packageJson.scripts as Record<string, string | undefined>)[script];
  const file = line?.split(" ").find((w) => w.endsWith(".ts"));
  if (file === undefined || !existsSync(join(repo, file))) {
    console.log(`SKIP  ${name}: package.json has no script of that name with a file that exists`);
    return ONE_SKIPPED;
  }
  const began = performance.now();
  const { code, output } = await run(name, [process.execPath, "run", script, ...args], 6 * MINUTE);
  took[name] = Math.round((performance.now() - began) / 1000);
  const lines = jsonLines(output);
  const problem = longRunProblem(lines, code, zero);
  for (const l of lines) console.log(`        ${JSON.stringify(l)}`);
  if (problem !== null) {
    console.log(`FAIL  ${name}: ${problem}`);
    showEnd(output, 30);
    return ONE_FAILED;
  }
  console.log(`ok    ${name}`);
  return ONE_PASSED;
}

async function longRuns(runs: readonly LongRun[]): Promise<Counts> {
  let counts = NOTHING;
  for (const r of runs) counts = addCounts(counts, await longRun(r));
  return counts;
}

async function coverage(lanes: number): Promise<Counts> {
  const reports = [...UNIT_PHASES, ...Array.from({ length: lanes }, (_, lane) => laneName(lane))]
    .map((phase) => join(coverageOf(phase), "lcov.info"))
    .filter((f) => existsSync(f));
  const problems =
    reports.length === 0 ? ["no test run left a coverage report"] : await coverageRatchet(repo, reports);
  printCheck({ name: "coverage of every file", ms: 0, problems });
  return problems.length === 0 ? ONE_PASSED : ONE_FAILED;
}

/** What one process of the served tests has to do: the same in whoever asks. */
function workOf(lane: number, lanes: number): { files: string[]; runs: LongRun[] } {
  const files = testFiles().filter((f) => SERVED.some((s) => f.startsWith(s)));
  const all = [...files, ...LONG_RUNS.map((r) => r.name)];
  const mine = new Set(split(all, servedSeconds, lanes)[lane]);
  return { files: files.filter((f) => mine.has(f)), runs: LONG_RUNS.filter((r) => mine.has(r.name)) };
}

/** What a lane says to whoever started it. */
interface LaneReport {
  readonly counts: Counts;
  readonly took: Readonly<Record<string, number>>;
}

/** The tests and long runs of one lane, in a process of its own below scripts/with-servers.sh. */
async function servedPhases(report: string, lane: number, lanes: number): Promise<void> {
  const { files, runs } = workOf(lane, lanes);
  const counts = addCounts(await tests(laneName(lane), files, 45 * MINUTE), await longRuns(runs));
  writeFileSync(report, JSON.stringify({ counts, took } satisfies LaneReport));
}

/** Side by side: each file in one process, every other one in the next. */
async function unitTests(limitMs: number): Promise<Counts> {
  const files = testFiles().filter((f) => ![...SERVED, MACHINES].some((s) => f.startsWith(s)));
  const parts = UNIT_PHASES.map((phase, i) => ({
    phase,
    files: files.filter((_, n) => n % UNIT_PHASES.length === i),
  }));
  const counts = await Promise.all(parts.map((p) => tests(p.phase, p.files, limitMs)));
  return counts.reduce(addCounts, NOTHING);
}

const laneName = (lane: number) => `served-${lane + 1}`;

async function servedLane(lane: number, { strict, lanes }: Options): Promise<() => Counts> {
  const name = laneName(lane);
  const report = join(logs, `${name}.json`);
  rmSync(report, { force: true });
  rmSync(coverageOf(name), { recursive: true, force: true });
  const inner = [process.execPath, join(import.meta.dir, "test.ts"), "--served-report", report];
  const place = ["--lane", String(lane), "--lanes", String(lanes)];
  const argv = [join(import.meta.dir, "with-servers.sh"), ...inner, ...place];
  const ports = portsOf(process.env["TWG_PORTS"] ?? PORTS, lane, lanes);
  const env = { TWG_PORTS: ports, ...(strict ? { TWG_STRICT: "1" } : {}) };
  const { output } = await run(name, argv, 60 * MINUTE, env);
  // Told once all lanes are through, or their lines would be mixed.
  return () => {
    showEnd(output, 400);
    const ended = existsSync(report) ? (JSON.parse(readFileSync(report, "utf8")) as LaneReport) : null;
    if (ended === null) console.log(`FAIL  ${name}: tests with real servers did not run to their end`);
    const { counts } = ended ?? { counts: ONE_FAILED };
    Object.assign(took, ended?.took);
    if (counts.failed > 0) showWork(lane, lanes);
    return counts;
  };
}

/** What ran in the process where something failed: what one test left behind may have met another. */
function showWork(lane: number, lanes: number): void {
  const { files, runs } = workOf(lane, lanes);
  const all = [...files, ...runs.map((r) => r.name)];
  console.log(
    `        ${laneName(lane)} of ${lanes} had ${files.length} test files and ${runs.length} long runs:`,
  );
  for (const name of all) console.log(`          ${name}`);
}

async function served(options: Options): Promise<Counts> {
  const lanes = Array.from({ length: options.lanes }, (_, lane) => servedLane(lane, options));
  let counts = NOTHING;
  for (const tell of await Promise.all(lanes)) counts = addCounts(counts, tell());
  const sorted = Object.entries(took).sort(([a], [b]) => (a < b ? -1 : 1));
  writeFileSync(
    join(logs, "served-seconds.json"),
    `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`,
  );
  return counts;
}

async function checks(): Promise<Counts> {
  const results = await runChecks(repo, CHECKS, printCheck);
  const failed = results.filter((r) => r.problems.length > 0).length;
  return { passed: results.length - failed, failed, skipped: 0 };
}

async function everything(options: Options): Promise<Counts> {
  if (options.served) return await served(options);
  let counts = await checks();
  if (options.fast) return addCounts(counts, await unitTests(5 * MINUTE));
  counts = addCounts(counts, await build());
  counts = addCounts(counts, await unitTests(8 * MINUTE));
  const machines = testFiles().filter((f) => f.startsWith(MACHINES));
  counts = addCounts(counts, await tests("machines", machines, 8 * MINUTE));
  counts = addCounts(counts, await served(options));
  return addCounts(counts, await coverage(options.lanes));
}

const sentence = (c: Counts) => `${c.passed} passed, ${c.failed} failed, ${c.skipped} skipped`;

const { values } = parseArgs({
  options: {
    strict: { type: "boolean", default: process.env["TWG_STRICT"] === "1" },
    fast: { type: "boolean", default: false },
    served: { type: "boolean", default: false },
    lanes: { type: "string" },
    lane: { type: "string", default: "0" },
    "served-report": { type: "string" },
  },
});
const lanes = Number(values.lanes ?? lanesFor());
mkdirSync(logs, { recursive: true });
if (values["served-report"] !== undefined) {
  await servedPhases(values["served-report"], Number(values.lane), lanes);
  process.exit(0);
}
const counts = await everything({ ...values, lanes });
const skipsFail = values.strict && counts.skipped > 0;
if (skipsFail) console.log(`\nstrict: ${counts.skipped} skipped, which is a failure here`);
console.log(`\n${sentence(counts)}`);
process.exit(counts.failed > 0 || skipsFail ? 1 : 0);
