/**
 * The rows of one lane on their way into a sink: the table's columns, and the metadata columns that say where each
 * row came from. Codecs fill it; `take` gives what there is as a batch.
 */
import type { Reject, RowTarget } from "../codecs/rows.ts";
import type { TableSpec } from "../ports/batch-lane.ts";
import { BytesBuilder, builderOf, type ColumnBuilder, FixedBuilder } from "../types/column-builder.ts";
import type { ColumnField, ColumnType, TableBatch } from "../types/table-batch.ts";
import type { TableSchema } from "../types/table-schema.ts";

const INT64: ColumnType = { id: "int", bits: 64, signed: true };
const TWO32 = 0x1_0000_0000;

interface Origin {
  readonly name: Uint8Array;
  readonly digest: Uint8Array;
}

export class RowTable implements RowTarget {
  readonly schema: TableSchema;
  readonly columns: readonly ColumnBuilder[];
  readonly #fields: readonly ColumnField[];
  readonly #locator: Locator | null;
  readonly #onReject: (reject: Reject) => void;

  constructor({ schema, metadata, prefix }: TableSpec, onReject: (reject: Reject) => void) {
    this.schema = schema;
    this.columns = schema.fields.map((f) => builderOf(f.type));
    this.#locator = metadata === "none" ? null : new Locator(prefix);
    this.#fields = [...schema.fields.map(plainField), ...(this.#locator?.fields ?? [])];
    this.#onReject = onReject;
  }

  /** Rows that come belong to this file. */
  begin(origin: { readonly name: string; readonly sha256: string }): void {
    this.#locator?.begin({
      name: new TextEncoder().encode(origin.name),
      digest: Uint8Array.from(origin.sha256.match(/../g) ?? [], (h) => Number.parseInt(h, 16)),
    });
  }

  addRun(firstRow: number, rows: number): void {
    this.#locator?.add(firstRow, rows);
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
  }
}

function plainField({ name, type, nullable }: ColumnField): ColumnField {
  return { name, type, nullable };
}

/** File name, digest of the file, number of the row. */
class Locator {
  readonly fields: readonly ColumnField[];
  readonly #name = new BytesBuilder({ id: "utf8" });
  readonly #digest = new BytesBuilder({ id: "binary" });
  readonly #row = new FixedBuilder(INT64);
  #origin: Origin | null = null;

  constructor(prefix: string) {
    const field = (name: string, type: ColumnType): ColumnField => ({
      name: `${prefix}source_${name}`,
      type,
      nullable: false,
    });
    this.fields = [
      field("topic", this.#name.type),
      field("message_id", this.#digest.type),
      field("offset", INT64),
    ];
  }

  get bytes(): number {
    return this.#name.bytes + this.#digest.bytes + this.#row.bytes;
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
  }

  finish() {
    return [this.#name.finish(), this.#digest.finish(), this.#row.finish()];
  }

  reset(): void {
    this.#name.reset();
    this.#digest.reset();
    this.#row.reset();
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
