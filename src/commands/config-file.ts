/** From a path to a checked configuration, and from that to one with its secrets. */
import { readFile, stat } from "node:fs/promises";
import { catalogue, type KafkaSource, type Sink } from "../adapters/catalogue.ts";
import { secretSources } from "../adapters/secrets/backends.ts";
import type { SinkShared, SourceShared } from "../core/config/adapter-spec.ts";
import { type CheckedConfig, type CheckResult, checkConfig } from "../core/config/check.ts";
import type { DecodeSection } from "../core/config/decode-options.ts";
import { describeProblems, type Problem } from "../core/config/problem.ts";
import { type Asked, askRefs, collectRefs, refProblems, replaceRefs } from "../core/config/resolve.ts";
import type { Resolved } from "../core/config/secret.ts";
import { MAX_CONFIG_BYTES } from "../core/config/toml.ts";
import { Failure } from "../core/failure/failure.ts";
import type { Cli } from "./cli.ts";
import { unfit } from "./unfit.ts";

/** A validated configuration; secrets are still references. */
export interface PipelineConfig extends Omit<CheckedConfig, "source" | "sink" | "sinks"> {
  readonly source: KafkaSource & SourceShared;
  /** The primary raw sink, one of `sinks`. */
  readonly sink: Sink & SinkShared;
  readonly sinks: readonly (Sink & SinkShared)[];
}

/** The options of one kind of sink, secrets read. */
export type SinkOf<T extends Sink["type"]> = Extract<ResolvedConfig["sink"], { readonly type: T }>;

/** The same with every secret read. */
export interface ResolvedConfig
  extends Omit<PipelineConfig, "source" | "sink" | "sinks" | "observability" | "decode"> {
  readonly source: Resolved<PipelineConfig["source"]>;
  readonly sink: Resolved<PipelineConfig["sink"]>;
  readonly sinks: readonly Resolved<PipelineConfig["sink"]>[];
  readonly observability: Resolved<PipelineConfig["observability"]>;
  readonly decode: Resolved<DecodeSection> | null;
}

/** Throws one Failure (config.*) that lists every problem. Touches no network and no secret. */
export async function loadConfig(path: string): Promise<PipelineConfig> {
  const result = await checkFile(path);
  if (!result.ok) throw problemsFailure(path, result.problems);
  return typed(result.config);
}

/** The specs behind `checkConfig` are the catalogue's, so the shapes are what the catalogue's types say. */
export function typed(config: CheckedConfig): PipelineConfig {
  return config as unknown as PipelineConfig;
}

export async function checkFile(path: string): Promise<CheckResult> {
  return checkBytes(await readBounded(path), path);
}

export function checkBytes(bytes: Uint8Array, file: string): CheckResult {
  const result = checkConfig(bytes, file, catalogue());
  if (!result.ok) return result;
  const problems = unfit(result.config);
  return problems.length === 0 ? result : { ok: false, problems };
}

async function readBounded(path: string): Promise<Uint8Array> {
  try {
    const info = await stat(path);
    if (!info.isFile())
      throw new Failure("config.unreadable", "the configuration is not a regular file", { at: path });
    if (info.size > MAX_CONFIG_BYTES) {
      throw new Failure(
        "config.too_large",
        `the configuration is ${info.size} bytes, at most ${MAX_CONFIG_BYTES} are read`,
        {
          at: path,
        },
      );
    }
    return await readFile(path);
  } catch (e) {
    if (e instanceof Failure) throw e;
    const code = e instanceof Error && "code" in e ? String(e.code) : "";
    const why = code === "ENOENT" ? "no such file" : code === "EACCES" ? "not allowed to read it" : code;
    throw new Failure("config.unreadable", `cannot read the configuration: ${why}`, {
      at: path,
      hint: "Name the file with -c; `twg config init` writes a starter",
    });
  }
}

/** A single Failure for many problems; one alone keeps its own code. */
export function problemsFailure(path: string, problems: readonly Problem[]): Failure {
  const [first] = problems;
  const count = problems.length;
  const code = count === 1 && first !== undefined ? first.code : "config.invalid";
  const title = count === 1 ? `a problem in ${path}` : `${count} problems in ${path}`;
  return new Failure(code, `${title}\n${describeProblems(problems)}`, { cause: problems });
}

/** Asks the backends for every reference of the configuration. Call it again to re-read (SIGHUP). */
export async function askSecrets(config: PipelineConfig, environment: Cli["environment"]): Promise<Asked[]> {
  const sources = secretSources(config.secrets.dir, environment);
  const refs = [
    ...collectRefs(config.source, ["source"]),
    ...config.sinks.flatMap((sink, i) => collectRefs(sink, ["sink", i])),
    ...collectRefs(config.observability, ["observability"]),
    ...collectRefs(config.decode, ["decode"]),
  ];
  return askRefs(refs, sources);
}

/** As `resolveSecrets`, and needs no more secrets than HTTP does. */
export async function resolveObservability(
  config: PipelineConfig,
  environment: Cli["environment"],
): Promise<ResolvedConfig["observability"]> {
  const sources = secretSources(config.secrets.dir, environment);
  const asked = await askRefs(collectRefs(config.observability, ["observability"]), sources);
  const problems = refProblems(asked, config.file, config.lineOf);
  if (problems.length > 0) throw problemsFailure(config.file, problems);
  return replaceRefs(config.observability, asked);
}

/** Throws one Failure (secrets.*) that lists every reference without a value. */
export async function resolveSecrets(
  config: PipelineConfig,
  environment: Cli["environment"],
): Promise<ResolvedConfig> {
  const asked = await askSecrets(config, environment);
  const problems = refProblems(asked, config.file, config.lineOf);
  if (problems.length > 0) throw problemsFailure(config.file, problems);
  return {
    ...config,
    source: replaceRefs(config.source, asked),
    sink: replaceRefs(config.sink, asked),
    sinks: config.sinks.map((sink) => replaceRefs(sink, asked)),
    observability: replaceRefs(config.observability, asked),
    decode: replaceRefs(config.decode, asked),
  };
}

/** With these of its sinks alone, in this order. What is written of each in the file is known by its number, and goes with it. */
export function withSinks(config: ResolvedConfig, sinks: ResolvedConfig["sinks"]): ResolvedConfig {
  const written = [...config.written].flatMap((path) => {
    const [, number, option] = OPTION_OF_SINK.exec(path) ?? [];
    if (number === undefined) return [path];
    const to = sinks.findIndex((s) => s.name === config.sinks[Number(number)]?.name);
    return to < 0 ? [] : [`sink[${to}]${option}`];
  });
  return { ...config, sinks, written: new Set(written) };
}

const OPTION_OF_SINK = /^sink\[(\d+)\](.*)$/;
