/** Error codes of bounded sources and of the engine over columns: a part of the one list in `codes.ts`. */
import { spec } from "./code-spec.ts";

export const FILE_CODES = {
  // files
  "files.none": spec("config", false, "No file matches an input of a batch job."),
  "files.unreadable": spec("environment", false, "An input file cannot be opened or read."),
  "files.format": spec(
    "config",
    false,
    "The format of a file is not known from its name. Name it with --format.",
  ),
  "files.changed": spec(
    "runtime",
    false,
    "A file changed while it was read. What was covered is of the content that was hashed; run again when it is at rest.",
  ),
  "files.compression": spec("runtime", false, "A compressed file is damaged or cut short."),
  "files.encoding": spec(
    "runtime",
    false,
    "A file holds bytes that its encoding does not allow. Declare the encoding.",
  ),
  "files.record_too_large": spec(
    "runtime",
    false,
    "A record, or a block of an Avro file, is above the limit; in CSV most often a quoted field that is never closed.",
  ),
  "files.header": spec("config", false, "The header of a CSV is missing, doubtful, or names a column twice."),
  "files.dialect": spec(
    "config",
    false,
    "No dialect of CSV fits the file. Declare the delimiter and the quote.",
  ),
  "files.schema": spec("config", false, "A schema can't be read, or a file does not fit it."),
  "files.unknown_column": spec(
    "config",
    false,
    "A file has a column that the schema does not know; leaving it out would lose it silently.",
  ),
  "files.count": spec(
    "runtime",
    false,
    "Two independent counts of the records of a piece differ. Nothing of it was covered.",
  ),
  "files.too_many_rejects": spec("runtime", false, "More rows were refused than max_rejects allows."),
  "files.not_json": spec("runtime", false, "A JSON document is no array of objects, or is cut short."),
  "files.not_parquet": spec("runtime", false, "A file is no Parquet file, or it is damaged or cut short."),
  "files.not_avro": spec(
    "runtime",
    false,
    "A file is no Avro object container file, or it is damaged or cut short.",
  ),
  "files.avro_codec": spec(
    "runtime",
    false,
    "An Avro file is compressed with a codec that cannot be read here.",
  ),
  "files.parquet_feature": spec(
    "runtime",
    false,
    "A Parquet file is encrypted, or written in a way that cannot be read here.",
  ),
  "files.parquet_type": spec("config", false, "A Parquet column has a type that cannot be carried exactly."),
  "files.http": spec("environment", true, "A file could not be fetched over HTTP."),
  "files.scratch": spec(
    "environment",
    false,
    "There is no room to keep a file, or a part of it, while it is read.",
  ),
  // engine
  "duckdb.query": spec("runtime", false, "DuckDB refused a statement; its own words are in the message."),
  "duckdb.interrupted": spec("runtime", false, "A query was ended because its caller stopped."),
  "duckdb.out_of_memory": spec("environment", false, "A query needs more memory than the engine was given."),
  "duckdb.memory": spec("environment", false, "The system gives no file in memory (memfd_create)."),
  "duckdb.io": spec("environment", true, "DuckDB could not read or write a file."),
  "duckdb.type": spec(
    "config",
    false,
    "A column has a type that has no counterpart here. Cast it to a plain one.",
  ),
} as const;
