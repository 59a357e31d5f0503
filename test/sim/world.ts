/**
 * The simulated world of the raw scenario: three brokers, a producer, processes that are killed, stopped and
 * replaced, a store and a coverage object that fail. One seed decides everything.
 */
import { sharedObject, type WriteFault } from "../../src/adapters/coverage/memory.ts";
import { ASSIGNORS } from "../../src/adapters/kafka/assignors/table.ts";
import type { SharingOptions } from "../../src/adapters/kafka/source-group.ts";
import { TopicPattern } from "../../src/adapters/kafka/topic-pattern.ts";
import type { ApiName, Draft, ResponseOf } from "../../src/adapters/kafka/wire/protocol.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import type { TwgEvent } from "../../src/core/observe/events.ts";
import { FakeCluster } from "../brokers/kafka/cluster.ts";
import { type BesideCanary, BesideWorld, rowsIn } from "./beside.ts";
import { SeededChance } from "./chance.ts";
import { SimTime } from "./clock.ts";
import { SimEngines } from "./engines.ts";
import { commitAhead, judge } from "./judge.ts";
import { type Canary, type NodeWorld, SimNode } from "./node.ts";
import { Oracle } from "./oracle.ts";
import { missing, ReplayNode } from "./replay.ts";
import { SimFolder } from "./store.ts";

export interface SimResult {
  readonly seed: number;
  readonly complaints: readonly string[];
  readonly records: number;
  readonly lives: number;
  readonly steps: number;
  readonly simulatedMs: number;
  /** Rows of the sinks beside the raw one. */
  readonly beside?: {
    readonly side: number;
    readonly table: number;
    /** Of the table's: those that came from raw while live ingest worked. */
    readonly recovered: number;
  };
}

export interface SimOptions {
  /** Several processes share the partitions as members of a group. */
  readonly groups?: boolean;
  /** Sinks beside the raw one. */
  readonly sinks?: boolean;
  readonly besideCanary?: BesideCanary;
  readonly canary?: Canary;
  /** Told of everything that happens, with simulated time. */
  readonly trace?: (line: string) => void;
}

const TOPIC = "t";
/** Faults come in this time, then everything heals. */
const CHAOS_MS = 30_000;
/** Longer than any session of the test brokers' groups, and than a rebalance. */
const SESSIONS_END_MS = 20_000;
/** Longest that the members who live may take to share and read everything, once nothing troubles them. */
const SHARED_MS = 120_000;
/** Of recovery: how long it is troubled, and rounds that it may take then. */
const RECOVERY_CHAOS_MS = 10_000;
const RECOVERY_ROUNDS = 20;
/** Longest that the healed world may take to catch up. */
const HEAL_MS = 600_000;

export function simulate(seed: number, options: SimOptions = {}): Promise<SimResult> {
  return new World(seed, options).run();
}

/** What a pipeline says of a log that ends below what was read of it. */
const CUT = new Set(["kafka.truncated", "delivery.position_beyond_log"]);
const GROUP_KINDS = ["leave", "leave", "partitions", "topic", "requests", "coordinator", "disaster"] as const;

/** Too many to be read. */
const UNTOLD: ReadonlySet<TwgEvent["e"]> = new Set([
  "bundle.delivered",
  "bundle.consumed",
  "stream.watermark",
  "sink.lacks",
  "coverage.healthy",
  "request.done",
  "connection.opened",
  "connection.closed",
]);

class World {
  readonly #seed: number;
  readonly #o: SimOptions;
  readonly #time = new SimTime();
  readonly #chance: SeededChance;
  readonly #cluster: FakeCluster;
  readonly #folder: SimFolder;
  /** One a topic; the first topic is there from the start. */
  readonly #oracles: Oracle[];
  readonly #node: NodeWorld;
  readonly #complaints: string[] = [];
  readonly #replays: ReplayNode[] = [];
  readonly #engines = new SimEngines();
  readonly #replayChance: SeededChance;
  /** Recovery is troubled. */
  #hangs = true;
  #writeFaults = 0;
  #healed = false;
  /** The pipeline stopped at a log that was cut, as it must. */
  #stopped = false;
  /** Once a run: each costs what it costs, and the second adds nothing. */
  #disasters = 1;
  #steps = 0;

  constructor(seed: number, options: SimOptions) {
    this.#seed = seed;
    this.#o = options;
    const chance = new SeededChance(seed);
    this.#chance = chance;
    this.#replayChance = new SeededChance(seed).fork();
    const clock = this.#time.clock(null);
    this.#cluster = new FakeCluster({ clock, brokers: 3 });
    const groups = options.groups === true;
    const partitions = groups ? 2 + chance.int(5) : 1 + chance.int(4);
    this.#cluster.createTopic(TOPIC, { partitions });
    this.#folder = new SimFolder(this.#time, chance.fork());
    this.#oracles = [new Oracle(this.#cluster, TOPIC, partitions, chance.fork())];
    const coverage = sharedObject();
    this.#node = {
      time: this.#time,
      cluster: this.#cluster,
      folder: this.#folder,
      coverage,
      topic: TOPIC,
      // What the judge of the other sinks reads names no topic.
      pattern: options.sinks !== true && groups && chance.next() < 0.4 ? new TopicPattern("t[0-9]*") : null,
      group: groups || chance.next() < 0.8 ? "g" : null,
      sharing: groups ? sharing(chance) : null,
      onRecreated: groups ? "new_incarnation" : "fail",
      lanes: 1 + chance.int(2),
      maxOpenFiles: 1 + chance.int(2),
      writeFault: () => this.#writeFault(),
      onEvent: (node, event) => this.#onEvent(node, event),
      canary: options.canary ?? null,
      nodes: [],
      beside:
        options.sinks === true
          ? new BesideWorld(this.#time, chance.fork(), coverage, options.besideCanary ?? null)
          : null,
    };
    this.#watchCommits();
  }

  async run(): Promise<SimResult> {
    this.#every(20, 400, () => this.#chance.pick(this.#oracles).produce());
    this.#every(100, 2500, () => this.#mischief());
    this.#every(50, 1500, () => this.#supervise());
    const { beside } = this.#node;
    if (beside !== null) {
      this.#every(200, 4000, () => beside.mischief());
      this.#every(500, 4000, () => this.#recoverBeside(beside));
      // Where it does most harm: what it was about to commit it commits when others have its windows.
      beside.table.onLeasedCommit = (process) => {
        if (!this.#hangs || this.#replayChance.next() >= 0.3) return;
        this.#say(`${process.name} hangs`);
        process.paused = true;
      };
    }
    await this.#until(() => false, CHAOS_MS);
    await this.#heal();
    const leftovers = this.#o.groups === true;
    const judged = { leftovers, stopped: this.#stopped };
    this.#complaints.push(...(await judge(this.#oracles, this.#folder, this.#node.coverage, judged)));
    this.#complaints.push(...bugs(this.#node.nodes));
    const found = await beside?.judge(this.#oracles[0]!);
    const recovered = beside?.table.recovered ?? 0;
    this.#complaints.push(...(found?.complaints ?? []));
    if (beside !== null) await this.#recover(beside);
    this.#engines.close();
    return {
      ...(found === undefined ? {} : { beside: { side: found.side, table: found.table, recovered } }),
      seed: this.#seed,
      complaints: this.#complaints,
      records: this.#oracles.reduce((n, o) => n + o.records, 0),
      lives: this.#node.nodes.length,
      steps: this.#steps,
      simulatedMs: this.#time.nowMs,
    };
  }

  /** Everything works again; one fresh process after the other until one has caught up. */
  async #heal(): Promise<void> {
    this.#healed = true;
    for (const r of this.#replays) r.kill();
    for (const o of this.#oracles) o.endTransaction();
    Object.assign(this.#folder.faults, { fail: 0, failAfter: 0, fullUntil: -1 });
    this.#node.beside?.heal();
    for (const b of this.#cluster.brokers) if (!b.alive) this.#cluster.revive(b.id);
    const limit = this.#time.nowMs + HEAL_MS;
    // Whoever was stopped is woken while others work: it must not do harm either.
    for (const n of this.#node.nodes) n.process.paused = false;
    await this.#until(() => false, this.#time.nowMs + 5_000);
    if (this.#o.groups === true) await this.#shareAll();
    for (const n of this.#node.nodes) n.kill();
    // What the dead hold a member that comes now would not get, and be caught up without it.
    if (this.#o.groups === true) await this.#until(() => false, this.#time.nowMs + SESSIONS_END_MS);
    for (let tries = 0; tries < 5; tries++) {
      const node = this.#start(true);
      await this.#until(() => node.outcome !== "running", limit);
      if (node.outcome === "done") return;
      if (this.#stoppedRightly(node)) {
        this.#stopped = true;
        return;
      }
      this.#say(`the healed run ended with ${JSON.stringify(node.outcome)}`);
    }
    this.#complaints.push("the healed world did not catch up");
  }

  /** One or two processes that recover while live ingest works: they start, die and hang. */
  #recoverBeside(beside: BesideWorld): void {
    const c = this.#replayChance;
    const running = this.#replays.filter((n) => n.running);
    // Often longer than a lease: others have taken its windows by then.
    for (const n of running) if (c.next() < 0.3) n.process.paused = false;
    const working = running.filter((n) => !n.process.paused).length;
    if (working < 1 || (working < 2 && c.next() < 0.5)) return void this.#replay(beside);
    if (c.next() < 0.25) c.pick(running).kill();
  }

  #replay(beside: BesideWorld): ReplayNode {
    const onEvent = (name: string, event: TwgEvent) => this.#tell(name, event);
    const world = { ...this.#node, beside, onEvent, engines: this.#engines };
    const node = new ReplayNode(world, this.#replays.length, this.#replayChance.fork(), this.#replays);
    this.#replays.push(node);
    this.#say(`${node.process.name} starts`);
    return node;
  }

  /** What the sinks beside lack comes from raw, with faults and kills at first; then nothing is missing. */
  async #recover(beside: BesideWorld): Promise<void> {
    for (const n of this.#node.nodes) n.kill();
    const world = { coverage: this.#node.coverage, beside };
    for (const end = this.#time.nowMs + RECOVERY_CHAOS_MS; this.#time.nowMs < end; ) {
      beside.mischief();
      this.#recoverBeside(beside);
      await this.#until(() => false, this.#time.nowMs + 100 + this.#replayChance.int(2_000));
    }
    beside.heal();
    this.#hangs = false;
    for (const n of this.#replays) n.kill();
    for (let rounds = 0; rounds < RECOVERY_ROUNDS; rounds++) {
      if ((await missing(world)).lacks.size === 0) break;
      const nodes = [this.#replay(beside), this.#replay(beside)];
      await this.#until(() => nodes.every((n) => n.outcome !== "running"), this.#time.nowMs + HEAL_MS);
      for (const { outcome } of nodes)
        if (outcome !== "done") this.#complaints.push(`recovery ended with ${outcome}`);
    }
    for (const { outcome } of this.#replays)
      if (outcome instanceof Failure && outcome.code === "internal.bug")
        this.#complaints.push(`recovery ended with ${outcome.message}`);
    const left = (await missing(world)).lacks;
    if (left.size > 0) this.#complaints.push(`recovery left gaps in ${[...left.keys()]}`);
    this.#complaints.push(...(await beside.judgeRecovered(await rowsIn(this.#folder))), ...beside.complaints);
  }

  #stoppedRightly({ outcome }: SimNode): boolean {
    return typeof outcome === "object" && CUT.has(outcome.code) && this.#truncated;
  }

  /**
   * Those that live, zombies that were woken among them, must come to share everything and to commit it, however
   * they were troubled before: no partition may be left without a reader that gets on.
   */
  async #shareAll(): Promise<void> {
    const living = () => this.#node.nodes.filter((n) => n.running);
    if (living().length === 0) this.#start(false);
    const open = () => {
      const offsets = this.#cluster.groups.get("g");
      return this.#oracles.flatMap(({ topic, deleted, expected }) =>
        expected.flatMap((_, p) => {
          if (deleted) return [];
          const { end } = this.#cluster.log(topic, p);
          return end > 0n && (offsets?.get(`${topic}/${p}`)?.offset ?? -1n) < end ? [`${topic}/${p}`] : [];
        }),
      );
    };
    const limit = this.#time.nowMs + SHARED_MS;
    await this.#until(() => living().length === 0 || open().length === 0, limit);
    // Without one that lives nobody is stuck: they ended, and the healed run says whether they should have.
    if (living().length === 0 || this.#truncated) return;
    if (open().length > 0) this.#complaints.push(`partitions ${open()} are stuck`);
  }

  async #until(done: () => boolean, limitMs: number): Promise<void> {
    while (!done() && (await this.#time.step(limitMs))) this.#steps++;
    if (!done()) this.#time.nowMs = Math.max(this.#time.nowMs, limitMs);
  }

  /** Calls `fn` again and again at random distances until the world heals. */
  #every(minMs: number, maxMs: number, fn: () => void): void {
    const clock = this.#time.clock(null);
    const chance = this.#chance.fork();
    const next = () =>
      void clock.after(minMs + chance.int(maxMs - minMs), () => {
        if (this.#healed) return;
        fn();
        next();
      });
    next();
  }

  #start(untilCaughtUp: boolean): SimNode {
    const serial = this.#node.nodes.length;
    const machine = this.#chance.int(2);
    // Few names, so that now and then two that live have the same one.
    const named = this.#o.groups === true && !untilCaughtUp && this.#chance.next() < 0.4;
    const name = named ? `i-${this.#chance.int(6)}` : null;
    const node = new SimNode(this.#node, serial, machine, this.#chance.fork(), untilCaughtUp, name);
    this.#node.nodes.push(node);
    this.#say(`${node.process.name} starts on machine ${node.machine}`);
    return node;
  }

  /** Starts a process where none works; sometimes one too many. */
  #supervise(): void {
    const working = this.#node.nodes.filter((n) => n.running && !n.process.paused);
    if (this.#o.groups === true) {
      if (working.length < 2 || (working.length < 5 && this.#chance.next() < 0.2)) this.#start(false);
      return;
    }
    if (working.length === 0 || (working.length === 1 && this.#chance.next() < 0.05)) this.#start(false);
  }

  #mischief(): void {
    const c = this.#chance;
    const running = this.#node.nodes.filter((n) => n.running);
    const kinds = [
      ...(this.#o.groups === true ? GROUP_KINDS : []),
      "kill",
      "kill",
      "pause",
      "wake",
      "broker",
      "leader",
      "cut",
      "store",
      "full",
      "writes",
      "request",
    ] as const;
    const kind = c.pick(kinds);
    this.#say(kind);
    switch (kind) {
      case "coordinator":
        return this.#killCoordinator();
      case "disaster":
        if (this.#disasters-- <= 0 || c.next() < 0.6) return;
        return c.next() < 0.6 ? this.#oracles[0]!.recreate() : this.#oracles[0]!.truncate();
      case "topic":
        return this.#changeTopics();
      case "leave":
        if (running.length > 0) c.pick(running).runner.drain("leaves");
        return;
      case "partitions":
        return this.#addPartition();
      case "requests":
        return this.#spoilGroupRequest();
      case "kill":
        if (running.length > 0) c.pick(running).kill();
        return;
      case "pause":
        if (running.length > 0) c.pick(running).process.paused = true;
        return;
      case "wake":
        for (const n of running) n.process.paused = false;
        return;
      case "broker":
        return this.#toggleBroker();
      case "leader":
        return this.#moveLeader();
      case "cut":
        return this.#cluster.cutConnections(1 + c.int(3));
      case "store":
        this.#folder.faults.fail = c.next() < 0.5 ? 0 : c.next() * 0.5;
        this.#folder.faults.failAfter = c.next() < 0.5 ? 0 : c.next() * 0.5;
        return;
      case "full":
        this.#folder.faults.fullUntil = this.#time.nowMs + c.int(4_000);
        return;
      case "writes":
        this.#writeFaults = c.int(4);
        return;
      case "request":
        return this.#spoilRequest();
    }
  }

  #addPartition(): void {
    const { topic, expected, deleted } = this.#chance.pick(this.#oracles);
    if (deleted || expected.length >= 8) return;
    this.#cluster.addPartitions(topic, 1);
    expected.push(new Map());
  }

  /** Where a pattern is read: a topic comes that matches it, or one of those goes. */
  #changeTopics(): void {
    if (this.#node.pattern === null) return;
    const last = this.#oracles.at(-1)!;
    if (this.#oracles.length > 1 && !last.deleted && this.#chance.next() < 0.3) return last.delete();
    if (this.#oracles.length > 3) return;
    const topic = `t${this.#oracles.length}`;
    const partitions = 1 + this.#chance.int(3);
    this.#cluster.createTopic(topic, { partitions });
    this.#oracles.push(new Oracle(this.#cluster, topic, partitions, this.#chance.fork()));
  }

  get #truncated(): boolean {
    return this.#oracles.some((o) => o.truncated);
  }

  #killCoordinator(): void {
    const alive = this.#cluster.brokers.filter((b) => b.alive).length;
    const coordinator = this.#cluster.coordinatorOf("g");
    if (alive > 1 && coordinator !== null) this.#cluster.kill(coordinator.id);
  }

  #toggleBroker(): void {
    const node = 1 + this.#chance.int(3);
    const alive = this.#cluster.brokers.filter((b) => b.alive).length;
    if (!this.#cluster.broker(node).alive) this.#cluster.revive(node);
    else if (alive > 1) this.#cluster.kill(node);
  }

  #moveLeader(): void {
    const alive = this.#cluster.brokers.filter((b) => b.alive).map((b) => b.id);
    const partition = this.#chance.int(this.#oracles[0]!.expected.length);
    this.#cluster.moveLeader(TOPIC, partition, this.#chance.pick(alive));
  }

  #spoilRequest(): void {
    const c = this.#chance;
    const api = c.pick([
      "Fetch",
      "Fetch",
      "Metadata",
      "OffsetCommit",
      "ListOffsets",
      "OffsetFetch",
      "ApiVersions",
    ] as const);
    const action = c.pick([
      { do: "drop", when: "before" },
      { do: "drop", when: "after" },
      { do: "stall" },
      { do: "delay", ms: c.int(3_000) },
      { do: "truncate", bytes: c.int(60) },
      { do: "miscount", by: 1 },
    ] as const);
    const times = 1 + c.int(2);
    if (api === "Fetch" && c.next() < 0.3) this.#damageRecords(times);
    else this.#cluster.script.on({ api, action, times });
  }

  #spoilGroupRequest(): void {
    const c = this.#chance;
    const apis = ["JoinGroup", "SyncGroup", "Heartbeat", "ConsumerGroupHeartbeat", "LeaveGroup"] as const;
    const action = c.pick([
      { do: "drop", when: "before" },
      { do: "drop", when: "after" },
      { do: "stall" },
      { do: "delay", ms: c.int(8_000) },
      { do: "error", code: c.pick([14, 15, 16, 22, 25, 27, 110]) },
    ] as const);
    this.#cluster.script.on({ api: c.pick(apis), action, times: 1 + c.int(2) });
  }

  /** Flips a bit where a batch's checksum must notice it. */
  #damageRecords(times: number): void {
    const at = this.#chance.int(2_000);
    const bit = 1 << this.#chance.int(8);
    const change = (response: Draft<ResponseOf<ApiName>>) => {
      const topics = (response as Draft<ResponseOf<"Fetch">>).responses ?? [];
      const partitions = topics.flatMap((t) => [...(t.partitions ?? [])]) as {
        records?: Uint8Array | null;
      }[];
      for (const p of partitions)
        if (p.records != null && p.records.length > 0) p.records = flip(p.records, at, bit);
      return response;
    };
    this.#cluster.script.on({ api: "Fetch", action: { do: "edit", change }, times });
  }

  #writeFault(): WriteFault | null {
    if (this.#healed || this.#writeFaults === 0) return null;
    this.#writeFaults--;
    return this.#chance.pick(["lost", "unknown_applied", "unknown_not_applied"] as const);
  }

  /** At the very moment when the broker takes a commit over. */
  #watchCommits(): void {
    const take = this.#cluster.commit.bind(this.#cluster);
    this.#cluster.commit = (group, topic, partition, committed) => {
      const ahead = commitAhead(this.#node.coverage, topic, partition, committed.offset);
      if (ahead !== null) this.#complaints.push(ahead);
      take(group, topic, partition, committed);
    };
  }

  #onEvent(node: SimNode, event: TwgEvent): void {
    this.#tell(node.process.name, event);
  }

  #tell(name: string, event: TwgEvent): void {
    if (this.#o.trace === undefined || UNTOLD.has(event.e)) return;
    this.#say(`${name} ${JSON.stringify(event, (_, v) => (typeof v === "bigint" ? String(v) : v))}`);
  }

  #say(line: string): void {
    this.#o.trace?.(`${String(Math.round(this.#time.nowMs)).padStart(7)} ${line}`);
  }
}

/** Whatever is done to a process, it may not end by an invariant of its own: a restart would hide that. */
function bugs(nodes: readonly SimNode[]): string[] {
  return nodes.flatMap(({ process, outcome }) =>
    typeof outcome === "object" && outcome.code === "internal.bug"
      ? [`${process.name} ended with ${outcome.message} (${outcome.at})`]
      : [],
  );
}

/** Time-outs in which a lot happens within the chaos. */
function sharing(chance: SeededChance): SharingOptions {
  return {
    protocol: chance.pick(["classic", "consumer"] as const),
    assignors: [ASSIGNORS[chance.pick(["cooperative-sticky", "cooperative-sticky", "range"] as const)]],
    serverAssignor: null,
    instanceId: null,
    rackId: null,
    sessionTimeoutMs: 3_000,
    heartbeatIntervalMs: 500,
    rebalanceTimeoutMs: 4_000,
  };
}

/** Damages one bit of the first batch, in what its checksum covers (from byte 21 on). */
function flip(records: Uint8Array, at: number, bit: number): Uint8Array {
  const copy = records.slice();
  const length = 12 + new DataView(copy.buffer).getInt32(8);
  const covered = Math.min(length, copy.length) - 21;
  if (covered > 0) copy[21 + (at % covered)]! ^= bit;
  return copy;
}
