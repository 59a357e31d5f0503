/** Tables of every type that a column can have, nested at random; a pure function of a seed. */
import {
  BoolBuilder,
  BytesBuilder,
  builderOf,
  type ColumnBuilder,
  FixedBuilder,
  ListBuilder,
  StructBuilder,
} from "../../../../src/core/types/column-builder.ts";
import type { ColumnField, ColumnType, TableBatch } from "../../../../src/core/types/table-batch.ts";
import { parseType } from "../../../../src/core/types/type-text.ts";

const PLAIN = [
  ...["boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double"],
  ...[
    "decimal(4,2)",
    "decimal(9,0)",
    "decimal(18,6)",
    "decimal(38,10)",
    "string",
    "string",
    "binary",
    "json",
  ],
  ...["date", "time", "uuid", "timestamp[s]", "timestamp[ms]", "timestamp", "timestamp[ns]"],
  ...["timestamptz[s]", "timestamptz[ms]", "timestamptz", "timestamptz[ns]"],
];

export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** An integer in [0, n). */
  below(n: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 15), z | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) % n;
  }
}

export function typeOf(text: string): ColumnType {
  const type = parseType(text);
  if (typeof type === "string") throw new Error(type);
  return type;
}

export function everyType(): ColumnField[] {
  const types: ColumnType[] = [...new Set(PLAIN)].map(typeOf);
  types.push({ id: "fixed", bytes: 5 }, { id: "time64", unit: "ns" });
  return types.map((type, i) => ({ name: `c${i}`, type, nullable: true }));
}

function randomType(c: Chance, depth: number): ColumnType {
  const kind = depth === 0 ? 9 : c.below(9);
  const field = (name: string): ColumnField => ({ name, type: randomType(c, depth - 1), nullable: true });
  if (kind < 2) return { id: "list", item: field("item") };
  if (kind < 4)
    return { id: "struct", fields: Array.from({ length: 1 + c.below(3) }, (_, i) => field(`f${i}`)) };
  if (kind === 4) {
    const key = { name: "key", type: typeOf(["string", "int32", "int64"][c.below(3)]!), nullable: false };
    return { id: "map", key, value: field("value") };
  }
  return typeOf(PLAIN[c.below(PLAIN.length)]!);
}

/** How a column looks: share of nulls in percent, different texts, longest text and list. */
interface Look {
  readonly nulls: number;
  readonly texts: number;
  readonly long: number;
}

export function randomTable(seed: number, rows: number, fields?: readonly ColumnField[]): TableBatch {
  const c = new Chance(seed);
  const all =
    fields ??
    Array.from({ length: 1 + c.below(6) }, (_, i) => ({
      name: `c${i}`,
      type: randomType(c, 3),
      nullable: true,
    }));
  const columns = all.map((f) => {
    const look = {
      nulls: [0, 0, 20, 60, 100][c.below(5)]!,
      texts: [1, 7, 5000, 1 << 30][c.below(4)]!,
      long: [0, 4, 12, 200][c.below(4)]!,
    };
    const b = builderOf(f.type);
    for (let i = 0; i < rows; i++) push(b, f.type, c, look, i);
    return b.finish();
  });
  return { fields: all, columns, rows };
}

function push(b: ColumnBuilder, type: ColumnType, c: Chance, look: Look, i: number, key = false): void {
  b.reserve(1);
  if (!key && c.below(100) < look.nulls) b.pushNull();
  else if (b instanceof FixedBuilder) pushFixed(b, type, c, key ? i : -1);
  else if (b instanceof BytesBuilder) b.push(text(type, c, look, key ? i : -1));
  else if (b instanceof BoolBuilder) b.push(c.below(2) === 1);
  else if (b instanceof StructBuilder) {
    if (type.id !== "struct") throw new Error(type.id);
    for (const [n, f] of type.fields.entries()) push(b.children[n]!, f.type, c, look, i);
    b.pushRow();
  } else if (b instanceof ListBuilder) {
    const items = c.below(5) === 0 ? 0 : c.below(4);
    for (let n = 0; n < items; n++) {
      if (type.id === "list") push(b.child, type.item.type, c, look, n);
      if (type.id === "map") pushEntry(b.child as StructBuilder, type, c, look, n);
    }
    b.pushRow();
  }
}

/** Keys of one map are unique, and never null. */
function pushEntry(
  entry: StructBuilder,
  type: Extract<ColumnType, { id: "map" }>,
  c: Chance,
  look: Look,
  n: number,
): void {
  entry.reserve(1);
  push(entry.children[0]!, type.key.type, c, look, n, true);
  push(entry.children[1]!, type.value.type, c, look, n);
  entry.pushRow();
}

function text(type: ColumnType, c: Chance, look: Look, unique: number): Uint8Array {
  if (type.id === "binary") return Uint8Array.from({ length: c.below(look.long + 1) }, () => c.below(256));
  const n = unique >= 0 ? unique : c.below(look.texts);
  const words = `${n}é`.padEnd(new Chance(n).below(look.long + 1), "xyz");
  if (type.id === "json") return new TextEncoder().encode(JSON.stringify({ words }));
  return new TextEncoder().encode(unique < 0 && new Chance(n).below(9) === 0 ? "" : words);
}

/** Most of what DuckDB's timestamps hold, in microseconds. */
const MOST_MICROS = 9_000_000_000_000_000n;
const PER_SECOND = { s: 1n, ms: 1000n, us: 1_000_000n, ns: 1_000_000_000n } as const;

function pushFixed(b: FixedBuilder, type: ColumnType, c: Chance, unique: number): void {
  const view = new DataView(b.buffer, b.width * b.rows++, b.width);
  const wide = () => BigInt.asIntN(64, (BigInt(c.below(0x7fffffff)) << 33n) ^ BigInt(c.below(0x7fffffff)));
  const within = (most: bigint) => wide() % (c.below(3) === 0 ? most : 1000n);
  const put64 = (v: bigint, at = 0) => view.setBigInt64(at, v, true);
  if (unique >= 0) {
    if (b.width === 4) view.setInt32(0, unique * 7 - 3, true);
    else put64(BigInt(unique * 7 - 3));
    return;
  }
  switch (type.id) {
    case "float":
      // No -0: DuckDB takes it and 0 for one value in a dictionary.
      if (type.bits === 32) view.setFloat32(0, (c.below(2001) - 1000) / 8, true);
      else view.setFloat64(0, [0, 1 / 3, -1e300, Number.NaN][c.below(500)] ?? c.below(1e6) / 7, true);
      return;
    case "date32":
      return view.setInt32(0, c.below(200_000) - 100_000, true);
    case "time64":
      return put64(((wide() & 0x7fffffffn) % 86_400n) * PER_SECOND[type.unit]);
    case "timestamp":
      return put64(
        (within(MOST_MICROS) * PER_SECOND[type.unit]) / (type.unit === "ns" ? 10_000_000n : 1_000_000n),
      );
    case "decimal": {
      const v = ((wide() << 62n) ^ wide()) % 10n ** BigInt(type.precision);
      put64(BigInt.asIntN(64, v));
      return put64(BigInt.asIntN(64, v >> 64n), 8);
    }
    default: {
      const small = c.below(2) === 0;
      for (let i = 0; i < b.width; i++) view.setUint8(i, small && i > 0 ? 0 : c.below(256));
    }
  }
}
