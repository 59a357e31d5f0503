/**
 * Fetch (key 1): sessions, long poll, limits, isolation, fencing and divergence, as a leader does it. The answer is
 * worked out anew whenever a log or a leader changes, until there are enough bytes, an error, or no time left.
 */
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import type { FetchResponsePartition } from "../../../../src/adapters/kafka/wire/messages/fetch.ts";
import { type Draft, TOPIC_ID_VERSION } from "../../../../src/adapters/kafka/wire/protocol.ts";
import type { Broker, Partition } from "../cluster.ts";
import type { FetchContext, WantedPartition } from "../fetch-sessions.ts";
import { checkLeader, epochOf } from "./leadership.ts";
import type { Call } from "./table.ts";

type Answer = Draft<FetchResponsePartition>;
type FetchCall = Call<"Fetch">;

const NO_BYTES = new Uint8Array(0);
/** Leader hints for clients that meet the wrong broker (KIP-951). */
const HINT_VERSION = 12;
/** From here on clients tell their rack, and followers answer them. */
const RACK_VERSION = 11;
const ENDPOINT_VERSION = 16;
const READ_COMMITTED = 1;

export function fetch(call: FetchCall) {
  const { cluster, broker, request, reply } = call;
  const context = broker.sessions.context(request.body, request.version);
  if (context.kind === "error") return reply({ errorCode: context.code });
  const deadline = cluster.clock.monotonic() + request.body.maxWaitMs;

  const attempt = (): boolean => {
    const round = readAll(call, context.wanted);
    const late = cluster.clock.monotonic() >= deadline;
    if (!late && !round.urgent && round.bytes < request.body.minBytes && context.wanted.length > 0)
      return false;
    reply(respond(call, context, round.answers));
    return true;
  };

  if (!attempt()) park(call, attempt);
}

function park(call: FetchCall, attempt: () => boolean) {
  const { cluster, connection, request } = call;
  let timer = { cancel() {} };
  const leave = () => {
    timer.cancel();
    unwatch();
    forget();
  };
  const wake = () => {
    if (attempt()) leave();
  };
  const unwatch = cluster.watch(wake);
  const forget = connection.onEnd(leave);
  // A timer may fire a hair early; the second round finds the time over.
  const onTime = () => {
    if (attempt()) leave();
    else timer = cluster.clock.after(1, onTime);
  };
  timer = cluster.clock.after(request.body.maxWaitMs, onTime);
}

interface Round {
  readonly answers: readonly Answer[];
  readonly bytes: number;
  /** Something that must be told at once. */
  readonly urgent: boolean;
}

function readAll(call: FetchCall, wanted: readonly WantedPartition[]): Round {
  const { maxBytes } = call.request.body;
  const answers: Answer[] = [];
  let bytes = 0;
  let urgent = false;
  for (const w of wanted) {
    const room = Math.min(w.maxBytes, maxBytes - bytes);
    // The first partition with data gives at least one whole batch, whatever the limits (KIP-74).
    const answer = readOne(call, w, Math.max(room, 0), bytes === 0);
    bytes += answer.records?.length ?? 0;
    urgent ||=
      answer.errorCode !== 0 ||
      answer.divergingEpoch !== undefined ||
      answer.preferredReadReplica !== undefined;
    answers.push(answer);
  }
  return { answers, bytes, urgent };
}

function readOne(call: FetchCall, w: WantedPartition, room: number, minOne: boolean): Answer {
  const { cluster, broker, request } = call;
  const byId = request.version >= TOPIC_ID_VERSION.Fetch;
  const topic =
    byId && broker.profile.topicIds === "zero"
      ? undefined
      : byId
        ? cluster.topicById(w.topicId)
        : cluster.topics.get(w.topic);
  const unknown = byId ? ERROR.UNKNOWN_TOPIC_ID : ERROR.UNKNOWN_TOPIC_OR_PARTITION;
  const near = request.version >= RACK_VERSION && broker.rack !== null && broker.rack === request.body.rackId;
  const who = near ? "replica" : "leader";
  const checked = checkLeader("Fetch", broker, topic, w.partition, w.currentLeaderEpoch, unknown, who);
  if (!checked.ok)
    return { ...failed(w, checked.code), ...hint(call, checked.code, topic?.partitions[w.partition]) };
  const { log } = checked.partition;
  const closer = closest(call, checked.partition, w.fetchOffset);
  if (closer !== null) {
    return { ...failed(w, ERROR.NONE), ...standing(checked.partition), preferredReadReplica: closer };
  }
  const end = checked.partition.leader === broker.id ? log.end : followersEnd(checked.partition);
  const divergence = diverging(checked.partition, w);
  if (divergence !== null) return { ...failed(w, ERROR.NONE), ...standing(checked.partition), ...divergence };
  if (w.fetchOffset < log.start || w.fetchOffset > end) return failed(w, ERROR.OFFSET_OUT_OF_RANGE);
  const committed = request.body.isolationLevel === READ_COMMITTED;
  const top = committed ? log.lastStable : log.highWatermark;
  const limit = top < end ? top : end;
  const records = log.read(w.fetchOffset, limit, room, minOne);
  return {
    partitionIndex: w.partition,
    errorCode: ERROR.NONE,
    ...standing(checked.partition, end),
    abortedTransactions: committed
      ? aborted(broker, records.length === 0 ? [] : log.abortedBetween(w.fetchOffset, limit))
      : null,
    records,
  };
}

function aborted<T>({ profile }: Broker, list: readonly T[]): readonly T[] {
  return profile.abortedList === "reversed" ? list.toReversed() : list;
}

function standing({ log }: Partition, end: bigint = log.end) {
  const known = (offset: bigint) => (offset < end ? offset : end);
  return {
    highWatermark: known(log.highWatermark),
    lastStableOffset: known(log.lastStable),
    logStartOffset: log.start,
  };
}

function followersEnd({ log, followersEnd: end }: Partition): bigint {
  return end === null || end > log.end ? log.end : end;
}

/** The replica in the client's rack that its leader sends it to, null if there is no better one than the leader. */
function closest({ cluster, broker, request }: FetchCall, p: Partition, offset: bigint): number | null {
  const { rackId } = request.body;
  if (p.leader !== broker.id || rackId === "" || broker.rack === rackId) return null;
  if (offset > followersEnd(p) && !cluster.namesAnyReplica) return null;
  return p.replicas.find((id) => cluster.broker(id).alive && cluster.broker(id).rack === rackId) ?? null;
}

function failed(w: WantedPartition, errorCode: number): Answer {
  return {
    partitionIndex: w.partition,
    errorCode,
    highWatermark: -1n,
    abortedTransactions: null,
    records: NO_BYTES,
  };
}

/** Told to a client whose last epoch ended earlier than it has read (KIP-320, KIP-595). */
function diverging(p: Partition, w: WantedPartition): Pick<Answer, "divergingEpoch"> | null {
  if (w.lastFetchedEpoch < 0) return null;
  const end = p.log.endOfEpoch(w.lastFetchedEpoch);
  if (end.epoch < 0) return null;
  const whole = end.epoch >= w.lastFetchedEpoch && end.end >= w.fetchOffset;
  return whole ? null : { divergingEpoch: { epoch: end.epoch, endOffset: end.end } };
}

function hint(call: FetchCall, code: number, p: Partition | undefined): Pick<Answer, "currentLeader"> {
  const moved = code === ERROR.NOT_LEADER_OR_FOLLOWER || code === ERROR.FENCED_LEADER_EPOCH;
  if (!moved || p === undefined || call.request.version < HINT_VERSION) return {};
  return { currentLeader: { leaderId: p.leader, leaderEpoch: epochOf(call.broker, p.leaderEpoch) } };
}

function respond(
  call: FetchCall,
  context: Exclude<FetchContext, { kind: "error" }>,
  answers: readonly Answer[],
) {
  const { sessions } = call.broker;
  let sessionId = 0;
  let told = context.wanted.map((wanted, i) => ({ wanted, answer: answers[i]! }));
  if (context.kind === "full") sessionId = sessions.create(context.wanted, context.byId, answers);
  if (context.kind === "incremental") {
    const { session } = context;
    sessionId = session.id;
    told = told.filter(({ wanted, answer }) => sessions.hasNews(session, wanted, answer));
  }
  return { sessionId, responses: byTopic(told), nodeEndpoints: endpoints(call, told) };
}

interface Told {
  readonly wanted: WantedPartition;
  readonly answer: Answer;
}

/** Neighbours of one topic share an entry; the order of partitions is kept. */
function byTopic(told: readonly Told[]) {
  const responses: { topic: string; topicId: string; partitions: Answer[] }[] = [];
  for (const { wanted, answer } of told) {
    const { topic, topicId } = wanted;
    const last = responses[responses.length - 1];
    if (last !== undefined && last.topic === topic && last.topicId === topicId) last.partitions.push(answer);
    else responses.push({ topic, topicId, partitions: [answer] });
  }
  return responses;
}

function endpoints(call: FetchCall, told: readonly Told[]) {
  if (call.request.version < ENDPOINT_VERSION) return [];
  const hinted = new Set(told.map(({ answer }) => answer.currentLeader?.leaderId ?? -1));
  return call.cluster.brokers
    .filter((b) => hinted.has(b.id))
    .map((b) => ({ nodeId: b.id, host: b.host, port: b.port, rack: b.rack }));
}
