/**
 * Rows and Values as JSON, one object each, as `valueJson` writes them: every digit of integers and decimals, bytes as
 * base64, instants in ISO 8601, columns of JSON text as they are. Columns are written byte by byte, without an object a row.
 */
import type { ColumnField, TableBatch, TableColumn } from "../../types/table-batch.ts";
import { cellValue } from "../../types/value-cells.ts";
import { valueJson } from "../../types/value-json.ts";
import { GrowingBytes } from "../growing-bytes.ts";
import type { Payloads, RecordEncoder } from "../record-codec.ts";

const UTF8 = new TextEncoder();
const HIGH = 4_294_967_296;
/** 64-bit integers whose upper half is within it are whole numbers of a double. */
const SAFE_HIGH = 0x1f_ffff;
const NULL = UTF8.encode("null");
const TRUE = UTF8.encode("true");
const FALSE = UTF8.encode("false");
const HEX = UTF8.encode("0123456789abcdef");

export function jsonEncoder(): RecordEncoder {
  return { encode: (value) => UTF8.encode(valueJson(value)) };
}

/** Every row as an object with all columns, null ones too. Payloads lie one behind the other. */
export function encodeJsonColumns({ fields, columns, rows }: TableBatch): Payloads {
  const out = new JsonBytes();
  const write = objectWriter(fields, columns);
  const [starts, ends] = [new Int32Array(rows), new Int32Array(rows)];
  for (let row = 0; row < rows; row++) {
    starts[row] = out.length;
    write(row, out);
    ends[row] = out.length;
  }
  return { bytes: out.view(), starts, ends, count: rows };
}

type Write = (row: number, out: JsonBytes) => void;

class JsonBytes extends GrowingBytes {
  put(bytes: Uint8Array): void {
    this.reserve(bytes.length);
    if (bytes.length > 32) this.bytes.set(bytes, this.length);
    else for (let i = 0; i < bytes.length; i++) this.bytes[this.length + i] = bytes[i]!;
    this.length += bytes.length;
  }

  byte(c: number): void {
    this.reserve(1);
    this.bytes[this.length++] = c;
  }

  /** ASCII. */
  ascii(text: string): void {
    this.reserve(text.length);
    for (let i = 0; i < text.length; i++) this.bytes[this.length++] = text.charCodeAt(i);
  }

  /** UTF-8 in [from, to) of `data` in quotes. */
  quoted(data: Uint8Array, from: number, to: number): void {
    this.reserve(2 + 6 * (to - from));
    const b = this.bytes;
    let at = this.length;
    b[at++] = 34;
    for (let i = from; i < to; i++) {
      const c = data[i]!;
      if (c >= 32 && c !== 34 && c !== 92) b[at++] = c;
      else at = escaped(b, at, c);
    }
    b[at++] = 34;
    this.length = at;
  }
}

function escaped(b: Uint8Array, at: number, c: number): number {
  b[at] = 92;
  const short = SHORT.get(c);
  if (short !== undefined) {
    b[at + 1] = short;
    return at + 2;
  }
  b.set([117, 48, 48, HEX[c >> 4]!, HEX[c & 15]!], at + 1);
  return at + 6;
}

const SHORT: ReadonlyMap<number, number> = new Map([
  [34, 34],
  [92, 92],
  [8, 98],
  [9, 116],
  [10, 110],
  [12, 102],
  [13, 114],
]);

function objectWriter(fields: readonly ColumnField[], columns: readonly TableColumn[]): Write {
  const members = fields.map((f, i) => ({
    head: UTF8.encode(`${i === 0 ? "{" : ","}${JSON.stringify(f.name)}:`),
    write: cellWriter(columns[i]!),
  }));
  return (row, out) => {
    if (members.length === 0) out.byte(123);
    for (const { head, write } of members) {
      out.put(head);
      write(row, out);
    }
    out.byte(125);
  };
}

function cellWriter(column: TableColumn): Write {
  const write = valueWriter(column);
  const { validity } = column;
  if (validity === null) return write;
  return (row, out) => {
    if (((validity[row >> 3]! >> (row & 7)) & 1) === 1) write(row, out);
    else out.put(NULL);
  };
}

function valueWriter(column: TableColumn): Write {
  const { type, data, offsets, children } = column;
  switch (type.id) {
    case "bool":
      return (row, out) => out.put(((data[row >> 3]! >> (row & 7)) & 1) === 1 ? TRUE : FALSE);
    case "utf8":
      return (row, out) => out.quoted(data, offsets![row]!, offsets![row + 1]!);
    case "json":
      return (row, out) => out.put(data.subarray(offsets![row]!, offsets![row + 1]!));
    case "int":
      return type.bits === 64 && type.signed ? longWriter(column) : slowWriter(column);
    case "struct":
      return objectWriter(type.fields, children);
    case "list":
      return listWriter(children[0]!, offsets!);
    default:
      return slowWriter(column);
  }
}

function longWriter(column: TableColumn): Write {
  const { data, length } = column;
  const slow = slowWriter(column);
  const words = new Int32Array(data.buffer, data.byteOffset, 2 * length);
  return (row, out) => {
    const high = words[2 * row + 1]!;
    if (high > SAFE_HIGH || high < -SAFE_HIGH) slow(row, out);
    else out.ascii(String(high * HIGH + (words[2 * row]! >>> 0)));
  };
}

function listWriter(child: TableColumn, offsets: Int32Array): Write {
  const write = cellWriter(child);
  return (row, out) => {
    out.byte(91);
    for (let i = offsets[row]!; i < offsets[row + 1]!; i++) {
      if (i > offsets[row]!) out.byte(44);
      write(i, out);
    }
    out.byte(93);
  };
}

/** Types that are rare, or whose text takes longer than an object. */
function slowWriter(column: TableColumn): Write {
  return (row, out) => out.put(UTF8.encode(valueJson(cellValue(column, row))));
}
