/** The raw sink's end in a lane: records as rows of a set, straight from their columns. */
import type { Authority } from "../../core/ports/coverage.ts";
import type { RawWriter, SetFiles, SetRefusal } from "../../core/ports/lane-parts.ts";
import type { RawBatch } from "../../core/records/raw-batch.ts";
import type { Span } from "../../core/records/stream.ts";
import { RawRows } from "./copy/raw-rows.ts";
import { CopySet, type CopySetOptions, type CopySetParts } from "./copy-set.ts";
import { COPIED_COLUMNS } from "./table/raw-columns.ts";

/** Plain data: it crosses to the lane's thread. */
export interface PostgresWriterOptions extends CopySetOptions {
  readonly prefix: string;
  /** A set that holds so much takes no further batch. */
  readonly commitBytes: number;
}

export class PostgresWriter implements RawWriter {
  readonly #o: PostgresWriterOptions;
  readonly #p: CopySetParts;
  readonly #set: CopySet;
  readonly #rows: RawRows;

  constructor(options: PostgresWriterOptions, parts: CopySetParts) {
    this.#o = options;
    this.#p = parts;
    const columns = COPIED_COLUMNS.map((name) => options.prefix + name);
    this.#set = new CopySet(options, parts, columns, null);
    this.#rows = new RawRows(options.pipeline);
  }

  get held(): number {
    return this.#set.blocks.held;
  }

  get largest(): number {
    return this.#set.blocks.length;
  }

  open(id: string): void {
    this.#set.open(id);
  }

  write(batch: RawBatch): number {
    const { blocks, rows } = this.#set;
    if (rows > 0 && blocks.length >= this.#o.commitBytes) return 0;
    const before = blocks.length;
    this.#rows.append(batch, this.#p.clock.now(), blocks);
    this.#set.added(batch.span.stream, batch.rows, blocks.length - before);
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
