/**
 * Questions about offsets: where logs begin and end, what the group has committed, where a leader epoch ended.
 * Each asks the right broker for many partitions at once and keeps asking for those that could not answer yet.
 */
import { asFailure, Failure } from "../../core/failure/failure.ts";
import type { Chance } from "../../core/time/chance.ts";
import { type Clock, sleep } from "../../core/time/clock.ts";
import { CONTROL, type KafkaClient } from "./client.ts";
import { cancelled } from "./client-link.ts";
import { Backoff, brokerFailure, isWorthAnotherTry, type Phase } from "./client-retry.ts";
import type { SourceTopics } from "./source-topics.ts";
import { ERROR, kafkaError } from "./wire/errors.ts";
import type { OffsetFetchResponse } from "./wire/messages/offset-fetch.ts";
import { type Draft, type RequestOf, TOPIC_ID_VERSION } from "./wire/protocol.ts";
import { ZERO_UUID } from "./wire/uuid.ts";

export interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

export interface OffsetParts {
  readonly client: KafkaClient;
  readonly clock: Clock;
  readonly chance: Chance;
  /** All topics of the source, for metadata. */
  readonly topics: SourceTopics;
  readonly phase: () => Phase;
  /** Told of each failure that is tried again. */
  readonly troubled: (failure: Failure) => void;
}

export function keyOf(topic: string, partition: number): string {
  return `${topic}/${partition}`;
}

/** `topic -> partitions` in the shape of a request. */
function byTopic<T extends TopicPartition>(partitions: readonly T[]): Map<string, T[]> {
  const topics = new Map<string, T[]>();
  for (const p of partitions) {
    const list = topics.get(p.topic);
    if (list === undefined) topics.set(p.topic, [p]);
    else list.push(p);
  }
  return topics;
}

/**
 * One question of many partitions: `pass` asks once and says which have no answer yet. Between passes metadata is
 * fetched anew. Ends when nothing is open, or at the monotonic `deadline` with what is left.
 */
async function askUntilAnswered<T>(
  parts: OffsetParts,
  wanted: readonly T[],
  deadline: number,
  signal: AbortSignal,
  pass: (open: readonly T[]) => Promise<readonly T[]>,
): Promise<readonly T[]> {
  const backoff = new Backoff(parts.chance);
  let open = wanted;
  for (;;) {
    open = await pass(open);
    const left = deadline - parts.clock.monotonic();
    if (open.length === 0 || left <= 0) return open;
    await sleep(parts.clock, Math.min(left, backoff.next()), signal).catch(() => {
      throw cancelled("waiting for an answer");
    });
    try {
      await parts.client.refresh(parts.topics.wanted(), signal);
    } catch (e) {
      retryOrThrow(asFailure(e), parts);
    }
  }
}

function retryOrThrow(failure: Failure, parts: OffsetParts): void {
  if (!isWorthAnotherTry(failure, parts.phase())) throw failure;
  parts.troubled(failure);
}

export const EARLIEST = -2n;
export const LATEST = -1n;

/**
 * Offsets for a timestamp (ms, EARLIEST or LATEST), by `topic/partition`; -1 where no record is that young.
 * `committedOnly`: LATEST is the last stable offset. Partitions without an answer at the deadline are missing.
 */
export async function listOffsets(
  parts: OffsetParts,
  partitions: readonly TopicPartition[],
  timestamp: bigint,
  committedOnly: boolean,
  deadline: number,
  signal: AbortSignal,
): Promise<Map<string, bigint>> {
  const found = new Map<string, bigint>();
  await askUntilAnswered(parts, partitions, deadline, signal, async (open) => {
    for (const [leader, mine] of byLeader(parts.client, open)) {
      if (leader < 0) continue;
      try {
        await listFrom(parts, leader, mine, timestamp, committedOnly, found, signal);
      } catch (e) {
        retryOrThrow(asFailure(e), parts);
      }
    }
    return open.filter((p) => !found.has(keyOf(p.topic, p.partition)));
  });
  return found;
}

function byLeader(client: KafkaClient, partitions: readonly TopicPartition[]): Map<number, TopicPartition[]> {
  const leaders = new Map<number, TopicPartition[]>();
  for (const p of partitions) {
    const { leader } = client.metadata.leader(p.topic, p.partition);
    const list = leaders.get(leader);
    if (list === undefined) leaders.set(leader, [p]);
    else list.push(p);
  }
  return leaders;
}

async function listFrom(
  parts: OffsetParts,
  leader: number,
  partitions: readonly TopicPartition[],
  timestamp: bigint,
  committedOnly: boolean,
  found: Map<string, bigint>,
  signal: AbortSignal,
): Promise<void> {
  const { client } = parts;
  const link = await client.link(leader, CONTROL, signal);
  const topics = [...byTopic(partitions)].map(([name, list]) => ({
    name,
    partitions: list.map((p) => ({
      partitionIndex: p.partition,
      currentLeaderEpoch: client.metadata.leader(p.topic, p.partition).requestEpoch,
      timestamp,
    })),
  }));
  const body = { replicaId: -1, isolationLevel: committedOnly ? 1 : 0, topics, timeoutMs: 10_000 };
  const response = await client.ask(link, "ListOffsets", body, signal);
  for (const t of response.topics) {
    for (const p of t.partitions) {
      if (p.errorCode === ERROR.NONE) found.set(keyOf(t.name, p.partitionIndex), p.offset);
      else
        retryOrThrow(
          brokerFailure(p.errorCode, `ListOffsets of ${keyOf(t.name, p.partitionIndex)}`, link.at),
          parts,
        );
    }
  }
}

export interface CommittedOffset {
  readonly offset: bigint;
  /** -1: unknown. */
  readonly leaderEpoch: number;
}

export interface GroupPartition extends TopicPartition {
  /** ZERO_UUID: unknown. */
  readonly topicId: string;
}

/**
 * What the group has committed, by `topic/partition`; null where nothing is, missing without an answer by the deadline. Waits for offsets of transactions that
 * are still open (KIP-447): a position read too early would be wrong.
 */
export async function committedOffsets(
  parts: OffsetParts,
  group: string,
  partitions: readonly GroupPartition[],
  deadline: number,
  signal: AbortSignal,
): Promise<Map<string, CommittedOffset | null>> {
  const found = new Map<string, CommittedOffset | null>();
  await askUntilAnswered(parts, partitions, deadline, signal, async (open) => {
    try {
      await fetchCommitted(parts, group, open, found, signal);
    } catch (e) {
      parts.client.forgetCoordinator(group);
      retryOrThrow(asFailure(e), parts);
    }
    return open.filter((p) => !found.has(keyOf(p.topic, p.partition)));
  });
  return found;
}

/** Below the version that knows topics by id only, where an id is missing. */
export function namesCeiling(
  api: keyof typeof TOPIC_ID_VERSION,
  partitions: readonly { readonly topicId: string }[],
): number | undefined {
  return partitions.some((p) => p.topicId === ZERO_UUID) ? TOPIC_ID_VERSION[api] - 1 : undefined;
}

async function fetchCommitted(
  parts: OffsetParts,
  group: string,
  partitions: readonly GroupPartition[],
  found: Map<string, CommittedOffset | null>,
  signal: AbortSignal,
): Promise<void> {
  const { client } = parts;
  const what = `OffsetFetch of group ${group}`;
  const link = await client.link(await client.coordinator(group, signal), CONTROL, signal);
  const topics = [...byTopic(partitions)].map(([name, list]) => ({
    name,
    topicId: list[0]!.topicId,
    partitionIndexes: list.map((p) => p.partition),
  }));
  const body: Draft<RequestOf<"OffsetFetch">> = {
    groupId: group,
    topics,
    groups: [{ groupId: group, memberId: null, memberEpoch: -1, topics }],
    requireStable: true,
  };
  const response = await client.ask(
    link,
    "OffsetFetch",
    body,
    signal,
    namesCeiling("OffsetFetch", partitions),
  );
  const answer = response.groups.find((g) => g.groupId === group) ?? response;
  if (answer.errorCode !== ERROR.NONE) throw brokerFailure(answer.errorCode, what, link.at);
  readCommitted(answer, partitions, found, (code) => retryOrThrow(brokerFailure(code, what, link.at), parts));
}

/** Partitions that the answer leaves out stay open; of one that comes twice the first counts. */
function readCommitted(
  answer: Pick<OffsetFetchResponse, "topics">,
  partitions: readonly GroupPartition[],
  found: Map<string, CommittedOffset | null>,
  failed: (code: number) => void,
): void {
  const names = new Map(partitions.map((p) => [p.topicId, p.topic]));
  for (const t of answer.topics) {
    const name = t.name === "" ? names.get(t.topicId) : t.name;
    if (name === undefined) continue;
    for (const p of t.partitions) {
      const key = keyOf(name, p.partitionIndex);
      if (found.has(key)) continue;
      if (p.errorCode !== ERROR.NONE) failed(p.errorCode);
      else if (p.committedOffset < 0n) found.set(key, null);
      else found.set(key, { offset: p.committedOffset, leaderEpoch: p.committedLeaderEpoch });
    }
  }
}

/** The last epoch that the leader has at or below the one that was asked for (-1: it does not say), and where that ends. */
interface EpochEnd {
  readonly end: bigint;
  readonly epoch: number;
}

/**
 * Where the log of `leaderEpoch` ended, as the current leader has it: below our position the log was cut. Null: the
 * broker cannot tell. Throws a retryable Failure when the leader has changed again.
 */
export async function epochEnd(
  client: KafkaClient,
  at: TopicPartition,
  leaderEpoch: number,
  signal: AbortSignal,
): Promise<EpochEnd | null> {
  const { leader, requestEpoch } = client.metadata.leader(at.topic, at.partition);
  const link = await client.link(leader, CONTROL, signal);
  let version: number;
  try {
    version = link.version("OffsetForLeaderEpoch");
  } catch {
    return null;
  }
  const partition = { partition: at.partition, currentLeaderEpoch: requestEpoch, leaderEpoch };
  const body = { replicaId: -1, topics: [{ topic: at.topic, partitions: [partition] }] };
  const response = (await link.request("OffsetForLeaderEpoch", version, body, { signal })).body;
  const what = `OffsetForLeaderEpoch of ${keyOf(at.topic, at.partition)}`;
  const answer = response.topics
    .find((t) => t.topic === at.topic)
    ?.partitions.find((p) => p.partition === at.partition);
  if (answer === undefined)
    throw new Failure("kafka.response_invalid", `${what}: no answer`, { at: link.at });
  if (answer.errorCode !== ERROR.NONE) {
    if (kafkaError(answer.errorCode).action === "version") return null;
    throw brokerFailure(answer.errorCode, what, link.at);
  }
  return answer.endOffset < 0n ? null : { end: answer.endOffset, epoch: answer.leaderEpoch };
}
