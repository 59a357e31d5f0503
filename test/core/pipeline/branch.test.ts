/**
 * Goal: a sink beside the primary one takes what it can, misses the rest in the open, and never keeps the lane waiting.
 * Method: scripted writers under simulated time.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import { Failure } from "../../../src/core/failure/failure.ts";
import { Branch, type BranchOptions } from "../../../src/core/pipeline/branch.ts";
import { Branches } from "../../../src/core/pipeline/branches.ts";
import type { BranchBatch, BranchWriter } from "../../../src/core/ports/branch-parts.ts";
import type { FromBranch } from "../../../src/core/ports/lane.ts";
import { SimTime } from "../../sim/clock.ts";

const KEY = "kafka/c/t/0/0";

class Writer implements BranchWriter<BranchBatch> {
  complete?: () => void;
  id = "";
  rows = 0;
  aborted = 0;
  most = Number.POSITIVE_INFINITY;
  open(id: string): void {
    this.id = id;
  }
  write(batch: BranchBatch, _authority: unknown, from = 0): number {
    if (broken !== null) throw broken;
    const taken = Math.min(batch.rows, from + this.most - this.rows);
    this.rows += taken - from;
    return taken;
  }
  async flush(): Promise<void> {
    const f = failures.shift();
    if (f !== undefined) throw f;
  }
  get held(): number {
    return this.rows;
  }
  get largest(): number {
    return this.rows;
  }
  async seal() {
    const f = failures.shift();
    if (f !== undefined) throw f;
    if (refusal) return { refused: "fenced", detail: "somebody" } as const;
    const { rows } = this;
    this.rows = 0;
    return { targets: [], covered: false, rows, bytes: rows };
  }
  async abort(): Promise<void> {
    this.aborted++;
    this.rows = 0;
  }
}

let time: SimTime;
let out: FromBranch[];
let writers: Writer[];
let failures: Failure[];
let broken: Failure | null;
let refusal: boolean;
let primaryOpen: boolean;
let branch: Branch<BranchBatch>;

const settle = (ms = 0) => time.runUntil(() => false, time.nowMs + ms);
const of = <T extends FromBranch["t"]>(t: T) =>
  out.filter((m): m is Extract<FromBranch, { t: T }> => m.t === t);
const down = () => new Failure("store.unavailable", "down", { retry: true });
const claim = (...skip: [number, number][]) =>
  branch.receive({
    t: "claims",
    streams: [
      {
        stream: 0,
        authority: { kind: "generation", stream: KEY, generation: 1 },
        skip: skip.map(([from, next]) => ({ from: BigInt(from), next: BigInt(next) })),
      },
    ],
  });
function batch(from: number, next: number): BranchBatch {
  const rows = next - from;
  const offsets = new Int32Array(2 * rows);
  for (let i = 0; i < rows; i++) offsets[2 * i] = from + i;
  return { span: { stream: KEY, from: BigInt(from), next: BigInt(next) }, rows, ingestTs: 7, offsets };
}
const give = (from: number, next: number) => branch.give(0, KEY, batch(from, next));
const span = (from: number, next: number) => ({ stream: KEY, from: BigInt(from), next: BigInt(next) });

function made(over: Partial<BranchOptions<BranchBatch>> = {}): Branch<BranchBatch> {
  let sets = 0;
  return new Branch({
    lane: 2,
    name: "side",
    commits: false,
    eager: false,
    holdBytes: 100,
    rollBytes: 50,
    rollIntervalMs: 1_000,
    clock: time.clock(null),
    newWriter: () => {
      const w = new Writer();
      writers.push(w);
      return w;
    },
    newSetId: () => `set-${sets++}`,
    primaryOpen: () => primaryOpen,
    post: (m) => out.push(m),
    ...over,
  });
}

beforeEach(() => {
  time = new SimTime();
  out = [];
  writers = [];
  failures = [];
  broken = null;
  refusal = false;
  primaryOpen = false;
  branch = made();
});

describe("a set", () => {
  test("is closed with its spans, sealed when it may be, and told with what it holds", async () => {
    claim();
    expect([give(0, 5), give(5, 9)]).toEqual([true, true]);
    branch.close("interval");
    expect(of("closed")).toEqual([{ t: "closed", id: "set-0", epoch: 0, spans: [span(0, 9)] }]);
    await settle();
    expect(of("sealed")).toEqual([]);
    branch.receive({ t: "go", id: "set-0" });
    await settle();
    const { set } = of("sealed")[0]!;
    expect([set.id, set.lane, set.rows, set.openedAt, set.reason]).toEqual(["set-0", 2, 9, 7, "interval"]);
  });

  test("is filled while another waits, by a writer of its own, which is used again", async () => {
    claim();
    give(0, 5);
    branch.close("interval");
    give(5, 6);
    expect(writers.map((w) => w.rows)).toEqual([5, 1]);
    branch.receive({ t: "go", id: "set-0" });
    await settle();
    branch.close("interval");
    give(6, 7);
    expect(writers.map((w) => w.id)).toEqual(["set-2", "set-1"]);
  });

  test("closes by its size, its age, and at a stop", async () => {
    claim();
    give(0, 60);
    branch.bundled();
    expect(of("closed").length).toBe(1);
    give(60, 61);
    await settle(1_100);
    expect(of("closed").length).toBe(2);
    give(61, 62);
    branch.primarySealed("bytes");
    expect(of("closed").length).toBe(2);
    branch.primarySealed("drain");
    expect(of("closed").length).toBe(3);
  });

  test("that is full takes the rest into the next", async () => {
    claim();
    give(0, 1);
    writers[0]!.most = 3;
    give(1, 6);
    expect(of("closed").map((m) => m.spans)).toEqual([[span(0, 3)]]);
    branch.close("interval");
    expect(of("closed")[1]?.spans).toEqual([span(3, 6)]);
  });

  test("of a sink that commits closes where the primary's is sealed, one at a time", async () => {
    branch = made({ commits: true });
    claim();
    primaryOpen = true;
    give(0, 60);
    branch.bundled();
    expect([branch.pressing, of("closed").length]).toEqual([true, 0]);
    await settle(1_500);
    expect(of("closed").length).toBe(0);
    branch.primarySealed("branch");
    expect(of("closed").length).toBe(1);
    give(60, 70);
    await settle(1_500);
    branch.primarySealed("interval");
    expect([branch.pressing, of("closed").length]).toEqual([false, 1]);
    branch.receive({ t: "go", id: "set-0" });
    primaryOpen = false;
    await settle(2_500);
    expect(of("closed").length).toBe(2);
  });

  test("is tried again while its store is down, and that is told", async () => {
    claim();
    give(0, 5);
    branch.close("interval");
    failures = [down(), down()];
    branch.receive({ t: "go", id: "set-0" });
    await settle(5_000);
    expect(of("trouble").map((m) => m.failure?.code ?? null)).toEqual([
      "store.unavailable",
      "store.unavailable",
      null,
    ]);
    expect(of("sealed").length).toBe(1);
  });

  test("that is refused is told; its sink lets go for a while once that is known", async () => {
    claim();
    refusal = true;
    give(0, 5);
    branch.close("interval");
    branch.receive({ t: "go", id: "set-0" });
    await settle();
    expect(of("refused")).toEqual([
      { t: "refused", id: "set-0", epoch: 0, reason: "fenced", detail: "somebody" },
    ]);
    branch.receive({ t: "settled", id: "set-0", landed: false });
    expect(of("detached").length).toBe(1);
  });

  test("that cannot be sealed is given up behind the reason: who waits for it alone may be gone by then", async () => {
    claim();
    give(0, 5);
    branch.close("interval");
    failures = [new Failure("postgres.row_differs", "no")];
    branch.receive({ t: "go", id: "set-0" });
    await settle();
    expect(out.map((m) => m.t)).toEqual(["closed", "detached", "dropped"]);
    expect(of("detached")[0]?.failure.code).toBe("postgres.row_differs");
  });

  test("of a stream that went elsewhere meanwhile is given up", async () => {
    claim();
    give(0, 5);
    branch.close("interval");
    branch.forget([0]);
    branch.receive({ t: "go", id: "set-0" });
    await settle();
    expect([of("dropped"), of("sealed")]).toEqual([[{ t: "dropped", id: "set-0" }], []]);
  });

  test("is dropped when it was told so, while it waits or is tried", async () => {
    claim();
    give(0, 5);
    branch.close("interval");
    branch.receive({ t: "drop", id: "set-0" });
    branch.receive({ t: "go", id: "set-0" });
    give(5, 6);
    branch.close("interval");
    failures = Array.from({ length: 50 }, down);
    branch.receive({ t: "go", id: "set-1" });
    await settle(300);
    branch.receive({ t: "drop", id: "set-1" });
    failures = [];
    await settle(20_000);
    expect([of("sealed"), writers.every((w) => w.aborted > 0)]).toEqual([[], true]);
  });
});

describe("what is missed", () => {
  test("comes before the stream was claimed here", () => {
    expect(give(0, 5)).toBe(false);
    branch.primarySealed("interval");
    expect(of("missed")).toEqual([{ t: "missed", epoch: 0, spans: [span(0, 5)] }]);
  });

  test("is not what the sink has already", () => {
    claim([0, 5]);
    expect([give(0, 5), branch.skip(0).length, writers.length]).toEqual([true, 1, 0]);
  });

  test("read a second time is not taken twice", () => {
    claim();
    give(0, 5);
    expect([give(0, 5), give(3, 8), writers[0]!.rows]).toEqual([true, false, 5]);
  });

  test("is all that comes while more waits than it may hold, and then it goes on", async () => {
    claim();
    give(0, 51);
    branch.close("bytes");
    expect(give(51, 110)).toBe(false);
    expect(of("detached").map((m) => [m.failure.code, m.pauseMs])).toEqual([["sink.behind", 1_000]]);
    expect(of("missed")).toEqual([{ t: "missed", epoch: 0, spans: [span(51, 110)] }]);
    branch.receive({ t: "go", id: "set-0" });
    await settle(900);
    expect(give(110, 120)).toBe(false);
    await settle(200);
    expect(give(120, 130)).toBe(true);
    expect(of("attached").length).toBe(1);
    expect(of("missed").at(-1)?.spans).toEqual([span(110, 120)]);
    branch.close("interval");
    expect(of("closed").at(-1)?.spans).toEqual([span(120, 130)]);
  });

  test("is no batch that is larger than all that it may hold: it would never have room, and be a gap for ever", async () => {
    claim();
    // What is there leaves room for what comes next, as after each pause of the lane.
    expect([give(0, 50), give(50, 300)]).toEqual([true, true]);
    expect([of("detached"), of("missed")]).toEqual([[], []]);
    expect([branch.crowded, give(300, 301)]).toEqual([true, false]);
  });

  test("is nothing after such a batch: its set is closed and waited for, however far from its size it is", async () => {
    branch = made({ rollBytes: 1_000 });
    claim();
    give(0, 300);
    const relieved = branch.relief();
    expect(of("closed").map((m) => m.spans)).toEqual([[span(0, 300)]]);
    branch.receive({ t: "go", id: "set-0" });
    await settle();
    await relieved;
    expect([give(300, 600), of("detached"), of("missed")]).toEqual([true, [], []]);
  });

  test("a pause is longer each time, until a set lands", async () => {
    claim();
    broken = new Failure("internal.bug", "no");
    for (const [i, ms] of [1_000, 2_000, 4_000].entries()) {
      give(10 * i, 10 * i + 1);
      expect(of("detached").at(-1)?.pauseMs).toBe(ms);
      await settle(ms);
    }
    branch.receive({ t: "settled", id: "any", landed: true });
    give(90, 91);
    expect(of("detached").at(-1)?.pauseMs).toBe(1_000);
  });

  test("sets that nobody settles are as many as may wait", () => {
    claim();
    for (let i = 0; i < 64; i++) {
      give(i, i + 1);
      branch.close("interval");
    }
    writers.length = 0;
    expect(give(64, 65)).toBe(false);
    expect(of("detached").length).toBe(1);
  });

  test("a store that fails for good while rows are on their way costs the open set alone", async () => {
    claim();
    give(0, 5);
    branch.close("interval");
    give(5, 9);
    failures = [new Failure("internal.bug", "no")];
    branch.bundled();
    await settle();
    expect([of("missed"), of("dropped")]).toEqual([[{ t: "missed", epoch: 0, spans: [span(5, 9)] }], []]);
  });

  test("is everything, once the sink failed for good", async () => {
    claim();
    give(0, 5);
    branch.receive({ t: "off" });
    await settle(5_000);
    expect(give(5, 6)).toBe(false);
  });

  test("a reset forgets streams and sets", async () => {
    claim();
    give(0, 5);
    branch.close("interval");
    give(5, 6);
    branch.reset(3);
    branch.receive({ t: "go", id: "set-0" });
    await settle(2_000);
    expect([of("sealed"), give(6, 7)]).toEqual([[], false]);
    claim();
    give(7, 8);
    branch.close("interval");
    expect(of("closed").at(-1)?.epoch).toBe(3);
  });
});

test("a sink gets nothing that one before it missed, and lets go with it", () => {
  const second: FromBranch[] = [];
  const later = made({ post: (m) => second.push(m) });
  const all = new Branches([
    { branch, after: [] },
    { branch: later, after: [0] },
  ]);
  claim();
  const claims = {
    t: "claims",
    streams: [{ stream: 0, authority: { kind: "generation", stream: KEY, generation: 1 }, skip: [] }],
  } as const;
  all.receive(1, claims);
  const hand = (from: number, next: number) => all.give(0, KEY, () => batch(from, next), span(from, next));
  hand(0, 60);
  hand(60, 200);
  expect(second.map((m) => m.t)).toContain("detached");
  all.primarySealed("interval");
  const missed = second.flatMap((m) => (m.t === "missed" ? m.spans : []));
  expect(missed.reduce((n, s) => n + s.next - s.from, 0n)).toBe(200n);
});

test("a set that cannot be completed is missed, and the sink is let go for a while", async () => {
  claim();
  give(0, 5);
  writers[0]!.complete = () => {
    throw new Failure("internal.bug", "no");
  };
  branch.close("interval");
  await settle();
  expect(of("missed")).toEqual([{ t: "missed", epoch: 0, spans: [span(0, 5)] }]);
  expect([of("closed").length, of("detached").length]).toEqual([0, 1]);
});

describe("a lane that waits for room", () => {
  const relieved = (isReplay = false) => {
    const state = { done: false };
    void branch.relief(isReplay).then(() => {
      state.done = true;
    });
    return state;
  };

  test("goes on at once where there is room", async () => {
    claim();
    give(0, 40);
    const wait = relieved();
    await settle();
    expect(wait.done).toBe(true);
  });

  test("does not wait for what a flushed set keeps: an open row group, memory that is used again", async () => {
    branch = made({ rollBytes: 1_000 });
    claim();
    give(0, 45);
    const [writer] = writers;
    const flush = Promise.withResolvers<void>();
    writer!.flush = () => flush.promise;
    give(45, 90);
    const wait = relieved();
    await settle(500);
    expect(wait.done).toBe(false);
    flush.resolve();
    await settle();
    expect([wait.done, of("detached").length]).toEqual([true, 0]);
    expect(give(90, 99)).toBe(true);
  });

  test("waits while a flush brings it, and misses nothing", async () => {
    claim();
    give(0, 45);
    const [writer] = writers;
    const flush = Promise.withResolvers<void>();
    writer!.flush = async () => {
      await flush.promise;
      writer!.rows = 0;
    };
    give(45, 90);
    const wait = relieved();
    await settle(1_000);
    expect(wait.done).toBe(false);
    flush.resolve();
    await settle();
    expect(wait.done).toBe(true);
    expect(of("detached")).toEqual([]);
    expect(give(90, 120)).toBe(true);
  });

  test("does not wait for what only the seal of the primary's set can move on", async () => {
    branch = made({ commits: true });
    claim();
    give(0, 60);
    const wait = relieved();
    await settle();
    expect([wait.done, branch.pressing, of("detached")]).toEqual([true, true, []]);
  });

  test("lets a sink go that is stuck, and does not wait for it again", async () => {
    claim();
    give(0, 90);
    writers[0]!.flush = () => new Promise(() => {});
    const wait = relieved();
    await settle(6_000);
    expect(wait.done).toBe(true);
    expect(of("detached").length).toBe(1);
    const again = relieved();
    await settle();
    expect(again.done).toBe(true);
    // Taken back after a while: a second wait would hold the lane up as long again.
    writers[0]!.rows = 0;
    claim();
    expect(give(90, 150)).toBe(true);
    const later = relieved();
    await settle();
    expect([later.done, of("detached").length]).toEqual([true, 1]);
  });

  test("does not wait for a server that is away, which raw that is read again does", async () => {
    claim();
    give(0, 45);
    failures = [down(), down()];
    branch.bundled();
    await settle();
    give(45, 90);
    const [live, replay] = [relieved(), relieved(true)];
    await settle(10);
    expect([live.done, replay.done, of("detached").length]).toEqual([true, false, 0]);
    await settle(10_000);
    expect(replay.done).toBe(true);
  });

  test("no longer than until the server goes away", async () => {
    claim();
    give(0, 45);
    const flush = Promise.withResolvers<void>();
    writers[0]!.flush = () => flush.promise;
    give(45, 90);
    const [live, replay] = [relieved(), relieved(true)];
    await settle(10);
    expect([live.done, replay.done]).toEqual([false, false]);
    flush.reject(down());
    await settle(10);
    expect([live.done, replay.done, of("detached").length]).toEqual([true, false, 0]);
  });
});

test("a batch that says no positions is taken whole or not at all", () => {
  claim();
  const { offsets: _, ...whole } = batch(0, 5);
  expect(branch.give(0, KEY, whole)).toBe(true);
  writers[0]!.most = 7;
  expect(branch.give(0, KEY, { ...whole, span: span(5, 10) })).toBe(false);
  expect(of("detached").map((m) => m.failure.code)).toEqual(["internal.bug"]);
});
