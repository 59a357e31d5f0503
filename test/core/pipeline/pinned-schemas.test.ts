/**
 * Goal: what was learned of a topic is one for all who ask, grows and never changes, and outlives whoever learned it. Method:
 * processes that share an object in memory, whose writes are lost or of unknown outcome by order; damaged objects.
 */
import { describe, expect, test } from "bun:test";
import {
  MemoryVersionedStore,
  type SharedObject,
  sharedObject,
  type WriteFault,
} from "../../../src/adapters/coverage/memory.ts";
import { asFailure } from "../../../src/core/failure/failure.ts";
import { PinnedSchemas, readPinned } from "../../../src/core/pipeline/pinned-schemas.ts";
import { parseSchemaDocument } from "../../../src/core/types/schema-file.ts";
import { typeText } from "../../../src/core/types/type-text.ts";
import { schema } from "../codecs/table.ts";

interface Process {
  readonly pinned: PinnedSchemas;
  readonly told: string[];
}

let serial = 0;
function process(
  shared: SharedObject,
  { grows = true, maxColumns = 5, faults = [] as (WriteFault | null)[] } = {},
): Process {
  const told: string[] = [];
  const store = new MemoryVersionedStore(shared, { fault: () => faults.shift() ?? null });
  const learned = (topic: string, version: number, added: readonly string[]) =>
    told.push(`${topic} ${version} ${added.join()}`);
  return {
    pinned: new PinnedSchemas({
      store,
      instance: `p${serial++}`,
      maxColumns,
      plainNames: false,
      grows,
      learned,
    }),
    told,
  };
}

const columns = (text: string) =>
  parseSchemaDocument(text, "t")
    .fields.map((f) => `${f.name} ${typeText(f.type)}`)
    .join(";");
const fields = (text: string) => schema(text).fields;
const json = (text: string) => new TextEncoder().encode(text);

test("who looks while a first write is prepared does not make it overwrite what another learned", async () => {
  const shared = sharedObject();
  const other = process(shared);
  const looks: Promise<unknown>[] = [];
  class Slow extends MemoryVersionedStore {
    override async prepare(): Promise<void> {
      await other.pinned.learn("t", fields("x int64"));
      looks.push(mine.find("u"));
      await Promise.all(looks);
    }
  }
  const store = new Slow(shared);
  const mine: PinnedSchemas = new PinnedSchemas({
    store,
    instance: "mine",
    maxColumns: 5,
    plainNames: false,
    grows: true,
    learned: () => {},
  });
  await mine.learn("v", fields("y string"));
  expect(looks.length).toBe(1);
  expect([...(await readPinned(store)).keys()].sort()).toEqual(["t", "v"]);
});

test("the first to learn is believed by all, those after add, and a new process goes on with it", async () => {
  const shared = sharedObject();
  const [a, b] = [process(shared), process(shared)];
  expect(await a.pinned.find("t")).toBeNull();
  const first = await a.pinned.learn("t", fields("x int64;y string"));
  expect([first.id, columns(first.text), first.inferred]).toEqual(["inferred-1", "x int64;y string", "open"]);
  // Who found x to be something else has its records refused: they teach nothing.
  const refused = await b.pinned.learn("t", fields("x double;z boolean"));
  expect([refused.id, columns(refused.text)]).toEqual(["inferred-1", "x int64;y string"]);
  const second = await b.pinned.learn("t", fields("x int64;z boolean"));
  expect([second.id, columns(second.text)]).toEqual(["inferred-2", "x int64;y string;z boolean"]);
  const again = await a.pinned.learn("t", fields("z boolean"));
  expect(again.id).toBe("inferred-2");
  await a.pinned.learn("u", fields("n int64"));
  const c = process(shared);
  expect([(await c.pinned.find("t"))?.text, (await c.pinned.find("u"))?.id]).toEqual([
    second.text,
    "inferred-1",
  ]);
  expect([a.told, b.told, c.told]).toEqual([["t 1 x,y", "u 1 n"], ["t 2 z"], []]);
  const shown = await readPinned(new MemoryVersionedStore(shared));
  expect([...shown.keys()]).toEqual(["t", "u"]);
  expect(shown.get("t")).toBe(second.text);
});

test("lanes that learn at once agree, whatever becomes of the writes", async () => {
  for (const fault of [null, "lost", "unknown_applied", "unknown_not_applied"] as const) {
    const shared = sharedObject();
    const [a, b] = [process(shared, { faults: [fault, fault] }), process(shared)];
    const texts = await Promise.all([
      a.pinned.learn("t", fields("x int64")),
      a.pinned.learn("t", fields("x int64;y int64")),
      b.pinned.learn("t", fields("w int64")),
    ]);
    const last = (await process(shared).pinned.find("t"))!;
    const all = parseSchemaDocument(last.text, "t").fields.map((f) => f.name);
    expect(all.toSorted()).toEqual(["w", "x", "y"]);
    // What was answered is the begin of what stays.
    for (const { text } of texts) expect(columns(last.text).startsWith(columns(text))).toBe(true);
  }
});

test("as many columns as there may be, and none where none may be added", async () => {
  const shared = sharedObject();
  const a = process(shared, { maxColumns: 3 });
  const full = await a.pinned.learn("t", fields("a int64;b int64;c int64;d int64"));
  expect([columns(full.text), full.inferred]).toEqual(["a int64;b int64;c int64", "closed"]);
  expect((await a.pinned.learn("t", fields("e int64"))).id).toBe("inferred-1");
  const fixed = process(shared, { grows: false });
  const still = await fixed.pinned.learn("t", fields("z int64"));
  expect([still.id, still.inferred]).toEqual(["inferred-1", "closed"]);
});

describe("an object that is none of ours", () => {
  test.each([
    ["no JSON", "{", "files.schema"],
    ["something else", '{"format":"twg.coverage"}', "files.schema"],
    [
      "of a later version",
      '{"format":"twg.schemas","formatVersion":2,"topics":{}}',
      "coverage.newer_version",
    ],
    [
      "a topic without a version",
      '{"format":"twg.schemas","formatVersion":1,"topics":{"t":{"columns":[]}}}',
      "files.schema",
    ],
    [
      "a column of no type",
      '{"format":"twg.schemas","formatVersion":1,"topics":{"t":{"version":1,"columns":[{"name":"a","type":"in"}]}}}',
      "files.schema",
    ],
  ])("%s is told, and nothing is written over it", async (_, text, code) => {
    const shared = sharedObject();
    shared.versions.set(1, json(text));
    const { pinned } = process(shared);
    for (const ask of [() => pinned.find("t"), () => pinned.learn("t", fields("a int64"))]) {
      const failure = asFailure(await ask().catch((e: unknown) => e));
      // Not the kind that refuses records: they wait until somebody has looked.
      expect([failure.code, failure.kind === "runtime"]).toEqual([code as never, false]);
    }
    expect(shared.versions.size).toBe(1);
  });
});
