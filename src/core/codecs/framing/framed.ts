/**
 * What a framing finds in the keys or values of a batch: for each row which schema its envelope names and where the payload
 * lies. The raw columns stay as they came; only what a framing has to inflate is held here. All arrays are reused.
 */
import type { SchemaRef } from "../../schema/resolver.ts";

export interface FramedSchema {
  readonly ref: SchemaRef;
  /** Protobuf: the way to the message in its file, outermost first. Null: the envelope does not say. */
  readonly message: readonly number[] | null;
}

/** In `Framed.slots`: the row has no key or value (null), or its envelope is refused. */
export const NO_VALUE = -1;
export const REFUSED = -2;

export interface FramingFault {
  /** As in `starts`. */
  readonly row: number;
  /** Of code decode.framing. */
  readonly reason: string;
}

/** Row i of these arrays is row `first` + i of the column. */
export class Framed {
  first = 0;
  rows = 0;
  /** Payload i is bytes[starts[i], ends[i]). */
  bytes: Uint8Array = new Uint8Array(0);
  starts: Int32Array = new Int32Array(0);
  ends: Int32Array = new Int32Array(0);
  /** Index into `schemas`, NO_VALUE or REFUSED. */
  slots: Int32Array = new Int32Array(0);
  /** Distinct, in the order of their first row. */
  readonly schemas: FramedSchema[] = [];
  readonly faults: FramingFault[] = [];

  begin(first: number, rows: number, bytes: Uint8Array): void {
    this.first = first;
    this.rows = rows;
    this.bytes = bytes;
    this.schemas.length = 0;
    this.faults.length = 0;
    if (this.slots.length >= rows) return;
    this.starts = new Int32Array(rows);
    this.ends = new Int32Array(rows);
    this.slots = new Int32Array(rows);
  }

  put(row: number, slot: number, start: number, end: number): void {
    this.slots[row] = slot;
    this.starts[row] = start;
    this.ends[row] = end;
  }

  refuse(row: number, reason: string): void {
    this.put(row, REFUSED, 0, 0);
    this.faults.push({ row, reason });
  }
}
