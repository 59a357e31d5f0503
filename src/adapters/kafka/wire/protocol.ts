/**
 * Kafka's messages, whole: header and body of requests and responses, both ways.
 *
 *   request   size int32 | api key int16 | version int16 | correlation id int32 | client id | [tags] | body
 *   response  size int32 | correlation id int32 | [tags] | body
 *
 * The tags are there in flexible versions; the response header of ApiVersions never has them, so that a client can
 * read it before it knows what the broker speaks (KIP-511).
 */
import { ByteReader } from "../../../core/bytes/reader.ts";
import { ByteWriter } from "../../../core/bytes/writer.ts";
import { Failure } from "../../../core/failure/failure.ts";
import { type Body, compileMessage, type MessageCodec } from "./codec.ts";
import { ERROR } from "./errors.ts";
import {
  type AddOffsetsToTxnRequest,
  type AddOffsetsToTxnResponse,
  addOffsetsToTxn,
} from "./messages/add-offsets-to-txn.ts";
import {
  type AddPartitionsToTxnRequest,
  type AddPartitionsToTxnResponse,
  addPartitionsToTxn,
} from "./messages/add-partitions-to-txn.ts";
import { type ApiVersionsRequest, type ApiVersionsResponse, apiVersions } from "./messages/api-versions.ts";
import {
  type ConsumerGroupDescribeRequest,
  type ConsumerGroupDescribeResponse,
  consumerGroupDescribe,
} from "./messages/consumer-group-describe.ts";
import {
  type ConsumerGroupHeartbeatRequest,
  type ConsumerGroupHeartbeatResponse,
  consumerGroupHeartbeat,
} from "./messages/consumer-group-heartbeat.ts";
import {
  type CreateTopicsRequest,
  type CreateTopicsResponse,
  createTopics,
} from "./messages/create-topics.ts";
import {
  type DescribeConfigsRequest,
  type DescribeConfigsResponse,
  describeConfigs,
} from "./messages/describe-configs.ts";
import {
  type DescribeGroupsRequest,
  type DescribeGroupsResponse,
  describeGroups,
} from "./messages/describe-groups.ts";
import { type EndTxnRequest, type EndTxnResponse, endTxn } from "./messages/end-txn.ts";
import { type FetchRequest, type FetchResponse, fetch } from "./messages/fetch.ts";
import {
  type FindCoordinatorRequest,
  type FindCoordinatorResponse,
  findCoordinator,
} from "./messages/find-coordinator.ts";
import { type HeartbeatRequest, type HeartbeatResponse, heartbeat } from "./messages/heartbeat.ts";
import {
  type InitProducerIdRequest,
  type InitProducerIdResponse,
  initProducerId,
} from "./messages/init-producer-id.ts";
import { type JoinGroupRequest, type JoinGroupResponse, joinGroup } from "./messages/join-group.ts";
import { type LeaveGroupRequest, type LeaveGroupResponse, leaveGroup } from "./messages/leave-group.ts";
import { type ListGroupsRequest, type ListGroupsResponse, listGroups } from "./messages/list-groups.ts";
import { type ListOffsetsRequest, type ListOffsetsResponse, listOffsets } from "./messages/list-offsets.ts";
import { type MetadataRequest, type MetadataResponse, metadata } from "./messages/metadata.ts";
import {
  type OffsetCommitRequest,
  type OffsetCommitResponse,
  offsetCommit,
} from "./messages/offset-commit.ts";
import { type OffsetFetchRequest, type OffsetFetchResponse, offsetFetch } from "./messages/offset-fetch.ts";
import {
  type OffsetForLeaderEpochRequest,
  type OffsetForLeaderEpochResponse,
  offsetForLeaderEpoch,
} from "./messages/offset-for-leader-epoch.ts";
import { type ProduceRequest, type ProduceResponse, produce } from "./messages/produce.ts";
import {
  type SaslAuthenticateRequest,
  type SaslAuthenticateResponse,
  type SaslHandshakeRequest,
  type SaslHandshakeResponse,
  saslAuthenticate,
  saslHandshake,
} from "./messages/sasl.ts";
import { type SyncGroupRequest, type SyncGroupResponse, syncGroup } from "./messages/sync-group.ts";
import {
  type TxnOffsetCommitRequest,
  type TxnOffsetCommitResponse,
  txnOffsetCommit,
} from "./messages/txn-offset-commit.ts";
import type { ApiSpec, Message } from "./spec.ts";

export const APIS = {
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
} as const satisfies Record<string, ApiSpec>;

export type ApiName = keyof typeof APIS;

interface Bodies {
  Produce: { request: ProduceRequest; response: ProduceResponse };
  Fetch: { request: FetchRequest; response: FetchResponse };
  ListOffsets: { request: ListOffsetsRequest; response: ListOffsetsResponse };
  Metadata: { request: MetadataRequest; response: MetadataResponse };
  OffsetCommit: { request: OffsetCommitRequest; response: OffsetCommitResponse };
  OffsetFetch: { request: OffsetFetchRequest; response: OffsetFetchResponse };
  FindCoordinator: { request: FindCoordinatorRequest; response: FindCoordinatorResponse };
  JoinGroup: { request: JoinGroupRequest; response: JoinGroupResponse };
  Heartbeat: { request: HeartbeatRequest; response: HeartbeatResponse };
  LeaveGroup: { request: LeaveGroupRequest; response: LeaveGroupResponse };
  SyncGroup: { request: SyncGroupRequest; response: SyncGroupResponse };
  SaslHandshake: { request: SaslHandshakeRequest; response: SaslHandshakeResponse };
  ApiVersions: { request: ApiVersionsRequest; response: ApiVersionsResponse };
  CreateTopics: { request: CreateTopicsRequest; response: CreateTopicsResponse };
  InitProducerId: { request: InitProducerIdRequest; response: InitProducerIdResponse };
  OffsetForLeaderEpoch: { request: OffsetForLeaderEpochRequest; response: OffsetForLeaderEpochResponse };
  SaslAuthenticate: { request: SaslAuthenticateRequest; response: SaslAuthenticateResponse };
  ConsumerGroupHeartbeat: {
    request: ConsumerGroupHeartbeatRequest;
    response: ConsumerGroupHeartbeatResponse;
  };
  AddOffsetsToTxn: { request: AddOffsetsToTxnRequest; response: AddOffsetsToTxnResponse };
  AddPartitionsToTxn: { request: AddPartitionsToTxnRequest; response: AddPartitionsToTxnResponse };
  DescribeConfigs: { request: DescribeConfigsRequest; response: DescribeConfigsResponse };
  EndTxn: { request: EndTxnRequest; response: EndTxnResponse };
  ListGroups: { request: ListGroupsRequest; response: ListGroupsResponse };
  DescribeGroups: { request: DescribeGroupsRequest; response: DescribeGroupsResponse };
  ConsumerGroupDescribe: {
    request: ConsumerGroupDescribeRequest;
    response: ConsumerGroupDescribeResponse;
  };
  TxnOffsetCommit: { request: TxnOffsetCommitRequest; response: TxnOffsetCommitResponse };
}

export type RequestOf<A extends ApiName> = Bodies[A]["request"];
export type ResponseOf<A extends ApiName> = Bodies[A]["response"];

/** A body to send: fields left out are sent as their preset. */
export type Draft<T> = T extends Uint8Array
  ? T
  : T extends readonly (infer U)[]
    ? readonly Draft<U>[]
    : T extends object
      ? { readonly [K in keyof T]?: Draft<T[K]> }
      : T;

/**
 * What our client speaks. Floors are those of Kafka 4.0 (KIP-896) and work back to Kafka 1.0; SaslHandshake 0 would
 * mean bare SASL tokens without a frame. ConsumerGroupHeartbeat 0 is the preview of Kafka 3.9. ApiVersions 5 makes the broker check who it is (KIP-1242): not used.
 * InitProducerId 6 is unstable in Kafka.
 */
export const API_RANGE: { readonly [A in ApiName]: { readonly min: number; readonly max: number } } = {
  Produce: { min: 3, max: 13 },
  Fetch: { min: 4, max: 18 },
  ListOffsets: { min: 1, max: 11 },
  Metadata: { min: 1, max: 13 },
  OffsetCommit: { min: 2, max: 10 },
  OffsetFetch: { min: 1, max: 10 },
  FindCoordinator: { min: 0, max: 6 },
  JoinGroup: { min: 2, max: 9 },
  Heartbeat: { min: 0, max: 4 },
  LeaveGroup: { min: 0, max: 5 },
  SyncGroup: { min: 0, max: 5 },
  SaslHandshake: { min: 1, max: 1 },
  ApiVersions: { min: 0, max: 4 },
  CreateTopics: { min: 2, max: 7 },
  InitProducerId: { min: 0, max: 5 },
  OffsetForLeaderEpoch: { min: 2, max: 4 },
  SaslAuthenticate: { min: 0, max: 2 },
  ConsumerGroupHeartbeat: { min: 1, max: 1 },
  AddOffsetsToTxn: { min: 0, max: 4 },
  AddPartitionsToTxn: { min: 0, max: 3 },
  DescribeConfigs: { min: 1, max: 4 },
  EndTxn: { min: 0, max: 5 },
  ListGroups: { min: 0, max: 5 },
  DescribeGroups: { min: 0, max: 6 },
  ConsumerGroupDescribe: { min: 0, max: 1 },
  TxnOffsetCommit: { min: 0, max: 5 },
};

/** First version of an API whose bodies name topics by id alone (KIP-516). */
export const TOPIC_ID_VERSION: {
  readonly [A in "Fetch" | "Produce" | "OffsetCommit" | "OffsetFetch"]: number;
} = {
  Fetch: 13,
  Produce: 13,
  OffsetCommit: 10,
  OffsetFetch: 10,
};

/** Size, key, version, correlation id, length of the client id, tags. */
const REQUEST_HEADER_BYTES = 4 + 2 + 2 + 4 + 2 + 1;
const RESPONSE_HEADER_BYTES = 4 + 4 + 1;

const NAME_BY_KEY = new Map<number, ApiName>(
  (Object.keys(APIS) as ApiName[]).map((name) => [APIS[name].key, name]),
);
const compiled = new Map<string, MessageCodec>();

function codecOf(api: ApiName, kind: "request" | "response", version: number): MessageCodec {
  const key = `${api} ${kind} v${version}`;
  const known = compiled.get(key);
  if (known !== undefined) return known;
  const message: Message = APIS[api][kind];
  if (version < message.versions[0] || version > message.versions[1]) {
    throw new Failure("internal.bug", `there is no ${key}`);
  }
  const codec = compileMessage(message, version);
  compiled.set(key, codec);
  return codec;
}

/** Whether the headers and bodies of this version carry tag buffers. */
export function isFlexible(api: ApiName, version: number): boolean {
  const from: number | null = APIS[api].request.flexible;
  return from !== null && version >= from;
}

/** Name of an API key, null for one that we have no definition of. */
export function apiName(key: number): ApiName | null {
  return NAME_BY_KEY.get(key) ?? null;
}

function sealed(w: ByteWriter, sizeAt: number): Uint8Array {
  w.patchI32(sizeAt, w.length - sizeAt - 4);
  return w.view();
}

/**
 * The whole request with its size in front: a view on a buffer of its own, or on `into`, which is begun anew and valid
 * until it is used again.
 */
export function encodeRequest<A extends ApiName>(
  api: A,
  version: number,
  correlationId: number,
  clientId: string | null,
  body: Draft<RequestOf<A>>,
  into?: ByteWriter,
): Uint8Array {
  const codec = codecOf(api, "request", version);
  const bytes = REQUEST_HEADER_BYTES + 3 * (clientId?.length ?? 0) + codec.maxBytes(body as Body);
  const w = into ?? new ByteWriter(bytes);
  w.reset();
  const sizeAt = w.reserveI32();
  // The client id keeps its old int16 length in flexible versions too, so that any broker can read the header.
  w.i16(APIS[api].key).i16(version).i32(correlationId).string(clientId);
  if (isFlexible(api, version)) w.uvarint(0);
  codec.encode(w, body as Body);
  return sealed(w, sizeAt);
}

/** The id in front of every response: tells which request it answers. `bytes` begins after the size. */
export function correlationIdOf(bytes: Uint8Array): number {
  return new ByteReader(bytes, 0, bytes.length, "response header").i32();
}

/**
 * The body of a response. `bytes` begins after the size, at the correlation id; `records` fields are views on it.
 * Bytes behind the body are ignored. An ApiVersions response with error 35 (UNSUPPORTED_VERSION) is read in its v0
 * form, whatever was asked, since that is how a broker refuses a version that it does not know.
 */
export function decodeResponse<A extends ApiName>(api: A, version: number, bytes: Uint8Array): ResponseOf<A> {
  const r = new ByteReader(bytes, 0, bytes.length, `${api} response v${version}`);
  r.skip(4);
  const spoken = api === "ApiVersions" ? refusedVersion(bytes, version) : version;
  if (api !== "ApiVersions" && isFlexible(api, version)) r.taggedFields();
  return codecOf(api, "response", spoken).decode(r) as unknown as ResponseOf<A>;
}

function refusedVersion(bytes: Uint8Array, version: number): number {
  const error = bytes.length < 6 ? 0 : new ByteReader(bytes, 4).i16();
  return error === ERROR.UNSUPPORTED_VERSION ? 0 : version;
}

export interface RequestHeader {
  readonly apiKey: number;
  readonly version: number;
  readonly correlationId: number;
  readonly clientId: string | null;
}

/** The part of a request that can be read whatever its API and version. `bytes` begins after the size. */
export function decodeRequestHeader(bytes: Uint8Array): RequestHeader {
  return readHeader(new ByteReader(bytes, 0, bytes.length, "request header"));
}

function readHeader(r: ByteReader): RequestHeader {
  return { apiKey: r.i16(), version: r.i16(), correlationId: r.i32(), clientId: r.nullableString() };
}

export type DecodedRequest = {
  [A in ApiName]: RequestHeader & { readonly api: A; readonly body: RequestOf<A> };
}[ApiName];

/** A whole request; `bytes` begins after the size. Refuses bytes behind the body. */
export function decodeRequest(bytes: Uint8Array): DecodedRequest {
  const r = new ByteReader(bytes, 0, bytes.length, "request");
  const header = readHeader(r);
  const api = apiName(header.apiKey);
  if (api === null) throw new Failure("bytes.invalid", `api key ${header.apiKey} is not known`);
  const [min, max] = APIS[api].request.versions;
  if (header.version < min || header.version > max) {
    throw new Failure("bytes.invalid", `${api} v${header.version} is outside of ${min} to ${max}`);
  }
  if (isFlexible(api, header.version)) r.taggedFields();
  const body = codecOf(api, "request", header.version).decode(r);
  if (r.remaining > 0)
    throw new Failure("bytes.invalid", `${r.remaining} bytes behind ${api} v${header.version}`);
  return { ...header, api, body } as unknown as DecodedRequest;
}

/** The whole response with its size in front. */
export function encodeResponse<A extends ApiName>(
  api: A,
  version: number,
  correlationId: number,
  body: Draft<ResponseOf<A>>,
): Uint8Array {
  const codec = codecOf(api, "response", version);
  const w = new ByteWriter(RESPONSE_HEADER_BYTES + codec.maxBytes(body as Body));
  const sizeAt = w.reserveI32();
  w.i32(correlationId);
  if (api !== "ApiVersions" && isFlexible(api, version)) w.uvarint(0);
  codec.encode(w, body as Body);
  return sealed(w, sizeAt);
}
