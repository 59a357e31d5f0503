/** Rows of Parquet files as hyparquet reads them, which is none of ours. */
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";

/** Of the files in a folder that fit the pattern, file by file in the order of their names. */
export async function landedRows(folder: string, pattern = "*.parquet"): Promise<Record<string, unknown>[]> {
  const rows: Record<string, unknown>[] = [];
  for (const path of [...new Bun.Glob(pattern).scanSync({ cwd: folder, absolute: true })].sort())
    rows.push(...(await parquetReadObjects({ file: await asyncBufferFromFile(path), compressors })));
  return rows;
}
