/**
 * A sink of typed rows as the end of a branch. Rows of small batches are gathered to groups of a useful size: a file has a
 * row group for each.
 */
import type { BranchWriter } from "../ports/branch-parts.ts";
import type { Authority } from "../ports/coverage.ts";
import type { SetFiles, SetRefusal } from "../ports/lane-parts.ts";
import type { RefusedCell, RowOrigins, TableSink } from "../ports/table-sink.ts";
import { int64At } from "../records/int64-at.ts";
import type { Span } from "../records/stream.ts";
import { appendRows } from "../types/append-rows.ts";
import { builderOf, type ColumnBuilder } from "../types/column-builder.ts";
import type { ColumnField, ColumnType, TableBatch } from "../types/table-batch.ts";
import type { DerivedBatch } from "./derived.ts";

export interface TableBranchOptions {
  readonly fields: readonly ColumnField[];
  /** Bytes of columns that go to the sink together; 0: each batch as it comes. */
  readonly groupBytes: number;
  readonly rowsOf: (batch: DerivedBatch) => TableBatch | null;
  /** Of each of these rows where its record stood. */
  readonly originsOf: (batch: DerivedBatch) => RowOrigins;
  /** A row that the sink cannot hold as it is: a line of its rejects. */
  readonly line: (batch: TableBatch, cell: RefusedCell) => Uint8Array;
}

export class TableBranchWriter implements BranchWriter<DerivedBatch> {
  readonly #o: TableBranchOptions;
  readonly #sink: TableSink;
  readonly #columns: readonly ColumnBuilder[];
  /** Of each column what all its rows hold so far; null: they differ, or nobody knows. */
  readonly #constants: (Uint8Array | null)[];
  #rows = 0;
  /** Offsets and validity of a row, which the columns' bytes leave out. */
  readonly #rowBytes: number;

  constructor(options: TableBranchOptions, sink: TableSink) {
    this.#o = options;
    this.#sink = sink;
    this.#columns = options.fields.map((f) => builderOf(f.type));
    this.#constants = options.fields.map(() => null);
    this.#rowBytes = options.fields.reduce((n, f) => n + overhead(f.type), 0);
  }

  open(id: string): void {
    this.#sink.open(id);
  }

  write(batch: DerivedBatch): number {
    const rows = this.#o.rowsOf(batch);
    if (rows !== null && this.#o.groupBytes === 0) this.#put(rows, this.#o.originsOf(batch));
    else if (rows !== null) this.#gather(rows);
    return batch.rows;
  }

  complete(): void {
    this.#end();
  }

  flush(): Promise<void> {
    return this.#sink.flush();
  }

  get held(): number {
    return this.#sink.held + this.#gathered;
  }

  get largest(): number {
    return this.#sink.size + this.#gathered;
  }

  seal(spans: readonly Span[], authorities: readonly Authority[]): Promise<SetFiles | SetRefusal> {
    this.#end();
    return this.#sink.seal(spans, authorities);
  }

  abort(): Promise<void> {
    this.#clear();
    return this.#sink.abort();
  }

  get #gathered(): number {
    return this.#columns.reduce((n, c) => n + c.bytes, 0) + this.#rows * this.#rowBytes;
  }

  #gather(rows: TableBatch): void {
    for (const [i, c] of this.#columns.entries()) {
      const column = rows.columns[i]!;
      appendRows(c, column, 0, rows.rows);
      const value = column.constant ?? null;
      const before = this.#rows === 0 ? value : this.#constants[i]!;
      this.#constants[i] = value !== null && before !== null && sameBytes(value, before) ? value : null;
    }
    this.#rows += rows.rows;
    if (this.#gathered >= this.#o.groupBytes) this.#end();
  }

  #end(): void {
    if (this.#rows === 0) return;
    const columns = this.#columns.map((c, i) => {
      const constant = this.#constants[i]!;
      return constant === null ? c.finish() : { ...c.finish(), constant };
    });
    this.#put({ fields: this.#o.fields, columns, rows: this.#rows });
    this.#clear();
  }

  #put(rows: TableBatch, origins?: RowOrigins): void {
    const refuse = (cell: RefusedCell) => {
      const { code, row } = cell;
      const of =
        origins === undefined
          ? undefined
          : { code, stream: origins.stream, offset: int64At(origins.offsets, row) };
      this.#sink.reject(this.#o.line(rows, cell), 1, of);
    };
    this.#sink.write(rows, refuse, origins);
  }

  #clear(): void {
    for (const c of this.#columns) c.reset();
    this.#rows = 0;
  }
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

function overhead(type: ColumnType): number {
  if (type.id === "struct") return type.fields.reduce((n, f) => n + overhead(f.type), 1 / 8);
  return ["utf8", "binary", "json", "list", "map"].includes(type.id) ? 4 + 1 / 8 : 1 / 8;
}
