/**
 * Goal: a sink that live ingest gives up for good is recovery's at once, and what recovery fills is no gap in the eyes of live
 * ingest. Method: the control thread's part of a sink over real coverage in memory, beside a process that recovers.
 */
import { expect, test } from "bun:test";
import { MemoryVersionedStore, sharedObject } from "../../../src/adapters/coverage/memory.ts";
import { CoverageKeeper } from "../../../src/core/coverage/keeper.ts";
import { LEAVE_MS } from "../../../src/core/coverage/outage.ts";
import { recoveryInstance } from "../../../src/core/coverage/windows.ts";
import type { CommitListener, SetCommitter } from "../../../src/core/delivery/committer.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { EventOf, TwgEvent } from "../../../src/core/observe/events.ts";
import { Secondaries } from "../../../src/core/pipeline/secondaries.ts";
import type { SecondarySpec } from "../../../src/core/pipeline/secondary-parts.ts";
import type { ObjectStore } from "../../../src/core/ports/object-store.ts";
import { drive } from "../../contract/drive.ts";
import { SimTime } from "../../sim/clock.ts";

const S = "kafka/c/orders/0/0";
const PLACED = { position: 100n, skip: [], generation: 1 };
const span = (from: number, next: number) => ({ stream: S, from: BigInt(from), next: BigInt(next) });

async function world() {
  const time = new SimTime();
  const clock = time.clock(null);
  const shared = sharedObject();
  const objects = {} as unknown as ObjectStore;
  const keeper = (instance: string) => {
    const self = { hostname: "h", pid: 1, bootId: "b", pidNamespace: "n", startTime: instance };
    return new CoverageKeeper(
      { instance, leaseMs: 15_000, minIntervalMs: 0 },
      { versions: new MemoryVersionedStore(shared), objects, clock, host: { self, isAlive: () => "alive" } },
    );
  };
  const events: TwgEvent[] = [];
  let listener: CommitListener | null = null;
  const committer = { submit: () => {}, discard: () => {}, close: () => {} } as unknown as SetCommitter;
  const coverage = keeper("live");
  const hang = () => {
    coverage.close = () => new Promise(() => {});
  };
  const spec: SecondarySpec = {
    ...{ name: "copy", after: [-1], commits: false, coverage, outages: { tell: null } },
    committer: (l) => {
      listener = l;
      return committer;
    },
    prepare: async () => {},
    sweep: async () => {},
  };
  const primary = { covered: async () => [{ from: 0n, next: 100n }] };
  const observer = { emit: (e: TwgEvent) => events.push(e) };
  const live = new Secondaries([spec], { clock, observer, post: () => {}, coverage: primary });
  await drive(time, live.open());
  await drive(time, live.claim([{ stream: 0, key: S, lane: 0, ...PLACED }], null));
  await drive(time, live.heartbeat());
  const recovery = keeper(recoveryInstance("r"));
  await drive(time, recovery.open());
  const leased = async () => {
    await drive(time, recovery.heartbeat());
    const windows = await drive(time, recovery.leaseWindows([span(0, 200)]));
    return windows.map((w) => ({ range: w.range, authority: w.authority }));
  };
  const lacks = () => events.findLast((e): e is EventOf<"sink.lacks"> => e.e === "sink.lacks");
  return { time, live, recovery, leased, lacks, hang, fail: (f: Failure) => listener?.failed(f) };
}

test("the head of a sink that is given up for good is given up with it", async () => {
  const { time, leased, fail, live } = await world();
  live.landed([span(100, 200)]);
  expect((await leased()).map((w) => w.range)).toEqual([{ from: 0n, next: 100n }]);
  fail(new Failure("store.denied", "the folder is not ours any more"));
  await drive(time, live.heartbeat());
  expect((await leased()).map((w) => w.range)).toEqual([{ from: 0n, next: 200n }]);
});

test("what recovery has filled is no gap any more", async () => {
  const { time, live, recovery, leased, lacks } = await world();
  time.nowMs += 20_000;
  await drive(time, live.heartbeat());
  expect(lacks()).toMatchObject({ gaps: 1, positions: 100n });
  const [window] = await leased();
  const intent = { id: "i", targets: [], spans: [span(0, 60)], authorities: [window!.authority] };
  await drive(time, recovery.intend([{ ...intent, rows: 1, bytes: 1 }]));
  await drive(time, recovery.cover(["i"]));
  // The one learns of it with its own beat, the next tells.
  for (let beat = 0; beat < 3; beat++) await drive(time, live.heartbeat());
  expect(lacks()).toMatchObject({ gaps: 1, positions: 40n });
});

test("a store that gives no answer keeps nobody from leaving", async () => {
  const { time, live, hang } = await world();
  hang();
  const begun = time.nowMs;
  await drive(time, live.close());
  expect(time.nowMs - begun).toBe(LEAVE_MS);
});

function beginning(outcomes: readonly ("begins" | "fails")[]) {
  const time = new SimTime();
  const clock = time.clock(null);
  const host = { self: { hostname: "h", pid: 1, bootId: "b", pidNamespace: "n", startTime: "l" } };
  const coverage = new CoverageKeeper(
    { instance: "live", leaseMs: 15_000, minIntervalMs: 0 },
    {
      ...{ versions: new MemoryVersionedStore(sharedObject()), objects: {} as unknown as ObjectStore, clock },
      host: { ...host, isAlive: () => "alive" },
    },
  );
  const seen: string[] = [];
  const left = [...outcomes];
  const spec: SecondarySpec = {
    ...{ name: "typed", after: [-1], commits: false, coverage, outages: { tell: null } },
    committer: () => ({ submit: () => {}, discard: () => {}, close: () => {} }) as unknown as SetCommitter,
    prepare: async () => {},
    begin: async (streams) => {
      const outcome = left.shift();
      seen.push(`${outcome} ${streams.map((s) => `${s.key} ${s.position}`).join()}`);
      if (outcome === "fails") throw new Failure("coverage.unavailable", "no", { retry: true });
      return new Map();
    },
    sweep: async () => {},
  };
  const post = (_lane: number, _sink: number, m: { readonly t: string }) => void seen.push(m.t);
  const observer = { emit: (e: TwgEvent) => void (e.e === "sink.troubled" && seen.push(e.failure.code)) };
  const live = (of: SecondarySpec = spec) =>
    new Secondaries([of], { clock, observer, post, coverage: { covered: async () => [] } });
  const until = (last: string) => {
    const there = async () => {
      while (seen.at(-1) !== last) await new Promise<void>((resolve) => void clock.after(100, resolve));
    };
    return drive(time, there());
  };
  return { time, seen, spec, live, until };
}

test("lanes are told of no claim before its epoch is durable; where it cannot be, it is tried again", async () => {
  const { time, seen, live: started, until } = beginning(["fails", "begins"]);
  const live = started();
  await drive(time, live.open());
  await drive(time, live.claim([{ stream: 0, key: S, lane: 0, ...PLACED }], null));
  live.place(0);
  expect(seen).toEqual([`fails ${S} 100`, "coverage.unavailable"]);
  await until("claims");
  expect(seen).toEqual([`fails ${S} 100`, "coverage.unavailable", `begins ${S} 100`, "claims"]);
});

test("epochs begin while the sink itself is away", async () => {
  const { time, seen, live: started, spec, until } = beginning(["begins"]);
  const down = new Failure("coverage.unavailable", "down", { retry: true });
  const live = started({ ...spec, prepare: () => Promise.reject(down) });
  await drive(time, live.open());
  await drive(time, live.claim([{ stream: 0, key: S, lane: 0, ...PLACED }], null));
  await until(`begins ${S} 100`);
  expect(seen).toEqual(["coverage.unavailable", `begins ${S} 100`]);
});

test("streams that went elsewhere begin nothing more", async () => {
  const { time, seen, live: started, until } = beginning(["fails", "begins"]);
  const live = started();
  await drive(time, live.open());
  const other = { stream: 1, key: `${S}1`, lane: 0, ...PLACED };
  await drive(time, live.claim([{ stream: 0, key: S, lane: 0, ...PLACED }, other], null));
  live.place(0);
  live.forget([0]);
  await until("claims");
  expect(seen).toEqual([`fails ${S} 100,${S}1 100`, "coverage.unavailable", `begins ${S}1 100`, "claims"]);
});
