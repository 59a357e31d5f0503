/** From a file or from the command line to the configuration of a batch job; the same checks for both. */
import type { FilesSource } from "../adapters/catalogue.ts";
import type { SourceShared } from "../core/config/adapter-spec.ts";
import type { CheckedConfig } from "../core/config/check.ts";
import type { Resolved } from "../core/config/secret.ts";
import { Failure } from "../core/failure/failure.ts";
import type { Cli } from "./cli.ts";
import {
  checkBytes,
  checkFile,
  problemsFailure,
  type ResolvedConfig,
  resolveSecrets,
  typed,
} from "./config-file.ts";

/** Of `twg batch`, as commander gives them. What is absent was not said. */
export interface BatchOptions {
  readonly config?: string;
  readonly to?: string;
  /** Of databases. */
  readonly toSecret?: string;
  readonly table?: string;
  readonly create: boolean;
  readonly mode?: string;
  readonly key?: readonly string[];
  readonly name: string;
  readonly format?: string;
  readonly compression?: string;
  readonly encoding?: string;
  readonly delimiter?: string;
  readonly quote?: string;
  readonly header?: string;
  readonly null?: readonly string[];
  readonly schema?: string;
  readonly inferRows?: number;
  readonly maxRejects?: number;
  readonly metadata?: string;
  readonly lanes?: number;
  readonly dryRun: boolean;
  readonly printSchema: boolean;
  readonly json: boolean;
  readonly logLevel: "debug" | "info" | "warn" | "error";
}

export interface BatchConfig extends Omit<ResolvedConfig, "source" | "sink"> {
  readonly source: Resolved<FilesSource & SourceShared>;
  /** Rows of files go nowhere else. */
  readonly sink: Exclude<ResolvedConfig["sink"], { readonly type: "kafka" }>;
}

const COMMAND_LINE = "command line";

export async function batchConfig(
  inputs: readonly string[],
  options: BatchOptions,
  environment: Cli["environment"],
): Promise<BatchConfig> {
  const result =
    options.config === undefined
      ? checkBytes(new TextEncoder().encode(documentOf(inputs, options)), COMMAND_LINE)
      : await fromFile(inputs, options.config);
  if (!result.ok) throw problemsFailure(options.config ?? COMMAND_LINE, result.problems);
  wantsFiles(result.config);
  const resolved = await resolveSecrets(typed(result.config), environment);
  return overridden(resolved as unknown as BatchConfig, options);
}

async function fromFile(inputs: readonly string[], path: string) {
  if (inputs.length > 0)
    throw new Failure(
      "cli.usage",
      "inputs stand in the file that -c names, or on the command line with --to",
      {
        hint: "Give one of the two",
      },
    );
  return checkFile(path);
}

function wantsFiles({ source, file }: CheckedConfig): void {
  if (source.type === "files") return;
  throw new Failure(
    "config.conflict",
    `the source is of type ${JSON.stringify(source.type)}, which has no end`,
    {
      at: file,
      hint: 'Use `twg stream` for it, or `type = "files"` here',
    },
  );
}

/** What was said on the command line as a document, so that one set of rules checks both. */
function documentOf(inputs: readonly string[], o: BatchOptions): string {
  if (inputs.length === 0)
    throw new Failure("cli.usage", "no input was given", {
      hint: "twg batch IN... --to OUT, or twg batch -c FILE",
    });
  const sink = sinkSection(o);
  const csv =
    line("delimiter", o.delimiter === "\\t" ? "\t" : o.delimiter) +
    line("quote", o.quote) +
    line("header", o.header) +
    line("nulls", o.null);
  return `[pipeline]
${line("name", o.name)}${line("lanes", o.lanes)}
[source]
type = "files"
${line("paths", inputs)}${line("format", o.format)}${line("compression", o.compression)}${line("encoding", o.encoding)}
${line("schema", o.schema)}${line("infer_rows", o.inferRows)}${line("max_rejects", o.maxRejects)}
${line("metadata", o.metadata)}
${csv === "" ? "" : `[source.csv]\n${csv}`}
[[sink]]
${sink}
[observability]
listen = "off"
`;
}

/** A folder, a bucket or a database. */
function sinkSection(o: BatchOptions): string {
  const { to, toSecret, table, create, mode, key } = o;
  if (to !== undefined && toSecret !== undefined)
    throw new Failure("cli.usage", "--to and --to-secret both say where to land", {
      hint: "Give one of the two",
    });
  if (toSecret !== undefined || /^postgres(ql)?:\/\//.test(to ?? "")) {
    if (table === undefined)
      throw new Failure("cli.usage", "into which table of the database is not said", {
        hint: "Add --table schema.table, and --create where it is to be made",
      });
    const url = toSecret === undefined ? to : { secret: toSecret };
    // Coverage of all tables lies in one schema: each table is a sink of its own.
    const name = `t${Bun.hash(table).toString(16).padStart(16, "0")}`;
    return `name = "${name}"\ntype = "postgres"\n${line("url", url)}${line("table", table)}${line("create", create)}${line("mode", mode)}${line("key", key)}`;
  }
  if (to === undefined)
    throw new Failure("cli.usage", "where to land is not said", {
      hint: "Add --to FOLDER, --to s3://bucket/prefix or --to postgres://user@host/database",
    });
  const wrong =
    table !== undefined ? "--table" : create ? "--create" : mode !== undefined ? "--mode" : key && "--key";
  if (wrong !== undefined)
    throw new Failure("cli.usage", `${wrong} is for databases, and --to names none`, {
      hint: "Give --to postgres://user@host/database or --to-secret NAME",
    });
  if (/\.parquet$/i.test(to))
    throw new Failure("cli.usage", `--to names a folder, not a file: ${to}`, {
      hint: "Files in it get names of their own, so that no run ever writes over another",
    });
  return `name = "out"\ntype = "parquet"\n${line("path", to)}`;
}

function line(key: string, value: unknown): string {
  return value === undefined ? "" : `${key} = ${tomlOf(value)}\n`;
}

/** JSON's texts, numbers and lists of them are TOML's. */
function tomlOf(value: unknown): string {
  if (typeof value === "object" && value !== null && "secret" in value)
    return `{ secret = ${JSON.stringify(value.secret)} }`;
  return JSON.stringify(value);
}

/** With -c the command line may still say how strict and how wide this run is. */
function overridden(config: BatchConfig, o: BatchOptions): BatchConfig {
  const { maxRejects, lanes, schema } = o;
  return {
    ...config,
    pipeline: lanes === undefined ? config.pipeline : { ...config.pipeline, lanes },
    source: {
      ...config.source,
      ...(maxRejects === undefined ? {} : { max_rejects: maxRejects }),
      ...(schema === undefined ? {} : { schema }),
    },
  };
}
