/**
 * Goal: many writers of one object get through, whoever is faster. Method: queues over one store in memory whose every
 * request takes simulated time; what each asked for has to be in the state, and nobody give up.
 */
import { expect, test } from "bun:test";
import { MemoryVersionedStore, sharedObject } from "../../../src/adapters/coverage/memory.ts";
import { CasQueue } from "../../../src/core/coverage/cas-queue.ts";
import { rememberTopic } from "../../../src/core/coverage/changes.ts";
import { sleep } from "../../../src/core/time/clock.ts";
import { SimTime } from "../../sim/clock.ts";

const WRITERS = 24;
const CHANGES = 20;

test("many writers that never rest: nobody gives up, every change is there", async () => {
  const time = new SimTime();
  const shared = sharedObject();
  let writes = 0;
  const queueOf = (instance: string, ms: number): CasQueue => {
    const clock = time.clock(null);
    const versions = new MemoryVersionedStore(shared, { delay: () => sleep(clock, ms) });
    const write = versions.write.bind(versions);
    versions.write = (...args) => {
      writes++;
      return write(...args);
    };
    return new CasQueue({ instance, minIntervalMs: 0, versions, clock });
  };
  let done = 0;
  const work = Array.from({ length: WRITERS }, async (_, w) => {
    // The slowest takes four times as long as the fastest.
    const queue = queueOf(`w${w}`, 5 + w);
    await queue.reload();
    for (let i = 0; i < CHANGES; i++)
      await queue.change(rememberTopic(`t-${w}-${i}`, { topicId: "x", incarnation: 0 }));
    done++;
  });
  const failed = Promise.all(work).then(
    () => null,
    (e: unknown) => e,
  );
  let over = false;
  void failed.then(() => {
    over = true;
  });
  await time.runUntil(() => over, 3_600_000);
  expect(await failed).toBeNull();
  expect(done).toBe(WRITERS);
  const reader = queueOf("reader", 1);
  const read = reader.reload();
  await time.runUntil(() => false, time.nowMs + 10);
  await read;
  expect(reader.state.topics.size).toBe(WRITERS * CHANGES);
  expect(writes).toBeLessThan(4 * WRITERS * CHANGES);
});
