/**
 * Text of one batch, cut into cells but not yet read: what the codecs of text formats make and the readers of the
 * column types take. Cell (row, column) is bytes[starts[at], ends[at]) with at = row * stride + column; a start of -1
 * is null. Readers see one column at a time, so their loops stay in one shape.
 */
export interface TextCells {
  readonly bytes: Uint8Array;
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  readonly stride: number;
  readonly rows: number;
  /** Where there is a quicker way to copy the cells of a column than one by one. `base`: what its offsets begin at. */
  readonly packed?: (column: number, rows: number, base: number) => PackedColumn;
}

/** Cells one behind the other, and the end of each; valid until the next call. */
export interface PackedColumn {
  readonly bytes: Uint8Array;
  readonly offsets: Int32Array;
  readonly nulls: number;
}

/** Why a cell is not what its column wants; 0 is none. The order is no promise, the names are. */
export const CELL_FAULTS = ["none", "type", "range", "precision", "null", "zone"] as const;
export type CellFault = (typeof CELL_FAULTS)[number];

export const FAULT = { type: 1, range: 2, precision: 3, null: 4, zone: 5 } as const;

/** What readers found wrong in a batch: the first fault of each row. */
export class Faults {
  codes = new Uint8Array(0);
  columns = new Int16Array(0);
  count = 0;

  begin(rows: number): void {
    if (this.codes.length < rows) {
      this.codes = new Uint8Array(rows);
      this.columns = new Int16Array(rows);
    } else if (this.count > 0) this.codes.fill(0);
    this.count = 0;
  }

  add(row: number, column: number, fault: number): void {
    if (this.codes[row] !== 0) return;
    this.codes[row] = fault;
    this.columns[row] = column;
    this.count++;
  }
}

/** Bytes as characters of the same number; for text that is ASCII where it is right at all. */
export function latin1(bytes: Uint8Array, start: number, end: number): string {
  let text = "";
  for (let i = start; i < end; i++) text += String.fromCharCode(bytes[i]!);
  return text;
}

const UTF8 = new TextDecoder();

/** An excerpt for messages; a character that is cut becomes the sign for one that is unknown. */
export function excerpt(bytes: Uint8Array, start: number, end: number): string {
  return UTF8.decode(bytes.subarray(start, end));
}
