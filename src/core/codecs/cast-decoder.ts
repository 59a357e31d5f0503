/**
 * Payloads that have schemas of their own (Avro, Protobuf) as rows of a table that a contract or an Arrow schema describes: what
 * the writer's schema makes of them is cast, field by field. Fields that the table does not have are left out; a value that
 * the table cannot hold exactly refuses its record.
 */
import { appendRows } from "../types/append-rows.ts";
import { CastError, type CastPlan, castByPlan, nulls, planCast } from "../types/cast-plan.ts";
import { builderOf, type ColumnBuilder } from "../types/column-builder.ts";
import type { ColumnField, TableColumn } from "../types/table-batch.ts";
import { sourceOf, type TableField } from "../types/table-schema.ts";
import { FAULT } from "../types/text-cells.ts";
import { typeText } from "../types/type-text.ts";
import type { Value } from "../types/value.ts";
import { cellValue } from "../types/value-cells.ts";
import {
  type DecodeCode,
  DecodeError,
  type DecodeFault,
  type Payloads,
  type RecordDecoder,
} from "./record-codec.ts";

const REASONS: Readonly<Record<number, readonly [DecodeCode, string]>> = {
  [FAULT.type]: ["decode.type", "its value is no"],
  [FAULT.range]: ["decode.range", "its value does not fit in"],
  [FAULT.precision]: ["decode.range", "its value would be rounded as"],
  [FAULT.null]: ["decode.null", "it is null, and may not be as"],
};

/** A column of the table: of which of the writer's it is made, null: of none. */
interface Bound {
  readonly field: TableField;
  readonly at: number;
  readonly plan: CastPlan | null;
}

/** Throws a DecodeError (decode.schema) with the place where the two do not go together. */
export function castDecoder(inner: RecordDecoder, fields: readonly TableField[]): RecordDecoder {
  return new CastDecoder(
    inner,
    fields,
    fields.map((f) => boundTo(f, inner.fields)),
  );
}

function boundTo(field: TableField, written: readonly ColumnField[]): Bound {
  const name = sourceOf(field);
  const at = written.findIndex((w) => w.name === name);
  if (at < 0 && !field.nullable)
    throw new DecodeError("decode.schema", name, "it is required, and the writer's schema has none");
  try {
    return { field, at, plan: at < 0 ? null : planCast(written[at]!.type, field, name, "drop") };
  } catch (e) {
    if (!(e instanceof CastError)) throw e;
    throw new DecodeError("decode.schema", e.path, `${e.message} of the table`);
  }
}

class CastDecoder implements RecordDecoder {
  readonly fields: readonly TableField[];
  readonly #inner: RecordDecoder;
  readonly #bound: readonly Bound[];
  readonly #written: readonly ColumnBuilder[];

  constructor(inner: RecordDecoder, fields: readonly TableField[], bound: readonly Bound[]) {
    this.#inner = inner;
    this.fields = fields;
    this.#bound = bound;
    this.#written = inner.fields.map((f) => builderOf(f.type));
  }

  decode(payloads: Payloads, columns: readonly ColumnBuilder[], fault: (f: DecodeFault) => void): number {
    for (const c of this.#written) c.reset();
    const refused = new Set<number>();
    const rows = this.#inner.decode(payloads, this.#written, (f) => {
      refused.add(f.row);
      fault(f);
    });
    const faults = new Map<number, Omit<DecodeFault, "row">>();
    const cast = this.#cast(rows, faults);
    if (faults.size > 0) tell(faults, payloads.count, refused, fault);
    let from = 0;
    for (let i = 0; i <= rows; i++) {
      if (i < rows && !faults.has(i)) continue;
      if (i > from) for (const [c, column] of cast.entries()) appendRows(columns[c]!, column, from, i);
      from = i + 1;
    }
    return rows - faults.size;
  }

  /** The table's columns of what was written, and the first fault of each row. */
  #cast(rows: number, faults: Map<number, Omit<DecodeFault, "row">>): TableColumn[] {
    const written = this.#written.map((c) => c.finish());
    return this.#bound.map(({ field, at, plan }) => {
      if (plan === null) return nulls(field.type, rows);
      return castByPlan(written[at]!, plan, (row, why, { path, to }) => {
        if (faults.has(row)) return;
        const [code, reason] = REASONS[why]!;
        faults.set(row, { code, path, reason: `${reason} ${typeText(to)}` });
      });
    });
  }

  value(bytes: Uint8Array, from: number, to: number): Value {
    const columns = this.fields.map((f) => builderOf(f.type));
    const one = { bytes, starts: Int32Array.of(from), ends: Int32Array.of(to), count: 1 };
    this.decode(one, columns, ({ code, path, reason }) => {
      throw new DecodeError(code, path, reason);
    });
    const fields = columns.map((c, i) => ({ name: this.fields[i]!.name, value: cellValue(c.finish(), 0) }));
    return { kind: "record", fields };
  }
}

/** Rows are of payloads that were not refused before. */
function tell(
  faults: ReadonlyMap<number, Omit<DecodeFault, "row">>,
  payloads: number,
  refused: ReadonlySet<number>,
  fault: (f: DecodeFault) => void,
): void {
  for (let payload = 0, row = 0; payload < payloads; payload++) {
    if (refused.has(payload)) continue;
    const found = faults.get(row++);
    if (found !== undefined) fault({ row: payload, ...found });
  }
}
