/** `twg inspect coverage` on the command line. */
import { type Command, Option } from "commander";
import type { Cli } from "./cli.ts";
import type { InspectCoverageOptions } from "./inspect-coverage.ts";
import type { InspectDuplicatesOptions } from "./inspect-duplicates.ts";

export function addInspectDuplicates(inspect: Command, cli: Cli, finish: (code: number) => void): void {
  inspect
    .command("duplicates")
    .description("Show since when records of each partition are judged as duplicates, and by which plan.")
    .addOption(new Option("-c, --config <file>", "the pipeline's TOML file").makeOptionMandatory())
    .addOption(new Option("--json", "print JSON").default(false, "text"))
    .addHelpText("after", "\nExamples:\n  twg inspect duplicates -c orders.toml")
    .action(async (options: InspectDuplicatesOptions) => {
      finish(await (await import("./inspect-duplicates.ts")).runInspectDuplicates(options, cli));
    });
}

export function addInspectCoverage(inspect: Command, cli: Cli, finish: (code: number) => void): void {
  inspect
    .command("coverage")
    .description("Show what is covered per partition, with holes and gaps, and what is lost.")
    .argument("[path]", "folder or s3:// prefix of the sink, instead of -c")
    .addOption(new Option("-c, --config <file>", "the pipeline's TOML file"))
    .addOption(new Option("--json", "print JSON").default(false, "text"))
    .option(
      "--rebuild",
      "make the raw sink's index, and what it covers, anew from its files; the pipeline must be stopped",
      false,
    )
    .option(
      "--record-lost",
      "record as lost what sinks lack and raw has no file of any more; the pipeline must be stopped",
      false,
    )
    .addHelpText(
      "after",
      "\nExamples:\n  twg inspect coverage -c orders.toml\n  twg inspect coverage ./quickstart-data --json",
    )
    .action(async (path: string | undefined, options: Omit<InspectCoverageOptions, "path">) => {
      finish(await (await import("./inspect-coverage.ts")).runInspectCoverage({ ...options, path }, cli));
    });
}
