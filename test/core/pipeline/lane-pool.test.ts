/** The pool posts work to its lanes, voids what is outdated, and replaces lanes that die; lanes are scripted. */
import { beforeEach, describe, expect, test } from "bun:test";
import { Failure } from "../../../src/core/failure/failure.ts";
import { LanePool } from "../../../src/core/pipeline/lane-pool.ts";
import { FakeLane, span } from "./fakes.ts";

let lanes: FakeLane[];
let told: string[];
let fails: boolean;
let pool: LanePool;

beforeEach(() => {
  lanes = [];
  told = [];
  fails = false;
  pool = new LanePool(
    2,
    (lane) => {
      const port = new FakeLane(lane);
      lanes.push(port);
      return port;
    },
    {
      ready: (lane) => void told.push(`ready ${lane}`),
      consumed: (lane, _buffer, bytes) => void told.push(`consumed ${lane} ${bytes}`),
      sealed: (set) => {
        if (fails) throw new Failure("internal.bug", "out of order");
        told.push(`sealed ${set.id}`);
      },
      void: (set) => void told.push(`void ${set.id}`),
      refused: (lane, id, reason, detail) => void told.push(`refused ${lane} ${id} ${reason} ${detail}`),
      broken: (stream, attempt, position, f) =>
        void told.push(`broken ${stream} ${attempt} ${position} ${f.code}`),
      sink: (lane, f) => void told.push(`sink ${lane} ${f?.code ?? "well"}`),
      died: (lane, f, restarts) => void told.push(`died ${lane} ${f.code} ${restarts}`),
      branch: (lane, sink, m, current) => void told.push(`branch ${lane} ${sink} ${m.t} ${current}`),
      hopeless: (f) => void told.push(`hopeless ${f.code}`),
    },
  );
});

describe("a pool of lanes", () => {
  test("has as many as it was told, each with its number, and knows no other", () => {
    expect([pool.size, ...lanes.map((l) => l.lane)]).toEqual([2, 0, 1]);
    expect(() => pool.place(2, [])).toThrow("there is no lane 2");
  });

  test("hands on what lanes say, with their number", () => {
    lanes[1]!.say({ t: "ready" });
    lanes[1]!.consumed(5);
    lanes[0]!.seal("a", [span(0, 0, 1)]);
    lanes[0]!.broken(3, 2, 7n);
    lanes[1]!.say({
      t: "sink",
      failure: { code: "store.full", message: "", at: null, hint: null, retry: true },
    });
    lanes[1]!.say({ t: "sink", failure: null });
    expect(told).toEqual([
      "ready 1",
      "consumed 1 5",
      "sealed a",
      "broken 3 2 7 kafka.corrupt_batch",
      "sink 1 store.full",
      "sink 1 well",
    ]);
  });

  test("transfers the buffer of a bundle", () => {
    const transfers: ArrayBuffer[] = [];
    lanes[0]!.post = (_m, transfer = []) => void transfers.push(...transfer);
    const buffer = new ArrayBuffer(4);
    pool.deliver(0, { buffer, frames: [], receivedAt: 0 });
    expect(transfers).toEqual([buffer]);
  });

  test("voids sets that were sealed before the lane saw a reset, and only those", () => {
    pool.reset(0, []);
    lanes[0]!.seal("old", [span(0, 0, 1)], { epoch: 0 });
    lanes[0]!.seal("new", [span(0, 0, 1)], { epoch: 1 });
    lanes[1]!.seal("other lane", [span(1, 0, 1)], { epoch: 0 });
    expect(told).toEqual(["void old", "sealed new", "sealed other lane"]);
  });

  test("has rolled when every lane has answered this roll", async () => {
    for (const l of lanes) l.onRoll = null;
    let rolled = 0;
    const first = pool.roll("drain").then(() => void rolled++);
    const second = pool.roll("revoke").then(() => void rolled++);
    const tokens = lanes.map((l) => l.of("roll").map((m) => m.token));
    lanes[0]!.say({ t: "rolled", token: tokens[0]![0]! });
    lanes[1]!.say({ t: "rolled", token: tokens[1]![1]! });
    lanes[0]!.say({ t: "rolled", token: 999 });
    await Promise.resolve();
    expect(rolled).toBe(0);
    lanes[1]!.say({ t: "rolled", token: tokens[1]![0]! });
    await first;
    expect(rolled).toBe(1);
    lanes[0]!.say({ t: "rolled", token: tokens[0]![1]! });
    await second;
    expect(lanes[0]!.of("roll").map((m) => m.reason)).toEqual(["drain", "revoke"]);
  });

  test("replaces a lane that died, in a new epoch, and hears the dead one no more", async () => {
    lanes[0]!.onRoll = null;
    const rolled = pool.roll("drain");
    lanes[0]!.dies();
    await rolled;
    expect(told).toEqual(["died 0 lane.died 1"]);
    expect(lanes[2]!.posts).toEqual([{ t: "reset", epoch: 1, streams: [] }]);
    lanes[0]!.seal("ghost", [span(0, 0, 1)]);
    lanes[0]!.dies();
    lanes[2]!.seal("alive", [span(0, 0, 1)]);
    expect(told).toEqual(["died 0 lane.died 1", "sealed alive"]);
  });

  test("gives up on a lane after five deaths in a row; a sealed set in between makes it well again", () => {
    const newest = () => lanes.at(-1)!;
    for (let i = 0; i < 4; i++) (i === 0 ? lanes[0]! : newest()).dies();
    newest().seal("a", [span(0, 0, 1)]);
    for (let i = 0; i < 4; i++) newest().dies();
    expect(told.filter((t) => t.startsWith("hopeless"))).toEqual([]);
    newest().dies();
    expect(told.at(-1)).toBe("hopeless lane.unstable");
  });

  test("gives up at once where the reason will not pass", () => {
    lanes[0]!.dies(false);
    expect(told).toEqual(["hopeless lane.died"]);
    expect(lanes).toHaveLength(2);
  });

  test("tells of a refused set, unless its lane was reset meanwhile", () => {
    const refused = { t: "refused", id: "a", reason: "fenced", detail: "why" } as const;
    lanes[1]!.say({ ...refused, epoch: 0 });
    pool.reset(1, []);
    lanes[1]!.say({ ...refused, epoch: 0 });
    expect(told).toEqual(["refused 1 a fenced why"]);
  });

  test("turns an exception over a lane's message into the end of the work", () => {
    fails = true;
    lanes[0]!.seal("a", [span(0, 0, 1)]);
    expect(told).toEqual(["hopeless internal.bug"]);
  });

  test("stops lanes, ends who waits for them, and is silent afterwards", async () => {
    for (const l of lanes) l.onRoll = null;
    const rolled = pool.roll("drain");
    pool.stop();
    await rolled;
    expect(lanes.map((l) => [l.posts.at(-1)?.t, l.killed])).toEqual([
      ["stop", true],
      ["stop", true],
    ]);
    lanes[0]!.seal("late", [span(0, 0, 1)]);
    expect(told).toEqual([]);
  });
});
