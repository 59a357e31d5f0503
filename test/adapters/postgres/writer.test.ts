/**
 * Goal: a set takes no batch once it holds what it may, whatever the records are, and gives its memory back. Method: batches of
 * small and of large records until one is refused; nothing is sent, so no server is needed.
 */
import { expect, test } from "bun:test";
import { PostgresWriter } from "../../../src/adapters/postgres/writer.ts";
import { batchOf, bytes, row } from "../../core/formats/parquet/rows.ts";

const COMMIT = 256 * 1024;

function writer(upsert: boolean): PostgresWriter {
  const never = () => {
    throw new Error("nothing is sent here");
  };
  const settings = { hosts: [], user: "u" } as never;
  return new PostgresWriter(
    {
      settings,
      table: { schema: "public", table: "t" },
      pipeline: "p",
      sink: "s",
      stateSchema: "twg",
      rejects: null,
      maxRejects: 10,
      leavesHoles: false,
      rowKey: null,
      lockTimeoutMs: 1,
      intervalMs: 1,
      prefix: "_twg_",
      commitBytes: COMMIT,
      upsert,
    },
    {
      net: { dial: never },
      clock: { now: () => 0, monotonic: () => 0, after: never },
      crypto: {},
      chance: {},
      writer: "w",
    } as never,
  );
}

test.each([
  ["small records", 0, 200, false],
  ["large records", 20_000, 10, false],
  ["records that all go to the rejects", 2_000, 50, true],
])("%s", async (_, size, count, upsert) => {
  const w = writer(upsert);
  w.open("one");
  const rows = Array.from({ length: count }, (_, i) => row(i, { value: bytes("v".repeat(size)) }));
  const batch = batchOf(rows);
  let most = 0;
  let before = 0;
  for (let n = 0; w.write(batch) > 0; n++) {
    most = Math.max(most, w.largest - before);
    before = w.largest;
    if (n > 10_000) throw new Error("it takes everything");
  }
  expect(w.largest).toBeGreaterThanOrEqual(COMMIT);
  // One batch above, at most; memory is a block or two more than what is in it.
  expect(w.largest).toBeLessThan(COMMIT + most + 1);
  expect(w.held).toBeLessThan(w.largest + 2 * 256 * 1024 + size);
  await w.abort();
  expect(w.largest).toBe(0);
  expect(w.held).toBe(256 * 1024);
});
