/**
 * What is there to read: the first contact with the cluster, the wait for topics, and the facts of each partition
 * that the start rule needs. Here a cause that will not go away ends the job; later it would be an outage.
 */
import { asFailure, Failure } from "../../core/failure/failure.ts";
import type { FoundStream } from "../../core/ports/source.ts";
import { sleep } from "../../core/time/clock.ts";
import { placeOf } from "./client.ts";
import { cancelled } from "./client-link.ts";
import { Backoff, brokerFailure, isWorthAnotherTry } from "./client-retry.ts";
import type { BrokerAddress, MetadataChange } from "./session/metadata-state.ts";
import {
  type CommittedOffset,
  committedOffsets,
  EARLIEST,
  type GroupPartition,
  keyOf,
  LATEST,
  listOffsets,
  type OffsetParts,
} from "./source-offsets.ts";
import type { TopicOptions } from "./source-topics.ts";
import { kafkaError } from "./wire/errors.ts";
import { ZERO_UUID } from "./wire/uuid.ts";

export interface DiscoveryOptions extends TopicOptions {
  readonly bootstrap: readonly BrokerAddress[];
  /** Explicit partitions by topic; topics that are missing are read whole. */
  readonly partitions: ReadonlyMap<string, readonly number[]>;
  readonly group: string | null;
  readonly start: "earliest" | "latest" | { readonly timestamp: number };
  readonly committedOnly: boolean;
  readonly connectTimeoutMs: number;
  readonly topicWaitMs: number;
}

/** Waits until a broker answers. Fails at once for what time can't heal, with kafka.unreachable after the time-out. */
export async function firstContact(
  options: DiscoveryOptions,
  parts: OffsetParts,
  signal: AbortSignal,
): Promise<MetadataChange> {
  const { clock, client, chance } = parts;
  const backoff = new Backoff(chance);
  const deadline = clock.monotonic() + options.connectTimeoutMs;
  let last: Failure | null = null;
  for (;;) {
    const attempt = new AbortController();
    const stop = () => attempt.abort();
    signal.addEventListener("abort", stop, { once: true });
    const timer = clock.after(Math.max(0, deadline - clock.monotonic()), stop);
    try {
      if (signal.aborted) throw cancelled("the first contact");
      return await client.refresh(parts.topics.wanted(), attempt.signal);
    } catch (e) {
      const failure = asFailure(e);
      if (signal.aborted) throw failure;
      if (failure.code !== "internal.cancelled") {
        if (!isWorthAnotherTry(failure, parts.phase())) throw failure;
        last = failure;
        parts.troubled(failure);
      }
      const left = deadline - clock.monotonic();
      if (left <= 0) throw unreachable(options, last);
      await sleep(clock, Math.min(left, backoff.next()), signal).catch(() => {
        throw cancelled("the first contact");
      });
    } finally {
      timer.cancel();
      signal.removeEventListener("abort", stop);
    }
  }
}

export function unreachable(options: DiscoveryOptions, last: Failure | null): Failure {
  const places = options.bootstrap.slice(0, 5).map(placeOf).join(", ");
  const why = last === null ? "no answer" : last.message;
  return new Failure(
    "kafka.unreachable",
    `no broker was reached within ${options.connectTimeoutMs} ms: ${why}`,
    {
      at: `source.bootstrap ${places}`,
      hint: last?.hint ?? "Check source.bootstrap and the network",
      ...(last === null ? {} : { cause: last }),
    },
  );
}

/** Throws for topics that the brokers deny or will never know; the other errors may pass. */
export function refuseTopics(errors: ReadonlyMap<string, number>): void {
  for (const [topic, code] of errors) {
    const { action } = kafkaError(code);
    if (action === "denied" || action === "fail")
      throw brokerFailure(code, `Metadata of topic ${topic}`, topic);
  }
}

/** Waits until all topics, and all partitions that are named, are known. A pattern names none: it may match later. */
export async function awaitTopics(
  options: DiscoveryOptions,
  parts: OffsetParts,
  first: MetadataChange,
  signal: AbortSignal,
): Promise<void> {
  const { clock, client, chance } = parts;
  const backoff = new Backoff(chance);
  const deadline = clock.monotonic() + options.topicWaitMs;
  let errors = first.errors;
  for (;;) {
    refuseTopics(errors);
    const failure = missing(options, parts);
    if (failure === null) return;
    const left = deadline - clock.monotonic();
    if (left <= 0) throw failure;
    await sleep(clock, Math.min(left, backoff.next()), signal).catch(() => {
      throw cancelled("the wait for topics");
    });
    try {
      errors = (await client.refresh(parts.topics.wanted(), signal)).errors;
    } catch (e) {
      const f = asFailure(e);
      if (!isWorthAnotherTry(f, parts.phase())) throw f;
      parts.troubled(f);
    }
  }
}

function missing(options: DiscoveryOptions, parts: OffsetParts): Failure | null {
  const { metadata } = parts.client;
  for (const topic of options.topics) {
    const known = metadata.topics.get(topic);
    if (known === undefined) {
      return new Failure("kafka.unknown_topic", `topic ${topic} does not exist on the cluster`, {
        at: `source.topics: ${topic}`,
        hint: "Check its spelling, or create it. A user without DESCRIBE on it sees the same",
      });
    }
    const absent = options.partitions.get(topic)?.find((p) => !known.partitions.has(p));
    if (absent !== undefined) {
      return new Failure("kafka.unknown_partition", `topic ${topic} has no partition ${absent}`, {
        at: `source.partitions.${topic}`,
        hint: `It has ${known.partitions.size} partitions, numbered from 0`,
      });
    }
  }
  return null;
}

/** Partitions of the configuration that metadata knows. */
export function knownPartitions(options: DiscoveryOptions, parts: OffsetParts): GroupPartition[] {
  const out: GroupPartition[] = [];
  for (const topic of parts.topics.names) {
    const state = parts.client.metadata.topics.get(topic);
    if (state === undefined) continue;
    const chosen = options.partitions.get(topic);
    const numbers = [...state.partitions.keys()].sort((a, b) => a - b);
    for (const partition of numbers) {
      if (chosen !== undefined && !chosen.includes(partition)) continue;
      out.push({ topic, partition, topicId: state.topicId });
    }
  }
  return out;
}

export interface Facts {
  readonly found: FoundStream;
  readonly committed: CommittedOffset | null;
}

/**
 * Everything that the start rule needs, for those partitions that have a leader by the deadline. The commit is told
 * as the broker has it: whether it counts is for the host to say, which remembers what the topic was.
 */
export async function gatherFacts(
  options: DiscoveryOptions,
  parts: OffsetParts,
  partitions: readonly GroupPartition[],
  deadline: number,
  signal: AbortSignal,
): Promise<Facts[]> {
  const { committedOnly, start, group } = options;
  const ask = (timestamp: bigint) =>
    listOffsets(parts, partitions, timestamp, committedOnly, deadline, signal);
  const earliest = await ask(EARLIEST);
  const latest = await ask(LATEST);
  const young = typeof start === "object" ? await ask(BigInt(start.timestamp)) : null;
  const committed =
    group === null
      ? new Map<string, CommittedOffset | null>()
      : await committedOffsets(parts, group, partitions, deadline, signal);
  const facts: Facts[] = [];
  for (const { topic, partition, topicId } of partitions) {
    const key = keyOf(topic, partition);
    const first = earliest.get(key);
    const last = latest.get(key);
    const at = young === null ? last : young.get(key);
    if (first === undefined || last === undefined || at === undefined) continue;
    const commit = committed.get(key);
    // Without an answer about the commit nothing can be said about where to begin.
    if (commit === undefined && group !== null) continue;
    facts.push({
      committed: commit ?? null,
      found: {
        transport: "kafka",
        cluster: parts.client.metadata.clusterId ?? "",
        topic,
        partition,
        topicId: topicId === ZERO_UUID ? null : topicId,
        committed: commit?.offset ?? null,
        earliest: first,
        latest: last,
        // -1: no record is that young, so begin at the end.
        ...(young === null ? {} : { startAt: at < 0n ? last : at }),
        ...(parts.topics.appeared({ topic, partition }) ? { appeared: true } : {}),
      },
    });
  }
  return facts;
}
