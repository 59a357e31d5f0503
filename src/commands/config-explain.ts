/** `twg config explain`: the configuration as it will run, and what running it will do. No network, no secrets. */
import { availableParallelism } from "node:os";
import { catalogue } from "../adapters/catalogue.ts";
import { type EffectiveTable, effective } from "../core/config/effective.ts";
import { tomlKey } from "../core/config/render.ts";
import { type Cli, outJson } from "./cli.ts";
import { loadConfig, type PipelineConfig } from "./config-file.ts";

import type { ExplainedTable } from "./explain-decode.ts";
import { type Plan, planOf } from "./plan.ts";
import { printable, styled } from "./style.ts";

export async function runConfigExplain(
  options: { config: string; json: boolean },
  cli: Cli,
): Promise<number> {
  const config = await loadConfig(options.config);
  const tables = effective(config, catalogue());
  const plan = planOf(config, availableParallelism());
  const decoded = await tablesOf(config);
  if (options.json) {
    const all = tables
      .flatMap((t) => t.options)
      .map(({ path, value, from, unit }) => ({ path, value, from, unit }));
    outJson(cli, {
      file: options.config,
      options: all,
      plan: Object.fromEntries(plan),
      decode: decoded.tables,
    });
  } else
    cli.out(
      `${explainText(options.config, tables, cli.outColour)}\n${planText(plan, cli.outColour)}${decoded.text(cli.outColour)}`,
    );
  return 0;
}

/** Codecs are loaded where there is something to decode. */
async function tablesOf(config: PipelineConfig): Promise<{
  readonly tables: readonly ExplainedTable[];
  readonly text: (colour: boolean) => string;
}> {
  if (config.decode === null) return { tables: [], text: () => "" };
  const { decodeText, explainDecode } = await import("./explain-decode.ts");
  const { learnedHere } = await import("./own-schemas.ts");
  const learned = await learnedHere(config);
  const tables = await explainDecode(config.decode, topicsOf(config), prefixOf(config), learned);
  return { tables, text: (colour) => decodeText(tables, colour) };
}

/** Of a pattern the topics that [decode] names, and any other. */
function topicsOf({ source, decode }: PipelineConfig): readonly string[] {
  return source.topics ?? [...(decode?.topic ?? []).map((t) => t.name), "any other topic"];
}

/** All sinks have the same one. */
function prefixOf({ sink }: PipelineConfig): string {
  return sink.metadata_prefix;
}

function explainText(file: string, tables: readonly EffectiveTable[], colour: boolean): string {
  const lines = tables.map((table) => {
    const rows = table.options.map((o) => {
      if (o.value === null) return styled(`# ${o.key} is not set`, "dim", colour);
      const line = printable(`${tomlKey(o.key)} = ${o.value}`);
      return o.from === "file" ? line : `${line}  ${styled("# default", "dim", colour)}`;
    });
    return [styled(table.header, "bold", colour), ...rows].join("\n");
  });
  return `# ${printable(file)} as it will run\n${lines.join("\n\n")}\n`;
}

function planText(plan: Plan, colour: boolean): string {
  const width = Math.max(...plan.map(([topic]) => topic.length));
  const lines = plan.map(
    ([topic, text]) => `  ${styled(topic.padEnd(width), "cyan", colour)}  ${printable(text)}`,
  );
  return `${styled("What will happen", "bold", colour)}\n${lines.join("\n")}\n`;
}
