/**
 * Ratchets: limits that hold for every file of src/, with exceptions that may only get better.
 * scripts/ratchets.json lists the exceptions; one that is no longer needed, or could be tighter, fails too.
 */
import { type Check, readJson, readText, repositoryFiles } from "./check.ts";

const MAX_LINES = 450;
const MIN_COVERAGE = 85; // per cent of lines

interface CoverageException {
  /** Per cent of lines that are covered at least. */
  readonly min: number;
  readonly reason: string;
}

export interface Ratchets {
  /** Lines by file; the number may only fall. */
  readonly lines: Readonly<Record<string, number>>;
  readonly coverage: Readonly<Record<string, CoverageException>>;
}

export async function sourceFiles(repo: string): Promise<string[]> {
  return (await repositoryFiles(repo)).filter((f) => f.startsWith("src/") && f.endsWith(".ts"));
}

export const fileLength: Check = {
  name: "file length",
  async run(repo) {
    const { lines } = await readJson<Ratchets>(repo, "scripts/ratchets.json");
    const files = await sourceFiles(repo);
    const lengths = new Map<string, number>();
    for (const f of files) lengths.set(f, (await readText(repo, f)).split("\n").length - 1);
    return { problems: lengthProblems(lengths, lines) };
  },
};

export function lengthProblems(
  lengths: ReadonlyMap<string, number>,
  exceptions: Ratchets["lines"],
): string[] {
  const problems: string[] = [];
  for (const [file, n] of lengths) {
    const allowed = exceptions[file] ?? MAX_LINES;
    if (n > allowed) problems.push(`${file}: ${n} lines, at most ${allowed}: split it by ideas`);
  }
  for (const [file, allowed] of Object.entries(exceptions)) {
    const n = lengths.get(file) ?? 0;
    if (n <= MAX_LINES)
      problems.push(`scripts/ratchets.json: ${file} needs no exception any more: take it off`);
    else if (n < allowed)
      problems.push(`scripts/ratchets.json: ${file} has ${n} lines now: lower its number from ${allowed}`);
  }
  return problems;
}

/** Line hits of one file: line -> was it run. */
type Hits = Map<number, boolean>;

/** Adds what one lcov report says. A line counts as run if any report saw it run. */
export function addLcov(coverage: Map<string, Hits>, lcov: string): void {
  let hits: Hits = new Map();
  for (const line of lcov.split("\n")) {
    if (line.startsWith("SF:")) {
      const file = line.slice(3).replace(/^.*?(?=src\/)/, "");
      hits = coverage.get(file) ?? new Map();
      coverage.set(file, hits);
    } else if (line.startsWith("DA:")) {
      const [at, count] = line.slice(3).split(",").map(Number) as [number, number];
      hits.set(at, count > 0 || (hits.get(at) ?? false));
    }
  }
}

/** Per cent of lines that ran, by file; a file that no test loads counts as 0. */
export function coveragePercent(coverage: ReadonlyMap<string, Hits>, file: string): number {
  const hits = coverage.get(file);
  if (hits === undefined || hits.size === 0) return 0;
  return (100 * [...hits.values()].filter(Boolean).length) / hits.size;
}

/** True if nothing of a file is left at run time: types and comments need no test. */
export function hasCode(text: string): boolean {
  const js = new Bun.Transpiler({ loader: "ts" }).transformSync(text);
  const rest = js.replace(/\/\/.*$/gm, "").replace(/^\s*(import\b[^;]*;|export\s*\{\s*\};?)\s*$/gm, "");
  return rest.trim() !== "";
}

export function coverageProblems(
  percents: ReadonlyMap<string, number>,
  exceptions: Ratchets["coverage"],
): string[] {
  const problems: string[] = [];
  for (const [file, percent] of percents) {
    const min = exceptions[file]?.min ?? MIN_COVERAGE;
    if (percent < min) problems.push(`${file}: ${percent.toFixed(1)} % of lines covered, at least ${min} %`);
  }
  for (const [file, { min }] of Object.entries(exceptions)) {
    const percent = percents.get(file);
    if (percent === undefined)
      problems.push(`scripts/ratchets.json: ${file} is not there any more: take it off`);
    // A few points of slack: which lines run varies a little with timing.
    else if (percent >= MIN_COVERAGE && min < MIN_COVERAGE)
      problems.push(`scripts/ratchets.json: ${file} is at ${percent.toFixed(1)} % now: take it off`);
    else if (percent > min + 5)
      problems.push(
        `scripts/ratchets.json: ${file} is at ${percent.toFixed(1)} % now: raise its number from ${min}`,
      );
  }
  return problems;
}

/** The coverage ratchet over lcov reports that test runs wrote. */
export async function coverageRatchet(repo: string, reports: readonly string[]): Promise<string[]> {
  const coverage = new Map<string, Hits>();
  for (const report of reports) addLcov(coverage, await Bun.file(report).text());
  const percents = new Map<string, number>();
  for (const file of await sourceFiles(repo))
    if (hasCode(await readText(repo, file))) percents.set(file, coveragePercent(coverage, file));
  return coverageProblems(percents, (await readJson<Ratchets>(repo, "scripts/ratchets.json")).coverage);
}
