/** `twg recover` on the command line. */
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Cli } from "./cli.ts";
import type { RecoverOptions } from "./recover.ts";

export function addRecover(program: Command, cli: Cli, finish: (code: number) => void): void {
  program
    .command("recover")
    .description(
      "Fill the gaps of sinks beside the primary one from raw files, and end. The source is not asked; `twg stream` of this file may run meanwhile.",
    )
    .requiredOption("-c, --config <file>", "the pipeline's TOML file")
    .addOption(new Option("--sink <name...>", "these sinks instead of all that lack something").default([]))
    .addOption(new Option("--topic <name...>", "records of these topics only").default([]))
    .addOption(new Option("--from <position>", "first position of each partition").argParser(position))
    .addOption(new Option("--to <position>", "the position after the last one").argParser(position))
    .option(
      "--replan",
      "decode by the configuration of now, and not as the records were decoded at their time",
      false,
    )
    .option("--dry-run", "print what is missing and end", false)
    .option(
      "--once",
      'end once what is missing now is there, which is what happens anyway: a process that goes on recovering is `twg stream` with role = "recovery"',
      false,
    )
    .addOption(new Option("--json", "print JSON").default(false, "text"))
    .addOption(
      new Option("--log-level <level>", "least level of what is told on standard error")
        .choices(["debug", "info", "warn", "error"])
        .default("warn"),
    )
    .addHelpText(
      "after",
      "\nExamples:\n  twg recover -c orders.toml --dry-run\n  twg recover -c orders.toml --sink orders-table\n  twg recover -c orders.toml --once --sink orders-table --from 1000 --to 2000",
    )
    .action(async (options: RecoverOptions) =>
      finish(await (await import("./recover.ts")).runRecover(options, cli)),
    );
}

function position(text: string): bigint {
  if (/^\d{1,18}$/.test(text)) return BigInt(text);
  throw new InvalidArgumentError("a position is a whole number.");
}
