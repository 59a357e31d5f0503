/** The text of a piece of a file: where its records stand, by row and by line of the file. */
import { RecordCursor, type RecordLayout } from "../codecs/record-cursor.ts";
import { Failure } from "../failure/failure.ts";
import type { PieceMessage } from "../ports/batch-lane.ts";

type PiecePlace = Pick<PieceMessage, "end" | "firstRow" | "line">;

export interface RecordPlace {
  readonly from: number;
  readonly to: number;
}

export class PieceText {
  readonly #bytes: Uint8Array;
  readonly #piece: PiecePlace;
  readonly #layout: RecordLayout;
  #cursor: RecordCursor | null = null;
  /** Line ends before a place, so that many records do not count them again and again. */
  #lineAt = 0;
  #line: number;

  /** The records lie in [0, end) of the bytes. */
  constructor(bytes: Uint8Array, piece: PiecePlace, layout: RecordLayout) {
    this.#bytes = bytes;
    this.#piece = piece;
    this.#layout = layout;
    this.#line = piece.line;
  }

  /** Cheap where rows are asked for in ascending order. */
  find(row: number): RecordPlace {
    this.#cursor ??= new RecordCursor(this.#bytes, this.#piece.end, this.#layout);
    const found = this.#cursor.find(row - this.#piece.firstRow);
    if (found === null) throw new Failure("internal.bug", `row ${row} is not in its piece`);
    return found;
  }

  /** Line of the file, from 1, on which a record begins that stands there. */
  lineAt(from: number): number {
    if (from < this.#lineAt) {
      this.#lineAt = 0;
      this.#line = this.#piece.line;
    }
    for (; this.#lineAt < from; this.#lineAt++) if (this.#bytes[this.#lineAt] === 10) this.#line++;
    return this.#line;
  }

  record({ from, to }: RecordPlace): Uint8Array {
    return this.#bytes.subarray(from, to);
  }
}
