/**
 * Which records are duplicates: those whose natural key another record of the same stream has within the window before them
 * (decision 0038). That is a function of the stream's records and nothing else, so live records, recovery and a restart
 * say the same. What is kept of the window is a copy of what raw has: where it is missing it is had again from there.
 *
 *   loading  the window before the stream's next record is had from raw; batches wait, or go by unjudged, their keys noted
 *   whole    every record of the window is known
 */
import { keyColumns, NaturalKey } from "../delivery/natural-key.ts";
import { SeenKeys } from "../delivery/seen-keys.ts";
import { asFailure, Failure } from "../failure/failure.ts";
import { int64At } from "../records/int64-at.ts";
import type { RawBatch } from "../records/raw-batch.ts";
import type { StreamKey } from "../records/stream.ts";
import { type Clock, sleep } from "../time/clock.ts";
import { withKeys } from "./decode-keys.ts";
import type { DecodedGroup, DecodeReader } from "./decode-reader.ts";
import type { RefusedRecord } from "./derived.ts";

export interface DuplicateOptions {
  /** Positions before a record in which another counts. */
  readonly windowRecords: number;
  /** Most time between the timestamps of the two, ms; null: any. */
  readonly windowMs: number | null;
  /** Most memory for the windows of all streams. */
  readonly maxBytes: number;
}

/** From where on the streams' records are judged as they are now, and with what. */
export interface DedupEpoch {
  /** Records before it count for nothing. Behind all of them: none is a duplicate. */
  readonly since: bigint;
  /** Records from here on are judged in another way, or with another reach; null: none yet. */
  readonly until: bigint | null;
  /** Secret of the keys: four words. */
  readonly secret: Int32Array;
}

export interface DuplicateParts {
  readonly clock: Clock;
  /** Of records that were read before: its own, since columns are valid until the next batch is read. */
  readonly reader: DecodeReader;
  /** Rejects with dedup.other_plan where the records at the position were judged in another way. */
  readonly epoch: (stream: StreamKey, from: bigint) => Promise<DedupEpoch>;
  /** All records of the range, in any order, each batch valid until the next; null: there is no more. */
  readonly records: (stream: StreamKey, from: bigint, next: bigint) => AsyncIterable<RawBatch>;
}

/** What the decoding part of a lane asks. */
export interface DuplicateJudge {
  /** Null: the batch can be judged now, or goes by unjudged. Else what to wait for. */
  ready(batch: RawBatch): (() => Promise<void>) | null;
  /**
   * Once for each batch, in order. Of each record 1 where it is a duplicate, valid until the next batch; null: none is. A
   * Failure: it is not known.
   */
  judge(
    batch: RawBatch,
    groups: readonly DecodedGroup[],
    refused: readonly RefusedRecord[],
  ): Uint8Array | Failure | null;
  /** Something waits. */
  readonly waitedFor: boolean;
  /** Nothing may wait any longer. True if something did. */
  hurry(): boolean;
}

interface Window {
  readonly stream: StreamKey;
  readonly seen: SeenKeys;
  /** Positions are kept as their distance from here. */
  readonly base: bigint;
  /** The next record to be looked at. */
  at: bigint;
  /** Before it everything of the window is known; null: nothing is. */
  known: bigint | null;
  /** Up to it records are had from raw. */
  target: bigint;
  epoch: DedupEpoch | null;
  key: NaturalKey | null;
  /** dead: there is no room for its keys. */
  state: "loading" | "whole" | "dead";
  /** Why it is still being loaded, or dead. */
  failure: Failure | null;
  /** Nobody waits for it. */
  hurried: boolean;
  wake: (() => void)[];
  over: boolean;
}

const RETRY_MS = 1_000;
/** What somebody has to mend. */
const RETRY_LATER_MS = 15_000;
const TWO_32 = 2 ** 32;

const LOADING = new Failure("dedup.loading", "the records before these are being read from raw", {
  retry: true,
});

export class Duplicates implements DuplicateJudge {
  readonly #o: DuplicateOptions;
  readonly #p: DuplicateParts;
  readonly #windows = new Map<StreamKey, Window>();
  readonly #places = new WeakMap<object, readonly number[]>();
  #flags = new Uint8Array(0);
  #groups = new Int32Array(0);
  #rows = new Int32Array(0);
  /** Of the windows that are had from raw. */
  #reading: Promise<void> = Promise.resolve();

  constructor(options: DuplicateOptions, parts: DuplicateParts) {
    this.#o = options;
    this.#p = parts;
  }

  ready(batch: RawBatch): (() => Promise<void>) | null {
    const { stream, from } = batch.span;
    let w = this.#windows.get(stream);
    // Where records are read again, or were passed over, the window before them is another one.
    const isOver = w?.epoch?.until != null && from >= w.epoch.until;
    if (w === undefined || w.at !== from || isOver) w = this.#begin(stream, from, w);
    if (w.state !== "loading" || w.hurried) return null;
    const waiting = w;
    return () => new Promise<void>((resolve) => waiting.wake.push(resolve));
  }

  get waitedFor(): boolean {
    return this.#waited().length > 0;
  }

  hurry(): boolean {
    const waited = this.#waited();
    for (const w of waited) this.#release(w);
    return waited.length > 0;
  }

  #waited(): readonly Window[] {
    const all = [...this.#windows.values()];
    return all.filter((w) => w.state === "loading" && !w.hurried && w.wake.length > 0);
  }

  judge(
    batch: RawBatch,
    groups: readonly DecodedGroup[],
    refused: readonly RefusedRecord[],
  ): Uint8Array | Failure | null {
    const w = this.#windows.get(batch.span.stream);
    if (w === undefined || w.at !== batch.span.from)
      throw new Failure("internal.bug", "a batch is judged before the window is there");
    const unfit = refused.find((r) => r.code === "decode.incompatible");
    // Whether it will ever be a row is for the tables to say, so nothing may rest on it.
    if (unfit !== undefined)
      return new Failure("dedup.unfit", `a record does not fit the table: ${unfit.message}`, {
        at: batch.span.stream,
        hint: "Records are left out as duplicates of rows alone. Make the table fit the contract",
      });
    const { epoch, key } = w;
    if (epoch === null || key === null) {
      // Not even where its keys begin is known: these records, too, are had from raw.
      w.target = batch.span.next;
      w.at = batch.span.next;
      return w.failure ?? LOADING;
    }
    w.at = batch.span.next;
    // Where it is cut there, only positions without records are behind.
    const { rows, offsets } = batch;
    if (epoch.until !== null && rows > 0 && int64At(offsets, rows - 1) >= epoch.until)
      return otherPlan(batch.span.stream, epoch.until);
    if (w.state === "dead") return w.failure ?? LOADING;
    try {
      const flags = this.#note(w, key, batch, groups, true);
      this.#withinMemory();
      return w.state === "whole" ? flags : (w.failure ?? LOADING);
    } catch (e) {
      return this.#dies(w, asFailure(e));
    }
  }

  /** Forgets what nobody asks about any more; null: everything. */
  forget(streams: ReadonlySet<StreamKey> | null): void {
    for (const [stream, w] of [...this.#windows]) {
      if (streams?.has(stream) === false) continue;
      this.#end(w);
      this.#windows.delete(stream);
    }
  }

  // ---- records

  /**
   * In the order of their positions, whatever groups they are in. `live`: they are the stream's next ones. Answers which are
   * duplicates, as far as is known.
   */
  #note(
    w: Window,
    key: NaturalKey,
    batch: RawBatch,
    groups: readonly DecodedGroup[],
    live: boolean,
  ): Uint8Array | null {
    const { rows, offsets, timestamps } = batch;
    this.#place(groups, rows);
    const all = groups.map((g) => this.#placesOf(g, w.stream));
    const flags = this.#flags;
    flags.fill(0, 0, rows);
    const { windowRecords, windowMs } = this.#o;
    const [baseHi, baseLo] = halves(w.base);
    const since = Number((w.epoch?.since ?? 0n) - w.base);
    let found = 0;
    for (let row = 0; row < rows; row++) {
      const group = this.#groups[row]!;
      if (group < 0) continue;
      const position = (offsets[2 * row + 1]! - baseHi) * TWO_32 + ((offsets[2 * row]! >>> 0) - baseLo);
      if (position < since || !key.of(groups[group]!.columns, all[group]!, this.#rows[row]!)) continue;
      const time = timestamps[2 * row + 1]! * TWO_32 + (timestamps[2 * row]! >>> 0);
      if (live) {
        // What was noted before may count no more.
        w.seen.floor = Math.max(position - windowRecords, since);
        const before = w.seen.find(key.hash);
        if (before >= 0 && (windowMs === null || Math.abs(time - w.seen.timeAt(before)) <= windowMs)) {
          flags[row] = 1;
          found++;
        }
      }
      w.seen.note(key.hash, position, time);
    }
    return found === 0 ? null : flags;
  }

  #place(groups: readonly DecodedGroup[], rows: number): void {
    if (this.#flags.length < rows) {
      this.#flags = new Uint8Array(rows);
      this.#groups = new Int32Array(rows);
      this.#rows = new Int32Array(rows);
    }
    this.#groups.fill(-1, 0, rows);
    for (let g = 0; g < groups.length; g++) {
      const records = groups[g]!.rows;
      for (let i = 0; i < records.length; i++) {
        this.#groups[records[i]!] = g;
        this.#rows[records[i]!] = i;
      }
    }
  }

  #placesOf({ known }: DecodedGroup, at: string): readonly number[] {
    const kept = this.#places.get(known);
    if (kept !== undefined) return kept;
    const places = keyColumns(known.decoder?.fields ?? [], known.naturalKey, at);
    this.#places.set(known, places);
    return places;
  }

  #withinMemory(): void {
    let bytes = 0;
    for (const w of this.#windows.values()) bytes += w.seen.bytes;
    const { maxBytes, windowRecords } = this.#o;
    if (bytes <= maxBytes) return;
    throw new Failure(
      "dedup.memory",
      `the keys of ${this.#windows.size} windows of ${windowRecords} records take ${bytes} bytes, allowed are ${maxBytes}`,
      {
        hint: "Raise max_bytes of [dedup], take a smaller window, or more processes with fewer partitions each",
      },
    );
  }

  // ---- the window before them

  /** Anew, or behind what is known of the window already. */
  #begin(stream: StreamKey, from: bigint, before: Window | undefined): Window {
    if (before !== undefined) this.#end(before);
    const within = before?.epoch?.until == null || from < before.epoch.until;
    const goesOn = before?.state === "whole" && before.at < from && within ? before : null;
    const w: Window = {
      ...{ stream, at: from, target: from, epoch: null, key: null },
      ...{ state: "loading", failure: null, hurried: false, wake: [], over: false },
      known: goesOn?.at ?? null,
      seen: goesOn?.seen ?? new SeenKeys(),
      base: goesOn?.base ?? from,
    };
    this.#windows.set(stream, w);
    void this.#load(w);
    return w;
  }

  #dies(w: Window, failure: Failure): Failure {
    w.state = "dead";
    w.failure = failure;
    w.seen.clear();
    this.#release(w);
    return failure;
  }

  #end(w: Window): void {
    w.over = true;
    this.#release(w);
  }

  #release(w: Window): void {
    w.hurried = true;
    for (const go of w.wake.splice(0)) go();
  }

  async #load(w: Window): Promise<void> {
    while (!w.over && w.state === "loading") {
      try {
        w.epoch ??= await this.#p.epoch(w.stream, w.target);
        w.key ??= new NaturalKey(w.epoch.secret);
        await this.#before(w, w.epoch);
        if (w.over || w.state !== "loading") return;
        w.state = "whole";
        w.failure = null;
        return this.#release(w);
      } catch (e) {
        const failure = asFailure(e);
        if (failure.code === "dedup.memory" || failure.code === "dedup.no_key")
          return void this.#dies(w, failure);
        w.failure = failure;
        this.#release(w);
        // What raw has no more may not count any more: the book is asked again.
        if (failure.code === "recovery.raw_missing") w.epoch = null;
        await sleep(this.#p.clock, failure.retry ? RETRY_MS : RETRY_LATER_MS);
      }
    }
  }

  /** After those that came before: columns of the reader are valid until the next batch, and memory is what one holds. */
  #before(w: Window, epoch: DedupEpoch): Promise<void> {
    const read = this.#reading.then(() => this.#noteBefore(w, epoch));
    this.#reading = read.catch(() => {});
    return read;
  }

  /** Notes the records of the window before the position. */
  async #noteBefore(w: Window, { since, secret }: DedupEpoch): Promise<void> {
    if (w.over || w.state !== "loading") return;
    const next = w.target;
    const window = next - BigInt(this.#o.windowRecords);
    const from = [window, since, w.known ?? window].reduce((a, b) => (a > b ? a : b));
    if (from >= next) return;
    const key = new NaturalKey(secret);
    for await (const batch of this.#p.records(w.stream, from, next)) {
      if (w.over || w.state !== "loading") return;
      const { groups } = await this.#read(batch);
      this.#note(w, key, batch, groups, false);
      this.#withinMemory();
    }
  }

  async #read(batch: RawBatch): Promise<{ readonly groups: readonly DecodedGroup[] }> {
    for (;;) {
      const keys = { groups: [] as DecodedGroup[], refused: [] as RefusedRecord[] };
      const values = { groups: [] as DecodedGroup[], refused: [] as RefusedRecord[] };
      const missing = this.#p.reader.read(batch, "key", keys) ?? this.#p.reader.read(batch, "value", values);
      if (missing === null) return withKeys(batch, keys, values);
      await missing();
    }
  }
}

function otherPlan(at: StreamKey, from: bigint): Failure {
  return new Failure(
    "dedup.other_plan",
    `records from ${from} on were judged by another natural key or window`,
    {
      at,
    },
  );
}

function halves(n: bigint): readonly [hi: number, lo: number] {
  return [Number(n >> 32n), Number(n & 0xffffffffn)];
}
