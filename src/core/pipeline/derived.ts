/** What is made of a batch of records: rows of tables and rows of refusals, with the span that both stand for. */
import type { Failure } from "../failure/failure.ts";
import type { BranchBatch } from "../ports/branch-parts.ts";
import type { RowOrigins } from "../ports/table-sink.ts";
import type { RawBatch } from "../records/raw-batch.ts";
import { BytesBuilder } from "../types/column-builder.ts";
import type { ColumnField, TableBatch } from "../types/table-batch.ts";
import type { DistinctRows } from "./distinct-rows.ts";
import { rawOriginFields, rawOrigins } from "./raw-origins.ts";

export interface DerivedBatch extends BranchBatch {
  /** Of the records, whose arrays are lent until the next batch is made. */
  readonly source: RawBatch;
  /** All of the table's columns as they are now. Valid until the next batch is made. */
  readonly table: TableBatch | null;
  /** Of each of its rows the record of `source`; grouped by schema, not ascending. */
  readonly tableRows: Int32Array;
  readonly rejects: TableBatch | null;
  /** What `rejects` has rows of, ascending. */
  readonly refused: readonly RefusedRecord[];
  /** For sinks without duplicates, or why it is not known which records those are; absent: no sink asks. */
  readonly distinct?: DistinctRows | Failure;
}

/** Of each of these records of the batch where it stood. */
export function originsOf({ source }: Pick<DerivedBatch, "source">, records: ArrayLike<number>): RowOrigins {
  const offsets = new Int32Array(2 * records.length);
  for (let i = 0; i < records.length; i++) {
    const record = records[i]!;
    offsets[2 * i] = source.offsets[2 * record]!;
    offsets[2 * i + 1] = source.offsets[2 * record + 1]!;
  }
  return { stream: source.span.stream, offsets };
}

/** Why a record is not in the table. */
export interface RefusedRecord {
  readonly row: number;
  readonly code: string;
  readonly path: string;
  readonly message: string;
  readonly schemaId: string | null;
}

/** What a refusal says itself; the record and where it stood follow as metadata columns. */
const REASONS = ["stage", "code", "path", "message"] as const;

export function rejectFields(prefix: string): readonly ColumnField[] {
  const reasons = REASONS.map((name) => ({ name, type: { id: "utf8" } as const, nullable: true }));
  return [...reasons, ...rawOriginFields("reject", prefix)];
}

export function rejectsOf(
  batch: RawBatch,
  refused: readonly RefusedRecord[],
  { prefix, pipeline, now }: { readonly prefix: string; readonly pipeline: string; readonly now: number },
): TableBatch | null {
  if (refused.length === 0) return null;
  const utf8 = new TextEncoder();
  const reasons = REASONS.map((name) => {
    const b = new BytesBuilder({ id: "utf8" });
    b.reserve(refused.length);
    for (const r of refused) b.push(utf8.encode(name === "stage" ? "decode" : r[name]));
    return b.finish();
  });
  const rows = Int32Array.from(refused, (r) => r.row);
  const origins = rawOrigins("reject", batch, rows, {
    pipeline,
    now,
    schemas: refused.map((r) => ({ id: r.schemaId, rows: 1 })),
  });
  return { fields: rejectFields(prefix), columns: [...reasons, ...origins], rows: refused.length };
}
