/** The `[dedup]` section: how far back a record with the same natural key makes another one a duplicate. */
import * as z from "zod";
import { byteSize, durationMs, MIB, wholeNumber } from "./option-types.ts";

export const dedupSpec = z
  .strictObject({
    window_records: wholeNumber({ min: 1, max: 100_000_000 })
      .default(100_000)
      .describe(
        "Of each partition: how many positions before a record another one with its natural key makes it a duplicate. So many keys are kept for each partition, 32 to 160 bytes each, and so many records are read from raw when a partition begins.",
      )
      .meta({
        unit: "positions",
        examples: [1_000_000],
        why: "Producers that try again do so within seconds; 100,000 records are 16 MB at most.",
      }),
    window_ms: durationMs({ min: 1, max: 365 * 86_400_000 })
      .optional()
      .describe(
        "Most time between the timestamps of the two records. Timestamps are what producer or broker wrote; the later one in the partition is the duplicate whatever they say.",
      )
      .meta({ unit: "ms", examples: ["1h"], why: "Without it: the window of positions alone." }),
    max_bytes: byteSize({ min: MIB, max: 64 * 1024 * MIB })
      .default(128 * MIB)
      .describe(
        "Most memory of a lane for the keys of all its partitions. Where it does not do, sinks without duplicates take nothing more of a partition, and say so, until the next start.",
      )
      .meta({
        unit: "bytes",
        examples: ["512MiB"],
        why: "Eight partitions with windows of the default size.",
      }),
  })
  .describe(
    "Records that are left out because an earlier one has their natural key: sinks with `duplicates` = drop.",
  );

export type DedupSection = z.output<typeof dedupSpec>;
