/**
 * The static checks: everything that can be said of the repository without running it.
 *
 *   bun scripts/check.ts [NAME...]     names or parts of names; none: all
 */
import { cpus } from "node:os";
import { resolve } from "node:path";
import { bans } from "./checks/bans.ts";
import { type Check, type Findings, programCheck } from "./checks/check.ts";
import { advisories, licences, purity } from "./checks/dependencies.ts";
import { deploy } from "./checks/deploy.ts";
import { docsLinks } from "./checks/docs.ts";
import { generated } from "./checks/generated.ts";
import { hygiene } from "./checks/hygiene.ts";
import { ranks } from "./checks/ranks.ts";
import { fileLength } from "./checks/ratchets.ts";
import { shell } from "./checks/shell.ts";

const tool = (name: string) => resolve(import.meta.dir, "../node_modules/.bin", name);

/** Slowest first, since they run side by side. Complexity is a rule of biome's. */
export const CHECKS: readonly Check[] = [
  programCheck("types", [tool("tsc"), "--noEmit"]),
  programCheck("dead files and exports", [
    process.execPath,
    tool("knip"),
    "--no-progress",
    "--no-config-hints",
  ]),
  ranks,
  programCheck("format and lint", [
    tool("biome"),
    "ci",
    "--colors=off",
    "--max-diagnostics=50",
    "--diagnostic-level=error",
  ]),
  purity,
  bans,
  shell,
  deploy,
  generated,
  hygiene,
  licences,
  advisories,
  fileLength,
  docsLinks,
];

export interface CheckResult extends Findings {
  readonly name: string;
  readonly ms: number;
}

/** Runs them, a few at a time; a check that throws has failed. */
export async function runChecks(
  repo: string,
  checks: readonly Check[],
  report: (result: CheckResult) => void,
): Promise<CheckResult[]> {
  const queue = [...checks];
  const results: CheckResult[] = [];
  const worker = async () => {
    for (let check = queue.shift(); check !== undefined; check = queue.shift()) {
      const began = performance.now();
      const findings = await check
        .run(repo)
        .catch((e: unknown) => ({ problems: [`the check itself failed: ${e}`] }));
      const result = { name: check.name, ms: performance.now() - began, ...findings };
      results.push(result);
      report(result);
    }
  };
  await Promise.all(Array.from({ length: cpus().length }, worker));
  return results;
}

export function printCheck({ name, ms, problems, notes }: CheckResult): void {
  console.log(`${problems.length === 0 ? "ok  " : "FAIL"}  ${name} (${(ms / 1000).toFixed(1)} s)`);
  for (const p of problems.slice(0, 60)) console.log(`        ${p}`);
  if (problems.length > 60) console.log(`        and ${problems.length - 60} more`);
  for (const n of notes ?? []) console.log(`        note: ${n}`);
}

if (import.meta.main) {
  const wanted = process.argv.slice(2);
  const chosen = CHECKS.filter((c) => wanted.length === 0 || wanted.some((w) => c.name.includes(w)));
  if (chosen.length === 0) {
    console.error(`no check is called that; there are: ${CHECKS.map((c) => c.name).join(", ")}`);
    process.exit(2);
  }
  const results = await runChecks(resolve(import.meta.dir, ".."), chosen, printCheck);
  const failed = results.filter((r) => r.problems.length > 0).length;
  console.log(`${results.length - failed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}
