/**
 * Fetch sessions of one broker (KIP-227). The broker remembers a session's partitions; an incremental request names
 * only what changed, and an incremental response only what has news.
 */
import { ERROR } from "../../../src/adapters/kafka/wire/errors.ts";
import type {
  FetchRequest,
  FetchResponsePartition,
} from "../../../src/adapters/kafka/wire/messages/fetch.ts";
import { type Draft, TOPIC_ID_VERSION } from "../../../src/adapters/kafka/wire/protocol.ts";

export interface WantedPartition {
  /** Name below v13, id from v13 on. */
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
  readonly fetchOffset: bigint;
  readonly maxBytes: number;
  readonly currentLeaderEpoch: number;
  readonly lastFetchedEpoch: number;
}

interface CachedPartition {
  wanted: WantedPartition;
  highWatermark: bigint;
  logStart: bigint;
}

export interface FetchSession {
  readonly id: number;
  /** The epoch that the next request must carry. */
  epoch: number;
  readonly byId: boolean;
  readonly partitions: Map<string, CachedPartition>;
}

export type FetchContext =
  | { readonly kind: "error"; readonly code: number }
  | { readonly kind: "sessionless"; readonly wanted: readonly WantedPartition[] }
  /** A new session is opened when the response is made. */
  | { readonly kind: "full"; readonly wanted: readonly WantedPartition[]; readonly byId: boolean }
  | {
      readonly kind: "incremental";
      readonly wanted: readonly WantedPartition[];
      readonly session: FetchSession;
    };

const NEW_SESSION_EPOCH = 0;
const NO_SESSION_EPOCH = -1;
const SESSION_VERSION = 7;
const INT32_MAX = 0x7fffffff;

const keyOf = (topic: string, topicId: string, partition: number, byId: boolean): string =>
  `${byId ? topicId : topic}/${partition}`;

function wantedOf(request: FetchRequest): WantedPartition[] {
  return request.topics.flatMap(({ topic, topicId, partitions }) =>
    partitions.map((p) => ({
      topic,
      topicId,
      partition: p.partition,
      fetchOffset: p.fetchOffset,
      maxBytes: p.partitionMaxBytes,
      currentLeaderEpoch: p.currentLeaderEpoch,
      lastFetchedEpoch: p.lastFetchedEpoch,
    })),
  );
}

export class FetchSessions {
  readonly #sessions = new Map<number, FetchSession>();
  readonly #slots: number;
  #lastId = 0;

  /** `slots`: how many may be open; without a free one a client gets none (id 0). */
  constructor(slots: number) {
    this.#slots = slots;
  }

  get open(): readonly FetchSession[] {
    return [...this.#sessions.values()];
  }

  /** Forgets all sessions, as a restart or an eviction does: the next requests get FETCH_SESSION_ID_NOT_FOUND. */
  evictAll(): void {
    this.#sessions.clear();
  }

  context(request: FetchRequest, version: number): FetchContext {
    const byId = version >= TOPIC_ID_VERSION.Fetch;
    const { sessionId, sessionEpoch } = request;
    if (version < SESSION_VERSION || sessionEpoch === NO_SESSION_EPOCH) {
      this.#sessions.delete(sessionId);
      return { kind: "sessionless", wanted: wantedOf(request) };
    }
    if (sessionEpoch === NEW_SESSION_EPOCH) {
      this.#sessions.delete(sessionId);
      return { kind: "full", wanted: wantedOf(request), byId };
    }
    const session = this.#sessions.get(sessionId);
    if (session === undefined) return { kind: "error", code: ERROR.FETCH_SESSION_ID_NOT_FOUND };
    if (session.epoch !== sessionEpoch) return { kind: "error", code: ERROR.INVALID_FETCH_SESSION_EPOCH };
    if (session.byId !== byId) return { kind: "error", code: ERROR.FETCH_SESSION_TOPIC_ID_ERROR };
    return this.#continue(session, request);
  }

  #continue(session: FetchSession, request: FetchRequest): FetchContext {
    for (const wanted of wantedOf(request)) {
      const key = keyOf(wanted.topic, wanted.topicId, wanted.partition, session.byId);
      const cached = session.partitions.get(key);
      if (cached !== undefined) cached.wanted = wanted;
      else session.partitions.set(key, { wanted, highWatermark: -1n, logStart: -1n });
    }
    for (const { topic, topicId, partitions } of request.forgottenTopicsData) {
      for (const p of partitions) session.partitions.delete(keyOf(topic, topicId, p, session.byId));
    }
    session.epoch = session.epoch === INT32_MAX ? 1 : session.epoch + 1;
    if (session.partitions.size === 0) {
      this.#sessions.delete(session.id);
      return { kind: "sessionless", wanted: [] };
    }
    return { kind: "incremental", wanted: [...session.partitions.values()].map((c) => c.wanted), session };
  }

  /** Opens a session over what was just answered. Returns its id, 0 if there is no free slot. */
  create(
    wanted: readonly WantedPartition[],
    byId: boolean,
    answers: readonly Draft<FetchResponsePartition>[],
  ): number {
    if (wanted.length === 0 || this.#sessions.size >= this.#slots) return 0;
    const partitions = new Map<string, CachedPartition>();
    wanted.forEach((w, i) => {
      const cached = { wanted: w, highWatermark: -1n, logStart: -1n };
      remember(cached, answers[i]!);
      partitions.set(keyOf(w.topic, w.topicId, w.partition, byId), cached);
    });
    // Any number but 0; spread out so that a client which invents ids is found out.
    this.#lastId = (Math.imul(this.#lastId, 1103515245) + 12345) & INT32_MAX;
    const id = this.#lastId;
    this.#sessions.set(id, { id, epoch: 1, byId, partitions });
    return id;
  }

  /** Whether an incremental response carries this partition; remembers what the client then knows. */
  hasNews(session: FetchSession, wanted: WantedPartition, answer: Draft<FetchResponsePartition>): boolean {
    const key = keyOf(wanted.topic, wanted.topicId, wanted.partition, session.byId);
    const cached = session.partitions.get(key);
    if (cached === undefined) return true;
    const filled = (answer.records?.length ?? 0) > 0;
    const news =
      filled ||
      (answer.errorCode ?? 0) !== 0 ||
      answer.divergingEpoch !== undefined ||
      (answer.preferredReadReplica ?? -1) !== -1 ||
      answer.highWatermark !== cached.highWatermark ||
      answer.logStartOffset !== cached.logStart;
    if (news) remember(cached, answer);
    if (filled) {
      // Partitions that were served go to the end, so that none starves.
      session.partitions.delete(key);
      session.partitions.set(key, cached);
    }
    return news;
  }
}

function remember(cached: CachedPartition, answer: Draft<FetchResponsePartition>): void {
  // After an error the client must hear of the partition again, whatever comes then.
  const failed = (answer.errorCode ?? 0) !== 0;
  cached.highWatermark = failed ? -1n : (answer.highWatermark ?? -1n);
  cached.logStart = failed ? -1n : (answer.logStartOffset ?? -1n);
}
