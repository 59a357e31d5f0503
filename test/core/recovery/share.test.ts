/**
 * Goal: two processes share a backlog, no window is done twice, and what one was at that is killed the other does. Method: the
 * real filler over real coverage in memory, on simulated time; a job is a while, and one set of files.
 */
import { expect, test } from "bun:test";
import { MemoryVersionedStore, sharedObject } from "../../../src/adapters/coverage/memory.ts";
import { CoverageKeeper } from "../../../src/core/coverage/keeper.ts";
import { type Ranges, subtractRanges } from "../../../src/core/coverage/ranges.ts";
import type { IndexEntry } from "../../../src/core/coverage/state.ts";
import { parseState } from "../../../src/core/coverage/state-json.ts";
import { recoveryInstance } from "../../../src/core/coverage/windows.ts";
import type { ObjectStore, Target, TargetState } from "../../../src/core/ports/object-store.ts";
import type { Span } from "../../../src/core/records/stream.ts";
import { Filler, type FillJob } from "../../../src/core/recovery/filler.ts";
import { sleep } from "../../../src/core/time/clock.ts";
import { drive } from "../../contract/drive.ts";
import { SimProcess, SimTime } from "../../sim/clock.ts";

const S = "kafka/c/orders/0/0";
const SETS = 20;
const LEASE = 5_000;
const OPTIONS = { windowBytes: 100, heartbeatMs: 1_000, retryMs: 500, patienceMs: 20_000 };
const RAW: Ranges = [{ from: 0n, next: BigInt(10 * SETS) }];
const INDEX = Array.from({ length: SETS }, (_, i): IndexEntry => {
  const spans = [{ stream: S, from: BigInt(10 * i), next: BigInt(10 * i + 10) }];
  return { id: `s${i}`, targets: [], spans, rows: 10, bytes: 100 };
});

function world() {
  const time = new SimTime();
  const shared = sharedObject();
  const files = new Map<string, TargetState>();
  /** Spans that were covered, with who did it. */
  const done: (Span & { readonly by: string })[] = [];
  const objects = {
    place: "here",
    probe: async (t: Target) => files.get(t.key) ?? "absent",
    publish: async (t: Target) => void files.set(t.key, "published"),
    discard: async () => {},
  } as unknown as ObjectStore;

  function process(name: string, jobMs: number, killedIn: number | null = null) {
    const owner = new SimProcess(name);
    const clock = time.clock(owner);
    const self = { hostname: name, pid: 1, bootId: name, pidNamespace: "n", startTime: "1" };
    const keeper = new CoverageKeeper(
      { instance: recoveryInstance(name), leaseMs: LEASE, minIntervalMs: 0 },
      {
        versions: new MemoryVersionedStore(shared),
        objects,
        clock,
        host: { self, isAlive: () => "unknown" },
      },
    );
    let jobs = 0;
    const run = async ({ wanted, sinks: [sink] }: FillJob): Promise<void> => {
      if (++jobs === killedIn) owner.alive = false;
      await sleep(clock, jobMs);
      const [claim] = await sink!.coverage.claim([S], null);
      const spans = (wanted.get(S) ?? []).map((r) => ({ stream: S, ...r }));
      const id = `${name}-${jobs}`;
      const authorities = [claim!.authority];
      const [granted] = await keeper.intend([{ id, targets: [], spans, authorities, rows: 1, bytes: 1 }]);
      if (granted?.ok !== true) return;
      await keeper.cover([id]);
      done.push(...spans.map((s) => ({ ...s, by: name })));
    };
    const look = async () => {
      const newest = await new MemoryVersionedStore(shared).read();
      const state = newest === null ? null : parseState(newest.bytes, newest.name, newest.version);
      const lacks = subtractRanges(RAW, state?.streams.get(S)?.covered ?? []);
      const all = lacks.length === 0 ? [] : [["sink", new Map([[S, lacks]])] as const];
      return { lacks: new Map(all), index: INDEX, away: new Map() };
    };
    return new Filler([{ name: "sink", after: [], coverage: keeper }], OPTIONS, { clock, look, run }).run();
  }
  return { time, process, done };
}

const SORTED = INDEX.flatMap((e) => e.spans).map((s) => s.from);
const sorted = (spans: readonly Span[]) => spans.map((s) => s.from).toSorted((a, b) => (a < b ? -1 : 1));

test("each window is done once, and both take part", async () => {
  const { time, process, done } = world();
  const both = await drive(time, Promise.all([process("a", 300), process("b", 300)]));
  expect(both.map((f) => [...f.left])).toEqual([[["sink", 0n]], [["sink", 0n]]]);
  expect(sorted(done)).toEqual(SORTED);
  for (const name of ["a", "b"]) expect(done.filter((d) => d.by === name).length).toBeGreaterThan(SETS / 4);
});

test("what one was at that is killed is done by the other, once its lease is over, and nothing else twice", async () => {
  const { time, process, done } = world();
  void process("killed", 300, 3);
  const { left } = await drive(time, process("other", 300));
  expect([...left]).toEqual([["sink", 0n]]);
  expect(sorted(done)).toEqual(SORTED);
  expect(done.filter((d) => d.by === "killed").length).toBe(2);
  expect(time.nowMs).toBeGreaterThan(LEASE);
});
