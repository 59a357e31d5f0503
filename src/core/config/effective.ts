/** A configuration as it will run: every option with its value, and whether the file or a default gave it. */
import { type AdapterSpec, fullSpec } from "./adapter-spec.ts";
import { type CheckedConfig, optionalSections, SECTIONS } from "./check.ts";
import { tomlValue } from "./render.ts";
import { adapterOptions, type OptionDoc, optionsOf } from "./schema-walk.ts";

export interface EffectiveOption {
  readonly key: string;
  /** `sink[0].roll_bytes` */
  readonly path: string;
  /** As TOML, secrets masked; null: not set and without a default. */
  readonly value: string | null;
  readonly from: "file" | "default" | "unset";
  readonly unit: string;
}

export interface EffectiveTable {
  /** `[source.tls]`, `[[sink]]` */
  readonly header: string;
  readonly options: readonly EffectiveOption[];
}

export function effective(config: CheckedConfig, adapters: readonly AdapterSpec[]): EffectiveTable[] {
  const spec = (kind: AdapterSpec["kind"], type: unknown): OptionDoc[] => {
    const adapter = adapters.find((a) => a.kind === kind && a.name === type);
    return adapter === undefined ? [] : adapterOptions(fullSpec(adapter));
  };
  const heldBy = (name: string): unknown => config[name as keyof CheckedConfig];
  const there = optionalSections(NOTHING_LATER).filter(([name]) => heldBy(name) !== null);
  const sections = [...Object.entries(SECTIONS), ...there].map(([name, schema]) => ({
    name,
    docs: optionsOf(schema),
    value: heldBy(name),
  }));
  const source = { name: "source", docs: spec("source", config.source.type), value: config.source };
  const [pipeline, ...others] = sections;
  const single = [...(pipeline === undefined ? [] : [pipeline]), source, ...others];
  return [
    ...single.flatMap((s) => tables(s.docs, s.value, s.name, s.name, "[", config.written)),
    ...config.sinks.flatMap((sink, i) =>
      tables(spec("sink", sink.type), sink, "sink", `sink[${i}]`, "[[", config.written),
    ),
  ];
}

const NOTHING_LATER: ReadonlyMap<string, string> = new Map();

/** The table itself, then the tables within it that are set. */
function tables(
  docs: readonly OptionDoc[],
  value: unknown,
  name: string,
  path: string,
  bracket: "[" | "[[",
  written: ReadonlySet<string>,
): EffectiveTable[] {
  const held = (value ?? {}) as Readonly<Record<string, unknown>>;
  const nested = (d: OptionDoc) => d.options.length > 0 && held[d.key] !== undefined;
  const options = docs
    .filter((d) => !nested(d))
    .map((d): EffectiveOption => {
      const at = `${path}.${d.key}`;
      const set = held[d.key];
      const unit = d.meta.unit ?? "";
      if (set === undefined) return { key: d.key, path: at, value: null, from: "unset", unit };
      const given = written.has(at) ? "file" : "default";
      return { key: d.key, path: at, value: tomlValue(set, unit), from: given, unit };
    });
  const header = bracket === "[[" ? `[[${name}]]` : `[${name}]`;
  return [
    { header, options },
    ...docs
      .filter(nested)
      .flatMap((d) => tables(d.options, held[d.key], `${name}.${d.key}`, `${path}.${d.key}`, "[", written)),
  ];
}
