/** Counting: what a test run or a long run said at its end, as numbers of passed, failed and skipped. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export const NOTHING: Counts = { passed: 0, failed: 0, skipped: 0 };
export const ONE_PASSED: Counts = { ...NOTHING, passed: 1 };
export const ONE_FAILED: Counts = { ...NOTHING, failed: 1 };
export const ONE_SKIPPED: Counts = { ...NOTHING, skipped: 1 };

export function addCounts(a: Counts, b: Counts): Counts {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped };
}

/**
 * Bun's closing lines (` 8 pass`, ` 1 skip`, ` 1 todo`, ` 0 fail`, `Ran 10 tests across 2 files.`). A run that
 * ended badly without a failed test, or without its closing line (a crash), counts one failure.
 */
export function bunTestCounts(output: string, exitCode: number): Counts {
  const last = (word: string) =>
    Number(
      output
        .match(new RegExp(`^ *(\\d+) ${word}$`, "gm"))
        ?.at(-1)
        ?.trim()
        .split(" ")[0] ?? 0,
    );
  const counts = { passed: last("pass"), failed: last("fail"), skipped: last("skip") + last("todo") };
  const closed = /^Ran \d+ tests? across \d+ files?\./m.test(output);
  const silent = counts.failed === 0 && (exitCode !== 0 || !closed);
  return silent ? { ...counts, failed: 1 } : counts;
}

/** Whole seconds that the tests of each file took, from Bun's lines (`test/a.test.ts:`, `(pass) name [12.34ms]`). */
export function secondsByFile(output: string): Record<string, number> {
  const ms = new Map<string, number>();
  let file = "";
  for (const line of output.split("\n")) {
    const [, heading] = /^(test\/\S+\.test\.ts):$/.exec(line) ?? [];
    if (heading !== undefined) file = heading;
    const [, took] = /^\((?:pass|fail)\) .* \[([\d.]+)ms\]$/.exec(line) ?? [];
    if (took !== undefined && file !== "") ms.set(file, (ms.get(file) ?? 0) + Number(took));
  }
  return Object.fromEntries([...ms].map(([f, t]) => [f, Math.round(t / 1000)]));
}

export type JsonLine = Readonly<Record<string, unknown>>;

/** The lines of an output that are JSON objects. */
export function jsonLines(output: string): JsonLine[] {
  return output.split("\n").flatMap((line) => {
    if (!line.startsWith("{")) return [];
    try {
      return [JSON.parse(line) as JsonLine];
    } catch {
      return [];
    }
  });
}

/** Why the last lines of a long run mean failure, or null. `zero`: fields that must be 0 wherever they stand. */
export function longRunProblem(
  lines: readonly JsonLine[],
  exitCode: number,
  zero: readonly string[],
): string | null {
  if (exitCode !== 0) return `ended with ${exitCode}`;
  if (lines.length === 0) return "printed no JSON line";
  for (const line of lines) {
    for (const field of zero)
      if (line[field] !== 0) return `${field} is ${JSON.stringify(line[field])}: ${JSON.stringify(line)}`;
    if ("produced" in line && line["produced"] === 0) return `nothing was produced: ${JSON.stringify(line)}`;
  }
  return null;
}
