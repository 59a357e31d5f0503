/**
 * The rows of one lane on their way into a sink: the table's columns, and the metadata columns that say where each
 * row came from. Codecs fill it; `take` gives what there is as a batch.
 */
import type { Reject, RowTarget } from "../codecs/rows.ts";
import { Failure } from "../failure/failure.ts";
import type { TableSpec } from "../ports/batch-lane.ts";
import { BytesBuilder, builderOf, type ColumnBuilder, FixedBuilder } from "../types/column-builder.ts";
import type { ColumnField, ColumnType, TableBatch } from "../types/table-batch.ts";
import type { TableSchema } from "../types/table-schema.ts";

const INT64: ColumnType = { id: "int", bits: 64, signed: true };
const INT32: ColumnType = { id: "int", bits: 32, signed: true };
const TWO32 = 0x1_0000_0000;

interface Origin {
  readonly rank: number;
  readonly name: Uint8Array;
  readonly digest: Uint8Array;
}

export class RowTable implements RowTarget {
  readonly schema: TableSchema;
  readonly columns: readonly ColumnBuilder[];
  readonly #fields: readonly ColumnField[];
  readonly #locator: Locator | null;
  readonly #onReject: (reject: Reject) => void;
  /** Which rows of the file the rows are: number of rows, first of them in the file. */
  #runs: { readonly rows: number; readonly firstRow: number }[] = [];
  /** The run that was looked at last, and the first row of the batch in it. */
  #run = 0;
  #runStart = 0;

  constructor(spec: TableSpec, onReject: (reject: Reject) => void) {
    const { schema, metadata, ranked } = spec;
    this.schema = schema;
    this.columns = schema.fields.map((f) => builderOf(f.type));
    this.#locator = metadata === "none" ? null : new Locator(ranked);
    this.#fields = tableFields(spec);
    this.#onReject = onReject;
  }

  /** Rows that come belong to this file. */
  begin(origin: { readonly name: string; readonly sha256: string; readonly rank: number | null }): void {
    this.#locator?.begin({
      rank: origin.rank ?? 0,
      name: new TextEncoder().encode(origin.name),
      digest: Uint8Array.from(origin.sha256.match(/../g) ?? [], (h) => Number.parseInt(h, 16)),
    });
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
  return [...schema.fields.map(plainField), ...(metadata === "none" ? [] : locatorFields(prefix, ranked))];
}

function locatorFields(prefix: string, ranked: boolean): readonly ColumnField[] {
  const field = (name: string, type: ColumnType): ColumnField => ({
    name: `${prefix}source_${name}`,
    type,
    nullable: false,
  });
  return [
    field("topic", { id: "utf8" }),
    field("message_id", { id: "binary" }),
    field("offset", INT64),
    ...(ranked ? [field("incarnation", INT32)] : []),
  ];
}

function plainField({ name, type, nullable }: ColumnField): ColumnField {
  return { name, type, nullable };
}

/** File name, digest of the file, number of the row. */
class Locator {
  readonly #name = new BytesBuilder({ id: "utf8" });
  readonly #digest = new BytesBuilder({ id: "binary" });
  readonly #row = new FixedBuilder(INT64);
  readonly #rank: FixedBuilder | null;
  #origin: Origin | null = null;

  constructor(ranked: boolean) {
    this.#rank = ranked ? new FixedBuilder(INT32) : null;
  }

  get bytes(): number {
    return this.#name.bytes + this.#digest.bytes + this.#row.bytes + (this.#rank?.bytes ?? 0);
  }

  begin(origin: Origin): void {
    this.#origin = origin;
  }

  add(firstRow: number, rows: number): void {
    fill(this.#name, this.#origin!.name, rows);
    fill(this.#digest, this.#origin!.digest, rows);
    const b = this.#row;
    b.reserve(rows);
    for (let i = 0, at = 2 * b.rows; i < rows; i++, at += 2) {
      const n = firstRow + i;
      b.i32[at] = n % TWO32;
      b.i32[at + 1] = Math.floor(n / TWO32);
    }
    b.rows += rows;
    if (this.#rank === null) return;
    this.#rank.reserve(rows);
    this.#rank.i32.fill(this.#origin!.rank, this.#rank.rows, this.#rank.rows + rows);
    this.#rank.rows += rows;
  }

  finish() {
    const rank = this.#rank === null ? [] : [this.#rank.finish()];
    return [this.#name.finish(), this.#digest.finish(), this.#row.finish(), ...rank];
  }

  reset(): void {
    this.#name.reset();
    this.#digest.reset();
    this.#row.reset();
    this.#rank?.reset();
  }
}

/** `rows` times the same value: doubled by copies within the buffer. */
function fill(b: BytesBuilder, value: Uint8Array, rows: number): void {
  b.reserve(rows);
  b.reserveBytes(rows * value.length);
  const start = b.bytes;
  const end = start + rows * value.length;
  if (rows > 0) b.data.set(value, start);
  for (let done = start + value.length; done < end; ) {
    const n = Math.min(done - start, end - done);
    b.data.copyWithin(done, start, start + n);
    done += n;
  }
  for (let r = 1, at = start + value.length; r <= rows; r++, at += value.length) b.offsets[b.rows + r] = at;
  b.rows += rows;
}
