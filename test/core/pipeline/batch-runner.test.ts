/**
 * Goal: a batch job covers every row of every file once, whatever was covered before, gives no lane what was not hashed,
 * and ends with the first failure. Method: fakes of cutter, lanes, coverage and objects; the committer is real.
 */
import { beforeEach, expect, test } from "bun:test";
import { Committer } from "../../../src/core/delivery/committer.ts";
import { Failure, toWire } from "../../../src/core/failure/failure.ts";
import type { TwgEvent } from "../../../src/core/observe/events.ts";
import { BatchRunner } from "../../../src/core/pipeline/batch-runner.ts";
import type { BatchResult, BatchRunnerOptions } from "../../../src/core/pipeline/batch-runner-parts.ts";
import type {
  BatchLanePort,
  CutterPort,
  FileWork,
  FromBatchLane,
  FromCutter,
  PieceCounts,
  ToBatchLane,
  ToCutter,
} from "../../../src/core/ports/batch-lane.ts";
import { endSpan, fileStreamKey, PART_BYTES } from "../../../src/core/records/file-stream.ts";
import type { Span } from "../../../src/core/records/stream.ts";
import { SimTime } from "../../sim/clock.ts";
import { FakeCoverage, FakeObjects } from "./fakes.ts";

const BLOCK = 1 << 20;

class Port<To extends { t: string }, From> {
  readonly posts: To[] = [];
  killed = false;
  #handler: (m: From) => void = () => {};
  post(message: To): void {
    this.posts.push(message);
  }
  of<T extends To["t"]>(t: T): Extract<To, { t: T }>[] {
    return this.posts.filter((m) => m.t === t) as Extract<To, { t: T }>[];
  }
  onMessage(handler: (m: From) => void): void {
    this.#handler = handler;
  }
  say(m: From): void {
    this.#handler(m);
  }
  kill(): void {
    this.killed = true;
  }
}

/** Hashes at once: parts and checks are filled with the number of the content. */
class Lane extends Port<ToBatchLane, FromBatchLane> implements BatchLanePort {
  onRoll: () => void = () => {};

  override post(m: ToBatchLane): void {
    super.post(m);
    if (m.t === "roll") {
      this.onRoll();
      this.say({ t: "rolled" });
    }
    if (m.t !== "hash") return;
    const { file, from, to } = m.task;
    const parts = new Uint8Array(32 * Math.ceil((to - from) / PART_BYTES)).fill(contents[file]!);
    const blocks = new BigUint64Array(Math.ceil((to - from) / BLOCK)).fill(BigInt(contents[file]!));
    queueMicrotask(() => this.say({ t: "hashed", hashed: { file, from, parts, blocks } }));
  }

  done(file: number, counts: Partial<PieceCounts> = {}): void {
    const all = { rows: 0, rejected: 0, skipped: 0, ...counts };
    this.say({ t: "done", file, buffer: new ArrayBuffer(8), counts: all, samples: [] });
  }

  seal(id: string, ...spans: Span[]): void {
    const targets = [{ key: id, staging: `${id}.staged`, bytes: 1, rows: 1 }];
    const shape = { lane: 0, epoch: 0, covered: false, rows: 1, bytes: 1, openedAt: 0, sealMs: 0 };
    this.say({ t: "sealed", set: { id, targets, spans, reason: "drain", ...shape } });
  }
}

class Cutter extends Port<ToCutter, FromCutter> implements CutterPort {
  piece(file: number, firstRow: number, records: number, last = false, blocks: bigint[] = []): void {
    const piece = { file, buffer: new ArrayBuffer(8), end: 8, firstRow, records, line: 1, last };
    this.say({ t: "piece", piece, blocks: BigUint64Array.from(blocks) });
  }
  cut(file: number, rows: number, blocks: bigint[] = []): void {
    this.say({ t: "cut", file, rows, blocks: BigUint64Array.from(blocks) });
  }
}

let time: SimTime;
let journal: string[];
let events: TwgEvent[];
let coverage: FakeCoverage;
let contents: number[];
let lanes: Lane[];
let cutter: Cutter;
let runner: BatchRunner;
let groups: readonly number[] | null;
let outcome: BatchResult | Failure | null;

beforeEach(() => {
  time = new SimTime();
  journal = [];
  events = [];
  coverage = new FakeCoverage(journal);
  groups = null;
});

const settle = () => time.runUntil(() => false, time.nowMs);
const stream = (content: number, bytes = 100) =>
  fileStreamKey({ sha256: new Uint8Array(32 * Math.ceil(bytes / PART_BYTES)).fill(content).toHex(), bytes });
const rows = (content: number, from: number, next: number): Span => ({
  stream: stream(content),
  from: BigInt(from),
  next: BigInt(next),
});
const end = (content: number, n: number) => endSpan(stream(content), n);

/** A job over files with these contents. */
async function start(ids: number[], over: Partial<BatchRunnerOptions> = {}, bytes = 100): Promise<void> {
  contents = ids;
  outcome = null;
  lanes = [];
  cutter = new Cutter();
  const layout: FileWork["layout"] =
    groups === null ? { format: "ndjson", array: false } : { format: "parquet", groups };
  const works = ids.map(
    (_, file): FileWork => ({
      file,
      name: `f${file}`,
      path: `f${file}`,
      revision: null,
      bytes,
      compression: "none",
      encoding: "utf-8",
      layout,
    }),
  );
  const clock = time.clock(null);
  const observer = { emit: (e: TwgEvent) => void events.push(e) };
  const objects = new FakeObjects(journal);
  runner = new BatchRunner(
    works,
    {
      sink: "out",
      lanes: 1,
      credits: 3,
      heartbeatMs: 1e6,
      maxRejects: 0,
      ranked: false,
      blockBytes: BLOCK,
      columnsOf: () => 1,
      ...over,
    },
    {
      clock,
      coverage,
      committer: (listener) => new Committer({ sink: "out", coverage, objects, clock, observer, listener }),
      sweep: async () => void journal.push("sweep"),
      spawnLane: () => {
        const lane = new Lane();
        lanes.push(lane);
        return lane;
      },
      spawnCutter: () => cutter,
      digestOf: (parts) => parts.toHex(),
      observer,
      onSample: () => {},
    },
  );
  runner.run().then(
    (r) => {
      outcome = r;
    },
    (e) => {
      outcome = e;
    },
  );
  await settle();
}

const result = () => outcome as BatchResult;
const code = () => (outcome instanceof Failure ? outcome.code : `no failure: ${JSON.stringify(outcome)}`);

test("one file, from its hash to its coverage, each step after the one before", async () => {
  await start([1]);
  expect(journal).toEqual(["open", "claim 1", "sweep"]);
  expect(cutter.of("credit")).toHaveLength(3);
  expect(cutter.of("cut").map((m) => m.work.file)).toEqual([0]);
  expect(lanes[0]?.of("file")[0]).toMatchObject({ stream: stream(1), covered: [], ended: false });
  cutter.piece(0, 0, 10, true, [1n]);
  cutter.cut(0, 10);
  expect(lanes[0]?.of("roll")).toEqual([]);
  lanes[0]!.onRoll = () => lanes[0]!.seal("set", rows(1, 0, 10), end(1, 10));
  lanes[0]!.done(0, { rows: 10 });
  await settle();
  expect(journal.slice(3)).toEqual(["intend set", "publish set", "cover set", "close coverage"]);
  expect(result()).toMatchObject({
    files: 1,
    filesDone: 1,
    filesSkipped: 0,
    rows: 10,
    landed: 10,
    sets: 1,
    stopped: false,
  });
  expect(result()).toMatchObject({ bytes: 100, bytesDone: 100, twins: [] });
  expect([lanes[0]?.killed, cutter.killed]).toEqual([true, true]);
});

test("bytes that are not the hashed ones reach no lane", async () => {
  await start([1]);
  cutter.piece(0, 0, 10, true, [2n]);
  await settle();
  expect(code()).toBe("files.changed");
  expect(lanes[0]?.of("piece")).toEqual([]);
});

test("a file that ends before all hashed blocks has changed", async () => {
  await start([1]);
  cutter.cut(0, 0);
  await settle();
  expect(code()).toBe("files.changed");
});

test("a covered file is skipped, one that lacks its end is not", async () => {
  for (const s of [rows(1, 0, 5), end(1, 5), rows(2, 0, 5)]) coverage.add(s);
  await start([1, 2]);
  expect(cutter.of("cut").map((m) => m.work.file)).toEqual([1]);
  expect(runner.progress).toMatchObject({ filesSkipped: 1, skippedRows: 5 });
  expect(lanes[0]?.of("file")[0]).toMatchObject({ covered: [{ from: 0n, next: 5n }], ended: false });
  // Covered rows go back at once, but the last piece brings the end.
  cutter.piece(1, 0, 3, false, [2n]);
  expect(lanes[0]?.of("piece")).toHaveLength(0);
  expect(cutter.of("credit")).toHaveLength(4);
  cutter.piece(1, 3, 2, true);
  expect(lanes[0]?.of("piece")).toHaveLength(1);
});

test("a piece that is covered in part is read", async () => {
  coverage.add(rows(1, 0, 5));
  await start([1]);
  cutter.piece(0, 4, 2);
  expect(lanes[0]?.of("piece").map((m) => m.piece.firstRow)).toEqual([4]);
});

test("files of the same content land once", async () => {
  await start([1, 1]);
  cutter.piece(0, 0, 1, true, [1n]);
  lanes[0]!.done(0, { rows: 1 });
  cutter.cut(0, 1);
  await settle();
  expect(cutter.of("cut")).toHaveLength(1);
  expect(result().twins).toEqual([{ file: "f1", of: "f0" }]);
});

test("a file of no bytes is hashed by nobody, and still cut for its end", async () => {
  await start([1], {}, 0);
  expect(lanes[0]?.of("hash")).toEqual([]);
  expect(cutter.of("cut")).toHaveLength(1);
  cutter.cut(0, 0);
  await settle();
  expect(result()).toMatchObject({ filesDone: 1, stopped: false });
});

test("a large file is hashed by all lanes in whole parts", async () => {
  await start([1], { lanes: 2 }, 3 * PART_BYTES - 1);
  const tasks = lanes.flatMap((l) => l.of("hash").map((m) => [m.task.from, m.task.to]));
  expect(tasks).toEqual([
    [0, 2 * PART_BYTES],
    [2 * PART_BYTES, 3 * PART_BYTES - 1],
  ]);
  expect(lanes[1]?.of("file")[0]?.stream).toBe(stream(1, 3 * PART_BYTES - 1));
});

test("one file is cut at a time, and hashing is a few files ahead", async () => {
  await start([1, 2, 3, 4, 5, 6, 7]);
  expect(lanes[0]?.of("hash").map((m) => m.task.file)).toEqual([0, 1, 2, 3]);
  expect(cutter.of("cut")).toHaveLength(1);
  cutter.cut(0, 0, [1n]);
  await settle();
  expect(lanes[0]?.of("hash")).toHaveLength(5);
  expect(cutter.of("cut").map((m) => m.work.file)).toEqual([0, 1]);
});

test("a lane has two pieces at most, the idler one gets the next", async () => {
  await start([1], { lanes: 2 });
  for (let i = 0; i < 6; i++) cutter.piece(0, i, 1);
  const had = () => lanes.map((l) => l.of("piece").map((m) => m.piece.firstRow));
  expect(had()).toEqual([
    [0, 2],
    [1, 3],
  ]);
  lanes[1]!.done(0);
  expect(had()).toEqual([
    [0, 2],
    [1, 3, 4],
  ]);
  expect(cutter.of("credit")).toHaveLength(4);
});

test("more refused rows than allowed end the job, as many as allowed do not", async () => {
  await start([1], { maxRejects: 2 });
  cutter.piece(0, 0, 9);
  cutter.piece(0, 9, 9);
  lanes[0]!.done(0, { rows: 7, rejected: 2 });
  await settle();
  expect(outcome).toBeNull();
  lanes[0]!.done(0, { rows: 8, rejected: 1 });
  await settle();
  expect(code()).toBe("files.too_many_rejects");
  expect(journal.at(-1)).toBe("close coverage");
});

test("the first failure of any part ends the job with its code", async () => {
  const failure = toWire(new Failure("files.unreadable", "gone"));
  const cases: [() => void, string][] = [
    [() => lanes[0]!.say({ t: "dead", failure }), "files.unreadable"],
    [() => cutter.say({ t: "dead", failure }), "files.unreadable"],
    [() => lanes[0]!.seal("s", rows(1, 0, 1)), "coverage.fenced"],
  ];
  coverage.refusals.set("s", { ok: false, reason: "overlap", detail: "" });
  for (const [breaks, expected] of cases) {
    await start([1]);
    breaks();
    await settle();
    expect(code()).toBe(expected);
    expect([lanes[0]?.killed, cutter.killed]).toEqual([true, true]);
  }
});

test("a stop seals and covers what lanes hold, begins nothing more, and says so", async () => {
  await start([1, 2]);
  cutter.piece(0, 0, 3, false, [1n]);
  lanes[0]!.done(0, { rows: 3 });
  lanes[0]!.onRoll = () => lanes[0]!.seal("set", rows(1, 0, 3));
  runner.stop("signal");
  runner.stop("again");
  cutter.piece(0, 3, 3);
  await settle();
  expect(lanes[0]?.of("piece")).toHaveLength(1);
  expect(result()).toMatchObject({ stopped: true, landed: 3, filesDone: 0 });
  expect(coverage.ranges.get(stream(1))).toEqual([{ from: 0n, next: 3n }]);
  expect(events.filter((e) => e.e === "pipeline.stopping")).toHaveLength(1);
});

test("row groups go to lanes with the checks of the file, and are not cut", async () => {
  groups = [5, 0, 4];
  await start([1]);
  expect(cutter.of("cut")).toEqual([]);
  expect(lanes[0]?.of("file")[0]?.checks).toHaveLength(1);
  expect(lanes[0]?.of("range").map((m) => m.range)).toEqual([
    { file: 0, group: 0, firstRow: 0, rows: 5, last: false },
    { file: 0, group: 1, firstRow: 5, rows: 0, last: false },
  ]);
  lanes[0]!.done(0, { rows: 5 });
  lanes[0]!.done(0, { rows: 0 });
  lanes[0]!.done(0, { rows: 4 });
  await settle();
  expect(lanes[0]?.of("range").at(-1)?.range).toEqual({
    file: 0,
    group: 2,
    firstRow: 5,
    rows: 4,
    last: true,
  });
  expect(result()).toMatchObject({ rows: 9, filesDone: 1 });
});

test("a file of no row group is one range of no rows, which covers its end", async () => {
  groups = [];
  await start([1]);
  expect(lanes[0]?.of("range").map((m) => m.range)).toEqual([
    { file: 0, group: 0, firstRow: 0, rows: 0, last: true },
  ]);
});

test("row groups that are covered are not read again", async () => {
  groups = [5, 4];
  coverage.ranges.set(stream(1), [{ from: 0n, next: 5n }]);
  await start([1]);
  expect(lanes[0]?.of("range").map((m) => m.range.group)).toEqual([1]);
});

test("a sink in trouble is told of, and when it is over", async () => {
  await start([1]);
  lanes[0]!.say({ t: "sink", failure: toWire(new Failure("files.unreadable", "x")) });
  lanes[0]!.say({ t: "sink", failure: null });
  expect(events.map((e) => e.e)).toEqual(["sink.troubled", "sink.recovered"]);
});

test("rows that a server refuses in the end are taken out of those that were given to it, and count as refused", async () => {
  await start([1], { maxRejects: 3 });
  cutter.piece(0, 0, 10, true, [1n]);
  cutter.cut(0, 10);
  lanes[0]!.onRoll = () => {
    lanes[0]!.say({ t: "refused", rows: 2, samples: [] });
    lanes[0]!.seal("set", rows(1, 0, 10), end(1, 10));
  };
  lanes[0]!.done(0, { rows: 9, rejected: 1 });
  await settle();
  expect(result()).toMatchObject({ rows: 7, rejected: 3, landed: 10, sets: 1 });
});

test("one more than the job allows ends it, whoever refused", async () => {
  await start([1], { maxRejects: 2 });
  cutter.piece(0, 0, 10, true, [1n]);
  lanes[0]!.done(0, { rows: 9, rejected: 1 });
  lanes[0]!.say({ t: "refused", rows: 2, samples: [] });
  await settle();
  expect(code()).toBe("files.too_many_rejects");
});
