/** A lane's reading of Parquet files: a row group is copied out of the file, checked, and read as columns. */
import { isUtf8 } from "node:buffer";
import { tmpdir } from "node:os";
import type { DuckEngine } from "../adapters/duckdb/engine.ts";
import { MemoryFile } from "../adapters/duckdb/memory-file.ts";
import { rowGroupBatches } from "../adapters/duckdb/row-group.ts";
import { changed } from "../adapters/files/blocks.ts";
import { CheckedBytes } from "../adapters/files/file-bytes.ts";
import { parquetFooter } from "../adapters/files/parquet-footer.ts";
import { Failure } from "../core/failure/failure.ts";
import { type PlannedColumn, planColumns } from "../core/formats/parquet/column-plan.ts";
import { MAGIC } from "../core/formats/parquet/footer.ts";
import {
  groupFooter,
  type PlacedChunk,
  placeChunks,
  shownName,
  shownType,
} from "../core/formats/parquet/group-file.ts";
import { notParquet, type ParquetFooter } from "../core/formats/parquet/read-footer.ts";
import { walkPages } from "../core/formats/parquet/walk-pages.ts";
import type { ReadRange } from "../core/pipeline/row-lane.ts";
import { StoredRows } from "../core/pipeline/stored-rows.ts";
import type { FileWork } from "../core/ports/batch-lane.ts";
import type { OpenFile } from "../core/ports/file-bytes.ts";
import type { ColumnField } from "../core/types/table-batch.ts";

/** Groups that are larger as they are stored lie on the disk of the temporary folder while they are read. */
const MEMORY_BYTES = 64 * 1024 * 1024;
const MAX_PAGE_BYTES = 512 * 1024 * 1024;

interface Open {
  readonly bytes: CheckedBytes;
  readonly footer: ParquetFooter;
  readonly columns: readonly PlannedColumn[];
  readonly fields: readonly ColumnField[];
  readonly rows: StoredRows;
}

export interface ParquetLaneParts {
  readonly engine: () => DuckEngine;
  readonly open: OpenFile;
}

export class ParquetRanges {
  readonly #p: ParquetLaneParts;
  #engine: DuckEngine | null = null;
  /** The file of the last range: files come one after another. */
  #open: { readonly file: number; readonly open: Open } | null = null;

  constructor(parts: ParquetLaneParts) {
    this.#p = parts;
  }

  readonly read: ReadRange = async ({ work, checks }, range, skip, table, full) => {
    if (this.#open?.file !== work.file) {
      this.#open?.open.bytes.close();
      this.#open = null;
      this.#open = { file: work.file, open: await this.#opened(work, checks, table.schema) };
    }
    const { open } = this.#open;
    const group = open.footer.groups[range.group];
    if (range.rows === 0 && group === undefined) return 0;
    if (group?.rows !== range.rows) throw changed(work.name, "its row groups are others");
    if (range.rows === 0) return 0;
    const chunks = placeChunks(group);
    const last = chunks.at(-1);
    const size = last === undefined ? 0 : last.at + last.to - last.from;
    const file = new MemoryFile(size > MEMORY_BYTES ? tmpdir() : null);
    try {
      await this.#copy(open, file, chunks, range.rows, work.name);
      this.#engine ??= this.#p.engine();
      let found = 0;
      for (const batch of this.#batches(open, file.path, work.name, range.group)) {
        open.rows.add(batch, range.firstRow + found, skip, table);
        found += batch.rows;
        await full();
      }
      return found;
    } finally {
      file.close();
    }
  };

  async #opened(
    work: FileWork,
    checks: BigUint64Array,
    schema: Parameters<typeof planSchema>[1],
  ): Promise<Open> {
    const bytes = new CheckedBytes(this.#p.open(work), checks, work.name);
    const footer = await parquetFooter(bytes, work.name);
    const columns = planColumns(footer.columns, work.name);
    const fields = columns.map((c, i) => ({ name: shownName(i), type: shownType(c.plan), nullable: true }));
    return { bytes, footer, columns, fields, rows: planSchema(columns, schema, work.name) };
  }

  async #copy(
    { bytes, footer, columns }: Open,
    file: MemoryFile,
    chunks: readonly PlacedChunk[],
    rows: number,
    name: string,
  ): Promise<void> {
    file.write(MAGIC, 0);
    let end = MAGIC.length;
    for (const [i, c] of chunks.entries()) {
      end = c.at;
      for await (const block of bytes.blocks(c.from, c.to)) {
        file.write(block, end);
        end += block.length;
      }
      const where = `column ${JSON.stringify(footer.leaves[i]!.name)}`;
      walkPages(c, where, name, { maxPageBytes: MAX_PAGE_BYTES }, PAGES(file));
    }
    file.write(
      groupFooter(
        columns.map((c) => c.shown),
        rows,
        chunks,
      ),
      end,
    );
  }

  *#batches({ fields }: Open, path: string, name: string, group: number) {
    try {
      yield* rowGroupBatches(this.#engine!, path, fields);
    } catch (e) {
      if (!(e instanceof Failure) || e.code !== "duckdb.query") throw e;
      throw notParquet(`row group ${group} can't be read: ${e.message}`, name);
    }
  }
}

const PAGES = (file: MemoryFile) => ({
  read: (at: number, bytes: number) => file.read(at, bytes),
  crc32: (bytes: Uint8Array) => Bun.hash.crc32(bytes),
});

function planSchema(
  columns: readonly PlannedColumn[],
  schema: ConstructorParameters<typeof StoredRows>[1],
  at: string,
): StoredRows {
  return new StoredRows(columns, schema, { at, isUtf8 });
}
