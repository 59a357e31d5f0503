/**
 * Goal: the runner lets no position lead, whatever its parts do, and ends when and how it should.
 * Method: fakes of source, lanes, coverage and objects that write one journal; the committer and the ledger are real.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import { Budget } from "../../../src/core/delivery/budget.ts";
import { Committer } from "../../../src/core/delivery/committer.ts";
import { Ledger } from "../../../src/core/delivery/ledger.ts";
import { rateLimit } from "../../../src/core/delivery/rate-limit.ts";
import { SizeEstimate } from "../../../src/core/delivery/size-estimate.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { TwgEvent } from "../../../src/core/observe/events.ts";
import { Admission } from "../../../src/core/pipeline/admission.ts";
import { BufferPool } from "../../../src/core/pipeline/buffer-pool.ts";
import { Runner } from "../../../src/core/pipeline/runner.ts";
import type { RunnerOptions, RunSummary } from "../../../src/core/pipeline/runner-parts.ts";
import type { Span } from "../../../src/core/records/stream.ts";
import { SimTime } from "../../sim/clock.ts";
import { FakeCoverage, FakeLane, FakeObjects, FakeSource, found, Gate, key, span } from "./fakes.ts";

let time: SimTime;
let journal: string[];
let source: FakeSource;
let coverage: FakeCoverage;
let objects: FakeObjects;
/** Every lane that was ever made, in order. */
let lanes: FakeLane[];
let events: TwgEvent[];
let admission: Admission;
let ledger: Ledger;
let sweepFailures: Failure[];
let runner: Runner;
let ended: Promise<RunSummary>;
let outcome: RunSummary | Failure | null;

const settle = (ms = 0) => time.runUntil(() => false, time.nowMs + ms);
const of = <E extends TwgEvent["e"]>(e: E) =>
  events.filter((x): x is Extract<TwgEvent, { e: E }> => x.e === e);
/** The journal from its `n`th entry on, durable events alone. */
const durable = () => journal.filter((j) => /^(intend|publish|cover|acknowledge) /.test(j));

function start(over: Partial<RunnerOptions> = {}, laneCount = 1): void {
  const clock = time.clock(null);
  const observer = { emit: (e: TwgEvent) => void events.push(e) };
  const budget = new Budget({ maxBytes: 1 << 20, owners: Array.from({ length: laneCount }, (_, i) => i) });
  admission = new Admission(clock, budget, rateLimit(clock, {}), new SizeEstimate(256));
  ledger = new Ledger();
  runner = new Runner(
    {
      sink: "raw",
      lanes: laneCount,
      rules: { start: "earliest", acceptGap: false, retention: "fail", onRecreated: "fail" },
      untilCaughtUp: false,
      heartbeatMs: 1_000_000,
      drainMs: 30_000,
      ...over,
    },
    {
      clock,
      source,
      coverage,
      committer: (listener) => new Committer({ sink: "raw", coverage, objects, clock, observer, listener }),
      spawnLane: (lane) => {
        const port = new FakeLane(lane);
        lanes.push(port);
        return port;
      },
      ledger,
      admission,
      buffers: new BufferPool(1 << 20),
      observer,
      sweep: async () => {
        journal.push("sweep");
        const failure = sweepFailures.shift();
        if (failure !== undefined) throw failure;
      },
    },
  );
  outcome = null;
  ended = runner.run();
  ended.then(
    (s) => {
      outcome = s;
    },
    (e) => {
      outcome = e;
    },
  );
}

async function running(partitions = 1, over: Partial<RunnerOptions> = {}, laneCount = 1): Promise<void> {
  start(over, laneCount);
  await settle();
  await source.begin(...Array.from({ length: partitions }, (_, p) => found(p)));
  await settle();
}

/** The lane holds these at its next roll, and nothing at later ones. */
function sealOnce(lane: FakeLane, id: string, spans: readonly Span[]): void {
  lane.onRoll = () => {
    lane.onRoll = () => {};
    lane.seal(id, spans);
  };
}

beforeEach(() => {
  time = new SimTime();
  journal = [];
  events = [];
  lanes = [];
  sweepFailures = [];
  source = new FakeSource(journal);
  coverage = new FakeCoverage(journal);
  objects = new FakeObjects(journal);
});

describe("beginning", () => {
  test("open, claim, record, sweep once, and only then the lanes know their streams", async () => {
    await running(3, {}, 2);
    expect(journal).toEqual([
      "open",
      "topic kafka/c/t id-1 0",
      "claim 3",
      "origin 0",
      "origin 0",
      "origin 0",
      "sweep",
    ]);
    const placed = lanes.map((l) => l.of("streams").flatMap((m) => m.streams.map((s) => s.id.partition)));
    expect(placed).toEqual([[0, 2], [1]]);
    expect(source.starts.map((s) => [s.stream, s.lane, s.position, s.attempt])).toEqual([
      [0, 0, 0n, 0],
      [1, 1, 0n, 0],
      [2, 0, 0n, 0],
    ]);
    await source.begin(found(3));
    expect(journal.filter((j) => j === "sweep")).toHaveLength(1);
  });

  test("a store that does not answer the sweep: nothing has begun, and beginning again begins it once", async () => {
    sweepFailures.push(new Failure("store.unavailable", "down", { retry: true }));
    start();
    await settle();
    expect(await source.begin(found(0)).catch((e: Failure) => e.code)).toBe("store.unavailable");
    expect([of("stream.begun").length, lanes[0]?.of("streams").length]).toEqual([0, 0]);
    await source.begin(found(0));
    expect(source.starts.map((s) => s.stream)).toEqual([0]);
    expect(journal.filter((j) => j === "sweep")).toHaveLength(2);
    await source.begin(found(1));
    expect(journal.filter((j) => j === "sweep")).toHaveLength(2);
  });

  test("what is covered already is skipped by the lane and told", async () => {
    coverage.ranges.set(key(0), [
      { from: 0n, next: 10n },
      { from: 20n, next: 30n },
    ]);
    await running();
    expect(lanes[0]?.of("streams")[0]?.streams).toMatchObject([
      { position: 10n, skip: [{ from: 20n, next: 30n }] },
    ]);
    expect(of("records.skipped").map((e) => [e.from, e.next])).toEqual([[20n, 30n]]);
  });

  test("a commit that lags behind coverage is mended as soon as the source is there", async () => {
    coverage.ranges.set(key(0), [{ from: 0n, next: 10n }]);
    start();
    await settle();
    await source.begin(found(0, { committed: 4n }));
    await settle();
    expect(source.acks).toEqual([]);
    source.host?.watermark(0, 100n, 0n);
    await settle();
    expect(source.acks).toEqual([[{ stream: 0, next: 10n }]]);
  });

  test("a store that is owned by another ends the run before anything else", async () => {
    coverage.open = () => Promise.reject(new Failure("coverage.owned", "pid 7"));
    start();
    await settle();
    expect(outcome).toMatchObject({ code: "coverage.owned" });
    expect([lanes.length, source.host, journal]).toEqual([0, null, ["close source", "close coverage"]]);
  });
});

describe("a stop while the store is being taken", () => {
  test("ends the wait and the run, without a lane or a failure", async () => {
    let giveUp: (f: Failure) => void = () => {};
    coverage.open = () => new Promise((_, reject) => (giveUp = reject));
    coverage.close = async () => giveUp(new Failure("internal.cancelled", "closed"));
    start();
    runner.drain("a signal");
    await settle();
    expect(outcome).toEqual({ rows: 0, reason: "a signal" });
    expect([lanes.length, source.host]).toEqual([0, null]);
  });

  test("that is taken all the same by then ends the run too", async () => {
    const gate = new Gate();
    coverage.open = () => gate.promise;
    start();
    runner.drain("a signal");
    gate.open();
    await settle();
    expect(outcome).toEqual({ rows: 0, reason: "a signal" });
    expect(source.host).toBeNull();
  });
});

describe("the order of durable events", () => {
  test("sealed, intended, published, covered, acknowledged", async () => {
    await running();
    source.deliver(0, 0, 10);
    lanes[0]!.consumed();
    lanes[0]!.seal("s1", [span(0, 0, 10)]);
    await settle();
    expect(durable()).toEqual(["intend s1", "publish s1.parquet", "cover s1", "acknowledge 0@10"]);
    expect(of("set.covered").map((e) => e.id)).toEqual(["s1"]);
    expect(of("source.acknowledged").map((e) => e.marks)).toEqual([
      [{ topic: "t", partition: 0, next: 10n }],
    ]);
  });

  test("nothing is acknowledged while the cover is under way, nor while the store is down", async () => {
    const gate = new Gate();
    coverage.coverGates.push(gate);
    objects.publishFaults.push(new Failure("store.unavailable", "down"), new Failure("store.full", "full"));
    await running();
    source.deliver(0, 0, 10);
    lanes[0]!.seal("s1", [span(0, 0, 10)]);
    await settle(60_000);
    expect(durable()).toEqual(["intend s1", "publish s1.parquet"]);
    expect(of("sink.troubled").map((e) => e.failure.code)).toEqual(["store.unavailable", "store.full"]);
    expect(of("sink.recovered")).toHaveLength(1);
    gate.open();
    await settle();
    expect(durable().at(-1)).toBe("acknowledge 0@10");
  });

  test("a set that is covered before an earlier one waits with its acknowledgement", async () => {
    await running();
    source.deliver(0, 0, 10);
    source.deliver(0, 10, 20);
    lanes[0]!.seal("late", [span(0, 10, 20)]);
    await settle();
    expect(source.acks).toEqual([]);
    lanes[0]!.seal("first", [span(0, 0, 10)]);
    await settle();
    expect(source.acks).toEqual([[{ stream: 0, next: 20n }]]);
  });

  test("a set that claims what was never delivered ends the run as a bug, and nothing of it is intended", async () => {
    await running();
    lanes[0]!.seal("s1", [span(0, 0, 10)]);
    await settle();
    expect(outcome).toMatchObject({ code: "internal.bug" });
    expect(durable()).toEqual([]);
  });

  test("bytes in flight are booked from delivery to consumption", async () => {
    await running();
    source.deliver(0, 0, 10);
    expect(admission.inFlight).toBe(8);
    lanes[0]!.consumed();
    expect(admission.inFlight).toBe(0);
    expect(source.host?.room(0)).toBeGreaterThan(0);
    expect(source.host?.takeBuffer(100).byteLength).toBeGreaterThanOrEqual(100);
    source.host?.giveBuffer(new ArrayBuffer(8));
    let woken = false;
    source.host?.whenRoom(0, () => {
      woken = true;
    });
    await settle(1);
    expect(woken).toBe(true);
  });

  test("frames of an older attempt are handed on, counted for nothing", async () => {
    await running();
    source.deliver(0, 0, 10);
    lanes[0]!.broken(0, 0, 5n);
    source.seeks.length = 0; // The fake forgets the new attempt and delivers for the old one.
    source.deliver(0, 10, 20);
    expect(ledger.state(0).delivered).toBe(5n);
    expect(of("bundle.delivered").at(-1)?.parts).toEqual([]);
  });
});

describe("bytes that cannot be read", () => {
  test("are fetched anew three times, then what was read lands and the run ends with the reason", async () => {
    await running();
    source.deliver(0, 0, 10);
    for (let attempt = 0; attempt < 3; attempt++) {
      lanes[0]!.broken(0, attempt, 6n);
      expect(source.seeks.at(-1)).toEqual({ stream: 0, position: 6n, attempt: attempt + 1 });
      expect(lanes[0]!.of("streams").at(-1)?.streams).toMatchObject([{ position: 6n, attempt: attempt + 1 }]);
      source.deliver(0, 6, 10);
    }
    expect(of("source.troubled").map((e) => e.failure.code)).toEqual(Array(3).fill("kafka.corrupt_batch"));
    lanes[0]!.onRoll = () => lanes[0]!.seal("good", [span(0, 0, 6)]);
    lanes[0]!.broken(0, 3, 6n);
    await settle();
    expect(outcome).toMatchObject({ code: "kafka.corrupt_batch" });
    expect(source.seeks).toHaveLength(3);
    expect(durable()).toEqual(["intend good", "publish good.parquet", "cover good", "acknowledge 0@6"]);
  });

  test("at a later position are counted anew", async () => {
    await running();
    source.deliver(0, 0, 10);
    for (const [attempt, position] of [2, 2, 2, 5, 5, 5].entries()) {
      lanes[0]!.broken(0, attempt, BigInt(position));
      source.deliver(0, position, 10);
    }
    await settle();
    expect(outcome).toBeNull();
    expect(source.seeks).toHaveLength(6);
  });

  test("reported for an attempt that was left meanwhile mean nothing", async () => {
    await running();
    source.deliver(0, 0, 10);
    lanes[0]!.broken(0, 0, 6n);
    lanes[0]!.broken(0, 0, 6n);
    expect(source.seeks).toHaveLength(1);
  });

  test("reported while the lane is restarted mean nothing: its streams are taken back anyway", async () => {
    const gate = new Gate();
    coverage.claimGates.push(new Gate(), gate);
    coverage.claimGates[0]!.open();
    coverage.refusals.set("s1", { ok: false, reason: "overlap", detail: "" });
    await running();
    source.deliver(0, 0, 10);
    lanes[0]!.seal("s1", [span(0, 0, 5)]);
    await settle();
    lanes[0]!.broken(0, 0, 7n);
    expect(source.seeks).toEqual([]);
    gate.open();
    await settle();
    expect(source.seeks).toEqual([{ stream: 0, position: 0n, attempt: 1 }]);
  });
});

describe("records that are lost at the source", () => {
  test("while the lane cannot read what lies before them: the hole is read again", async () => {
    await running();
    source.deliver(0, 0, 10);
    // The lane still has 0 to 10 before it when 10 to 50 turn out to be gone.
    await source.host!.lost(0, 10n, 50n, "retention");
    expect(source.seeks).toEqual([{ stream: 0, position: 50n, attempt: 1 }]);
    source.deliver(0, 50, 60);
    lanes[0]!.broken(0, 0, 6n);
    await settle();
    expect(lanes[0]!.of("reset")).toHaveLength(1);
    expect(source.seeks.at(-1)).toEqual({ stream: 0, position: 0n, attempt: 2 });
    expect(lanes[0]!.of("streams").at(-1)?.streams).toMatchObject([
      { position: 0n, skip: [{ from: 10n, next: 50n }] },
    ]);
    source.deliver(0, 0, 60);
    lanes[0]!.seal("all", [span(0, 0, 10), span(0, 50, 60)]);
    await settle();
    expect(source.acks.at(-1)).toEqual([{ stream: 0, next: 60n }]);
  });

  test("are not those that are covered", async () => {
    coverage.ranges.set(key(0), [
      { from: 0n, next: 10n },
      { from: 20n, next: 30n },
    ]);
    await running();
    await source.host!.lost(0, 10n, 40n, "retention");
    expect(coverage.losses.map((l) => [l.from, l.next])).toEqual([
      [10n, 20n],
      [30n, 40n],
    ]);
    expect(of("records.lost").map((e) => [e.from, e.next])).toEqual([
      [10n, 20n],
      [30n, 40n],
    ]);
    expect(source.seeks).toEqual([{ stream: 0, position: 40n, attempt: 1 }]);
  });
});

describe("a lane that restarts", () => {
  async function restarting(): Promise<Gate> {
    const gate = new Gate();
    const first = new Gate();
    first.open();
    coverage.claimGates.push(first, gate);
    await running();
    source.deliver(0, 0, 10);
    lanes[0]!.dies();
    await settle();
    return gate;
  }

  test("has no room and wakes nobody until it goes on", async () => {
    const gate = await restarting();
    expect(source.host!.room(0)).toBe(0);
    let wakes = 0;
    source.host!.whenRoom(0, () => wakes++);
    await settle(1_000);
    expect(wakes).toBe(0);
    gate.open();
    await settle();
    expect(source.host!.room(0)).toBeGreaterThan(0);
    expect(wakes).toBe(1);
  });

  test("is handed nothing of what was under way: the buffer comes back, the position is fetched again", async () => {
    const gate = await restarting();
    const posts = lanes[1]!.posts.length;
    source.deliver(0, 10, 20);
    expect([lanes[1]!.posts.length, admission.inFlight]).toEqual([posts, 0]);
    gate.open();
    await settle();
    expect(source.seeks).toEqual([{ stream: 0, position: 0n, attempt: 1 }]);
    source.deliver(0, 0, 20);
    lanes[1]!.seal("s", [span(0, 0, 20)]);
    await settle();
    expect(source.acks.at(-1)).toEqual([{ stream: 0, next: 20n }]);
  });

  test("waits for its own sets only, not for those of a lane whose store is slow", async () => {
    await running(2, {}, 2);
    source.deliver(0, 0, 10);
    source.deliver(1, 0, 10);
    coverage.coverGates.push(new Gate());
    lanes[1]!.seal("slow", [span(1, 0, 10)]);
    await settle();
    lanes[0]!.dies();
    await settle();
    expect(source.seeks).toEqual([{ stream: 0, position: 0n, attempt: 1 }]);
  });
});

describe("an outage of the sink", () => {
  const full = { code: "store.full", message: "full", at: null, hint: null, retry: true } as const;

  test("that several lanes meet is over once, when the last is out of it", async () => {
    await running(2, {}, 2);
    lanes[0]!.say({ t: "sink", failure: full });
    await settle(500);
    lanes[1]!.say({ t: "sink", failure: full });
    await settle(500);
    lanes[0]!.say({ t: "sink", failure: null });
    expect(of("sink.recovered")).toEqual([]);
    await settle(500);
    lanes[1]!.say({ t: "sink", failure: null });
    expect(of("sink.recovered").map((e) => e.ms)).toEqual([1_500]);
  });

  test("of a lane that dies in it is over with the next set that lands", async () => {
    await running();
    lanes[0]!.say({ t: "sink", failure: full });
    lanes[0]!.dies();
    await settle();
    expect(of("sink.recovered")).toEqual([]);
    source.deliver(0, 0, 10);
    lanes[1]!.seal("a", [span(0, 0, 10)]);
    await settle();
    expect(of("sink.recovered")).toHaveLength(1);
  });
});

describe("a lane that dies", () => {
  test("is replaced; its streams go back to what is covered, and its bytes in flight are free", async () => {
    await running(2);
    source.deliver(0, 0, 10);
    source.deliver(0, 10, 20);
    source.deliver(1, 0, 5);
    lanes[0]!.seal("s1", [span(0, 0, 10)]);
    await settle();
    lanes[0]!.dies();
    await settle();
    expect(lanes).toHaveLength(2);
    expect(lanes[0]!.killed).toBe(true);
    expect(admission.inFlight).toBe(0);
    expect(source.seeks).toEqual([
      { stream: 0, position: 10n, attempt: 1 },
      { stream: 1, position: 0n, attempt: 1 },
    ]);
    expect(lanes[1]!.posts.map((m) => m.t)).toEqual(["reset", "reset", "streams"]);
    expect(of("lane.died")).toHaveLength(1);
    expect(of("lane.restarted")).toMatchObject([{ lane: 0, restarts: 1 }]);
    expect(of("stream.rewound").map((e) => [e.partition, e.position, e.again])).toEqual([
      [0, 10n, 10],
      [1, 0n, 5],
    ]);
    // It goes on from there, under the new generation.
    source.deliver(0, 10, 30);
    lanes[1]!.seal("s2", [span(0, 10, 30)]);
    await settle();
    expect(source.acks.at(-1)).toEqual([{ stream: 0, next: 30n }]);
  });

  test("what it says after its death is not heard", async () => {
    await running();
    source.deliver(0, 0, 10);
    lanes[0]!.dies();
    lanes[0]!.seal("ghost", [span(0, 0, 10)]);
    await settle();
    expect(durable()).toEqual([]);
  });

  test("sets under way are settled before coverage is read again: nothing is read twice", async () => {
    const gate = new Gate();
    coverage.coverGates.push(gate);
    await running();
    source.deliver(0, 0, 10);
    source.deliver(0, 10, 20);
    lanes[0]!.seal("s1", [span(0, 0, 10)]);
    await settle();
    lanes[0]!.dies();
    await settle();
    expect(source.seeks).toEqual([]);
    gate.open();
    await settle();
    expect(source.seeks).toEqual([{ stream: 0, position: 10n, attempt: 1 }]);
  });

  test("again and again without getting anything done ends the run", async () => {
    await running();
    for (let i = 0; i < 5; i++) {
      lanes.at(-1)!.dies();
      await settle();
    }
    expect(outcome).toMatchObject({ code: "lane.unstable" });
    expect(lanes).toHaveLength(5);
  });

  test("for a reason that will not pass ends the run with it", async () => {
    await running();
    lanes[0]!.dies(false);
    await settle();
    expect(outcome).toMatchObject({ code: "lane.died" });
    expect(lanes).toHaveLength(1);
  });
});

describe("a set that is refused", () => {
  test("loses its staged files; the lane's streams go back to what is covered", async () => {
    coverage.refusals.set("s2", { ok: false, reason: "overlap", detail: "in part" });
    await running(2, {}, 2);
    source.deliver(0, 0, 20);
    source.deliver(1, 0, 20);
    lanes[0]!.seal("s1", [span(0, 0, 10)]);
    await settle();
    lanes[0]!.seal("s2", [span(0, 10, 20)]);
    await settle();
    expect(journal).toContain("discard s2.staged");
    expect(of("set.refused")).toMatchObject([{ id: "s2", reason: "overlap", detail: "in part" }]);
    expect(source.seeks).toEqual([{ stream: 0, position: 10n, attempt: 1 }]);
    expect(lanes[0]!.of("reset")).toMatchObject([{ epoch: 1, streams: [] }]);
    expect(lanes[1]!.of("reset")).toEqual([]);
    expect(outcome).toBeNull();
  });

  test("makes sets void that the lane sealed before it saw the reset", async () => {
    coverage.refusals.set("s1", { ok: false, reason: "overlap", detail: "" });
    await running();
    source.deliver(0, 0, 20);
    lanes[0]!.seal("s1", [span(0, 0, 10)]);
    await settle();
    lanes[0]!.seal("old", [span(0, 10, 20)], { epoch: 0 });
    await settle();
    expect(journal).toContain("discard old.staged");
    expect(durable()).toEqual(["intend s1"]);
  });

  test("because another process took over ends the run with that reason, unacknowledged", async () => {
    await running();
    source.deliver(0, 0, 10);
    coverage.fenced = new Failure("coverage.fenced", "pid 8 took over");
    coverage.intend = () => Promise.reject(coverage.fenced);
    lanes[0]!.seal("s1", [span(0, 0, 10)]);
    await settle();
    expect(outcome).toMatchObject({ code: "coverage.fenced" });
    expect(source.acks).toEqual([]);
    expect(journal.slice(-2)).toEqual(["close source", "close coverage"]);
  });
});

describe("a set that is refused by a store that is no longer ours", () => {
  test("ends the run instead of reading its records again", async () => {
    await running();
    source.deliver(0, 0, 10);
    coverage.refusals.set("s1", { ok: false, reason: "fenced", detail: "" });
    coverage.fenced = new Failure("coverage.fenced", "pid 8 took over");
    lanes[0]!.seal("s1", [span(0, 0, 10)]);
    await settle();
    expect(outcome).toMatchObject({ code: "coverage.fenced" });
    expect(source.seeks).toEqual([]);
  });
});

describe("signs of life", () => {
  test("go on through an outage, which is told", async () => {
    coverage.heartbeats.push(null, new Failure("coverage.unavailable", "down"), null);
    await running(1, { heartbeatMs: 1000 });
    await settle(3500);
    expect(journal.filter((j) => j === "heartbeat")).toHaveLength(3);
    expect(of("coverage.troubled")).toHaveLength(1);
    expect(outcome).toBeNull();
  });

  test("that find the store taken over end the run", async () => {
    coverage.heartbeats.push(new Failure("coverage.fenced", "pid 8"));
    await running(1, { heartbeatMs: 1000 });
    await settle(5000);
    expect(outcome).toMatchObject({ code: "coverage.fenced" });
    expect(of("coverage.fenced")).toHaveLength(1);
    expect(journal.filter((j) => j === "heartbeat")).toHaveLength(1);
  });

  test("stop with the run", async () => {
    await running(1, { heartbeatMs: 1000 });
    runner.drain("stop");
    await settle(10_000);
    expect(journal.filter((j) => j === "heartbeat")).toEqual([]);
  });
});

describe("records that the source lost", () => {
  test("are recorded before reading goes on behind them, and acknowledged as passed", async () => {
    await running();
    source.deliver(0, 0, 10);
    lanes[0]!.seal("s1", [span(0, 0, 10)]);
    await settle();
    await source.host!.lost(0, 10n, 50n, "retention");
    // That it is recorded is the durable event: the source may be told, also where no record follows.
    expect(journal.slice(-3)).toEqual(["lost 10-50 retention", "seek 0 to 50 attempt 1", "acknowledge 0@50"]);
    expect(of("records.lost")).toMatchObject([
      { topic: "t", partition: 0, from: 10n, next: 50n, reason: "retention" },
    ]);
    source.deliver(0, 50, 60);
    lanes[0]!.seal("s2", [span(0, 50, 60)]);
    await settle();
    expect(source.acks.at(-1)).toEqual([{ stream: 0, next: 60n }]);
  });

  test("while the lane is restarted: recorded, and the restart alone decides where reading goes on", async () => {
    const gate = new Gate();
    coverage.claimGates.push(new Gate(), gate);
    coverage.claimGates[0]!.open();
    await running();
    source.deliver(0, 0, 10);
    lanes[0]!.seal("s1", [span(0, 0, 10)]);
    await settle();
    lanes[0]!.dies();
    await settle();
    await source.host!.lost(0, 10n, 50n, "retention");
    expect(source.seeks).toEqual([]);
    gate.open();
    await settle();
    expect(source.seeks).toEqual([{ stream: 0, position: 50n, attempt: 1 }]);
    expect(outcome).toBeNull();
  });
});

describe("a stop", () => {
  test("stops fetching, lands and acknowledges what was read, closes in order, and says how much it was", async () => {
    await running(2, {}, 2);
    source.deliver(0, 0, 10);
    source.deliver(1, 0, 3);
    lanes[0]!.onRoll = () => lanes[0]!.seal("a", [span(0, 0, 10)], { reason: "drain" });
    lanes[1]!.onRoll = () => lanes[1]!.seal("b", [span(1, 0, 3)], { reason: "drain" });
    const before = journal.length;
    runner.drain("a signal");
    runner.drain("another");
    expect(source.host?.room(0)).toBe(0);
    await settle();
    expect(outcome as unknown).toEqual({ rows: 13, reason: "a signal" });
    const after = journal.slice(before);
    expect(after[0]).toBe("pause");
    expect(after.slice(-2)).toEqual(["close source", "close coverage"]);
    const acknowledged = after.findLastIndex((j) => j.startsWith("acknowledge"));
    expect(acknowledged).toBeGreaterThan(after.lastIndexOf("cover a"));
    expect(acknowledged).toBeGreaterThan(after.lastIndexOf("cover b"));
    expect(source.acks.flat().sort((x, y) => x.stream - y.stream)).toEqual([
      { stream: 0, next: 10n },
      { stream: 1, next: 3n },
    ]);
    expect(lanes.map((l) => [l.of("stop").length, l.killed])).toEqual([
      [1, true],
      [1, true],
    ]);
  });

  test("sends once more what the source had not taken", async () => {
    await running();
    source.ackFaults.push(new Failure("net.refused", "down"));
    source.deliver(0, 0, 10);
    lanes[0]!.seal("a", [span(0, 0, 10)]);
    await settle();
    expect(source.acks).toEqual([]);
    runner.drain("a signal");
    await settle();
    expect(source.acks).toEqual([[{ stream: 0, next: 10n }]]);
    expect(outcome).toMatchObject({ rows: 10 });
  });

  test("that a lane does not answer ends at its limit, and nothing more is acknowledged", async () => {
    await running();
    source.deliver(0, 0, 10);
    lanes[0]!.onRoll = null;
    runner.drain("a signal");
    await settle(29_000);
    expect(outcome).toBeNull();
    await settle(2_000);
    expect(outcome).toMatchObject({ code: "delivery.drain_timeout" });
    expect(source.acks).toEqual([]);
  });

  test("of the source by itself lands what was read", async () => {
    await running();
    source.deliver(0, 0, 10);
    lanes[0]!.onRoll = () => lanes[0]!.seal("a", [span(0, 0, 10)]);
    source.ends();
    await settle();
    expect(outcome as unknown).toEqual({ rows: 10, reason: "the source ended" });
    expect(source.acks).toEqual([[{ stream: 0, next: 10n }]]);
  });

  test("of the source with a failure lands what was read, then ends with it", async () => {
    await running();
    source.deliver(0, 0, 10);
    lanes[0]!.onRoll = () => lanes[0]!.seal("a", [span(0, 0, 10)]);
    source.fails(new Failure("kafka.topic_recreated", "anew"));
    await settle();
    expect(outcome).toMatchObject({ code: "kafka.topic_recreated" });
    expect(source.acks).toEqual([[{ stream: 0, next: 10n }]]);
    // The failure itself is told by whoever started the run, once.
    expect(of("failure")).toEqual([]);
    expect(of("pipeline.stopping").map((e) => e.reason)).toEqual(["the source failed: anew"]);
  });

  test("names the sink where that refused the streams", async () => {
    await running();
    const refusal = new Failure("kafka.unknown_topic", "no such topic");
    coverage.claim = () => Promise.reject(refusal);
    // The source ends with what it was told when it began them.
    const told = await source.begin(found(7)).catch((e: Failure) => e);
    source.fails(told as Failure);
    await settle();
    expect(of("pipeline.stopping").map((e) => e.reason)).toEqual(["the sink raw failed: no such topic"]);
    expect(outcome).toMatchObject({ code: "kafka.unknown_topic" });
  });

  test("during which the source fails lands what was read all the same, then ends with the failure", async () => {
    const gate = new Gate();
    coverage.coverGates.push(gate);
    await running();
    source.deliver(0, 0, 10);
    lanes[0]!.onRoll = () => lanes[0]!.seal("a", [span(0, 0, 10)]);
    runner.drain("a signal");
    await settle();
    source.fails(new Failure("kafka.group_denied", "denied"));
    await settle();
    expect(outcome).toBeNull();
    gate.open();
    await settle();
    expect(source.acks).toEqual([[{ stream: 0, next: 10n }]]);
    expect(outcome).toMatchObject({ code: "kafka.group_denied" });
  });

  test("for a stall ends at once", async () => {
    await running();
    runner.stalled(60_000);
    await settle();
    expect(outcome).toMatchObject({ code: "internal.stalled" });
  });
});

describe("until caught up", () => {
  const untilCaughtUp = { untilCaughtUp: true };

  test("ends once everything that was there is covered, without waiting for the interval", async () => {
    await running(1, untilCaughtUp);
    source.deliver(0, 0, 60);
    await settle();
    expect(outcome).toBeNull();
    sealOnce(lanes[0]!, "a", [span(0, 0, 100)]);
    source.deliver(0, 60, 100);
    await settle();
    expect(outcome).toMatchObject({ rows: 100 });
    expect(source.acks.at(-1)).toEqual([{ stream: 0, next: 100n }]);
  });

  test("ends well however little time a stop has: nobody waits for it", async () => {
    await running(1, { ...untilCaughtUp, drainMs: 0 });
    const slow = new Gate();
    source.ackFaults.push(slow);
    sealOnce(lanes[0]!, "a", [span(0, 0, 100)]);
    source.deliver(0, 0, 100);
    await settle(20_000);
    expect(outcome).toBeNull();
    slow.open();
    await settle();
    expect(outcome).toMatchObject({ rows: 100 });
  });

  test("ends at once where nothing is left to read, or there is no stream", async () => {
    coverage.ranges.set(key(0), [{ from: 0n, next: 100n }]);
    await running(1, untilCaughtUp);
    await settle();
    expect(outcome).toMatchObject({ rows: 0 });
  });

  test("ends where the source lost all that was left", async () => {
    await running(1, untilCaughtUp);
    await source.host!.lost(0, 0n, 100n, "retention");
    await settle();
    expect(outcome).toMatchObject({ rows: 0 });
  });

  test("partitions that could not be begun yet are waited for", async () => {
    coverage.ranges.set(key(0), [{ from: 0n, next: 100n }]);
    start(untilCaughtUp);
    await settle();
    source.host!.awaited(2);
    await source.begin(found(0));
    source.host!.awaited(1);
    await settle();
    expect(outcome).toBeNull();
    source.host!.awaited(1);
    await source.begin(found(1));
    source.host!.awaited(0);
    sealOnce(lanes[0]!, "a", [span(1, 0, 100)]);
    source.deliver(1, 0, 100);
    await settle();
    expect(outcome).toMatchObject({ rows: 100 });
  });

  test("a topic that is deleted unread is no hindrance: what was left of it is recorded as lost", async () => {
    await running(1, untilCaughtUp);
    source.deliver(0, 0, 40);
    sealOnce(lanes[0]!, "a", [span(0, 0, 40)]);
    await source.host!.gone(0);
    await settle();
    expect(coverage.losses).toMatchObject([{ stream: key(0), from: 40n, next: 100n, reason: "deleted" }]);
    expect(of("stream.ended").map((e) => e.partition)).toEqual([0]);
    expect(outcome).toMatchObject({ rows: 40 });
  });

  test("what a lane loses of a deleted topic cannot be read again: lost too, and no hindrance", async () => {
    await running(1, untilCaughtUp);
    source.deliver(0, 0, 40);
    await source.host!.gone(0);
    lanes[0]!.dies();
    await settle();
    expect(coverage.losses.map((l) => [l.from, l.next, l.reason])).toEqual([
      [40n, 100n, "deleted"],
      [0n, 40n, "deleted"],
    ]);
    expect(source.seeks).toEqual([]);
    expect(outcome).toMatchObject({ rows: 0 });
  });

  test("a lane that dies with the last records is no end: they are read again first", async () => {
    await running(1, untilCaughtUp);
    lanes[0]!.onRoll = () => lanes[0]!.dies();
    source.deliver(0, 0, 100);
    await settle();
    expect(outcome).toBeNull();
    expect(source.seeks).toEqual([{ stream: 0, position: 0n, attempt: 1 }]);
    expect(source.paused).toBe(false);
    sealOnce(lanes[1]!, "a", [span(0, 0, 100)]);
    source.deliver(0, 0, 100);
    await settle();
    expect(outcome).toMatchObject({ rows: 100 });
  });

  test("last records that cannot be read are no end either", async () => {
    await running(1, untilCaughtUp);
    lanes[0]!.onRoll = () => {
      lanes[0]!.onRoll = () => {};
      lanes[0]!.broken(0, 0, 90n);
      lanes[0]!.seal("most", [span(0, 0, 90)]);
    };
    source.deliver(0, 0, 100);
    await settle();
    expect(outcome).toBeNull();
    sealOnce(lanes[0]!, "rest", [span(0, 90, 100)]);
    source.deliver(0, 90, 100);
    await settle();
    expect(outcome).toMatchObject({ rows: 100 });
  });
});

describe("streams of a group", () => {
  const group = async () => {
    source.epoch = 7;
    await running(2, {}, 1);
    source.deliver(0, 0, 20);
    source.deliver(1, 0, 30);
    await settle();
  };

  test("that are released land with the files of those that stay, are acknowledged, and only then let go", async () => {
    await group();
    sealOnce(lanes[0]!, "s1", [span(0, 0, 20), span(1, 0, 30)]);
    let released = false;
    void source.host!.release([1]).then(() => {
      released = true;
    });
    await settle();
    expect(released).toBe(true);
    expect(lanes[0]!.of("roll")).toMatchObject([{ reason: "revoke" }]);
    expect(durable().slice(-4)).toEqual([
      "intend s1",
      "publish s1.parquet",
      "cover s1",
      "acknowledge 0@20 1@30",
    ]);
    expect(lanes[0]!.of("forget")).toEqual([{ t: "forget", streams: [1] }]);
    expect(of("stream.ended")).toMatchObject([{ partition: 1 }]);
    // The one that stays was not moved, and reads on.
    expect(source.seeks).toEqual([]);
    source.deliver(0, 20, 25);
    expect(ledger.state(0).delivered).toBe(25n);
  });

  test("are not let go before the broker has their position", async () => {
    await group();
    const gate = new Gate();
    source.ackFaults.push(gate);
    sealOnce(lanes[0]!, "s1", [span(0, 0, 20), span(1, 0, 30)]);
    let released = false;
    void source.host!.release([1]).then(() => {
      released = true;
    });
    await settle();
    expect(journal.at(-1)).toBe("acknowledge 0@20 1@30");
    expect(released).toBe(false);
    gate.open();
    await settle();
    expect(released).toBe(true);
  });

  test("that are lost go with their open files; those that stay are read again from what is covered", async () => {
    await group();
    await source.host!.abandon([1]);
    await settle();
    expect(lanes[0]!.of("reset")).toMatchObject([{ streams: [] }]);
    expect(source.seeks).toEqual([{ stream: 0, position: 0n, attempt: 1 }]);
    // A set that the lane sealed before it saw the reset is void.
    lanes[0]!.seal("late", [span(0, 0, 20), span(1, 0, 30)], { epoch: 0 });
    await settle();
    expect(journal).toContain("discard late.staged");
    expect(journal).not.toContain("intend late");
  });

  test("that are lost while their set is under way: it is settled, and nothing of it counts twice", async () => {
    await group();
    const gate = new Gate();
    coverage.coverGates.push(gate);
    lanes[0]!.seal("s1", [span(0, 0, 20), span(1, 0, 30)]);
    await settle();
    let abandoned = false;
    void source.host!.abandon([1]).then(() => {
      abandoned = true;
    });
    await settle();
    expect(abandoned).toBe(false);
    gate.open();
    await settle();
    expect(abandoned).toBe(true);
    expect(ledger.state(0).committed).toBe(20n);
    expect(outcome).toBeNull();
  });

  test("come back as other streams under the same key", async () => {
    await group();
    await source.host!.abandon([1]);
    await settle();
    await source.begin(found(1));
    source.deliver(2, 0, 10);
    lanes[0]!.seal("s2", [span(1, 0, 10)]);
    await settle();
    expect(durable().slice(-1)).toEqual(["acknowledge 2@10"]);
  });

  test("of a set that was fenced are claimed again only after the broker confirmed us, and without those lost by then", async () => {
    coverage.refusals.set("s1", { ok: false, reason: "fenced", detail: "generation 1" });
    await group();
    source.confirming = new Gate();
    lanes[0]!.seal("s1", [span(0, 0, 20), span(1, 0, 30)]);
    await settle();
    const claims = () => journal.filter((j) => j.startsWith("claim")).length;
    const before = claims();
    expect(journal).toContain("confirmation");
    // The answer says that we were out: one is somebody else's by now.
    void source.host!.abandon([1]);
    await settle();
    expect(claims()).toBe(before);
    source.confirming.open();
    await settle();
    expect(journal.at(-1)).toBe("seek 0 to 0 attempt 1");
    expect(journal.filter((j) => j.startsWith("claim")).at(-1)).toBe("claim 1");
  });

  test("a release waits for a lane that is being taken back", async () => {
    await group();
    source.confirming = new Gate();
    lanes[0]!.dies();
    await settle();
    let released = false;
    void source.host!.release([1]).then(() => {
      released = true;
    });
    await settle();
    expect(released).toBe(false);
    source.confirming.open();
    await settle();
    expect(released).toBe(true);
    // It had nothing of them any more: another member reads them from what is covered.
    expect(source.acks).toEqual([]);
  });

  test("a claim behind a later epoch is made once more when the broker confirms us again", async () => {
    await group();
    const claim = coverage.claim.bind(coverage);
    const epochs: (number | null)[] = [];
    coverage.claim = async (streams: readonly string[], epoch: number | null = null) => {
      epochs.push(epoch);
      if (epoch !== null) throw new Failure("coverage.epoch_behind", "claimed under a later epoch");
      return claim(streams);
    };
    lanes[0]!.dies();
    await settle();
    expect(epochs).toEqual([7, null]);
    expect(journal.filter((j) => j === "confirmation").length).toBe(2);
    expect(outcome).toBeNull();
  });
});
