/**
 * Goal: every await of the client may be aborted at any moment. A caller that gives up hears so at once, the client
 * serves the next caller, and after the end no socket, no timer and no promise is left. Method: the same run, with the
 * abort after 0, 1, 2, ... simulated events, so that each pending operation (dial, versions, login, metadata,
 * coordinator, join, sync, heartbeat, offsets, commits, fetches, half-received answers, pauses) is once the one hit.
 */
import { describe, expect, test } from "bun:test";
import { KafkaClient } from "../../../src/adapters/kafka/client.ts";
import { systemSaslCrypto } from "../../../src/adapters/system/sasl-crypto.ts";
import { asFailure } from "../../../src/core/failure/failure.ts";
import type { TwgEvent } from "../../../src/core/observe/events.ts";
import type { Clock } from "../../../src/core/time/clock.ts";
import { FakeCluster } from "../../brokers/kafka/cluster.ts";
import { memoryNet } from "../../brokers/kafka/memory-net.ts";
import { SeededChance } from "../../sim/chance.ts";
import { SimTime, settleJobs } from "../../sim/clock.ts";
import { SourceBench } from "./source-bench.ts";

const SASL = { mechanisms: ["SCRAM-SHA-256" as const], users: { u: "p" }, lifetimeMs: 3_000 };
const LOGIN = { mechanism: "SCRAM-SHA-256" as const, username: "u", password: "p" };
const FOR_EVER = Number.POSITIVE_INFINITY;

/** Counts the timers that are neither fired nor cancelled. */
class TimerCount {
  live = 0;

  readonly watch = (clock: Clock): Clock => ({
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (ms, fn) => {
      let open = true;
      const close = () => {
        if (open) this.live--;
        open = false;
      };
      this.live++;
      const timer = clock.after(ms, () => {
        close();
        fn();
      });
      return {
        cancel: () => {
          close();
          timer.cancel();
        },
      };
    },
  });
}

interface World {
  readonly time: SimTime;
  readonly cluster: FakeCluster;
  readonly client: KafkaClient;
  readonly timers: TimerCount;
}

function world(): World {
  const time = new SimTime();
  const clock = time.clock(null);
  const chance = new SeededChance(3);
  const cluster = new FakeCluster({ clock, brokers: 2, sasl: SASL });
  cluster.createTopic("orders", { partitions: 2 });
  const timers = new TimerCount();
  const client = new KafkaClient(
    {
      bootstrap: cluster.brokers.map(({ host, port }) => ({ host, port })),
      clientId: "c",
      version: "0",
      tls: null,
      sasl: LOGIN,
      dialTimeoutMs: 5_000,
      requestTimeoutMs: 5_000,
      maxResponseBytes: 1 << 20,
    },
    {
      net: memoryNet(cluster, { clock, chance, piece: [1, 60] }),
      clock: timers.watch(clock),
      chance,
      crypto: systemSaslCrypto,
    },
  );
  return { time, cluster, client, timers };
}

type Operation = (client: KafkaClient, signal: AbortSignal) => Promise<unknown>;

const refresh: Operation = (c, signal) => c.refresh(["orders"], signal);
/** Metadata first, then a connection of its own, then a request that the broker holds back. */
const longPoll: Operation = async (c, signal) => {
  await c.refresh(["orders"], signal);
  const link = await c.link(1, "fetch", signal);
  const body = { maxWaitMs: 400, minBytes: 1, maxBytes: 1000, topics: [] };
  return await link.request("Fetch", 12, body, { signal });
};
const OPERATIONS: [string, Operation][] = [
  ["a metadata refresh", refresh],
  ["finding a coordinator", (c, signal) => c.coordinator("g", signal)],
  ["a request on a connection of its own", longPoll],
];

async function outcome(p: Promise<unknown>): Promise<{ text: string }> {
  const result = { text: "waiting" };
  p.then(
    () => {
      result.text = "done";
    },
    (e) => {
      result.text = asFailure(e).code;
    },
  );
  await settleJobs();
  return result;
}

describe("a caller that gives up", () => {
  for (const [name, operation] of OPERATIONS) {
    test(`${name}: after each event`, async () => {
      let cancelled = 0;
      for (let events = 0; ; events++) {
        const w = world();
        const abort = new AbortController();
        const first = await outcome(operation(w.client, abort.signal));
        for (let i = 0; i < events; i++) await w.time.step(FOR_EVER);
        await settleJobs();
        const finished = first.text !== "waiting";
        abort.abort();
        // At once: no time passes.
        await settleJobs();
        expect([events, first.text]).toEqual([events, finished ? "done" : "internal.cancelled"]);
        if (!finished) cancelled++;
        // Another caller is served, by what was under way or anew.
        const second = await outcome(operation(w.client, new AbortController().signal));
        await w.time.runUntil(() => second.text !== "waiting", w.time.nowMs + 20_000);
        expect([events, second.text]).toEqual([events, "done"]);
        w.client.close();
        await w.time.runUntil(() => false, w.time.nowMs + 100);
        expect({
          events,
          timers: w.timers.live,
          sockets: w.cluster.brokers.map((b) => b.connections.size),
          complaints: w.cluster.complaints,
        }).toEqual({ events, timers: 0, sockets: [0, 0], complaints: [] });
        if (finished) break;
      }
      // The abort did hit something each time: dialling, the login's steps, the requests themselves.
      expect(cancelled).toBeGreaterThan(20);
    }, 120_000);

    test(`${name}: the client closed after each event`, async () => {
      for (let events = 0; ; events++) {
        const w = world();
        const first = await outcome(operation(w.client, new AbortController().signal));
        for (let i = 0; i < events; i++) await w.time.step(FOR_EVER);
        await settleJobs();
        const finished = first.text === "done";
        w.client.close();
        await w.time.runUntil(() => false, w.time.nowMs + 100);
        expect({
          events,
          waiting: first.text === "waiting",
          timers: w.timers.live,
          sockets: w.cluster.brokers.map((b) => b.connections.size),
        }).toEqual({ events, waiting: false, timers: 0, sockets: [0, 0] });
        if (finished) break;
      }
    }, 120_000);
  }

  test("already aborted: nothing is begun", async () => {
    const w = world();
    for (const [, operation] of OPERATIONS) {
      const result = await outcome(operation(w.client, AbortSignal.abort()));
      expect(result.text).toBe("internal.cancelled");
    }
    w.client.close();
  });
});

const EVENTS = 150;

describe("a source that is closed", () => {
  for (const mode of ["classic", "consumer"] as const) {
    const begin = (timers: TimerCount, events: TwgEvent[] = []): SourceBench => {
      const b = new SourceBench({
        cluster: { brokers: 2, sasl: SASL },
        lanes: 2,
        net: { piece: [100, 2000] },
        sourceClock: timers.watch,
        observer: { emit: (e) => events.push(e) },
        source: { group: "g", group_protocol: mode, session_timeout_ms: "6s", sasl: LOGIN },
      });
      b.cluster.createTopic("orders", { partitions: 3 });
      for (let p = 0; p < 3; p++) b.fill("orders", p, 4, 20);
      return b.start();
    };

    test(`${mode}: after each of the first ${EVENTS} events, in mid-commit`, async () => {
      for (let events = 0; events < EVENTS; events++) {
        const timers = new TimerCount();
        const b = begin(timers);
        for (let i = 0; i < events; i++) await b.time.step(FOR_EVER);
        const acknowledged = outcome(b.source.acknowledge([{ stream: 0, next: 1n }]).catch(() => {}));
        await b.close();
        await b.pass(100);
        expect({
          events,
          outcome: b.outcome,
          commit: (await acknowledged).text,
          out: b.outstanding.size,
          broken: b.broken,
          timers: timers.live,
          sockets: b.cluster.brokers.map((broker) => broker.connections.size),
        }).toEqual({
          events,
          outcome: "ended",
          commit: "done",
          out: 0,
          broken: [],
          timers: 0,
          sockets: [0, 0],
        });
      }
    }, 120_000);

    // What the events above reach, and that each request and group event is told with all there is to know.
    test(`${mode}: the events above reach joins and fetches, and observers are told of each`, async () => {
      const told: TwgEvent[] = [];
      const b = begin(new TimerCount(), told);
      for (let i = 0; i < EVENTS; i++) await b.time.step(FOR_EVER);
      expect(b.bundles).toBeGreaterThan(0);
      await b.close();
      await b.pass(100);
      const requests = told.filter((e) => e.e === "request.done");
      const apis = new Set(requests.map((e) => e.api));
      const joins =
        mode === "classic" ? ["JoinGroup", "SyncGroup", "LeaveGroup"] : ["ConsumerGroupHeartbeat"];
      for (const api of [
        "ApiVersions",
        "SaslHandshake",
        "SaslAuthenticate",
        "Metadata",
        "FindCoordinator",
        "OffsetFetch",
        "ListOffsets",
        "Fetch",
        ...joins,
      ])
        expect([...apis]).toContain(api);
      // Every request that a broker saw was told once, with its node once that is known.
      expect(requests.length).toBe(b.cluster.trace.length);
      for (const e of requests) {
        expect(e.sent).toBeGreaterThan(8);
        expect(e.received > 0 || e.error !== null).toBe(true);
        expect(e.ms).toBeGreaterThanOrEqual(0);
      }
      expect(new Set(requests.map((e) => e.node))).toEqual(new Set([null, 1, 2]));
      expect(told.filter((e) => e.e === "group.told").length).toBeGreaterThan(0);
      const opened = told.filter((e) => e.e === "connection.opened").length;
      expect(told.filter((e) => e.e === "connection.closed").length).toBe(opened);
    });
  }
});
