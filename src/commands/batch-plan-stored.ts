/** Files that say their columns themselves, in the plan of a batch job: Parquet by its footer, Avro by its header. */
import { isUtf8 } from "node:buffer";
import { avroHeader } from "../adapters/files/avro-header.ts";
import type { LocalFile } from "../adapters/files/locate.ts";
import { parquetFooter } from "../adapters/files/parquet-footer.ts";
import { Failure } from "../core/failure/failure.ts";
import { planColumns } from "../core/formats/parquet/column-plan.ts";
import { avroDecoder } from "../core/pipeline/avro-rows.ts";
import { plainColumn, type StoredColumn } from "../core/pipeline/stored-rows.ts";
import type { AvroLayout, Compression, FileLayout } from "../core/ports/batch-lane.ts";
import type { OpenFile } from "../core/ports/file-bytes.ts";
import type { SharedTexts } from "./shared-texts.ts";

export interface StoredPlan {
  readonly layout: FileLayout;
  readonly columns: readonly StoredColumn[];
}

/** Throws files.not_parquet, files.parquet_feature, files.parquet_type. */
export async function planParquet(file: LocalFile, open: OpenFile): Promise<StoredPlan> {
  const bytes = open(file);
  try {
    const footer = await parquetFooter(bytes, file.name);
    const columns = planColumns(footer.columns, file.name);
    refuseNone(columns, file);
    return { layout: { format: "parquet", groups: footer.groups.map((g) => g.rows) }, columns };
  } finally {
    bytes.close();
  }
}

/** `reader`: the Avro schema that records are resolved to, as JSON. Throws files.not_avro, files.avro_codec, files.schema. */
export async function planAvro(
  file: LocalFile,
  compression: Compression,
  reader: string | null,
  open: OpenFile,
  texts: SharedTexts,
): Promise<StoredPlan> {
  const { schema, codec, marker, end: header } = await avroHeader(file, file.name, compression, open);
  const layout: AvroLayout = { format: "avro", codec, schema: texts.of(schema), reader, marker, header };
  const columns = avroDecoder(layout, isUtf8, file.name).fields.map(plainColumn);
  refuseNone(columns, file);
  return { layout, columns };
}

function refuseNone(columns: readonly StoredColumn[], { name }: LocalFile): void {
  if (columns.length === 0) throw new Failure("files.schema", "the file has no columns", { at: name });
}
