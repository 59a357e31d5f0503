/** What the configuration needs to know of an adapter, and the options that all sources or all sinks share. */
import * as z from "zod";
import { byteSize, MIB } from "./option-types.ts";

export type AdapterKind = "source" | "sink";

export interface AdapterSpec {
  readonly kind: AdapterKind;
  /** The value of `type`. */
  readonly name: string;
  readonly about: string;
  /** Its own options; those of `sharedOptions` need not be repeated. */
  readonly spec: z.ZodObject;
}

/** Part of file names and metric labels. */
const SINK_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;

const sinkShared = {
  name: z
    .string()
    .regex(SINK_NAME)
    .describe("Names the sink in coverage, metrics and messages. Fixed once data was written.")
    .meta({
      allowed: "1 to 63 of a-z, 0-9, '-' and '_', beginning with a letter or digit",
      examples: ["raw"],
    }),
  receives: z
    .enum(["raw", "decoded", "rejected"])
    .default("raw")
    .describe(
      "What the sink gets. raw: the records as they came. decoded: rows of typed columns, made by [decode]. rejected: records that cannot be decoded, with the reason and all of their bytes.",
    )
    .meta({ why: "What a primary sink gets." }),
  role: z
    .enum(["primary_raw", "secondary"])
    .optional()
    .describe(
      "primary_raw: the one sink whose durable write allows the acknowledgement of the source. secondary: gets the same records at the same time, and never holds the source up: what it cannot take is a gap of it.",
    )
    .meta({
      examples: ["primary_raw"],
      why: "Without it: primary_raw where it is the only sink, else secondary.",
    }),
  metadata: z
    .enum(["none", "locator", "all"])
    .default("locator")
    .describe(
      "Of a sink of decoded rows: which metadata columns stand behind the payload's. locator: topic, partition, offset and the id of the schema; all: every one but the value. A raw sink has all of them whatever this says.",
    )
    .meta({ why: "Enough to find the record that a row came from." }),
  duplicates: z
    .enum(["keep", "drop"])
    .default("keep")
    .describe(
      "Of a sink of decoded rows: what becomes of a record whose natural key (the primaryKey of its data contract) an earlier record of its partition has, within the window of [dedup]. drop: it is left out, counted, and its position counts as landed.",
    )
    .meta({ why: "Only whoever declares a key knows that two records are one." }),
  hold_bytes: byteSize({ min: MIB, max: 1024 * MIB })
    .default(16 * MIB)
    .describe(
      "Of a secondary sink: most bytes of memory in each lane. A sink that does not keep up within it is detached for a while. One batch of records is taken whatever its size where half of this is free. Row groups and transactions of it are at most a quarter of this. Without effect on the primary sink.",
    )
    .meta({ unit: "bytes", examples: ["32MiB"], why: "A second or so of records for a sink that pauses." }),
};

/** The whole spec of a `[source]` or `[[sink]]` of this type: shared options first, an adapter's own winning. */
export function fullSpec(adapter: AdapterSpec): z.ZodObject {
  const type = z.literal(adapter.name).describe(`This ${adapter.kind}: ${adapter.about}`);
  const shared: Record<string, z.ZodType> = adapter.kind === "sink" ? { type, ...sinkShared } : { type };
  for (const key of Object.keys(adapter.spec.shape)) delete shared[key];
  // A plain cast: with a shape known only at run time the typed form of the call has nothing to check.
  return (adapter.spec as z.ZodObject<Record<string, z.ZodType>>).safeExtend(shared as Record<string, never>);
}

// Type aliases: unlike interfaces they pass as records of options.
export type SourceShared = { readonly type: string };

export type SinkShared = {
  readonly name: string;
  readonly receives: "raw" | "decoded" | "rejected";
  readonly metadata: "none" | "locator" | "all";
  readonly duplicates: "keep" | "drop";
  /** Of the checked configuration always. */
  readonly role: "primary_raw" | "secondary";
  readonly hold_bytes: number;
};
