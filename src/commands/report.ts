/** How failures and problems are told to a person on the error stream. */
import { type Problem, problemLine } from "../core/config/problem.ts";
import { asFailure, failureLine } from "../core/failure/failure.ts";
import type { Cli } from "./cli.ts";
import { exitCodeOf } from "./exit-code.ts";
import { printable, styled } from "./style.ts";

/** Prints the failure and gives the process's exit code for it. */
export function reportFailure(error: unknown, cli: Cli): number {
  const failure = asFailure(error);
  if (Array.isArray(failure.cause) && failure.cause.every(isProblem)) {
    return reportProblems(failure.cause[0]?.file ?? "", failure.cause, cli);
  }
  cli.err(`${styled("error", "red", cli.errColour)}: ${printable(failureLine(failure))}\n`);
  if (failure.code === "internal.bug" && failure.stack !== undefined) cli.err(`${failure.stack}\n`);
  return exitCodeOf(failure);
}

export function reportProblems(file: string, problems: readonly Problem[], cli: Cli): number {
  for (const problem of problems)
    cli.err(`${styled("error", "red", cli.errColour)}: ${printable(problemLine(problem))}\n`);
  cli.err(`${problems.length === 1 ? "1 problem" : `${problems.length} problems`} in ${printable(file)}\n`);
  return 2;
}

function isProblem(value: unknown): value is Problem {
  return typeof value === "object" && value !== null && "code" in value && "allowed" in value;
}
