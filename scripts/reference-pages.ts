/** The generated files, by path from the root: each from the one place in the sources that declares its facts. */
import type { Command } from "commander";
import { catalogue } from "../src/adapters/catalogue.ts";
import { buildProgram } from "../src/commands/program.ts";
import { NESTED, SCALARS, type TypeRow } from "../src/core/codecs/avro/type-map.ts";
import {
  NESTED as PROTOBUF_NESTED,
  SCALARS as PROTOBUF_SCALARS,
} from "../src/core/codecs/protobuf/type-map.ts";
import { type AdapterSpec, fullSpec } from "../src/core/config/adapter-spec.ts";
import { optionalSections, SECTIONS } from "../src/core/config/check.ts";
import { configJsonSchema } from "../src/core/config/json-schema.ts";
import { tomlValue } from "../src/core/config/render.ts";
import { adapterOptions, type OptionDoc, open, optionsOf } from "../src/core/config/schema-walk.ts";
import type { CodeSpec } from "../src/core/failure/code-spec.ts";
import { CODES } from "../src/core/failure/codes.ts";
import { typeText } from "../src/core/types/type-text.ts";

const NOTE = "<!-- Made by scripts/generate.ts from the sources. Do not edit. -->";

export function generatedFiles(): Map<string, string> {
  return new Map([
    ["schema/twg.schema.json", `${JSON.stringify(configJsonSchema(catalogue()), null, 2)}\n`],
    ["docs/reference/configuration.md", configurationPage()],
    ["docs/reference/errors.md", errorsPage()],
    ["docs/reference/cli.md", cliPage()],
    ["docs/reference/types.md", typesPage()],
  ]);
}

function configurationPage(): string {
  const { pipeline, ...others } = SECTIONS;
  return `${[
    "# Configuration",
    NOTE,
    CONFIGURATION_INTRO,
    table("[pipeline]", pipeline),
    ...adapters("source", "[source]"),
    ...adapters("sink", "[[sink]]"),
    ...[...Object.entries(others), ...optionalSections()].map(([name, spec]) => table(`[${name}]`, spec)),
  ].join("\n\n")}\n`;
}

const CONFIGURATION_INTRO = `One TOML file describes one pipeline: \`[pipeline]\`, one \`[source]\`, one or more \`[[sink]]\`, and settings around them.
\`twg config init\` prints a starter, \`twg config validate -c FILE\` reports every problem of a file at once, and
\`twg config explain -c FILE\` shows every option with its value in force. An unknown key is an error, never ignored.

- **Sizes** are strings with a unit (\`"64MiB"\` is 64 x 1024 x 1024, \`"1GB"\` is 10^9) or a whole number of bytes.
- **Times** are a whole number of milliseconds or strings with a unit (\`"500ms"\`, \`"10s"\`, \`"5m"\`, \`"1h"\`, \`"7d"\`).
- **Secrets** are whole values, \`{ secret = "name" }\`, never spliced into a string. The file \`name\` in \`[secrets] dir\` is
  asked first, then the environment variable \`TWG_SECRET_NAME\` (upper-case, everything but letters and digits as \`_\`).
  The folder wins, even with an empty file. One line end at the end is taken off. \`twg config secrets -c FILE\` lists them.
- **Certificates and keys** are \`{ file = "path" }\`, \`{ secret = "name" }\` or the PEM text itself.
- Relative paths start at the working directory.`;

function adapters(kind: AdapterSpec["kind"], header: string): string[] {
  return catalogue()
    .filter((a) => a.kind === kind)
    .map((a) => table(`${header} type = "${a.name}"`, fullSpec(a), kind));
}

function table(title: string, spec: Parameters<typeof optionsOf>[0], kind?: AdapterSpec["kind"]): string {
  const options = kind === undefined ? optionsOf(spec) : adapterOptions(spec);
  const under = kind ?? title.replace(/^\[|\]$/g, "");
  const flat = options.filter((o) => o.options.length === 0);
  const nested = options.filter((o) => o.options.length > 0);
  const text = [`## \`${title}\``, open(spec).meta.description ?? "", ...rows(flat)].filter((t) => t !== "");
  return [...text, ...nested.map((o) => innerTable(under, o))].join("\n\n");
}

function innerTable(under: string, option: OptionDoc): string {
  const about = option.meta.description ?? "";
  return [`### \`[${under}.${option.key}]\``, about, ...rows(option.options)]
    .filter((t) => t !== "")
    .join("\n\n");
}

function rows(options: readonly OptionDoc[]): string[] {
  if (options.length === 0) return [];
  const lines = options.map(
    (o) => `| \`${o.key}\` | ${cell(meaning(o))} | ${cell(o.allowed)} | ${cell(fallback(o))} |`,
  );
  return [["| option | meaning | allowed | default |", "|---|---|---|---|", ...lines].join("\n")];
}

function meaning(o: OptionDoc): string {
  const parts = [o.meta.description ?? "", o.meta.unit === undefined ? "" : `Unit: ${o.meta.unit}.`];
  const example = o.meta.examples?.[0];
  if (example !== undefined) parts.push(`Example: \`${tomlValue(example, o.meta.unit ?? "")}\`.`);
  return parts.filter((p) => p !== "").join(" ");
}

function fallback(o: OptionDoc): string {
  const why = o.meta.why === undefined ? "" : ` ${o.meta.why}`;
  if (o.required) return "**required**";
  return o.fallback === undefined ? `none.${why}` : `\`${tomlValue(o.fallback, o.meta.unit ?? "")}\`.${why}`;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}

const EXITS = { config: 2, environment: 3, runtime: 1 } as const;

function errorsPage(): string {
  const specs: [string, CodeSpec][] = Object.entries(CODES);
  const areas = [...new Set(specs.map(([code]) => areaOf(code)))].sort();
  const sections = areas.map((area) => {
    const lines = specs
      .filter(([code]) => areaOf(code) === area)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(
        ([code, s]) =>
          `| \`${code}\` | ${s.kind} (exit ${EXITS[s.kind]}) | ${s.retry ? "yes" : "no"} | ${cell(s.meaning)} |`,
      );
    return `## ${area}\n\n| code | kind | retried | meaning |\n|---|---|---|---|\n${lines.join("\n")}`;
  });
  return `${["# Error codes", NOTE, ERRORS_INTRO, ...sections].join("\n\n")}\n`;
}

const areaOf = (code: string) => code.split(".")[0] ?? code;

const ERRORS_INTRO = `Every failure has one of these codes. A code is stable: it is never renamed or used for something else, so alerts and
scripts may match it. The kind decides the exit code of a process that the failure ends; *retried* failures are waited
out while the process goes on, unless they stand in the way of starting.`;

function cliPage(): string {
  const silent = {
    out: () => {},
    err: () => {},
    environment: {},
    outColour: false,
    errColour: false,
    errIsTerminal: false,
  };
  const program = buildProgram(silent);
  return `${["# Command line", NOTE, ...commandsOf(program).map(commandSection)].join("\n\n")}\n`;
}

function commandsOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(commandsOf)];
}

function commandSection(command: Command): string {
  return `## \`${nameOf(command)}\`\n\n\`\`\`text\n${fullHelp(command)}\n\`\`\``;
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
}

/** With the examples, which `helpInformation` leaves out. */
function fullHelp(command: Command): string {
  let text = "";
  command.configureOutput({
    writeOut: (t) => {
      text += t;
    },
    getOutHelpWidth: () => 100,
  });
  command.outputHelp();
  return text.trimEnd();
}

const TYPES_INTRO = `What becomes of a payload's types: the column of a table, and the kind of a Value for those who work record by record.
Nothing is rounded, cut or wrapped: what does not fit refuses the record, with a code and the place in it.`;

const AVRO_RULES = `- An annotation (\`logicalType\`, or \`connect.name\` as Kafka Connect and Debezium write it) that is unknown or wrong for
  its type is ignored, as the specification says. Debezium's zoned times stay the text that they are.
- A value beside a null is nullable; the order of the two does not matter.
- Where a schema of the reader is given, its columns come out: fields by name or alias, numbers promoted, defaults for
  what the writer does not have. Two annotations that mean different values (milliseconds and microseconds, another
  scale) are refused, not reinterpreted.
- An outermost value that is no record is one column, \`value\`.`;

const PROTOBUF_RULES = `- A field without presence (proto3 without \`optional\`, or \`field_presence = IMPLICIT\`) is its zero where it is absent; one with
  presence is null. A \`default\` of proto2 is not put in. A required field that is absent refuses the record.
- Strings are UTF-8 in every syntax, or the record is refused. Unknown fields are skipped.
- Extensions that the schema declares are columns too, behind the others: \`[package.name]\`.
- How messages in messages become columns of their own: [formats](../formats.md#protobuf).`;

const TABLE_HEAD = "| type | column | Value | |\n|---|---|---|---|";

function typesPage(): string {
  const scalars = Object.values<TypeRow>(SCALARS).map((t) => ({
    ...t,
    column: "shown" in t.column ? t.column.shown : typeText(t.column),
  }));
  const lines = [...scalars, ...NESTED].map(
    (t) => `| ${cell(t.avro)} | \`${t.column}\` | ${cell(t.value)} | ${cell(t.note ?? "")} |`,
  );
  const protobuf = [
    ...Object.values(PROTOBUF_SCALARS).map((t) => ({
      ...t,
      protobuf: t.name,
      column: typeText(t.column),
      note: "",
    })),
    ...PROTOBUF_NESTED,
  ].map((t) => `| ${cell(t.protobuf)} | \`${t.column}\` | ${cell(t.value)} | ${cell(t.note ?? "")} |`);
  const avro = `## Avro\n\n${TABLE_HEAD}\n${lines.join("\n")}`;
  return `${["# Types", NOTE, TYPES_INTRO, avro, AVRO_RULES, `## Protobuf\n\n${TABLE_HEAD}\n${protobuf.join("\n")}`, PROTOBUF_RULES].join("\n\n")}\n`;
}
