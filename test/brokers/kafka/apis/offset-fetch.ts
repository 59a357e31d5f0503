/** OffsetFetch (key 9): one group up to v7, many from v8. A partition without a commit answers -1, without an error. */
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import type {
  OffsetFetchRequestTopic,
  OffsetFetchResponseTopic,
} from "../../../../src/adapters/kafka/wire/messages/offset-fetch.ts";
import { type Draft, TOPIC_ID_VERSION } from "../../../../src/adapters/kafka/wire/protocol.ts";
import { ZERO_UUID } from "../../../../src/adapters/kafka/wire/uuid.ts";
import type { FakeCluster } from "../cluster.ts";
import type { Call } from "./table.ts";

type AnswerTopic = Draft<OffsetFetchResponseTopic>;

function everything(cluster: FakeCluster, group: string): OffsetFetchRequestTopic[] {
  const topics = new Map<string, number[]>();
  for (const key of cluster.groups.get(group)?.keys() ?? []) {
    const slash = key.lastIndexOf("/");
    const name = key.slice(0, slash);
    topics.set(name, [...(topics.get(name) ?? []), Number(key.slice(slash + 1))]);
  }
  return [...topics].map(([name, partitionIndexes]) => ({
    name,
    topicId: cluster.topics.get(name)?.id ?? ZERO_UUID,
    partitionIndexes,
  }));
}

function read(
  cluster: FakeCluster,
  group: string,
  wanted: OffsetFetchRequestTopic,
  byId: boolean,
): AnswerTopic {
  const { name, topicId, partitionIndexes } = wanted;
  const known = byId ? cluster.topicById(topicId)?.name : name;
  const errorCode = known === undefined ? ERROR.UNKNOWN_TOPIC_ID : ERROR.NONE;
  return {
    name,
    topicId,
    partitions: partitionIndexes.map((partitionIndex) => {
      const found = known === undefined ? undefined : cluster.committed(group, known, partitionIndex);
      return {
        partitionIndex,
        committedOffset: found?.offset ?? -1n,
        committedLeaderEpoch: found?.leaderEpoch ?? -1,
        metadata: found === undefined ? "" : found.metadata,
        errorCode,
      };
    }),
  };
}

export function offsetFetch({ cluster, broker, request, reply }: Call<"OffsetFetch">) {
  const byId = request.version >= TOPIC_ID_VERSION.OffsetFetch;
  const one = (groupId: string, topics: readonly OffsetFetchRequestTopic[] | null) => {
    if (cluster.coordinatorOf(groupId) !== broker)
      return { groupId, errorCode: ERROR.NOT_COORDINATOR, topics: [] };
    const wanted = topics ?? everything(cluster, groupId);
    return { groupId, errorCode: ERROR.NONE, topics: wanted.map((t) => read(cluster, groupId, t, byId)) };
  };
  if (request.version >= 8)
    return reply({ groups: request.body.groups.map((g) => one(g.groupId, g.topics)) });
  const { errorCode, topics } = one(request.body.groupId, request.body.topics);
  reply({
    errorCode,
    topics: request.version < 2 && errorCode !== 0 ? spread(request.body.topics ?? [], errorCode) : topics,
  });
}

/** v1 has no error for the group: it stands at every partition. */
function spread(topics: readonly OffsetFetchRequestTopic[], errorCode: number): AnswerTopic[] {
  return topics.map(({ name, partitionIndexes }) => ({
    name,
    partitions: partitionIndexes.map((partitionIndex) => ({
      partitionIndex,
      committedOffset: -1n,
      metadata: "",
      errorCode,
    })),
  }));
}
