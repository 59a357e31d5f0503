/** `[[sink]] type = "parquet"`: every option of the Parquet sink, declared once. */
import * as z from "zod";
import { byteSize, durationMs, KIB, MIB, wholeNumber } from "../../core/config/option-types.ts";
import { DEFAULT_METADATA_PREFIX, METADATA_PREFIX_PATTERN } from "../../core/records/metadata-columns.ts";
import { TEMPLATE_NAMES, templateProblem } from "./template.ts";

export const parquetSinkSpec = z.strictObject({
  path: z
    .string()
    .min(1)
    .superRefine((path, ctx) => {
      const problem = templateProblem(path);
      if (problem === null) return;
      ctx.addIssue({ code: "custom", message: problem, params: { code: "config.range" } });
    })
    .describe(
      "Folder of the files, or `s3://bucket/prefix`. Parts in braces are filled in for each record: {topic}, {partition}, {date} and {hour} (of the record's timestamp, UTC), {pipeline}. What stands before the first of them is the root: coverage and staged files live there, in `_twg`. A relative path begins at the working directory of the process.",
    )
    .meta({
      allowed: `a folder path or s3://bucket/prefix, in which only ${TEMPLATE_NAMES.map((n) => `{${n}}`).join(", ")} may stand in braces`,
      examples: ["/data/raw/{topic}/{date}", "s3://lake/raw/{topic}/{date}"],
    }),
  roll_bytes: byteSize({ min: 64 * KIB, max: 64 * 1024 * MIB })
    .default(256 * MIB)
    .describe("A file is closed when it has reached this size.")
    .meta({
      unit: "bytes",
      examples: ["256MiB"],
      why: "Large enough for scans, small enough to be read whole.",
    }),
  roll_interval_ms: durationMs({ min: 50, max: 86_400_000 })
    .default(10_000)
    .describe("Files are closed, published and acknowledged at the latest after this time.")
    .meta({ unit: "ms", examples: ["10s"], why: "Bounds what a crash makes us read again." }),
  retention_ms: durationMs({ min: 60_000, max: 100 * 365 * 86_400_000 })
    .optional()
    .describe(
      "Of the primary sink: how long its files are kept by whatever removes them (a lifecycle rule, a job of yours; twg removes none). When a sink lacks records whose file has a quarter of this time left, twg warns: fill the gap before.",
    )
    .meta({ unit: "ms", examples: ["30d"] }),
  row_group_bytes: byteSize({ min: 64 * KIB, max: 1024 * MIB })
    .default(32 * MIB)
    .describe(
      "Raw bytes of a row group. Its compressed pages are held in memory until it is complete, in each lane and open file.",
    )
    .meta({
      unit: "bytes",
      examples: ["32MiB"],
      why: "Some 130,000 records of 250 B, a reader's unit of work; held are 7 MB of JSON, at most all of it.",
    }),
  compression: z
    .enum(["zstd", "none"])
    .default("zstd")
    .describe("Compression of the pages.")
    .meta({ why: "Read by everything, and five times smaller for JSON." }),
  compression_level: wholeNumber({ min: 1, max: 19 })
    .default(1)
    .describe("Level of zstd. Higher is smaller and slower.")
    .meta({ examples: [1], why: "Level 3 costs a quarter more time for one or two percent." }),
  metadata_prefix: z
    .string()
    .regex(METADATA_PREFIX_PATTERN)
    .default(DEFAULT_METADATA_PREFIX)
    .describe("Prefix of the column names. Fixed once files exist.")
    .meta({ allowed: "1 to 32 of a-z, 0-9 and '_', not beginning with a digit" }),
  max_open_files: wholeNumber({ min: 1, max: 4096 })
    .default(64)
    .describe(
      "Most files that a lane has open. Before there would be more, all are closed and published, and the next record begins a new set. Below the number of folders that a lane fills at a time, files are small and many.",
    )
    .meta({
      unit: "files",
      examples: [64],
      why: "A file costs 10 KB to begin with and up to 3 MB beside its row group.",
    }),
});

export type ParquetSinkOptions = z.output<typeof parquetSinkSpec>;
