/** What a group is doing: its state, its members, where each of them runs and what it reads. */
import { asFailure } from "../../core/failure/failure.ts";
import { CONTROL, type KafkaClient } from "./client.ts";
import type { BrokerLink } from "./client-link.ts";
import { brokerFailure } from "./client-retry.ts";
import { decodeAssignment, type TopicPartitions } from "./wire/consumer-protocol.ts";
import { ERROR, kafkaError } from "./wire/errors.ts";

const TRIES = 8;
const PAUSE_MS = 250;

export interface DescribedMember {
  readonly memberId: string;
  readonly instanceId: string | null;
  readonly clientId: string;
  /** As the coordinator sees it. */
  readonly host: string;
  /** Of a KIP-848 member, null of a classic one. */
  readonly epoch: number | null;
  /** Null: it can't be read, as of clients that are no consumers. */
  readonly partitions: readonly TopicPartitions[] | null;
}

export interface GroupDescription {
  readonly group: string;
  readonly type: "classic" | "consumer";
  readonly state: string;
  /** The assignor; empty while there is none. */
  readonly protocol: string;
  readonly members: readonly DescribedMember[];
}

/** Null: the coordinator knows no such group. Of a group without members it may know offsets only. */
export async function describeGroup(
  client: KafkaClient,
  group: string,
  signal: AbortSignal,
): Promise<GroupDescription | null> {
  return askGroup(client, group, signal, async (link) => {
    const asConsumers = await asConsumerGroup(client, link, group, signal);
    return asConsumers ?? (await asClassic(client, link, group, signal));
  });
}

/** Asks the group's coordinator, wherever it is; one that moves, or is being made, is waited for a while. */
export async function askGroup<T>(
  client: KafkaClient,
  group: string,
  signal: AbortSignal,
  ask: (link: BrokerLink) => Promise<T>,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask(await client.link(await client.coordinator(group, signal), CONTROL, signal));
    } catch (e) {
      const failure = asFailure(e);
      if (!failure.retry || tries === TRIES) throw failure;
      client.forgetCoordinator(group);
      await client.pause(PAUSE_MS * tries, signal);
    }
  }
}

function offersIt(link: BrokerLink): boolean {
  try {
    link.version("ConsumerGroupDescribe");
    return true;
  } catch {
    return false;
  }
}

/** Null: it is no KIP-848 group, or the broker has none. */
async function asConsumerGroup(
  client: KafkaClient,
  link: BrokerLink,
  group: string,
  signal: AbortSignal,
): Promise<GroupDescription | null> {
  if (!offersIt(link)) return null;
  const body = { groupIds: [group] };
  const [found] = (await client.ask(link, "ConsumerGroupDescribe", body, signal)).groups;
  if (found === undefined || found.errorCode === ERROR.GROUP_ID_NOT_FOUND) return null;
  // As of brokers whose group.version is 0.
  if (kafkaError(found.errorCode).action === "version") return null;
  if (found.errorCode !== ERROR.NONE)
    throw brokerFailure(found.errorCode, `ConsumerGroupDescribe of ${group}`, link.at);
  return {
    group,
    type: "consumer",
    state: found.groupState,
    protocol: found.assignorName,
    members: found.members.map((m) => ({
      memberId: m.memberId,
      instanceId: m.instanceId,
      clientId: m.clientId,
      host: hostOf(m.clientHost),
      epoch: m.memberEpoch,
      partitions: m.assignment.topicPartitions.map((t) => ({ topic: t.topicName, partitions: t.partitions })),
    })),
  };
}

async function asClassic(
  client: KafkaClient,
  link: BrokerLink,
  group: string,
  signal: AbortSignal,
): Promise<GroupDescription | null> {
  const [found] = (await client.ask(link, "DescribeGroups", { groups: [group] }, signal)).groups;
  const isGone = found === undefined || found.errorCode === ERROR.GROUP_ID_NOT_FOUND;
  if (isGone || found.groupState === "Dead") return null;
  if (found.errorCode !== ERROR.NONE)
    throw brokerFailure(found.errorCode, `DescribeGroups of ${group}`, link.at);
  return {
    group,
    type: "classic",
    state: found.groupState,
    protocol: found.protocolData,
    members: found.members.map((m) => ({
      memberId: m.memberId,
      instanceId: m.groupInstanceId,
      clientId: m.clientId,
      host: hostOf(m.clientHost),
      epoch: null,
      partitions: found.protocolType === "consumer" ? assignedTo(m.memberAssignment) : null,
    })),
  };
}

/** Brokers of Java write a slash before the address. */
const hostOf = (text: string): string => text.replace(/^\//, "");

function assignedTo(bytes: Uint8Array): readonly TopicPartitions[] | null {
  try {
    return decodeAssignment(bytes).assignedPartitions;
  } catch {
    return null;
  }
}
