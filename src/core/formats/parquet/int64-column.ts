/** An optional INT64 column of changing values (offset, timestamp): DELTA_BINARY_PACKED over int32 pairs. */
import { deltaBound, putDeltaInt64 } from "./delta.ts";
import { LevelWriter, putLevels } from "./levels.ts";
import { type ChunkInfo, ChunkPages, ENCODING, PAGE_VALUES, type PageContext } from "./page.ts";
import type { OutQueue } from "./slabs.ts";

const FIRST_VALUES = 16;
/** Below this a loop beats making a view. */
const SHORT_RUN = 16;

export class Int64Column {
  readonly #context: PageContext;
  readonly #boundsWithin: number;
  readonly #pages: ChunkPages;
  readonly #levels = new LevelWriter(1);
  #pairs = new Int32Array(2 * FIRST_VALUES);
  #count = 0;
  #nulls = 0;
  #seen = false;
  #least: [number, number] = [0, 0];
  #greatest: [number, number] = [0, 0];

  /** `boundsWithin`: statistics are left out if a value is further from zero than this. */
  constructor(context: PageContext, boundsWithin = Number.POSITIVE_INFINITY) {
    this.#context = context;
    this.#boundsWithin = boundsWithin;
    this.#pages = new ChunkPages(context, context.codec);
  }

  get held(): number {
    return this.#pairs.byteLength + this.#levels.capacity + this.#pages.held;
  }

  /** Raw bytes of what is not in a page yet, and compressed ones of what is. */
  get size(): number {
    return this.#count * 8 + this.#pages.length;
  }

  /** Rows [from, to) of int64 pairs, low half first. */
  append(pairs: Int32Array, from: number, to: number): void {
    for (let at = from; at < to; ) {
      const n = Math.min(to - at, PAGE_VALUES - this.#levels.count);
      this.#reserve(n);
      if (n <= SHORT_RUN)
        for (let i = 0; i < 2 * n; i++) this.#pairs[2 * this.#count + i] = pairs[2 * at + i]!;
      else this.#pairs.set(pairs.subarray(2 * at, 2 * (at + n)), 2 * this.#count);
      this.#count += n;
      this.#levels.add(1, n);
      at += n;
      if (this.#levels.count >= PAGE_VALUES) this.#cut();
    }
  }

  appendNulls(rows: number): void {
    this.#nulls += rows;
    this.#levels.add(0, rows);
    if (this.#levels.count >= PAGE_VALUES) this.#cut();
  }

  finish(out: OutQueue): ChunkInfo {
    this.#cut();
    const within =
      approximate(this.#greatest) <= this.#boundsWithin && approximate(this.#least) >= -this.#boundsWithin;
    const bounds =
      this.#seen && within
        ? { least: pairBytes(this.#least), greatest: pairBytes(this.#greatest) }
        : { least: null, greatest: null };
    const info = this.#pages.finish(out, { nulls: this.#nulls, ...bounds });
    this.#nulls = 0;
    this.#seen = false;
    return info;
  }

  drop(): void {
    this.#pages.drop();
  }

  #reserve(n: number): void {
    const need = 2 * (this.#count + n);
    if (need <= this.#pairs.length) return;
    const grown = new Int32Array(Math.min(2 * PAGE_VALUES, Math.max(need, 2 * this.#pairs.length)));
    grown.set(this.#pairs.subarray(0, 2 * this.#count));
    this.#pairs = grown;
  }

  #cut(): void {
    const values = this.#levels.count;
    if (values === 0) return;
    const levels = this.#levels.finish();
    const raw = this.#context.assemble(levels.length + 4 + deltaBound(this.#count, 8));
    let end = putLevels(raw, 0, levels);
    // A page of nulls alone is PLAIN: there is nothing to encode, and no reader has to know an empty delta block.
    const encoding = this.#count > 0 ? ENCODING.deltaBinaryPacked : ENCODING.plain;
    if (this.#count > 0) end = putDeltaInt64(this.#pairs, this.#count, raw, end);
    this.#pages.data(raw.subarray(0, end), values, encoding);
    this.#bounds();
    this.#levels.reset();
    this.#count = 0;
  }

  #bounds(): void {
    if (this.#count === 0) return;
    const p = this.#pairs;
    if (!this.#seen) {
      this.#least = [p[0]!, p[1]!];
      this.#greatest = [p[0]!, p[1]!];
      this.#seen = true;
    }
    let [leastLow, leastHigh] = this.#least;
    let [greatestLow, greatestHigh] = this.#greatest;
    for (let i = 0; i < 2 * this.#count; i += 2) {
      const low = p[i]!;
      const high = p[i + 1]!;
      if (high < leastHigh || (high === leastHigh && low >>> 0 < leastLow >>> 0)) {
        leastLow = low;
        leastHigh = high;
      }
      if (high > greatestHigh || (high === greatestHigh && low >>> 0 > greatestLow >>> 0)) {
        greatestLow = low;
        greatestHigh = high;
      }
    }
    this.#least = [leastLow, leastHigh];
    this.#greatest = [greatestLow, greatestHigh];
  }
}

function approximate([low, high]: readonly [number, number]): number {
  return high * 0x1_0000_0000 + (low >>> 0);
}

function pairBytes(pair: readonly [number, number]): Uint8Array {
  const view = new DataView(new ArrayBuffer(8));
  view.setInt32(0, pair[0], true);
  view.setInt32(4, pair[1], true);
  return new Uint8Array(view.buffer);
}
