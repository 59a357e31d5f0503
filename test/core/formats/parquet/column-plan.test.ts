/**
 * Goal: columns of Parquet files are what parquet-format's LogicalTypes.md says, legacy lists and converted types too, and
 * what cannot be carried is refused by its path. Method: schema trees written down, types as text.
 */
import { expect, test } from "bun:test";
import { Failure } from "../../../../src/core/failure/failure.ts";
import { planColumns } from "../../../../src/core/formats/parquet/column-plan.ts";
import {
  LOGICAL,
  type Logical,
  PHYSICAL,
  type SchemaNode,
} from "../../../../src/core/formats/parquet/read-footer.ts";
import { typeText } from "../../../../src/core/types/type-text.ts";

type Kind = "required" | "optional" | "repeated";
const REPETITION = { required: 0, optional: 1, repeated: 2 };

const leaf = (
  kind: Kind,
  name: string,
  physical: keyof typeof PHYSICAL,
  logical: Logical | null = null,
  length = 0,
): SchemaNode => ({
  name,
  repetition: REPETITION[kind],
  physical: PHYSICAL[physical],
  length,
  logical,
  children: [],
});
const group = (kind: Kind, name: string, logical: number | null, ...children: SchemaNode[]): SchemaNode => ({
  name,
  repetition: REPETITION[kind],
  physical: null,
  length: 0,
  logical: logical === null ? null : { id: logical },
  children,
});

const planned = (node: SchemaNode): string => {
  try {
    const [column] = planColumns([node], "f");
    return `${typeText(column!.field.type)}${column!.field.nullable ? "" : " required"}`;
  } catch (e) {
    return e instanceof Failure ? `${e.code}: ${e.message}` : String(e);
  }
};

const lists: [string, SchemaNode, string][] = [
  [
    "three levels",
    group(
      "optional",
      "l",
      LOGICAL.list,
      group("repeated", "list", null, leaf("optional", "element", "int32")),
    ),
    "list<int32>",
  ],
  ["two levels", group("optional", "l", LOGICAL.list, leaf("repeated", "element", "int32")), "list<int32>"],
  [
    "two levels of two fields",
    group(
      "required",
      "l",
      LOGICAL.list,
      group("repeated", "e", null, leaf("required", "a", "int32"), leaf("required", "b", "int64")),
    ),
    "list<struct<a int32, b int64>> required",
  ],
  [
    "named array",
    group("optional", "l", LOGICAL.list, group("repeated", "array", null, leaf("required", "a", "int32"))),
    "list<struct<a int32>>",
  ],
  [
    "named _tuple",
    group("optional", "l", LOGICAL.list, group("repeated", "l_tuple", null, leaf("required", "a", "int32"))),
    "list<struct<a int32>>",
  ],
  [
    "of lists",
    group(
      "optional",
      "l",
      LOGICAL.list,
      group(
        "repeated",
        "list",
        null,
        group("optional", "element", LOGICAL.list, leaf("repeated", "array", "int32")),
      ),
    ),
    "list<list<int32>>",
  ],
  [
    "repeated within",
    group("optional", "l", LOGICAL.list, group("repeated", "x", null, leaf("repeated", "y", "int32"))),
    "list<struct<y list<int32>>>",
  ],
  ["bare repeated", leaf("repeated", "l", "int32"), "list<int32> required"],
  [
    "bare repeated group",
    group("repeated", "l", null, leaf("optional", "a", "int32")),
    "list<struct<a int32>> required",
  ],
  [
    "map",
    group(
      "optional",
      "m",
      LOGICAL.map,
      group(
        "repeated",
        "key_value",
        null,
        leaf("required", "key", "bytes", { id: LOGICAL.string }),
        leaf("optional", "value", "double"),
      ),
    ),
    "map<string,double>",
  ],
];
for (const [name, node, type] of lists) test(`list: ${name}`, () => expect(planned(node)).toBe(type));

const leaves: [SchemaNode, string][] = [
  [leaf("optional", "a", "int32", { id: LOGICAL.integer, unit: 8, flag: false }), "uint8"],
  [leaf("optional", "a", "int64", { id: LOGICAL.integer, unit: 64, flag: false }), "uint64"],
  [leaf("optional", "a", "int32", { id: LOGICAL.time, unit: 1, flag: true }), "time"],
  [leaf("optional", "a", "int64", { id: LOGICAL.time, unit: 3 }), "time[ns]"],
  [leaf("optional", "a", "int64", { id: LOGICAL.timestamp, unit: 1, flag: true }), "timestamptz[ms]"],
  [leaf("optional", "a", "int96"), "timestamp[ns]"],
  [leaf("optional", "a", "bytes", { id: LOGICAL.enum }), "string"],
  [leaf("optional", "a", "bytes", { id: LOGICAL.bson }), "binary"],
  [leaf("optional", "a", "bytes", { id: LOGICAL.json }), "json"],
  [leaf("optional", "a", "bytes", { id: LOGICAL.decimal, precision: 38, scale: 38 }), "decimal(38,38)"],
  [leaf("optional", "a", "fixed", { id: LOGICAL.float16 }, 2), "float"],
  [leaf("optional", "a", "fixed", { id: LOGICAL.interval }, 12), "interval"],
  [leaf("optional", "a", "int32", { id: LOGICAL.unknown }), "string"],
];
for (const [node, type] of leaves)
  test(`${node.physical} ${node.logical?.id ?? ""} is ${type}`, () => expect(planned(node)).toBe(type));

const refusals: SchemaNode[] = [
  leaf("optional", "a", "bytes", { id: LOGICAL.decimal, precision: 39, scale: 0 }),
  leaf("optional", "a", "int32", { id: LOGICAL.decimal, precision: 10, scale: 0 }),
  leaf("optional", "a", "int64", { id: LOGICAL.decimal, precision: 5, scale: 6 }),
  leaf("optional", "a", "int32", { id: LOGICAL.timestamp, unit: 2 }),
  leaf("optional", "a", "int32", { id: LOGICAL.time, unit: 2 }),
  leaf("optional", "a", "int64", { id: LOGICAL.timestamp }),
  leaf("optional", "a", "int64", { id: LOGICAL.time, unit: 1 }),
  leaf("optional", "a", "int32", { id: LOGICAL.integer, unit: 64 }),
  leaf("optional", "a", "int96", { id: LOGICAL.timestamp }),
  leaf("optional", "a", "fixed", { id: LOGICAL.uuid }, 15),
  leaf("optional", "a", "fixed", null, 0),
  leaf("optional", "a", "bytes", { id: 17 }),
  leaf("optional", "a", "bytes", { id: 99 }),
  group("optional", "a", 16, leaf("required", "metadata", "bytes")),
  group("optional", "a", LOGICAL.list, leaf("optional", "x", "int32")),
  group("optional", "a", LOGICAL.map, leaf("repeated", "x", "int32")),
  group("optional", "a", LOGICAL.map, leaf("optional", "x", "int32")),
  group("optional", "a", null, leaf("optional", "x", "int32"), leaf("optional", "X", "int32")),
];
test.each(refusals)("refused by its path: %j", (node) => {
  expect(planned(node)).toStartWith('files.parquet_type: the column "a"');
});
