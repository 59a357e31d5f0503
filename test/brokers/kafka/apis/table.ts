/** The APIs that the test broker answers, one file each. */
import type {
  ApiName,
  DecodedRequest,
  Draft,
  ResponseOf,
} from "../../../../src/adapters/kafka/wire/protocol.ts";
import type { Broker, FakeCluster } from "../cluster.ts";
import type { BrokerConnection } from "../connection.ts";
import { apiVersions } from "./api-versions.ts";
import { createTopics } from "./create-topics.ts";
import { describeConfigs } from "./describe-configs.ts";
import { consumerGroupDescribe, describeGroups } from "./describe-groups.ts";
import { fetch } from "./fetch.ts";
import { findCoordinator } from "./find-coordinator.ts";
import { heartbeat, joinGroup, leaveGroup, syncGroup } from "./group-classic.ts";
import { consumerGroupHeartbeat } from "./group-consumer.ts";
import { initProducerId } from "./init-producer-id.ts";
import { listGroups } from "./list-groups.ts";
import { listOffsets } from "./list-offsets.ts";
import { metadata } from "./metadata.ts";
import { offsetCommit } from "./offset-commit.ts";
import { offsetFetch } from "./offset-fetch.ts";
import { offsetForLeaderEpoch } from "./offset-for-leader-epoch.ts";
import { produce } from "./produce.ts";
import { saslAuthenticate, saslHandshake } from "./sasl.ts";
import { addOffsetsToTxn, addPartitionsToTxn, endTxn, txnOffsetCommit } from "./transactions.ts";

export interface Call<A extends ApiName> {
  readonly cluster: FakeCluster;
  readonly broker: Broker;
  readonly connection: BrokerConnection;
  readonly request: Extract<DecodedRequest, { api: A }>;
  /** At once or later; only the first counts. */
  reply(body: Draft<ResponseOf<A>>): void;
  /** The request gets no answer at all (produce with acks 0). */
  silent(): void;
}

type Handler<A extends ApiName> = (call: Call<A>) => void;

const HANDLERS: { readonly [A in ApiName]: Handler<A> } = {
  Produce: produce,
  Fetch: fetch,
  ListOffsets: listOffsets,
  Metadata: metadata,
  OffsetCommit: offsetCommit,
  OffsetFetch: offsetFetch,
  FindCoordinator: findCoordinator,
  JoinGroup: joinGroup,
  Heartbeat: heartbeat,
  LeaveGroup: leaveGroup,
  SyncGroup: syncGroup,
  SaslHandshake: saslHandshake,
  ApiVersions: apiVersions,
  CreateTopics: createTopics,
  InitProducerId: initProducerId,
  OffsetForLeaderEpoch: offsetForLeaderEpoch,
  SaslAuthenticate: saslAuthenticate,
  ConsumerGroupHeartbeat: consumerGroupHeartbeat,
  AddOffsetsToTxn: addOffsetsToTxn,
  AddPartitionsToTxn: addPartitionsToTxn,
  DescribeConfigs: describeConfigs,
  EndTxn: endTxn,
  ListGroups: listGroups,
  DescribeGroups: describeGroups,
  ConsumerGroupDescribe: consumerGroupDescribe,
  TxnOffsetCommit: txnOffsetCommit,
};

export function handle(call: Call<ApiName>): void {
  (HANDLERS[call.request.api] as Handler<ApiName>)(call);
}
