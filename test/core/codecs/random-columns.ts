/** Tables by chance, of every type that a column may have, for codecs that write them. */
import fc from "fast-check";
import { builderOf } from "../../../src/core/types/column-builder.ts";
import type { ColumnField, ColumnType, TableBatch } from "../../../src/core/types/table-batch.ts";
import { parseType } from "../../../src/core/types/type-text.ts";
import type { Value } from "../../../src/core/types/value.ts";
import { pushValue } from "../../../src/core/types/value-cells.ts";

export const typed = (text: string): ColumnType => {
  const type = parseType(text);
  if (typeof type === "string") throw new Error(type);
  return type;
};

const LEAVES: readonly ColumnType[] = [
  ...["boolean", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float", "double"],
  ...["decimal(38,9)", "decimal(5,2)", "string", "binary", "date", "time", "time[ns]", "uuid"],
  ...["timestamp[ms]", "timestamp", "timestamptz[s]", "timestamptz[ms]", "timestamptz", "timestamptz[ns]"],
].map(typed);

export const EVERY: readonly ColumnType[] = [
  ...LEAVES,
  { id: "json" },
  { id: "null" },
  { id: "interval" },
  { id: "fixed", bytes: 3 },
];

export function types(
  leaves: readonly ColumnType[],
  keys: readonly string[],
  depth = 3,
): fc.Arbitrary<ColumnType> {
  const leaf = fc.constantFrom(...leaves);
  if (depth === 0) return leaf;
  const inner = types(leaves, keys, depth - 1);
  const field = (name: string) =>
    fc.record({ name: fc.constant(name), type: inner, nullable: fc.boolean() }) as fc.Arbitrary<ColumnField>;
  return fc.oneof(
    { weight: 4, arbitrary: leaf },
    { weight: 1, arbitrary: field("element").map((item): ColumnType => ({ id: "list", item })) },
    {
      weight: 1,
      arbitrary: fc.tuple(fc.constantFrom(...keys), field("value")).map(
        ([key, value]): ColumnType => ({
          id: "map",
          key: { name: "key", type: typed(key), nullable: false },
          value,
        }),
      ),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(field("a"), field("b_c")).map((fields): ColumnType => ({ id: "struct", fields })),
    },
  );
}

const DAY_US = 86_400_000_000n;
/** Years 1678 to 2261: what 64 bits of nanoseconds hold. */
const MOST_SECONDS = 9_200_000_000n;
const PER = { s: 1n, ms: 1000n, us: 1_000_000n, ns: 1_000_000_000n } as const;

function some(type: ColumnType): fc.Arbitrary<Value> {
  switch (type.id) {
    case "bool":
      return fc.boolean().map((value) => ({ kind: "bool", value }));
    case "int": {
      const bits = BigInt(type.bits);
      const [min, max] = type.signed ? [-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n] : [0n, 2n ** bits - 1n];
      return fc
        .oneof(fc.bigInt(min, max), fc.constantFrom(min, max, 0n))
        .map((value) => ({ kind: "long", value }));
    }
    case "float":
      return type.bits === 32
        ? fc.float().map((value) => ({ kind: "float", value }))
        : fc.double().map((value) => ({ kind: "double", value }));
    case "decimal": {
      const most = 10n ** BigInt(type.precision) - 1n;
      return fc.bigInt(-most, most).map((unscaled) => ({ kind: "decimal", unscaled, scale: type.scale }));
    }
    case "utf8":
      return fc
        .string({ unit: "binary", maxLength: 12 })
        .filter((s) => s.isWellFormed())
        .map((value) => ({ kind: "string", value }));
    case "json":
      return fc.jsonValue({ maxDepth: 2 }).map((v) => jsonOf(v ?? "none"));
    case "binary":
      return fc.uint8Array({ maxLength: 200 }).map((value) => ({ kind: "bytes", value }));
    case "fixed":
      return fc
        .uint8Array({ minLength: type.bytes, maxLength: type.bytes })
        .map((value) => ({ kind: type.as === "uuid" ? "uuid" : "bytes", value }));
    case "date32":
      return fc.integer({ min: -719_162, max: 2_932_896 }).map((days) => ({ kind: "date", days }));
    case "time64":
      return fc
        .bigInt(0n, DAY_US - 1n)
        .map((us) => ({ kind: "time", unit: type.unit, value: type.unit === "us" ? us : us * 1000n + 7n }));
    case "timestamp": {
      const most = MOST_SECONDS * PER[type.unit];
      return fc
        .bigInt(-most, most)
        .map((value) => ({ kind: "timestamp", unit: type.unit, zone: type.zone, value }));
    }
    case "interval":
      return fc
        .tuple(fc.integer(), fc.integer(), fc.bigInt(-(10n ** 15n), 10n ** 15n))
        .map(([months, days, nanoseconds]) => ({ kind: "interval", months, days, nanoseconds }));
    case "list":
      return fc.array(values(type.item), { maxLength: 3 }).map((items) => ({ kind: "list", items }));
    case "map":
      return fc
        .uniqueArray(fc.tuple(some(type.key.type), values(type.value)), {
          maxLength: 3,
          selector: ([key]) => String("value" in key ? key.value : ""),
        })
        .map((entries) => ({ kind: "map", entries }));
    case "struct":
      return fc.tuple(...type.fields.map(values)).map((all) => ({
        kind: "record",
        fields: type.fields.map((f, i) => ({ name: f.name, value: all[i]! })),
      }));
    case "null":
      return fc.constant(NULL);
  }
}

const NULL: Value = { kind: "null" };

/** What `JSON.stringify` would give again. */
function jsonOf(v: unknown): Value {
  if (v === null) return { kind: "null" };
  if (typeof v === "boolean") return { kind: "bool", value: v };
  if (typeof v === "number") return { kind: "double", value: v };
  if (typeof v === "string") return { kind: "string", value: v.toWellFormed() };
  if (Array.isArray(v)) return { kind: "list", items: v.map(jsonOf) };
  const fields = Object.entries(v as object).map(([name, value]) => ({
    name: name.toWellFormed(),
    value: jsonOf(value),
  }));
  return { kind: "record", fields };
}

export function values({ type, nullable }: ColumnField): fc.Arbitrary<Value> {
  return nullable
    ? fc.oneof({ weight: 1, arbitrary: fc.constant(NULL) }, { weight: 4, arbitrary: some(type) })
    : some(type);
}

/** Up to three columns and eight rows. */
export function tables(of: fc.Arbitrary<ColumnType>): fc.Arbitrary<TableBatch> {
  return fc.array(of, { minLength: 1, maxLength: 3 }).chain((chosen) => {
    const fields = chosen.map((type, i): ColumnField => ({ name: `c_${i}`, type, nullable: true }));
    return fc.array(fc.tuple(...fields.map(values)), { maxLength: 8 }).map((rows) => tableOf(fields, rows));
  });
}

export function tableOf(fields: readonly ColumnField[], rows: readonly (readonly Value[])[]): TableBatch {
  const columns = fields.map((f) => builderOf(f.type));
  for (const row of rows)
    for (const [i, v] of row.entries()) {
      columns[i]!.reserve(1);
      pushValue(columns[i]!, v);
    }
  return { fields, columns: columns.map((c) => c.finish()), rows: rows.length };
}
