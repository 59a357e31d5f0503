/** The starter file of `twg config init`: what is required with an example, all else commented out with its default. */
import { type AdapterSpec, fullSpec } from "./adapter-spec.ts";
import { optionalSections, SECTIONS } from "./check.ts";
import { tomlKey, tomlValue } from "./render.ts";
import { adapterOptions, type OptionDoc, optionsOf } from "./schema-walk.ts";

export function starterFile(source: AdapterSpec, sink: AdapterSpec): string {
  const sections = Object.entries(SECTIONS).map(([name, spec]) =>
    section(`[${name}]`, name, optionsOf(spec)),
  );
  const [pipeline = "", ...others] = sections;
  const optional = optionalSections().map(([name, spec]) =>
    commentedOut(section(`[${name}]`, name, optionsOf(spec))),
  );
  return [
    "# A pipeline of twg. Check it with `twg config validate -c FILE`, see all that it does with `twg config explain`.\n" +
      '# A secret is a whole value: password = { secret = "kafka-password" }.\n',
    pipeline,
    section("[source]", "source", adapterOptions(fullSpec(source))),
    section("[[sink]]", "sink", adapterOptions(fullSpec(sink))),
    ...others.map((s) => commentedIfIdle(s)),
    ...optional,
  ].join("\n");
}

/** A section with nothing set would be an empty table; its header goes behind a comment as well. */
function commentedIfIdle(text: string): string {
  const set = text.split("\n").some((line) => line !== "" && !line.startsWith("#") && !line.startsWith("["));
  return set ? text : text.replace(/^\[/, "# [");
}

/** A section whose being there means something is wholly behind a mark of its own. */
function commentedOut(text: string): string {
  return text.replaceAll(/^(?:# )?(?=[a-z_]+ = |\[)/gm, "# or: ");
}

function section(header: string, name: string, docs: readonly OptionDoc[]): string {
  const flat = docs.filter((d) => d.options.length === 0);
  const inner = docs.filter((d) => d.options.length > 0);
  return [`${header}\n`, ...flat.map(option), ...inner.map((d) => table(d, name))].join("");
}

function table(d: OptionDoc, of: string): string {
  const mark = markOf(d);
  const lines = d.options.map((o) => `${markOf(o, mark)}${tomlKey(o.key)} = ${exampleOf(o)}\n`);
  return `\n${comment(`${d.meta.description ?? ""}`)}${mark}[${of}.${tomlKey(d.key)}]\n${lines.join("")}`;
}

/** What stands in place of other options is marked apart: whoever takes off all other marks has a whole file. */
function markOf(d: OptionDoc, outer = "# "): string {
  return d.meta.instead === true ? "# or: " : outer;
}

function option(d: OptionDoc): string {
  const line = `${tomlKey(d.key)} = ${exampleOf(d)}`;
  return `${comment(d.meta.description ?? "")}${d.required || d.meta.first === true ? line : `${markOf(d)}${line}`}\n`;
}

function comment(text: string): string {
  return text === "" ? "" : `# ${text.replaceAll("\n", " ")}\n`;
}

/** The default where there is one, else the first example, else something that the check will ask about. */
export function exampleOf(d: OptionDoc): string {
  const unit = d.meta.unit ?? "";
  if (d.fallback !== undefined) return tomlValue(d.fallback, unit);
  const example = d.meta.examples?.[0];
  if (example !== undefined) return tomlValue(example, unit);
  const literal = /^"[^"]*"/.exec(d.allowed)?.[0];
  return literal ?? '"CHANGE-ME"';
}
