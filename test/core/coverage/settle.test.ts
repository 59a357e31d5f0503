/**
 * Goal: an intent is brought to its end whole, published or gone, whatever else touches its files between two calls;
 * a torn one is left as it is, as evidence. Method: a store in a map with another process's moves between our calls.
 */
import { beforeEach, expect, test } from "bun:test";
import { SETTLE_POINTS, settleIntent } from "../../../src/core/coverage/settle.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { Intent } from "../../../src/core/ports/coverage.ts";
import type { ObjectStore, Target, TargetState } from "../../../src/core/ports/object-store.ts";

let files: Map<string, TargetState>;
let calls: string[];
/** Moves of another process, each made right after the call that it is named for. */
let moves: Map<string, () => void>;

beforeEach(() => {
  files = new Map();
  calls = [];
  moves = new Map();
});

function called(what: string): void {
  calls.push(what);
  const move = moves.get(what);
  moves.delete(what);
  move?.();
}

const stateOf = (t: Target): TargetState => files.get(t.key) ?? "absent";

const objects = {
  place: "/data",
  probe: async (t: Target) => {
    const state = stateOf(t);
    called(`probe ${t.key}`);
    return state;
  },
  publish: async (t: Target) => {
    if (stateOf(t) === "absent") throw new Failure("store.absent", `${t.key} is gone`);
    files.set(t.key, "published");
    called(`publish ${t.key}`);
  },
  discard: async (t: Target) => {
    if (stateOf(t) === "staged") files.delete(t.key);
    called(`discard ${t.key}`);
  },
} as unknown as ObjectStore;

function intent(...keys: string[]): Intent {
  const targets = keys.map((key) => ({ key, staging: `${key}.staged`, bytes: 1, rows: 1 }));
  return { id: "i", targets, spans: [], authorities: [], rows: 1, bytes: 1 };
}

async function failureOf(work: Promise<unknown>): Promise<Failure> {
  const e: unknown = await work.then(
    () => null,
    (e) => e,
  );
  if (e instanceof Failure) return e;
  throw e ?? new Error("did not fail");
}

test("staged files are published, and published ones again: their folder may not be durable yet", async () => {
  files.set("a", "published").set("b", "staged");
  expect(await settleIntent(objects, intent("a", "b"))).toBe("published");
  expect(calls).toEqual(["probe a", "probe b", "publish a", "publish b"]);
});

test("an intent without files is as good as published", async () => {
  expect(await settleIntent(objects, intent())).toBe("published");
});

test("if one is gone and none published the others are discarded, and only a look after that proves it", async () => {
  files.set("a", "staged");
  expect(await settleIntent(objects, intent("a", "b"))).toBe("discarded");
  expect(calls).toEqual(["probe a", "probe b", "discard a", "discard b", "probe a", "probe b"]);
  expect(files.size).toBe(0);
});

test("one published, one gone: torn, both named, nothing touched", async () => {
  files.set("a", "published").set("b", "staged");
  const f = await failureOf(settleIntent(objects, intent("a", "b", "c")));
  expect([f.code, f.at, f.retry]).toEqual(["coverage.intent_torn", "/data", false]);
  expect(f.message).toContain("a is published, c is gone");
  expect(calls.some((c) => c.startsWith("discard") || c.startsWith("publish"))).toBe(false);
});

test("a look that fell on the moment of another's rename is repeated before it is believed", async () => {
  files.set("a", "published");
  moves.set("probe b", () => files.set("b", "published"));
  expect(await settleIntent(objects, intent("a", "b"))).toBe("published");
});

test("the former owner publishes all between our look and our discard: published", async () => {
  moves.set("probe a", () => files.set("a", "published"));
  expect(await settleIntent(objects, intent("a"))).toBe("published");
});

test("it publishes one of two meanwhile: torn", async () => {
  files.set("a", "staged");
  moves.set("probe b", () => files.set("a", "published"));
  expect((await failureOf(settleIntent(objects, intent("a", "b")))).code).toBe("coverage.intent_torn");
});

test("another discards between our look and our publish: looked at again, discarded", async () => {
  files.set("a", "staged");
  moves.set("probe a", () => files.delete("a"));
  expect(await settleIntent(objects, intent("a"))).toBe("discarded");
});

test("files that come and go for ever end in the store's failure, not in a loop", async () => {
  const restless = { ...objects, probe: async () => "staged" as const } as ObjectStore;
  expect((await failureOf(settleIntent(restless, intent("a")))).code).toBe("store.absent");
});

test("staged files that a discard leaves there are an outage, to be tried again", async () => {
  files.set("a", "staged");
  const lazy = { ...objects, discard: async () => {} } as ObjectStore;
  const f = await failureOf(settleIntent(lazy, intent("a", "b")));
  expect([f.code, f.retry]).toEqual(["coverage.unavailable", true]);
});

test("each point is passed between the events that it is named for", async () => {
  const hook = (point: string) => void calls.push(`> ${point}`);
  files.set("a", "staged");
  await settleIntent(objects, intent("a"), hook);
  await settleIntent(objects, intent("b"), hook);
  expect(calls.filter((c) => !c.startsWith("probe"))).toEqual([
    "> settle_before_publish",
    "publish a",
    "> settle_after_publish_one",
    "> settle_before_discard",
    "discard b",
    "> settle_after_discard",
  ]);
  expect(SETTLE_POINTS.every((p) => calls.includes(`> ${p}`))).toBe(true);
});
