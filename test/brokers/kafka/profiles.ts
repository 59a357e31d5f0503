/**
 * Which versions a broker speaks and what it holds back: the tables of real releases, and of some that are known to
 * differ. Advertised ranges are the real ones, also where our definitions begin later (a request below closes the
 * connection, as a real broker does with what it cannot read).
 */
import type { ApiName } from "../../../src/adapters/kafka/wire/protocol.ts";

export type Range = readonly [min: number, max: number];

export interface Profile {
  readonly name: string;
  readonly versions: Readonly<Partial<Record<ApiName, Range>>>;
  /** "zero": the field is there but holds no id (clusters with an old inter-broker protocol). */
  readonly topicIds: "real" | "zero";
  /** False: -1 wherever an epoch is told (some managed services). */
  readonly leaderEpochs: boolean;
  /** Order of the aborted transactions in a fetch's answer; Kafka's own is by their end, which is no promise. */
  readonly abortedList: "by end" | "reversed";
  /** A login lasts this long, 0 for ever: managed services end it. */
  readonly loginMs: number;
  /** What an ApiVersions request gets that is too new: error 35 with its own range (KIP-511), with nothing, or a reset. */
  readonly refusal: "own" | "empty" | "reset";
}

const V4: Profile["versions"] = {
  Produce: [0, 13],
  Fetch: [4, 18],
  ListOffsets: [1, 11],
  Metadata: [0, 13],
  OffsetCommit: [2, 10],
  OffsetFetch: [1, 10],
  FindCoordinator: [0, 6],
  JoinGroup: [0, 9],
  Heartbeat: [0, 4],
  LeaveGroup: [0, 5],
  SyncGroup: [0, 5],
  ConsumerGroupHeartbeat: [0, 1],
  SaslHandshake: [0, 1],
  ApiVersions: [0, 5],
  CreateTopics: [2, 7],
  InitProducerId: [0, 5],
  OffsetForLeaderEpoch: [2, 4],
  SaslAuthenticate: [0, 2],
  AddOffsetsToTxn: [0, 4],
  AddPartitionsToTxn: [0, 5],
  DescribeConfigs: [1, 4],
  EndTxn: [0, 5],
  ListGroups: [0, 5],
  DescribeGroups: [0, 6],
  ConsumerGroupDescribe: [0, 1],
  TxnOffsetCommit: [0, 6],
};

/** Assignments of such groups are in topic ids: without ids there are none. */
const { ConsumerGroupHeartbeat: _v4, ConsumerGroupDescribe: _d4, ...V4_WITHOUT_KIP_848 } = V4;

const V3_9: Profile["versions"] = {
  ...V4,
  ApiVersions: [0, 4],
  Produce: [0, 11],
  Fetch: [0, 17],
  ListOffsets: [0, 9],
  Metadata: [0, 12],
  OffsetCommit: [0, 9],
  OffsetFetch: [0, 9],
  CreateTopics: [0, 7],
  OffsetForLeaderEpoch: [0, 4],
  ConsumerGroupHeartbeat: [0, 0],
  DescribeGroups: [0, 5],
  ConsumerGroupDescribe: [0, 0],
  DescribeConfigs: [0, 4],
  EndTxn: [0, 4],
  TxnOffsetCommit: [0, 4],
};

const { ConsumerGroupHeartbeat: _, ConsumerGroupDescribe: _d, ...BEFORE_KIP_848 } = V3_9;

const V2_8: Profile["versions"] = {
  ...BEFORE_KIP_848,
  JoinGroup: [0, 7],
  LeaveGroup: [0, 4],
  Produce: [0, 9],
  Fetch: [0, 12],
  ListOffsets: [0, 6],
  Metadata: [0, 11],
  OffsetCommit: [0, 8],
  OffsetFetch: [0, 7],
  FindCoordinator: [0, 3],
  ApiVersions: [0, 3],
  InitProducerId: [0, 4],
  AddOffsetsToTxn: [0, 3],
  AddPartitionsToTxn: [0, 3],
  EndTxn: [0, 3],
  ListGroups: [0, 4],
  TxnOffsetCommit: [0, 3],
};

/** From the definitions in kafka-clients 3.6.2; OffsetCommit 9 was not stable yet. */
const V3_6: Profile["versions"] = {
  ...BEFORE_KIP_848,
  Produce: [0, 9],
  Fetch: [0, 15],
  ListOffsets: [0, 8],
  OffsetCommit: [0, 8],
  OffsetFetch: [0, 8],
  FindCoordinator: [0, 4],
  ApiVersions: [0, 3],
  InitProducerId: [0, 4],
};

/** As its handlers say: no batched FindCoordinator, no zstd-only versions, one group in OffsetFetch. */
const REDPANDA: Profile["versions"] = {
  ...BEFORE_KIP_848,
  Produce: [0, 7],
  Fetch: [4, 13],
  ListOffsets: [0, 4],
  Metadata: [0, 12],
  OffsetCommit: [1, 8],
  OffsetFetch: [1, 7],
  FindCoordinator: [0, 3],
  JoinGroup: [0, 6],
  Heartbeat: [0, 4],
  LeaveGroup: [0, 4],
  SyncGroup: [0, 4],
  ApiVersions: [0, 3],
  CreateTopics: [0, 6],
  InitProducerId: [0, 3],
};

/** No fetch sessions, no leader epochs, no flexible versions. */
const V1_0: Profile["versions"] = {
  Produce: [0, 5],
  Fetch: [0, 6],
  ListOffsets: [0, 2],
  Metadata: [0, 5],
  OffsetCommit: [0, 3],
  OffsetFetch: [0, 3],
  FindCoordinator: [0, 1],
  JoinGroup: [0, 2],
  Heartbeat: [0, 1],
  LeaveGroup: [0, 1],
  SyncGroup: [0, 1],
  SaslHandshake: [0, 1],
  ApiVersions: [0, 1],
  CreateTopics: [0, 2],
  InitProducerId: [0, 0],
  OffsetForLeaderEpoch: [0, 0],
  SaslAuthenticate: [0, 0],
  AddOffsetsToTxn: [0, 0],
  AddPartitionsToTxn: [0, 0],
  DescribeConfigs: [0, 1],
  EndTxn: [0, 0],
  ListGroups: [0, 1],
  DescribeGroups: [0, 1],
  TxnOffsetCommit: [0, 0],
};

function profile(name: string, versions: Profile["versions"], rest: Partial<Profile> = {}): Profile {
  return {
    name,
    versions,
    topicIds: "real",
    leaderEpochs: true,
    refusal: "own",
    abortedList: "by end",
    loginMs: 0,
    ...rest,
  };
}

export const PROFILES = {
  "4.x": profile("4.x", V4),
  "3.9": profile("3.9", V3_9),
  "2.8": profile("2.8", V2_8),
  "1.0": profile("1.0", V1_0, { refusal: "empty" }),
  /** Advertises Fetch by topic id but has none to give. */
  "zero-topic-ids": profile("zero-topic-ids", V4_WITHOUT_KIP_848, { topicIds: "zero" }),
  redpanda: profile("redpanda", REDPANDA, { abortedList: "reversed" }),
  /** A managed 3.6 behind IAM: logins end, however long the credentials last. */
  msk: profile("msk", V3_6, { loginMs: 4_000 }),
  /**
   * New binaries that still speak the old protocol among each other: the new versions are advertised, but there are
   * no topic ids, no leader epochs, and records of the old format.
   */
  "old-ibp": profile("old-ibp", BEFORE_KIP_848, { topicIds: "zero", leaderEpochs: false }),
  /** As a managed service was seen to: resets on what it does not know, old Metadata beside a newer rest, no epochs. */
  "event-hubs": profile(
    "event-hubs",
    {
      ...BEFORE_KIP_848,
      ApiVersions: [0, 3],
      Metadata: [0, 9],
      OffsetFetch: [0, 8],
      Fetch: [4, 12],
      Produce: [3, 9],
    },
    { topicIds: "zero", leaderEpochs: false, refusal: "reset" },
  ),
} as const satisfies Record<string, Profile>;

export type ProfileName = keyof typeof PROFILES;
