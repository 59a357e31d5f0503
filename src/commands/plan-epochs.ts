/**
 * Plan epochs of a pipeline: live ingest writes down, beside raw's coverage, from which position on which plan decodes for each sink of
 * derived rows. Recovery reads it.
 */
import { type ReadSchemaFile, readBytes } from "../adapters/registry/schema-files.ts";
import type { DecodeSection } from "../core/config/decode-options.ts";
import { type BegunStream, PlanBook, type StoredPlan } from "../core/coverage/plan-book.ts";
import { asFailure, type Failure, toWire } from "../core/failure/failure.ts";
import type { SecondarySpec } from "../core/pipeline/secondary-parts.ts";
import type { Observer } from "../core/ports/observer.ts";
import type { VersionedStore } from "../core/ports/versioned-store.ts";
import { type StreamKey, streamParts } from "../core/records/stream.ts";
import type { ResolvedConfig } from "./config-file.ts";
import { planOf, storedPlan } from "./decode-plan.ts";
import type { DedupService } from "./dedup-service.ts";
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
  /** By digest: a plan of many topics, with its schema files, is in memory once. */
  readonly #shared = new Map<string, StoredPlan>();

  constructor(decode: DecodeSection, read: ReadSchemaFile) {
    this.#decode = decode;
    this.#read = read;
  }

  /** Rejects where a schema file cannot be read now, and with coverage.too_large. */
  of(topic: string): Promise<StoredPlan> {
    const known = this.#plans.get(topic) ?? this.#made(topic);
    this.#plans.set(topic, known);
    known.catch(() => this.#plans.delete(topic));
    return known;
  }

  async #made(topic: string): Promise<StoredPlan> {
    const made = storedPlan(await planOf(this.#decode, topic, this.#read));
    const shared = this.#shared.get(made.digest) ?? made;
    this.#shared.set(made.digest, shared);
    return shared;
  }
}

interface EpochParts {
  readonly instance: string;
  readonly read: ReadSchemaFile;
  readonly observer: Observer;
}

/**
 * `judged`: of a sink that leaves duplicates out. What they are judged by begins where the plan does, and is written first: else records that are
 * recovered by the plan of their time would be found under another judgement (decision 0038).
 */
type BeginsOf = (
  sink: string,
  hook: PointHook | null,
  judged: Pick<DedupService, "begin"> | null,
) => NonNullable<SecondarySpec["begin"]>;

/** What a sink of derived rows does before live ingest decodes records of a stream for it. */
export function epochsOf(
  config: Pick<ResolvedConfig, "decode">,
  versions: VersionedStore | undefined,
  { instance, read, observer }: EpochParts,
): BeginsOf | null {
  if (config.decode === null || versions === undefined) return null;
  const plans = new PresentPlans(config.decode as DecodeSection, read);
  const book = new PlanBook({ versions, instance });
  return (sink, hook, judged) => async (streams) => {
    const failed = new Map<StreamKey, Failure>();
    const begun: BegunStream[] = [];
    for (const { key: stream, position: from, skip, generation } of streams)
      try {
        const plan = await plans.of(streamParts(stream).topic);
        begun.push({ stream, from, skip, generation, plan });
      } catch (e) {
        // Other topics do not wait for it.
        failed.set(stream, asFailure(e));
      }
    if (begun.length > 0) await judged?.begin(begun.map(({ stream, from }) => ({ stream, from })));
    await hook?.("before_epoch");
    const noRoom = begun.length === 0 ? null : await book.enter(sink, begun);
    // The sink is fed all the same: it is recovery that goes by an earlier plan there.
    if (noRoom !== null) observer.emit({ e: "recovery.troubled", sink, failure: toWire(noRoom) });
    await hook?.("after_epoch");
    return failed;
  };
}
