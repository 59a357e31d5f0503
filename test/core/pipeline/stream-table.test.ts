/** Who the streams of a run are, under which right they are written, and where they begin. Coverage is a fake. */
import { beforeEach, describe, expect, test } from "bun:test";
import { Ledger } from "../../../src/core/delivery/ledger.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { TwgEvent } from "../../../src/core/observe/events.ts";
import { type StartRules, StreamTable } from "../../../src/core/pipeline/stream-table.ts";
import { FakeCoverage, found, key, span } from "./fakes.ts";

let journal: string[];
let coverage: FakeCoverage;
let ledger: Ledger;
let events: TwgEvent[];

const RULES: StartRules = { start: "earliest", acceptGap: false, retention: "fail", onRecreated: "fail" };

function table(rules: Partial<StartRules> = {}, lanes = 1): StreamTable {
  ledger = new Ledger();
  return new StreamTable({ ...RULES, ...rules }, lanes, {
    coverage,
    ledger,
    observer: { emit: (e) => void events.push(e) },
  });
}

async function refused(work: Promise<unknown>): Promise<Failure> {
  const e: unknown = await work.then(
    () => new Error("was not refused"),
    (e) => e,
  );
  if (!(e instanceof Failure)) throw e;
  return e;
}

beforeEach(() => {
  journal = [];
  events = [];
  coverage = new FakeCoverage(journal);
});

describe("beginning", () => {
  test("streams go round the lanes, and go on doing so for those found later", async () => {
    const t = table({}, 2);
    await t.begin([found(0), found(1), found(2)]);
    await t.begin([found(3), found(4)]);
    expect([0, 1, 2, 3, 4].map((s) => t.get(s).lane)).toEqual([0, 1, 0, 1, 0]);
    expect(() => t.get(5)).toThrow("there is no stream 5");
  });

  test("the start by timestamp is where the source resolved it, else the end", async () => {
    const t = table({ start: "timestamp" });
    const begun = await t.begin([found(0, { startAt: 40n }), found(1)]);
    expect(begun.map((b) => b.start.position)).toEqual([40n, 100n]);
  });

  test("a start at the end leaves out nothing of a partition that came while the source ran", async () => {
    const t = table({ start: "latest" });
    const begun = await t.begin([found(0), found(1, { appeared: true, earliest: 3n })]);
    expect(begun.map((b) => b.start.position)).toEqual([100n, 3n]);
  });

  test("where the configured start decided, the origin is durable before anybody may read", async () => {
    const begun = await table({ start: "latest" }).begin([found(0), found(1, { committed: 0n })]);
    expect(journal).toEqual(["topic kafka/c/t id-1 0", "claim 2", "origin 100", "origin 0"]);
    expect(begun.map((b) => b.start.position)).toEqual([100n, 0n]);
    // A run that died before it covered anything goes on there, not at a later end: neither where the start decided,
    // nor where a commit did that is gone by now.
    const again = await table({ start: "latest" }).begin([
      found(0, { latest: 900n }),
      found(1, { latest: 900n }),
    ]);
    expect(again.map((b) => b.start.position)).toEqual([100n, 0n]);
  });

  test("the leader epoch that coverage knows goes with the position that it is of, and with no other", async () => {
    for (const p of [0, 1]) coverage.ranges.set(key(p), [{ from: 0n, next: 30n }]);
    coverage.tips.set(key(0), { position: 30n, epoch: 4 }).set(key(1), { position: 20n, epoch: 4 });
    const begun = await table().begin([found(0), found(1)]);
    expect(begun.map((b) => [b.start.position, b.start.leaderEpoch])).toEqual([
      [30n, 4],
      [30n, undefined],
    ]);
  });

  test("spans are told with the leader epochs that the source knows", async () => {
    const t = table();
    await t.begin([found(0), found(1)]);
    const spans = t.withEpochs([span(0, 0, 5), span(1, 0, 7)], (stream, next) =>
      stream === 0 ? Number(next) : null,
    );
    expect(spans).toEqual([{ ...span(0, 0, 5), leaderEpoch: 5 }, span(1, 0, 7)]);
  });

  test("that cannot be recorded has begun nothing: no position may move for what is not durable", async () => {
    coverage.ranges.set(key(0), [{ from: 0n, next: 10n }]);
    for (const call of ["recordLost", "rememberOrigins"] as const) {
      coverage[call] = () => Promise.reject(new Failure("coverage.unavailable", "down"));
      const t = table({ acceptGap: true });
      await refused(t.begin([found(0, { committed: 30n })]));
      expect([ledger.states(), ledger.pending()]).toEqual([[], []]);
      expect(() => t.get(0)).toThrow();
    }
  });

  test("a gap is refused; accepted it is recorded before anybody may read, and told", async () => {
    coverage.ranges.set(key(0), [{ from: 0n, next: 10n }]);
    const f = await refused(table().begin([found(0, { committed: 30n })]));
    expect([f.code, f.at]).toEqual(["delivery.commit_beyond_coverage", "t/0"]);
    expect(coverage.losses).toEqual([]);
    const begun = await table({ acceptGap: true }).begin([found(0, { committed: 30n })]);
    expect(begun.map((b) => [b.start.position, b.behind])).toEqual([[30n, false]]);
    expect(coverage.losses).toMatchObject([{ from: 10n, next: 30n, reason: "accepted_gap" }]);
    expect(events.filter((e) => e.e === "records.lost")).toMatchObject([
      { topic: "t", partition: 0, from: 10n, next: 30n },
    ]);
  });

  test("records that retention removed are refused, or recorded by policy", async () => {
    coverage.ranges.set(key(0), [{ from: 0n, next: 10n }]);
    expect((await refused(table().begin([found(0, { earliest: 50n })]))).code).toBe("delivery.retention_gap");
    const begun = await table({ retention: "skip" }).begin([found(0, { earliest: 50n })]);
    expect(begun[0]?.start.position).toBe(50n);
    expect(coverage.losses).toMatchObject([{ from: 10n, next: 50n, reason: "retention" }]);
  });

  test("what is durable and not acknowledged is pending, whether a commit lags or is missing", async () => {
    coverage.ranges.set(key(0), [{ from: 0n, next: 10n }]);
    coverage.ranges.set(key(1), [{ from: 5n, next: 10n }]);
    const begun = await table().begin([found(0, { committed: 4n }), found(1), found(2)]);
    expect(begun.map((b) => b.behind)).toEqual([true, true, false]);
    expect(ledger.pending()).toEqual([
      { stream: 0, next: 10n },
      { stream: 1, next: 10n },
    ]);
  });
});

describe("a topic", () => {
  const renewed = { topicId: "id-2", latest: 50n, committed: 1000n };

  test("that was deleted and made anew stops the run, which says how to go on", async () => {
    await table().begin([found(0)]);
    const f = await refused(table().begin([found(0, renewed)]));
    expect([f.code, f.at]).toEqual(["kafka.topic_recreated", "t"]);
    expect(f.hint).toContain("id-1");
    expect(f.hint).toContain('on_recreated = "new_incarnation"');
    expect(coverage.topics.get("kafka/c/t")).toEqual({ topicId: "id-1", incarnation: 0 });
  });

  test("or begins a new incarnation from its start, whatever the old one had committed or covered", async () => {
    coverage.ranges.set(key(0), [{ from: 0n, next: 1000n }]);
    await table().begin([found(0, { latest: 1000n })]);
    const t = table({ onRecreated: "new_incarnation", start: "latest" });
    const begun = await t.begin([found(0, { ...renewed, earliest: 3n }), found(1, renewed)]);
    expect(begun.map((b) => [b.start.id.incarnation, b.start.position])).toEqual([
      [1, 3n],
      [1, 0n],
    ]);
    expect(t.get(0).key).toBe(key(0, 1));
    expect(coverage.topics.get("kafka/c/t")).toEqual({ topicId: "id-2", incarnation: 1 });
    expect(journal.filter((j) => j.startsWith("topic kafka/c/t id-2"))).toHaveLength(1);
  });

  test("made anew, and the run died before anything landed: the old commit still means nothing", async () => {
    await table().begin([found(0)]);
    const rules = { onRecreated: "new_incarnation" } as const;
    await table(rules).begin([found(0, renewed)]);
    const again = await table(rules).begin([found(0, renewed)]);
    expect(again.map((b) => [b.start.id.incarnation, b.start.position])).toEqual([[1, 0n]]);
    // Nor does it after the first cover, before the first commit.
    coverage.ranges.set(key(0, 1), [{ from: 0n, next: 20n }]);
    const covered = await table(rules).begin([found(0, renewed)]);
    expect(covered.map((b) => [b.start.position, b.start.stale, b.behind])).toEqual([[20n, true, true]]);
    // Another commit counts.
    const later = await table(rules).begin([found(0, { ...renewed, committed: 20n })]);
    expect(later.map((b) => [b.start.position, b.start.stale])).toEqual([[20n, false]]);
    const f = await refused(table(rules).begin([found(0, { ...renewed, committed: 40n })]));
    expect(f.code).toBe("delivery.commit_beyond_coverage");
  });

  test("without an id is taken for the same; once the broker gives one it is remembered", async () => {
    await table().begin([found(0, { topicId: null })]);
    await table().begin([found(0, { topicId: null })]);
    await table().begin([found(0, { topicId: "id-7" })]);
    expect(coverage.topics.get("kafka/c/t")).toEqual({ topicId: "id-7", incarnation: 0 });
    expect((await refused(table().begin([found(0, { topicId: "id-8" })]))).code).toBe(
      "kafka.topic_recreated",
    );
  });
});

describe("the rights of a set", () => {
  test("are one per stream of its spans, of the newest claim", async () => {
    const t = table();
    await t.begin([found(0), found(1)]);
    await t.reclaim(0);
    expect(t.authorities([span(0, 0, 1), span(1, 0, 1), span(0, 5, 6)])).toEqual([
      { kind: "generation", stream: key(0), generation: 2 },
      { kind: "generation", stream: key(1), generation: 2 },
    ]);
    expect(() => t.authorities([span(7, 0, 1)])).toThrow("not ours");
  });
});

describe("taking a lane's streams back", () => {
  test("only that lane's, to the first position that is neither covered nor lost, in a new attempt", async () => {
    const t = table({}, 2);
    await t.begin([found(0), found(1), found(2)]);
    ledger.deliver(0, 0, 0n, 50n);
    coverage.ranges.set(key(0), [
      { from: 0n, next: 10n },
      { from: 20n, next: 30n },
      { from: 40n, next: 45n },
    ]);
    coverage.losses.push({ stream: key(0), from: 10n, next: 20n, reason: "retention" });
    ledger.watermark(0, 77n);
    const begun = await t.reclaim(0);
    expect(begun.map((b) => b.laneStream)).toMatchObject([
      { stream: 0, position: 30n, attempt: 1, skip: [{ from: 40n, next: 45n }] },
      { stream: 2, position: 0n, attempt: 1, skip: [] },
    ]);
    expect(ledger.state(0)).toMatchObject({ attempt: 1, delivered: 30n, committed: 30n, end: 77n });
    expect(ledger.state(1)).toMatchObject({ attempt: 0 });
    expect(coverage.generations.get(key(1))).toBe(1);
  });

  test("reached: all that was there has been delivered, or covered", async () => {
    const t = table();
    await t.begin([found(0, { latest: 10n }), found(1, { latest: 0n })]);
    expect([t.reached("delivered"), t.reached("committed")]).toEqual([false, false]);
    ledger.deliver(0, 0, 0n, 12n);
    expect([t.reached("delivered"), t.reached("committed")]).toEqual([true, false]);
    ledger.seal([span(0, 0, 12)]);
    ledger.commit([span(0, 0, 12)]);
    expect(t.reached("committed")).toBe(true);
  });
});
