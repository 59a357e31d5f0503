/** `twg config validate`: all problems of a file, without network, without secrets. */
import type { Problem } from "../core/config/problem.ts";
import { asFailure } from "../core/failure/failure.ts";
import type { Cli } from "./cli.ts";
import { outJson } from "./cli.ts";
import { checkFile } from "./config-file.ts";
import { reportProblems } from "./report.ts";

export async function runConfigValidate(
  options: { config: string; json: boolean },
  cli: Cli,
): Promise<number> {
  const problems = await problemsOfFile(options.config);
  if (options.json) {
    outJson(cli, { file: options.config, ok: problems.length === 0, problems });
    return problems.length === 0 ? 0 : 2;
  }
  if (problems.length > 0) return reportProblems(options.config, problems, cli);
  cli.out(`${options.config}: ok\n`);
  return 0;
}

/** A file that cannot be read is a problem like the others, so that `--json` always answers in one shape. */
async function problemsOfFile(path: string): Promise<readonly Problem[]> {
  try {
    const result = await checkFile(path);
    return result.ok ? [] : result.problems;
  } catch (e) {
    const failure = asFailure(e);
    if (failure.kind !== "config") throw failure;
    const { code, message, hint } = failure;
    return [{ code, file: path, line: 0, path: "(document)", seen: message, allowed: "", hint: hint ?? "" }];
  }
}
