/**
 * In a lane: which records are duplicates. Records of the window before a stream's next one are had from raw: the control
 * thread, which has the store and the book of epochs, hands row groups over one by one; they are read here.
 */
import { tmpdir } from "node:os";
import { DuckEngine, sqlText } from "../adapters/duckdb/engine.ts";
import { MemoryFile } from "../adapters/duckdb/memory-file.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { Failure, type FailureWire, toWire } from "../core/failure/failure.ts";
import type { DecodeReader } from "../core/pipeline/decode-reader.ts";
import { Duplicates } from "../core/pipeline/duplicates.ts";
import type { RawBatch } from "../core/records/raw-batch.ts";
import { type StreamId, type StreamKey, streamParts } from "../core/records/stream.ts";
import { OwnGroup, type OwnGroupOptions } from "../core/recovery/own-group.ts";
import { checkRawFields, RawRows, rawRowsQuery } from "../core/recovery/raw-rows.ts";
import { sleep } from "../core/time/clock.ts";
import type { LaneDedup } from "./lane-config.ts";
import type { AskedDedup } from "./lane-dedup-asks.ts";
import type { RawGroup } from "./recover-sets.ts";

export interface LaneDedupContext {
  readonly options: LaneDedup;
  readonly inflate: OwnGroupOptions["inflate"];
  readonly asks: AskedDedup;
  readonly reader: DecodeReader;
}

/** Of the engine: pages of a few columns. */
const ENGINE_BYTES = 256 * 1024 * 1024;
const ENGINE_GROUPS = 4;
/** The lane has messages to answer meanwhile. */
const BATCHES_A_TURN = 8;

export function laneDuplicates({ options, inflate, asks, reader }: LaneDedupContext): Duplicates {
  const raw = new RawGroups(options, inflate);
  return new Duplicates(options, {
    clock: systemClock,
    reader,
    epoch: async (stream, from) => {
      const { since, until, secret } = await asks.epoch(stream, from);
      return { since, until, secret: secretWords(secret) };
    },
    async *records(stream, from, next) {
      let batches = 0;
      for await (const group of asks.groups(stream, from, next))
        for (const batch of raw.rows(group, stream, from, next)) {
          yield batch;
          if (++batches % BATCHES_A_TURN === 0) await sleep(systemClock, 0);
        }
    },
  });
}

/** Streams whose duplicates are not known now: the sinks that ask let them go by, and say so until none is left. */
export class Undecided {
  readonly #tell: (failure: FailureWire | null) => void;
  readonly #why = new Map<number, Failure>();
  #told: string | null = null;

  constructor(tell: (failure: FailureWire | null) => void) {
    this.#tell = tell;
  }

  set(stream: number, why: Failure | null): void {
    if (why === null && this.#why.size === 0) return;
    if (why === null) this.#why.delete(stream);
    else this.#why.set(stream, why);
    const [first] = this.#why.values();
    if (this.#told === (first?.code ?? null)) return;
    this.#told = first?.code ?? null;
    this.#tell(first === undefined ? null : toWire(first));
  }
}

function secretWords(hex: string): Int32Array {
  const bytes = Uint8Array.fromHex(hex);
  return new Int32Array(bytes.buffer, 0, bytes.length / 4);
}

/** Thrown by who takes a batch, so that the next one is made when it is asked for. */
const TAKEN = Symbol("taken");

/** Of one group at a time. */
class RawGroups {
  readonly #o: LaneDedup;
  readonly #own: OwnGroup;
  /** For what is not stored as `twg` stores it. */
  #engine: DuckEngine | null = null;

  constructor(options: LaneDedup, inflate: OwnGroupOptions["inflate"]) {
    this.#o = options;
    const { maxRows, maxBatchBytes: maxBytes } = options;
    this.#own = new OwnGroup({ inflate, maxRows, maxBytes });
  }

  rows(group: RawGroup, stream: StreamKey, from: bigint, next: bigint): Generator<RawBatch> {
    const id = kafkaStream(stream);
    if (group.rises && !group.twoLives && this.#own.open(group.bytes)) return this.#ownRows(id, from, next);
    return this.#engineRows(group, id, from, next);
  }

  *#ownRows(id: StreamId, from: bigint, next: bigint): Generator<RawBatch> {
    for (let at = from; at < next; ) {
      const taken: RawBatch[] = [];
      try {
        this.#own.decode(id, { from: at, next }, (batch) => {
          taken.push(batch);
          throw TAKEN;
        });
      } catch (e) {
        if (e !== TAKEN) throw e;
      }
      for (const batch of taken) yield batch;
      at = taken.at(-1)?.span.next ?? next;
    }
  }

  *#engineRows(
    { bytes, twoLives, rises }: RawGroup,
    id: StreamId,
    from: bigint,
    next: bigint,
  ): Generator<RawBatch> {
    const { rowGroupBytes, maxRows, maxBatchBytes: maxBytes } = this.#o;
    const memoryBytes = ENGINE_BYTES + ENGINE_GROUPS * rowGroupBytes;
    this.#engine ??= new DuckEngine({ threads: 1, memoryBytes, spill: tmpdir(), allowed: [] });
    const file = new MemoryFile();
    try {
      file.write(bytes, 0);
      const sql = rawRowsQuery(`[${sqlText(file.path)}]`, id, { from, next }, rises);
      const fields = this.#engine.fieldsOf(sql);
      checkRawFields(fields);
      const rows = new RawRows(
        { stream: id, from, next, twoLives, maxRows, maxBytes },
        this.#engine.stream(sql, fields),
      );
      try {
        for (let batch = rows.take(); batch !== null; batch = rows.take()) yield batch;
      } finally {
        rows.close();
      }
    } finally {
      file.close();
    }
  }
}

function kafkaStream(key: StreamKey): StreamId {
  const { transport, ...parts } = streamParts(key);
  if (transport !== "kafka") throw new Failure("internal.bug", "a stream of another transport", { at: key });
  return { transport, ...parts };
}
