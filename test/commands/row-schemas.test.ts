/**
 * Goal: rows of Protobuf are written by numbers that no other version of the subject contradicts, whoever registers beside us.
 * Method: a registry's store, in which others register between any two of our questions.
 */
import { expect, test } from "bun:test";
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

test.each(["protobuf", "json_schema"] as const)(
  "two that register at once: the newest version has what both have (%s)",
  async (format) => {
    const store = new SchemaStore();
    const schemaType = format === "protobuf" ? "PROTOBUF" : "JSON";
    const newest = () => store.versions("s")!.at(-1)!;
    const client = {
      versions: async () =>
        (store.versions("s") ?? []).map((v) => ({
          ...{ format: format === "protobuf" ? ("protobuf" as const) : ("json" as const), text: v.schema },
          ...{ references: [], id: String(v.id), subject: "s", version: v.version },
        })),
      register: async (_: string, { text }: { readonly text: string }) => {
        const added = store.add("s", { schema: text, schemaType, references: [] });
        if (typeof added === "string") throw new Error(added);
        return { id: added.id, guid: null };
      },
      lookup: () => Promise.reject(new Error("not asked")),
    };
    const encode = { format, subject: "s", record: "acme.Row" } as const;
    const both = await Promise.all([
      rowSchema(client, encode, columns("a"), true),
      rowSchema(client, encode, columns("a", "b"), true),
    ]);
    for (const name of ["a", "b"]) expect(newest().schema).toMatch(new RegExp(`\\b${name}\\b`));
    expect(both.map((s) => s.id)).toEqual([newest().id, newest().id]);
  },
);

test("where others are always before us it is tried later", async () => {
  const w = world(
    Array.from({ length: 9 }, (_, i) => () => {
      const before = Array.from({ length: i }, (_, k) => `optional int32 x${k} = ${k + 1};`).join(" ");
      w.add(proto(`${before} optional int32 x${i} = ${i + 1};`));
    }),
  );
  await expect(w.numbers(columns("a"))).rejects.toMatchObject({ code: "registry.unavailable", retry: true });
});
