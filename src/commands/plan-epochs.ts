/**
 * Plan epochs of a pipeline: live ingest writes down, beside raw's coverage, from which position on which plan decodes for each sink of
 * derived rows. Recovery reads it.
 */
import { type ReadSchemaFile, readBytes } from "../adapters/registry/schema-files.ts";
import type { DecodeSection } from "../core/config/decode-options.ts";
import { PlanBook, type StoredPlan } from "../core/coverage/plan-book.ts";
import type { SecondarySpec } from "../core/pipeline/secondary-parts.ts";
import type { VersionedStore } from "../core/ports/versioned-store.ts";
import { streamParts } from "../core/records/stream.ts";
import type { ResolvedConfig } from "./config-file.ts";
import { planOf, storedPlan } from "./decode-plan.ts";
import type { PointHook } from "./sink-parts.ts";

/** A file is what it was when it was first read: by what is kept, records are decoded, whatever becomes of the file meanwhile. */
export function readOnce(read: ReadSchemaFile = readBytes): ReadSchemaFile {
  const files = new Map<string, Promise<Uint8Array | null>>();
  return async (path) => {
    const reading = files.get(path) ?? read(path);
    files.set(path, reading);
    const bytes = await reading.catch(() => null);
    // It may be there the next time.
    if (bytes === null) files.delete(path);
    return await reading;
  };
}

/** The plans by which a configuration decodes; of each topic the same as long as the process runs. */
export class PresentPlans {
  readonly #decode: DecodeSection;
  readonly #read: ReadSchemaFile;
  readonly #plans = new Map<string, Promise<StoredPlan>>();

  constructor(decode: DecodeSection, read: ReadSchemaFile) {
    this.#decode = decode;
    this.#read = read;
  }

  /** Rejects where a schema file cannot be read now, and with coverage.too_large. */
  of(topic: string): Promise<StoredPlan> {
    const known = this.#plans.get(topic) ?? planOf(this.#decode, topic, this.#read).then(storedPlan);
    this.#plans.set(topic, known);
    known.catch(() => this.#plans.delete(topic));
    return known;
  }
}

/** What a sink of derived rows does before live ingest decodes records of a stream for it. */
export function epochsOf(
  config: Pick<ResolvedConfig, "decode">,
  versions: VersionedStore | undefined,
  { instance, read }: { readonly instance: string; readonly read: ReadSchemaFile },
): ((sink: string, hook: PointHook | null) => NonNullable<SecondarySpec["begin"]>) | null {
  if (config.decode === null || versions === undefined) return null;
  const plans = new PresentPlans(config.decode as DecodeSection, read);
  const book = new PlanBook({ versions, instance });
  return (sink, hook) => async (streams) => {
    const begun = streams.map(async ({ key: stream, position: from, skip, generation }) => {
      return { stream, from, skip, generation, plan: await plans.of(streamParts(stream).topic) };
    });
    await hook?.("before_epoch");
    await book.enter(sink, await Promise.all(begun));
    await hook?.("after_epoch");
  };
}
