/** The decoder of a lane that is given raw: row groups of files and pages of a table, as far as sinks take them. */
import { tmpdir } from "node:os";
import { DuckEngine, sqlText } from "../adapters/duckdb/engine.ts";
import { MemoryFile } from "../adapters/duckdb/memory-file.ts";
import { PageRows } from "../adapters/postgres/replay/page-rows.ts";
import type { FrameDecoder } from "../core/ports/lane-parts.ts";
import type { Frame } from "../core/records/frame.ts";
import type { RawBatch } from "../core/records/raw-batch.ts";
import type { StreamId } from "../core/records/stream.ts";
import { OwnGroup, type OwnGroupOptions } from "../core/recovery/own-group.ts";
import { type PackedPiece, unpackPaths, unpackPiece } from "../core/recovery/packed-groups.ts";
import { checkRawFields, RawRows, rawRowsQuery } from "../core/recovery/raw-rows.ts";

export interface ReplayDecoderOptions extends OwnGroupOptions {
  /** Of raw files, as they were written. */
  readonly rowGroupBytes: number;
  /** Asked for once something has to be sorted. Left out: the lane has one of its own. */
  readonly engine?: () => DuckEngine;
}

/** Of the engine: pages of a few columns, and what has to be sorted, which may spill. */
const ENGINE_BYTES = 256 * 1024 * 1024;
/** A row group as it is stored, as columns, and copied. */
const ENGINE_GROUPS = 4;

export function replayDecoder(options: ReplayDecoderOptions): FrameDecoder {
  const own = new OwnGroup(options);
  const others = new EngineRows(options);
  const rows = new PageRows(options);
  let serial = -1;
  /** Null: those of the engine. */
  let open: Pick<OwnGroup, "decode"> | null = null;
  return {
    resumes: true,
    decode: (bytes, frame, stream, _receivedAt, emit) => {
      const piece = unpackPiece(bytes);
      if (piece.serial !== serial) {
        serial = piece.serial;
        open = null;
        if (piece.form === "page") {
          rows.open(piece.body);
          open = rows;
        } else if (piece.form === "group" && own.open(piece.body)) open = own;
        else others.open(piece);
      }
      if (open === null) others.decode(frame, stream, emit);
      else open.decode(stream, frame, emit);
    },
  };
}

export function replayEngine(rowGroupBytes: number): DuckEngine {
  const memoryBytes = ENGINE_BYTES + ENGINE_GROUPS * rowGroupBytes;
  return new DuckEngine({ threads: 1, memoryBytes, spill: tmpdir(), allowed: [] });
}

interface OpenRows {
  readonly stream: number;
  readonly next: bigint;
  readonly rows: RawRows;
}

/** Row groups that are not stored as `twg` stores them, or not in order: DuckDB reads them, and sorts. */
class EngineRows {
  readonly #o: ReplayDecoderOptions;
  #engine: DuckEngine | null = null;
  #piece: Pick<PackedPiece, "form" | "twoLives"> = { form: "files", twoLives: false };
  #paths: readonly string[] = [];
  #file: MemoryFile | null = null;
  /** What was left in the middle, as far as it goes on there. */
  #rows: OpenRows | null = null;

  constructor(options: ReplayDecoderOptions) {
    this.#o = options;
  }

  open(piece: PackedPiece): void {
    this.#left();
    this.#file?.close();
    this.#file = null;
    this.#piece = piece;
    if (piece.form === "files") this.#paths = unpackPaths(piece.body);
    else {
      this.#file = new MemoryFile();
      this.#file.write(piece.body, 0);
      this.#paths = [this.#file.path];
    }
  }

  decode(frame: Frame, stream: StreamId, emit: (batch: RawBatch) => void): void {
    const { rows } = this.#continued(frame) ?? this.#begun(frame, stream);
    // What is emitted may throw, and is taken then.
    for (let batch = rows.take(); batch !== null; batch = rows.take()) emit(batch);
    this.#left();
  }

  #continued({ stream, from, next }: Frame): OpenRows | null {
    const open = this.#rows;
    if (open === null || open.stream !== stream) return null;
    return open.next === next && open.rows.at === from ? open : null;
  }

  #begun({ stream: number, from, next }: Frame, stream: StreamId): OpenRows {
    this.#left();
    const { twoLives } = this.#piece;
    const rows = new RawRows(
      { ...this.#o, stream, from, next, twoLives },
      this.#query(stream, { from, next }),
    );
    this.#rows = { stream: number, next, rows };
    return this.#rows;
  }

  #query(
    stream: StreamId,
    range: { readonly from: bigint; readonly next: bigint },
  ): ReturnType<DuckEngine["stream"]> {
    // A set may stand for positions alone.
    if (this.#paths.length === 0) return nothing();
    const files = `[${this.#paths.map(sqlText).join()}]`;
    const sql = rawRowsQuery(files, stream, range, this.#piece.form === "group");
    this.#engine ??= this.#o.engine?.() ?? replayEngine(this.#o.rowGroupBytes);
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
