/** Tables to Parquet in a lane: by our own encoder, and by DuckDB what that does not know. */
import { DuckEngine } from "../adapters/duckdb/engine.ts";
import { ParquetEncoder, type ParquetEncoding } from "../adapters/duckdb/parquet-encode.ts";
import { type Codecs, zstdBound } from "../core/compression/codec.ts";
import { type PageCodec, PageContext } from "../core/formats/parquet/page.ts";
import { SlabPool } from "../core/formats/parquet/slabs.ts";
import { TableEncoder } from "../core/formats/parquet/table-file.ts";
import type { TableBatch } from "../core/types/table-batch.ts";

/** Of the engine that encodes row groups. */
const ENGINE_BYTES = 256 * 1024 * 1024;

export function tableEncoding(encoding: ParquetEncoding, codecs: Codecs): (batch: TableBatch) => Uint8Array {
  const zstd: PageCodec = {
    name: "zstd",
    bound: zstdBound,
    compress: (input, output) => codecs.zstdCompress(input, output, encoding.level),
  };
  const own = new TableEncoder(
    new PageContext(encoding.compression === "zstd" ? zstd : null, new SlabPool(), codecs.crc32),
  );
  let engine: ParquetEncoder | null = null;
  return (batch) => {
    const file = own.encode(batch);
    if (file !== null) return file;
    engine ??= new ParquetEncoder(
      new DuckEngine({ threads: 1, memoryBytes: ENGINE_BYTES, spill: null, allowed: [] }),
      encoding,
    );
    return engine.encode(batch);
  };
}
