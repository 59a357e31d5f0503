/** Whose the rows of a set are: of each row the stream and the position of its record. */
import type { RowOrigins } from "../../../core/ports/table-sink.ts";
import { int64At } from "../../../core/records/int64-at.ts";
import type { StreamKey } from "../../../core/records/stream.ts";

/** Rows and bytes by stream. */
export type Sizes = ReadonlyMap<StreamKey, { readonly rows: number; readonly bytes: number }>;

interface Part {
  readonly stream: StreamKey;
  readonly first: number;
  readonly offsets: Int32Array;
}

export class SetOrigins {
  #parts: Part[] = [];
  #rows = 0;

  get rows(): number {
    return this.#rows;
  }

  get bytes(): number {
    return 8 * this.#rows;
  }

  /** Of the next rows, whose arrays are copied. */
  add({ stream, offsets }: RowOrigins, rows: number): void {
    if (rows === 0) return;
    this.#parts.push({ stream, first: this.#rows, offsets: offsets.slice(0, 2 * rows) });
    this.#rows += rows;
  }

  of(row: number): { readonly stream: StreamKey; readonly offset: bigint } {
    const { stream, first, offsets } = this.#parts.findLast((p) => p.first <= row)!;
    return { stream, offset: int64At(offsets, row - first) };
  }

  /** The sizes without these rows. */
  less(sizes: Sizes, rows: readonly number[]): Sizes {
    const less = new Map(sizes);
    for (const row of rows) {
      const { stream } = this.of(row);
      const before = less.get(stream);
      if (before !== undefined) less.set(stream, { ...before, rows: before.rows - 1 });
    }
    return less;
  }

  clear(): void {
    this.#parts = [];
    this.#rows = 0;
  }
}
