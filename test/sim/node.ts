/** One simulated process that runs the real pipeline over simulated time, network, disk and coverage object. */
import {
  MemoryVersionedStore,
  type SharedObject,
  type WriteFault,
} from "../../src/adapters/coverage/memory.ts";
import { fallbackCodecs } from "../../src/adapters/duckdb/native-fallback.ts";
import { KafkaSource } from "../../src/adapters/kafka/source.ts";
import type { SharingOptions } from "../../src/adapters/kafka/source-group.ts";
import type { TopicPattern } from "../../src/adapters/kafka/topic-pattern.ts";
import { createFrameDecoder } from "../../src/adapters/kafka/wire/records/frame-decoder.ts";
import { hostInProcess } from "../../src/adapters/lanes/in-process-host.ts";
import { ParquetWriter } from "../../src/adapters/parquet/writer.ts";
import { systemSaslCrypto } from "../../src/adapters/system/sasl-crypto.ts";
import { CoverageKeeper } from "../../src/core/coverage/keeper.ts";
import { Budget } from "../../src/core/delivery/budget.ts";
import { Committer } from "../../src/core/delivery/committer.ts";
import { Ledger } from "../../src/core/delivery/ledger.ts";
import { rateLimit } from "../../src/core/delivery/rate-limit.ts";
import { SizeEstimate } from "../../src/core/delivery/size-estimate.ts";
import { asFailure, type Failure, toWire } from "../../src/core/failure/failure.ts";
import type { TwgEvent } from "../../src/core/observe/events.ts";
import { Admission } from "../../src/core/pipeline/admission.ts";
import { BufferPool } from "../../src/core/pipeline/buffer-pool.ts";
import { Lane } from "../../src/core/pipeline/lane.ts";
import { Runner } from "../../src/core/pipeline/runner.ts";
import type { CoverageStore } from "../../src/core/ports/coverage.ts";
import type { HostId } from "../../src/core/ports/host-identity.ts";
import type { LanePort } from "../../src/core/ports/lane.ts";
import { sleep } from "../../src/core/time/clock.ts";
import type { FakeCluster } from "../brokers/kafka/cluster.ts";
import { memoryNet } from "../brokers/kafka/memory-net.ts";
import type { BesideWorld } from "./beside.ts";
import type { SeededChance } from "./chance.ts";
import { SimProcess, type SimTime } from "./clock.ts";
import type { SimFolder } from "./store.ts";

export interface NodeWorld {
  readonly time: SimTime;
  readonly cluster: FakeCluster;
  readonly folder: SimFolder;
  readonly coverage: SharedObject;
  readonly topic: string;
  /** In place of the topic's name, so that others like it are read as they come; null: only that one. */
  readonly pattern: TopicPattern | null;
  readonly group: string | null;
  /** How the nodes share the partitions; null: one at a time has them all. */
  readonly sharing: SharingOptions | null;
  readonly onRecreated: "fail" | "new_incarnation";
  readonly lanes: number;
  readonly maxOpenFiles: number;
  /** Asked before each write of the coverage object. */
  readonly writeFault: () => WriteFault | null;
  readonly onEvent: (node: SimNode, event: TwgEvent) => void;
  /** A planted bug, to prove that the judge sees it; null: none. */
  readonly canary: Canary | null;
  readonly nodes: SimNode[];
  /** Sinks beside the raw one; null: there are none. */
  readonly beside: BesideWorld | null;
}

/**
 * never_gives_up: what was given up is never done with, so a partition that comes back is never read again.
 * early_cover: coverage says yes before it is written, so the source is acknowledged ahead of it.
 * blind_write: the coverage object is overwritten without comparing, so nobody is ever fenced.
 */
export type Canary = "early_cover" | "blind_write" | "never_gives_up";

export class SimNode {
  readonly process: SimProcess;
  readonly machine: number;
  readonly instanceId: string | null;
  readonly runner: Runner;
  outcome: "running" | "done" | Failure = "running";
  readonly #ports: LanePort[] = [];

  constructor(
    world: NodeWorld,
    serial: number,
    machine: number,
    chance: SeededChance,
    untilCaughtUp: boolean,
    instanceId: string | null = null,
  ) {
    this.instanceId = instanceId;
    this.process = new SimProcess(`node-${serial}`);
    this.machine = machine;
    const clock = world.time.clock(this.process);
    const objects = world.folder.handle(this.process);
    const host: HostId = {
      hostname: `m${machine}`,
      pid: serial,
      bootId: `b${machine}`,
      pidNamespace: "n",
      startTime: "1",
    };
    const identity = { self: host, isAlive: (other: HostId) => this.#life(world, other) };
    const versions = new MemoryVersionedStore(world.coverage, {
      fault: world.writeFault,
      delay: () => sleep(clock, chance.next() * 5),
    });
    const keeper = new CoverageKeeper(
      { instance: `i${serial}`, leaseMs: 4_000, minIntervalMs: 20, shared: world.sharing !== null },
      {
        versions: world.canary === "blind_write" ? blind(versions, world.coverage) : versions,
        objects,
        clock,
        host: identity,
      },
    );
    const coverage =
      world.canary === "early_cover" ? early(keeper, (fn) => void clock.after(400, fn)) : keeper;
    const observer = { emit: (e: TwgEvent) => world.onEvent(this, e) };
    const budget = new Budget({
      maxBytes: 64 * 1024,
      owners: Array.from({ length: world.lanes }, (_, i) => i),
    });
    const source = new KafkaSource(settingsOf(world, instanceId), {
      net: memoryNet(world.cluster, { clock, chance: chance.fork(), piece: [200, 65_536] }),
      clock,
      chance: chance.fork(),
      crypto: systemSaslCrypto,
      observer: { emit: (e: TwgEvent) => world.onEvent(this, e) },
    });
    this.runner = new Runner(
      {
        sink: "raw",
        lanes: world.lanes,
        rules: { start: "earliest", acceptGap: false, retention: "fail", onRecreated: world.onRecreated },
        untilCaughtUp,
        heartbeatMs: 1_000,
        drainMs: 60_000,
      },
      {
        clock,
        source,
        coverage,
        committer: (listener) => new Committer({ sink: "raw", coverage, objects, clock, observer, listener }),
        spawnLane: (lane) => this.#lane(world, serial, lane),
        ledger: new Ledger(),
        admission: new Admission(clock, budget, rateLimit(clock, {}), new SizeEstimate(256)),
        buffers: new BufferPool(1024 * 1024),
        observer,
        sweep: async () => {
          if (keeper.isAlone) await objects.sweep(keeper.stagedNames());
        },
        ...(world.beside === null
          ? {}
          : {
              secondaries: world.beside.secondaries({
                ...{ instance: `s${serial}`, process: this.process, clock, chance: chance.fork() },
                ...{ host: identity, observer },
                shared: world.sharing !== null,
              }),
            }),
      },
    );
    if (world.canary === "never_gives_up") {
      this.runner.release = () => new Promise(() => {});
      this.runner.abandon = () => new Promise(() => {});
    }
    this.runner.run().then(
      () => {
        this.outcome = "done";
      },
      (e) => {
        this.outcome = asFailure(e);
        observer.emit({ e: "failure", scope: "node", failure: toWire(this.outcome) });
      },
    );
  }

  get running(): boolean {
    return this.outcome === "running" && this.process.alive;
  }

  /** SIGKILL: nothing of it runs any more, whatever it was doing. */
  kill(): void {
    this.process.alive = false;
    for (const p of this.#ports) p.kill();
  }

  #life(world: NodeWorld, other: HostId): "alive" | "dead" | "unknown" {
    if (other.hostname !== `m${this.machine}`) return "unknown";
    return world.nodes.some((n) => n.process.name === `node-${other.pid}` && n.running) ? "alive" : "dead";
  }

  #lane(world: NodeWorld, serial: number, lane: number): LanePort {
    const clock = world.time.clock(this.process);
    let sets = 0;
    const instance = `i${serial}l${lane}x${this.#ports.length}`;
    const port = hostInProcess((post) => {
      const lanes: { own: Lane | null } = { own: null };
      const { beside } = world;
      const branches = beside?.branches(
        this.process,
        clock,
        lane,
        instance,
        () => lanes.own?.isOpen ?? false,
        post,
      );
      lanes.own = new Lane({
        lane,
        rollBytes: 8 * 1024,
        rollIntervalMs: 500,
        clock,
        decoder: createFrameDecoder({ codecs: fallbackCodecs, maxDecompressedBytes: 1 << 20 }),
        writer: new ParquetWriter(
          {
            path: "/lake/{topic}/{hour}",
            row_group_bytes: 4096,
            compression: "none",
            compression_level: 1,
            metadata_prefix: "_twg_",
            max_open_files: world.maxOpenFiles,
            pipeline: "sim",
            sink: "raw",
            version: "0",
          },
          { store: world.folder.handle(this.process), codecs: fallbackCodecs, clock },
        ),
        newSetId: () => `${instance}-${sets++}`,
        post,
        ...(branches === undefined ? {} : { branches }),
      });
      return lanes.own;
    });
    this.#ports.push(port);
    return port;
  }
}

function settingsOf(world: NodeWorld, instanceId: string | null) {
  return {
    bootstrap: world.cluster.brokers.map(({ host, port }) => ({ host, port })),
    topics: world.pattern === null ? [world.topic] : [],
    topicsPattern: world.pattern,
    partitions: new Map<string, readonly number[]>(),
    group: world.group,
    start: "earliest",
    committedOnly: true,
    connectTimeoutMs: 120_000,
    topicWaitMs: 60_000,
    maxWaitMs: 200,
    maxBytes: 16 * 1024,
    partitionMaxBytes: 4 * 1024,
    requestTimeoutMs: 2_000,
    maxResponseBytes: 8 * 1024 * 1024,
    metadataRefreshMs: world.pattern === null ? 60_000 : 5_000,
    onOutOfRange: "fail",
    onRecreated: world.onRecreated,
    clientId: "sim",
    version: "0",
    dialTimeoutMs: 2_000,
    tls: null,
    sasl: null,
    sharing: world.sharing === null ? null : { ...world.sharing, instanceId },
    rackId: "",
  } as const;
}

function early(keeper: CoverageKeeper, later: (fn: () => void) => void): CoverageStore {
  return new Proxy(keeper, {
    get(target, name) {
      if (name === "cover") {
        return async (ids: readonly string[]) => {
          later(() => void target.cover(ids).catch(() => {}));
          return ids.map(() => ({ ok: true }));
        };
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function blind(store: MemoryVersionedStore, shared: SharedObject): MemoryVersionedStore {
  return new Proxy(store, {
    get(target, name) {
      if (name === "write") {
        return async (expected: number | null, bytes: Uint8Array) => {
          shared.versions.clear();
          shared.versions.set((expected ?? 0) + 1, bytes.slice());
          return "won";
        };
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
