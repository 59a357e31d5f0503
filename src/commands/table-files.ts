/** What the files of a table say of its columns, where nothing else does: a folder that was filled before its schema was kept. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { openLocalFile } from "../adapters/files/file-bytes.ts";
import { parquetFooter } from "../adapters/files/parquet-footer.ts";
import type { S3Objects } from "../adapters/object-store/s3-objects.ts";
import type { FileColumns } from "../core/coverage/live-table.ts";
import { planColumns } from "../core/formats/parquet/column-plan.ts";
import type { FileBytes } from "../core/ports/file-bytes.ts";
import { isReserved } from "../core/types/reserved.ts";

/** Opened when its turn comes. */
export interface TableFile {
  readonly name: string;
  open(): Promise<FileBytes>;
}

const PARQUET = /^[^/]+\.parquet$/;

/** The newest files of a folder of this machine, oldest first. */
export async function newestFiles(root: string, most: number): Promise<readonly TableFile[]> {
  const names = await readdir(root).catch((e: unknown) => {
    if (e instanceof Error && "code" in e && e.code === "ENOENT") return [];
    throw e;
  });
  const found = await Promise.all(
    names
      .filter((n) => PARQUET.test(n))
      .map(async (n) => {
        const path = join(root, n);
        const { size: bytes, mtimeMs } = await stat(path);
        return { name: path, at: mtimeMs, open: async () => openLocalFile({ path, bytes, revision: null }) };
      }),
  );
  return newest(found, most);
}

/** The same in a bucket. */
export async function newestObjects(objects: S3Objects, most: number): Promise<readonly TableFile[]> {
  const found = (await objects.list("")).filter((o) => PARQUET.test(o.key));
  return newest(
    found.map(({ key, bytes: size, ageMs }) => ({
      name: `${objects.place}/${key}`,
      at: -ageMs,
      open: async () => ({
        size,
        read: (from: number, to: number) => objects.getRange(key, from, to, null),
        close: () => {},
      }),
    })),
    most,
  );
}

function newest<F extends { readonly name: string; readonly at: number }>(files: F[], most: number): F[] {
  return files.sort((a, b) => a.at - b.at || (a.name < b.name ? -1 : 1)).slice(-most);
}

/**
 * Columns of each, without metadata. Throws files.not_parquet, files.parquet_feature, files.parquet_type: of such a folder
 * nobody can say what its table is.
 */
export async function columnsOfFiles(
  files: readonly TableFile[],
  prefix: string,
): Promise<readonly FileColumns[]> {
  const out: FileColumns[] = [];
  for (const { name, open } of files) {
    const bytes = await open();
    try {
      const footer = await parquetFooter(bytes, name);
      const fields = planColumns(footer.columns, name).map((c) => ({ ...c.field, nullable: true }));
      out.push({ name, fields: fields.filter((f) => !isReserved(f.name, prefix)) });
    } finally {
      bytes.close();
    }
  }
  return out;
}
