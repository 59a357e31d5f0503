/**
 * The Kafka source: finds partitions, lets the host begin them, has them read, commits what is durable, and follows
 * the cluster's metadata. Positions are decided by the host.
 */
import { asFailure, Failure } from "../../core/failure/failure.ts";
import type { AckMark, Source, SourceHost, StreamStart } from "../../core/ports/source.ts";
import { sleep } from "../../core/time/clock.ts";
import { type ClientOptions, type ClientParts, KafkaClient } from "./client.ts";
import { Backoff, brokerFailure, isWorthAnotherTry, type Phase } from "./client-retry.ts";
import { type Committing, GroupCommitter } from "./source-commit.ts";
import {
  awaitTopics,
  type DiscoveryOptions,
  type Facts,
  firstContact,
  gatherFacts,
  knownPartitions,
  refuseTopics,
  unreachable,
} from "./source-discovery.ts";
import { GroupSide, type SharingOptions } from "./source-group.ts";
import { type CommittedOffset, type GroupPartition, keyOf, type OffsetParts } from "./source-offsets.ts";
import { Partition } from "./source-partition.ts";
import { leaderless, leaderOf, recreated } from "./source-policy.ts";
import { PartitionReader, type ReaderOptions } from "./source-reader.ts";
import { SourceTopics } from "./source-topics.ts";
import { Troubles } from "./source-trouble.ts";
import { ZERO_UUID } from "./wire/uuid.ts";

export interface KafkaSourceSettings extends DiscoveryOptions, ReaderOptions, ClientOptions {
  readonly partitionMaxBytes: number;
  readonly metadataRefreshMs: number;
  readonly onRecreated: "fail" | "new_incarnation";
  /** Null: this process reads all partitions by itself. */
  readonly sharing: SharingOptions | null;
}

/** Shortest time between two metadata requests, however many errors ask for one. */
const METADATA_PAUSE_MS = 100;
export class KafkaSource implements Source {
  readonly #s: KafkaSourceSettings;
  readonly #p: ClientParts;
  readonly #client: KafkaClient;
  readonly #committer: GroupCommitter | null;
  readonly #topics: SourceTopics;
  readonly #begun = new Set<string>();
  readonly #tasks = new Set<Promise<void>>();
  #running: {
    readonly host: SourceHost;
    readonly reader: PartitionReader;
    readonly troubles: Troubles;
    readonly group: GroupSide | null;
  } | null = null;
  #phase: Phase = "starting";
  #wakeMetadata: (() => void) | null = null;
  #metadataWanted = false;
  /** Partitions that are ours to read and not begun. */
  #unbegun = 0;
  /** Metadata is digested by one at a time, or the same partition might be begun twice. */
  #digesting: Promise<void> = Promise.resolve();
  #end: { resolve: () => void; reject: (f: Failure) => void } | null = null;
  #closed = false;
  #login: Pick<KafkaSourceSettings, "tls" | "sasl">;

  constructor(settings: KafkaSourceSettings, parts: ClientParts) {
    this.#s = settings;
    this.#p = parts;
    this.#login = settings;
    this.#client = new KafkaClient(settings, parts);
    this.#topics = new SourceTopics(settings);
    this.#committer =
      settings.group === null ? null : new GroupCommitter(this.#commitParts(), settings.group);
  }

  run(host: SourceHost): Promise<void> {
    const troubles = new Troubles(
      this.#p.clock,
      (f) => host.troubled(f),
      () => host.healthy(),
    );
    const reader = new PartitionReader(this.#s, {
      ...this.#p,
      client: this.#client,
      host,
      troubles,
      offsets: this.#offsetParts(troubles),
      checked: () => this.#tellAwaited(),
      wantMetadata: () => this.#wantMetadata(),
      syncMetadata: () => this.#syncMetadata(),
      task: (work) => this.#task(work),
      fail: (failure) => this.#fail(failure),
    });
    const group = this.#groupSide(host, reader, troubles);
    this.#running = { host, reader, troubles, group };
    return new Promise((resolve, reject) => {
      this.#end = { resolve, reject };
      if (this.#closed) resolve();
      else this.#task(this.#start(troubles));
    });
  }

  #commitParts() {
    const parts = { client: this.#client, ...this.#p };
    if (this.#s.sharing === null) return parts;
    const member = (signal: AbortSignal) => this.#group().member(signal);
    return { ...parts, member, mayTell: (stream: number) => this.#running?.reader.get(stream) != null };
  }

  #groupSide(host: SourceHost, reader: PartitionReader, troubles: Troubles): GroupSide | null {
    const { group, sharing } = this.#s;
    if (group === null || sharing === null) return null;
    return new GroupSide(group, sharing, {
      ...this.#p,
      client: this.#client,
      host,
      reader,
      troubles,
      wantMetadata: () => this.#wantMetadata(),
      settled: () => this.#digesting,
      forget: (name) => this.#begun.delete(name),
      fail: (failure) => this.#fail(failure),
    });
  }

  #group(): GroupSide {
    const { group } = this.#now;
    if (group === null) throw new Failure("internal.bug", "the source is in no group");
    return group;
  }

  /** Who we are in the group, waits while it forms anew; null: no member of one. */
  async member(signal: AbortSignal): Promise<Committing | null> {
    return (await this.#running?.group?.member(signal)) ?? null;
  }

  /** False from the moment on in which the stream's partition is lost to another member. */
  owns(stream: number): boolean {
    return this.#running?.reader.get(stream) != null;
  }

  confirmation(): Promise<number | null> {
    return this.#running?.group?.confirmation() ?? Promise.resolve(null);
  }

  seek(stream: number, position: bigint, attempt: number): void {
    this.#running?.reader.seek(stream, position, attempt);
  }

  async acknowledge(marks: readonly AckMark[]): Promise<readonly AckMark[]> {
    if (this.#committer === null) return marks;
    const reader = this.#running?.reader;
    const commits = marks.flatMap(({ stream, next }) => {
      const p = reader?.get(stream) ?? null;
      if (p === null) return [];
      const { topic, partition, topicId } = p;
      return [{ stream, topic, partition, topicId, next, leaderEpoch: p.epochBefore(next) }];
    });
    if (commits.length === 0) return [];
    try {
      await this.#committer.commit(commits, this.#client.life);
      return commits;
    } catch (e) {
      const failure = asFailure(e);
      if (failure.code === "kafka.group_denied" || failure.code === "kafka.topic_denied") this.#fail(failure);
      throw failure;
    }
  }

  /** Rotated credentials: connections that are opened from now on use them. True if they differ. */
  renew(settings: KafkaSourceSettings): boolean {
    const { tls, sasl } = settings;
    const changed = JSON.stringify([tls, sasl]) !== JSON.stringify([this.#login.tls, this.#login.sasl]);
    this.#login = settings;
    this.#client.renew({ ...settings });
    return changed;
  }

  leaderEpochBefore(stream: number, next: bigint): number | null {
    const epoch = this.#running?.reader.get(stream)?.epochAt(next) ?? -1;
    return epoch < 0 ? null : epoch;
  }

  pause(): void {
    this.#running?.reader.stop();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.pause();
    await this.#running?.group?.close();
    this.#client.close();
    this.#wakeMetadata?.();
    while (this.#tasks.size > 0) await Promise.allSettled([...this.#tasks]);
    this.#end?.resolve();
  }

  async #start(troubles: Troubles): Promise<void> {
    const signal = this.#client.life;
    const parts = this.#offsetParts(troubles);
    const first = await firstContact(this.#s, parts, signal);
    await awaitTopics(this.#s, parts, first, signal);
    this.#topics.found(first, this.#client.metadata, this.#p.clock.monotonic());
    this.#topics.settled(this.#client.metadata);
    const { group } = this.#now;
    this.#tellGroup();
    await this.#beginNew(this.#p.clock.monotonic() + this.#s.connectTimeoutMs);
    const isNoneBegun = this.#begun.size === 0 && !this.#topics.isWaiting;
    if (group === null && isNoneBegun) throw unreachable(this.#s, troubles.last);
    this.#phase = "running";
    troubles.clear("start");
    this.#tellTopics();
    this.#now.reader.follow();
    await this.#keepMetadata(signal);
  }

  /** Which topics there are for it, and for the members that it leads. It joins once there is one. */
  #tellGroup(): void {
    const { group } = this.#now;
    if (group === null || (this.#topics.isWaiting && !group.isStarted)) return;
    // As Kafka's own leader: replicas that move are watched by one that has a rack itself.
    const hasRack = this.#s.sharing?.rackId != null;
    group.topics(this.#topics.names, this.#topics.facts(this.#client.metadata, group.watched, hasRack));
    group.start();
  }

  #tellTopics(): void {
    const { troubles } = this.#now;
    const { trouble } = this.#topics;
    if (trouble === null) troubles.clear("topics");
    else troubles.report("topics", trouble);
  }

  /** Metadata at an interval, or soon after somebody asked; ends at the close only. */
  async #keepMetadata(signal: AbortSignal): Promise<void> {
    const { troubles } = this.#now;
    const backoff = new Backoff(this.#p.chance);
    while (!signal.aborted) {
      if (!this.#metadataWanted) await this.#idle(this.#topics.pauseMs(this.#s.metadataRefreshMs));
      this.#metadataWanted = false;
      let pause = METADATA_PAUSE_MS;
      try {
        await this.#syncMetadata();
        troubles.clear("metadata");
        backoff.reset();
      } catch (e) {
        const failure = asFailure(e);
        if (signal.aborted) return;
        if (!isWorthAnotherTry(failure, "running")) throw failure;
        troubles.report("metadata", failure);
        this.#metadataWanted = true;
        pause = backoff.next();
      }
      await sleep(this.#p.clock, pause, signal).catch(() => {});
    }
  }

  /** For `ms`, or until somebody wants metadata. */
  async #idle(ms: number): Promise<void> {
    const wait = new AbortController();
    this.#wakeMetadata = () => wait.abort();
    if (this.#closed) wait.abort();
    await sleep(this.#p.clock, ms, wait.signal).catch(() => {});
    this.#wakeMetadata = null;
  }

  #wantMetadata(): void {
    this.#metadataWanted = true;
    this.#wakeMetadata?.();
  }

  #syncMetadata(): Promise<void> {
    const mine = this.#digesting.then(async () => {
      const wanted = this.#topics.wanted(this.#now.group?.watched);
      const change = await this.#client.refresh(wanted, this.#client.life);
      const gone = this.#topics.found(change, this.#client.metadata, this.#p.clock.monotonic());
      await this.#leaveTopics(gone);
      await this.#digest(change.errors);
    });
    this.#digesting = mine.catch(() => {});
    return mine;
  }

  /** Deleted, or not ours to see any more. Should one come back with its records, it goes on where it was. */
  async #leaveTopics(gone: readonly string[]): Promise<void> {
    const { host, reader, troubles, group } = this.#now;
    // A group takes its partitions away from whoever has them.
    if (gone.length === 0 || group !== null) return;
    const left = reader.living().filter((p) => gone.includes(p.topic));
    for (const p of left) reader.leave(p.topic, p.partition, "leaving");
    await host.release(
      left.map((p) => p.stream),
      "its topic is not there any more",
    );
    for (const p of left) {
      reader.drop(p.stream);
      this.#begun.delete(p.name);
    }
    for (const topic of gone) troubles.clear(`topic ${topic}`);
  }

  async #digest(all: ReadonlyMap<string, number>): Promise<void> {
    const { host, reader, troubles } = this.#now;
    // Of what only others of the group read nothing is to be said here.
    const errors = new Map([...all].filter(([topic]) => this.#topics.names.includes(topic)));
    refuseTopics(errors);
    for (const [topic, code] of errors) {
      troubles.report(`topic ${topic}`, brokerFailure(code, `Metadata of topic ${topic}`, topic));
    }
    for (const p of reader.living()) {
      if (!errors.has(p.topic)) troubles.clear(`topic ${p.topic}`);
      const id = this.#client.metadata.idOf(p.topic);
      if (p.topicId === id || p.topicId === ZERO_UUID || id === ZERO_UUID) continue;
      if (this.#s.onRecreated === "fail") throw recreated(p.topic, p.topicId, id);
      reader.retire(p);
      // Before its namesake begins, so that the two are not taken for one.
      await host.gone(p.stream);
      this.#begun.delete(p.name);
    }
    this.#tellGroup();
    this.#tellTopics();
    // One pass: what has no leader now is asked for again with the next metadata.
    if (!reader.stopped.aborted) await this.#beginNew(this.#p.clock.monotonic());
    reader.follow();
  }

  /** Begins partitions that are known now and were not before, as far as the brokers answer by the deadline. */
  async #beginNew(deadline: number): Promise<void> {
    const { troubles, group } = this.#now;
    const parts = this.#offsetParts(troubles);
    const known = knownPartitions(this.#s, parts);
    const mine = group?.mine(known) ?? known;
    const open = mine.filter((p) => !this.#begun.has(keyOf(p.topic, p.partition)));
    // Before the group has told what is ours, or a topic is there, something may be.
    const isOpen = group?.joined === false || this.#topics.isWaiting;
    this.#unbegun = isOpen ? Math.max(1, open.length) : open.length;
    this.#tellAwaited();
    if (open.length === 0) return;
    const facts = await gatherFacts(this.#s, parts, open, deadline, this.#client.life);
    if (facts.length > 0) {
      const starts = await this.#beginFound(facts);
      const byName = new Map(facts.map((f) => [keyOf(f.found.topic, f.found.partition), f]));
      for (const start of starts) this.#add(start, byName.get(keyOf(start.id.topic, start.id.partition)));
    }
    this.#awaitOthers(open);
  }

  /** None while the group forms anew, or where another member was ahead of us: that is tried again. */
  async #beginFound(facts: readonly Facts[]): Promise<readonly StreamStart[]> {
    const { host, group } = this.#now;
    const epoch = group === null ? null : group.epoch;
    if (epoch === undefined) return [];
    try {
      const starts = await host.begin(
        facts.map((f) => f.found),
        epoch,
      );
      group?.begun();
      return starts;
    } catch (e) {
      const failure = asFailure(e);
      if (group === null || failure.code !== "coverage.epoch_behind") throw failure;
      group.refused();
      return [];
    }
  }

  #tellAwaited(): void {
    const { host, reader } = this.#now;
    host.awaited(this.#unbegun + reader.unchecked());
  }

  /** Says which of them could not be begun yet, and looks again soon. */
  #awaitOthers(open: readonly GroupPartition[]): void {
    const { reader, troubles } = this.#now;
    let unbegun = 0;
    for (const { topic, partition } of open) {
      if (this.#begun.has(keyOf(topic, partition))) continue;
      unbegun++;
      if (this.#client.metadata.leader(topic, partition).leader < 0)
        troubles.report(leaderOf(topic, partition), leaderless(topic, partition));
    }
    if (unbegun > 0) reader.followLeaderless();
    this.#unbegun = unbegun;
    this.#tellAwaited();
  }

  #add(start: StreamStart, facts: Facts | undefined): void {
    const { host, reader } = this.#now;
    const { stream, lane, position, attempt } = start;
    if (facts === undefined) throw new Failure("internal.bug", `stream ${stream} was begun but never found`);
    const { found, committed } = facts;
    const p = new Partition({
      topic: found.topic,
      partition: found.partition,
      topicId: found.topicId ?? ZERO_UUID,
      stream,
      lane,
      position,
      attempt,
      maxBytes: this.#s.partitionMaxBytes,
      epoch: start.leaderEpoch ?? epochOf(start, committed),
    });
    this.#begun.add(p.name);
    reader.add(p);
    host.watermark(stream, found.latest, found.earliest);
  }

  get #now() {
    if (this.#running === null) throw new Failure("internal.bug", "the source does not run yet");
    return this.#running;
  }

  #offsetParts(troubles: Troubles): OffsetParts {
    return {
      ...this.#p,
      client: this.#client,
      topics: this.#topics,
      phase: () => this.#phase,
      troubled: (f) => troubles.report(this.#phase === "starting" ? "start" : "metadata", f),
    };
  }

  /** Background work: its failure is the source's, unless everything is ending anyway. */
  #task(work: Promise<void>): void {
    const task: Promise<void> = work
      .catch((e) => {
        if (!this.#closed) this.#fail(asFailure(e));
      })
      .finally(() => this.#tasks.delete(task));
    this.#tasks.add(task);
  }

  #fail(failure: Failure): void {
    this.pause();
    this.#end?.reject(failure);
  }
}

/** Of the record before the position, as the commit has it; -1: it says nothing of it. */
function epochOf({ stale, position }: StreamStart, committed: CommittedOffset | null): number {
  if (stale === true || committed === null || committed.offset !== position) return -1;
  return committed.leaderEpoch;
}
