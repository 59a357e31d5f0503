/** The raw sink's end in a lane: records as rows of a set, straight from their columns. */
import type { Authority } from "../../core/ports/coverage.ts";
import type { RawWriter, SetFiles, SetRefusal } from "../../core/ports/lane-parts.ts";
import { int64At, withoutRows } from "../../core/records/int64-at.ts";
import type { RawBatch } from "../../core/records/raw-batch.ts";
import type { Span } from "../../core/records/stream.ts";
import { rawRejectLine, refusedRawLine } from "./copy/raw-reject.ts";
import { RawRows } from "./copy/raw-rows.ts";
import { CopySet, type CopySetParts } from "./copy-set.ts";
import type { CopySetOptions } from "./copy-set-options.ts";
import type { PostgresSettings } from "./settings.ts";
import type { RefusedBy } from "./sift.ts";
import { copiedColumns, rawColumns, rawUpsert } from "./table/raw-columns.ts";

/** Plain data: it crosses to the lane's thread. */
export interface PostgresWriterOptions extends CopySetOptions {
  readonly prefix: string;
  /** A set that holds so much takes no further batch. */
  readonly commitBytes: number;
  /** Keep the latest record of each key; else every record is a row. */
  readonly upsert: boolean;
}

export class PostgresWriter implements RawWriter {
  readonly #o: PostgresWriterOptions;
  readonly #p: CopySetParts;
  readonly #set: CopySet;
  readonly #rows: RawRows;

  constructor(options: PostgresWriterOptions, parts: CopySetParts) {
    this.#o = options;
    this.#p = parts;
    const { prefix, upsert, pipeline } = options;
    const types = new Map(rawColumns(prefix, upsert).map((c) => [c.name, c.type]));
    const columns = copiedColumns(upsert).map((name) => ({
      name: prefix + name,
      type: types.get(prefix + name)!,
    }));
    const names = copiedColumns(upsert);
    const refusedLine = (row: RefusedBy) => refusedRawLine(names, row);
    this.#set = new CopySet(
      options,
      { ...parts, refusedLine },
      columns,
      upsert ? rawUpsert(prefix) : null,
      false,
    );
    this.#rows = new RawRows(pipeline, upsert);
  }

  /** Connections that are opened from now on use these. */
  renew(settings: PostgresSettings): void {
    this.#set.renew(settings);
  }

  get held(): number {
    return this.#set.held;
  }

  get largest(): number {
    return this.#set.size;
  }

  open(id: string): void {
    this.#set.open(id);
  }

  write(batch: RawBatch): number {
    const { blocks, size } = this.#set;
    if (size >= this.#o.commitBytes) return 0;
    const before = blocks.length;
    const { stream } = batch.span;
    const left: number[] = [];
    const rows = this.#rows.append(batch, this.#p.clock.now(), blocks, (row, code) => {
      left.push(row);
      const offset = int64At(batch.offsets, row);
      this.#set.reject(rawRejectLine(batch, row, code), { code, stream, offset });
    });
    const offsets = left.length === 0 ? batch.offsets : withoutRows(batch.offsets, batch.rows, left);
    this.#set.added(stream, rows, blocks.length - before, { stream, offsets });
    return batch.rows;
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
