/**
 * Goal: rows of Protobuf are written by numbers that no other version of the subject contradicts, whoever registers beside us,
 * and whoever comes last leaves a newest version that knows the rows of all.
 * Method: a registry's store, in which others register between any two of our questions.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type RowEncode, rowSchema } from "../../src/commands/row-schemas.ts";
import { numbersIn } from "../../src/core/codecs/protobuf/field-numbers.ts";
import type { ColumnField } from "../../src/core/types/table-batch.ts";
import { SchemaStore } from "../brokers/registry/store.ts";
import { typed } from "../core/codecs/random-columns.ts";

const PROTOBUF: RowEncode = { format: "protobuf", subject: "s", record: "acme.Row" };
const columns = (...names: string[]): ColumnField[] =>
  names.map((name) => ({ name, type: typed("int32"), nullable: true }));
const proto = (fields: string) => `syntax = "proto3"; package acme; message Row { ${fields} }`;

/** `beside`: done once before each registering. */
function world(beside: (() => void)[] = []) {
  const store = new SchemaStore();
  const add = (schema: string) => store.add("s", { schema, schemaType: "PROTOBUF", references: [] });
  const client = {
    versions: async (subject: string) =>
      (store.versions(subject) ?? []).map((v) => ({
        ...{ format: "protobuf" as const, text: v.schema, references: [], id: String(v.id) },
        ...{ subject, version: v.version },
      })),
    register: async (_: string, { text }: { readonly text: string }) => {
      beside.shift()?.();
      const added = add(text);
      if (typeof added === "string") throw new Error(added);
      return { id: added.id, guid: null };
    },
    lookup: () => Promise.reject(new Error("not asked")),
  };
  const numbers = async (fields: ColumnField[]) => {
    const { text } = await rowSchema(client, PROTOBUF, fields, true);
    const schema = {
      text,
      format: "protobuf",
      references: [],
      id: "",
      subject: null,
      version: null,
    } as const;
    return Object.fromEntries(numbersIn(schema, "acme.Row")!.numbers);
  };
  return { store, add, numbers };
}

test("a table that grows, and one that is met anew in another order, keep their numbers", async () => {
  const { numbers, store } = world();
  expect(await numbers(columns("a", "b"))).toEqual({ a: 1, b: 2 });
  expect(await numbers(columns("c", "b", "a"))).toEqual({ a: 1, b: 2, c: 3 });
  expect(await numbers(columns("b"))).toEqual({ a: 1, b: 2, c: 3 });
  expect(store.versions("s")?.length).toBe(2);
});

test("whose version is the later one takes other numbers", async () => {
  const w = world([
    () => w.add(proto("optional int32 x = 1;")),
    () => w.add(proto("optional int32 x = 1; optional int32 y = 2;")),
  ]);
  expect(await w.numbers(columns("a"))).toEqual({ x: 1, y: 2, a: 3 });
});

test("whose version is the earlier one keeps them", async () => {
  const w = world();
  expect(await w.numbers(columns("a"))).toEqual({ a: 1 });
  w.add(proto("optional int32 x = 1;"));
  expect(await w.numbers(columns("a"))).toEqual({ a: 1 });
  expect(await w.numbers(columns("a", "x"))).toEqual({ a: 1, x: 2 });
});

const FORMATS = ["protobuf", "json_schema"] as const;
type Format = (typeof FORMATS)[number];
const struct = (...names: string[]): ColumnField[] => [
  { name: "s", type: { id: "struct", fields: columns(...names) }, nullable: true },
];

/** A subject that lanes register under. `turn`: whose request is answered next. `printed`: how the registry keeps a text. */
function subject(
  format: Format,
  {
    turn = () => Promise.resolve(),
    printed = (text: string) => text,
  }: {
    turn?: () => Promise<unknown>;
    printed?: (text: string) => string;
  } = {},
) {
  const store = new SchemaStore();
  const schemaType = format === "protobuf" ? "PROTOBUF" : "JSON";
  const add = (text: string) => {
    const added = store.add("s", { schema: printed(text), schemaType, references: [] });
    if (typeof added === "string") throw new Error(added);
    return { id: added.id, guid: null };
  };
  const client = {
    versions: async () => {
      await turn();
      return (store.versions("s") ?? []).map((v) => ({
        ...{ format: format === "protobuf" ? ("protobuf" as const) : ("json" as const), text: v.schema },
        ...{ references: [], id: String(v.id), subject: "s", version: v.version },
      }));
    },
    register: async (_: string, { text }: { readonly text: string }) => {
      await turn();
      return add(text);
    },
    lookup: () => Promise.reject(new Error("not asked")),
  };
  const lane = (fields: ColumnField[], record = "acme.Row") =>
    rowSchema(client, { format, subject: "s", record }, fields, true);
  return { add, lane, store, versions: () => (store.versions("s") ?? []).map((v) => v.schema) };
}

/** Names of one letter, with their numbers. */
function declared(format: Format, text: string): string[] {
  const found = format === "protobuf" ? text.matchAll(/\b([a-z] = \d+);/g) : text.matchAll(/"([a-z])":/g);
  return [...found].map((m) => m[1]!).sort();
}

/** The newest version has what all lanes have, each of which writes by what its id stands for; and then there is peace. */
async function expectSettled(format: Format, s: ReturnType<typeof subject>, lanes: ColumnField[][]) {
  const had = await Promise.all(lanes.map((fields) => s.lane(fields)));
  const newest = declared(format, s.versions().at(-1)!);
  for (const [i, { id, text }] of had.entries()) {
    expect(newest).toEqual(expect.arrayContaining(declared(format, text)));
    expect(declared(format, s.store.byId(id)!.schema)).toEqual(declared(format, text));
    for (const name of namesOf(lanes[i]!)) expect(text).toMatch(new RegExp(`\\b${name}\\b`));
  }
  const before = s.versions();
  for (const fields of lanes) await s.lane(fields);
  expect(s.versions()).toEqual(before);
}

/** Fields in the order of their names, in a print of the registry's. */
function sorted(format: Format, text: string): string {
  if (format === "json_schema") return JSON.stringify(sortedKeys(JSON.parse(text)), null, 1);
  const [head, fields] = [text.slice(0, text.indexOf("{") + 1), text.match(/optional .*;/g)!];
  return [head, ...fields.sort(), "}"].join("\n");
}

function sortedKeys(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).map(([key, v]) => [key, sortedKeys(v)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function namesOf(fields: readonly ColumnField[]): string[] {
  return fields.flatMap(({ name, type }) => [name, ...(type.id === "struct" ? namesOf(type.fields) : [])]);
}

const AT_ONCE = [
  [columns("a"), columns("a", "b")],
  [columns("a", "b"), columns("a")],
  [columns("a"), columns("a", "b"), columns("a", "c")],
  [columns("a", "b"), columns("a"), columns("a", "c")],
  [columns("a", "b"), columns("a", "c"), columns("a")],
  [columns("a", "b", "c"), columns("a"), columns("a", "b")],
  [struct("x", "y"), struct("x")],
].map((lanes) => [lanes.map((l) => namesOf(l).join("")).join(", "), lanes] as const);

describe.each(FORMATS)("who registers at once: the newest version has what all have (%s)", (format) => {
  test.each(AT_ONCE)("%s", async (_, lanes) => {
    await expectSettled(format, subject(format), lanes);
  });

  test("in any order of questions", async () => {
    // One column is everybody's: of two fields in all, of which others had the numbers first, there are but two orders.
    const more = fc.subarray([..."bc"]).map((names) => columns(...names));
    const lane = fc
      .oneof(more, fc.constantFrom(struct("x"), struct("x", "y"), struct("x", "z")))
      .map((fields) => [...columns("a"), ...fields]);
    const lanes = fc.array(lane, { minLength: 2, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), lanes, async (scheduler, all) => {
        const s = subject(format, { turn: () => scheduler.schedule(Promise.resolve()) });
        await scheduler.waitFor(expectSettled(format, s, all));
      }),
      { numRuns: 100 },
    );
  });

  test("a registry to which the order is the same, and prints its own", async () => {
    const s = subject(format, { printed: (text) => sorted(format, text) });
    const had = await Promise.all([s.lane(columns("a", "b")), s.lane(columns("a"))]);
    for (const { id, text } of had)
      expect(declared(format, s.store.byId(id)!.schema)).toEqual(declared(format, text));
    // Of Protobuf nothing else than the order makes another version; rows are written all the same.
    expect(declared(format, s.versions().at(-1)!)).toEqual(format === "protobuf" ? ["a = 1"] : ["a", "b"]);
    await s.lane(columns("b", "c"));
    for (const name of ["b", "c"]) expect(s.versions().at(-1)).toMatch(new RegExp(`\\b${name}\\b`));
  });
});

test("tables that share a subject do not register anew because of each other", async () => {
  const s = subject("protobuf");
  for (let run = 0; run < 3; run++) {
    await s.lane(columns("a", "b"));
    await s.lane(columns("c", "d"), "acme.Other");
  }
  expect(s.versions().length).toBe(2);
});

test("a property that somebody removed does not come back", async () => {
  const s = subject("json_schema");
  const { text } = await s.lane(columns("a", "z"));
  const { z, ...properties } = JSON.parse(text).properties;
  expect(z).toBeDefined();
  s.add(JSON.stringify({ ...JSON.parse(text), properties }));
  await Promise.all([s.lane(columns("a")), s.lane(columns("a", "b")), s.lane(columns("a", "c"))]);
  expect(declared("json_schema", s.versions().at(-1)!)).toEqual(["a", "b", "c"]);
});

test("where others are always before us it is tried later", async () => {
  const w = world(
    Array.from({ length: 9 }, (_, i) => () => {
      const before = Array.from({ length: i }, (_, k) => `optional int32 x${k} = ${k + 1};`).join(" ");
      w.add(proto(`${before} optional int32 x${i} = ${i + 1};`));
    }),
  );
  await expect(w.numbers(columns("a"))).rejects.toMatchObject({ code: "registry.unavailable", retry: true });
});
