/**
 * The loop that reads from one broker for one lane: ask the lane for room, send one fetch, cut the answer in frames,
 * hand the buffer on, again. Its connection has nothing else on it, and its answers land in buffers of the lane.
 *
 * It ends when none of its partitions is led by this broker any more. Whatever goes wrong with a partition is told
 * to `watch`, which knows about metadata and policies; the loop itself only leaves such partitions out.
 */
import { asFailure, Failure } from "../../core/failure/failure.ts";
import type { SourceHost } from "../../core/ports/source.ts";
import type { Frame } from "../../core/records/frame.ts";
import type { Chance } from "../../core/time/chance.ts";
import { type Clock, sleep } from "../../core/time/clock.ts";
import type { KafkaClient } from "./client.ts";
import type { BrokerLink } from "./client-link.ts";
import { Backoff, brokerFailure, isWorthAnotherTry } from "./client-retry.ts";
import type { ResponseMemory } from "./session/connection.ts";
import { FetchSession, type WantedPartition } from "./session/fetch-session.ts";
import { type Asked, cutFrame, isCurrent } from "./source-frames.ts";
import type { Partition } from "./source-partition.ts";
import { ERROR, kafkaError } from "./wire/errors.ts";
import type { FetchResponse, FetchResponsePartition } from "./wire/messages/fetch.ts";
import { TOPIC_ID_VERSION } from "./wire/protocol.ts";
import { ZERO_UUID } from "./wire/uuid.ts";

export interface FetchOptions {
  readonly committedOnly: boolean;
  readonly maxWaitMs: number;
  readonly maxBytes: number;
  readonly requestTimeoutMs: number;
  /** Told to leaders, which may name a closer replica (KIP-392). Empty: none. */
  readonly rackId: string;
  /** Bound of what a partition's share may grow to for one large batch. */
  readonly maxResponseBytes: number;
}

export interface FetchParts {
  readonly client: KafkaClient;
  readonly clock: Clock;
  readonly chance: Chance;
  readonly host: SourceHost;
}

/** What the source does about the things that a loop meets. */
export interface FetchWatch {
  /** Partitions of the lane that are read from this broker and that may be fetched, and when the next held one may. */
  due(
    broker: number,
    lane: number,
    now: number,
  ): { readonly partitions: readonly Partition[]; readonly nextAt: number };
  /** Loops that share the lane's room. */
  loops(lane: number): number;
  partitionFailed(p: Partition, answer: FetchResponsePartition, response: FetchResponse, at: string): void;
  /** The broker is not the leader of the partition, but a closer replica. */
  follows(p: Partition, broker: number): boolean;
  /** A follower may be behind or out of order. True: it is one, and its answer is left to the leader. */
  toLeader(p: Partition, broker: number): boolean;
  /** The leader names a replica that is closer. */
  closer(p: Partition, replica: number): void;
  /** It had failed, and now answers. */
  partitionHealthy(p: Partition): void;
  diverged(p: Partition, endOffset: bigint): void;
  unreadable(p: Partition, failure: Failure): void;
  /** The broker cannot be reached or answers nonsense; null: it answers. */
  broker(broker: number, lane: number, failure: Failure | null): void;
  /** Resolves when the loop should look again before a pause ends. */
  readonly stopped: AbortSignal;
}

/** Below this a fetch costs more than it brings: wait a moment instead when a lane is nearly full. */
const SMALLEST_FETCH = 64 * 1024;
/** Pause for a partition that answers without progress or with a passing error. */
const RETRY_PAUSE_MS = 100;

const MAX_REFUSALS = 3;
/** Once may be a stranger on the port; again and again it is a batch above response_max_bytes, which only its owner can mend. */
const MAX_OVERSIZED = 3;

export class FetchLoop {
  readonly broker: number;
  readonly lane: number;
  readonly #options: FetchOptions;
  readonly #parts: FetchParts;
  readonly #watch: FetchWatch;
  readonly #session = new FetchSession();
  readonly #memory: ResponseMemory;
  #turn = 0;
  #refusals = 0;
  #oversized = 0;
  #wake: (() => void) | null = null;

  constructor(broker: number, lane: number, options: FetchOptions, parts: FetchParts, watch: FetchWatch) {
    this.broker = broker;
    this.lane = lane;
    this.#options = options;
    this.#parts = parts;
    this.#watch = watch;
    this.#memory = {
      take: (size) => new Uint8Array(parts.host.takeBuffer(size), 0, size),
      give: (memory) => parts.host.giveBuffer(memory.buffer as ArrayBuffer),
    };
  }

  get purpose(): string {
    return `fetch-${this.lane}`;
  }

  /** A held partition became free, or moved here. */
  wake(): void {
    this.#wake?.();
  }

  /** Resolves when there is nothing left to read here, or at the stop. Never rejects for what the network does. */
  async run(): Promise<void> {
    const { clock, chance, host } = this.#parts;
    const { stopped } = this.#watch;
    const backoff = new Backoff(chance);
    while (!stopped.aborted) {
      if (host.room(this.lane) <= 0) {
        await this.#pause(null);
        continue;
      }
      const { partitions, nextAt } = this.#watch.due(this.broker, this.lane, clock.monotonic());
      if (partitions.length === 0) {
        if (nextAt === Number.POSITIVE_INFINITY) break;
        await this.#pause(Math.max(1, nextAt - clock.monotonic()));
        continue;
      }
      try {
        await this.#fetch();
        this.#oversized = 0;
        backoff.reset();
      } catch (e) {
        if (stopped.aborted) break;
        const failure = asFailure(e);
        this.#session.reset(true);
        this.#watch.broker(this.broker, this.lane, failure);
        if (!isWorthAnotherTry(failure, "running")) throw failure;
        if (failure.code !== "kafka.response_too_large") this.#oversized = 0;
        else if (++this.#oversized > MAX_OVERSIZED) throw failure;
        await this.#pause(backoff.next(), false);
      }
    }
    this.#parts.client.release(this.broker, this.purpose);
  }

  /** For `ms` (null: until there is room), or until stopped or, where new partitions would end the wait, woken. */
  async #pause(ms: number | null, wakeable = true): Promise<void> {
    const { clock, host } = this.#parts;
    const { stopped } = this.#watch;
    const wait = new AbortController();
    const end = () => wait.abort();
    if (wakeable) this.#wake = end;
    stopped.addEventListener("abort", end, { once: true });
    if (ms === null) host.whenRoom(this.lane, end);
    if (stopped.aborted) end();
    const longest = ms ?? 0x7fffffff;
    await sleep(clock, longest, wait.signal).catch(() => {});
    this.#wake = null;
    stopped.removeEventListener("abort", end);
  }

  async #fetch(): Promise<void> {
    const { client, clock } = this.#parts;
    const { stopped } = this.#watch;
    const link = await client.link(this.broker, this.purpose, stopped);
    // Not before: while a connection opened some may have been given up, or moved.
    const { partitions } = this.#watch.due(this.broker, this.lane, clock.monotonic());
    if (partitions.length === 0) return;
    const byName = partitions.some((p) => p.topicId === ZERO_UUID);
    const version = link.version("Fetch", byName ? TOPIC_ID_VERSION.Fetch - 1 : undefined);
    const byId = version >= TOPIC_ID_VERSION.Fetch;
    const { asked, wanted } = this.#ask(partitions, byId);
    const plan = this.#session.plan(wanted, byId);
    const { maxWaitMs, committedOnly, requestTimeoutMs } = this.#options;
    const body = {
      maxWaitMs,
      minBytes: 1,
      maxBytes: this.#maxBytes(),
      isolationLevel: committedOnly ? 1 : 0,
      sessionId: version >= 7 ? plan.sessionId : 0,
      sessionEpoch: version >= 7 ? plan.sessionEpoch : -1,
      topics: topicsOf(version >= 7 ? plan.send : wanted),
      forgottenTopicsData: forgottenOf(plan.forget),
      rackId: this.#rackFor(partitions),
    };
    const options = { signal: stopped, timeoutMs: requestTimeoutMs + maxWaitMs, memory: this.#memory };
    const { body: response, bytes } = await link.request("Fetch", version, body, options);
    const receivedAt = clock.now();
    const buffer = bytes.buffer as ArrayBuffer;
    let delivered = false;
    try {
      if (!this.#accept(response, version, link)) return;
      this.#watch.broker(this.broker, this.lane, null);
      const frames = this.#read(response, asked, byId, link.at);
      if (frames.length === 0 || stopped.aborted) return;
      delivered = true;
      this.#parts.host.deliver(this.lane, { buffer, frames, receivedAt });
    } finally {
      if (!delivered) this.#parts.host.giveBuffer(buffer);
    }
  }

  /** A leader that is told a rack answers with a closer replica in place of records. */
  #rackFor(partitions: readonly Partition[]): string {
    const now = this.#parts.clock.monotonic();
    return partitions.some((p) => p.leaderUntil > now) ? "" : this.#options.rackId;
  }

  /** An equal share of the lane's room for each loop, so that none has to wait for another's long poll. */
  #maxBytes(): number {
    const share = Math.floor(this.#parts.host.room(this.lane) / Math.max(1, this.#watch.loops(this.lane)));
    return Math.max(
      Math.min(share, this.#options.maxBytes),
      Math.min(SMALLEST_FETCH, this.#options.maxBytes),
    );
  }

  /** In turn a different partition comes first, since brokers serve the front of the list first. */
  #ask(
    partitions: readonly Partition[],
    byId: boolean,
  ): { asked: Map<string, Asked>; wanted: WantedPartition[] } {
    const { metadata } = this.#parts.client;
    const asked = new Map<string, Asked>();
    const wanted: WantedPartition[] = [];
    const first = this.#turn++ % partitions.length;
    for (let i = 0; i < partitions.length; i++) {
      const p = partitions[(first + i) % partitions.length]!;
      asked.set(`${byId ? p.topicId : p.topic}/${p.partition}`, {
        partition: p,
        version: p.version,
        position: p.position,
      });
      wanted.push(p.wanted(metadata.leader(p.topic, p.partition).requestEpoch));
    }
    return { asked, wanted };
  }

  /** False: the session was refused, nothing was lost, ask again in full. */
  #accept(response: FetchResponse, version: number, link: BrokerLink): boolean {
    if (response.errorCode === ERROR.NONE) {
      this.#session.answered(version >= 7 ? response.sessionId : 0);
      this.#refusals = 0;
      return true;
    }
    // A broker that refuses even full requests is in trouble: that is worth a pause.
    if (kafkaError(response.errorCode).action === "session" && this.#refusals++ < MAX_REFUSALS) {
      this.#session.reset(response.errorCode === ERROR.INVALID_FETCH_SESSION_EPOCH);
      return false;
    }
    throw brokerFailure(response.errorCode, "Fetch", link.at);
  }

  #read(response: FetchResponse, asked: Map<string, Asked>, byId: boolean, at: string): Frame[] {
    const frames: Frame[] = [];
    for (const topic of response.responses) {
      for (const answer of topic.partitions) {
        const key = `${byId ? topic.topicId : topic.topic}/${answer.partitionIndex}`;
        const one = asked.get(key);
        // Once only: of a partition that an answer names twice, the second part would be read twice as well.
        asked.delete(key);
        if (one === undefined || !isCurrent(one)) continue;
        const frame = this.#readOne(one, answer, response, at);
        if (frame !== null) frames.push(frame);
      }
    }
    // A session leaves out what has no news, and an error is news.
    for (const { partition } of asked.values()) {
      if (partition.failures > 0) this.#watch.partitionHealthy(partition);
    }
    return frames;
  }

  #readOne(asked: Asked, answer: FetchResponsePartition, response: FetchResponse, at: string): Frame | null {
    const p = asked.partition;
    // Wherever that epoch ends: the leader has no record of ours before the position, or one of another epoch.
    const diverged = answer.divergingEpoch.endOffset >= 0n;
    if ((answer.errorCode !== ERROR.NONE || diverged) && this.#watch.toLeader(p, this.broker)) return null;
    if (answer.errorCode !== ERROR.NONE) {
      this.#watch.partitionFailed(p, answer, response, at);
      return null;
    }
    if (diverged) {
      this.#watch.diverged(p, answer.divergingEpoch.endOffset);
      return null;
    }
    this.#watermark(p, answer);
    try {
      const cut = cutFrame(asked, answer, this.#options.committedOnly);
      if (cut.kind === "ahead") {
        this.#ahead(p, cut.failure);
        return null;
      }
      if (p.failures > 0) this.#watch.partitionHealthy(p);
      if (answer.preferredReadReplica >= 0) this.#watch.closer(p, answer.preferredReadReplica);
      if (cut.kind === "frame") {
        p.fetched(cut.frame.next, cut.epoch);
        return cut.frame;
      }
      if (cut.kind === "cut") this.#grow(p, cut.need);
      if (cut.kind === "behind") p.heldUntil = this.#parts.clock.monotonic() + RETRY_PAUSE_MS;
    } catch (e) {
      this.#damaged(p, asFailure(e));
    }
    return null;
  }

  /** Brokers take down the watermark before they read: once may be a batch that became readable in between. */
  #ahead(p: Partition, failure: Failure): void {
    if (p.failures > 0) this.#damaged(p, failure);
    else {
      p.failures = 1;
      p.heldUntil = this.#parts.clock.monotonic() + RETRY_PAUSE_MS;
    }
  }

  #damaged(p: Partition, failure: Failure): void {
    if (!this.#watch.toLeader(p, this.broker)) this.#watch.unreadable(p, failure);
  }

  #grow(p: Partition, need: number): void {
    const most = this.#options.maxResponseBytes;
    if (need > most) {
      const text = `a batch of ${need} bytes at offset ${p.position} is larger than response_max_bytes`;
      this.#watch.unreadable(p, new Failure("kafka.response_too_large", text, { at: p.name }));
    }
    p.maxBytes = Math.max(p.maxBytes, Math.min(need, most));
  }

  #watermark(p: Partition, answer: FetchResponsePartition): void {
    const last = this.#options.committedOnly ? answer.lastStableOffset : answer.highWatermark;
    const told = last >= 0n ? last : answer.highWatermark;
    if (told < 0n) return;
    // A follower learns of both later than its leader.
    const follower = this.#watch.follows(p, this.broker);
    const end = follower && told < p.end ? p.end : told;
    const start = follower && answer.logStartOffset < p.start ? p.start : answer.logStartOffset;
    if (end === p.end && start === p.start) return;
    p.end = end;
    p.start = start;
    this.#parts.host.watermark(p.stream, end, start);
  }
}

function topicsOf(partitions: readonly WantedPartition[]) {
  const topics = new Map<string, { topic: string; topicId: string; partitions: object[] }>();
  for (const p of partitions) {
    const key = `${p.topicId}/${p.topic}`;
    let topic = topics.get(key);
    if (topic === undefined) {
      topic = { topic: p.topic, topicId: p.topicId, partitions: [] };
      topics.set(key, topic);
    }
    topic.partitions.push({
      partition: p.partition,
      currentLeaderEpoch: p.leaderEpoch,
      fetchOffset: p.position,
      lastFetchedEpoch: p.lastFetchedEpoch,
      partitionMaxBytes: p.maxBytes,
    });
  }
  return [...topics.values()];
}

function forgottenOf(partitions: readonly WantedPartition[]) {
  const topics = new Map<string, { topic: string; topicId: string; partitions: number[] }>();
  for (const p of partitions) {
    const key = `${p.topicId}/${p.topic}`;
    const topic = topics.get(key);
    if (topic === undefined) {
      topics.set(key, { topic: p.topic, topicId: p.topicId, partitions: [p.partition] });
    } else topic.partitions.push(p.partition);
  }
  return [...topics.values()];
}
