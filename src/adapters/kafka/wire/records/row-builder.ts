/**
 * The columns of one RawBatch, allocated once and filled again. The value column's buffer is an Output: a batch
 * is decompressed (or copied) straight behind the values that are there, parsed where it stands, and each value
 * moved forward over the framing that it no longer needs. The value of a record always stands behind its place
 * in the column, so nothing unread is overwritten.
 */
import { Output } from "../../../../core/compression/output.ts";
import type { RawBatch } from "../../../../core/records/raw-batch.ts";
import { type StreamId, streamKey } from "../../../../core/records/stream.ts";
import { allValid, BytesBuilder, clearNulls } from "./bytes-builder.ts";
import { renewed } from "./renewed.ts";
import { RunsBuilder } from "./runs-builder.ts";

/** A column of a batch, by its field. */
export type ColumnName = "offsets" | "timestamps" | "key" | "value" | "headers" | "runs";

/** A value buffer above this is given up at reset. */
const KEPT_VALUE_BYTES = 1 << 25;
/** Header entries cost memory beside their bytes: two offsets of 4 bytes each. */
const HEADER_ENTRY_BYTES = 8;
const FIRST_HEADERS = 256;

interface Mark {
  rows: number;
  valueLength: number;
  valueNulls: number;
  keyLength: number;
  keyNulls: number;
  headers: number;
  headerKeyLength: number;
  headerValueLength: number;
  headerValueNulls: number;
}

export class RowBuilder {
  readonly maxRows: number;
  readonly maxBytes: number;
  rows = 0;
  offsets: Int32Array<ArrayBuffer>;
  timestamps: Int32Array<ArrayBuffer>;
  readonly key: BytesBuilder;
  readonly value: Output;
  valueOffsets: Int32Array<ArrayBuffer>;
  valueValidity: Uint8Array<ArrayBuffer>;
  valueNulls = 0;
  /** Bytes of the value column in use. */
  valueLength = 0;
  headerOffsets: Int32Array<ArrayBuffer>;
  headers = 0;
  /** Memory of the header columns. */
  #headerBytes = 0;
  readonly headerKeys = new BytesBuilder(FIRST_HEADERS);
  readonly headerValues = new BytesBuilder(FIRST_HEADERS);
  readonly runs: RunsBuilder;
  readonly #mark: Mark = {
    rows: 0,
    valueLength: 0,
    valueNulls: 0,
    keyLength: 0,
    keyNulls: 0,
    headers: 0,
    headerKeyLength: 0,
    headerValueLength: 0,
    headerValueNulls: 0,
  };

  constructor(maxRows: number, maxBytes: number) {
    this.maxRows = maxRows;
    this.maxBytes = maxBytes;
    this.offsets = new Int32Array(2 * maxRows);
    this.timestamps = new Int32Array(2 * maxRows);
    this.key = new BytesBuilder(maxRows);
    this.value = new Output();
    this.valueOffsets = new Int32Array(maxRows + 1);
    this.valueValidity = allValid(maxRows);
    this.headerOffsets = new Int32Array(maxRows + 1);
    this.runs = new RunsBuilder(maxRows);
  }

  /** No row more before `reset`: the rows or the bytes are at their limit. One record may go over the bytes. */
  get full(): boolean {
    return this.isFull(this.rows, this.valueLength);
  }

  /** The same at a row and value length that a loop has not written back yet. */
  isFull(row: number, valueLength: number): boolean {
    if (row === this.maxRows) return true;
    return valueLength + this.key.length + this.#headerBytes >= this.maxBytes;
  }

  /** Header entries were added. */
  countHeaders(): void {
    this.#headerBytes = this.headerKeys.length + this.headerValues.length + this.headers * HEADER_ENTRY_BYTES;
  }

  /** Empties the columns. A section that is being parsed keeps its place in the value buffer. */
  reset(): void {
    this.rows = 0;
    if (this.valueNulls > 0) this.valueValidity.fill(0xff);
    this.valueNulls = 0;
    this.valueLength = 0;
    this.key.reset();
    this.headers = 0;
    this.headerKeys.reset();
    this.headerValues.reset();
    this.countHeaders();
    this.runs.reset();
  }

  /** Gives back a buffer that a huge batch left. Only while no section is being parsed. */
  shrink(): void {
    this.value.shrink(KEPT_VALUE_BYTES);
  }

  /** Takes the column's arrays from whoever got them with `batch`. Only while no section is being parsed. */
  detach(column: ColumnName): void {
    switch (column) {
      case "offsets":
        this.offsets = renewed(this.offsets, () => new Int32Array(2 * this.maxRows));
        break;
      case "timestamps":
        this.timestamps = renewed(this.timestamps, () => new Int32Array(2 * this.maxRows));
        break;
      case "key":
        this.key.detach();
        break;
      case "value":
        this.value.bytes = renewed(this.value.bytes, () => new Output().bytes);
        this.valueOffsets = renewed(this.valueOffsets, () => new Int32Array(this.maxRows + 1));
        this.valueValidity = renewed(this.valueValidity, () => allValid(this.maxRows));
        break;
      case "headers":
        this.headerOffsets = renewed(this.headerOffsets, () => new Int32Array(this.maxRows + 1));
        this.headerKeys.detach();
        this.headerValues.detach();
        break;
      case "runs":
        this.runs.detach();
    }
  }

  /** Remembers where a batch begins, for `rollback`. */
  mark(): void {
    const m = this.#mark;
    m.rows = this.rows;
    m.valueLength = this.valueLength;
    m.valueNulls = this.valueNulls;
    m.keyLength = this.key.length;
    m.keyNulls = this.key.nullCount;
    m.headers = this.headers;
    m.headerKeyLength = this.headerKeys.length;
    m.headerValueLength = this.headerValues.length;
    m.headerValueNulls = this.headerValues.nullCount;
  }

  /** Forgets the rows behind the mark: a batch that breaks is handed out whole or not at all. */
  rollback(): void {
    const m = this.#mark;
    // The loop that broke keeps its row to itself, so every row behind the mark may have left something.
    this.key.rollback(m.rows, m.keyLength, m.keyNulls);
    this.headerKeys.rollback(m.headers, m.headerKeyLength, 0);
    this.headerValues.rollback(m.headers, m.headerValueLength, m.headerValueNulls);
    clearNulls(this.valueValidity, m.rows);
    this.rows = m.rows;
    this.valueLength = m.valueLength;
    this.valueNulls = m.valueNulls;
    this.headers = m.headers;
    this.countHeaders();
  }

  nullValue(row: number): void {
    this.valueValidity[row >>> 3]! &= ~(1 << (row & 7));
    this.valueNulls++;
  }

  batch(stream: StreamId, from: bigint, next: bigint, ingestTs: number): RawBatch {
    return {
      stream,
      span: { stream: streamKey(stream), from, next },
      rows: this.rows,
      offsets: this.offsets,
      timestamps: this.timestamps,
      key: this.key.column(),
      value: {
        offsets: this.valueOffsets,
        data: this.value.bytes,
        validity: this.valueValidity,
        nullCount: this.valueNulls,
      },
      headers: {
        offsets: this.headerOffsets,
        entries: this.headers,
        keys: this.headerKeys.column(),
        values: this.headerValues.column(),
      },
      runs: this.runs.columns(),
      ingestTs,
    };
  }
}
