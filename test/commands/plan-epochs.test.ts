/**
 * Goal: what is written down of a sink's streams is the plan by which this process decodes, whatever becomes of its files. Method:
 * files in memory that change, and a book in memory.
 */
import { expect, test } from "bun:test";
import { readPlan } from "../../src/commands/decode-plan.ts";
import { epochsOf, PresentPlans, readOnce } from "../../src/commands/plan-epochs.ts";
import { type DecodeSection, decodeSpec } from "../../src/core/config/decode-options.ts";
import type { Resolved } from "../../src/core/config/secret.ts";
import { PlanBook } from "../../src/core/coverage/plan-book.ts";
import type { TwgEvent } from "../../src/core/observe/events.ts";
import { BookStore } from "../core/coverage/book-store.ts";

const DECODE: DecodeSection = decodeSpec.parse({ format: "json", schema_file: "/s.json" });
const RESOLVED = DECODE as Resolved<DecodeSection>;
const PARTS = { instance: "i", observer: { emit: () => {} } };
const bytes = (text: string) => new TextEncoder().encode(text);

test("a file is what it was at first; one that was not there, or could not be read, is looked for again", async () => {
  const files = new Map<string, string>([["/a", "1"]]);
  let asked = 0;
  const read = readOnce(async (path) => {
    asked++;
    const text = files.get(path);
    if (text === "denied") throw new Error(text);
    return text === undefined ? null : bytes(text);
  });
  const both = await Promise.all([read("/a"), read("/a")]);
  expect(both).toEqual([bytes("1"), bytes("1")]);
  files.set("/a", "2");
  expect(await read("/a")).toEqual(bytes("1"));
  expect(asked).toBe(1);
  expect(await read("/b")).toBeNull();
  files.set("/b", "denied");
  expect(await read("/b").catch((e: Error) => e.message)).toBe("denied");
  files.set("/b", "3");
  expect(await read("/b")).toEqual(bytes("3"));
});

test("streams begin with the plan of their topic, between the two points at which a test ends the process", async () => {
  const versions = new BookStore();
  const points: string[] = [];
  const seen = (point: string) => void points.push(`${point} after ${versions.written.length}`);
  const begins = epochsOf({ decode: RESOLVED }, versions, { ...PARTS, read: async () => bytes("{}") })!;
  const judged = {
    begin: async (of: readonly { readonly from: bigint }[]) => seen(`judged from ${of.map((s) => s.from)}`),
  };
  await begins(
    "typed",
    seen,
    judged,
  )([
    { key: "kafka/c/orders/0/0", position: 10n, skip: [], generation: 3 },
    { key: "kafka/c/returns/0/0", position: 0n, skip: [], generation: 1 },
  ]);
  // The judgement first, so that no plan of the book goes without its own.
  expect(points).toEqual(["judged from 10,0 after 0", "before_epoch after 0", "after_epoch after 2"]);
  const book = new PlanBook({ versions, instance: "j" });
  const streams = (await book.read()).get("typed")!;
  const [epoch] = streams.get("kafka/c/orders/0/0")!.epochs;
  expect(epoch).toMatchObject({ from: 10n });
  expect(streams.get("kafka/c/returns/0/0")).toEqual({
    generation: 1,
    epochs: [{ from: 0n, plan: epoch!.plan }],
  });
  const plan = readPlan((await book.plan(epoch!.plan!))!, epoch!.plan!);
  expect(plan.files).toEqual(new Map([["/s.json", bytes("{}")]]));
});

test("nothing is written down where nothing is decoded, or where raw cannot be read again", () => {
  const parts = { ...PARTS, read: async () => null };
  expect(epochsOf({ decode: null }, new BookStore(), parts)).toBeNull();
  expect(epochsOf({ decode: RESOLVED }, undefined, parts)).toBeNull();
});

test("a plan that could not be made is tried again", async () => {
  let fails = true;
  const plans = new PresentPlans(DECODE, async () => {
    if (fails) throw new Error("denied");
    return bytes("{}");
  });
  expect(await plans.of("orders").catch((e: Error) => e.message)).toBe("denied");
  fails = false;
  expect((await plans.of("orders")).digest).toHaveLength(32);
});

test("topics of one plan have it in memory once", async () => {
  const plans = new PresentPlans(DECODE, async () => bytes("{}"));
  expect(await plans.of("returns")).toBe(await plans.of("orders"));
});

const stream = (topic: string) => ({ key: `kafka/c/${topic}/0/0`, position: 0n, skip: [], generation: 1 });

test("a topic whose plan cannot be made holds up no other", async () => {
  const topic = [{ name: "returns", schema_file: "/gone.json" }];
  const decode = decodeSpec.parse({
    format: "json",
    schema_file: "/s.json",
    topic,
  }) as Resolved<DecodeSection>;
  const versions = new BookStore();
  const read = async (path: string) => {
    if (path === "/gone.json") throw new Error("denied");
    return bytes("{}");
  };
  const begins = epochsOf({ decode }, versions, { ...PARTS, read })!;
  const failed = await begins("typed", null, null)([stream("returns"), stream("orders")]);
  expect([...failed].map(([key, f]) => [key, f.message])).toEqual([["kafka/c/returns/0/0", "denied"]]);
  const streams = (await new PlanBook({ versions, instance: "j" }).read()).get("typed")!;
  expect([...streams.keys()]).toEqual(["kafka/c/orders/0/0"]);
});

test("a sink whose streams have no room in the book begins all the same, and that is told", async () => {
  const versions = new BookStore();
  const events: TwgEvent[] = [];
  const observer = { emit: (e: TwgEvent) => void events.push(e) };
  const begins = epochsOf({ decode: RESOLVED }, versions, { ...PARTS, observer, read: async () => null })!;
  const many = Array.from({ length: 300 }, (_, i) => stream(`${"x".repeat(30_000)}${i}`));
  expect(await begins("typed", null, null)(many)).toEqual(new Map());
  expect(versions.versions).toHaveLength(0);
  expect(events).toMatchObject([
    { e: "recovery.troubled", sink: "typed", failure: { code: "coverage.too_large" } },
  ]);
});
