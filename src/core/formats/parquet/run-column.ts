/**
 * Columns that are constant or come in runs: topic, partition, producer fields, stamps. The cost is per run, never
 * per row: a dictionary of the few values, RLE runs of indices into it, and definition levels as runs. A column
 * that is null throughout is one run.
 *
 * BOOLEAN has no dictionary in the format; it is PLAIN, one bit a row, filled by whole bytes.
 */
import { LevelWriter, putLevels } from "./levels.ts";
import { type ChunkInfo, ChunkPages, type ChunkStatistics, ENCODING, type PageContext } from "./page.ts";
import type { OutQueue } from "./slabs.ts";
import { putUvarint } from "./thrift.ts";

export type RunKind = "string" | "bytes" | "int32" | "int64" | "timestamp_ms" | "boolean";
export type RunValue = string | number | bigint | boolean;

/** Distinct values at which the row group should be closed, so that a hostile column cannot fill the memory. */
export const DICTIONARY_LIMIT = 64 * 1024;
/** Chunks below this are stored as they are: compressing them costs more than it saves. */
const COMPRESS_FROM = 2048;
const FIRST_RUNS = 4;
const NULL = -1;
const UTF8 = new TextEncoder();

export class RunColumn {
  readonly #context: PageContext;
  readonly #kind: RunKind;
  readonly #required: boolean;
  readonly #index = new Map<RunValue, number>();
  /** Pairs (index into the dictionary or NULL, rows). */
  #runs = new Int32Array(2 * FIRST_RUNS);
  #runCount = 0;
  #last: RunValue | null | undefined = undefined;
  #rows = 0;
  #nulls = 0;

  constructor(context: PageContext, kind: RunKind, required: boolean) {
    this.#context = context;
    this.#kind = kind;
    this.#required = required;
  }

  get distinct(): number {
    return this.#index.size;
  }

  get held(): number {
    // A map entry with its value is some 64 bytes.
    return this.#runs.byteLength + 64 * this.#index.size;
  }

  append(value: RunValue | null, rows: number): void {
    if (rows === 0) return;
    this.#rows += rows;
    if (value === null) this.#nulls += rows;
    if (value === this.#last) {
      this.#runs[2 * this.#runCount - 1]! += rows;
      return;
    }
    this.#last = value;
    if (2 * this.#runCount === this.#runs.length) {
      const grown = new Int32Array(2 * this.#runs.length);
      grown.set(this.#runs);
      this.#runs = grown;
    }
    this.#runs[2 * this.#runCount] = value === null ? NULL : this.#intern(value);
    this.#runs[2 * this.#runCount + 1] = rows;
    this.#runCount++;
  }

  finish(out: OutQueue): ChunkInfo {
    const values = [...this.#index.keys()].map((v) => encodeValue(this.#kind, v));
    const dictionary = this.#kind === "boolean" ? null : plainDictionary(this.#kind, values);
    const data = this.#dataPage();
    const size = data.length + (dictionary?.length ?? 0);
    const pages = new ChunkPages(this.#context, size < COMPRESS_FROM ? null : this.#context.codec);
    if (dictionary !== null && values.length > 0) pages.dictionary(dictionary, values.length);
    const encoding = dictionary !== null && values.length > 0 ? ENCODING.rleDictionary : ENCODING.plain;
    pages.data(data, this.#rows, encoding);
    const info = pages.finish(out, this.#statistics(values));
    this.#reset();
    return info;
  }

  #reset(): void {
    this.#index.clear();
    this.#runCount = 0;
    this.#last = undefined;
    this.#rows = 0;
    this.#nulls = 0;
    if (this.#runs.length > 4096) this.#runs = new Int32Array(2 * FIRST_RUNS);
  }

  #intern(value: RunValue): number {
    const known = this.#index.get(value);
    if (known !== undefined) return known;
    const index = this.#index.size;
    this.#index.set(value, index);
    return index;
  }

  #dataPage(): Uint8Array {
    const levels = this.#required ? null : this.#levels();
    const levelBytes = levels === null ? 0 : 4 + levels.length;
    const bound = this.#kind === "boolean" ? (this.#rows >> 3) + 1 : 1 + 9 * this.#runCount;
    const raw = new Uint8Array(levelBytes + bound);
    let end = levels === null ? 0 : putLevels(raw, 0, levels);
    if (this.#nulls < this.#rows) {
      end = this.#kind === "boolean" ? this.#putBits(raw, end) : this.#putIndices(raw, end);
    }
    return raw.subarray(0, end);
  }

  #levels(): Uint8Array {
    const writer = new LevelWriter(1);
    for (let i = 0; i < this.#runCount; i++) {
      writer.add(this.#runs[2 * i] === NULL ? 0 : 1, this.#runs[2 * i + 1]!);
    }
    return writer.finish();
  }

  /** Bit width, then RLE runs. At least one bit: not every reader takes an index of none. */
  #putIndices(raw: Uint8Array, at: number): number {
    const width = Math.max(1, 32 - Math.clz32(this.#index.size - 1));
    raw[at++] = width;
    for (let i = 0; i < this.#runCount; i++) {
      const index = this.#runs[2 * i]!;
      if (index === NULL) continue;
      at = putUvarint(raw, at, 2 * this.#runs[2 * i + 1]!);
      for (let bits = 0; bits < width; bits += 8) raw[at++] = index >>> bits;
    }
    return at;
  }

  #putBits(raw: Uint8Array, at: number): number {
    const truth = this.#index.get(true);
    let bit = 0;
    for (let i = 0; i < this.#runCount; i++) {
      const index = this.#runs[2 * i]!;
      if (index === NULL) continue;
      const end = bit + this.#runs[2 * i + 1]!;
      if (index === truth) fillBits(raw, at, bit, end);
      bit = end;
    }
    return at + ((bit + 7) >> 3);
  }

  #statistics(values: readonly Uint8Array[]): ChunkStatistics {
    let least: Uint8Array | null = null;
    let greatest: Uint8Array | null = null;
    const compare = COMPARE[this.#kind];
    for (const v of values) {
      if (least === null || compare(v, least) < 0) least = v;
      if (greatest === null || compare(v, greatest) > 0) greatest = v;
    }
    return { nulls: this.#nulls, least, greatest };
  }
}

/** Sets bits [from, to) counted from byte `at`, least significant first. */
function fillBits(raw: Uint8Array, at: number, from: number, to: number): void {
  let bit = from;
  while (bit < to && (bit & 7) !== 0) {
    raw[at + (bit >> 3)]! |= 1 << (bit & 7);
    bit++;
  }
  const whole = (to - bit) >> 3;
  if (whole > 0) raw.fill(0xff, at + (bit >> 3), at + (bit >> 3) + whole);
  for (bit += 8 * Math.max(0, whole); bit < to; bit++) raw[at + (bit >> 3)]! |= 1 << (bit & 7);
}

/** One value as statistics have it: PLAIN, without the length of strings. */
function encodeValue(kind: RunKind, value: RunValue): Uint8Array {
  switch (kind) {
    case "string":
    case "bytes":
      return UTF8.encode(String(value));
    case "boolean":
      return Uint8Array.of(value === true ? 1 : 0);
    case "int32": {
      const bytes = new Uint8Array(4);
      new DataView(bytes.buffer).setInt32(0, Number(value), true);
      return bytes;
    }
    case "int64":
    case "timestamp_ms": {
      const bytes = new Uint8Array(8);
      new DataView(bytes.buffer).setBigInt64(0, BigInt(value), true);
      return bytes;
    }
  }
}

function plainDictionary(kind: RunKind, values: readonly Uint8Array[]): Uint8Array {
  const sized = kind === "string" || kind === "bytes";
  const raw = new Uint8Array(values.reduce((n, v) => n + v.length + (sized ? 4 : 0), 0));
  const view = new DataView(raw.buffer);
  let at = 0;
  for (const v of values) {
    if (sized) {
      view.setUint32(at, v.length, true);
      at += 4;
    }
    raw.set(v, at);
    at += v.length;
  }
  return raw;
}

type Compare = (a: Uint8Array, b: Uint8Array) => number;

/** The order of the type: signed for integers, unsigned bytes for text (parquet.thrift, ColumnOrder). */
function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const n = Math.min(a.length, b.length);
  for (let i = 0; i < n; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}

function compareSigned(a: Uint8Array, b: Uint8Array): number {
  for (let i = a.length - 1; i >= 0; i--) {
    const flip = i === a.length - 1 ? 0x80 : 0;
    const d = (a[i]! ^ flip) - (b[i]! ^ flip);
    if (d !== 0) return d;
  }
  return 0;
}

const COMPARE: Readonly<Record<RunKind, Compare>> = {
  string: compareBytes,
  bytes: compareBytes,
  boolean: compareBytes,
  int32: compareSigned,
  int64: compareSigned,
  timestamp_ms: compareSigned,
};
