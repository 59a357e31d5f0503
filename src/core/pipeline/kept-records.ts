/**
 * Records of an open set as they were read. Their pieces go back to whoever cuts files before the set is sealed, and only then
 * a server says which row it will not have. Memory is used again from set to set.
 */
import type { RecordLayout } from "../codecs/record-cursor.ts";
import type { PieceMessage } from "../ports/batch-lane.ts";
import type { StreamKey } from "../records/stream.ts";
import { PieceText } from "./piece-text.ts";

interface Kept {
  readonly stream: StreamKey;
  readonly firstRow: number;
  readonly records: number;
  readonly memory: Uint8Array;
  readonly text: PieceText;
}

export class KeptRecords {
  #kept: Kept[] = [];
  #free: Uint8Array[] = [];
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** Copies the piece's records. */
  add(stream: StreamKey, piece: PieceMessage, layout: RecordLayout): void {
    const { end, firstRow, records } = piece;
    const memory = this.#memory(end);
    memory.set(new Uint8Array(piece.buffer, 0, end));
    const text = new PieceText(memory.subarray(0, end), piece, layout);
    this.#kept.push({ stream, firstRow, records, memory, text });
    this.#bytes += end;
  }

  #memory(bytes: number): Uint8Array {
    const at = this.#free.findIndex((m) => m.length >= bytes);
    return at < 0 ? new Uint8Array(bytes) : this.#free.splice(at, 1)[0]!;
  }

  /** The piece that has the row; null: it was none of text. */
  textOf(stream: StreamKey, row: number): PieceText | null {
    const has = (k: Kept) => k.stream === stream && k.firstRow <= row && row < k.firstRow + k.records;
    return this.#kept.find(has)?.text ?? null;
  }

  clear(): void {
    this.#free = this.#kept.map((k) => k.memory);
    this.#kept = [];
    this.#bytes = 0;
  }
}
