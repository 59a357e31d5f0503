/** Columns in Arrow's layout from plain values, for tests. */
import type {
  ColumnField,
  ColumnType,
  TableBatch,
  TableColumn,
} from "../../../src/core/types/table-batch.ts";

export type Plain =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | readonly Plain[]
  | { readonly [k: string]: Plain };

const UTF8 = new TextEncoder();

export function field(name: string, type: ColumnType): ColumnField {
  return { name, type, nullable: true };
}

function validityOf(values: readonly Plain[]): { validity: Uint8Array | null; nullCount: number } {
  const nullCount = values.filter((v) => v === null).length;
  if (nullCount === 0) return { validity: null, nullCount };
  const validity = new Uint8Array((values.length + 7) >> 3);
  values.forEach((v, i) => {
    if (v !== null) validity[i >> 3]! |= 1 << (i & 7);
  });
  return { validity, nullCount };
}

/** Bytes of each fixed-width type, written little endian. */
function fixedWidth(type: ColumnType, values: readonly Plain[]): Uint8Array | null {
  const made = (width: number, put: (view: DataView, at: number, value: never) => void) => {
    const view = new DataView(new ArrayBuffer(width * values.length));
    values.forEach((v, i) => {
      if (v !== null) put(view, i * width, v as never);
    });
    return new Uint8Array(view.buffer);
  };
  const i64 = () =>
    made(8, (v, at, n: bigint | number) => v.setBigInt64(at, BigInt.asIntN(64, BigInt(n)), true));
  switch (type.id) {
    case "int":
      if (type.bits === 64) return i64();
      return made(type.bits / 8, (v, at, n: number) => {
        if (type.bits === 8) v.setInt8(at, n);
        else if (type.bits === 16) v.setInt16(at, n, true);
        else v.setInt32(at, n, true);
      });
    case "float":
      return type.bits === 32
        ? made(4, (v, at, n: number) => v.setFloat32(at, n, true))
        : made(8, (v, at, n: number) => v.setFloat64(at, n, true));
    case "date32":
      return made(4, (v, at, n: number) => v.setInt32(at, n, true));
    case "time64":
    case "timestamp":
      return i64();
    case "decimal":
      return made(16, (v, at, n: bigint) => {
        v.setBigUint64(at, BigInt.asUintN(64, n), true);
        v.setBigInt64(at + 8, n >> 64n, true);
      });
    case "fixed":
      return made(type.bytes, (v, at, b: Uint8Array) => new Uint8Array(v.buffer).set(b, at));
    case "interval":
      return made(16, (v, at, [months, days, nanos]: readonly [number, number, bigint]) => {
        v.setInt32(at, months, true);
        v.setInt32(at + 4, days, true);
        v.setBigInt64(at + 8, nanos, true);
      });
    default:
      return null;
  }
}

export function column(type: ColumnType, values: readonly Plain[]): TableColumn {
  const shared = { type, length: values.length, ...validityOf(values) };
  const none = { offsets: null, children: [] as readonly TableColumn[], data: new Uint8Array(0) };
  const fixed = fixedWidth(type, values);
  if (fixed !== null) return { ...shared, ...none, data: fixed };
  switch (type.id) {
    case "bool": {
      const data = new Uint8Array((values.length + 7) >> 3);
      values.forEach((v, i) => {
        if (v === true) data[i >> 3]! |= 1 << (i & 7);
      });
      return { ...shared, ...none, data };
    }
    case "utf8":
    case "binary":
    case "json": {
      const parts = values.map((v) =>
        v instanceof Uint8Array ? v : UTF8.encode(v === null ? "" : String(v)),
      );
      return {
        ...shared,
        ...none,
        offsets: offsetsOf(parts),
        data: Uint8Array.from(parts.flatMap((p) => [...p])),
      };
    }
    case "list": {
      const lists = values.map((v) => (v ?? []) as readonly Plain[]);
      return {
        ...shared,
        ...none,
        offsets: offsetsOf(lists),
        children: [column(type.item.type, lists.flat())],
      };
    }
    case "map": {
      const lists = values.map((v) => (v ?? []) as readonly (readonly [Plain, Plain])[]);
      const all = lists.flat();
      const entry: ColumnType = { id: "struct", fields: [type.key, type.value] };
      const children = [
        column(
          type.key.type,
          all.map((p) => p[0]),
        ),
        column(
          type.value.type,
          all.map((p) => p[1]),
        ),
      ];
      const entries = { type: entry, length: all.length, nullCount: 0, validity: null, ...none, children };
      return { ...shared, ...none, offsets: offsetsOf(lists), children: [entries] };
    }
    case "struct": {
      const children = type.fields.map((f) =>
        column(
          f.type,
          values.map((v) => (v as { readonly [k: string]: Plain } | null)?.[f.name] ?? null),
        ),
      );
      return { ...shared, ...none, children };
    }
    default:
      return { ...shared, ...none };
  }
}

function offsetsOf(parts: readonly { readonly length: number }[]): Int32Array {
  const offsets = new Int32Array(parts.length + 1);
  parts.forEach((p, i) => {
    offsets[i + 1] = offsets[i]! + p.length;
  });
  return offsets;
}

export function batch(columns: readonly (readonly [ColumnField, readonly Plain[]])[]): TableBatch {
  return {
    fields: columns.map(([f]) => f),
    columns: columns.map(([f, values]) => column(f.type, values)),
    rows: columns[0]?.[1].length ?? 0,
  };
}
