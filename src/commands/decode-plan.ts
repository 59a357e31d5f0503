/**
 * By which plan the records of a topic are decoded: what `[decode]` says of it, with the contents of the files that it names, so
 * that it holds when they have changed or are gone. What a registry or a folder of schemas has is had from there by the names in
 * the records, under the configuration of whoever decodes: no address and no login is in a plan.
 *
 * Persisted, version 1: a change of shape is a new version with its own reader and a new golden file.
 */
import { createHash } from "node:crypto";
import { dirname } from "node:path";
import { importsOf, type ReadSchemaFile, textOf } from "../adapters/registry/schema-files.ts";
import { type DecodeSection, payloadPlan, topicDecodeSpec } from "../core/config/decode-options.ts";
import {
  corrupt,
  fields,
  fieldsOf,
  keyed,
  nullable,
  oneOf,
  type Place,
  text,
} from "../core/coverage/json-place.ts";
import type { StoredPlan } from "../core/coverage/plan-book.ts";
import { planDamage } from "../core/coverage/plan-json.ts";
import { checkVersion, limited } from "../core/coverage/state-json.ts";
import { Failure } from "../core/failure/failure.ts";

const FORMAT = "twg.plan";
const VERSION = 1;
/** Of the largest schema files there are several have room. */
const MAX_BYTES = 32 * 1024 * 1024;

/** Of one topic, whichever it is. */
type TopicDecode = ReturnType<typeof topicDecodeSpec.parse>;

export interface DecodePlan {
  readonly decode: TopicDecode;
  /** What knows the schemas that records name besides its files. */
  readonly schemas: "registry" | "folder" | null;
  /** By path, as it stands in `decode` or beside such a file. */
  readonly files: ReadonlyMap<string, Uint8Array>;
}

/** `read`: of files that are there. Rejects as `readBytes` does, for a file that the section names and that cannot be read. */
export async function planOf(
  decode: DecodeSection,
  topic: string,
  read: ReadSchemaFile,
): Promise<DecodePlan> {
  const files = new Map<string, Uint8Array>();
  const noted: ReadSchemaFile = async (path) => {
    const bytes = await read(path);
    if (bytes !== null) files.set(path, bytes);
    return bytes;
  };
  for (const part of ["value", "key"] as const) {
    const plan = payloadPlan(decode, topic, part);
    for (const path of [plan?.schemaFile, plan?.readerSchema]) {
      if (path === null || path === undefined) continue;
      const bytes = await noted(path);
      if (plan?.format === "protobuf" && bytes !== null) await importsNoted(bytes, path, noted);
    }
  }
  const { registry, schema_dir } = decode;
  const schemas = registry !== undefined ? "registry" : schema_dir !== undefined ? "folder" : null;
  return { decode: topicDecode(decode, topic), schemas, files };
}

/** A file that cannot be used refuses its records, or the start, and is no worse for being kept. */
async function importsNoted(bytes: Uint8Array, path: string, noted: ReadSchemaFile): Promise<void> {
  try {
    await importsOf(textOf(bytes, path), dirname(path), noted);
  } catch {
    // As far as it could be followed.
  }
}

function topicDecode(decode: DecodeSection, topic: string): TopicDecode {
  const value = payloadPlan(decode, topic, "value")!;
  const key = payloadPlan(decode, topic, "key");
  const { topic: _, registry: __, schema_dir: ___, key: ____, ...all } = decode;
  const options = (plan: typeof value) => ({
    framing: plan.framing,
    schema_file: plan.schemaFile ?? undefined,
    reader_schema: plan.readerSchema ?? undefined,
    subject: plan.subject ?? undefined,
    message: plan.message ?? undefined,
  });
  return {
    ...all,
    ...options(value),
    format: value.format === "text" ? decode.format : value.format,
    on_error: value.onError,
    ...(key === null ? {} : { key: { format: key.format, ...options(key), prefix: key.prefix } }),
  };
}

/** Throws coverage.too_large. */
export function storedPlan({ decode, schemas, files }: DecodePlan): StoredPlan {
  const contents = [...files]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, bytes]) => fileOf(path, bytes));
  const body = { format: FORMAT, version: VERSION, decode: sorted(decode), schemas, files: contents };
  const bytes = new TextEncoder().encode(`${JSON.stringify(body)}\n`);
  if (bytes.length > MAX_BYTES)
    throw new Failure(
      "coverage.too_large",
      `how records are decoded would be ${bytes.length} bytes to keep, allowed are ${MAX_BYTES}`,
      { hint: "It holds the contents of schema files: keep the schema in a file of its own" },
    );
  return { digest: digestOf(bytes), bytes };
}

function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 32);
}

function fileOf(path: string, bytes: Uint8Array) {
  const utf8 = Buffer.from(bytes).toString("utf8");
  return Buffer.from(utf8).equals(bytes) ? { path, text: utf8 } : { path, base64: bytes.toBase64() };
}

/** The same options are the same bytes, in whatever order they stood. */
function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).filter(([, v]) => v !== undefined);
  return Object.fromEntries(
    entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([k, v]) => [k, sorted(v)] as const),
  );
}

/** Throws recovery.plan_corrupt, coverage.newer_version, and recovery.plan_unfit for options that this version does not have. */
export function readPlan(bytes: Uint8Array, digest: string): DecodePlan {
  const object = `plan-${digest}`;
  try {
    const at = limited(bytes, object, MAX_BYTES);
    checkVersion(at, FORMAT, VERSION);
    if (digestOf(bytes) !== digest)
      throw corrupt({ ...at, path: "$" }, "other bytes than those that were written", digest);
    const f = fields(at, "format", "version", "decode", "schemas", "files");
    return {
      decode: decodeAt(f.decode),
      schemas: nullable(f.schemas, (s) => oneOf(s, ["registry", "folder"] as const)),
      files: keyed(f.files, contentsOf),
    };
  } catch (e) {
    throw planDamage(e, object);
  }
}

function decodeAt(at: Place): TopicDecode {
  const read = topicDecodeSpec.safeParse(at.value);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new Failure(
    "recovery.plan_unfit",
    `records were decoded by an option that this twg does not have: ${issue?.path.join(".")}: ${issue?.message}`,
    {
      at: `${at.object} ${at.path}`,
      hint: "Run the twg that wrote it, or a newer one; `--replan` decodes by the configuration of now",
    },
  );
}

function contentsOf(at: Place): readonly [string, Uint8Array] {
  const f = fieldsOf(at, ["path"], ["text", "base64"]);
  if ((f.text === undefined) === (f.base64 === undefined)) throw corrupt(at, "no contents", "text or base64");
  if (f.text !== undefined) return [text(f.path), new TextEncoder().encode(text(f.text))];
  try {
    return [text(f.path), Uint8Array.fromBase64(text(f.base64!))];
  } catch {
    throw corrupt(f.base64!, "no base64", "base64");
  }
}
