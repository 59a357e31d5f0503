/**
 * Columns that grow row by row, in the layout of `TableColumn`. A builder is reused: `reset` keeps its memory. Readers
 * write into the arrays directly, after `reserve`; that is why they are public.
 */
import { Failure } from "../failure/failure.ts";
import type { ColumnType, TableColumn } from "./table-batch.ts";

const FIRST_ROWS = 1024;
/** Arrow's offsets are int32. */
const MAX_BYTES = 0x7fffffff;

/** Bytes a value of fixed width takes in `data`; 0: a bitmap or no fixed width. */
export function widthOf(type: ColumnType): number {
  switch (type.id) {
    case "int":
    case "float":
      return type.bits / 8;
    case "decimal":
    case "interval":
      return 16;
    case "fixed":
      return type.bytes;
    case "time64":
    case "timestamp":
      return 8;
    case "date32":
      return 4;
    default:
      return 0;
  }
}

/** Validity of any builder: bits are set until a null clears its own, so that columns without nulls cost nothing. */
export class Validity {
  bits: Uint8Array = new Uint8Array(FIRST_ROWS >> 3).fill(0xff);
  nulls = 0;

  reserve(rows: number): void {
    const need = (rows + 7) >> 3;
    if (need <= this.bits.length) return;
    const grown = new Uint8Array(Math.max(need, this.bits.length * 2)).fill(0xff);
    grown.set(this.bits);
    this.bits = grown;
  }

  clear(row: number): void {
    this.bits[row >> 3]! &= ~(1 << (row & 7));
    this.nulls++;
  }

  /** Rows from `rows` on are forgotten. */
  truncate(rows: number, nulls: number): void {
    const at = rows >> 3;
    if (this.nulls > nulls) this.bits[at]! |= 0xff << (rows & 7);
    if (this.nulls > nulls) this.bits.fill(0xff, at + 1);
    this.nulls = nulls;
  }
}

/** Where a builder stood: `truncate` goes back there. */
export interface Mark {
  readonly rows: number;
  readonly nulls: number;
  readonly children: readonly Mark[];
}

export abstract class ColumnBuilder {
  readonly type: ColumnType;
  readonly validity: Validity = new Validity();
  rows = 0;

  constructor(type: ColumnType) {
    this.type = type;
  }

  /** Bytes of the values so far. */
  abstract get bytes(): number;
  /** Room for so many more rows. */
  abstract reserve(more: number): void;
  abstract finish(): TableColumn;

  /** One null row; room must be reserved. */
  pushNull(): void {
    this.validity.clear(this.rows++);
  }

  mark(): Mark {
    return { rows: this.rows, nulls: this.validity.nulls, children: [] };
  }

  truncate(to: Mark): void {
    this.rows = to.rows;
    this.validity.truncate(to.rows, to.nulls);
  }

  reset(): void {
    this.truncate({ rows: 0, nulls: 0, children: [] });
  }

  protected column(
    parts: Pick<TableColumn, "offsets" | "data"> & { readonly children?: readonly TableColumn[] },
  ): TableColumn {
    const { bits, nulls } = this.validity;
    const validity = nulls === 0 ? null : bits.subarray(0, (this.rows + 7) >> 3);
    return {
      type: this.type,
      length: this.rows,
      nullCount: nulls,
      validity,
      offsets: parts.offsets,
      data: parts.data,
      children: parts.children ?? [],
    };
  }
}

/** Numbers, dates, decimals, uuids: `width` bytes a row. */
export class FixedBuilder extends ColumnBuilder {
  readonly width: number;
  buffer: ArrayBuffer;
  u8: Uint8Array;
  i32: Int32Array;
  f64: Float64Array;

  constructor(type: ColumnType) {
    super(type);
    this.width = widthOf(type);
    this.buffer = new ArrayBuffer(0);
    this.u8 = new Uint8Array(0);
    this.i32 = new Int32Array(0);
    this.f64 = new Float64Array(0);
    this.reserve(FIRST_ROWS);
  }

  get bytes(): number {
    return this.rows * this.width;
  }

  reserve(more: number): void {
    const rows = this.rows + more;
    this.validity.reserve(rows);
    // Views of 8-byte words need a length that they divide.
    const need = (rows * this.width + 15) & ~15;
    if (need <= this.buffer.byteLength) return;
    const grown = new ArrayBuffer(Math.max(need, this.buffer.byteLength * 2));
    new Uint8Array(grown).set(this.u8.subarray(0, this.bytes));
    this.buffer = grown;
    this.u8 = new Uint8Array(grown);
    this.i32 = new Int32Array(grown);
    this.f64 = new Float64Array(grown);
  }

  override pushNull(): void {
    this.u8.fill(0, this.rows * this.width, (this.rows + 1) * this.width);
    super.pushNull();
  }

  finish(): TableColumn {
    return this.column({ offsets: null, data: this.u8.subarray(0, this.bytes) });
  }
}

/** A bitmap of values. */
export class BoolBuilder extends ColumnBuilder {
  bits: Uint8Array = new Uint8Array(FIRST_ROWS >> 3);

  get bytes(): number {
    return (this.rows + 7) >> 3;
  }

  reserve(more: number): void {
    const rows = this.rows + more;
    this.validity.reserve(rows);
    const need = (rows + 7) >> 3;
    if (need <= this.bits.length) return;
    const grown = new Uint8Array(Math.max(need, this.bits.length * 2));
    grown.set(this.bits.subarray(0, this.bytes));
    this.bits = grown;
  }

  push(value: boolean): void {
    const bit = 1 << (this.rows & 7);
    if (value) this.bits[this.rows >> 3]! |= bit;
    else this.bits[this.rows >> 3]! &= ~bit;
    this.rows++;
  }

  finish(): TableColumn {
    return this.column({ offsets: null, data: this.bits.subarray(0, this.bytes) });
  }
}

/** utf8, binary, json: bytes and offsets. */
export class BytesBuilder extends ColumnBuilder {
  offsets: Int32Array = new Int32Array(FIRST_ROWS + 1);
  data: Uint8Array = new Uint8Array(FIRST_ROWS * 8);

  get bytes(): number {
    return this.offsets[this.rows]!;
  }

  reserve(more: number): void {
    const rows = this.rows + more;
    this.validity.reserve(rows);
    if (rows + 1 <= this.offsets.length) return;
    const grown = new Int32Array(Math.max(rows + 1, this.offsets.length * 2));
    grown.set(this.offsets.subarray(0, this.rows + 1));
    this.offsets = grown;
  }

  /** Room for so many more bytes of values. */
  reserveBytes(more: number): void {
    const need = this.bytes + more;
    if (need <= this.data.length) return;
    if (need > MAX_BYTES) throw new Failure("internal.bug", "a column of a batch is above 2 GiB");
    const grown = new Uint8Array(Math.min(MAX_BYTES, Math.max(need, this.data.length * 2)));
    grown.set(this.data.subarray(0, this.bytes));
    this.data = grown;
  }

  push(bytes: Uint8Array): void {
    this.reserveBytes(bytes.length);
    const at = this.bytes;
    this.data.set(bytes, at);
    this.offsets[++this.rows] = at + bytes.length;
  }

  /** The same value in `times` rows; room for them must be reserved. */
  pushTimes(bytes: Uint8Array, times: number): void {
    const n = bytes.length;
    const begin = this.bytes;
    this.reserveBytes(n * times);
    if (times > 0) this.data.set(bytes, begin);
    // What is there is copied behind itself, twice as much each time.
    for (let have = n; have > 0 && have < n * times; have *= 2)
      this.data.copyWithin(begin + have, begin, begin + Math.min(have, n * times - have));
    for (let i = 1; i <= times; i++) this.offsets[this.rows + i] = begin + i * n;
    this.rows += times;
  }

  override pushNull(): void {
    this.offsets[this.rows + 1] = this.offsets[this.rows]!;
    super.pushNull();
  }

  finish(): TableColumn {
    return this.column({
      offsets: this.offsets.subarray(0, this.rows + 1),
      data: this.data.subarray(0, this.bytes),
    });
  }
}

/** list and map: offsets into one child. The caller fills the child, then pushes its row. */
export class ListBuilder extends ColumnBuilder {
  readonly child: ColumnBuilder;
  offsets: Int32Array = new Int32Array(FIRST_ROWS + 1);

  constructor(type: ColumnType, child: ColumnBuilder) {
    super(type);
    this.child = child;
  }

  get bytes(): number {
    return 4 * this.rows + this.child.bytes;
  }

  reserve(more: number): void {
    const rows = this.rows + more;
    this.validity.reserve(rows);
    if (rows + 1 <= this.offsets.length) return;
    const grown = new Int32Array(Math.max(rows + 1, this.offsets.length * 2));
    grown.set(this.offsets.subarray(0, this.rows + 1));
    this.offsets = grown;
  }

  /** Ends a row that holds everything added to the child since the row before. */
  pushRow(): void {
    this.offsets[++this.rows] = this.child.rows;
  }

  override pushNull(): void {
    this.offsets[this.rows + 1] = this.child.rows;
    super.pushNull();
  }

  override mark(): Mark {
    return { ...super.mark(), children: [this.child.mark()] };
  }

  override truncate(to: Mark): void {
    super.truncate(to);
    this.child.truncate(to.children[0] ?? NOTHING);
  }

  finish(): TableColumn {
    const offsets = this.offsets.subarray(0, this.rows + 1);
    return this.column({ offsets, data: NO_BYTES, children: [this.child.finish()] });
  }
}

/** struct: children of the same length. A null row is null in every child too. */
export class StructBuilder extends ColumnBuilder {
  readonly children: readonly ColumnBuilder[];

  constructor(type: ColumnType, children: readonly ColumnBuilder[]) {
    super(type);
    this.children = children;
  }

  get bytes(): number {
    return this.children.reduce((n, c) => n + c.bytes, 0);
  }

  reserve(more: number): void {
    this.validity.reserve(this.rows + more);
    for (const c of this.children) c.reserve(more);
  }

  pushRow(): void {
    this.rows++;
  }

  override pushNull(): void {
    for (const c of this.children) c.pushNull();
    super.pushNull();
  }

  override mark(): Mark {
    return { ...super.mark(), children: this.children.map((c) => c.mark()) };
  }

  override truncate(to: Mark): void {
    super.truncate(to);
    for (const [i, c] of this.children.entries()) c.truncate(to.children[i] ?? NOTHING);
  }

  finish(): TableColumn {
    return this.column({ offsets: null, data: NO_BYTES, children: this.children.map((c) => c.finish()) });
  }
}

const NOTHING: Mark = { rows: 0, nulls: 0, children: [] };
const NO_BYTES = new Uint8Array(0);

export function builderOf(type: ColumnType): ColumnBuilder {
  switch (type.id) {
    case "bool":
      return new BoolBuilder(type);
    case "utf8":
    case "binary":
    case "json":
      return new BytesBuilder(type);
    case "list":
      return new ListBuilder(type, builderOf(type.item.type));
    case "struct":
      return new StructBuilder(
        type,
        type.fields.map((f) => builderOf(f.type)),
      );
    case "map": {
      const entry: ColumnType = { id: "struct", fields: [type.key, type.value] };
      return new ListBuilder(type, builderOf(entry));
    }
    default:
      return new FixedBuilder(type);
  }
}
