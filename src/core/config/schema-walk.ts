/**
 * Reads facts back out of the specs: what is allowed at a path, and the list of options that the reference page,
 * the starter file and `explain` print. The specs stay the only place where an option is described.
 */
import type * as z from "zod";
import type { ConfigPath } from "./problem.ts";

type Schema = z.core.$ZodType;

export interface OptionMeta {
  readonly description?: string;
  readonly unit?: string;
  readonly examples?: readonly unknown[];
  readonly why?: string;
  readonly allowed?: string;
  readonly secret?: boolean;
  /** Stands in place of other options: the starter file must not set it beside them. */
  readonly instead?: boolean;
  /** One of several options of which one is needed, and the one that the starter file sets. */
  readonly first?: boolean;
}

export interface OptionDoc {
  readonly path: readonly string[];
  readonly key: string;
  /** What may be written. */
  readonly allowed: string;
  readonly required: boolean;
  /** As the program holds it (bytes, ms); undefined without one. */
  readonly fallback: unknown;
  readonly meta: OptionMeta;
  /** Options inside, where the option is a table. */
  readonly options: readonly OptionDoc[];
}

interface Opened {
  /** Without wrappers: object, array, union, string, ... */
  readonly core: Schema;
  /** Of all wrappers, the outermost winning. */
  readonly meta: OptionMeta;
  readonly required: boolean;
  readonly fallback: unknown;
}

/** Takes off default, optional, transform and the like, gathering what they say. */
export function open(schema: Schema): Opened {
  let meta: OptionMeta = {};
  let required = true;
  let fallback: unknown;
  let at = schema;
  for (;;) {
    meta = { ...((at as z.ZodType).meta() as OptionMeta | undefined), ...meta };
    const def = (at as z.core.$ZodTypes)._zod.def;
    if (def.type === "default" || def.type === "prefault") {
      required = false;
      fallback ??= def.defaultValue;
      at = def.innerType;
    } else if (def.type === "optional") {
      required = false;
      at = def.innerType;
    } else if (def.type === "nullable" || def.type === "readonly" || def.type === "nonoptional")
      at = def.innerType;
    else if (def.type === "pipe") at = def.in;
    else return { core: at, meta, required, fallback };
  }
}

/** Null where the schema knows no such path. */
export function schemaAt(root: Schema, path: ConfigPath): Schema | null {
  let at: Schema | null = root;
  for (const part of path) {
    if (at === null) return null;
    at = child(open(at).core, part);
  }
  return at;
}

function child(core: Schema, part: string | number): Schema | null {
  const def = (core as z.core.$ZodTypes)._zod.def;
  if (def.type === "object") return Object.hasOwn(def.shape, part) ? (def.shape[part] ?? null) : null;
  if (def.type === "array") return def.element;
  if (def.type === "record") return def.valueType;
  if (def.type !== "union") return null;
  for (const option of def.options) {
    const found = child(open(option).core, part);
    if (found !== null) return found;
  }
  return null;
}

/** The keys of a table at the path, empty where it is none. */
export function keysAt(root: Schema, path: ConfigPath): string[] {
  const at = schemaAt(root, path);
  if (at === null) return [];
  const def = (open(at).core as z.core.$ZodTypes)._zod.def;
  return def.type === "object" ? Object.keys(def.shape) : [];
}

/** What may stand at the schema's place, in words. */
export function allowedText(schema: Schema): string {
  const { core, meta } = open(schema);
  if (meta.allowed !== undefined) return meta.allowed;
  const def = (core as z.core.$ZodTypes)._zod.def;
  switch (def.type) {
    case "enum":
      return Object.values(def.entries)
        .map((v) => JSON.stringify(v))
        .join(" | ");
    case "literal":
      return def.values.map((v) => JSON.stringify(v)).join(" | ");
    case "string":
      return "a string";
    case "boolean":
      return "true or false";
    case "number":
      return numberText(core);
    case "array":
      return `a list, each ${allowedText(def.element)}`;
    case "object":
      return `a table of ${Object.keys(def.shape).join(", ")}`;
    case "record":
      return `a table, each value ${allowedText(def.valueType)}`;
    case "union":
      return def.options.map((o) => allowedText(o)).join(", or ");
    default:
      return def.type;
  }
}

function numberText(core: Schema): string {
  const { minValue, maxValue, isInt } = core as z.ZodNumber;
  const low = minValue === null || minValue <= Number.MIN_SAFE_INTEGER ? "" : `, at least ${minValue}`;
  const high = maxValue === null || maxValue >= Number.MAX_SAFE_INTEGER ? "" : `, at most ${maxValue}`;
  return (isInt ? "a whole number" : "a number") + low + high;
}

/** Every option of a table, in the order of its spec. */
export function optionsOf(schema: Schema, under: readonly string[] = []): OptionDoc[] {
  const def = (open(schema).core as z.core.$ZodTypes)._zod.def;
  if (def.type !== "object") return [];
  return Object.entries(def.shape).map(([key, inner]) => {
    const { meta, required, fallback } = open(inner);
    const path = [...under, key];
    return {
      path,
      key,
      allowed: allowedText(inner),
      required,
      fallback,
      meta,
      options: optionsOf(inner, path),
    };
  });
}

/** Those that every adapter has come first, whatever order the specs were joined in. */
const FIRST: readonly string[] = ["type", "name", "receives", "role"];

/** `optionsOf` for the spec of a source or sink. */
export function adapterOptions(schema: Schema, under: readonly string[] = []): OptionDoc[] {
  const options = optionsOf(schema, under);
  const first = FIRST.flatMap((key) => options.filter((o) => o.key === key));
  return [...first, ...options.filter((o) => !first.includes(o))];
}

/** The texts that an enum or literal (one of a union, too) may be, or null where the schema names none. */
export function choicesOf(schema: Schema): string[] | null {
  const def = (open(schema).core as z.core.$ZodTypes)._zod.def;
  if (def.type === "enum") return Object.values(def.entries).map(String);
  if (def.type === "literal") return def.values.map(String);
  if (def.type !== "union") return null;
  const choices = def.options.flatMap((o) => choicesOf(o) ?? []);
  return choices.length === 0 ? null : choices;
}
