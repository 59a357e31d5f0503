/**
 * Goal: a table grows by what loses nothing and refuses the rest by name; schemas that alternate come to rest.
 * Method: cases from tables; random schemas against the rules that must hold for any.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Evolution, evolve, type TargetAbilities } from "../../../src/core/schema/evolution.ts";
import type { ColumnField, ColumnType } from "../../../src/core/types/table-batch.ts";
import { parseType, typeText } from "../../../src/core/types/type-text.ts";

const ALL: TargetAbilities = { relax: true, nested: true, widen: () => true };
const NONE: TargetAbilities = { relax: false, nested: false, widen: () => false };

/** `name type` each, `!` behind the type: never null. */
function fields(...texts: readonly string[]): ColumnField[] {
  return texts.map((text) => {
    const [, name = "", type = "", mark] = /^(\S+) (.*?)(!?)$/.exec(text) ?? [];
    const parsed = parseType(type);
    if (typeof parsed === "string") throw new Error(`${text}: ${parsed}`);
    return { name, type: parsed, nullable: mark !== "!" };
  });
}

const shown = (list: readonly ColumnField[]): string[] =>
  list.map((f) => `${f.name} ${typeText(f.type)}${f.nullable ? "" : "!"}`);

function outcome(now: readonly string[], next: readonly string[], can: TargetAbilities = ALL): unknown {
  const e = evolve(fields(...now), fields(...next), can);
  if (e.kind === "refused") return e.differences;
  if (e.kind === "unchanged") return "unchanged";
  return shown(e.fields);
}

describe("grows", () => {
  const cases: [string, string[], string[], string[]][] = [
    ["a new column, null for what was", ["a int32!"], ["a int32!", "b string!"], ["a int32!", "b string"]],
    ["int to long", ["a int32!"], ["a int64!"], ["a int64!"]],
    ["float to double", ["a float"], ["a double"], ["a double"]],
    ["a number of either sign", ["a uint32"], ["a int8"], ["a int64"]],
    ["digits on both sides of the point", ["a decimal(10,2)"], ["a decimal(9,4)"], ["a decimal(12,4)"]],
    ["a column that is gone may be null", ["a int32!", "b string!"], ["a int32!"], ["a int32!", "b string"]],
    ["a column that may be null now", ["a int32!"], ["a int32"], ["a int32"]],
    [
      "inside of lists, maps and structs",
      ["a list<struct<x int32, m map<string,float>>>"],
      ["a list<struct<x int64, m map<string,double>, y date>>"],
      ["a list<struct<x int64, m map<string,double>, y date>>"],
    ],
  ];
  for (const [name, now, next, expected] of cases)
    test(name, () => expect(outcome(now, next)).toEqual(expected));

  test("tells what is to be done", () => {
    const now = fields("a int32!", "s struct<x float>", "gone date!");
    const next = fields("n uuid!", "s struct<x double, y date>", "a int64");
    expect(evolve(now, next, ALL)).toMatchObject({
      kind: "grown",
      added: fields("n uuid"),
      widened: [
        { path: "a", from: { bits: 32 }, to: { bits: 64 } },
        { path: "s.x", from: { bits: 32 }, to: { bits: 64 } },
      ],
      relaxed: ["a", "gone"],
      nested: ["s.y"],
    });
  });

  test("a column of nothing but nulls takes any type", () => {
    const nothing: ColumnField[] = [{ name: "a", type: { id: "null" }, nullable: true }];
    const e = evolve(nothing, fields("a string"), ALL);
    expect(e.kind === "grown" && shown(e.fields)).toEqual(["a string"]);
    expect(evolve(fields("a string"), nothing, ALL).kind).toBe("unchanged");
  });
});

describe("stays", () => {
  const cases: [string, string[], string[]][] = [
    ["the same", ["a int32!", "b string"], ["a int32!", "b string"]],
    ["another order", ["a int32", "b string"], ["b string", "a int32"]],
    ["narrower", ["a int64", "b double", "c decimal(10,2)"], ["a uint32", "b float", "c decimal(4,1)"]],
    ["a part of it", ["a int32", "b string"], ["b string!"]],
  ];
  for (const [name, now, next] of cases) test(name, () => expect(outcome(now, next, NONE)).toBe("unchanged"));
});

describe("is refused", () => {
  test("with every difference", () => {
    const now = [
      "id int64",
      "price double",
      "tags list<string>",
      "who struct<name string, Age int32>",
      "Sum int32",
    ];
    const next = [
      "id string",
      "price decimal(10,2)",
      "tags list<int32>",
      "who struct<name date, age int32>",
      "SUM int32",
    ];
    expect(outcome(now, next)).toEqual([
      "id is int64 in the table and string in the schema",
      "price is double in the table and decimal(10,2) in the schema",
      "tags[] is string in the table and int32 in the schema",
      "who.name is string in the table and date in the schema",
      'who.age differs from "Age" in nothing but case',
      'SUM differs from "Sum" in nothing but case',
    ]);
  });

  test("what would lose something", () => {
    const now = [
      "a int64",
      "b uint64",
      "c decimal(38,0)",
      "d timestamp",
      "e timestamptz",
      "f int64",
      "g map<string,int32>",
    ];
    const next = [
      "a uint64",
      "b int8",
      "c decimal(38,1)",
      "d timestamp[ms]",
      "e timestamp",
      "f double",
      "g map<date,int32>",
    ];
    expect((outcome(now, next) as string[]).map((d) => d.split(" ")[0])).toEqual([
      "a",
      "b",
      "c",
      "d",
      "e",
      "f",
      "g{key}",
    ]);
  });

  test("what the target cannot do", () => {
    expect(
      outcome(
        ["a int32!", "b int32!", "c int32", "d struct<x int32>"],
        ["a int32", "c int64", "d struct<x int32, y int32>"],
        NONE,
      ),
    ).toEqual([
      "a may be null now, and the table does not allow null there",
      "b is not in the schema any more, and the table does not allow null there",
      "c is int32 in the table, which cannot be changed to int64 there",
      "d.y is new, and the table cannot grow inside of a column",
    ]);
  });
});

describe("any schemas", () => {
  const leaf = fc
    .constantFrom(
      "int8",
      "int32",
      "uint32",
      "int64",
      "uint64",
      "float",
      "double",
      "string",
      "date",
      "decimal(5,2)",
      "decimal(20,6)",
    )
    .map((t) => parseType(t) as ColumnType);
  const name = fc.constantFrom("a", "b", "c", "d", "E");
  const { schema } = fc.letrec<{ schema: ColumnField[]; type: ColumnType }>((tie) => ({
    type: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      leaf,
      tie("schema").map((f): ColumnType => ({ id: "struct", fields: f })),
      tie("type").map(
        (t): ColumnType => ({ id: "list", item: { name: "element", type: t, nullable: true } }),
      ),
    ),
    schema: fc.uniqueArray(fc.record({ name, type: tie("type"), nullable: fc.boolean() }), {
      selector: (f) => f.name.toLowerCase(),
      minLength: 1,
      maxLength: 4,
    }),
  }));
  const table = (e: Evolution, before: readonly ColumnField[]) => (e.kind === "refused" ? before : e.fields);
  /** Independent of the order of columns. */
  const sorted = (type: ColumnType): unknown => {
    if (type.id === "struct")
      return Object.fromEntries(type.fields.map((f) => [f.name, [f.nullable, sorted(f.type)]]).sort());
    if (type.id === "list") return [type.item.nullable, sorted(type.item.type)];
    return typeText(type);
  };

  test("a table comes to rest: what it took once changes nothing again, in whatever order", () => {
    fc.assert(
      fc.property(
        fc.array(schema, { minLength: 1, maxLength: 5 }),
        fc.array(fc.nat(4)),
        ([first, ...others], again) => {
          let now: readonly ColumnField[] = first!;
          const taken: (readonly ColumnField[])[] = [first!];
          for (const next of others) {
            const e = evolve(now, next, ALL);
            if (e.kind !== "refused") taken.push(next);
            now = table(e, now);
          }
          for (const i of again)
            expect(evolve(now, taken[i % taken.length]!, ALL)).toEqual({ kind: "unchanged", fields: now });
        },
      ),
      { numRuns: 500 },
    );
  });

  test("columns stay where they are, and never lose null", () => {
    fc.assert(
      fc.property(schema, schema, (now, next) => {
        const after = table(evolve(now, next, ALL), now);
        expect(after.slice(0, now.length).map((f) => f.name)).toEqual(now.map((f) => f.name));
        for (const [i, f] of now.entries()) if (f.nullable) expect(after[i]!.nullable).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test("two schemas make one table, whichever came first", () => {
    fc.assert(
      fc.property(schema, schema, (a, b) => {
        const [ab, ba] = [evolve(a, b, ALL), evolve(b, a, ALL)];
        expect(ab.kind === "refused").toBe(ba.kind === "refused");
        if (ab.kind === "refused" || ba.kind === "refused") return;
        const types = (list: readonly ColumnField[]) =>
          Object.fromEntries(list.map((f) => [f.name, sorted(f.type)]).sort());
        expect(types(ab.fields)).toEqual(types(ba.fields));
      }),
      { numRuns: 500 },
    );
  });
});
