/** The decoder of a lane that is given raw files: row groups in memory, read by DuckDB, as far as sinks take them. */
import { tmpdir } from "node:os";
import { DuckEngine, sqlText } from "../adapters/duckdb/engine.ts";
import { MemoryFile } from "../adapters/duckdb/memory-file.ts";
import type { FrameDecoder } from "../core/ports/lane-parts.ts";
import type { Frame } from "../core/records/frame.ts";
import type { RawBatch } from "../core/records/raw-batch.ts";
import type { StreamId } from "../core/records/stream.ts";
import { type PackedGroups, unpackGroups } from "../core/recovery/packed-groups.ts";
import { checkRawFields, RawRows, rawRowsQuery } from "../core/recovery/raw-rows.ts";

export interface ReplayDecoderOptions {
  /** Most of a batch. */
  readonly maxRows: number;
  readonly maxBytes: number;
  /** Of raw files, as they were written. */
  readonly rowGroupBytes: number;
}

/** Of the engine: pages of a few columns, and what has to be sorted, which may spill. */
const ENGINE_BYTES = 256 * 1024 * 1024;
/** A row group as it is stored, as columns, and copied. */
const ENGINE_GROUPS = 4;

export function replayDecoder(options: ReplayDecoderOptions): FrameDecoder {
  const decoder = new ReplayDecoder(options);
  return {
    resumes: true,
    decode: (bytes, frame, stream, _receivedAt, emit) => decoder.decode(bytes, frame, stream, emit),
  };
}

interface OpenSet {
  readonly serial: number;
  readonly files: readonly MemoryFile[];
  readonly oneFile: boolean;
  readonly twoLives: boolean;
}

interface OpenRows {
  readonly set: OpenSet;
  readonly stream: number;
  readonly next: bigint;
  readonly rows: RawRows;
}

class ReplayDecoder {
  readonly #o: ReplayDecoderOptions;
  readonly #engine: DuckEngine;
  #set: OpenSet | null = null;
  /** What was left in the middle, as far as it goes on there. */
  #rows: OpenRows | null = null;

  constructor(options: ReplayDecoderOptions) {
    this.#o = options;
    const memoryBytes = ENGINE_BYTES + ENGINE_GROUPS * options.rowGroupBytes;
    this.#engine = new DuckEngine({ threads: 1, memoryBytes, spill: tmpdir(), allowed: [] });
  }

  decode(bytes: Uint8Array, frame: Frame, stream: StreamId, emit: (batch: RawBatch) => void): void {
    const set = this.#opened(bytes.subarray(frame.start, frame.end));
    const { rows } = this.#continued(set, frame) ?? this.#begun(set, frame, stream);
    // What is emitted may throw, and is taken then.
    for (let batch = rows.take(); batch !== null; batch = rows.take()) emit(batch);
    this.#left();
  }

  #opened(bytes: Uint8Array): OpenSet {
    const packed = unpackGroups(bytes);
    if (this.#set?.serial === packed.serial) return this.#set;
    this.#left();
    for (const f of this.#set?.files ?? []) f.close();
    this.#set = null;
    this.#set = openSet(packed);
    return this.#set;
  }

  #continued(set: OpenSet, { stream, from, next }: Frame): OpenRows | null {
    const open = this.#rows;
    if (open === null || open.set !== set || open.stream !== stream) return null;
    return open.next === next && open.rows.at === from ? open : null;
  }

  #begun(set: OpenSet, { stream: number, from, next }: Frame, stream: StreamId): OpenRows {
    this.#left();
    const { twoLives } = set;
    const rows = new RawRows(
      { ...this.#o, stream, from, next, twoLives },
      this.#query(set, stream, { from, next }),
    );
    this.#rows = { set, stream: number, next, rows };
    return this.#rows;
  }

  #query(
    { files, oneFile }: OpenSet,
    stream: StreamId,
    range: { readonly from: bigint; readonly next: bigint },
  ): ReturnType<DuckEngine["stream"]> {
    // A set may stand for positions alone.
    if (files.length === 0) return nothing();
    const sql = rawRowsQuery(`[${files.map((f) => sqlText(f.path)).join()}]`, stream, range, oneFile);
    const fields = this.#engine.fieldsOf(sql);
    checkRawFields(fields);
    return this.#engine.stream(sql, fields);
  }

  #left(): void {
    this.#rows?.rows.close();
    this.#rows = null;
  }
}

function* nothing(): ReturnType<DuckEngine["stream"]> {}

function openSet({ serial, groups, ...how }: PackedGroups): OpenSet {
  const files = groups.map((group) => {
    const file = new MemoryFile();
    file.write(group, 0);
    return file;
  });
  return { serial, files, ...how };
}
