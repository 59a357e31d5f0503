/**
 * What the coverage of a sink must do over any versioned store: section 5 of the design, seen through the port.
 * Several keepers over one store are several processes; simulated time passes only while nothing else happens.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { CoverageKeeper, type KeeperOptions } from "../../src/core/coverage/keeper.ts";
import { encodeState } from "../../src/core/coverage/state-json.ts";
import { recoveryInstance } from "../../src/core/coverage/windows.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import type { Authority, Claim, Intent } from "../../src/core/ports/coverage.ts";
import type { HostId, Life } from "../../src/core/ports/host-identity.ts";
import type { ObjectStore, Target } from "../../src/core/ports/object-store.ts";
import type { VersionedStore } from "../../src/core/ports/versioned-store.ts";
import { sleep } from "../../src/core/time/clock.ts";
import { SimTime } from "../sim/clock.ts";
import { cursorContract } from "./cursor-contract.ts";
import { drive, Traffic } from "./drive.ts";
import { FaultyStore } from "./faulty-store.ts";
import { keeperCursors, keeperOrder } from "./keeper-order.ts";
import { orderContract } from "./order-contract.ts";
import { type WindowBench, windowContract } from "./window-contract.ts";

export interface CoverageBench {
  /** Another handle, as another process has it. */
  versions(): VersionedStore;
  /** A store of two-phase objects that all processes share. */
  objects(): ObjectStore;
  close(): Promise<void>;
}

const LEASE_MS = 15_000;
const S = "kafka/c/orders/0/0";
const S2 = "kafka/c/orders/0/1";

/** One process: a keeper with its own handle of the store. */
interface Node {
  readonly name: string;
  readonly store: FaultyStore;
  readonly keeper: CoverageKeeper;
  readonly waits: string[];
}

const range = (from: number, next: number) => ({ from: BigInt(from), next: BigInt(next) });
const span = (stream: string, from: number, next: number) => ({ stream, ...range(from, next) });

/** Windows, seen through keepers over the same store. */
function keeperWindows(make: CoverageMaker): () => Promise<WindowBench> {
  return async () => {
    const time = new SimTime();
    const traffic = new Traffic();
    const bench = await make(time, traffic);
    const objects = bench.objects();
    const lives = new Map<string, Life>();
    let sets = 0;
    return {
      life: (instance, life) => void lives.set(instance, life),
      run: (work) => drive(time, work, traffic),
      pass: () => drive(time, sleep(time.clock(null), LEASE_MS + 1), traffic),
      close: () => bench.close(),
      process: (instance) => {
        const self: HostId = { hostname: "h", pid: 7, bootId: "b", pidNamespace: "n", startTime: instance };
        const coverage = new CoverageKeeper(
          { instance, leaseMs: LEASE_MS, minIntervalMs: 0 },
          {
            versions: bench.versions(),
            objects,
            clock: time.clock(null),
            host: { self, isAlive: (other) => lives.get(other.startTime) ?? "unknown" },
          },
        );
        return {
          coverage,
          land: async (span, authorities) => {
            const id = `${instance}.${sets++}`;
            const staged = await objects.stage(`${id}.parquet`);
            await staged.append(new TextEncoder().encode(id));
            const target = await staged.seal(1);
            const intent = { id, targets: [target], spans: [span], authorities, rows: 1, bytes: 1 };
            const [answer] = await coverage.intend([intent]);
            if (answer?.ok !== true) return answer?.reason === "overlap" ? "overlap" : "fenced";
            await objects.publish(target);
            expect(await coverage.cover([id])).toEqual([{ ok: true }]);
            return "landed";
          },
        };
      },
    };
  };
}

export type CoverageMaker = (time: SimTime, traffic: Traffic) => Promise<CoverageBench>;

export function coverageContract(name: string, make: CoverageMaker): void {
  windowContract(name, S, keeperWindows(make));
  orderContract(name, keeperOrder(make));
  cursorContract(name, keeperCursors(make));
  describe(`coverage over ${name}`, () => {
    let bench: CoverageBench;
    let time: SimTime;
    let traffic: Traffic;
    let objects: ObjectStore;
    /** What a machine says of each instance; by default nothing is known. */
    let lives: Map<string, Life>;
    let serial: number;

    beforeEach(async () => {
      time = new SimTime();
      traffic = new Traffic();
      bench = await make(time, traffic);
      objects = bench.objects();
      lives = new Map();
      serial = 0;
    });
    afterEach(() => bench.close());

    const run = <T>(work: Promise<T>): Promise<T> => drive(time, work, traffic);
    const failure = async (work: Promise<unknown>): Promise<Failure> => {
      const e: unknown = await run(work).then(
        () => new Error("did not fail"),
        (e) => e,
      );
      if (!(e instanceof Failure)) throw e;
      return e;
    };

    function node(instance: string, options: Partial<KeeperOptions> = {}): Node {
      const self: HostId = {
        hostname: `host-${instance}`,
        pid: 7,
        bootId: "b",
        pidNamespace: "n",
        startTime: instance,
      };
      const store = new FaultyStore(bench.versions());
      const waits: string[] = [];
      const keeper = new CoverageKeeper(
        { instance, leaseMs: LEASE_MS, minIntervalMs: 0, ...options },
        {
          versions: store,
          objects,
          clock: time.clock(null),
          host: { self, isAlive: (other) => lives.get(other.startTime) ?? "unknown" },
          waiting: (owner, ms) => waits.push(`${owner} for ${ms}`),
        },
      );
      return { name: instance, store, keeper, waits };
    }

    async function opened(instance: string, options: Partial<KeeperOptions> = {}): Promise<Node> {
      const n = node(instance, options);
      await run(n.keeper.open());
      return n;
    }

    async function claimed(n: Node, ...streams: string[]): Promise<readonly Claim[]> {
      return run(n.keeper.claim(streams, null));
    }

    async function staged(key: string, content = "x"): Promise<Target> {
      const object = await run(objects.stage(key));
      await run(object.append(new TextEncoder().encode(content)));
      return run(object.seal(1));
    }

    async function intent(claims: readonly Claim[], ...spans: Intent["spans"]): Promise<Intent> {
      const id = `intent-${serial++}`;
      const targets = [await staged(`${id}.parquet`)];
      return { id, targets, spans, authorities: claims.map((c) => c.authority), rows: 1, bytes: 1 };
    }

    async function land(n: Node, i: Intent): Promise<void> {
      expect(await run(n.keeper.intend([i]))).toEqual([{ ok: true }]);
      for (const t of i.targets) await run(objects.publish(t));
      expect(await run(n.keeper.cover([i.id]))).toEqual([{ ok: true }]);
    }

    /** The state as a fresh process finds it. */
    async function stored() {
      const reader = bench.versions();
      const found = await reader.read();
      return JSON.parse(new TextDecoder().decode(found?.bytes)) as {
        serial: number;
        owners: { instance: string; beat: number }[];
        intents: { id: string }[];
        index: { id: string }[];
        segments: {
          name: string;
          entries: number;
          level: number;
          rows: number;
          bytes: number;
          files: number;
        }[];
      };
    }

    describe("a single owner", () => {
      test("a claim of a new stream has generation 1 and covers nothing; a second one has 2", async () => {
        const a = await opened("a");
        expect(await claimed(a, S, S2)).toEqual([
          {
            stream: S,
            authority: { kind: "generation", stream: S, generation: 1 },
            covered: [],
            lost: [],
            origin: null,
            staleCommit: null,
          },
          {
            stream: S2,
            authority: { kind: "generation", stream: S2, generation: 1 },
            covered: [],
            lost: [],
            origin: null,
            staleCommit: null,
          },
        ]);
        expect((await claimed(a, S)).map((c) => c.authority)).toEqual([
          { kind: "generation", stream: S, generation: 2 },
        ]);
      });

      test("intent, publish, cover: the span is covered after the cover and not before", async () => {
        const a = await opened("a");
        const claims = await claimed(a, S);
        const i = await intent(claims, span(S, 0, 10));
        expect(await run(a.keeper.intend([i]))).toEqual([{ ok: true }]);
        expect(await a.keeper.covered(S)).toEqual([]);
        await run(objects.publish(i.targets[0]!));
        expect(await a.keeper.covered(S)).toEqual([]);
        expect(await run(a.keeper.cover([i.id]))).toEqual([{ ok: true }]);
        expect(await a.keeper.covered(S)).toEqual([range(0, 10)]);
      });

      test("covered ranges are joined where they touch, and a hole of one stays", async () => {
        const a = await opened("a");
        const claims = await claimed(a, S);
        for (const [from, next] of [
          [5, 10],
          [0, 5],
          [11, 12],
        ] as const) {
          await land(a, await intent(claims, span(S, from, next)));
        }
        expect(await a.keeper.covered(S)).toEqual([range(0, 10), range(11, 12)]);
      });

      test("intending and covering are idempotent by id", async () => {
        const a = await opened("a");
        const i = await intent(await claimed(a, S), span(S, 0, 3));
        await run(a.keeper.intend([i]));
        expect(await run(a.keeper.intend([i]))).toEqual([{ ok: true }]);
        await run(objects.publish(i.targets[0]!));
        expect(await run(a.keeper.cover([i.id, i.id]))).toEqual([{ ok: true }, { ok: true }]);
        expect(await run(a.keeper.cover([i.id]))).toEqual([{ ok: true }]);
        expect(await run(a.keeper.intend([i]))).toEqual([{ ok: true }]);
        expect((await stored()).intents).toEqual([]);
      });

      test("an id that stands for other work is refused as a bug, open or covered: it would cover nothing", async () => {
        const a = await opened("a");
        const claims = await claimed(a, S);
        const i = await intent(claims, span(S, 0, 3));
        await run(a.keeper.intend([i]));
        const other = { ...i, spans: [span(S, 3, 9)] };
        expect((await failure(a.keeper.intend([other]))).code).toBe("internal.bug");
        await run(objects.publish(i.targets[0]!));
        await run(a.keeper.cover([i.id]));
        expect((await failure(a.keeper.intend([other]))).code).toBe("internal.bug");
        expect(await a.keeper.covered(S)).toEqual([range(0, 3)]);
      });

      test("a span that overlaps a covered or an intended one is refused, alone", async () => {
        const a = await opened("a");
        const claims = await claimed(a, S, S2);
        await land(a, await intent(claims, span(S, 0, 10)));
        const open = await intent(claims, span(S, 20, 30));
        const answers = await run(
          a.keeper.intend([
            open,
            await intent(claims, span(S, 9, 12)),
            await intent(claims, span(S, 15, 21)),
            await intent(claims, span(S, 10, 20), span(S2, 0, 5)),
          ]),
        );
        expect(answers.map((x) => (x.ok ? "ok" : x.reason))).toEqual(["ok", "overlap", "overlap", "ok"]);
        const details = answers.flatMap((x) => (x.ok ? [] : [x.detail]));
        expect(details[0]).toContain(`${S} [9, 12)`);
        expect(details[1]).toContain(open.id);
      });

      test("an intent whose authority was superseded is fenced, and one without authority too", async () => {
        const a = await opened("a");
        const old = await claimed(a, S);
        const now = await claimed(a, S);
        const answers = await run(
          a.keeper.intend([
            await intent(old, span(S, 0, 1)),
            await intent(now, span(S2, 0, 1)),
            await intent(now, span(S, 0, 1)),
          ]),
        );
        expect(answers.map((x) => (x.ok ? "ok" : x.reason))).toEqual(["fenced", "fenced", "ok"]);
      });

      test("empty and doubled spans are bugs of the caller and leave no trace", async () => {
        const a = await opened("a");
        const claims = await claimed(a, S);
        for (const spans of [[span(S, 4, 4)], [span(S, 0, 4), span(S, 3, 6)]]) {
          expect((await failure(a.keeper.intend([await intent(claims, ...spans)]))).code).toBe(
            "internal.bug",
          );
        }
        expect((await stored()).intents).toEqual([]);
      });

      test("a settled intent is gone: its span is free, and covering it answers so", async () => {
        const a = await opened("a");
        const claims = await claimed(a, S);
        const i = await intent(claims, span(S, 0, 10));
        await run(a.keeper.intend([i]));
        await run(a.keeper.settle(i.id, "abandoned"));
        expect(await run(a.keeper.cover([i.id]))).toMatchObject([{ ok: false, reason: "gone" }]);
        await land(a, await intent(claims, span(S, 0, 10)));
        expect(await a.keeper.covered(S)).toEqual([range(0, 10)]);
      });

      test("lost ranges are kept by reason, joined, never forgotten, and told at the next claim", async () => {
        const a = await opened("a");
        await run(
          a.keeper.recordLost([
            { stream: S, ...range(0, 5), reason: "retention" },
            { stream: S, ...range(5, 9), reason: "retention" },
            { stream: S, ...range(20, 21), reason: "accepted_gap" },
          ]),
        );
        await run(a.keeper.recordLost([{ stream: S, ...range(0, 5), reason: "retention" }]));
        lives.set("a", "dead");
        const b = await opened("b");
        expect((await claimed(b, S)).map((c) => c.lost)).toEqual([[range(0, 9), range(20, 21)]]);
      });

      test("the origin of a stream is the first that was recorded, and is told at the next claim", async () => {
        const a = await opened("a");
        await run(a.keeper.rememberOrigins([{ stream: S, position: 70n, staleCommit: 1000n }]));
        await run(
          a.keeper.rememberOrigins([
            { stream: S, position: 99n, staleCommit: null },
            { stream: S2, position: 0n, staleCommit: null },
          ]),
        );
        lives.set("a", "dead");
        const b = await opened("b");
        expect((await claimed(b, S, S2, "other")).map((c) => [c.origin, c.staleCommit])).toEqual([
          [70n, 1000n],
          [0n, null],
          [null, null],
        ]);
      });

      test("topics are remembered, whatever they are called", async () => {
        const a = await opened("a");
        for (const topic of ["orders", "__proto__", "constructor"]) {
          expect(await a.keeper.topic(topic)).toBeNull();
          await run(a.keeper.rememberTopic(topic, { topicId: "id-1", incarnation: 0 }));
          await run(a.keeper.rememberTopic(topic, { topicId: "id-2", incarnation: 1 }));
          // Somebody who does not know that yet: what is there holds.
          for (const late of [
            { topicId: "id-2", incarnation: 0 },
            { topicId: "id-3", incarnation: 1 },
          ])
            expect(await run(a.keeper.rememberTopic(topic, late))).toEqual({
              topicId: "id-2",
              incarnation: 1,
            });
        }
        lives.set("a", "dead");
        const b = await opened("b");
        expect(await b.keeper.topic("__proto__")).toEqual({ topicId: "id-2", incarnation: 1 });
        expect(await b.keeper.topic("orders")).toEqual({ topicId: "id-2", incarnation: 1 });
      });

      test("a lease of a window is an authority over any stream until the next lease of it", async () => {
        const a = await opened("a");
        await claimed(a, S);
        const first = await run(a.keeper.lease("w1"));
        expect(first).toEqual({ kind: "lease", window: "w1", lease: 1 });
        const under = async (authority: Authority, ...spans: Intent["spans"]): Promise<Intent> => ({
          ...(await intent([], ...spans)),
          authorities: [authority],
        });
        expect(await run(a.keeper.intend([await under(first, span(S, 0, 4), span(S2, 0, 4))]))).toEqual([
          { ok: true },
        ]);
        const second = await run(a.keeper.lease("w1"));
        expect(second).toEqual({ kind: "lease", window: "w1", lease: 2 });
        expect(await run(a.keeper.intend([await under(first, span(S, 4, 5))]))).toMatchObject([
          { ok: false, reason: "fenced" },
        ]);
      });

      test("a group epoch below the stored one is refused for all streams, a claim without a group never", async () => {
        const a = await opened("a");
        await run(a.keeper.claim([S], 5));
        const f = await failure(a.keeper.claim([S2, S], 4));
        expect([f.code, f.at]).toEqual(["coverage.epoch_behind", S]);
        const [s2] = await run(a.keeper.claim([S2], null));
        expect(s2?.authority).toMatchObject({ generation: 1 });
        const [s] = await run(a.keeper.claim([S], 5));
        expect(s?.authority).toMatchObject({ generation: 2 });
      });

      test("calls made together go in one write, and one that is refused does not take the others along", async () => {
        const a = await opened("a");
        const claims = await claimed(a, S);
        const first = await intent(claims, span(S, 0, 1));
        const before = a.store.writes;
        const blocker = a.keeper.heartbeat();
        const all = [
          a.keeper.intend([first]),
          a.keeper.claim([S2], null),
          a.keeper.intend([{ ...first, id: "bad", spans: [span(S, 9, 9)] }]).catch((e: Failure) => e.code),
          a.keeper.rememberTopic("t", { topicId: "1", incarnation: 0 }),
        ];
        const answers = await run(Promise.all([blocker, ...all]));
        expect(answers[1]).toEqual([{ ok: true }]);
        expect(answers[3]).toBe("internal.bug");
        expect(a.store.writes - before).toBe(1);
        expect(await a.keeper.topic("t")).not.toBeNull();
      });

      test("writes keep their distance, and calls meanwhile wait for the next", async () => {
        const a = await opened("a", { minIntervalMs: 1000 });
        const at: number[] = [];
        for (let i = 0; i < 3; i++) {
          await run(a.keeper.heartbeat());
          at.push(time.nowMs);
        }
        expect(at).toEqual([1000, 2000, 3000]);
      });
    });

    describe("the index", () => {
      /** Enough for several spills: an entry has some 250 bytes, and 64 KiB of them go to a segment. */
      async function fill(n: Node, claims: readonly Claim[], from: number, count: number): Promise<void> {
        const list: Intent[] = [];
        for (let i = from; i < from + count; i++) {
          const target = { key: `dir/${"k".repeat(3000)}-${i}`, staging: `s-${i}`, bytes: 10, rows: 2 };
          list.push({
            id: `e${i}`,
            targets: [target],
            spans: [span(S, i, i + 1)],
            authorities: claims.map((c) => c.authority),
            rows: 2,
            bytes: 10,
          });
        }
        await run(n.keeper.intend(list));
        // One by one, as tidying follows each cover.
        for (const i of list) expect(await run(n.keeper.cover([i.id]))).toEqual([{ ok: true }]);
      }

      test("old entries move to segments, many segments become one, nothing is lost or doubled", async () => {
        const a = await opened("a");
        const claims = await claimed(a, S);
        await fill(a, claims, 0, 170);
        const s = await stored();
        expect(s.segments.some((x) => x.level === 1)).toBe(true);
        expect(s.segments.length).toBeLessThan(16);
        const ids = s.index.map((e) => e.id);
        for (const ref of s.segments) {
          const body = JSON.parse(
            new TextDecoder().decode((await bench.versions().getSegment(ref.name))!),
          ) as {
            entries: { id: string; rows: number; bytes: number; targets: unknown[] }[];
          };
          expect([ref.entries, ref.rows, ref.bytes, ref.files]).toEqual([
            body.entries.length,
            2 * body.entries.length,
            10 * body.entries.length,
            body.entries.length,
          ]);
          ids.push(...body.entries.map((e) => e.id));
        }
        expect(ids.length).toBe(170);
        expect(new Set(ids).size).toBe(170);
        expect(await a.keeper.covered(S)).toEqual([range(0, 170)]);
        // An id that only a segment knows is still known.
        expect(await run(a.keeper.cover(["e0", "e169", "nobody"]))).toMatchObject([
          { ok: true },
          { ok: true },
          { ok: false, reason: "gone" },
        ]);
      });

      test("a fresh owner sweeps segments that the state does not name, and only those", async () => {
        const a = await opened("a");
        await fill(a, await claimed(a, S), 0, 60);
        const named = (await stored()).segments.map((x) => x.name);
        expect(named.length).toBeGreaterThan(0);
        await bench.versions().putSegment("stray.0", new Uint8Array([1]));
        lives.set("a", "dead");
        await opened("b");
        const found = await Promise.all([...named, "stray.0"].map((n) => bench.versions().getSegment(n)));
        expect(found.map((x) => x !== null)).toEqual([...named.map(() => true), false]);
      });

      test("a segment that is gone is damage and is said so: it never turns into 'not covered'", async () => {
        const a = await opened("a");
        await fill(a, await claimed(a, S), 0, 60);
        await bench.versions().sweep(new Set());
        const f = await failure(a.keeper.cover(["e0"]));
        expect(f.code).toBe("coverage.corrupt");
        expect(f.at).toContain((await stored()).segments.at(-1)?.name ?? "?");
      });
    });

    describe("writes whose outcome is not the usual one", () => {
      for (const fault of ["lost", "unknown_applied", "unknown_not_applied"] as const) {
        test(`${fault}: every step has its effect once`, async () => {
          const a = node("a");
          const ordered = () => a.store.faults.push(fault, fault);
          ordered();
          await run(a.keeper.open());
          ordered();
          const claims = await claimed(a, S);
          // Applied twice or not: the generation that is answered is the one that is stored.
          const i = await intent(claims, span(S, 0, 5));
          ordered();
          expect(await run(a.keeper.intend([i]))).toEqual([{ ok: true }]);
          await run(objects.publish(i.targets[0]!));
          ordered();
          expect(await run(a.keeper.cover([i.id]))).toEqual([{ ok: true }]);
          expect(await a.keeper.covered(S)).toEqual([range(0, 5)]);
          const s = await stored();
          expect([s.intents, s.index.map((e) => e.id), s.owners.length]).toEqual([[], [i.id], 1]);
        });
      }

      test("a write that fails fails its calls, has no effect, and the next call goes on", async () => {
        const a = await opened("a");
        a.store.faults.push(new Failure("coverage.full", "no space"));
        expect((await failure(a.keeper.heartbeat())).code).toBe("coverage.full");
        const before = a.keeper.state.serial;
        await run(a.keeper.heartbeat());
        expect(a.keeper.state.serial).toBe(before + 1);
      });

      test("calls in whose middle nobody can do anything else wait an outage out by themselves", async () => {
        const a = await opened("a");
        a.store.faults.push(
          new Failure("coverage.unavailable", "down"),
          new Failure("coverage.full", "no space"),
        );
        const before = time.nowMs;
        await run(a.keeper.rememberTopic("t", { topicId: "1", incarnation: 0 }));
        expect(await a.keeper.topic("t")).not.toBeNull();
        expect(time.nowMs).toBeGreaterThan(before);
      });

      test("a store that refuses for ever ends in a failure, not in a loop", async () => {
        const a = await opened("a");
        a.store.faults.push(...Array.from({ length: 200 }, () => "lost" as const));
        expect((await failure(a.keeper.heartbeat())).code).toBe("coverage.unavailable");
      });
    });

    describe("several processes", () => {
      test("a living owner keeps the second one out, which names it and the place", async () => {
        const a = await opened("a");
        lives.set("a", "alive");
        const b = node("b");
        const f = await failure(b.keeper.open());
        expect([f.code, f.kind, f.at]).toEqual(["coverage.owned", "environment", b.store.place]);
        expect(f.message).toContain("pid 7 on host-a");
        expect((await claimed(a, S))[0]?.authority).toMatchObject({ generation: 1 });
        expect((await stored()).owners.map((o) => o.instance)).toEqual(["a"]);
      });

      test("a dead owner is replaced at once, without waiting", async () => {
        await opened("a");
        lives.set("a", "dead");
        const b = await opened("b");
        expect([time.nowMs, b.waits]).toEqual([0, []]);
        expect((await stored()).owners.map((o) => o.instance)).toEqual(["b"]);
      });

      test("an owner that left in order is not waited for", async () => {
        const a = await opened("a");
        await claimed(a, S);
        await run(a.keeper.close());
        await opened("b");
        expect(time.nowMs).toBe(0);
      });

      test("an owner of whom nothing is known is waited for by its beat for the whole lease, then replaced", async () => {
        await opened("a");
        const b = await opened("b");
        expect(time.nowMs).toBeGreaterThanOrEqual(LEASE_MS);
        expect(time.nowMs).toBeLessThan(LEASE_MS + 1001);
        expect(b.waits).toHaveLength(1);
        expect(b.waits[0]).toContain("pid 7 on host-a");
        expect((await stored()).owners.map((o) => o.instance)).toEqual(["b"]);
      });

      test("an owner of whom nothing is known but that beats keeps the second one out", async () => {
        const a = await opened("a");
        const beats = () => time.clock(null).after(3000, () => void a.keeper.heartbeat().then(beats));
        beats();
        const b = node("b");
        expect((await failure(b.keeper.open())).code).toBe("coverage.owned");
        expect(time.nowMs).toBeLessThan(LEASE_MS);
      });

      test("a beat between the judgement and the take-over voids the judgement", async () => {
        const a = await opened("a");
        lives.set("a", "dead");
        const b = node("b");
        // Judged dead, yet it writes once more before b's first write arrives; the second look finds it alive.
        b.store.faults.push(async () => {
          await a.keeper.heartbeat();
          lives.set("a", "alive");
        });
        expect((await failure(b.keeper.open())).code).toBe("coverage.owned");
        expect((await stored()).owners.map((o) => o.instance)).toEqual(["a"]);
      });

      test("of two that find the same dead owner one enters and the other is told who", async () => {
        await opened("a");
        lives.set("a", "dead");
        lives.set("b", "alive");
        lives.set("c", "alive");
        const b = node("b");
        const c = node("c");
        const outcomes = await run(Promise.allSettled([b.keeper.open(), c.keeper.open()]));
        expect(outcomes.map((o) => o.status).sort()).toEqual(["fulfilled", "rejected"]);
        const refused = outcomes.find((o) => o.status === "rejected");
        expect(refused?.reason).toMatchObject({ code: "coverage.owned" });
        expect((await stored()).owners).toHaveLength(1);
      });

      test("who was replaced is fenced at its next write, whatever that is, and writes nothing any more", async () => {
        const steps: ((n: Node, i: Intent) => Promise<unknown>)[] = [
          (n) => n.keeper.heartbeat(),
          (n) => n.keeper.claim([S], null),
          (n, i) => n.keeper.intend([i]),
          (n) => n.keeper.recordLost([{ stream: S, ...range(0, 1), reason: "retention" }]),
          (n) => n.keeper.lease("w"),
        ];
        for (const [k, step] of steps.entries()) {
          const a = await opened(`a${k}`);
          const i = await intent(await claimed(a, S), span(S, 0, 10));
          lives.set(`a${k}`, "dead");
          const b = await opened(`b${k}`);
          const before = await stored();
          const f = await failure(step(a, i));
          expect([f.code, f.kind]).toEqual(["coverage.fenced", "environment"]);
          expect(f.message).toContain(`host-b${k}`);
          expect(a.keeper.fenced?.code).toBe("coverage.fenced");
          // It stays fenced without asking again, and its leave does not touch the successor.
          const writes = a.store.writes;
          expect((await failure(a.keeper.heartbeat())).code).toBe("coverage.fenced");
          await run(a.keeper.close());
          expect(a.store.writes).toBe(writes);
          expect(await stored()).toEqual(before);
          await run(b.keeper.close());
        }
      });

      test("what the former owner published is covered at the claim, what it only staged is published first", async () => {
        const a = await opened("a");
        const claims = await claimed(a, S, S2);
        const published = await intent(claims, span(S, 0, 10));
        const only = await intent(claims, span(S, 10, 20), span(S2, 0, 3));
        await run(a.keeper.intend([published, only]));
        await run(objects.publish(published.targets[0]!));
        lives.set("a", "dead");
        const b = await opened("b");
        const found = await claimed(b, S);
        expect(found.map((c) => [c.authority, c.covered])).toEqual([
          [{ kind: "generation", stream: S, generation: 2 }, [range(0, 20)]],
        ]);
        expect(await run(objects.probe(only.targets[0]!))).toBe("published");
        expect((await claimed(b, S2)).map((c) => c.covered)).toEqual([[range(0, 3)]]);
        expect((await stored()).intents).toEqual([]);
      });

      test("an intent whose objects are gone is dropped at the claim, and its span is free again", async () => {
        const a = await opened("a");
        const i = await intent(await claimed(a, S), span(S, 0, 10));
        await run(a.keeper.intend([i]));
        await run(objects.discard(i.targets[0]!));
        lives.set("a", "dead");
        const b = await opened("b");
        const claims = await claimed(b, S);
        expect(claims[0]?.covered).toEqual([]);
        await land(b, await intent(claims, span(S, 0, 10)));
      });

      test("an intent of a stream that nobody claims is settled by whoever is alone", async () => {
        const a = await opened("a");
        const i = await intent(await claimed(a, S2), span(S2, 0, 10));
        await run(a.keeper.intend([i]));
        lives.set("a", "dead");
        const b = await opened("b");
        await claimed(b, S);
        expect([...b.keeper.stagedNames()]).toEqual([]);
        expect(await run(objects.sweep(b.keeper.stagedNames()))).toEqual([]);
        expect(await run(objects.probe(i.targets[0]!))).toBe("published");
        expect((await claimed(b, S2)).map((c) => c.covered)).toEqual([[range(0, 10)]]);
      });

      test("what a holder that died had intended comes to its end before its window is another's", async () => {
        const a = await opened(recoveryInstance("a"));
        const windows = await run(a.keeper.leaseWindows([span(S, 0, 40)]));
        const i = { ...(await intent([], span(S, 10, 20))), authorities: windows.map((w) => w.authority) };
        expect(await run(a.keeper.intend([i]))).toEqual([{ ok: true }]);
        // One that lives ends what it intended itself: whoever claims the stream leaves it alone.
        lives.set("recovery-a", "alive");
        const live = await opened("live");
        expect((await claimed(live, S)).map((c) => c.covered)).toEqual([[]]);
        expect([...live.keeper.stagedNames()]).toEqual(i.targets.map((t) => t.staging));
        lives.set("recovery-a", "dead");
        await run(live.keeper.heartbeat(new Map([[S, 40n]])));
        const b = await opened(recoveryInstance("b"));
        const [taken] = await run(b.keeper.leaseWindows([span(S, 0, 40)]));
        expect(taken?.range).toEqual(range(0, 40));
        expect(taken?.covered).toEqual([range(10, 20)]);
        expect(await run(objects.probe(i.targets[0]!))).toBe("published");
        expect(await run(live.keeper.covered(S))).toEqual([]);
        await run(live.keeper.heartbeat());
        expect(await run(live.keeper.covered(S))).toEqual([range(10, 20)]);
      });

      test("a torn intent stops the claim and names what is there and what is not", async () => {
        const a = await opened("a");
        const claims = await claimed(a, S);
        const i = {
          ...(await intent(claims, span(S, 0, 10))),
          targets: [await staged("one"), await staged("two")],
        };
        await run(a.keeper.intend([i]));
        await run(objects.publish(i.targets[0]!));
        await run(objects.discard(i.targets[1]!));
        lives.set("a", "dead");
        const b = await opened("b");
        const f = await failure(b.keeper.claim([S], null));
        expect(f.code).toBe("coverage.intent_torn");
        expect(f.message).toContain("one is published, two is gone");
      });

      test("a writer that slept while others went far ahead has no effect and finds itself fenced", async () => {
        const a = await opened("a");
        const claims = await claimed(a, S);
        const i = await intent(claims, span(S, 0, 10));
        // Between a's read and its write 30 versions pass: the one that it would follow is removed by then.
        let b: Node | null = null;
        a.store.faults.push(async () => {
          lives.set("a", "dead");
          b = node("b");
          await b.keeper.open();
          for (let k = 0; k < 30; k++) await b.keeper.heartbeat();
        });
        expect((await failure(a.keeper.intend([i]))).code).toBe("coverage.fenced");
        expect((await stored()).intents).toEqual([]);
        await run(b!.keeper.heartbeat());
        expect((await stored()).owners.map((o) => o.instance)).toEqual(["b"]);
      });

      test("covering what a successor covered meanwhile is refused as fenced, and the span is there once", async () => {
        const a = await opened("a");
        const i = await intent(await claimed(a, S), span(S, 0, 10));
        await run(a.keeper.intend([i]));
        lives.set("a", "dead");
        const b = await opened("b");
        await claimed(b, S);
        expect((await failure(a.keeper.cover([i.id]))).code).toBe("coverage.fenced");
        expect((await stored()).index.map((e) => e.id)).toEqual([i.id]);
      });
    });

    describe("what is stored", () => {
      test("damage stops the opening, with the object and the place in it", async () => {
        await bench.versions().prepare();
        await bench
          .versions()
          .write(null, new TextEncoder().encode('{"format":"twg.coverage","version":1'), "t");
        const f = await failure(node("a").keeper.open());
        expect([f.code, f.at?.includes("1"), f.at?.endsWith(" $")]).toEqual(["coverage.corrupt", true, true]);
      });

      test("a state stored under another version than it says is not believed", async () => {
        const empty = {
          serial: 9,
          owners: [],
          streams: new Map(),
          leases: new Map(),
          topics: new Map(),
          intents: new Map(),
        };
        await bench.versions().prepare();
        await bench
          .versions()
          .write(null, encodeState({ ...empty, index: [], segments: [], writers: [] }), "t");
        const f = await failure(node("a").keeper.open());
        expect([f.code, f.at?.endsWith("$.serial")]).toEqual(["coverage.corrupt", true]);
      });
    });
  });
}
