/**
 * Reads the partitions that were begun: one fetch loop per broker and lane while leaders move and brokers die, and
 * what becomes of a partition whose answer is an error. It never decides where to begin and commits nothing.
 */
import { asFailure, Failure } from "../../core/failure/failure.ts";
import type { SourceHost } from "../../core/ports/source.ts";
import { sleep, type Timer } from "../../core/time/clock.ts";
import type { ClientParts, KafkaClient } from "./client.ts";
import { cancelled } from "./client-link.ts";
import { Backoff, brokerFailure, isWorthAnotherTry } from "./client-retry.ts";
import { FetchLoop, type FetchOptions, type FetchWatch } from "./source-fetch.ts";
import { EARLIEST, epochEnd, LATEST, listOffsets, type OffsetParts } from "./source-offsets.ts";
import type { Partition } from "./source-partition.ts";
import { judgeOutOfRange, leaderless, leaderOf, type OutOfRangePolicy, truncated } from "./source-policy.ts";
import type { Troubles } from "./source-trouble.ts";
import { kafkaError } from "./wire/errors.ts";
import type { FetchResponse, FetchResponsePartition } from "./wire/messages/fetch.ts";
import { ZERO_UUID } from "./wire/uuid.ts";

export interface ReaderOptions extends FetchOptions {
  readonly onOutOfRange: OutOfRangePolicy;
}

export interface ReaderParts extends ClientParts {
  readonly client: KafkaClient;
  readonly host: SourceHost;
  readonly troubles: Troubles;
  readonly offsets: OffsetParts;
  /** The log of a partition was found to be the one that was read. */
  readonly checked: () => void;
  /** Soon, in the background. */
  readonly wantMetadata: () => void;
  /** Now, and with everything that follows from it. */
  readonly syncMetadata: () => Promise<void>;
  /** Background work whose failure ends the source. */
  readonly task: (work: Promise<void>) => void;
  readonly fail: (failure: Failure) => void;
}

/** Tries of damaged data before it ends the job: another replica, or a second read, may have it whole. */
const MAX_CORRUPT = 3;
/** A leader that is missing is looked for so often. */
const LEADERLESS_PAUSE_MS = 500;
/** So long a closer replica is read before the leader is asked again whether it is, as in Kafka's own clients. */
const CLOSER_MS = 300_000;
/** So long after a failure of a closer replica none is asked for. */
const SHUNNED_MS = 30_000;
/** While something else decides about a partition, its loop only has to stay alive: it is woken. */
const DECIDING_PAUSE_MS = 60_000;

export class PartitionReader implements FetchWatch {
  readonly #o: ReaderOptions;
  readonly #p: ReaderParts;
  readonly #stop = new AbortController();
  readonly #partitions = new Map<number, Partition>();
  readonly #loops = new Map<string, FetchLoop>();
  #leaderless: Timer | null = null;

  constructor(options: ReaderOptions, parts: ReaderParts) {
    this.#o = options;
    this.#p = parts;
  }

  get stopped(): AbortSignal {
    return this.#stop.signal;
  }

  /** Ends all loops; what they were about to deliver is dropped. */
  stop(): void {
    this.#stop.abort(cancelled("fetching"));
    this.#leaderless?.cancel();
  }

  add(p: Partition): void {
    this.#partitions.set(p.stream, p);
  }

  get(stream: number): Partition | null {
    const p = this.#partitions.get(stream);
    return p === undefined || p.state === "gone" || p.state === "lost" ? null : p;
  }

  /** Those that are being read. */
  living(): Partition[] {
    return [...this.#partitions.values()].filter((p) => !p.isLeft);
  }

  #find(topic: string, partition: number): Partition | null {
    for (const p of this.#partitions.values()) {
      if (p.topic === topic && p.partition === partition && p.state !== "gone") return p;
    }
    return null;
  }

  /**
   * It is not fetched any more; what was fetched may still be acknowledged, unless it is lost. Its stream, null if it
   * is not read here.
   */
  leave(topic: string, partition: number, how: "leaving" | "lost"): number | null {
    const p = this.#find(topic, partition);
    if (p === null) return null;
    if (!p.isLeft) p.version++;
    // Once lost it stays so, though an earlier hand-over in good order may still be under way.
    if (p.state !== "lost") p.state = how;
    return p.stream;
  }

  /** The name of its partition, which may begin again as another stream; null: it was dropped before. */
  drop(stream: number): string | null {
    const p = this.#partitions.get(stream);
    if (p === undefined || p.state === "gone") return null;
    this.retire(p);
    this.#partitions.delete(stream);
    this.#p.troubles.clear(`partition ${p.name}`);
    this.#p.troubles.clear(leaderOf(p.topic, p.partition));
    this.#wakeLoops();
    return p.name;
  }

  /** Its topic is not the one any more: nothing of it is fetched again. */
  retire(p: Partition): void {
    p.state = "gone";
    p.version++;
  }

  seek(stream: number, position: bigint, attempt: number): void {
    this.get(stream)?.seek(position, attempt);
    this.#wakeLoops();
  }

  /** A loop for every broker and lane that has something to fetch. Call it when leaders may have changed. */
  follow(): void {
    if (this.stopped.aborted) return;
    for (const p of this.living()) {
      const { leader } = this.#p.client.metadata.leader(p.topic, p.partition);
      const who = leaderOf(p.topic, p.partition);
      if (leader < 0) {
        this.#p.troubles.report(who, leaderless(p.topic, p.partition));
        this.followLeaderless();
      } else {
        this.#p.troubles.clear(who);
        this.#ensureLoop(this.#readerOf(p), p.lane);
      }
    }
    this.#wakeLoops();
  }

  /** Some partition waits for a leader: metadata is asked for again after a while. */
  followLeaderless(): void {
    if (this.#leaderless !== null || this.stopped.aborted) return;
    this.#leaderless = this.#p.clock.after(LEADERLESS_PAUSE_MS, () => {
      this.#leaderless = null;
      this.#p.wantMetadata();
    });
  }

  #ensureLoop(broker: number, lane: number): void {
    const key = `${broker}/${lane}`;
    if (this.#loops.has(key)) return;
    const loop = new FetchLoop(broker, lane, this.#o, this.#p, this);
    this.#loops.set(key, loop);
    this.#p.task(
      loop.run().finally(() => {
        this.#loops.delete(key);
        this.#p.troubles.clear(`broker ${key}`);
        // Something may have come back to this broker in the moment in which the loop ended.
        this.follow();
      }),
    );
  }

  #wakeLoops(): void {
    for (const loop of this.#loops.values()) loop.wake();
  }

  loops(lane: number): number {
    let n = 0;
    for (const loop of this.#loops.values()) if (loop.lane === lane) n++;
    return n;
  }

  due(broker: number, lane: number, now: number): { partitions: readonly Partition[]; nextAt: number } {
    const partitions: Partition[] = [];
    let nextAt = Number.POSITIVE_INFINITY;
    for (const p of this.#partitions.values()) {
      if (p.lane !== lane || p.isLeft) continue;
      const known = this.#p.client.metadata.leader(p.topic, p.partition);
      if (p.reader(known, now) !== broker) {
        // A lease that has just run out is nobody's news.
        if (known.leader >= 0) this.#ensureLoop(p.reader(known, now), lane);
        continue;
      }
      if (p.state !== "fetching" || this.#isOtherTopic(p) || this.#mustCheck(p, known.epoch)) {
        nextAt = Math.min(nextAt, now + DECIDING_PAUSE_MS);
      } else if (p.heldUntil > now) nextAt = Math.min(nextAt, p.heldUntil);
      else partitions.push(p);
    }
    return { partitions, nextAt };
  }

  /** Metadata has another topic under the name, and what to do about it is being decided. */
  #isOtherTopic(p: Partition): boolean {
    const id = this.#p.client.metadata.idOf(p.topic);
    if (p.topicId === ZERO_UUID || id === ZERO_UUID || id === p.topicId) return false;
    this.#p.wantMetadata();
    return true;
  }

  #readerOf(p: Partition): number {
    return p.reader(this.#p.client.metadata.leader(p.topic, p.partition), this.#p.clock.monotonic());
  }

  follows(p: Partition, broker: number): boolean {
    return (
      broker !== this.#p.client.metadata.leader(p.topic, p.partition).leader && this.#readerOf(p) === broker
    );
  }

  toLeader(p: Partition, broker: number): boolean {
    if (!this.follows(p, broker)) return false;
    p.readFromLeader(this.#p.clock.monotonic() + SHUNNED_MS);
    this.#hold(p);
    this.follow();
    return true;
  }

  closer(p: Partition, replica: number): void {
    const { metadata } = this.#p.client;
    const { leader, epoch } = metadata.leader(p.topic, p.partition);
    if (replica === leader || !metadata.brokers.has(replica)) return;
    p.readFrom(replica, epoch, this.#p.clock.monotonic() + CLOSER_MS);
    this.follow();
  }

  broker(broker: number, lane: number, failure: Failure | null): void {
    const who = `broker ${broker}/${lane}`;
    if (failure === null) this.#p.troubles.clear(who);
    else {
      for (const p of this.living()) if (p.lane === lane) this.toLeader(p, broker);
      this.#p.troubles.report(who, failure);
      this.#p.wantMetadata();
    }
  }

  partitionFailed(p: Partition, answer: FetchResponsePartition, response: FetchResponse, at: string): void {
    const { action } = kafkaError(answer.errorCode);
    const failure = brokerFailure(answer.errorCode, `Fetch of ${p.name} at offset ${p.position}`, at);
    if (action === "reset") this.#strand(p);
    else if (action === "corrupt") this.unreadable(p, failure);
    else if (!failure.retry) this.#p.fail(failure);
    else {
      this.#p.troubles.report(`partition ${p.name}`, failure);
      this.#hold(p);
      if (action === "retry") return;
      if (this.#hint(p, answer, response)) this.follow();
      else this.#p.wantMetadata();
    }
  }

  partitionHealthy(p: Partition): void {
    p.failures = 0;
    this.#p.troubles.clear(`partition ${p.name}`);
  }

  /** Adopts the new leader that the old one names (KIP-951). */
  #hint(p: Partition, answer: FetchResponsePartition, response: FetchResponse): boolean {
    const { leaderId, leaderEpoch } = answer.currentLeader;
    const endpoint = response.nodeEndpoints.find((n) => n.nodeId === leaderId);
    const address = endpoint === undefined ? null : { host: endpoint.host, port: endpoint.port };
    return this.#p.client.metadata.hint(p.topic, p.partition, leaderId, leaderEpoch, address);
  }

  diverged(p: Partition, endOffset: bigint): void {
    this.#p.fail(cut(p, endOffset));
  }

  unreadable(p: Partition, failure: Failure): void {
    const named = new Failure(failure.code, `${p.name} at offset ${p.position}: ${failure.message}`, {
      at: p.name,
    });
    this.#hold(p);
    if (p.failures > MAX_CORRUPT) this.#p.fail(named);
    else this.#p.troubles.report(`partition ${p.name}`, named);
  }

  /** Leaves the partition out for a moment that grows with its failures. */
  #hold(p: Partition): void {
    const ms = Math.min(5_000, 50 * 2 ** Math.min(p.failures++, 10));
    p.heldUntil = this.#p.clock.monotonic() + ms * (1 - 0.5 * this.#p.chance.next());
  }

  /** Partitions whose log may have been cut below the position: an end that looks like ours may be another's. */
  unchecked(): number {
    const { metadata } = this.#p.client;
    return this.living().filter((p) => p.mayBeCut(metadata.leader(p.topic, p.partition).epoch)).length;
  }

  #mustCheck(p: Partition, epoch: number): boolean {
    if (!p.mayBeCut(epoch)) {
      p.checkedEpoch = Math.max(p.checkedEpoch, epoch);
      return false;
    }
    p.state = "checking";
    this.#p.task(this.#check(p, p.version));
    return true;
  }

  async #check(p: Partition, version: number): Promise<void> {
    const { client, clock, chance, troubles } = this.#p;
    const backoff = new Backoff(chance);
    while (p.version === version && !client.life.aborted) {
      const { epoch } = client.metadata.leader(p.topic, p.partition);
      try {
        const end = await epochEnd(client, p, p.lastEpoch, client.life);
        if (p.version !== version) break;
        // A leader that never had our epoch has other records below our position, however long its log is.
        const isOther = end !== null && end.epoch >= 0 && end.epoch < p.lastEpoch && p.lastEpoch <= epoch;
        if (end !== null && (isOther || end.end < p.position)) throw cut(p, end.end);
        p.checkedEpoch = Math.max(p.checkedEpoch, epoch);
        p.state = "fetching";
        this.#p.checked();
        break;
      } catch (e) {
        const failure = asFailure(e);
        if (!isWorthAnotherTry(failure, "running")) throw failure;
        troubles.report(`partition ${p.name}`, failure);
        this.#p.wantMetadata();
        await sleep(clock, backoff.next(), client.life).catch(() => {});
      }
    }
    troubles.clear(`partition ${p.name}`);
    this.follow();
  }

  /** Out of range, says the leader about the position that we really want: ask for the range, then decide. */
  #strand(p: Partition): void {
    if (p.state !== "fetching") return;
    p.state = "stranded";
    this.#p.task(this.#resolve(p, p.version));
  }

  /** An outage is waited out, unless the partition is moved meanwhile. */
  async #synced(p: Partition, version: number): Promise<void> {
    const { client, clock, chance, troubles } = this.#p;
    const backoff = new Backoff(chance);
    while (p.version === version && !client.life.aborted) {
      try {
        return await this.#p.syncMetadata();
      } catch (e) {
        const failure = asFailure(e);
        if (!isWorthAnotherTry(failure, "running")) throw failure;
        troubles.report("metadata", failure);
        await sleep(clock, backoff.next(), client.life).catch(() => {});
      }
    }
  }

  async #resolve(p: Partition, version: number): Promise<void> {
    const { client, offsets, host } = this.#p;
    // A topic that was made anew begins at 0 again: then there is another verdict than loss, and no range to ask for.
    await this.#synced(p, version);
    const ask = async (timestamp: bigint) => {
      if (p.version !== version) return undefined;
      const found = await listOffsets(offsets, [p], timestamp, false, Number.POSITIVE_INFINITY, client.life);
      return found.get(p.name);
    };
    const earliest = await ask(EARLIEST);
    const latest = await ask(LATEST);
    if (p.version !== version || earliest === undefined || latest === undefined) return;
    const verdict = judgeOutOfRange(
      { at: p.name, position: p.position, earliest, latest },
      this.#o.onOutOfRange,
    );
    if (verdict.kind === "stop") throw verdict.failure;
    if (verdict.kind === "lost") {
      // The host moves us on, or is about to: to move by ourselves would be to read on where it does not expect it.
      await host.lost(p.stream, p.position, verdict.next, "retention");
      // Neither moved nor about to be: it was fetched further meanwhile, or is asked for again.
      if (p.version === version) this.#again(p);
    } else this.#again(p);
    this.#wakeLoops();
  }

  #again(p: Partition): void {
    p.state = "fetching";
    this.#hold(p);
  }
}

/** It was cut below the position, wherever it ends by now. */
function cut({ name, position }: Partition, end: bigint): Failure {
  return truncated(name, position, end < position ? end : position - 1n);
}
