/**
 * The command line: names, options, help. What a command does is loaded only when it runs, so that
 * `twg --version` pays for nothing but this file.
 */
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import type { BatchOptions } from "./batch-config.ts";
import type { Cli, StreamOptions } from "./cli.ts";
import type { DoctorOptions } from "./doctor.ts";
import type { HealthOptions } from "./health.ts";
import type { InspectKafkaOptions } from "./inspect-kafka.ts";
import type { InspectRejectsOptions } from "./inspect-rejects.ts";
import { addInspectCoverage, addInspectDuplicates } from "./program-inspect.ts";
import { addRecover } from "./program-recover.ts";
import { reportFailure } from "./report.ts";
import { VERSION } from "./version.ts";

export type { StreamOptions } from "./cli.ts";

/** What stands behind the commands; tests put others in. Each gives the exit code. */
export interface Handlers {
  stream(options: StreamOptions, cli: Cli): Promise<number>;
}

const HANDLERS: Handlers = {
  stream: async (options, cli) => (await import("./stream.ts")).runStream(options, cli),
};

type Finish = (code: number) => void;

/** `argv` without the program's own name. Never throws; the result is the process's exit code. */
export async function runCli(
  argv: readonly string[],
  cli: Cli,
  handlers: Handlers = HANDLERS,
): Promise<number> {
  let code = 0;
  const program = buildProgram(cli, handlers, (c) => {
    code = c;
  });
  try {
    await program.parseAsync(argv, { from: "user" });
    return code;
  } catch (e) {
    if (e instanceof CommanderError) return e.exitCode === 0 ? 0 : 2;
    return reportFailure(e, cli);
  }
}

/** The tree of commands, also read by the reference page and the completion scripts. */
export function buildProgram(
  cli: Cli,
  handlers: Handlers = HANDLERS,
  finish: Finish = () => undefined,
): Command {
  const program = new Command("twg")
    .description("Lands records in Parquet without losing or doubling one.")
    .version(VERSION, "-V, --version", "print the version")
    .helpOption("-h, --help", "print help for the command")
    .helpCommand("help [command]", "print help for a command")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => cli.out(text),
      writeErr: (text) => cli.err(text),
      outputError: (text, write) => write(text.replace(/^error: /, "error: cli.usage: ")),
      getOutHasColors: () => cli.outColour,
      getErrHasColors: () => cli.errColour,
    })
    .showHelpAfterError("(--help shows what there is)")
    .addHelpText("after", PROGRAM_EXAMPLES);
  addStream(program, cli, handlers, finish);
  addBatch(program, cli, finish);
  addRecover(program, cli, finish);
  addConfig(program, cli, finish);
  addDoctor(program, cli, finish);
  addHealth(program, cli, finish);
  addInspect(program, cli, finish);
  addCompletions(program, cli, finish);
  return program;
}

const PROGRAM_EXAMPLES = `
Examples:
  twg config init > orders.toml           a commented starter file
  twg config validate -c orders.toml      every problem of it at once, without network
  twg doctor -c orders.toml               try connections, rights, limits before it runs
  twg stream -c orders.toml               run the pipeline until it is stopped
  twg inspect coverage -c orders.toml     what has landed, per partition
  twg inspect rejects -c orders.toml      what could not be decoded, and why
  twg inspect kafka -c orders.toml        topics, leaders and lag, from the brokers

Exit codes: 0 done, 1 runtime failure, 2 configuration or command line, 3 environment.`;

const configOption = () =>
  new Option("-c, --config <file>", "the pipeline's TOML file").makeOptionMandatory();
const jsonOption = () => new Option("--json", "print JSON").default(false, "text");

function examples(...lines: string[]): string {
  return `\nExample${lines.length > 1 ? "s" : ""}:\n${lines.map((l) => `  ${l}`).join("\n")}`;
}

function addStream(program: Command, cli: Cli, handlers: Handlers, finish: Finish): void {
  program
    .command("stream")
    .description(
      "Run a pipeline: read the source and land every record, until stopped (SIGTERM drains). By `role` of [pipeline] it fills gaps of secondary sinks instead, or as well.",
    )
    .addOption(configOption())
    .option(
      "--accept-gap",
      "go on where commits are beyond coverage; what is missing is recorded as lost",
      false,
    )
    .addOption(
      new Option("--log-format <format>", "how logs are written to stderr")
        .choices(["json", "text"])
        .default("text"),
    )
    .addOption(
      new Option("--log-level <level>", "least level of what is logged")
        .choices(["debug", "info", "warn", "error"])
        .default("info"),
    )
    .option(
      "--until-caught-up",
      "end once everything that was there at the start has landed; where the role is to recover, once no sink is behind",
      false,
    )
    .addHelpText(
      "after",
      examples("twg stream -c orders.toml", "twg stream -c orders.toml --log-format json 2> orders.log"),
    )
    .action(async (options: StreamOptions) => finish(await handlers.stream(options, cli)));
}

function addBatch(program: Command, cli: Cli, finish: Finish): void {
  program
    .command("batch")
    .description(
      "Land a fixed set of files once and end. A file that has landed is known by its content and skipped; what was stopped goes on where it ended.",
    )
    .argument("[inputs...]", "files, globs and folders, http(s):// addresses, or - for standard input")
    .addOption(new Option("-c, --config <file>", "the job's TOML file, instead of inputs and options"))
    .option(
      "--to <place>",
      "folder or s3://bucket/prefix for Parquet files, or postgres://user@host/database",
    )
    .option("--to-secret <name>", "the database's url from a secret: a command line can be read by others")
    .option("--table <schema.table>", "of the database")
    .option("--create", "make the table where it is missing", false)
    .addOption(new Option("--mode <mode>", "how rows come into the table").choices(["append", "upsert"]))
    .option("--key <column...>", "columns that name a row, for --mode upsert")
    .option("--name <name>", "names the job in coverage: the same files land once under each name", "batch")
    .addOption(
      new Option("--format <format>", "of all files").choices([
        "auto",
        "csv",
        "ndjson",
        "json",
        "parquet",
        "avro",
      ]),
    )
    .addOption(new Option("--compression <codec>", "of all files").choices(["auto", "none", "gzip", "zstd"]))
    .option("--encoding <name>", "of text files: auto, utf-8, windows-1252, iso-8859-1, utf-16le, utf-16be")
    .option("--delimiter <char>", "between the fields of a CSV; \\t is the tab")
    .option("--quote <char>", 'around the fields of a CSV; "" for none')
    .addOption(
      new Option("--header <choice>", "whether a CSV begins with names").choices(["auto", "yes", "no"]),
    )
    .option("--null <text...>", "fields of a CSV that are null")
    .option(
      "--schema <file>",
      "schema as JSON (--print-schema writes one), a data contract, an Arrow or an Avro schema",
    )
    .addOption(
      new Option("--infer-rows <n>", "rows to infer a schema from").argParser(wholeNumberOf("--infer-rows")),
    )
    .addOption(
      new Option("--max-rejects <n>", "most rows that may be refused before the job fails").argParser(
        wholeNumberOf("--max-rejects"),
      ),
    )
    .addOption(
      new Option("--metadata <choice>", "columns that say where a row came from").choices([
        "none",
        "locator",
        "all",
      ]),
    )
    .addOption(new Option("--lanes <n>", "worker threads").argParser(wholeNumberOf("--lanes")))
    .option("--dry-run", "print the plan and end", false)
    .option("--print-schema", "print the schema and end", false)
    .addOption(jsonOption())
    .addOption(
      new Option("--log-level <level>", "least level of what is told on standard error")
        .choices(["debug", "info", "warn", "error"])
        .default("warn"),
    )
    .addHelpText(
      "after",
      examples(
        "twg batch orders.csv --to lake/orders",
        "twg batch 'in/*.csv.gz' --to s3://lake/orders --max-rejects 100",
        "twg batch orders.csv --to-secret warehouse-url --table public.orders --create",
        "twg batch orders.csv --print-schema > orders.schema.json",
        "twg batch -c import.toml --dry-run",
      ),
    )
    .action(async (inputs: string[], options: BatchOptions) =>
      finish(await (await import("./batch.ts")).runBatch(inputs, options, cli)),
    );
}

function wholeNumberOf(flag: string): (text: string) => number {
  return (text) => {
    if (/^\d{1,15}$/.test(text)) return Number(text);
    throw new InvalidArgumentError(`${flag} takes a whole number.`);
  };
}

function addConfig(program: Command, cli: Cli, finish: Finish): void {
  const config = program.command("config").description("Check, explain and start configuration files.");
  config
    .command("validate")
    .description(
      "Report every problem of a file with line, path, what was seen and what is allowed, or what may surprise in one without any. No network.",
    )
    .addOption(configOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      examples("twg config validate -c orders.toml", "twg config validate -c orders.toml --json"),
    )
    .action(async (options: { config: string; json: boolean }) => {
      finish(await (await import("./config-validate.ts")).runConfigValidate(options, cli));
    });
  config
    .command("explain")
    .description(
      "Print the configuration as it will run, defaults marked and secrets masked, and what will happen.",
    )
    .addOption(configOption())
    .addOption(jsonOption())
    .addHelpText("after", examples("twg config explain -c orders.toml"))
    .action(async (options: { config: string; json: boolean }) => {
      finish(await (await import("./config-explain.ts")).runConfigExplain(options, cli));
    });
  config
    .command("secrets")
    .description("List the secrets that a file uses and whether they are there. Exits 2 if one is not.")
    .addOption(configOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      examples(
        "twg config secrets -c orders.toml",
        "TWG_SECRET_KAFKA_PASSWORD=... twg config secrets -c orders.toml --json",
      ),
    )
    .action(async (options: { config: string; json: boolean }) => {
      finish(await (await import("./config-secrets.ts")).runConfigSecrets(options, cli));
    });
  config
    .command("schema")
    .description("Print the JSON Schema of configuration files, for editors.")
    .addHelpText("after", examples("twg config schema > twg.schema.json"))
    .action(async () => finish(await (await import("./config-schema.ts")).runConfigSchema(cli)));
  config
    .command("init")
    .description("Print a commented starter file.")
    .option("--source <type>", "type of the source", "kafka")
    .option("--sink <type>", "type of the sink", "parquet")
    .addHelpText(
      "after",
      examples("twg config init > orders.toml", "twg config init --source kafka --sink parquet"),
    )
    .action(async (options: { source: string; sink: string }) => {
      finish(await (await import("./config-init.ts")).runConfigInit(options, cli));
    });
}

const timeoutOption = (seconds: number, what: string) =>
  new Option("--timeout <seconds>", what).default(seconds * 1000, `${seconds} s`).argParser(secondsAsMs);

function addDoctor(program: Command, cli: Cli, finish: Finish): void {
  program
    .command("doctor")
    .description(
      "Try what a pipeline rests on, before it runs: secrets, connections, rights, clocks, conditional writes, room, limits.",
    )
    .addOption(configOption())
    .addOption(jsonOption())
    .option("--strict", "warnings fail too: exit 1", false)
    .addOption(timeoutOption(30, "most time for all checks together"))
    .addHelpText("after", examples("twg doctor -c orders.toml", "twg doctor -c orders.toml --json --strict"))
    .action(async (options: DoctorOptions) =>
      finish(await (await import("./doctor.ts")).runDoctor(options, cli)),
    );
}

function addHealth(program: Command, cli: Cli, finish: Finish): void {
  program
    .command("health")
    .description("Ask the pipeline that runs with this file on this machine how it is. Exits 0 or 1.")
    .addOption(configOption())
    .addOption(new Option("--probe <probe>", "what to ask").choices(["live", "ready"]).default("live"))
    .addOption(timeoutOption(5, "longest for the answer"))
    .addHelpText("after", examples("twg health -c orders.toml", "twg health -c orders.toml --probe ready"))
    .action(async (options: HealthOptions) =>
      finish(await (await import("./health.ts")).runHealth(options, cli)),
    );
}

const MAX_TIMEOUT_S = 3600;

function secondsAsMs(text: string): number {
  const s = /^\d{1,4}(\.\d{1,3})?$/.test(text) ? Number(text) : Number.NaN;
  if (s > 0 && s <= MAX_TIMEOUT_S) return Math.ceil(s * 1000);
  throw new InvalidArgumentError(`--timeout takes seconds, above 0 and at most ${MAX_TIMEOUT_S}.`);
}

function addInspect(program: Command, cli: Cli, finish: Finish): void {
  const inspect = program
    .command("inspect")
    .description("Look at what has landed. Reads only, but for `coverage` with --rebuild or --record-lost.");
  addInspectCoverage(inspect, cli, finish);
  addInspectDuplicates(inspect, cli, finish);
  inspect
    .command("parquet")
    .description("Show rows, spans and metadata of Parquet files, and sample rows.")
    .argument("<path...>", "files, or folders that are searched for *.parquet; s3:// goes, too")
    .addOption(new Option("-c, --config <file>", "pipeline whose [sink.s3] says how to reach a bucket"))
    .addOption(jsonOption())
    .addOption(
      new Option("--rows <n>", "sample rows to print of each file")
        .default(0)
        .argParser(rowCountOf("--rows")),
    )
    .addHelpText(
      "after",
      examples("twg inspect parquet ./quickstart-data", "twg inspect parquet part-1.parquet --rows 5 --json"),
    )
    .action(async (paths: string[], options: { config?: string; json: boolean; rows: number }) => {
      finish(await (await import("./inspect-parquet.ts")).runInspectParquet({ ...options, paths }, cli));
    });
  addInspectRejects(inspect, cli, finish);
  addInspectKafka(inspect, cli, finish);
}

function addInspectRejects(inspect: Command, cli: Cli, finish: Finish): void {
  inspect
    .command("rejects")
    .description(
      "Show records that could not be decoded, grouped by code, topic, schema and path, from the sinks that keep them.",
    )
    .addOption(configOption())
    .addOption(new Option("--sink <name>", "this sink alone"))
    .addOption(jsonOption())
    .addOption(
      new Option("--samples <n>", "records to show of each group")
        .default(1)
        .argParser(rowCountOf("--samples")),
    )
    .option(
      "--show-values",
      "print keys, values and messages that may quote them, not only their length",
      false,
    )
    .addHelpText(
      "after",
      examples(
        "twg inspect rejects -c orders.toml",
        "twg inspect rejects -c orders.toml --samples 3 --show-values",
      ),
    )
    .action(async (options: InspectRejectsOptions) => {
      finish(await (await import("./inspect-rejects.ts")).runInspectRejects(options, cli));
    });
}

function addInspectKafka(inspect: Command, cli: Cli, finish: Finish): void {
  inspect
    .command("kafka")
    .description(
      "Show topics, partitions, leaders, replicas, watermarks and the lag of a group, as the brokers tell them.",
    )
    .requiredOption(
      "-c, --config <file>",
      "the pipeline's TOML file: its [source] says how to reach the brokers",
    )
    .addOption(new Option("--topic <name...>", "these topics instead of the pipeline's").default([]))
    .addOption(new Option("--all", "every topic of the cluster").default(false))
    .addOption(new Option("--group <name>", "another group than the pipeline's"))
    .addOption(new Option("--groups", "list the groups of the cluster, too").default(false))
    .addOption(
      new Option("--timeout <s>", "seconds for everything together")
        .default(30_000, "30")
        .argParser(secondsAsMs),
    )
    .addOption(jsonOption())
    .addHelpText(
      "after",
      examples("twg inspect kafka -c orders.toml", "twg inspect kafka -c orders.toml --all --groups --json"),
    )
    .action(async (options: InspectKafkaOptions) => {
      finish(await (await import("./inspect-kafka.ts")).runInspectKafka(options, cli));
    });
}

/** More than this is not a sample; an engine such as DuckDB reads the files directly. */
const MAX_SAMPLE = 1000;

function rowCountOf(flag: string): (text: string) => number {
  return (text) => {
    const n = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
    if (n >= 0 && n <= MAX_SAMPLE) return n;
    throw new InvalidArgumentError(`${flag} takes a whole number of 0 to ${MAX_SAMPLE}.`);
  };
}

function addCompletions(program: Command, cli: Cli, finish: Finish): void {
  program
    .command("completions")
    .description("Print a completion script for a shell.")
    .addArgument(program.createArgument("<shell>", "the shell").choices(["bash", "zsh", "fish"]))
    .addHelpText(
      "after",
      examples(
        "source <(twg completions bash)",
        "twg completions fish > ~/.config/fish/completions/twg.fish",
      ),
    )
    .action(async (shell: "bash" | "zsh" | "fish") => {
      const { completionScript } = await import("./completions.ts");
      cli.out(completionScript(shell, program));
      finish(0);
    });
}
