/**
 * The end of a sink of decoded rows in a lane: batches of columns as rows of a set. Rows that PostgreSQL cannot hold are
 * refused one by one; their lines become durable in the table `reject` with the set that they were in.
 */
import type { Authority } from "../../core/ports/coverage.ts";
import type { SetFiles, SetRefusal } from "../../core/ports/lane-parts.ts";
import type { TableSink } from "../../core/ports/table-sink.ts";
import type { Span } from "../../core/records/stream.ts";
import type { ColumnField, TableBatch } from "../../core/types/table-batch.ts";
import { appendTableRows, type RefusedRow, type TargetColumn } from "./copy/table-rows.ts";
import { CopySet, type CopySetOptions, type CopySetParts } from "./copy-set.ts";
import type { Upsert } from "./table/upsert.ts";

export interface PostgresTableOptions extends CopySetOptions {
  readonly fields: readonly ColumnField[];
  /** The table's column for each field, as `prepareFields` found it. */
  readonly targets: readonly TargetColumn[];
  /** Null: rows are added. */
  readonly upsert: Omit<Upsert, "columns"> | null;
}

export interface PostgresTableParts extends CopySetParts {
  /** The line of a row that this sink refuses. */
  readonly refused: (batch: TableBatch, row: RefusedRow) => string;
}

export class PostgresTableWriter implements TableSink {
  readonly #o: PostgresTableOptions;
  readonly #p: PostgresTableParts;
  readonly #set: CopySet;

  constructor(options: PostgresTableOptions, parts: PostgresTableParts) {
    this.#o = options;
    this.#p = parts;
    const columns = options.fields.map((f) => f.name);
    this.#set = new CopySet(
      options,
      parts,
      columns,
      options.upsert === null ? null : { ...options.upsert, columns },
    );
  }

  get held(): number {
    return this.#set.blocks.held;
  }

  get size(): number {
    return this.#set.blocks.length;
  }

  open(id: string): void {
    this.#set.open(id);
  }

  write(batch: TableBatch): void {
    const rows = appendTableRows(batch, this.#o.targets, this.#set.blocks, (r) =>
      this.#set.reject(this.#p.refused(batch, r)),
    );
    this.#set.added(null, rows, 0);
  }

  reject(lines: Uint8Array): void {
    for (const line of new TextDecoder().decode(lines).split("\n")) if (line !== "") this.#set.reject(line);
  }

  flush(): Promise<void> {
    return this.#set.flush();
  }

  seal(spans: readonly Span[], authorities: readonly Authority[]): Promise<SetFiles | SetRefusal> {
    return this.#set.seal(spans, authorities);
  }

  abort(): Promise<void> {
    return this.#set.abort();
  }
}
