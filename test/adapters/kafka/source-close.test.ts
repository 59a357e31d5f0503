import { describe, expect, test } from "bun:test";
import { SourceBench } from "./source-bench.ts";

/**
 * Cancel-safety. Goal: whatever the source is waiting for, `close` ends it: `run` resolves, every buffer is back, and
 * nothing happens afterwards. Method: the same run is closed after 0, 1, 2, ... simulated events, so that each await
 * (dial, ApiVersions, login, metadata, offsets, commits, begin, fetch, a half-received answer, pauses) is the one hit.
 */
describe("close", () => {
  const EVENTS = 220;

  function run(): SourceBench {
    const b = new SourceBench({
      cluster: { brokers: 2, sasl: { mechanisms: ["SCRAM-SHA-256"], users: { u: "p" } } },
      lanes: 2,
      net: { piece: [1, 300] },
      source: { group: "g", sasl: { mechanism: "SCRAM-SHA-256", username: "u", password: "p" } },
    });
    b.cluster.createTopic("orders", { partitions: 3 });
    for (let p = 0; p < 3; p++) b.fill("orders", p, 4, 20);
    return b.start();
  }

  test(`after each of the first ${EVENTS} events`, async () => {
    for (let events = 0; events < EVENTS; events++) {
      const b = run();
      for (let i = 0; i < events; i++) await b.time.step(Number.POSITIVE_INFINITY);
      const acknowledged = b.source.acknowledge([{ stream: 0, next: 1n }]).catch(() => {});
      await b.close();
      await acknowledged;
      const delivered = b.bundles;
      await b.pass(200_000);
      expect({
        events,
        outcome: b.outcome,
        out: b.outstanding.size,
        broken: b.broken,
        later: b.bundles - delivered,
      }).toEqual({
        events,
        outcome: "ended",
        out: 0,
        broken: [],
        later: 0,
      });
    }
  }, 20_000);

  test("the events above reach past the first fetches", async () => {
    const b = run();
    for (let i = 0; i < EVENTS; i++) await b.time.step(Number.POSITIVE_INFINITY);
    expect(b.bundles).toBeGreaterThan(0);
    await b.close();
  });

  test("before the run, and twice", async () => {
    const b = new SourceBench();
    await b.close();
    await b.close();
    b.start();
    await b.until(() => b.outcome === "ended");
  });

  test("in the middle of an outage", async () => {
    const b = new SourceBench();
    b.cluster.createTopic("orders");
    b.start();
    await b.until(() => b.streams.length === 1);
    b.cluster.kill(1, { elect: false });
    await b.pass(7_000);
    await b.close();
    expect(b.outcome).toBe("ended");
  });
});
