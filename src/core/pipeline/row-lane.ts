/**
 * A lane of a batch job: decodes pieces of files into columns and writes them. One message at a time. A set is sealed
 * only between two pieces, so a span stands for whole pieces.
 */
import type { RecordLayout } from "../codecs/record-cursor.ts";
import type { Piece, PieceDecoder, Reject } from "../codecs/rows.ts";
import { waitedOut } from "../coverage/outage.ts";
import { type Ranges, subtractRanges } from "../coverage/ranges.ts";
import { asFailure, Failure, toWire } from "../failure/failure.ts";
import type {
  FileWork,
  FromBatchLane,
  Hashed,
  HashTask,
  PieceMessage,
  RejectSample,
  RowRange,
  TableSpec,
  ToBatchLane,
} from "../ports/batch-lane.ts";
import type { Authority } from "../ports/coverage.ts";
import type { SealedSet } from "../ports/lane.ts";
import type { LateRefusal, LateRefusals, RefusedCell, TableSink } from "../ports/table-sink.ts";
import { endSpan } from "../records/file-stream.ts";
import type { Span, StreamKey } from "../records/stream.ts";
import { type Clock, sleep } from "../time/clock.ts";
import { KeptRecords } from "./kept-records.ts";
import { PieceText } from "./piece-text.ts";
import { lateRejectText, rejectLine, tooManyRejects } from "./reject-line.ts";
import { RowTable } from "./row-table.ts";

export interface RowLaneOptions {
  readonly lane: number;
  readonly table: TableSpec;
  /** Bytes of columns that are written as one row group, and of a set after which it is sealed. */
  readonly groupBytes: number;
  readonly rollBytes: number;
  /** The sink may refuse rows: it gets them while the piece that they stand in is there, or is told where they stood. */
  readonly refusing: boolean;
  /** Of the job. */
  readonly maxRejects: number;
}

export interface RowLaneParts {
  readonly clock: Clock;
  readonly sink: TableSink;
  readonly newSetId: () => string;
  readonly decoderOf: (work: FileWork, spec: TableSpec) => PieceDecoder;
  readonly readRange: ReadRange;
  readonly hash: (task: HashTask) => Hashed | Promise<Hashed>;
  readonly post: (message: FromBatchLane, transfer?: ArrayBuffer[]) => void;
}

/**
 * Reads rows of a file that the lane itself opens, all but those of `skip`, into the table; gives how many it met.
 * `full` is awaited after every batch: it may write what the table holds.
 */
export type ReadRange = (
  file: { readonly work: FileWork; readonly checks: BigUint64Array },
  range: RowRange,
  skip: Piece["skip"],
  table: RowTable,
  full: () => Promise<void>,
) => Promise<number>;

interface OpenFile {
  readonly work: FileWork;
  readonly stream: StreamKey;
  readonly sha256: string;
  readonly authority: Authority | null;
  readonly rank: number | null;
  readonly covered: Ranges;
  readonly ended: boolean;
  readonly checks: BigUint64Array | null;
  decoder: PieceDecoder | null;
}

/** More rows than this make no better row group. */
const GROUP_ROWS = 1 << 20;
const SAMPLES = 5;
/** Of the bytes of a set: so much may the records weigh that it was made of, which are kept beside it. */
const KEPT_ROLLS = 2;

export class RowLane {
  readonly #o: RowLaneOptions;
  readonly #p: RowLaneParts;
  readonly #files = new Map<number, OpenFile>();
  readonly #table: RowTable;
  #queue: Promise<void> = Promise.resolve();
  #id: string | null = null;
  #openedAt = 0;
  #spans: Span[] = [];
  /** What rejects stand in; null: a file whose records are no text. */
  #text: PieceText | null = null;
  readonly #kept = new KeptRecords();
  #current: OpenFile | null = null;
  #rejected = 0;
  #samples: RejectSample[] = [];
  /** Rows that the sink refused. */
  #refused = 0;
  /** Of all pieces. */
  #allRejected = 0;

  constructor(options: RowLaneOptions, parts: RowLaneParts) {
    this.#o = options;
    this.#p = parts;
    this.#table = new RowTable(
      options.table,
      () => parts.clock.now(),
      (r) => this.#reject(r),
    );
  }

  receive(message: ToBatchLane): void {
    this.#queue = this.#queue.then(() => this.#handle(message)).catch((e) => this.#die(e));
  }

  #die(e: unknown): void {
    this.#p.post({ t: "dead", failure: toWire(asFailure(e)) });
  }

  async #handle(m: ToBatchLane): Promise<void> {
    switch (m.t) {
      case "hash":
        this.#p.post({ t: "hashed", hashed: await this.#p.hash(m.task) });
        return;
      case "file": {
        const { t: _, ...file } = m;
        this.#files.set(file.work.file, { ...file, decoder: null });
        return;
      }
      case "piece":
        return this.#decode(m.piece);
      case "range":
        return this.#range(m.range);
      case "roll":
        await this.#seal("drain");
        this.#p.post({ t: "rolled" });
    }
  }

  async #decode(piece: PieceMessage): Promise<void> {
    const file = this.#file(piece.file);
    const { firstRow, end, buffer, records } = piece;
    const bytes = new Uint8Array(buffer);
    this.#begin(file);
    const layout = recordLayout(file);
    this.#text = layout === null ? null : new PieceText(bytes, piece, layout);
    if (layout !== null && this.#o.refusing) this.#kept.add(file.stream, piece, layout);
    file.decoder ??= this.#p.decoderOf(file.work, this.#o.table);
    const rows = this.#counting();
    const skip = rangesWithin(file.covered, firstRow, records);
    const found = file.decoder.decode({ bytes, from: 0, end, firstRow, skip }, this.#table, rows.full);
    if (found !== records) throw countsDiffer(file.work.name, firstRow, records, found);
    await this.#end(file, piece, records, rows.end(), buffer);
  }

  async #range(range: RowRange): Promise<void> {
    const file = this.#file(range.file);
    this.#begin(file);
    this.#text = null;
    const { work, covered } = file;
    const checks = file.checks ?? new BigUint64Array(0);
    const skip = rangesWithin(covered, range.firstRow, range.rows);
    const rows = this.#counting();
    const found = await this.#p.readRange({ work, checks }, range, skip, this.#table, async () => {
      if (rows.full()) await this.#retrying(() => this.#p.sink.flush());
    });
    if (found !== range.rows) throw countsDiffer(work.name, range.firstRow, range.rows, found);
    await this.#end(file, range, range.rows, rows.end(), null);
  }

  /** Counts the rows of a piece that go to the sink, in as many batches as it takes. */
  #counting(): { readonly full: () => boolean; readonly end: () => number } {
    const before = this.#table.rows;
    let written = 0;
    const counted = (write: () => boolean) => {
      const { rows } = this.#table;
      const done = write();
      if (done) written += rows;
      return done;
    };
    return {
      full: () => counted(() => this.#writeFull()),
      end: () => {
        if (this.#o.refusing) counted(() => this.#write());
        return written + this.#table.rows - before - this.#refused;
      },
    };
  }

  #file(n: number): OpenFile {
    const file = this.#files.get(n);
    if (file === undefined)
      throw new Failure("internal.bug", `a piece of file ${n}, which the lane does not know`);
    return file;
  }

  /** The file whose rows are read just now. */
  get #now(): OpenFile {
    if (this.#current === null) throw new Failure("internal.bug", "rows of no file");
    return this.#current;
  }

  #begin(file: OpenFile): void {
    this.#rejected = 0;
    this.#refused = 0;
    this.#samples = [];
    // What a decoder holds is for the file that is read: there may be many files.
    if (this.#current !== null && this.#current !== file) this.#current.decoder = null;
    this.#current = file;
    this.#table.begin({ name: file.work.name, sha256: file.sha256, rank: file.rank });
    if (this.#id !== null) return;
    this.#id = this.#p.newSetId();
    this.#openedAt = this.#p.clock.now();
    this.#p.sink.open(this.#id);
  }

  async #end(
    file: OpenFile,
    { firstRow, last }: { readonly firstRow: number; readonly last: boolean },
    records: number,
    rows: number,
    buffer: ArrayBuffer | null,
  ): Promise<void> {
    const from = BigInt(firstRow);
    const whole = records === 0 ? [] : [{ from, next: from + BigInt(records) }];
    for (const r of subtractRanges(whole, file.covered)) this.#span({ stream: file.stream, ...r });
    if (last && !file.ended) this.#span(endSpan(file.stream, firstRow + records));
    await this.#retrying(() => this.#p.sink.flush());
    const counts = { rows, rejected: this.#rejected, skipped: records - rows - this.#rejected };
    this.#p.post(
      { t: "done", file: file.work.file, buffer, counts, samples: this.#samples },
      buffer === null ? [] : [buffer],
    );
    const { rollBytes } = this.#o;
    if (this.#p.sink.size >= rollBytes || this.#kept.bytes >= KEPT_ROLLS * rollBytes)
      await this.#seal("bytes");
  }

  #span(span: Span): void {
    const before = this.#spans.at(-1);
    if (before?.stream === span.stream && before.next === span.from)
      this.#spans[this.#spans.length - 1] = { ...before, next: span.next };
    else this.#spans.push(span);
  }

  /** True if the rows went on to the sink. */
  #writeFull(): boolean {
    if (this.#table.bytes < this.#o.groupBytes && this.#table.rows < GROUP_ROWS) return false;
    return this.#write();
  }

  #write(): boolean {
    if (this.#table.rows > 0) {
      const batch = this.#table.batch();
      const { stream } = this.#now;
      const origins = this.#o.refusing ? { stream, offsets: this.#table.rowsOfFile() } : undefined;
      this.#p.sink.write(batch, this.#refusing(), origins);
    }
    this.#table.clear();
    return true;
  }

  /** For rows that the sink refuses: their records are looked for in the piece, which is there still. */
  #refusing(): (cell: RefusedCell) => void {
    return ({ row: at, code, column, reason }) => {
      if (!this.#o.refusing) throw new Failure("internal.bug", "a sink refuses rows and did not say so");
      const row = this.#table.rowOf(at);
      const text = this.#text;
      this.#refused++;
      if (text === null) return this.#tell({ line: row + 1, row, code, column, reason }, new Uint8Array(0));
      this.#reject({ row, ...text.find(row), code, column, reason });
    };
  }

  /** Rows of a file that is no text have a number and no line. */
  #reject(r: Reject): void {
    const { row, code, column, reason } = r;
    const text = this.#text;
    if (text === null) {
      this.#tell({ line: row + 1, row, code, column, reason }, r.value ?? new Uint8Array(0));
      return;
    }
    this.#tell({ line: text.lineAt(r.from), row, code, column, reason }, text.record(r));
  }

  #tell(refused: Omit<RejectSample, "file">, record: Uint8Array): void {
    const sample = { file: this.#now.work.name, ...refused };
    this.#p.sink.reject(rejectLine(sample, record), 1);
    this.#rejected++;
    this.#allRejected++;
    if (this.#samples.length < SAMPLES) this.#samples.push(sample);
  }

  /** Of rows that the server refuses, when their pieces have gone. `told`: the samples of the last try. */
  #late(told: RejectSample[]): LateRefusals {
    const most = Math.max(0, this.#o.maxRejects - this.#allRejected);
    return {
      most,
      lines: (rows) => {
        const lines = rows.map((r) => this.#lateLine(r));
        told.splice(0, told.length, ...lines.map((l) => l.sample));
        if (rows.length <= most) return lines.map((l) => l.text);
        this.#tellLate(told);
        throw tooManyRejects(this.#allRejected, this.#o.maxRejects);
      },
    };
  }

  #tellLate(refused: readonly RejectSample[]): void {
    if (refused.length === 0) return;
    this.#allRejected += refused.length;
    this.#p.post({ t: "refused", rows: refused.length, samples: refused.slice(0, SAMPLES) });
  }

  #lateLine({ stream, offset, code, column, reason, more, fields }: LateRefusal) {
    const row = Number(offset);
    const file = [...this.#files.values()].find((f) => f.stream === stream)?.work.name ?? "";
    const text = this.#kept.textOf(stream, row);
    const at = text?.find(row);
    if (text === null || at === undefined) {
      const sample = { file, line: row + 1, row, code, column, reason };
      return { sample, text: lateRejectText(sample, more, { fields: fields() }) };
    }
    const sample = { file, line: text.lineAt(at.from), row, code, column, reason };
    return { sample, text: lateRejectText(sample, more, text.record(at)) };
  }

  async #seal(reason: SealedSet["reason"]): Promise<void> {
    const id = this.#id;
    if (id === null) return;
    this.#write();
    const spans = this.#spans;
    const start = this.#p.clock.monotonic();
    const refused: RejectSample[] = [];
    const late = this.#late(refused);
    const files = await this.#retrying(() => this.#p.sink.seal(spans, this.#authorities(spans), late));
    this.#id = null;
    this.#spans = [];
    this.#kept.clear();
    if ("refused" in files) throw new Failure("coverage.fenced", files.detail);
    const { targets, covered, rows, bytes } = files;
    const sealMs = this.#p.clock.monotonic() - start;
    this.#tellLate(refused);
    const openedAt = this.#openedAt;
    const { lane } = this.#o;
    this.#p.post({
      t: "sealed",
      set: { id, lane, epoch: 0, targets, spans, covered, rows, bytes, openedAt, sealMs, reason },
    });
  }

  #authorities(spans: readonly Span[]): Authority[] {
    const streams = new Set(spans.map((s) => s.stream));
    const files = [...this.#files.values()].filter((f) => streams.has(f.stream));
    return files.flatMap((f) => (f.authority === null ? [] : [f.authority]));
  }

  /** An outage of the sink is waited out with everything kept; what does not pass ends the job. */
  #retrying<T>(fn: () => Promise<T>): Promise<T> {
    const trouble = (f: Failure | null) =>
      this.#p.post({ t: "sink", failure: f === null ? null : toWire(f) });
    return waitedOut({ pause: (ms) => sleep(this.#p.clock, ms), trouble }, fn);
  }
}

/** Null: the records are no text. */
function recordLayout({ work: { layout } }: OpenFile): RecordLayout | null {
  if (layout.format === "csv") return { dialect: layout.dialect, columns: layout.columns.length };
  return layout.format === "ndjson" ? "lines" : null;
}

function rangesWithin(covered: Ranges, firstRow: number, rows: number): { from: number; next: number }[] {
  const end = firstRow + rows;
  return covered
    .map((r) => ({ from: Math.max(firstRow, Number(r.from)), next: Math.min(end, Number(r.next)) }))
    .filter((r) => r.from < r.next);
}

function countsDiffer(name: string, firstRow: number, cut: number, read: number): Failure {
  return new Failure(
    "files.count",
    `from row ${firstRow} on ${cut} records were counted and ${read} were read`,
    {
      at: name,
      hint: "Nothing of this piece was covered. Please report it with the file's dialect",
    },
  );
}
