/** Rows of columns to payloads of the message that `messageOfColumns` made of them, straight from the columns' arrays. */
import type { TableBatch, TableColumn } from "../../types/table-batch.ts";
import type { Value } from "../../types/value.ts";
import { cellValue } from "../../types/value-cells.ts";
import { UNITS_PER_SECOND, valueJson } from "../../types/value-json.ts";
import { DecodeError, type Payloads } from "../record-codec.ts";
import { BlockWriter } from "./block-writer.ts";
import type { ProtoField, ProtoMessage, ProtoType } from "./message-of-columns.ts";

type Write = (row: number) => void;

/** Payload i is row i of the batch. Throws a DecodeError for a column that the message has no field for. */
export function encodeProtobufRows(message: ProtoMessage, { fields, columns, rows }: TableBatch): Payloads {
  const writer = new RowWriter();
  const known = new Set(message.fields.filter((f) => f.type.is !== "declared").map((f) => f.name));
  const stranger = fields.find((f) => !known.has(f.name) && f.type.id !== "null");
  if (stranger !== undefined)
    throw new DecodeError(
      "decode.unknown_field",
      stranger.name,
      `${message.name} has no field ${stranger.name}`,
    );
  const byName = new Map(fields.map((f, i) => [f.name, columns[i]!]));
  const write = writer.message(message, (name) => byName.get(name));
  const { out } = writer;
  const [starts, ends] = [new Int32Array(rows), new Int32Array(rows)];
  for (let row = 0; row < rows; row++) {
    starts[row] = out.length;
    write(row);
    ends[row] = out.length;
  }
  return { bytes: out.view(), starts, ends, count: rows };
}

const VARINT = 0;
const FIXED64 = 1;
const SIZED = 2;
const FIXED32 = 5;

class RowWriter {
  readonly out = new BlockWriter();

  /** Of a row of columns that are found by their names; one that is not there is absent. */
  message({ fields }: ProtoMessage, column: (name: string) => TableColumn | undefined): Write {
    const parts = fields.flatMap((f) => {
      const c = column(f.name);
      return c === undefined ? [] : [this.#field(f, c)];
    });
    return (row) => {
      for (const part of parts) part(row);
    };
  }

  #field(f: ProtoField, column: TableColumn): Write {
    const write = this.#present(f, column);
    const { validity } = column;
    if (validity === null) return write;
    return (row) => {
      if (isValid(validity, row)) write(row);
    };
  }

  #present({ number, label, key, type }: ProtoField, column: TableColumn): Write {
    if (label === "optional") return this.#tagged(number, type, this.#cell(type, column));
    const { offsets } = column;
    const child = itemsOf(column);
    if (label === "map") return this.#entries(number, [key!, type], child, offsets!);
    const wire = wireOf(type);
    if (wire === SIZED) return this.#each(offsets!, this.#tagged(number, type, this.#some(type, child)));
    return this.#packed(number, type, child, offsets!);
  }

  /** What is in a list or a map is there. */
  #some(type: ProtoType, column: TableColumn): Write {
    const write = this.#cell(type, column);
    const { validity } = column;
    if (validity === null || (type.is === "message" && type.wraps)) return write;
    return (row) => {
      if (!isValid(validity, row)) throw new DecodeError("decode.null", "", "null where there is none");
      write(row);
    };
  }

  #tagged(number: number, type: ProtoType, write: Write): Write {
    const { out } = this;
    const tag = number * 8 + wireOf(type);
    return (row) => {
      out.varint(tag, 0);
      write(row);
    };
  }

  #each(offsets: Int32Array, item: Write): Write {
    return (row) => {
      for (let i = offsets[row]!; i < offsets[row + 1]!; i++) item(i);
    };
  }

  #packed(number: number, type: ProtoType, child: TableColumn, offsets: Int32Array): Write {
    const { out } = this;
    const tag = number * 8 + SIZED;
    const items = this.#each(offsets, this.#some(type, child));
    return (row) => {
      if (offsets[row] === offsets[row + 1]) return;
      out.varint(tag, 0);
      const start = out.open();
      items(row);
      out.close(start);
    };
  }

  #entries(
    number: number,
    [key, value]: readonly [ProtoType, ProtoType],
    entries: TableColumn,
    offsets: Int32Array,
  ): Write {
    const { out } = this;
    const tag = number * 8 + SIZED;
    const [keys, values] = entries.children as readonly [TableColumn, TableColumn];
    const writeKey = this.#tagged(1, key, this.#some(key, keys));
    const writeValue = this.#tagged(2, value, this.#some(value, values));
    return this.#each(offsets, (i) => {
      out.varint(tag, 0);
      const start = out.open();
      writeKey(i);
      writeValue(i);
      out.close(start);
    });
  }

  /** Without its tag. */
  #cell(type: ProtoType, column: TableColumn): Write {
    const { out } = this;
    const { data, offsets } = column;
    switch (type.is) {
      case "message":
        return this.#block(this.message(type.message, type.wraps ? () => column : childrenByName(column)));
      case "text":
        return (row) => {
          const text = UTF8.encode(textOf(cellValue(column, row)));
          out.sized(text, 0, text.length);
        };
      case "instant":
        return this.#block(this.#instant(column));
      case "string":
      case "bytes":
        if (column.type.id === "fixed") {
          const { bytes } = column.type;
          return (row) => out.sized(data, bytes * row, bytes * (row + 1));
        }
        return (row) => out.sized(data, offsets![row]!, offsets![row + 1]!);
      default:
        return this.#number(column);
    }
  }

  #block(content: Write): Write {
    const { out } = this;
    return (row) => {
      const start = out.open();
      content(row);
      out.close(start);
    };
  }

  #number({ type, data }: TableColumn): Write {
    const { out } = this;
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    if (type.id === "float") {
      const size = type.bits / 8;
      return (row) => out.copy(data, size * row, size * (row + 1));
    }
    if (type.id !== "int") return (row) => out.varint((data[row >> 3]! >> (row & 7)) & 1, 0);
    const { bits, signed } = type;
    if (bits === 64)
      return (row) => out.varint(view.getInt32(8 * row, true), view.getInt32(8 * row + 4, true));
    return (row) => {
      const n = wordOf(view, bits, signed, row);
      out.varint(n, signed ? n >> 31 : 0);
    };
  }

  /** The fields of a Timestamp: seconds, and nanoseconds from there on, which are never negative. */
  #instant({ type, data }: TableColumn): Write {
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    const per = type.id === "timestamp" ? Number(UNITS_PER_SECOND[type.unit]) : 1;
    return (row) => {
      const high = view.getInt32(8 * row + 4, true);
      if (high >= SAFE_HIGH || high < -SAFE_HIGH)
        return this.#wideInstant(view.getBigInt64(8 * row, true), per);
      const value = high * TWO32 + view.getUint32(8 * row, true);
      const seconds = Math.floor(value / per);
      this.#secondsAndNanos(seconds, (value - seconds * per) * (E9 / per));
    };
  }

  #wideInstant(value: bigint, per: number): void {
    const units = BigInt(per);
    const rest = ((value % units) + units) % units;
    const seconds = (value - rest) / units;
    const nanos = Number(rest) * (E9 / per);
    if (seconds >= -MAX_SAFE && seconds <= MAX_SAFE) this.#secondsAndNanos(Number(seconds), nanos);
    else this.#timestamp(Number(BigInt.asIntN(32, seconds)), Number(seconds >> 32n), nanos);
  }

  #secondsAndNanos(seconds: number, nanos: number): void {
    this.#timestamp(seconds | 0, Math.floor(seconds / TWO32), nanos);
  }

  #timestamp(low: number, high: number, nanos: number): void {
    const { out } = this;
    if (low !== 0 || high !== 0) {
      out.varint(8 + VARINT, 0);
      out.varint(low, high);
    }
    if (nanos !== 0) {
      out.varint(16 + VARINT, 0);
      out.varint(nanos, 0);
    }
  }
}

const UTF8 = new TextEncoder();
const TWO32 = 4_294_967_296;
const E9 = 1_000_000_000;
/** 64-bit integers whose upper half is within it are whole numbers of a double. */
const SAFE_HIGH = 0x1f_ffff;
const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

function wireOf({ is }: ProtoType): number {
  if (is === "float") return FIXED32;
  if (is === "double") return FIXED64;
  return ["bool", "int32", "uint32", "int64", "uint64"].includes(is) ? VARINT : SIZED;
}

function isValid(validity: Uint8Array, row: number): boolean {
  return ((validity[row >> 3]! >> (row & 7)) & 1) === 1;
}

function wordOf(v: DataView, bits: 8 | 16 | 32, signed: boolean, row: number): number {
  if (bits === 8) return signed ? v.getInt8(row) : v.getUint8(row);
  if (bits === 16) return signed ? v.getInt16(2 * row, true) : v.getUint16(2 * row, true);
  return v.getInt32(4 * row, true);
}

/** Of a list its elements, of a map its entries by the names that the message has for them. */
function itemsOf({ type, children }: TableColumn): TableColumn {
  const child = children[0]!;
  if (type.id !== "map") return child;
  const fields = [
    { ...type.key, name: "key" },
    { ...type.value, name: "value" },
  ];
  return { ...child, type: { id: "struct", fields } };
}

function childrenByName({ type, children }: TableColumn): (name: string) => TableColumn | undefined {
  const fields = type.id === "struct" ? type.fields : [];
  const byName = new Map(fields.map((f, i) => [f.name, children[i]!]));
  return (name) => byName.get(name);
}

/** Of values without quotes what they are, of the others what stands within. */
function textOf(value: Value): string {
  const text = valueJson(value);
  return text.startsWith('"') ? (JSON.parse(text) as string) : text;
}
