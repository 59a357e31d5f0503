/**
 * The end of a sink of decoded rows in a lane: batches of columns as rows of a set. Rows that PostgreSQL cannot hold are
 * refused one by one; their lines become durable in the table of rejects with the set that they were in.
 */
import type { RejectCode } from "../../core/codecs/rows.ts";
import type { Authority } from "../../core/ports/coverage.ts";
import type { SetFiles, SetRefusal } from "../../core/ports/lane-parts.ts";
import type {
  LateRefusal,
  LateRefusals,
  RefusedCell,
  RefusedOrigin,
  RowOrigins,
  TableSink,
} from "../../core/ports/table-sink.ts";
import { withoutRows } from "../../core/records/int64-at.ts";
import { type Span, streamParts } from "../../core/records/stream.ts";
import type { ColumnField, TableBatch } from "../../core/types/table-batch.ts";
import type { CellProblem } from "./copy/cell.ts";
import { fieldTexts } from "./copy/field-text.ts";
import { refusedReason } from "./copy/refused-reason.ts";
import { appendTableRows, type TargetColumn } from "./copy/table-rows.ts";
import { CopySet, type CopySetParts } from "./copy-set.ts";
import type { CopySetOptions } from "./copy-set-options.ts";
import { type RefusedBy, refusedCode } from "./sift.ts";
import type { Upsert } from "./table/upsert.ts";

export interface PostgresTableOptions extends CopySetOptions {
  readonly fields: readonly ColumnField[];
  /** The table's column for each field, as `prepareFields` found it. */
  readonly targets: readonly TargetColumn[];
  /** Null: rows are added. */
  readonly upsert: Omit<Upsert, "columns"> | null;
}

const PROBLEMS: Readonly<Record<CellProblem, readonly [RejectCode, string]>> = {
  nul_in_text: ["value.nul", "PostgreSQL's text holds no NUL character"],
  not_utf8: ["row.encoding", "bytes that are no UTF-8"],
  json_invalid: ["value.type", "is no JSON that PostgreSQL takes"],
  out_of_range: ["value.range", "does not fit in the type of the table's column"],
  precision: ["value.precision", "would be rounded in the type of the table's column"],
  null_not_allowed: ["value.null", "null, and the table's column is NOT NULL"],
  key_too_long: ["value.range", "is longer than an index of PostgreSQL takes, and it is part of the key"],
};

/** A search ends here where fewer may be refused: enough to tell, and cheap. A row may still be taken in the end. */
const LOOKED_FOR = 20;

export class PostgresTableWriter implements TableSink {
  readonly #o: PostgresTableOptions;
  readonly #set: CopySet;

  constructor(options: PostgresTableOptions, parts: CopySetParts) {
    this.#o = options;
    const columns = options.fields.map(({ name }, i) => ({ name, type: options.targets[i]!.type }));
    this.#set = new CopySet(
      options,
      { ...parts, refusedLine },
      columns,
      options.upsert === null ? null : { ...options.upsert, columns: columns.map((c) => c.name) },
      true,
    );
  }

  get held(): number {
    return this.#set.held;
  }

  get size(): number {
    return this.#set.size;
  }

  open(id: string): void {
    this.#set.open(id);
  }

  write(batch: TableBatch, refuse: (cell: RefusedCell) => void, origins?: RowOrigins): void {
    const left: number[] = [];
    const rows = appendTableRows(batch, this.#o.targets, this.#set.blocks, ({ row, column, problem }) => {
      const [code, reason] = PROBLEMS[problem];
      left.push(row);
      refuse({ row, code, column: column.name, reason });
    });
    if (origins === undefined) return this.#set.added(null, rows, 0);
    const { stream, offsets } = origins;
    const appended = left.length === 0 ? offsets : withoutRows(offsets, batch.rows, left);
    this.#set.added(null, rows, 0, { stream, offsets: appended });
  }

  reject(lines: Uint8Array, _rows: number, of?: RefusedOrigin): void {
    for (const line of new TextDecoder().decode(lines).split("\n"))
      if (line !== "") this.#set.reject(line, of);
  }

  flush(): Promise<void> {
    return this.#set.flush();
  }

  seal(
    spans: readonly Span[],
    authorities: readonly Authority[],
    late?: LateRefusals,
  ): Promise<SetFiles | SetRefusal> {
    if (late === undefined) return this.#set.seal(spans, authorities);
    const lines = (rows: readonly RefusedBy[]) => late.lines(rows.map((row) => this.#late(row)));
    return this.#set.seal(spans, authorities, { enough: Math.max(late.most, LOOKED_FOR), lines });
  }

  #late({ stream, offset, fields, notice }: RefusedBy): LateRefusal {
    const { column, reason, ...more } = { column: null, ...refusedReason(notice) };
    const { fields: columns, targets } = this.#o;
    const texts = () =>
      fieldTexts(
        columns.map((f) => f.name),
        targets,
        fields,
      );
    return { stream, offset, code: refusedCode(notice), column, reason, more, fields: texts };
  }

  abort(): Promise<void> {
    return this.#set.abort();
  }
}

/** The record's place: its bytes are in raw. */
function refusedLine({ stream, offset, notice }: RefusedBy): string {
  const { topic, partition } = streamParts(stream);
  const place = { topic, partition: String(partition), offset: String(offset) };
  return JSON.stringify({ ...place, code: refusedCode(notice), ...refusedReason(notice) });
}
