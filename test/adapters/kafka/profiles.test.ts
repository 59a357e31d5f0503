/**
 * Goal: whatever brokers the client meets and whatever they do, the outcome is every record once or one coded failure;
 * never a gap, an overlap, a leaked buffer or a hang. Method: each broker profile of the test cluster, alone and in
 * both kinds of groups, under each script of misbehaviour at each request; time is simulated.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { ERROR } from "../../../src/adapters/kafka/wire/errors.ts";
import type { ApiName } from "../../../src/adapters/kafka/wire/protocol.ts";
import { CODES } from "../../../src/core/failure/codes.ts";
import { legacyMessage } from "../../brokers/kafka/legacy-builder.ts";
import { PROFILES, type ProfileName } from "../../brokers/kafka/profiles.ts";
import type { Action } from "../../brokers/kafka/script.ts";
import { SourceBench } from "./source-bench.ts";

const MODES = ["alone", "classic", "consumer"] as const;
type Mode = (typeof MODES)[number];

let open: SourceBench[] = [];
afterEach(async () => {
  for (const b of open.splice(0)) await finish(b);
});

async function finish(b: SourceBench): Promise<void> {
  open = open.filter((o) => o !== b);
  await b.close();
  // What the client said last is still on its way.
  await b.pass(100);
  expect(b.broken).toEqual([]);
  expect(b.outstanding.size).toBe(0);
  expect(b.cluster.brokers.map((broker) => broker.connections.size)).toEqual([0, 0, 0]);
  expect(b.cluster.complaints.filter((c) => !/reset|v4 is outside/.test(c))).toEqual([]);
}

function bench(profile: ProfileName, mode: Mode, more: Record<string, unknown> = {}): SourceBench {
  const login = { mechanisms: ["PLAIN" as const], users: { u: "p" } };
  const limited = PROFILES[profile].loginMs > 0;
  const b = new SourceBench({
    cluster: { brokers: 3, profile, ...(limited ? { sasl: login } : {}) },
    source: {
      metadata_refresh_ms: 1000,
      request_timeout_ms: 2000,
      session_timeout_ms: "6s",
      rebalance_timeout_ms: "10s",
      ...(limited ? { sasl: { mechanism: "PLAIN", username: "u", password: "p" } } : {}),
      ...(mode === "alone" ? {} : { group: "g", group_protocol: mode }),
      ...more,
    },
  });
  open.push(b);
  b.cluster.createTopic("orders", { partitions: 3 });
  for (let p = 0; p < 3; p++) fill(b, profile, p);
  return b;
}

/** Records in the format that such brokers hold. */
function fill(b: SourceBench, profile: ProfileName, partition: number): void {
  if (profile !== "old-ibp") return b.fill("orders", partition, 3);
  const log = b.cluster.log("orders", partition);
  for (let i = 0; i < 3; i++) {
    const offset = log.end;
    const message = { offset, timestamp: 1n, key: null, value: Buffer.from("o".repeat(60)) };
    log.appendRaw(legacyMessage(1, message), offset, offset + 1n);
  }
  b.cluster.changed();
}

/** All partitions are read to their ends, by whichever stream is the last of each. */
const done = (b: SourceBench) =>
  [0, 1, 2].every((p) => {
    const stream = b.streams.findLast((s) => s.found.partition === p);
    return stream !== undefined && stream.position >= b.cluster.log("orders", p).end;
  });

for (const profile of Object.keys(PROFILES) as ProfileName[]) {
  describe(profile, () => {
    for (const mode of MODES) {
      test(`${mode}: read, committed, gone on with`, async () => {
        const b = bench(profile, mode, { group: "g" });
        b.start();
        await b.until(() => done(b));
        let told = false;
        const marks = b.streams.map((s, stream) => ({ stream, next: s.position }));
        void b.source.acknowledge(marks).then(() => {
          told = true;
        });
        await b.until(() => told);
        // Long enough for logins of four seconds to end several times.
        for (let i = 0; i < 10; i++) {
          await b.pass(1_000);
          for (let p = 0; p < 3; p++) fill(b, profile, p);
        }
        await b.until(() => done(b));
        expect(b.outcome).toBe("running");
        expect(b.troubles).toEqual([]);
        for (const s of b.streams)
          expect(b.cluster.committed("g", "orders", s.found.partition)?.offset).toBe(
            marks[s.start.stream]!.next,
          );
      });
    }

    for (const mode of ["classic", "consumer"] as const) {
      test(`${mode}: a second member, and the first one leaves`, async () => {
        const a = bench(profile, mode);
        a.start();
        await a.until(() => done(a));
        const b = new SourceBench({
          seed: 2,
          beside: a,
          source: {
            metadata_refresh_ms: 1000,
            session_timeout_ms: "6s",
            rebalance_timeout_ms: "10s",
            group: "g",
            group_protocol: mode,
            ...(PROFILES[profile].loginMs > 0
              ? { sasl: { mechanism: "PLAIN", username: "u", password: "p" } }
              : {}),
          },
        });
        b.start();
        await a.until(() => b.streams.length > 0 && a.released.length === b.streams.length);
        for (let p = 0; p < 3; p++) fill(a, profile, p);

        open = [];
        const closing = a.source.close();
        await b.until(() => new Set(b.streams.map((s) => s.found.partition)).size === 3 && b.caughtUp());
        await closing;
        open = [b];
        expect([...a.broken, ...b.broken]).toEqual([]);
        expect(b.outcome).toBe("running");
      });
    }
  });
}

const prefix = (text: string) => (bytes: Uint8Array) =>
  Uint8Array.from([...Buffer.from(text, "latin1"), ...bytes.subarray(0, 4)]);
const SCRIPTS: [string, Action][] = [
  ["throttling", { do: "edit", change: (r) => ({ ...r, throttleTimeMs: 900 }) }],
  ["no answer, as of a half-open connection", { do: "stall" }],
  ["a drop before the request counts", { do: "drop", when: "before" }],
  ["a drop in place of the answer", { do: "drop", when: "after" }],
  ["HTTP", { do: "bytes", change: prefix("HTTP/1.1 400 Bad Request\r\n\r\n") }],
  ["a TLS alert", { do: "bytes", change: prefix("\x15\x03\x01\x00\x02\x02\x46") }],
  ["half of a size", { do: "truncate", bytes: 2 }],
  ["half of an answer", { do: "truncate", bytes: 11 }],
  ["another's correlation id", { do: "miscount", by: 1 }],
  ["a late answer", { do: "delay", ms: 5_000 }],
  ["an answer that nobody asked for", { do: "bytes", change: (b) => Uint8Array.from([...b, ...b]) }],
];

/** Requests that a reader of the mode sends, the start included. */
function apisOf(mode: Mode, profile: ProfileName): ApiName[] {
  const all: ApiName[] = ["ApiVersions", "Metadata", "ListOffsets", "Fetch"];
  if (mode === "alone") return all;
  const grouped: ApiName[] = [...all, "FindCoordinator", "OffsetFetch"];
  const { versions } = PROFILES[profile];
  return mode === "consumer" && "ConsumerGroupHeartbeat" in versions
    ? [...grouped, "ConsumerGroupHeartbeat"]
    : [...grouped, "JoinGroup", "SyncGroup", "Heartbeat"];
}

for (const profile of Object.keys(PROFILES) as ProfileName[]) {
  for (const mode of MODES) {
    test(`${profile}, ${mode}: every script at every request`, async () => {
      for (const api of apisOf(mode, profile)) {
        for (const [name, action] of SCRIPTS) {
          const at = `${api}: ${name}`;
          const b = bench(profile, mode);
          // Once at the start, once after it: a start may fail with a code, what runs may not.
          const early = b.cluster.script.on({ api, times: 1, action });
          b.start();
          await b
            .until(() => done(b) || b.outcome !== "running")
            .catch((e) => {
              throw new Error(`${at}: ${e.message}`);
            });
          if (b.outcome === "running") {
            const later = b.cluster.script.on({ api, times: 2, action });
            for (let i = 0; i < 3; i++) {
              for (let p = 0; p < 3; p++) fill(b, profile, p);
              await b.pass(1_500);
            }
            await b.until(() => done(b));
            expect([at, b.outcome]).toEqual([at, "running"]);
            later.remove();
          } else {
            expect([at, early.fired, b.outcome in CODES, b.outcome]).toEqual([at, 1, true, b.outcome]);
            expect(b.outcome).not.toMatch(/^internal/);
          }
          await finish(b);
        }
      }
    }, 60_000);
  }
}

describe("coordinators that move", () => {
  for (const mode of ["classic", "consumer"] as const) {
    for (const profile of ["4.x", "2.8", "redpanda"] as const) {
      test(`${profile}, ${mode}: the coordinator dies, and another says that it is not it`, async () => {
        const b = bench(profile, mode);
        b.start();
        await b.until(() => done(b));
        const api =
          b.cluster.requests("ConsumerGroupHeartbeat").length > 0 ? "ConsumerGroupHeartbeat" : "Heartbeat";
        b.cluster.script.on({ api, times: 3, action: { do: "error", code: ERROR.NOT_COORDINATOR } });
        await b.pass(10_000);
        b.cluster.kill(b.cluster.coordinatorOf("g")!.id);
        await b.pass(10_000);
        for (let p = 0; p < 3; p++) fill(b, profile, p);
        await b.until(() => done(b));
        expect(b.outcome).toBe("running");
      });
    }
  }
});

test("idle connections that were dropped silently are not trusted", async () => {
  const b = bench("event-hubs", "alone");
  b.start();
  await b.until(() => done(b));
  // Nobody has used the control connections for longer than a load balancer keeps them.
  await b.pass(300_000);
  b.cluster.cutConnections(1);
  for (let p = 0; p < 3; p++) fill(b, "event-hubs", p);
  await b.until(() => done(b));
  expect(b.outcome).toBe("running");
});
