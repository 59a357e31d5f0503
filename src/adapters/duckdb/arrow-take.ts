/**
 * Reads a result of DuckDB over the Arrow C Data Interface: values are copied out of native memory, and `release` is
 * called, before anything is given on. The layout of the structs is drawn in arrow-lend.ts.
 */
import { CFunction, CString, FFIType, type Pointer, read, toArrayBuffer } from "bun:ffi";
import { Failure } from "../../core/failure/failure.ts";
import { widthOf } from "../../core/types/column-builder.ts";
import type { ColumnField, TableColumn } from "../../core/types/table-batch.ts";
import { columnType } from "./arrow-types.ts";

const WORD = 8;
/** A bound of sanity on counts that are read from native memory. */
const MAX_COLUMNS = 100_000;

const pointer = (at: number, word: number): number => read.ptr(at as Pointer, word * WORD);
const int64 = (at: number, word: number): number => Number(read.i64(at as Pointer, word * WORD));
const text = (at: number): string => (at === 0 ? "" : new CString(at as Pointer).toString());

function childrenOf(at: number, countWord: number, listWord: number): number[] {
  const count = int64(at, countWord);
  if (count > MAX_COLUMNS) throw new Failure("internal.bug", `an Arrow struct has ${count} children`);
  const list = pointer(at, listWord);
  return Array.from({ length: count }, (_, i) => pointer(list, i));
}

function extensionOf(metadata: number): string | null {
  if (metadata === 0) return null;
  let at = 4;
  const take = (): string => {
    const n = read.i32(metadata as Pointer, at);
    const bytes = n === 0 ? new Uint8Array(0) : new Uint8Array(toArrayBuffer(metadata as Pointer, at + 4, n));
    at += 4 + n;
    return new TextDecoder().decode(bytes);
  };
  for (let left = read.i32(metadata as Pointer, 0); left > 0; left--) {
    const key = take();
    const value = take();
    if (key === "ARROW:extension:name") return value;
  }
  return null;
}

export function fieldOf(schema: number): ColumnField {
  const children = childrenOf(schema, 4, 5).map(fieldOf);
  const type = columnType(text(pointer(schema, 0)), extensionOf(pointer(schema, 2)), children);
  return { name: text(pointer(schema, 1)), type, nullable: (int64(schema, 3) & 2) !== 0 };
}

/** A copy of native bytes; bun's view of them must not outlive the native owner. */
function copy(at: number, from: number, bytes: number): Uint8Array {
  if (bytes === 0) return new Uint8Array(0);
  return new Uint8Array(toArrayBuffer(at as Pointer, from, bytes)).slice();
}

/** `array`: address of an ArrowArray of that field. */
export function columnOf(field: ColumnField, array: number): TableColumn {
  const length = int64(array, 0);
  const offset = int64(array, 2);
  if (offset !== 0) throw new Failure("internal.bug", "a result of DuckDB begins within its buffers");
  const buffers = pointer(array, 5);
  const buffer = (i: number): number => pointer(buffers, i);
  const { type } = field;
  const bitmap = (length + 7) >> 3;
  const validity = type.id === "null" || buffer(0) === 0 ? null : copy(buffer(0), 0, bitmap);
  const nullCount = nullsOf(int64(array, 1), validity, length);
  const children = childrenOf(array, 4, 6);
  const base = {
    type,
    length,
    nullCount,
    validity: nullCount === 0 ? null : validity,
    offsets: null,
    children: [],
  };
  switch (type.id) {
    case "null":
      return { ...base, nullCount: length, data: new Uint8Array(0) };
    case "bool":
      return { ...base, data: copy(buffer(1), 0, bitmap) };
    case "utf8":
    case "binary":
    case "json": {
      const offsets = new Int32Array(copy(buffer(1), 0, 4 * (length + 1)).buffer);
      return { ...base, offsets, data: copy(buffer(2), 0, offsets[length] ?? 0) };
    }
    case "struct": {
      const kids = type.fields.map((f, i) => columnOf(f, children[i]!));
      return { ...base, data: new Uint8Array(0), children: kids };
    }
    case "list":
    case "map": {
      const item: ColumnField =
        type.id === "list"
          ? type.item
          : { name: "entries", nullable: false, type: { id: "struct", fields: [type.key, type.value] } };
      const offsets = new Int32Array(copy(buffer(1), 0, 4 * (length + 1)).buffer);
      return { ...base, offsets, data: new Uint8Array(0), children: [columnOf(item, children[0]!)] };
    }
    default:
      return { ...base, data: copy(buffer(1), 0, length * widthOf(type)) };
  }
}

/** -1 is Arrow's word for "not counted". */
function nullsOf(declared: number, validity: Uint8Array | null, length: number): number {
  if (validity === null) return 0;
  if (declared >= 0) return declared;
  let valid = 0;
  for (let i = 0; i < length; i++) valid += (validity[i >> 3]! >> (i & 7)) & 1;
  return length - valid;
}

/** Calls `release` of a schema (word 7) or an array (word 8) unless it was called. */
export function release(struct: number, word: 7 | 8): void {
  const at = pointer(struct, word);
  if (at === 0) return;
  const fn = CFunction({ ptr: at as Pointer, args: [FFIType.ptr], returns: FFIType.void });
  fn(struct as Pointer);
  fn.close();
}
