/**
 * The rows of one lane on their way into a sink: the table's columns, and the metadata columns that say where each
 * row came from. Codecs fill it; `take` gives what there is as a batch.
 */
import type { Reject, RowTarget } from "../codecs/rows.ts";
import { Failure } from "../failure/failure.ts";
import type { TableSpec } from "../ports/batch-lane.ts";
import { builderOf, type ColumnBuilder } from "../types/column-builder.ts";
import type { ColumnField, TableBatch } from "../types/table-batch.ts";
import type { TableSchema } from "../types/table-schema.ts";
import { type FileOrigin, originFields, RowOrigins } from "./row-origins.ts";

const TWO32 = 0x1_0000_0000;

export class RowTable implements RowTarget {
  readonly schema: TableSchema;
  readonly columns: readonly ColumnBuilder[];
  readonly #fields: readonly ColumnField[];
  readonly #locator: RowOrigins | null;
  readonly #onReject: (reject: Reject) => void;
  /** Which rows of the file the rows are: number of rows, first of them in the file. */
  #runs: { readonly rows: number; readonly firstRow: number }[] = [];
  /** The run that was looked at last, and the first row of the batch in it. */
  #run = 0;
  #runStart = 0;

  /** `now`: milliseconds since 1970. */
  constructor(spec: TableSpec, now: () => number, onReject: (reject: Reject) => void) {
    const { schema, metadata } = spec;
    this.schema = schema;
    this.columns = schema.fields.map((f) => builderOf(f.type));
    this.#locator = metadata === "none" ? null : new RowOrigins(spec, now);
    this.#fields = tableFields(spec);
    this.#onReject = onReject;
  }

  /** Rows that come belong to this file. */
  begin(origin: FileOrigin): void {
    this.#locator?.begin(origin);
  }

  addRun(firstRow: number, rows: number): void {
    this.#locator?.add(firstRow, rows);
    this.#runs.push({ rows, firstRow });
  }

  /** The row of the file that row `at` of the batch is. Cheap where it is asked for in ascending order. */
  rowOf(at: number): number {
    if (at < this.#runStart) {
      this.#run = 0;
      this.#runStart = 0;
    }
    for (; this.#run < this.#runs.length; this.#run++) {
      const { rows, firstRow } = this.#runs[this.#run]!;
      if (at < this.#runStart + rows) return firstRow + at - this.#runStart;
      this.#runStart += rows;
    }
    throw new Failure("internal.bug", `row ${at} of a batch of ${this.rows}`);
  }

  /** The rows of the file that the batch's rows are, as pairs of int32, low half first. */
  rowsOfFile(): Int32Array {
    const pairs = new Int32Array(2 * this.rows);
    let at = 0;
    for (const { rows, firstRow } of this.#runs)
      for (let row = firstRow; row < firstRow + rows; row++) {
        pairs[at++] = row | 0;
        pairs[at++] = Math.floor(row / TWO32);
      }
    return pairs;
  }

  reject(reject: Reject): void {
    this.#onReject(reject);
  }

  get rows(): number {
    return this.columns[0]?.rows ?? 0;
  }

  get bytes(): number {
    return this.columns.reduce((n, c) => n + c.bytes, 0) + (this.#locator?.bytes ?? 0);
  }

  /** All rows so far as a batch, valid until `clear`. */
  batch(): TableBatch {
    const columns = [...this.columns.map((c) => c.finish()), ...(this.#locator?.finish() ?? [])];
    return { fields: this.#fields, columns, rows: this.rows };
  }

  clear(): void {
    for (const c of this.columns) c.reset();
    this.#locator?.reset();
    this.#runs = [];
    this.#run = 0;
    this.#runStart = 0;
  }
}

/** The columns of every batch: the schema's, then those of the locator. */
export function tableFields({ schema, metadata, prefix, ranked }: TableSpec): readonly ColumnField[] {
  return [...schema.fields.map(plainField), ...originFields({ metadata, prefix, ranked })];
}

function plainField({ name, type, nullable }: ColumnField): ColumnField {
  return { name, type, nullable };
}
