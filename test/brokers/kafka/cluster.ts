/**
 * The state of a whole test cluster: brokers, topics with their logs, group offsets, faults and the trace. It speaks
 * through `connection.ts`, over sockets (`sockets.ts`) or in memory (`memory-net.ts`), and is deterministic: time comes
 * in as a port, ids are counted.
 *
 * It does not do: the second transaction protocol (KIP-890), quotas, ACLs, exact offsets by timestamp (it answers with
 * the batch).
 */
import type { ApiName, DecodedRequest } from "../../../src/adapters/kafka/wire/protocol.ts";
import { decodeUuid, encodeUuid, ZERO_UUID } from "../../../src/adapters/kafka/wire/uuid.ts";
import type { Clock } from "../../../src/core/time/clock.ts";
import { FetchSessions } from "./fetch-sessions.ts";
import { ClassicGroup } from "./group-classic.ts";
import { ConsumerGroup } from "./group-consumer.ts";
import { PartitionLog } from "./partition-log.ts";
import { ProducerStates } from "./producer-states.ts";
import { PROFILES, type Profile, type ProfileName } from "./profiles.ts";
import type { SaslServer } from "./sasl-server.ts";
import { Script } from "./script.ts";
import { Transactions } from "./transactions.ts";

export interface Partition {
  readonly index: number;
  /** Node id, -1: none. */
  leader: number;
  leaderEpoch: number;
  readonly replicas: readonly number[];
  log: PartitionLog;
  readonly producers: ProducerStates;
  /** How far followers are; null: as far as the leader. */
  followersEnd: bigint | null;
  /** Errors that requests about this partition meet, the oldest first. */
  faults: { readonly api: ApiName | null; readonly code: number; times: number }[];
}

export interface Topic {
  readonly name: string;
  readonly id: string;
  readonly partitions: Partition[];
  /** Settings that DescribeConfigs tells. */
  readonly configs: Map<string, string>;
  /** Requests meet this error instead of the topic (say, TOPIC_AUTHORIZATION_FAILED). 0: none. */
  error: number;
}

export interface CommittedOffset {
  readonly offset: bigint;
  readonly leaderEpoch: number;
  readonly metadata: string | null;
}

/** Ends a connection from the broker's side. */
export interface LiveConnection {
  cut(): void;
}

export interface Broker {
  readonly id: number;
  host: string;
  port: number;
  readonly rack: string | null;
  profile: Profile;
  alive: boolean;
  readonly sessions: FetchSessions;
  readonly connections: Set<LiveConnection>;
}

export interface TraceEntry {
  readonly atMs: number;
  readonly node: number;
  readonly connection: number;
  readonly request: DecodedRequest;
}

export interface ClusterOptions {
  readonly clock: Clock;
  /** Number of brokers, ids from 1. Default 1. */
  readonly brokers?: number;
  readonly clusterId?: string | null;
  readonly profile?: ProfileName | Profile;
  /** Present: every connection must log in. */
  readonly sasl?: SaslServer;
  /** Broker n is in rack `rn`, and leaders send those who name a rack to the replica in it (KIP-392). */
  readonly racks?: boolean;
  /** Fetch sessions per broker. Default 1000, as in Kafka. */
  readonly sessionSlots?: number;
  /** Requests kept in the trace. Default 100000. */
  readonly traceLimit?: number;
  readonly onComplaint?: (text: string) => void;
}

export interface TopicOptions {
  readonly partitions?: number;
  /** Where all logs begin. Default 0. */
  readonly start?: bigint;
  /** Leader epoch of all partitions. Default 0. */
  readonly epoch?: number;
}

export const COORDINATOR_KEY = (group: string): number =>
  [...group].reduce((h, c) => (h * 31 + c.charCodeAt(0)) | 0, 7) >>> 0;

export class FakeCluster {
  readonly clock: Clock;
  readonly clusterId: string | null;
  readonly brokers: Broker[] = [];
  readonly topics = new Map<string, Topic>();
  /** group -> "topic/partition" -> offset */
  readonly groups = new Map<string, Map<string, CommittedOffset>>();
  /** Groups that have members: a commit from outside is refused. */
  readonly groupsWithMembers = new Set<string>();
  readonly classicGroups = new Map<string, ClassicGroup>();
  readonly consumerGroups = new Map<string, ConsumerGroup>();
  readonly script = new Script();
  readonly sasl: SaslServer | null;
  readonly trace: TraceEntry[] = [];
  /** Why connections were closed on clients: what they sent that no broker would take. */
  readonly complaints: string[] = [];
  /** Called when a broker goes down or comes up. */
  readonly onBroker: ((broker: Broker) => void)[] = [];
  autoCreateTopics = false;
  /** Leaders name the replica in the client's rack even where they should know that it is behind. */
  namesAnyReplica = false;
  nextProducerId = 1000n;
  readonly transactions = new Transactions();
  /** As message.max.bytes. */
  maxBatchBytes = 1_048_588;
  /** What a broker says of a batch before it looks at its sequence: an error code, 0 for none. */
  validates: (topic: string, batch: Uint8Array) => number = () => 0;
  #topicCount = 0;
  #connectionCount = 0;
  readonly #traceLimit: number;
  readonly #onComplaint: (text: string) => void;
  readonly #waiting = new Set<() => void>();

  constructor(options: ClusterOptions) {
    this.clock = options.clock;
    this.clusterId = options.clusterId === undefined ? "test-cluster" : options.clusterId;
    this.sasl = options.sasl ?? null;
    this.#traceLimit = options.traceLimit ?? 100_000;
    this.#onComplaint = options.onComplaint ?? (() => {});
    const profile =
      typeof options.profile === "object" ? options.profile : PROFILES[options.profile ?? "4.x"];
    for (let id = 1; id <= (options.brokers ?? 1); id++) {
      this.brokers.push({
        id,
        host: "127.0.0.1",
        port: 9091 + id,
        rack: options.racks === true ? `r${id}` : null,
        profile,
        alive: true,
        sessions: new FetchSessions(options.sessionSlots ?? 1000),
        connections: new Set(),
      });
    }
  }

  broker(id: number): Broker {
    const found = this.brokers.find((b) => b.id === id);
    if (found === undefined) throw new Error(`no broker ${id}`);
    return found;
  }

  /** "host:port" of all brokers, for bootstrap. */
  get bootstrap(): string[] {
    return this.brokers.map((b) => `${b.host}:${b.port}`);
  }

  nextConnection(): number {
    return ++this.#connectionCount;
  }

  complain(text: string): void {
    this.complaints.push(text);
    this.#onComplaint(text);
  }

  note(node: number, connection: number, request: DecodedRequest): void {
    if (this.#traceLimit === 0) return;
    if (this.trace.length >= this.#traceLimit) this.trace.shift();
    this.trace.push({ atMs: this.clock.monotonic(), node, connection, request });
  }

  /** Requests of one API so far, in their order. */
  requests<A extends ApiName>(api: A): Extract<DecodedRequest, { api: A }>[] {
    return this.trace
      .filter((t) => t.request.api === api)
      .map((t) => t.request as Extract<DecodedRequest, { api: A }>);
  }

  // ---- topics

  createTopic(name: string, options: TopicOptions = {}): Topic {
    const id = this.#newTopicId();
    const topic: Topic = { name, id, partitions: [], configs: new Map(), error: 0 };
    this.topics.set(name, topic);
    for (let i = 0; i < (options.partitions ?? 1); i++) this.#addPartition(topic, options);
    this.changed();
    return topic;
  }

  #newTopicId(): string {
    const bytes = encodeUuid(ZERO_UUID);
    bytes.set([0x7e, 0x57], 0);
    new DataView(bytes.buffer).setUint32(12, ++this.#topicCount);
    return decodeUuid(bytes);
  }

  #addPartition(topic: Topic, options: TopicOptions): void {
    const index = topic.partitions.length;
    const ids = this.brokers.map((b) => b.id);
    const replicas = ids.map((_, i) => ids[(index + i) % ids.length]!).slice(0, 3);
    const log = new PartitionLog(options.start ?? 0n);
    const leaderEpoch = options.epoch ?? 0;
    log.beginEpoch(leaderEpoch);
    const producers = new ProducerStates();
    topic.partitions.push({
      index,
      leader: replicas[0]!,
      leaderEpoch,
      replicas,
      log,
      producers,
      followersEnd: null,
      faults: [],
    });
  }

  addPartitions(name: string, count: number): void {
    const topic = this.topic(name);
    for (let i = 0; i < count; i++) this.#addPartition(topic, {});
    this.changed();
  }

  topic(name: string): Topic {
    const topic = this.topics.get(name);
    if (topic === undefined) throw new Error(`no topic ${name}`);
    return topic;
  }

  topicById(id: string): Topic | undefined {
    return id === ZERO_UUID ? undefined : [...this.topics.values()].find((t) => t.id === id);
  }

  partition(topic: string, index: number): Partition {
    const found = this.topic(topic).partitions[index];
    if (found === undefined) throw new Error(`no partition ${topic}/${index}`);
    return found;
  }

  log(topic: string, index: number): PartitionLog {
    return this.partition(topic, index).log;
  }

  /** A topic of the same name with a new id and empty logs. Kafka drops the groups' offsets of a deleted topic. */
  recreateTopic(name: string, options: TopicOptions & { readonly keepCommits?: boolean } = {}): Topic {
    const partitions = options.partitions ?? this.topic(name).partitions.length;
    this.deleteTopic(name, options.keepCommits);
    return this.createTopic(name, { ...options, partitions });
  }

  deleteTopic(name: string, keepCommits = false): void {
    this.topics.delete(name);
    if (!keepCommits) {
      for (const offsets of this.groups.values()) {
        for (const key of offsets.keys()) if (key.startsWith(`${name}/`)) offsets.delete(key);
      }
    }
    this.changed();
  }

  // ---- logs

  /** Appends a well-formed batch to a partition; returns its base offset. */
  append(topic: string, index: number, batch: Uint8Array): bigint {
    const p = this.partition(topic, index);
    const base = p.log.append(batch, p.leaderEpoch);
    this.changed();
    return base;
  }

  endTransaction(topic: string, index: number, type: "commit" | "abort", producerId: bigint): bigint {
    const p = this.partition(topic, index);
    const base = p.log.endTransaction(type, producerId, p.leaderEpoch);
    this.changed();
    return base;
  }

  /** An unclean election: the log loses everything from `to` on and a new epoch begins. */
  truncate(topic: string, index: number, to: bigint): void {
    const p = this.partition(topic, index);
    p.log.truncate(to);
    this.#elect(p, p.leader);
    this.changed();
  }

  advanceLogStart(topic: string, index: number, to: bigint): void {
    this.log(topic, index).advanceStart(to);
    this.changed();
  }

  /** The next `times` requests about the partition meet this error, those of one API or of any that asks its leader. */
  failPartition(
    topic: string,
    index: number,
    code: number,
    options: { readonly api?: ApiName; readonly times?: number } = {},
  ): void {
    this.partition(topic, index).faults.push({ api: options.api ?? null, code, times: options.times ?? 1 });
    this.changed();
  }

  // ---- brokers

  moveLeader(topic: string, index: number, node: number): void {
    this.#elect(this.partition(topic, index), node);
    this.changed();
  }

  #elect(p: Partition, node: number): void {
    p.leader = node;
    if (node < 0) return;
    p.leaderEpoch++;
    p.log.beginEpoch(p.leaderEpoch);
  }

  /** Connections are cut, new ones refused; its partitions get another leader, or none with `elect: false`. */
  kill(node: number, options: { readonly elect?: boolean } = {}): void {
    const broker = this.broker(node);
    broker.alive = false;
    broker.sessions.evictAll();
    for (const topic of this.topics.values()) {
      for (const p of topic.partitions.filter((q) => q.leader === node)) {
        const next = options.elect === false ? undefined : p.replicas.find((id) => this.broker(id).alive);
        this.#elect(p, next ?? -1);
      }
    }
    for (const connection of [...broker.connections]) connection.cut();
    for (const tell of this.onBroker) tell(broker);
    this.changed();
  }

  revive(node: number): void {
    const broker = this.broker(node);
    broker.alive = true;
    for (const topic of this.topics.values()) {
      for (const p of topic.partitions) if (p.leader < 0 && p.replicas.includes(node)) this.#elect(p, node);
    }
    for (const tell of this.onBroker) tell(broker);
    this.changed();
  }

  /** Cuts every connection of a broker, which goes on. */
  cutConnections(node: number): void {
    for (const connection of [...this.broker(node).connections]) connection.cut();
  }

  /** The living broker that keeps a group's offsets. */
  coordinatorOf(group: string): Broker | null {
    const alive = this.brokers.filter((b) => b.alive);
    return alive[COORDINATOR_KEY(group) % Math.max(alive.length, 1)] ?? null;
  }

  classicGroup(name: string): ClassicGroup {
    let group = this.classicGroups.get(name);
    if (group === undefined) {
      group = new ClassicGroup(this.clock, name);
      this.classicGroups.set(name, group);
    }
    return group;
  }

  consumerGroup(name: string): ConsumerGroup {
    let group = this.consumerGroups.get(name);
    if (group === undefined) {
      group = new ConsumerGroup(this.clock, (topic) => {
        const found = this.topics.get(topic);
        return found === undefined ? null : { id: found.id, partitions: found.partitions.length };
      });
      this.consumerGroups.set(name, group);
    }
    return group;
  }

  committed(group: string, topic: string, partition: number): CommittedOffset | undefined {
    return this.groups.get(group)?.get(`${topic}/${partition}`);
  }

  commit(group: string, topic: string, partition: number, offset: CommittedOffset): void {
    let offsets = this.groups.get(group);
    if (offsets === undefined) {
      offsets = new Map();
      this.groups.set(group, offsets);
    }
    offsets.set(`${topic}/${partition}`, offset);
  }

  // ---- long polls

  /** Calls `wake` after every change of logs or leaders until the returned function is called. */
  watch(wake: () => void): () => void {
    this.#waiting.add(wake);
    return () => this.#waiting.delete(wake);
  }

  /** Tells the waiting fetches that something has changed. */
  changed(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}
