/**
 * Cuts files into pieces of whole records, in order, one file after another. It waits for a credit before it makes a
 * piece, so what is in memory is bounded by the credits. It counts records by its own rules (codecs/csv/records.ts),
 * which the lanes' counts are held against.
 */
import { scanBlocks } from "../../core/codecs/avro/container.ts";
import { scanRecords } from "../../core/codecs/csv/records.ts";
import { scanLines } from "../../core/codecs/json/lines.ts";
import { asFailure, Failure, toWire } from "../../core/failure/failure.ts";
import type { FileWork, FromCutter, PieceMessage, ToCutter } from "../../core/ports/batch-lane.ts";
import type { OpenFile } from "../../core/ports/file-bytes.ts";
import { textOf } from "./decode-stream.ts";

export interface CutterOptions {
  /** A piece is cut when it has so many bytes. */
  readonly pieceBytes: number;
  readonly maxRecordBytes: number;
}

interface Scan {
  readonly records: number;
  readonly lines: number;
  readonly end: number;
}

/** `base`: where bytes[0] stands in the file. */
type Scanner = (bytes: Uint8Array, from: number, to: number, last: boolean, base: number) => Scan;

export class Cutter {
  readonly #o: CutterOptions;
  readonly #open: OpenFile;
  readonly #post: (message: FromCutter, transfer?: ArrayBuffer[]) => void;
  #queue: Promise<void> = Promise.resolve();
  #credits = 0;
  #buffers: ArrayBuffer[] = [];
  #wake: (() => void) | null = null;

  constructor(
    options: CutterOptions,
    open: OpenFile,
    post: (message: FromCutter, transfer?: ArrayBuffer[]) => void,
  ) {
    this.#o = options;
    this.#open = open;
    this.#post = post;
  }

  receive(message: ToCutter): void {
    if (message.t === "credit") {
      this.#credits++;
      if (message.buffer !== null) this.#buffers.push(message.buffer);
      this.#wake?.();
      this.#wake = null;
      return;
    }
    const { work, columns } = message;
    this.#queue = this.#queue
      .then(() => new FileCut(work, scannerOf(work, columns, this.#o), this.#o, this).run(this.#open))
      .catch((e) => this.#post({ t: "dead", failure: toWire(asFailure(e)) }));
  }

  /** A buffer for one piece, as soon as there is a credit. */
  async buffer(bytes: number): Promise<Uint8Array> {
    while (this.#credits === 0)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    this.#credits--;
    const at = this.#buffers.findIndex((b) => b.byteLength >= bytes);
    if (at >= 0) return new Uint8Array(this.#buffers.splice(at, 1)[0]!);
    this.#buffers.pop();
    return new Uint8Array(bytes);
  }

  piece(piece: PieceMessage, blocks: BigUint64Array): void {
    this.#post({ t: "piece", piece, blocks }, [piece.buffer]);
  }

  cut(file: number, rows: number, blocks: BigUint64Array): void {
    this.#post({ t: "cut", file, rows, blocks });
  }
}

function scannerOf({ layout, name }: FileWork, columns: number, o: CutterOptions): Scanner {
  if (layout.format === "csv")
    return (bytes, from, to, last) => scanRecords(bytes, from, to, layout.dialect, columns, last);
  if (layout.format === "ndjson") return scanLines;
  if (layout.format === "avro") {
    const mostBytes = o.maxRecordBytes;
    return (bytes, from, to, last, base) => {
      const scan = () => scanBlocks(bytes, from, to, layout, { mostBytes, base, last });
      return { ...placed(scan, name), lines: 0 };
    };
  }
  throw new Failure("internal.bug", "a Parquet file is not cut", { at: name });
}

/** Failures of what does not know the file's name. */
function placed<T>(fn: () => T, at: string): T {
  try {
    return fn();
  } catch (e) {
    const { code, message, hint } = asFailure(e);
    throw new Failure(code, message, hint === null ? { at, cause: e } : { at, hint, cause: e });
  }
}

class FileCut {
  readonly #work: FileWork;
  readonly #scan: Scanner;
  readonly #o: CutterOptions;
  readonly #out: Cutter;
  #bytes: Uint8Array = new Uint8Array(0);
  #held = 0;
  /** Up to where #bytes was looked through and holds no whole record more. */
  #row = 0;
  #line = 1;
  #headerLeft: boolean;
  /** Where #bytes begin in the file. */
  #base = 0;
  #checks: bigint[] = [];

  constructor(work: FileWork, scan: Scanner, options: CutterOptions, out: Cutter) {
    this.#work = work;
    this.#scan = scan;
    this.#o = options;
    this.#out = out;
    const { layout } = work;
    this.#headerLeft = layout.format === "avro" || (layout.format === "csv" && layout.header);
  }

  async run(open: OpenFile): Promise<void> {
    this.#bytes = await this.#out.buffer(this.#room());
    for await (const chunk of textOf(this.#work, (c) => this.#checks.push(c), open)) {
      for (let at = 0; at < chunk.length; ) {
        const n = Math.min(chunk.length - at, this.#o.pieceBytes - (this.#held % this.#o.pieceBytes));
        this.#push(chunk.subarray(at, at + n));
        at += n;
        if (this.#held % this.#o.pieceBytes === 0) await this.#cut(false);
      }
    }
    await this.#cut(true);
    this.#out.cut(this.#work.file, this.#row, this.#takeChecks());
  }

  /** A piece, and room for the fields that a decoder unescapes. */
  #room(): number {
    return this.#o.pieceBytes + this.#o.pieceBytes / 8;
  }

  #push(chunk: Uint8Array): void {
    if (this.#held + chunk.length > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(this.#bytes.length * 2, this.#held + chunk.length));
      grown.set(this.#bytes.subarray(0, this.#held));
      this.#bytes = grown;
    }
    this.#bytes.set(chunk, this.#held);
    this.#held += chunk.length;
  }

  async #cut(last: boolean): Promise<void> {
    let from = 0;
    if (this.#headerLeft) {
      from = this.#header(last);
      if (from < 0) return;
    }
    const found = this.#scan(this.#bytes, from, this.#held, last, this.#base);
    if (found.end === from && !last) {
      this.#tooLarge(from);
      if (from > 0) this.#drop(from);
      return;
    }
    const { file } = this.#work;
    const rest = this.#bytes.slice(found.end, this.#held);
    // Pieces begin at 0 of their buffer.
    if (from > 0) this.#bytes.copyWithin(0, from, found.end);
    const piece: PieceMessage = {
      file,
      buffer: this.#bytes.buffer as ArrayBuffer,
      end: found.end - from,
      firstRow: this.#row,
      records: found.records,
      line: this.#line,
      last,
    };
    this.#base += found.end;
    this.#row += found.records;
    this.#line += found.lines;
    this.#out.piece(piece, this.#takeChecks());
    this.#held = 0;
    if (last) return;
    this.#bytes = await this.#out.buffer(Math.max(this.#room(), rest.length));
    this.#push(rest);
  }

  /** Behind the header, which is the first record; -1 if it is not there whole yet. */
  #header(last: boolean): number {
    const { layout, name } = this.#work;
    if (layout.format === "avro") {
      if (this.#held >= layout.header) {
        this.#headerLeft = false;
        return layout.header;
      }
      if (last) throw new Failure("files.not_avro", "the file ends within its header", { at: name });
      return -1;
    }
    const end = firstRecordEnd(this.#scan, this.#bytes, this.#held, last);
    if (end < 0) {
      this.#tooLarge(0);
      return last ? this.#held : -1;
    }
    this.#headerLeft = false;
    this.#line += this.#scan(this.#bytes, 0, end, true, 0).lines;
    return end;
  }

  #drop(bytes: number): void {
    this.#base += bytes;
    this.#bytes.copyWithin(0, bytes, this.#held);
    this.#held -= bytes;
  }

  #tooLarge(from: number): void {
    // A block says its size before it is there.
    if (this.#held - from <= this.#o.maxRecordBytes || this.#work.layout.format === "avro") return;
    const { name } = this.#work;
    throw new Failure(
      "files.record_too_large",
      `the record on line ${this.#line} (row ${this.#row}) does not end within ${this.#o.maxRecordBytes} bytes`,
      {
        at: name,
        hint: "Is a quoted field never closed? Is the format the right one? Else raise max_record_bytes",
      },
    );
  }

  #takeChecks(): BigUint64Array {
    const out = BigUint64Array.from(this.#checks);
    this.#checks = [];
    return out;
  }
}

/** Records are found by doubling what is looked at, so a header costs nothing in a large piece. -1: none is whole. */
function firstRecordEnd(scan: Scanner, bytes: Uint8Array, held: number, last: boolean): number {
  for (let i = 0; i < held; i++) {
    if (bytes[i] !== 10 && bytes[i] !== 13) continue;
    const { records, end } = scan(bytes, 0, i + 1, false, 0);
    if (records > 0) return end;
  }
  return last && scan(bytes, 0, held, true, 0).records > 0 ? held : -1;
}
