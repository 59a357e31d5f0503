/** `[decode.infer]`: how the columns of JSON that has no schema are learned from its records. */
import * as z from "zod";
import { byteSize, durationMs, KIB, MIB, wholeNumber } from "./option-types.ts";

export const inferSpec = z.strictObject({
  max_records: wholeNumber({ min: 1, max: 100_000 })
    .default(1_000)
    .describe("Records of a topic that are looked at before its columns are fixed.")
    .meta({
      unit: "records",
      examples: [1_000],
      why: "Enough to meet what is rare, a fraction of a second of a busy topic.",
    }),
  max_bytes: byteSize({ min: KIB, max: 64 * MIB })
    .default(MIB)
    .describe("Bytes of them: whichever comes first.")
    .meta({ unit: "bytes", examples: ["1MiB"], why: "They are held in memory, and parsed at once." }),
  max_wait_ms: durationMs({ min: 0, max: 600_000 })
    .default(5_000)
    .describe("Longest that decoding waits for so many. Raw goes on meanwhile.")
    .meta({ unit: "ms", examples: ["5s"], why: "A topic of few records gets its table all the same." }),
  max_columns: wholeNumber({ min: 1, max: 1_500 })
    .default(500)
    .describe("Columns of a topic that may be learned; records with others are refused.")
    .meta({
      unit: "columns",
      examples: [500],
      why: "Keys that are data, such as ids, would make columns without end. PostgreSQL takes 1,600.",
    }),
  new_fields: z
    .enum(["add", "reject"])
    .default("add")
    .describe(
      "Fields that come after the columns were fixed: each is a column from then on, or refuses its record (decode.unknown_field).",
    )
    .meta({ why: "Producers add fields; what is there keeps its type." }),
});

export type InferOptions = z.output<typeof inferSpec>;
