/**
 * Goal: once a process has the store, an outage of the coverage object or of the files stops nothing for good: what
 * can only be tried again is tried until it works, and is told meanwhile. Method: stores in memory that fail as often
 * as told, a simulated clock.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import {
  MemoryVersionedStore,
  type SharedObject,
  sharedObject,
} from "../../../src/adapters/coverage/memory.ts";
import { CoverageKeeper, type KeeperOptions } from "../../../src/core/coverage/keeper.ts";
import type { Code } from "../../../src/core/failure/codes.ts";
import { asFailure, Failure } from "../../../src/core/failure/failure.ts";
import type { Authority, Intent } from "../../../src/core/ports/coverage.ts";
import type { ObjectStore, Target, TargetState } from "../../../src/core/ports/object-store.ts";
import { drive } from "../../contract/drive.ts";
import { FaultyStore } from "../../contract/faulty-store.ts";
import { SimTime } from "../../sim/clock.ts";

const S = "kafka/c/orders/0/0";
const S2 = "kafka/c/orders/0/1";

let time: SimTime;
let shared: SharedObject;
let files: Map<string, TargetState>;
let fileFailures: Failure[];
let told: string[];

beforeEach(() => {
  time = new SimTime();
  shared = sharedObject();
  files = new Map();
  fileFailures = [];
  told = [];
});

const objects = {
  place: "here",
  probe: async (t: Target) => {
    const failure = fileFailures.shift();
    if (failure !== undefined) throw failure;
    return files.get(t.key) ?? "absent";
  },
  publish: async (t: Target) => void files.set(t.key, "published"),
  discard: async () => {},
} as unknown as ObjectStore;

const run = <T>(work: Promise<T>): Promise<T> => drive(time, work);
const codeOf = (work: Promise<unknown>): Promise<Code | "none"> =>
  run(
    work.then(
      () => "none" as const,
      (e) => asFailure(e).code,
    ),
  );
const outage = (code: Code = "coverage.unavailable"): Failure => new Failure(code, "away");

interface Node {
  readonly keeper: CoverageKeeper;
  readonly store: FaultyStore;
}

async function opened(instance: string, options: Partial<KeeperOptions> = {}): Promise<Node> {
  const store = new FaultyStore(new MemoryVersionedStore(shared));
  const self = { hostname: "h", pid: 1, bootId: "b", pidNamespace: "n", startTime: instance };
  const keeper = new CoverageKeeper(
    { instance, leaseMs: 15_000, minIntervalMs: 0, ...options },
    {
      versions: store,
      objects,
      clock: time.clock(null),
      host: { self, isAlive: () => (options.shared ? "alive" : "dead") },
      trouble: (f) => told.push(f === null ? "well again" : f.code),
    },
  );
  await run(keeper.open());
  return { keeper, store };
}

function intent(id: string, authority: Authority, from: bigint, next: bigint): Intent {
  const targets = [{ key: `${id}.parquet`, staging: `${id}.staged`, bytes: 1, rows: 1 }];
  return { id, targets, spans: [{ stream: S, from, next }], authorities: [authority], rows: 1, bytes: 1 };
}

async function claimed(n: Node, stream = S, epoch: number | null = null): Promise<Authority> {
  return (await run(n.keeper.claim([stream], epoch)))[0]!.authority;
}

describe("waited out and told", () => {
  test("a claim whose writes fail", async () => {
    const a = await opened("a");
    a.store.faults.push(outage("coverage.full"), outage("coverage.denied"));
    expect(await claimed(a)).toMatchObject({ generation: 1 });
    expect(told).toEqual(["coverage.full", "coverage.denied", "well again"]);
    expect(time.nowMs).toBe(300);
  });

  test("files that can't be looked at while a former owner's intent is settled", async () => {
    const a = await opened("a");
    const open = intent("i", await claimed(a), 0n, 5n);
    files.set("i.parquet", "staged");
    await run(a.keeper.intend([open]));
    const b = await opened("b");
    fileFailures.push(outage("store.unavailable"), outage("store.io"));
    const claims = await run(b.keeper.claim([S], null));
    expect(claims[0]?.covered).toEqual([{ from: 0n, next: 5n }]);
    expect(told).toEqual(["store.unavailable", "store.io", "well again"]);
  });

  test.each([
    [
      "lost ranges",
      (n: Node) => n.keeper.recordLost([{ stream: S, from: 0n, next: 1n, reason: "retention" }]),
    ],
    ["origins", (n: Node) => n.keeper.rememberOrigins([{ stream: S, position: 7n, staleCommit: null }])],
    ["topics", (n: Node) => n.keeper.rememberTopic("t", { topicId: "x", incarnation: 0 })],
    ["leases", (n: Node) => n.keeper.lease("w")],
  ] as const)("%s", async (_, step) => {
    const a = await opened("a");
    a.store.faults.push(outage());
    await run(step(a) as Promise<unknown>);
    expect(told).toEqual(["coverage.unavailable", "well again"]);
    expect(a.keeper.state.serial).toBe(2);
  });

  test("closing ends the wait", async () => {
    const a = await opened("a");
    a.store.faults.push(...Array.from({ length: 99 }, () => outage()));
    time.clock(null).after(1_000, () => void a.keeper.close());
    expect(await codeOf(a.keeper.claim([S], null))).toBe("internal.cancelled");
    expect(time.nowMs).toBeLessThan(10_000);
  });
});

describe("not waited out", () => {
  test("what the committer and the heartbeat repeat by themselves", async () => {
    const a = await opened("a");
    const open = intent("i", await claimed(a), 0n, 5n);
    for (const step of [
      () => a.keeper.intend([open]),
      () => a.keeper.heartbeat(),
      () => a.keeper.settle("i", "abandoned"),
    ]) {
      a.store.faults.push(outage());
      // Settling an intent that is not there changes nothing and so writes nothing.
      const expected = step.toString().includes("settle") ? "none" : "coverage.unavailable";
      expect(await codeOf(step())).toBe(expected);
    }
    expect(told).toEqual([]);
  });

  test.each(["coverage.corrupt", "internal.bug"] as const)("%s ends a claim", async (code) => {
    const a = await opened("a");
    a.store.faults.push(outage(code));
    expect(await codeOf(a.keeper.claim([S], null))).toBe(code);
  });

  test("being fenced ends a claim", async () => {
    const a = await opened("a");
    await opened("b");
    expect(await codeOf(a.keeper.claim([S], null))).toBe("coverage.fenced");
    expect(a.keeper.fenced?.code).toBe("coverage.fenced");
  });

  test("an outage at the opening is told to whoever starts the process", async () => {
    const store = new FaultyStore(new MemoryVersionedStore(shared));
    store.faults.push(outage("coverage.full"));
    const self = { hostname: "h", pid: 1, bootId: "b", pidNamespace: "n", startTime: "x" };
    const parts = {
      versions: store,
      objects,
      clock: time.clock(null),
      host: { self, isAlive: () => "dead" as const },
    };
    const keeper = new CoverageKeeper({ instance: "x", leaseMs: 1, minIntervalMs: 0 }, parts);
    expect(await codeOf(keeper.open())).toBe("coverage.full");
    // It never had the store, so there is nothing to leave.
    await run(keeper.close());
    expect(shared.versions.size).toBe(0);
  });
});

test("an index that can't be tidied delays no cover, and is told", async () => {
  const a = await opened("a");
  const authority = await claimed(a);
  a.store.putSegment = () => Promise.reject(outage("coverage.full"));
  const long = "x".repeat(9_000);
  for (let i = 0; i < 20; i++) {
    const open = intent(`${i}${long}`, authority, BigInt(i), BigInt(i + 1));
    await run(a.keeper.intend([open]));
    files.set(open.targets[0]!.key, "published");
    expect(await run(a.keeper.cover([open.id]))).toEqual([{ ok: true }]);
  }
  expect(told.length).toBeGreaterThan(0);
  expect(new Set(told)).toEqual(new Set(["coverage.full"]));
  expect(a.keeper.state.index).toHaveLength(20);
});

test("an unknown write that lands late is found by its tag, and nothing is done twice", async () => {
  const a = await opened("a");
  const memory = a.store.inner;
  // The first write hangs in the network: nobody says whether it arrived, and it does so only while the second is
  // on its way.
  const write = memory.write.bind(memory);
  let held: (() => Promise<unknown>) | null = null;
  memory.write = async (expected, bytes, tag) => {
    if (held === null) {
      held = () => write(expected, bytes, tag);
      return "unknown";
    }
    await held();
    return write(expected, bytes, tag);
  };
  expect(await claimed(a)).toMatchObject({ generation: 1 });
  expect(a.keeper.state.streams.get(S)?.generation).toBe(1);
});

describe("members of a group, beside each other", () => {
  const member = (name: string) => opened(name, { shared: true });

  test("a claim takes a stream from its former member, whose later intents are refused, and no other stream", async () => {
    const a = await member("a");
    const [old, kept] = [await claimed(a, S, 4), await claimed(a, S2, 4)];
    const b = await member("b");
    await claimed(b, S, 5);
    const [first, second] = await run(
      a.keeper.intend([
        intent("late", old, 0n, 5n),
        { ...intent("fine", kept, 0n, 5n), spans: [{ stream: S2, from: 0n, next: 5n }] },
      ]),
    );
    expect(first).toMatchObject({ ok: false, reason: "fenced" });
    expect(second).toEqual({ ok: true });
    expect(a.keeper.fenced).toBeNull();
  });

  test("a member whose intent a successor settled is told so: covered, or gone", async () => {
    const a = await member("a");
    const authority = await claimed(a);
    await run(a.keeper.intend([intent("i", authority, 0n, 5n), intent("j", authority, 5n, 9n)]));
    files.set("i.parquet", "staged");
    const b = await member("b");
    expect((await run(b.keeper.claim([S], null)))[0]?.covered).toEqual([{ from: 0n, next: 5n }]);
    expect(await run(a.keeper.cover(["i"]))).toEqual([{ ok: true }]);
    expect(await run(a.keeper.cover(["j"]))).toMatchObject([{ ok: false, reason: "gone" }]);
  });

  test("a claim settles what the stream was before its topic was made anew, and leaves others' work alone", async () => {
    const a = await member("a");
    const [before, other] = [await claimed(a, "kafka/c/t/0/0"), await claimed(a, "kafka/c/t/0/1")];
    const of = (id: string, stream: string, authority: Authority) => ({
      ...intent(id, authority, 0n, 5n),
      spans: [{ stream, from: 0n, next: 5n }],
    });
    await run(a.keeper.intend([of("i", "kafka/c/t/0/0", before), of("j", "kafka/c/t/0/1", other)]));
    files.set("i.parquet", "staged").set("j.parquet", "staged");
    const b = await member("b");
    await claimed(b, "kafka/c/t/1/0");
    expect([files.get("i.parquet"), files.get("j.parquet")]).toEqual(["published", "staged"]);
    expect(await run(a.keeper.cover(["i", "j"]))).toEqual([{ ok: true }, { ok: true }]);
  });

  test("the leader epoch of the highest end that is covered is told with the claim, whoever covered it", async () => {
    const a = await member("a");
    const authority = await claimed(a);
    const of = (id: string, from: bigint, next: bigint, leaderEpoch: number) => ({
      ...intent(id, authority, from, next),
      spans: [{ stream: S, from, next, leaderEpoch }],
    });
    await run(a.keeper.intend([of("i", 0n, 5n, 2), of("j", 5n, 9n, 3)]));
    for (const key of ["i.parquet", "j.parquet"]) files.set(key, "staged");
    await run(a.keeper.cover(["i"]));
    expect((await run(a.keeper.claim([S2], null)))[0]?.tip).toBeUndefined();
    const b = await member("b");
    expect((await run(b.keeper.claim([S], null)))[0]?.tip).toEqual({ position: 9n, epoch: 3 });
  });

  test("whoever is alone settles all that is open but its own", async () => {
    const a = await member("a");
    await run(a.keeper.intend([intent("i", await claimed(a), 0n, 5n)]));
    files.set("i.parquet", "staged");
    await claimed(a, S2);
    expect(files.get("i.parquet")).toBe("staged");
    await run(a.keeper.close());
    const b = await member("b");
    await claimed(b, "kafka/c/other/0/0");
    expect(files.get("i.parquet")).toBe("published");
    expect(b.keeper.state.intents.size).toBe(0);
  });

  test("segments that another member may be about to name are not swept", async () => {
    const a = await member("a");
    await run(a.store.putSegment("about-to-be-named", new Uint8Array(1)));
    await member("b");
    expect([...shared.segments.keys()]).toEqual(["about-to-be-named"]);
  });
});
