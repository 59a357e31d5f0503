/** From a file or from the command line to the configuration of a batch job; the same checks for both. */
import { catalogue, type FilesSource } from "../adapters/catalogue.ts";
import type { SourceShared } from "../core/config/adapter-spec.ts";
import { type CheckedConfig, checkConfig } from "../core/config/check.ts";
import type { Resolved } from "../core/config/secret.ts";
import { Failure } from "../core/failure/failure.ts";
import type { Cli } from "./cli.ts";
import {
  checkFile,
  problemsFailure,
  type ResolvedConfig,
  resolveSecrets,
  type SinkOf,
  typed,
} from "./config-file.ts";

/** Of `twg batch`, as commander gives them. What is absent was not said. */
export interface BatchOptions {
  readonly config?: string;
  readonly to?: string;
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
  readonly sink: SinkOf<"parquet">;
}

const COMMAND_LINE = "command line";

export async function batchConfig(
  inputs: readonly string[],
  options: BatchOptions,
  environment: Cli["environment"],
): Promise<BatchConfig> {
  const result =
    options.config === undefined
      ? checkConfig(new TextEncoder().encode(documentOf(inputs, options)), COMMAND_LINE, catalogue())
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

function wantsFiles({ source, sink, file }: CheckedConfig): void {
  if (sink.type !== "parquet")
    throw new Failure(
      "config.not_in_this_version",
      `a batch job cannot land in a sink of type ${JSON.stringify(sink.type)}`,
      {
        at: file,
        hint: 'Use `type = "parquet"`',
      },
    );
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
  if (o.to === undefined)
    throw new Failure("cli.usage", "where to land is not said", {
      hint: "Add --to FOLDER or --to s3://bucket/prefix",
    });
  if (/\.parquet$/i.test(o.to))
    throw new Failure("cli.usage", `--to names a folder, not a file: ${o.to}`, {
      hint: "Files in it get names of their own, so that no run ever writes over another",
    });
  const line = (key: string, value: unknown): string =>
    value === undefined ? "" : `${key} = ${tomlOf(value)}\n`;
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
name = "out"
type = "parquet"
${line("path", o.to)}
[observability]
listen = "off"
`;
}

/** JSON's texts, numbers and lists of them are TOML's. */
function tomlOf(value: unknown): string {
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
