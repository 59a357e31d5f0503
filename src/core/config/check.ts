/**
 * Checks a whole configuration document. Sections are checked apart, so that a mistake in one hides nothing in
 * another, and every problem of the file comes out at once.
 */
import type * as z from "zod";
import { type AdapterKind, type AdapterSpec, fullSpec } from "./adapter-spec.ts";
import { type DecodeSection, decodeSpec } from "./decode-options.ts";
import { type DedupSection, dedupSpec } from "./dedup-options.ts";
import { type Place, problemsOf, unknownKey } from "./issues.ts";
import { LATER_RECEIVES, LATER_SECTIONS, LATER_SINKS, LATER_SOURCES } from "./later.ts";
import { nearest } from "./nearest.ts";
import { formatBytes } from "./option-types.ts";
import { type ConfigPath, orderProblems, type Problem, pathText, quoted, shownValue } from "./problem.ts";
import {
  type BatchSection,
  batchSpec,
  type ObservabilitySection,
  observabilitySpec,
  type PipelineSection,
  pipelineSpec,
  type RecoverySection,
  recoverySpec,
  type SecretsSection,
  secretsSpec,
} from "./sections.ts";
import { parseToml } from "./toml.ts";

export interface CheckedConfig {
  readonly file: string;
  readonly pipeline: PipelineSection;
  readonly batch: BatchSection;
  readonly recovery: RecoverySection;
  readonly dedup: DedupSection;
  readonly observability: ObservabilitySection;
  readonly secrets: SecretsSection;
  /** Null: records stay bytes. */
  readonly decode: DecodeSection | null;
  /** As the source's spec gives it, `type` included. */
  readonly source: Readonly<Record<string, unknown>>;
  /** The primary raw sink. */
  readonly sink: Readonly<Record<string, unknown>>;
  /** All sinks, in the order of the file. */
  readonly sinks: readonly Readonly<Record<string, unknown>>[];
  /** Paths that the file itself sets, as `pathText` writes them; all else is a default. */
  readonly written: ReadonlySet<string>;
  /** Line of a path, for problems found later (secrets). */
  readonly lineOf: (path: ConfigPath) => number;
}

export type CheckResult =
  | { readonly ok: true; readonly config: CheckedConfig }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** A file with more is no configuration; the first ones say enough. */
const MAX_PROBLEMS = 500;
export const MAX_SINKS = 16;

/** The sections of this version, in the order of the reference page. */
export const SECTIONS = {
  pipeline: pipelineSpec,
  batch: batchSpec,
  recovery: recoverySpec,
  dedup: dedupSpec,
  observability: observabilitySpec,
  secrets: secretsSpec,
} as const;

/** Sections that mean something by being there. */
const OPTIONAL_SECTIONS = { decode: decodeSpec } as const;

/** Those of them that this version has. */
export function optionalSections(later: ReadonlyMap<string, string> = LATER_SECTIONS): [string, z.ZodType][] {
  return Object.entries(OPTIONAL_SECTIONS).filter(([name]) => !later.has(name));
}

const REQUIRED_TABLES = new Set(["pipeline"]);

type Table = Readonly<Record<string, unknown>>;

/** `later`: sections that are refused by name. */
export function checkConfig(
  bytes: Uint8Array,
  file: string,
  adapters: readonly AdapterSpec[],
  later: ReadonlyMap<string, string> = LATER_SECTIONS,
): CheckResult {
  const toml = parseToml(bytes, file);
  if (!toml.ok) return toml;
  const check = new Check(toml.value, { file, locator: toml.locator, base: [] }, adapters, later);
  const parts = check.run();
  if (check.problems.length > 0) {
    return { ok: false, problems: orderProblems(check.problems).slice(0, MAX_PROBLEMS) };
  }
  return {
    ok: true,
    config: {
      file,
      ...(parts as Omit<CheckedConfig, "file" | "written" | "lineOf">),
      written: writtenPaths(toml.value),
      lineOf: (path) => toml.locator.lineOf(path),
    },
  };
}

class Check {
  readonly problems: Problem[] = [];
  readonly #root: Table;
  readonly #place: Place;
  readonly #adapters: readonly AdapterSpec[];
  readonly #later: ReadonlyMap<string, string>;

  constructor(
    root: Table,
    place: Place,
    adapters: readonly AdapterSpec[],
    later: ReadonlyMap<string, string>,
  ) {
    this.#root = root;
    this.#place = place;
    this.#adapters = adapters;
    this.#later = later;
  }

  run(): Readonly<Record<string, unknown>> {
    this.#topLevel();
    const parts: Record<string, unknown> = {};
    for (const [name, schema] of Object.entries(SECTIONS)) {
      const value = own(this.#root, name);
      if (value === undefined && REQUIRED_TABLES.has(name)) this.#missing([name], `a [${name}] section`);
      else parts[name] = this.#parse(schema, value ?? {}, [name]);
    }
    for (const name of Object.keys(OPTIONAL_SECTIONS)) parts[name] = null;
    for (const [name, schema] of optionalSections(this.#later)) {
      const value = own(this.#root, name);
      if (value !== undefined) parts[name] = this.#parse(schema, value, [name]);
    }
    parts.source = this.#source();
    const sinks = this.#sinks();
    parts.sinks = sinks;
    parts.sink = sinks.find((s) => s.role === "primary_raw");
    this.#across(parts);
    return parts;
  }

  #topLevel(): void {
    const optional = optionalSections(this.#later).map(([name]) => name);
    const known = [...Object.keys(SECTIONS), ...optional, "source", "sink"];
    for (const key of Object.keys(this.#root)) {
      if (known.includes(key)) continue;
      const later = this.#later.get(key);
      if (later === undefined) this.problems.push(unknownKey(key, [], known, this.#place));
      else
        this.#say("config.not_in_this_version", [key], `the section ${quoted(key)}`, known.join(", "), later);
    }
  }

  #source(): unknown {
    const value = own(this.#root, "source");
    if (value === undefined) return this.#missing(["source"], "a [source] section");
    if (Array.isArray(value)) {
      return this.#say(
        "config.type",
        ["source"],
        "a list of sources",
        "one [source] table",
        "write [source], not [[source]]",
      );
    }
    return this.#adapter("source", value, ["source"]);
  }

  #sinks(): Readonly<Record<string, unknown>>[] {
    const value = own(this.#root, "sink");
    if (value === undefined) this.#missing(["sink"], "one [[sink]] section");
    else if (!Array.isArray(value)) {
      const hint = "write [[sink]], not [sink]";
      this.#say("config.type", ["sink"], shownValue(value), "a list of tables", hint);
    } else if (value.length === 0) this.#missing(["sink"], "one [[sink]] section");
    if (!Array.isArray(value)) return [];
    if (value.length > MAX_SINKS) {
      const seen = `${value.length} sinks`;
      this.#say(
        "config.range",
        ["sink", MAX_SINKS],
        seen,
        `at most ${MAX_SINKS}`,
        "each costs memory in each lane",
      );
    }
    this.#duplicateNames(value);
    const sinks = value
      .slice(0, MAX_SINKS)
      .map((sink: unknown, i) => this.#adapter("sink", sink, ["sink", i]) as Table | undefined);
    this.#primary(value);
    const alone = value.length === 1 ? "primary_raw" : "secondary";
    return sinks.flatMap((s) => (s === undefined ? [] : [{ ...s, role: s.role ?? alone }]));
  }

  /** One sink, and one alone, decides when the source is acknowledged. */
  #primary(sinks: readonly unknown[]): void {
    const primary = [...sinks.keys()].filter((i) => own(sinks[i], "role") === "primary_raw");
    const [first, second] = primary;
    if (first !== undefined && second !== undefined) {
      const at = `sink[${first}], line ${this.#place.locator.lineOf(["sink", first, "role"])}`;
      const path = ["sink", second, "role"];
      this.#say("config.conflict", path, quoted("primary_raw"), "one primary sink", `${at} is it already`);
    }
    if (first !== undefined || sinks.length === 0) return;
    if (sinks.length === 1 && own(sinks[0], "role") !== "secondary") return;
    const hint = 'say role = "primary_raw" in the sink whose durable write lets the source be acknowledged';
    this.#say("config.conflict", ["sink"], "no primary sink", "one primary sink", hint);
  }

  #duplicateNames(sinks: readonly unknown[]): void {
    const first = new Map<unknown, number>();
    for (const [i, sink] of sinks.entries()) {
      const name = own(sink, "name");
      if (typeof name !== "string") continue;
      const before = first.get(name);
      if (before === undefined) first.set(name, i);
      else {
        const at = `sink[${before}], line ${this.#place.locator.lineOf(["sink", before, "name"])}`;
        this.#say(
          "config.conflict",
          ["sink", i, "name"],
          quoted(name),
          "a name of its own",
          `it is the name of ${at}`,
        );
      }
    }
  }

  #adapter(kind: AdapterKind, value: unknown, path: ConfigPath): unknown {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      return this.#say("config.type", path, shownValue(value), "a table", "");
    }
    const known = this.#adapters.filter((a) => a.kind === kind);
    const type = own(value, "type");
    const adapter = known.find((a) => a.name === type);
    if (adapter !== undefined) {
      const refused = kind === "sink" ? this.#laterRoles(value, path) : [];
      return this.#parse(fullSpec(adapter), value, path, refused);
    }
    return this.#unknownType(kind, type, [...path, "type"], known);
  }

  #unknownType(kind: AdapterKind, type: unknown, path: ConfigPath, known: readonly AdapterSpec[]): undefined {
    const allowed = known.map((a) => quoted(a.name)).join(" | ");
    if (type === undefined) return this.#missing(path, allowed);
    if (typeof type !== "string") return this.#say("config.type", path, shownValue(type), allowed, "");
    const later = kind === "source" ? LATER_SOURCES : LATER_SINKS;
    if (later.includes(type)) {
      const hint = `known to the design, but this version has no such ${kind} yet`;
      return this.#say("config.not_in_this_version", path, quoted(type), allowed, hint);
    }
    const near = nearest(
      type,
      known.map((a) => a.name),
    );
    return this.#say(
      "config.range",
      path,
      quoted(type),
      allowed,
      near === null ? "" : `did you mean ${quoted(near)}?`,
    );
  }

  /** Names the options that the design knows with more values than this version; returns the paths it has spoken of. */
  #laterRoles(sink: unknown, path: ConfigPath): string[] {
    const spoken: string[] = [];
    const roles = [["receives", ["raw", "decoded", "rejected"], LATER_RECEIVES]] as const;
    for (const [key, only, why] of roles) {
      const value = own(sink, key);
      if (typeof value !== "string" || only.some((o) => o === value) || nearest(value, only) !== null)
        continue;
      const allowed = only.map(quoted).join(" | ");
      this.#say("config.not_in_this_version", [...path, key], quoted(value), allowed, why);
      spoken.push(key);
    }
    return spoken;
  }

  #parse(schema: z.ZodType, value: unknown, base: ConfigPath, spoken: readonly string[] = []): unknown {
    const result = schema.safeParse(value);
    if (result.success) return result.data;
    const issues = result.error.issues
      .filter((i) => !(i.path.length === 1 && spoken.includes(String(i.path[0]))))
      .slice(0, MAX_PROBLEMS);
    this.problems.push(...problemsOf(issues, schema, value, { ...this.#place, base }));
    return undefined;
  }

  /** Settings that are fine alone and wrong together. */
  #across(parts: Record<string, unknown>): void {
    const pipeline = parts.pipeline as PipelineSection | undefined;
    const batch = parts.batch as BatchSection | undefined;
    if (pipeline === undefined || batch === undefined || batch.max_bytes <= pipeline.max_bytes) return;
    if (own(own(this.#root, "batch"), "max_bytes") === undefined) {
      // A default must not stand in the way of a small budget that was asked for.
      parts.batch = { ...batch, max_bytes: pipeline.max_bytes };
      return;
    }
    const allowed = `at most pipeline.max_bytes, ${formatBytes(pipeline.max_bytes)}`;
    const hint = "a batch above the budget could never be filled";
    this.#say("config.conflict", ["batch", "max_bytes"], formatBytes(batch.max_bytes), allowed, hint);
  }

  #missing(path: ConfigPath, allowed: string): undefined {
    return this.#say("config.missing", path, "", allowed, "it is required");
  }

  #say(code: Problem["code"], path: ConfigPath, seen: string, allowed: string, hint: string): undefined {
    const { file, locator } = this.#place;
    this.problems.push({ code, file, line: locator.lineOf(path), path: pathText(path), seen, allowed, hint });
    return undefined;
  }
}

/** An own property only: a key such as `constructor` must not find what every object inherits. */
function own(value: unknown, key: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
  return (value as Table)[key];
}

function writtenPaths(root: Table): ReadonlySet<string> {
  const paths = new Set<string>();
  const stack: { value: unknown; path: ConfigPath }[] = [{ value: root, path: [] }];
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    if (top.path.length > 0) paths.add(pathText(top.path));
    if (typeof top.value !== "object" || top.value === null) continue;
    const entries = Array.isArray(top.value) ? top.value.entries() : Object.entries(top.value);
    for (const [key, value] of entries) stack.push({ value, path: [...top.path, key] });
  }
  return paths;
}
