/**
 * One column of a table batch as fields of a binary COPY: how many bytes a row's value takes, and those bytes. Values
 * that PostgreSQL cannot hold as they are have a reason in place of a size; their rows are refused one by one, since one
 * of them would make the server refuse all.
 */
import { Failure } from "../../../core/failure/failure.ts";
import type { ColumnType, TableColumn } from "../../../core/types/table-batch.ts";
import { type CellProblem, isValid } from "./cell.ts";
import { jsonCell, jsonProblem } from "./json-cells.ts";
import { numericBytes } from "./numeric.ts";
import {
  dateProblem,
  microseconds,
  putDate,
  putMicroseconds,
  putTime,
  timestampProblem,
  unitOf,
} from "./times.ts";

export interface Cells {
  /** Bytes of the value; -1: null. */
  size(row: number): number;
  put(bytes: Uint8Array, view: DataView, at: number, row: number): void;
  /** Why the row's value cannot be stored; null: it can. Asked for values that are not null. */
  problem(row: number): CellProblem | null;
}

const fine = () => null;

/** `target`: type of the table's column. */
export function cellsOf(column: TableColumn, target: string): Cells {
  const cells = valuesOf(column, target);
  if (column.nullCount === 0) return cells;
  return {
    size: (row) => (isValid(column, row) ? cells.size(row) : -1),
    put: cells.put,
    problem: (row) => (isValid(column, row) ? cells.problem(row) : null),
  };
}

function viewOf(column: TableColumn): DataView {
  const { data } = column;
  return new DataView(data.buffer, data.byteOffset, data.byteLength);
}

function valuesOf(column: TableColumn, target: string): Cells {
  const { type } = column;
  switch (type.id) {
    case "null":
      return { size: () => -1, put: () => {}, problem: fine };
    case "bool":
      return {
        size: () => 1,
        put: (bytes, _view, at, row) => {
          bytes[at] = (column.data[row >> 3]! >> (row & 7)) & 1;
        },
        problem: fine,
      };
    case "int":
      return integers(column, type, target);
    case "float":
      return floats(column, type.bits, target);
    case "decimal":
      return decimals(column, type.scale);
    case "fixed":
      return fixed(column, type.bytes);
    case "utf8":
      return texts(column);
    case "binary":
      return variable(column, 0, fine);
    case "json":
      return json(column, target);
    case "date32":
    case "time64":
    case "timestamp":
    case "interval":
      return times(column);
    case "list":
      return target.endsWith("[]") ? arrays(column, target) : rendered(column);
    case "struct":
    case "map":
      return rendered(column);
  }
}

const WIDTHS: Readonly<Record<string, number>> = { smallint: 2, integer: 4, bigint: 8 };

function integers(column: TableColumn, type: Extract<ColumnType, { id: "int" }>, target: string): Cells {
  const source = viewOf(column);
  const width = WIDTHS[target];
  if (width === undefined) {
    // Unsigned 64 bits, or any into a numeric.
    const value = (row: number) =>
      type.signed ? source.getBigInt64(8 * row, true) : source.getBigUint64(8 * row, true);
    return computed((row) => numericBytes(value(row), 0));
  }
  if (type.bits === 64) {
    return {
      size: () => 8,
      put: (_bytes, view, at, row) => {
        view.setInt32(at, source.getInt32(8 * row + 4, true));
        view.setInt32(at + 4, source.getInt32(8 * row, true));
      },
      problem: fine,
    };
  }
  const read = reader(source, type);
  return {
    size: () => width,
    put: (_bytes, view, at, row) => {
      const n = read(row);
      if (width === 2) view.setInt16(at, n);
      else if (width === 4) view.setInt32(at, n);
      else {
        view.setInt32(at, n < 0 ? -1 : 0);
        view.setInt32(at + 4, n);
      }
    },
    problem: fine,
  };
}

function reader(
  source: DataView,
  { bits, signed }: Extract<ColumnType, { id: "int" }>,
): (row: number) => number {
  if (bits === 8) return signed ? (row) => source.getInt8(row) : (row) => source.getUint8(row);
  if (bits === 16)
    return signed ? (row) => source.getInt16(2 * row, true) : (row) => source.getUint16(2 * row, true);
  return signed ? (row) => source.getInt32(4 * row, true) : (row) => source.getUint32(4 * row, true);
}

function floats(column: TableColumn, bits: 32 | 64, target: string): Cells {
  const source = viewOf(column);
  const read =
    bits === 32
      ? (r: number) => source.getFloat32(4 * r, true)
      : (r: number) => source.getFloat64(8 * r, true);
  const wide = target === "double precision";
  return {
    size: () => (wide ? 8 : 4),
    put: (_bytes, view, at, row) => {
      if (wide) view.setFloat64(at, read(row));
      else view.setFloat32(at, read(row));
    },
    problem: fine,
  };
}

/** Values whose bytes are made once for each row: first asked for their size, then put. */
function computed(make: (row: number) => Uint8Array): Cells {
  let last = -1;
  let bytesOf = new Uint8Array(0);
  const at = (row: number) => {
    if (row !== last) {
      bytesOf = make(row) as Uint8Array<ArrayBuffer>;
      last = row;
    }
    return bytesOf;
  };
  return {
    size: (row) => at(row).length,
    put: (bytes, _view, where, row) => bytes.set(at(row), where),
    problem: fine,
  };
}

function decimals(column: TableColumn, scale: number): Cells {
  const source = viewOf(column);
  return computed((row) => {
    const low = source.getBigUint64(16 * row, true);
    const high = source.getBigInt64(16 * row + 8, true);
    return numericBytes((high << 64n) | low, scale);
  });
}

function fixed({ data }: TableColumn, width: number): Cells {
  return {
    size: () => width,
    put: (bytes, _view, at, row) => bytes.set(data.subarray(width * row, width * row + width), at),
    problem: fine,
  };
}

function offsetsOf(column: TableColumn): Int32Array {
  if (column.offsets === null)
    throw new Failure("internal.bug", `a ${column.type.id} column without offsets`);
  return column.offsets;
}

/** Bytes of any length, after `head` bytes that `put` leaves alone. */
function variable(column: TableColumn, head: number, problem: (row: number) => CellProblem | null): Cells {
  const offsets = offsetsOf(column);
  const { data } = column;
  return {
    size: (row) => head + offsets[row + 1]! - offsets[row]!,
    put: (bytes, _view, at, row) => bytes.set(data.subarray(offsets[row]!, offsets[row + 1]!), at + head),
    problem,
  };
}

function texts(column: TableColumn): Cells {
  const offsets = offsetsOf(column);
  const { data } = column;
  const from = offsets[0] ?? 0;
  const all = data.subarray(from, offsets[column.length]);
  // One look at the whole column: that there is nothing to find is the rule.
  const clean = all.indexOf(0) < 0 && isUtf8(all);
  if (clean) return variable(column, 0, fine);
  return variable(column, 0, (row) => {
    const value = data.subarray(offsets[row]!, offsets[row + 1]!);
    if (value.indexOf(0) >= 0) return "nul_in_text";
    return isUtf8(value) ? null : "not_utf8";
  });
}

const STRICT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function isUtf8(bytes: Uint8Array): boolean {
  try {
    STRICT.decode(bytes);
    return true;
  } catch {
    return false;
  }
}

/** jsonb is the text after a version byte of 1. */
function json(column: TableColumn, target: string): Cells {
  const offsets = offsetsOf(column);
  const head = target === "jsonb" ? 1 : 0;
  const plain = variable(column, head, (row) =>
    jsonProblem(column.data.subarray(offsets[row]!, offsets[row + 1]!)),
  );
  return {
    ...plain,
    put: (bytes, view, at, row) => {
      if (head === 1) bytes[at] = 1;
      plain.put(bytes, view, at, row);
    },
  };
}

/** Nested values as jsonb text. */
function rendered(column: TableColumn): Cells {
  const utf8 = new TextEncoder();
  const cells = computed((row) => utf8.encode(`\u0001${jsonCell(column, row)}`));
  return { ...cells, problem: (row) => (jsonCell(column, row).includes("\\u0000") ? "nul_in_text" : null) };
}

function times(column: TableColumn): Cells {
  const { type } = column;
  const source = viewOf(column);
  switch (type.id) {
    case "date32":
      return {
        size: () => 4,
        put: (_b, view, at, row) => putDate(view, at, source.getInt32(4 * row, true)),
        problem: (row) => dateProblem(source.getInt32(4 * row, true)),
      };
    case "interval":
      return {
        size: () => 16,
        put: (_b, view, at, row) => {
          view.setBigInt64(at, source.getBigInt64(16 * row + 8, true) / 1000n);
          view.setInt32(at + 8, source.getInt32(16 * row + 4, true));
          view.setInt32(at + 12, source.getInt32(16 * row, true));
        },
        problem: (row) => (source.getBigInt64(16 * row + 8, true) % 1000n === 0n ? null : "precision"),
      };
    case "time64": {
      const unit = unitOf(type.unit);
      return {
        size: () => 8,
        put: (_b, view, at, row) => putTime(view, at, source, 8 * row, unit),
        problem: (row) => (microseconds(source, 8 * row, unit) === null ? "precision" : null),
      };
    }
    default: {
      const unit = unitOf(type.id === "timestamp" ? type.unit : "us");
      return {
        size: () => 8,
        put: (_b, view, at, row) => putMicroseconds(view, at, source, 8 * row, unit),
        problem: (row) => timestampProblem(source, 8 * row, unit),
      };
    }
  }
}

/** Object ids of array elements (pg_type.dat). */
const ELEMENT_OIDS: Readonly<Record<string, number>> = {
  boolean: 16,
  bytea: 17,
  bigint: 20,
  smallint: 21,
  integer: 23,
  text: 25,
  real: 700,
  "double precision": 701,
  date: 1082,
  "time without time zone": 1083,
  "timestamp without time zone": 1114,
  "timestamp with time zone": 1184,
  interval: 1186,
  numeric: 1700,
  uuid: 2950,
};

/** One dimension; an empty list has none. */
function arrays(column: TableColumn, target: string): Cells {
  const offsets = offsetsOf(column);
  const item = column.children[0];
  const element = target.slice(0, -2);
  const oid = ELEMENT_OIDS[element.replace(/\(.*\)/, "")];
  if (item === undefined || oid === undefined) throw new Failure("internal.bug", `a list of ${target}`);
  const cells = cellsOf(item, element);
  const size = (row: number) => {
    const [from, to] = [offsets[row]!, offsets[row + 1]!];
    if (from === to) return 12;
    let n = 20;
    for (let i = from; i < to; i++) n += 4 + Math.max(0, cells.size(i));
    return n;
  };
  return {
    size,
    put: (bytes, view, start, row) => {
      const [from, to] = [offsets[row]!, offsets[row + 1]!];
      view.setInt32(start, from === to ? 0 : 1);
      view.setInt32(start + 4, item.nullCount > 0 ? 1 : 0);
      view.setInt32(start + 8, oid);
      if (from === to) return;
      view.setInt32(start + 12, to - from);
      view.setInt32(start + 16, 1);
      let at = start + 20;
      for (let i = from; i < to; i++) {
        const n = cells.size(i);
        view.setInt32(at, n);
        if (n >= 0) cells.put(bytes, view, at + 4, i);
        at += 4 + Math.max(0, n);
      }
    },
    problem: (row) => {
      for (let i = offsets[row]!; i < offsets[row + 1]!; i++) {
        const p = cells.problem(i);
        if (p !== null) return p;
      }
      return null;
    },
  };
}
