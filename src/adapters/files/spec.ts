/** `[source] type = "files"`: every option of bounded sources, declared once. `twg batch` takes the same on its command line. */
import * as z from "zod";
import { byteSize, KIB, MIB, wholeNumber } from "../../core/config/option-types.ts";

const oneByte = (allowed: string) =>
  z
    .string()
    .refine((s) => s.length === 1 && s.charCodeAt(0) < 128 && s !== "\n" && s !== "\r", "one ASCII character")
    .meta({ allowed });

const csvSpec = z
  .strictObject({
    delimiter: oneByte('one ASCII character, such as "," or "\\t"')
      .optional()
      .describe("What stands between two fields.")
      .meta({
        examples: [","],
        why: "Without it: whichever of , ; tab | gives every record as many fields.",
      }),
    quote: z
      .union([z.literal(""), oneByte("")])
      .default('"')
      .describe("What fields are quoted with; empty: nothing is.")
      .meta({ allowed: 'one ASCII character, or ""' }),
    escape: z
      .union([z.literal(""), oneByte("")])
      .default("")
      .describe("What makes a quote text within quotes; empty: the quote itself, doubled.")
      .meta({ allowed: 'one ASCII character, or ""', why: "RFC 4180." }),
    header: z
      .enum(["auto", "yes", "no"])
      .default("auto")
      .describe(
        "Whether the first record names the columns. auto: yes, unless it looks like the rows below it; where that is doubtful the job stops and asks.",
      ),
    nulls: z
      .array(z.string())
      .max(16)
      .default([""])
      .describe("Unquoted fields of exactly these texts are null.")
      .meta({ examples: [["", "NULL"]], why: "An empty field is null, a quoted empty one is empty text." }),
  })
  .describe("How CSV files spell their rows.");

export const filesSourceSpec = z.strictObject({
  paths: z
    .array(z.string().min(1))
    .min(1)
    .max(10_000)
    .describe(
      "Files in the order they are read: paths, globs (*, **, ?, [..], {..}), both of this machine or behind s3://bucket/, http:// and https:// addresses, or - for standard input. A folder stands for the files in it.",
    )
    .meta({ examples: [["in/*.csv.gz"]] }),
  format: z
    .enum(["auto", "csv", "ndjson", "json", "parquet", "avro"])
    .default("auto")
    .describe("Format of all files. json: one array of objects a file. avro: object container files.")
    .meta({ why: "By the names: .csv .tsv .ndjson .jsonl .json .parquet .avro, before .gz or .zst." }),
  compression: z
    .enum(["auto", "none", "gzip", "zstd"])
    .default("auto")
    .describe("Compression of all files. auto: by their first bytes."),
  encoding: z
    .enum(["auto", "utf-8", "windows-1252", "iso-8859-1", "utf-16le", "utf-16be"])
    .default("auto")
    .describe(
      "Encoding of text files. auto: a byte order mark decides, else UTF-8; rows with bytes that are no UTF-8 are refused.",
    ),
  csv: csvSpec.default(() => csvSpec.parse({})),
  schema: z
    .string()
    .min(1)
    .optional()
    .describe(
      "File with the schema as JSON: { columns: [{ name, type, nullable?, source? }] }; `twg batch --print-schema` writes one. Or a data contract (ODCS), an Arrow schema, or an Avro schema (.avsc).",
    )
    .meta({
      examples: ["orders.schema.json"],
      why: "Without it: FILE.schema.json beside the first file, else _schema.json in its folder, else inferred.",
    }),
  infer_rows: wholeNumber({ min: 1, max: 10_000_000 })
    .default(20_000)
    .describe(
      "Rows that are looked at to infer a schema. Later rows that do not fit it are refused, never bent.",
    )
    .meta({ unit: "rows", why: "Well below a second." }),
  max_rejects: wholeNumber({ min: 0 })
    .default(0)
    .describe(
      "Most rows that may be refused before the job fails. Refused rows are written with line and reason below `_rejects` in the sink, in the same step as the good ones.",
    )
    .meta({ unit: "rows", why: "A bad row is a question for a person until somebody says otherwise." }),
  metadata: z
    .enum(["none", "locator", "all"])
    .default("locator")
    .describe(
      "Columns that say where a row came from: source_topic (file), source_message_id (its digest) and source_offset (row), after the prefix. all: every metadata column that a decoded table has, those that files lack null.",
    )
    .meta({ why: "So that every row can be found in its file." }),
  piece_bytes: byteSize({ min: 64 * KIB, max: 256 * MIB })
    .default(8 * MIB)
    .describe(
      "Text that is decoded at a time. Memory is about base + lanes x (6 x this + 4 x row_group_bytes).",
    )
    .meta({ unit: "bytes", examples: ["8MiB"], why: "Some 100 ms of work." }),
  max_record_bytes: byteSize({ min: KIB, max: 1024 * MIB })
    .default(16 * MIB)
    .describe(
      "Largest record, and of Avro largest block, stored and unpacked. A larger one ends the job: mostly it is a quote that is never closed.",
    )
    .meta({ unit: "bytes", examples: ["16MiB"] }),
});

export type FilesOptions = z.output<typeof filesSourceSpec>;
