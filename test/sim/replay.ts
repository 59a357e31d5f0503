/**
 * A simulated process that recovers: the real runner over raw files of the simulated folder, for the sinks beside the raw
 * one. Brokers have no part in it.
 */
import { MemoryVersionedStore } from "../../src/adapters/coverage/memory.ts";
import { hostInProcess } from "../../src/adapters/lanes/in-process-host.ts";
import { replayDecoder } from "../../src/commands/lane-replay.ts";
import { byIncarnation, wholeIndex } from "../../src/commands/recover-plan.ts";
import { readSets } from "../../src/commands/recover-sets.ts";
import { normalRanges, subtractRanges, unionRanges } from "../../src/core/coverage/ranges.ts";
import { parseState } from "../../src/core/coverage/state-json.ts";
import { Budget } from "../../src/core/delivery/budget.ts";
import { CoveredCommitter } from "../../src/core/delivery/covered-committer.ts";
import { Ledger } from "../../src/core/delivery/ledger.ts";
import { rateLimit } from "../../src/core/delivery/rate-limit.ts";
import { SizeEstimate } from "../../src/core/delivery/size-estimate.ts";
import { asFailure, Failure } from "../../src/core/failure/failure.ts";
import type { TwgEvent } from "../../src/core/observe/events.ts";
import { Admission } from "../../src/core/pipeline/admission.ts";
import { BufferPool } from "../../src/core/pipeline/buffer-pool.ts";
import { Lane } from "../../src/core/pipeline/lane.ts";
import { Runner } from "../../src/core/pipeline/runner.ts";
import type { Range } from "../../src/core/ports/coverage.ts";
import type { HostId } from "../../src/core/ports/host-identity.ts";
import type { LanePort } from "../../src/core/ports/lane.ts";
import { type StreamKey, streamKey } from "../../src/core/records/stream.ts";
import { ReplayOrder } from "../../src/core/recovery/replay-order.ts";
import { ReplaySource } from "../../src/core/recovery/replay-source.ts";
import { ReplayCoverage, ReplayWriter } from "../../src/core/recovery/replayed.ts";
import type { BesideWorld } from "./beside.ts";
import type { SeededChance } from "./chance.ts";
import { SimProcess } from "./clock.ts";
import type { NodeWorld } from "./node.ts";

export interface ReplayWorld extends Omit<NodeWorld, "beside" | "onEvent"> {
  readonly beside: BesideWorld;
  readonly onEvent: (name: string, event: TwgEvent) => void;
}

type Wanted = Map<StreamKey, readonly Range[]>;

/** What any of the sinks lacks. */
export async function missing({ coverage, beside }: Pick<ReplayWorld, "coverage" | "beside">) {
  const versions = new MemoryVersionedStore(coverage);
  const newest = await versions.read();
  const wanted: Wanted = new Map();
  if (newest === null) return { wanted, index: [] };
  const state = parseState(newest.bytes, newest.name, newest.version);
  for (const [stream, { covered }] of state.streams) {
    const lacks = (has: readonly Range[]) => subtractRanges(covered, normalRanges(has));
    const side = lacks(beside.coveredBySide(stream));
    const table = lacks(beside.table.streams.get(stream)?.covered ?? []);
    const ranges = unionRanges(side, table);
    if (ranges.length > 0) wanted.set(stream, ranges);
  }
  return { wanted, index: await wholeIndex(state, versions) };
}

/** One process of `twg recover`: incarnation after incarnation, one round of each. */
export class ReplayNode {
  readonly process: SimProcess;
  outcome: "running" | "done" | Failure = "running";
  readonly #world: ReplayWorld;
  readonly #serial: number;
  readonly #chance: SeededChance;
  readonly #all: readonly ReplayNode[];
  readonly #ports: LanePort[] = [];

  /** `all`: those that were started before. */
  constructor(world: ReplayWorld, serial: number, chance: SeededChance, all: readonly ReplayNode[]) {
    this.#world = world;
    this.#serial = serial;
    this.#chance = chance;
    this.#all = all;
    this.process = new SimProcess(`recovery-${serial}`);
    this.#run().then(
      () => {
        this.outcome = "done";
      },
      (e) => {
        this.outcome = asFailure(e);
      },
    );
  }

  get running(): boolean {
    return this.outcome === "running" && this.process.alive;
  }

  kill(): void {
    this.process.alive = false;
    for (const p of this.#ports) p.kill();
  }

  async #run(): Promise<void> {
    const { wanted, index } = await missing(this.#world);
    for (const [incarnation, streams] of byIncarnation(wanted)) {
      const keys = new Set(streams.map(streamKey));
      const mine = new Map([...wanted].filter(([key]) => keys.has(key)));
      const spans = streams.map((id) => {
        const ranges = mine.get(streamKey(id))!;
        return { id, span: { from: ranges[0]!.from, next: ranges.at(-1)!.next } };
      });
      const order = new ReplayOrder(index, mine);
      if (order.missing(mine).size > 0) throw new Failure("recovery.raw_missing", "not in the index");
      const source = new ReplaySource(spans, { order, read: this.#read() });
      await this.#runner(source, new ReplayCoverage(mine, incarnation)).run();
    }
  }

  #read() {
    const { published } = this.#world.folder;
    return readSets(async (key) => {
      const bytes = published.get(key);
      if (bytes === undefined) throw new Failure("store.absent", "no such file", { at: key });
      return { size: bytes.length, read: async (from, to) => bytes.slice(from, to), close: () => {} };
    }, "_twg_");
  }

  #runner(source: ReplaySource, coverage: ReplayCoverage): Runner {
    const world = this.#world;
    const clock = world.time.clock(this.process);
    const observer = { emit: (e: TwgEvent) => world.onEvent(this.process.name, e) };
    const budget = new Budget({ maxBytes: 64 * 1024, owners: [0] });
    return new Runner(
      {
        sink: "raw",
        lanes: 1,
        rules: { start: "earliest", acceptGap: false, retention: "fail", onRecreated: "fail" },
        untilCaughtUp: true,
        heartbeatMs: 1_000,
        drainMs: 60_000,
      },
      {
        ...{ clock, source, coverage, observer },
        committer: (listener) => new CoveredCommitter({ sink: "raw", clock, observer, listener }),
        spawnLane: (lane) => this.#lane(lane),
        ledger: new Ledger(),
        admission: new Admission(clock, budget, rateLimit(clock, {}), new SizeEstimate(256)),
        buffers: new BufferPool(1024 * 1024),
        sweep: async () => {},
        secondaries: world.beside.secondaries({
          ...{ clock, observer, process: this.process, shared: false },
          serial: this.#serial,
          chance: this.#chance.fork(),
          host: { self: this.#host, isAlive: (other) => this.#life(other) },
        }),
      },
    );
  }

  get #host(): HostId {
    return { hostname: "m9", pid: this.#serial, bootId: "b9", pidNamespace: "n", startTime: "1" };
  }

  #life(other: HostId): "alive" | "dead" | "unknown" {
    if (other.hostname !== "m9") return "unknown";
    return this.#all.some((n) => n.#serial === other.pid && n.running) ? "alive" : "dead";
  }

  #lane(lane: number): LanePort {
    const clock = this.#world.time.clock(this.process);
    const instance = `r${this.#serial}l${lane}x${this.#ports.length}`;
    let sets = 0;
    const port = hostInProcess((post) => {
      const own: { lane: Lane | null } = { lane: null };
      own.lane = new Lane({
        lane,
        rollBytes: 8 * 1024,
        rollIntervalMs: 500,
        clock,
        decoder: replayDecoder({ maxRows: 20, maxBytes: 1_000, rowGroupBytes: 4096 }),
        writer: new ReplayWriter(),
        newSetId: () => `${instance}-${sets++}`,
        post,
        branches: this.#world.beside.branches(
          this.process,
          clock,
          lane,
          instance,
          () => own.lane?.isOpen ?? false,
          post,
        ),
      });
      return own.lane;
    });
    this.#ports.push(port);
    return port;
  }
}
