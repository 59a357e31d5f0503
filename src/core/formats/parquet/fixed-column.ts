/** The record ids: a required FIXED_LEN_BYTE_ARRAY(16), PLAIN, computed straight into the page. */
import { fillRecordIds, type RecordIdBase } from "../../records/record-id.ts";
import { type ChunkInfo, ChunkPages, ENCODING, PAGE_VALUES, type PageContext } from "./page.ts";
import type { OutQueue } from "./slabs.ts";

const WORDS = 4;
const FIRST_VALUES = 16;

export class RecordIdColumn {
  readonly #pages: ChunkPages;
  #words = new Int32Array(WORDS * FIRST_VALUES);
  #count = 0;

  constructor(context: PageContext) {
    this.#pages = new ChunkPages(context, context.codec);
  }

  get held(): number {
    return this.#words.byteLength + this.#pages.held;
  }

  get size(): number {
    return this.#count * 16 + this.#pages.length;
  }

  append(base: RecordIdBase, partition: number, offsets: Int32Array, from: number, to: number): void {
    for (let at = from; at < to; ) {
      const n = Math.min(to - at, PAGE_VALUES - this.#count);
      this.#reserve(n);
      fillRecordIds(base, partition, offsets, at, at + n, this.#words, WORDS * this.#count);
      this.#count += n;
      at += n;
      if (this.#count === PAGE_VALUES) this.#cut();
    }
  }

  finish(out: OutQueue): ChunkInfo {
    this.#cut();
    return this.#pages.finish(out, { nulls: 0, least: null, greatest: null });
  }

  drop(): void {
    this.#pages.drop();
  }

  #reserve(n: number): void {
    const need = WORDS * (this.#count + n);
    if (need <= this.#words.length) return;
    const grown = new Int32Array(Math.min(WORDS * PAGE_VALUES, Math.max(need, 2 * this.#words.length)));
    grown.set(this.#words.subarray(0, WORDS * this.#count));
    this.#words = grown;
  }

  #cut(): void {
    if (this.#count === 0) return;
    const raw = new Uint8Array(this.#words.buffer, 0, 16 * this.#count);
    this.#pages.data(raw, this.#count, ENCODING.plain);
    this.#count = 0;
  }
}
