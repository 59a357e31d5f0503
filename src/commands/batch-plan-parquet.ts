/** A Parquet file in the plan of a batch job: its footer says its columns, their types and its row groups. */

import type { LocalFile } from "../adapters/files/locate.ts";
import { parquetFooter } from "../adapters/files/parquet-footer.ts";
import { Failure } from "../core/failure/failure.ts";
import { type PlannedColumn, planColumns } from "../core/formats/parquet/column-plan.ts";
import type { FileLayout } from "../core/ports/batch-lane.ts";
import type { OpenFile } from "../core/ports/file-bytes.ts";

export interface ParquetPlan {
  readonly layout: FileLayout;
  readonly columns: readonly PlannedColumn[];
}

/** Throws files.not_parquet, files.parquet_feature, files.parquet_type. */
export async function planParquet(file: LocalFile, open: OpenFile): Promise<ParquetPlan> {
  const bytes = open(file);
  try {
    const footer = await parquetFooter(bytes, file.name);
    if (footer.columns.length === 0)
      throw new Failure("files.schema", "the file has no columns", { at: file.name });
    const columns = planColumns(footer.columns, file.name);
    return { layout: { format: "parquet", groups: footer.groups.map((g) => g.rows) }, columns };
  } finally {
    bytes.close();
  }
}
