/**
 * Goal: segments that several ask for at a time are read once, and one that could not be read is asked for again. Method: a
 * store in memory that counts.
 */
import { expect, test } from "bun:test";
import { KeptSegments } from "../../../src/core/coverage/kept-segments.ts";
import { EMPTY_STATE, type IndexEntry } from "../../../src/core/coverage/state.ts";
import type { VersionedStore } from "../../../src/core/ports/versioned-store.ts";

const ENTRY: IndexEntry = { id: "s", targets: [], spans: [], rows: 0, bytes: 0 };

test("a segment is read once for all that ask for it at a time, and again after a failure", async () => {
  const stored = new Map<string, Uint8Array>();
  const asked: string[] = [];
  let isAway = true;
  const store = {
    place: "here",
    putSegment: async (name: string, bytes: Uint8Array) => void stored.set(name, bytes),
    getSegment: async (name: string) => {
      asked.push(name);
      if (isAway) throw new Error("away");
      return stored.get(name) ?? null;
    },
  } as unknown as VersionedStore;
  const segments = new KeptSegments(store, "i");
  const state = { ...EMPTY_STATE, segments: await segments.write([ENTRY]), index: [ENTRY] };
  const all = () => Promise.all([segments.all(state), segments.all(state), segments.all(state)]);
  await expect(all()).rejects.toThrow("away");
  expect(asked).toHaveLength(1);
  isAway = false;
  for (const entries of await all()) expect(entries).toEqual([ENTRY, ENTRY]);
  expect(asked).toHaveLength(2);
});
