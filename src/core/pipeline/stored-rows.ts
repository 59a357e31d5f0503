/**
 * Batches of stored columns (of a Parquet or Avro file) on their way into a lane's table: read by meaning, cast to the types of
 * the schema, and appended without the rows that are refused or covered already.
 */
import { isSkipped, type Piece, type RejectCode, type RowTarget, VALUE_REASONS } from "../codecs/rows.ts";
import { Failure } from "../failure/failure.ts";
import type { ColumnPlan, PlannedColumn } from "../formats/parquet/column-plan.ts";
import { convertColumn } from "../formats/parquet/convert-column.ts";
import { appendRows } from "../types/append-rows.ts";
import { CastError, type CastPlan, castByPlan, planCast } from "../types/cast-plan.ts";
import type { ColumnField, ColumnType, TableBatch, TableColumn } from "../types/table-batch.ts";
import { sourceOf, type TableField, type TableSchema } from "../types/table-schema.ts";
import { Faults } from "../types/text-cells.ts";
import { typeText } from "../types/type-text.ts";

/** Of a field of the schema: the column of the file that it is, null: none, all null. */
interface Bound {
  readonly field: TableField;
  readonly at: number;
  readonly plan: ColumnPlan | null;
  readonly cast: CastPlan | null;
}

export type StoredColumn = Pick<PlannedColumn, "field" | "plan">;

/** A column whose values stand as what they are. */
export function plainColumn({ name, type, nullable }: ColumnField): StoredColumn {
  return { field: { name, type, nullable }, plan: { kind: "leaf", type, raw: type, reading: "same" } };
}

/** Throws files.unknown_column and files.schema where a column has no place, or its values none in the schema's type. */
export function bindColumns(
  columns: readonly StoredColumn[],
  { fields }: TableSchema,
  at: string,
): readonly Bound[] {
  const known = new Set(fields.map(sourceOf));
  const stray = columns.find((c) => !known.has(c.field.name));
  if (stray !== undefined)
    throw new Failure(
      "files.unknown_column",
      `the column ${JSON.stringify(stray.field.name)} is not in the schema`,
      {
        at,
        hint: "Add it to the schema, or read this file by itself",
      },
    );
  return fields.map((field) => boundTo(field, columns, at));
}

function boundTo(field: TableField, columns: readonly StoredColumn[], at: string): Bound {
  const name = sourceOf(field);
  const matching = columns.flatMap((c, i) => (c.field.name === name ? [i] : []));
  const shown = JSON.stringify(name);
  const [index] = matching;
  if (matching.length > 1) throw new Failure("files.schema", `two columns are named ${shown}`, { at });
  if (index === undefined) {
    if (!field.nullable) throw new Failure("files.schema", `the required column ${shown} is missing`, { at });
    return { field, at: -1, plan: null, cast: null };
  }
  const plan = aimed(columns[index]!.plan, field.type);
  return { field, at: index, plan, cast: castOf(plan.type, field, name, at) };
}

/** What a file has within a column and the schema has not would be lost. */
function castOf(from: ColumnType, field: TableField, name: string, at: string): CastPlan {
  try {
    return planCast(from, field, name, "refuse");
  } catch (e) {
    if (!(e instanceof CastError)) throw e;
    const whole = e.path === name;
    const how = whole ? `is ${typeText(from)}, the schema wants ${typeText(field.type)}` : `: ${e.message}`;
    const message = `the column ${JSON.stringify(e.path)}${whole ? " " : ""}${how}`;
    throw new Failure("files.schema", message, {
      at,
      hint: "Only a type that holds all of its values can take it",
    });
  }
}

/** An INT96 has more days than nanoseconds reach: it is read in the unit that is wanted. */
function aimed(plan: ColumnPlan, to: ColumnType): ColumnPlan {
  return plan.kind === "leaf" && plan.reading === "int96" && to.id === "timestamp"
    ? { ...plan, type: to }
    : plan;
}

export class StoredRows {
  readonly #bound: readonly Bound[];
  readonly #isUtf8: (bytes: Uint8Array) => boolean;
  readonly #faults = new Faults();

  constructor(
    columns: readonly StoredColumn[],
    schema: TableSchema,
    options: { readonly at: string; readonly isUtf8: (bytes: Uint8Array) => boolean },
  ) {
    this.#bound = bindColumns(columns, schema, options.at);
    this.#isUtf8 = options.isUtf8;
  }

  /**
   * `batch`: columns as stored, in the order of the file; `refused`: rows of the file from `firstRow` on that the batch lacks,
   * ascending.
   */
  add(
    batch: TableBatch,
    firstRow: number,
    skip: Piece["skip"],
    target: RowTarget,
    refused: readonly number[] = [],
  ): void {
    this.#faults.begin(batch.rows);
    const columns = this.#bound.map((b, c) => this.#column(b, c, batch));
    let missing = 0;
    let from = 0;
    for (let i = 0; i <= batch.rows; i++) {
      const before = missing;
      while (missing < refused.length && refused[missing]! <= firstRow + i + missing) missing++;
      // Behind a row that is not there another run begins.
      if (missing > before && i > from) {
        this.#append(columns, from, i, firstRow + before, target);
        from = i;
      }
      if (i < batch.rows && this.#taken(i, firstRow + missing, skip, batch, target)) continue;
      if (i > from) this.#append(columns, from, i, firstRow + missing, target);
      from = i + 1;
    }
  }

  #column({ at, plan, cast }: Bound, c: number, batch: TableBatch): TableColumn | null {
    if (plan === null || cast === null) return null;
    const fault = (row: number, why: number) => this.#faults.add(row, c, why);
    const read = convertColumn(batch.columns[at]!, plan, { isUtf8: this.#isUtf8 }, fault);
    return castByPlan(read, cast, fault);
  }

  #taken(i: number, firstRow: number, skip: Piece["skip"], batch: TableBatch, target: RowTarget): boolean {
    if (skip.length > 0 && isSkipped(skip, firstRow + i)) return false;
    const fault = this.#faults.count === 0 ? 0 : this.#faults.codes[i]!;
    if (fault === 0) return true;
    const { field, at } = this.#bound[this.#faults.columns[i]!]!;
    const [code, why] = VALUE_REASONS[fault]!;
    target.reject({
      row: firstRow + i,
      from: 0,
      to: 0,
      value: storedBytes(batch.columns[at]!, i),
      code,
      column: sourceOf(field),
      reason: reasonOf(code, why, field.type),
    });
    return false;
  }

  #append(
    columns: readonly (TableColumn | null)[],
    from: number,
    to: number,
    firstRow: number,
    target: RowTarget,
  ): void {
    for (const [c, column] of columns.entries()) {
      const builder = target.columns[c]!;
      if (column !== null) appendRows(builder, column, from, to);
      else {
        builder.reserve(to - from);
        for (let i = from; i < to; i++) builder.pushNull();
      }
    }
    target.addRun(firstRow + from, to - from);
  }
}

function reasonOf(code: RejectCode, why: string, type: ColumnType): string {
  return code === "value.null" ? why : `its stored value ${why} ${typeText(type)}`;
}

/** A value as it is stored; of nested ones nothing. */
function storedBytes({ offsets, data, length, children }: TableColumn, row: number): Uint8Array {
  if (children.length > 0) return new Uint8Array(0);
  if (offsets !== null) return data.slice(offsets[row], offsets[row + 1]);
  const width = Math.floor(data.length / length);
  return data.slice(row * width, (row + 1) * width);
}
