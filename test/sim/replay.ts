/**
 * A simulated process that recovers: the real filler and runner over raw files of the simulated folder, for the sinks
 * beside the raw one, while live ingest works on them or is dead. Brokers have no part in it.
 */
import { MemoryVersionedStore } from "../../src/adapters/coverage/memory.ts";
import { fallbackCodecs } from "../../src/adapters/duckdb/native-fallback.ts";
import { hostInProcess } from "../../src/adapters/lanes/in-process-host.ts";
import { replayDecoder } from "../../src/commands/lane-replay.ts";
import { wholeIndex } from "../../src/commands/raw-of.ts";
import { byIncarnation } from "../../src/commands/recover-plan.ts";
import { readSets } from "../../src/commands/recover-sets.ts";
import { ReplayBuffers } from "../../src/commands/replay-buffers.ts";
import { normalRanges, type Ranges, subtractRanges } from "../../src/core/coverage/ranges.ts";
import { parseState } from "../../src/core/coverage/state-json.ts";
import { recoveryInstance } from "../../src/core/coverage/windows.ts";
import { Budget } from "../../src/core/delivery/budget.ts";
import { CoveredCommitter } from "../../src/core/delivery/covered-committer.ts";
import { Ledger } from "../../src/core/delivery/ledger.ts";
import { rateLimit } from "../../src/core/delivery/rate-limit.ts";
import { SizeEstimate } from "../../src/core/delivery/size-estimate.ts";
import { asFailure, Failure } from "../../src/core/failure/failure.ts";
import type { TwgEvent } from "../../src/core/observe/events.ts";
import { Admission } from "../../src/core/pipeline/admission.ts";
import { Lane } from "../../src/core/pipeline/lane.ts";
import { Runner } from "../../src/core/pipeline/runner.ts";
import { PRIMARY, type SecondarySpec } from "../../src/core/pipeline/secondary-parts.ts";
import type { HostId } from "../../src/core/ports/host-identity.ts";
import type { LanePort } from "../../src/core/ports/lane.ts";
import { type StreamKey, streamKey } from "../../src/core/records/stream.ts";
import { type Backlog, Filler, type FillJob, taking } from "../../src/core/recovery/filler.ts";
import { ReplayOrder, type Wanted } from "../../src/core/recovery/replay-order.ts";
import { ReplaySource } from "../../src/core/recovery/replay-source.ts";
import { ReplayCoverage, ReplayWriter } from "../../src/core/recovery/replayed.ts";
import type { BesideWorld } from "./beside.ts";
import type { SeededChance } from "./chance.ts";
import { SimProcess } from "./clock.ts";
import type { SimEngines } from "./engines.ts";
import type { NodeWorld } from "./node.ts";

export interface ReplayWorld extends Omit<NodeWorld, "beside" | "onEvent"> {
  readonly beside: BesideWorld;
  readonly onEvent: (name: string, event: TwgEvent) => void;
  readonly engines: SimEngines;
}

/** What each of the sinks lacks. */
export async function missing({
  coverage,
  beside,
}: Pick<ReplayWorld, "coverage" | "beside">): Promise<Backlog> {
  const versions = new MemoryVersionedStore(coverage);
  const newest = await versions.read();
  if (newest === null) return { lacks: new Map(), index: [], away: new Map() };
  const state = parseState(newest.bytes, newest.name, newest.version);
  const lacking = (has: (stream: StreamKey) => Ranges): Wanted => {
    const all = [...state.streams].map(
      ([stream, { covered }]) => [stream, subtractRanges(covered, normalRanges(has(stream)))] as const,
    );
    return new Map(all.filter(([, ranges]) => ranges.length > 0));
  };
  const side = lacking((s) => beside.coveredBySide(s));
  const table = lacking((s) => beside.table.state.streams.get(s)?.covered ?? []);
  const lacks = new Map(
    [["side", side] as const, ["table", table] as const].filter(([, wanted]) => wanted.size > 0),
  );
  return { lacks, index: await wholeIndex(state, versions), away: new Map() };
}

/** Windows of two or three sets. */
const WINDOW_BYTES = 12_000;

/** One process of `twg recover`. */
export class ReplayNode {
  readonly process: SimProcess;
  outcome: "running" | "done" | Failure = "running";
  /** Positions that it saw missing in the end, of those that were at its start. */
  left = 0n;
  readonly #world: ReplayWorld;
  readonly #serial: number;
  readonly #machine: number;
  readonly #chance: SeededChance;
  readonly #all: readonly ReplayNode[];
  readonly #ports: LanePort[] = [];

  /** `all`: those that were started before. */
  constructor(world: ReplayWorld, serial: number, chance: SeededChance, all: readonly ReplayNode[]) {
    this.#world = world;
    this.#serial = serial;
    this.#chance = chance;
    // Of another machine nobody knows whether it lives.
    this.#machine = chance.int(2);
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
    const world = this.#world;
    const clock = world.time.clock(this.process);
    const observer = { emit: (e: TwgEvent) => world.onEvent(this.process.name, e) };
    const specs = world.beside.secondaries({
      ...{ clock, observer, process: this.process, shared: world.sharing !== null },
      instance: recoveryInstance(`r${this.#serial}`),
      chance: this.#chance.fork(),
      host: { self: this.#host, isAlive: (other) => this.#life(other) },
    });
    const sinks = specs.map(({ name, after, coverage }) => ({
      ...{ name, coverage },
      after: after.filter((n) => n !== PRIMARY),
    }));
    const options = { windowBytes: WINDOW_BYTES, heartbeatMs: 1_000, retryMs: 500, patienceMs: 20_000 };
    const filler = new Filler(sinks, options, {
      clock,
      look: () => missing(world),
      run: async (job) => {
        await this.#runner(job, taking(specs, job)).run();
      },
    });
    const { left, failure } = await filler.run();
    this.left = [...left.values()].reduce((n, l) => n + l, 0n);
    if (failure !== null) throw failure;
  }

  #read() {
    const { published } = this.#world.folder;
    return readSets(async (key) => {
      const bytes = published.get(key);
      if (bytes === undefined) throw new Failure("store.absent", "no such file", { at: key });
      return { size: bytes.length, read: async (from, to) => bytes.slice(from, to), close: () => {} };
    }, "_twg_");
  }

  #runner({ wanted, index }: FillJob, secondaries: readonly SecondarySpec[]): Runner {
    const world = this.#world;
    const clock = world.time.clock(this.process);
    const observer = { emit: (e: TwgEvent) => world.onEvent(this.process.name, e) };
    const budget = new Budget({ maxBytes: 64 * 1024, owners: [0] });
    const [[incarnation, streams] = [0, []]] = byIncarnation(wanted);
    const spans = streams.map((id) => {
      const ranges = wanted.get(streamKey(id))!;
      return { id, span: { from: ranges[0]!.from, next: ranges.at(-1)!.next } };
    });
    const order = new ReplayOrder(index, wanted);
    if (order.missing(wanted).size > 0) throw new Failure("recovery.raw_missing", "not in the index");
    const source = new ReplaySource(spans, { order, read: this.#read() });
    const coverage = new ReplayCoverage(wanted, incarnation);
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
        ...{ clock, source, coverage, observer, secondaries },
        committer: (listener) => new CoveredCommitter({ sink: "raw", clock, observer, listener }),
        spawnLane: (lane) => this.#lane(lane, secondaries.length),
        ledger: new Ledger(),
        admission: new Admission(clock, budget, rateLimit(clock, {}), new SizeEstimate(256)),
        buffers: new ReplayBuffers(1024 * 1024, source),
        sweep: async () => {},
      },
    );
  }

  get #host(): HostId {
    const machine = `r${this.#machine}`;
    return { hostname: machine, pid: this.#serial, bootId: machine, pidNamespace: "n", startTime: "1" };
  }

  #life(other: HostId): "alive" | "dead" | "unknown" {
    if (other.hostname !== this.#host.hostname) return "unknown";
    return this.#all.some((n) => n.#serial === other.pid && n.running) ? "alive" : "dead";
  }

  #lane(lane: number, sinks: number): LanePort {
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
        decoder: replayDecoder({
          inflate: fallbackCodecs,
          maxRows: 20,
          maxBytes: 1_000,
          rowGroupBytes: 4096,
          engine: this.#world.engines.connection,
        }),
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
          sinks,
        ),
      });
      return own.lane;
    });
    this.#ports.push(port);
    return port;
  }
}
