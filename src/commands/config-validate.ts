/** `twg config validate`: all problems of a file, or what may surprise in one without any; no network, no secrets. */
import { existsSync } from "node:fs";
import { type Problem, pathText, problemLine, quoted } from "../core/config/problem.ts";
import { warningsOf } from "../core/config/warnings.ts";
import { asFailure } from "../core/failure/failure.ts";
import type { Cli } from "./cli.ts";
import { outJson } from "./cli.ts";
import { checkFile, type PipelineConfig, typed } from "./config-file.ts";
import { reportProblems } from "./report.ts";
import { printable, styled } from "./style.ts";

export async function runConfigValidate(
  options: { config: string; json: boolean },
  cli: Cli,
): Promise<number> {
  const { problems, warnings } = await verdictOn(options.config);
  if (options.json) {
    outJson(cli, { file: options.config, ok: problems.length === 0, problems, warnings });
    return problems.length === 0 ? 0 : 2;
  }
  if (problems.length > 0) return reportProblems(options.config, problems, cli);
  for (const w of warnings)
    cli.err(`${styled("warning", "yellow", cli.errColour)}: ${printable(problemLine(w))}\n`);
  cli.out(`${options.config}: ok\n`);
  return 0;
}

/** Codecs are loaded where a file has something to decode by. */
async function schemaFiles(config: PipelineConfig): Promise<Pick<Verdict, "problems" | "warnings">> {
  const { decode, source, sink } = config;
  const { type, schema } = source as { readonly type: string; readonly schema?: string };
  if (type === "files" && schema !== undefined) return await schemaOfFiles(config, schema);
  if (decode === null) return { problems: [], warnings: [] };
  const { schemaFileProblems } = await import("./schema-file-check.ts");
  const { naturalKeyProblems } = await import("./natural-key-check.ts");
  const { problems, warnings } = await schemaFileProblems(
    config,
    decode,
    source.topics ?? [],
    sink.metadata_prefix,
  );
  return { problems: [...problems, ...(await naturalKeyProblems(config, decode, source.topics))], warnings };
}

async function schemaOfFiles({ file, lineOf }: PipelineConfig, schema: string): Promise<Verdict> {
  const path = ["source", "schema"];
  const about = {
    code: "files.schema",
    file,
    line: lineOf(path),
    path: pathText(path),
    seen: quoted(schema),
  } as const;
  if (!existsSync(schema)) {
    const hint = "there is no such file here; `twg batch` needs it where it runs";
    return { problems: [], warnings: [{ ...about, allowed: "", hint }] };
  }
  try {
    await (await import("./batch-plan.ts")).readSchema(schema, "");
    return { problems: [], warnings: [] };
  } catch (e) {
    return { problems: [{ ...about, allowed: "", hint: asFailure(e).message }], warnings: [] };
  }
}

interface Verdict {
  readonly problems: readonly Problem[];
  /** Of a file that has no problem. */
  readonly warnings: readonly Problem[];
}

/** A file that cannot be read is a problem like the others, so that `--json` always answers in one shape. */
async function verdictOn(path: string): Promise<Verdict> {
  try {
    const result = await checkFile(path);
    if (!result.ok) return { problems: result.problems, warnings: [] };
    const files = await schemaFiles(typed(result.config));
    return { problems: files.problems, warnings: [...warningsOf(result.config), ...files.warnings] };
  } catch (e) {
    const failure = asFailure(e);
    if (failure.kind !== "config") throw failure;
    const { code, message, hint } = failure;
    const place = { file: path, line: 0, path: "(document)" };
    return { problems: [{ code, ...place, seen: message, allowed: "", hint: hint ?? "" }], warnings: [] };
  }
}
