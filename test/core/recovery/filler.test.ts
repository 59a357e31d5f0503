/**
 * Goal: a process that fills windows keeps no window that it does not fill, and a sink that hangs costs the others nothing.
 * Method: coverages that write down what they are asked for, on a clock that the test moves.
 */
import { expect, test } from "bun:test";
import { LEAVE_MS } from "../../../src/core/coverage/outage.ts";
import { normalRanges, subtractRanges } from "../../../src/core/coverage/ranges.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { TwgEvent } from "../../../src/core/observe/events.ts";
import type { LeasedWindow, Range, WindowCoverage } from "../../../src/core/ports/coverage.ts";
import type { Span } from "../../../src/core/records/stream.ts";
import { type Backlog, Filler, type FillJob, type FillSink } from "../../../src/core/recovery/filler.ts";
import { ManualClock } from "../../brokers/kafka/manual-clock.ts";

const STREAM = "kafka/c/orders/0/0";
const OPTIONS = { windowBytes: 1000, heartbeatMs: 1_000, retryMs: 500, patienceMs: 10_000 };
const span = (from: number, next: number) => ({ from: BigInt(from), next: BigInt(next) });

class Place implements WindowCoverage {
  readonly fenced = null;
  has: readonly Range[] = [];
  held: readonly LeasedWindow[] = [];
  beats = 0;
  /** What others have. */
  taken = false;
  hangs = false;

  async leaseWindows(wanted: readonly Span[]): Promise<readonly LeasedWindow[]> {
    this.held = this.taken
      ? []
      : wanted.map(({ stream, from, next }) => ({
          ...{ stream, range: { from, next }, covered: this.has },
          authority: { kind: "lease", window: "w", lease: 1, stream },
        }));
    return this.held;
  }
  othersHold = async () => [] as readonly Span[];
  async releaseWindows(): Promise<void> {
    this.held = [];
  }
  holds = () => true;
  covered = async () => this.has;
  heartbeat(): Promise<void> {
    this.beats++;
    return this.hangs ? new Promise(() => {}) : Promise.resolve();
  }
  cannotOpen: Failure | null = null;
  closed = 0;
  async open(): Promise<void> {
    if (this.cannotOpen !== null) throw this.cannotOpen;
  }
  close(): Promise<void> {
    this.closed++;
    return this.hangs ? new Promise(() => {}) : Promise.resolve();
  }
  claim = () => Promise.reject(new Error("not asked for here"));
  lease = () => Promise.reject(new Error("not asked for here"));
  topic = async () => null;
  rememberTopic = async (_: string, memory: { topicId: string; incarnation: number }) => memory;
  async recordLost(): Promise<void> {}
  async rememberOrigins(): Promise<void> {}
}

/** All lack [0, 10), which one raw set has. */
function backlogOf(places: readonly (readonly [string, Place])[]): Backlog {
  const lacks = places
    .filter(([, p]) => p.has.length === 0)
    .map(([name]) => [name, new Map([[STREAM, normalRanges([span(0, 10)])]])] as const);
  const spans = [{ stream: STREAM, ...span(0, 10) }];
  return {
    lacks: new Map(lacks),
    index: [{ id: "s", targets: [], spans, rows: 10, bytes: 100 }],
    away: new Map(),
  };
}

/** Lets everything go on that waits for nothing but its turn. */
async function settle(): Promise<void> {
  for (let i = 0; i < 200; i++) await Promise.resolve();
}

test("a window of what may not be filled yet is given back at once", async () => {
  const clock = new ManualClock();
  const [first, after] = [new Place(), new Place()];
  const places = [["first", first] as const, ["after", after] as const];
  // Another process has what the second one comes after.
  first.taken = true;
  const sinks: FillSink[] = [
    { name: "first", after: [], coverage: first },
    { name: "after", after: [0], coverage: after },
  ];
  const parts = { clock, look: async () => backlogOf(places), run: async () => {} };
  const filler = new Filler(sinks, OPTIONS, parts);
  const done = filler.run();
  await settle();
  expect(after.held).toEqual([]);
  for (let i = 0; i < 20; i++) {
    clock.advance(1_000);
    await settle();
  }
  expect([...(await done).left]).toEqual([
    ["first", 10n],
    ["after", 10n],
  ]);
});

test("windows are asked for around what others have", async () => {
  const clock = new ManualClock();
  const place = new Place();
  place.othersHold = async () => [{ stream: STREAM, ...span(0, 4) }];
  const asked: (readonly Span[])[] = [];
  const grants = place.leaseWindows.bind(place);
  place.leaseWindows = (wanted) => {
    asked.push(wanted);
    return grants(wanted);
  };
  const look = async () => backlogOf([["sink", place]]);
  const run = async (): Promise<void> => {
    place.has = [span(0, 10)];
  };
  await new Filler([{ name: "sink", after: [], coverage: place }], OPTIONS, { clock, look, run }).run();
  expect(asked).toEqual([[{ stream: STREAM, ...span(4, 10) }]]);
});

test("a sink that cannot say what others have is left out, and asked for nothing", async () => {
  const clock = new ManualClock();
  const [gone, well] = [new Place(), new Place()];
  const cause = new Failure("net.refused", "nobody listens");
  gone.othersHold = () => Promise.reject(cause);
  gone.leaseWindows = () => Promise.reject(new Error("not asked for here"));
  const places = [["gone", gone] as const, ["well", well] as const];
  const sinks: FillSink[] = places.map(([name, coverage]) => ({ name, after: [], coverage }));
  const run = async (): Promise<void> => {
    well.has = [span(0, 10)];
  };
  const look = async () => backlogOf(places);
  const { left, failed } = await new Filler(sinks, OPTIONS, { clock, look, run }).run();
  expect([[...left], [...failed]]).toEqual([
    [
      ["gone", 10n],
      ["well", 0n],
    ],
    [["gone", cause]],
  ]);
});

test("a sink whose server hangs keeps no other from telling that we live", async () => {
  const clock = new ManualClock();
  const [hung, well] = [new Place(), new Place()];
  hung.hangs = true;
  const places = [["hung", hung] as const, ["well", well] as const];
  const sinks: FillSink[] = places.map(([name, coverage]) => ({ name, after: [], coverage }));
  const ended = Promise.withResolvers<void>();
  const jobs: FillJob[] = [];
  const run = (job: FillJob): Promise<void> => {
    jobs.push(job);
    return ended.promise;
  };
  const filler = new Filler(sinks, OPTIONS, { clock, look: async () => backlogOf(places), run });
  void filler.run();
  await settle();
  for (let i = 0; i < 10; i++) {
    clock.advance(1_000);
    await settle();
  }
  expect([jobs.length, hung.beats, well.beats]).toEqual([1, 1, 10]);
});

test("a sink whose coverage cannot be read any more is not taken for filled", async () => {
  const clock = new ManualClock();
  const [gone, well] = [new Place(), new Place()];
  const places = [["gone", gone] as const, ["well", well] as const];
  const sinks: FillSink[] = places.map(([name, coverage]) => ({ name, after: [], coverage }));
  const cause = new Failure("net.refused", "nobody listens");
  let isAway = false;
  const look = async (): Promise<Backlog> => {
    const { lacks, ...rest } = backlogOf(places);
    if (!isAway) return { lacks, ...rest };
    const others = new Map([...lacks].filter(([name]) => name !== "gone"));
    return { ...rest, lacks: others, away: new Map([["gone", cause]]) };
  };
  const run = async ({ sinks: taking }: FillJob): Promise<void> => {
    isAway = true;
    for (const { sink } of taking) if (sink === 1) well.has = [span(0, 10)];
  };
  const { left, failed, failure } = await new Filler(sinks, OPTIONS, { clock, look, run }).run();
  expect([[...left], [...failed], failure]).toEqual([
    [
      ["gone", 10n],
      ["well", 0n],
    ],
    [["gone", cause]],
    null,
  ]);
});

test("windows are told with what came of them, also where a sink takes nothing; that one is left out", async () => {
  const clock = new ManualClock();
  const [well, idle] = [new Place(), new Place()];
  const places = [["well", well] as const, ["idle", idle] as const];
  const sinks: FillSink[] = places.map(([name, coverage]) => ({ name, after: [], coverage }));
  const events: TwgEvent[] = [];
  const run = async (): Promise<void> => {
    clock.advance(1_000);
    well.has = [span(0, 10)];
  };
  const observer = { emit: (e: TwgEvent) => events.push(e) };
  const filler = new Filler(sinks, OPTIONS, { clock, look: async () => backlogOf(places), run, observer });
  const { left, failed } = await filler.run();
  expect([[...left], [...failed]]).toEqual([
    [
      ["well", 0n],
      ["idle", 10n],
    ],
    [["idle", null]],
  ]);
  const leased = (sink: string) => ({
    ...{ e: "recovery.leased", sink, windows: 1, positions: 10n },
    at: ["orders/0 [0, 10)"],
  });
  const filled = (sink: string, positions: bigint) => ({
    ...{ e: "recovery.filled", sink, windows: 1, positions, wanted: 10n, ms: 1_000 },
  });
  expect(events).toEqual([
    ...[leased("well"), leased("idle"), filled("well", 10n), filled("idle", 0n)],
    ...[leased("idle"), filled("idle", 0n)],
  ] as TwgEvent[]);
});

test("whatever a run touched it closes: a sink that cannot be opened, and where not even a look succeeds", async () => {
  const clock = new ManualClock();
  const [refused, well] = [new Place(), new Place()];
  refused.cannotOpen = new Failure("kafka.coverage_topic", "the topic cannot hold coverage");
  const places = [["refused", refused] as const, ["well", well] as const];
  const sinks: FillSink[] = places.map(([name, coverage]) => ({ name, after: [], coverage }));
  const run = async (): Promise<void> => {
    well.has = [span(0, 10)];
  };
  const { failed } = await new Filler(sinks, OPTIONS, {
    clock,
    look: async () => backlogOf(places),
    run,
  }).run();
  expect([[...failed], refused.closed, well.closed]).toEqual([[["refused", refused.cannotOpen]], 1, 1]);

  const blind = new Failure("net.refused", "nobody listens");
  const looksInVain = new Filler(sinks, OPTIONS, { clock, look: () => Promise.reject(blind), run });
  expect(await looksInVain.run().catch((e) => e)).toBe(blind);
  expect([refused.closed, well.closed]).toEqual([2, 2]);
});

test("a sink that hangs keeps no run from its end", async () => {
  const clock = new ManualClock();
  const [hung, well] = [new Place(), new Place()];
  hung.hangs = true;
  const places = [["hung", hung] as const, ["well", well] as const];
  const sinks: FillSink[] = places.map(([name, coverage]) => ({ name, after: [], coverage }));
  const run = (): Promise<void> => {
    // A beat of it is under way, and is never answered.
    clock.advance(1_000);
    for (const [, place] of places) place.has = [span(0, 10)];
    return settle();
  };
  const done = new Filler(sinks, OPTIONS, { clock, look: async () => backlogOf(places), run }).run();
  for (let i = 0; i < 10; i++) {
    await settle();
    clock.advance(LEAVE_MS);
  }
  expect([...(await done).left.values(), hung.beats, hung.closed, well.closed]).toEqual([0n, 0n, 1, 1, 1]);
});

test("what a sink never takes does not keep it from what is newer", async () => {
  const clock = new ManualClock();
  const picky = new Place();
  const spans = [span(0, 10), span(10, 20)].map((s) => ({ stream: STREAM, ...s }));
  const look = async (): Promise<Backlog> => ({
    lacks: new Map([["picky", new Map([[STREAM, subtractRanges([span(0, 20)], normalRanges(picky.has))]])]]),
    // Each more than a window.
    index: spans.map((s, n) => ({ id: `s${n}`, targets: [], spans: [s], rows: 10, bytes: 2_000 })),
    away: new Map(),
  });
  const tried: string[] = [];
  const run = async ({ wanted }: FillJob): Promise<void> => {
    const [first] = wanted.get(STREAM)!;
    tried.push(`${first!.from}`);
    if (first!.from === 10n) picky.has = [span(10, 20)];
  };
  const sinks: FillSink[] = [{ name: "picky", after: [], coverage: picky }];
  const { left, failed } = await new Filler(sinks, OPTIONS, { clock, look, run }).run();
  expect([tried, [...left], [...failed]]).toEqual([["0", "0", "10"], [["picky", 10n]], [["picky", null]]]);
});

test("windows end where the plan of their records does; what no plan is there for is left, and told", async () => {
  const clock = new ManualClock();
  const typed = new Place();
  const gone = new Failure("recovery.plan_missing", "it is not there");
  const at = (from: number, plan: string | null) => ({ from: BigInt(from), plan });
  const look = async (): Promise<Backlog> => {
    const lacks = subtractRanges([span(0, 10)], normalRanges(typed.has));
    return {
      ...backlogOf([["typed", typed]]),
      lacks: new Map(lacks.length === 0 ? [] : [["typed", new Map([[STREAM, lacks]])]]),
      pieces: new Map([["typed", new Map([[STREAM, [at(2, "a"), at(4, "x"), at(6, "a"), at(9, null)]]])]]),
      unusable: new Map([["x", gone]]),
    };
  };
  const done: unknown[] = [];
  const run = async ({ wanted, plan }: FillJob): Promise<void> => {
    const ranges = [...wanted.values()].flat();
    done.push([plan, ranges.map((r) => `${r.from}-${r.next}`).join()], typed.held.length);
    typed.has = normalRanges([...typed.has, ...ranges]);
  };
  const sinks: FillSink[] = [{ name: "typed", after: [], coverage: typed }];
  const { left, failure } = await new Filler(sinks, OPTIONS, { clock, look, run }).run();
  expect(done).toEqual([[null, "0-2"], 1, ["a", "2-4"], 1, ["a", "6-9"], 1, [null, "9-10"], 1]);
  expect([[...left], failure]).toEqual([[["typed", 2n]], gone]);
});

test("an earlier plan of which a sink takes nothing is passed by, however long it held", async () => {
  const clock = new ManualClock();
  const typed = new Place();
  const spans = Array.from({ length: 10 }, (_, i) => ({ stream: STREAM, ...span(10 * i, 10 * i + 10) }));
  const look = async (): Promise<Backlog> => {
    const lacks = subtractRanges([span(0, 100)], normalRanges(typed.has));
    return {
      lacks: new Map(lacks.length === 0 ? [] : [["typed", new Map([[STREAM, lacks]])]]),
      // Each more than a window.
      index: spans.map((s, n) => ({ id: `s${n}`, targets: [], spans: [s], rows: 10, bytes: 2_000 })),
      away: new Map(),
      pieces: new Map([
        [
          "typed",
          new Map([
            [
              STREAM,
              [
                { from: 0n, plan: "old" },
                { from: 80n, plan: null },
              ],
            ],
          ]),
        ],
      ]),
    };
  };
  const tried: (string | null)[] = [];
  const run = async ({ wanted, plan }: FillJob): Promise<void> => {
    tried.push(plan);
    if (plan === null) typed.has = normalRanges([...typed.has, ...[...wanted.values()].flat()]);
  };
  const sinks: FillSink[] = [{ name: "typed", after: [], coverage: typed }];
  const { left, failed } = await new Filler(sinks, OPTIONS, { clock, look, run }).run();
  expect(tried).toEqual([...Array.from({ length: 8 }, () => "old"), null, null]);
  expect([[...left], [...failed]]).toEqual([[["typed", 80n]], [["typed", null]]]);
});

test("what others filled before the first look is no gap, and nothing that was filled here", async () => {
  const clock = new ManualClock();
  const [theirs, ours] = [new Place(), new Place()];
  const places = [["theirs", theirs] as const, ["ours", ours] as const];
  const sinks: FillSink[] = places.map(([name, coverage]) => ({ name, after: [], coverage }));
  theirs.has = [span(0, 10)];
  const run = async (): Promise<void> => {
    ours.has = [span(0, 10)];
  };
  const look = async () => backlogOf(places);
  const { left, filled } = await new Filler(sinks, OPTIONS, { clock, look, run }).run();
  expect([[...left], filled]).toEqual([[["ours", 0n]], 10n]);
});

test("what others fill while it waits for them is not said to be filled here", async () => {
  const clock = new ManualClock();
  const place = new Place();
  place.taken = true;
  const sinks: FillSink[] = [{ name: "sink", after: [], coverage: place }];
  const run = () => Promise.reject(new Error("others are at it"));
  const look = async () => backlogOf([["sink", place]]);
  const done = new Filler(sinks, OPTIONS, { clock, look, run }).run();
  await settle();
  place.has = [span(0, 10)];
  for (let i = 0; i < 20; i++) {
    clock.advance(1_000);
    await settle();
  }
  const { left, filled } = await done;
  expect([[...left], filled]).toEqual([[["sink", 0n]], 0n]);
});

test("what landed before raw could not be read counts as filled", async () => {
  const clock = new ManualClock();
  const place = new Place();
  const sinks: FillSink[] = [{ name: "sink", after: [], coverage: place }];
  const gone = new Failure("recovery.raw_missing", "it cannot be read");
  const run = (): Promise<void> => {
    place.has = [span(0, 4)];
    return Promise.reject(gone);
  };
  const look = async (): Promise<Backlog> => ({
    ...backlogOf([["sink", new Place()]]),
    lacks: new Map([["sink", new Map([[STREAM, subtractRanges([span(0, 10)], normalRanges(place.has))]])]]),
  });
  const { left, filled, failure } = await new Filler(sinks, OPTIONS, { clock, look, run }).run();
  expect([[...left], filled, failure]).toEqual([[["sink", 6n]], 4n, gone]);
});
