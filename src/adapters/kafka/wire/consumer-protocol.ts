/**
 * What consumers of a classic group tell each other inside JoinGroup and SyncGroup, which brokers pass on unread:
 * int16 version, then the body. A newer version is read as the newest that we know, since fields are only added at
 * the end. Some clients leave out what comes after the topics; that is read as absent.
 */
import { ByteReader } from "../../../core/bytes/reader.ts";
import { ByteWriter } from "../../../core/bytes/writer.ts";
import { Failure } from "../../../core/failure/failure.ts";
import { type Body, compileMessage } from "./codec.ts";
import { field, list, type Message, structs } from "./spec.ts";

export interface TopicPartitions {
  readonly topic: string;
  readonly partitions: readonly number[];
}

export interface Subscription {
  readonly topics: readonly string[];
  readonly userData: Uint8Array | null;
  readonly ownedPartitions: readonly TopicPartitions[];
  /** In which they are owned, -1: unknown. */
  readonly generationId: number;
  readonly rackId: string | null;
}

export interface Assignment {
  readonly assignedPartitions: readonly TopicPartitions[];
  readonly userData: Uint8Array | null;
}

const VERSION = 3;

export const consumerSubscription: Message = {
  versions: [0, VERSION],
  flexible: null,
  fields: [
    list("topics", "string", 0),
    field("userData", "bytes", 0, { nullable: 0, preset: null, mayBeCut: true }),
    structs("ownedPartitions", 1, [field("topic", "string", 1), list("partitions", "int32", 1)], {
      mayBeCut: true,
    }),
    field("generationId", "int32", 2, { preset: -1, mayBeCut: true }),
    field("rackId", "string", 3, { nullable: 3, preset: null, mayBeCut: true }),
  ],
};

export const consumerAssignment: Message = {
  versions: [0, VERSION],
  flexible: null,
  fields: [
    structs("assignedPartitions", 0, [field("topic", "string", 0), list("partitions", "int32", 0)]),
    field("userData", "bytes", 0, { nullable: 0, preset: null, mayBeCut: true }),
  ],
};

function encode(message: Message, version: number, body: Body): Uint8Array {
  const codec = compileMessage(message, version);
  const w = new ByteWriter(2 + codec.maxBytes(body));
  w.i16(version);
  codec.encode(w, body);
  return w.view();
}

function decode(message: Message, bytes: Uint8Array, what: string): Body {
  const r = new ByteReader(bytes, 0, bytes.length, what);
  const version = r.i16();
  if (version < 0) throw new Failure("bytes.invalid", `${what} of version ${version}`);
  return compileMessage(message, Math.min(version, VERSION)).decode(r);
}

export function encodeSubscription(s: Subscription): Uint8Array {
  // Version 3 carries everything; older members read what they know of it.
  return encode(consumerSubscription, VERSION, { ...s });
}

export function decodeSubscription(bytes: Uint8Array): Subscription {
  return decode(consumerSubscription, bytes, "subscription of a group member") as unknown as Subscription;
}

/** User data is always written: other clients do not read an assignment without it. */
export function encodeAssignment(assignedPartitions: readonly TopicPartitions[]): Uint8Array {
  return encode(consumerAssignment, VERSION, { assignedPartitions, userData: null });
}

/** No bytes at all: nothing is assigned. */
export function decodeAssignment(bytes: Uint8Array): Assignment {
  if (bytes.length === 0) return { assignedPartitions: [], userData: null };
  return decode(consumerAssignment, bytes, "assignment of a group member") as unknown as Assignment;
}
