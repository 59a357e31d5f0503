/** Finds single records of a piece again, in ascending order: where they stand, for those who refuse one later. */
import type { CsvDialect } from "./csv/dialect.ts";
import { scanRecords } from "./csv/records.ts";
import { scanLines } from "./json/lines.ts";

export type RecordLayout = { readonly dialect: CsvDialect; readonly columns: number } | "lines";

export class RecordCursor {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  readonly #layout: RecordLayout;
  #record = 0;
  #at = 0;

  /** The records lie in [0, end). */
  constructor(bytes: Uint8Array, end: number, layout: RecordLayout) {
    this.#bytes = bytes;
    this.#end = end;
    this.#layout = layout;
  }

  /** [from, to) of record `n`, from 0; an earlier one than last time begins anew. Null: there are fewer. */
  find(n: number): { readonly from: number; readonly to: number } | null {
    if (n < this.#record) {
      this.#record = 0;
      this.#at = 0;
    }
    while (this.#at < this.#end) {
      const from = this.#at;
      const { to, records } = this.#next(from);
      this.#at = to;
      this.#record += records;
      if (this.#record <= n) continue;
      // A cursor stands behind its record; the same one may be asked for again.
      this.#record -= records;
      this.#at = from;
      return { from, to };
    }
    return null;
  }

  /** To the end of the next record, blank lines alone. A line end within quotes ends none. */
  #next(from: number): { readonly to: number; readonly records: number } {
    const newline = this.#layout === "lines" ? 10 : this.#layout.dialect.newline;
    for (let look = from; ; ) {
      const at = this.#bytes.indexOf(newline, look);
      const to = at < 0 || at >= this.#end ? this.#end : at + 1;
      const { records, end } = this.#scan(from, to, to === this.#end);
      if (end === to || to === this.#end) return { to, records };
      look = to;
    }
  }

  #scan(from: number, to: number, last: boolean) {
    const layout = this.#layout;
    if (layout === "lines") return scanLines(this.#bytes, from, to, last);
    return scanRecords(this.#bytes, from, to, layout.dialect, layout.columns, last);
  }
}
