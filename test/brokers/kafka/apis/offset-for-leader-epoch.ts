/** OffsetForLeaderEpoch (key 23). */
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import { checkLeader, epochOf } from "./leadership.ts";
import type { Call } from "./table.ts";

export function offsetForLeaderEpoch({
  cluster,
  broker,
  request,
  reply,
}: Call<"OffsetForLeaderEpoch">): void {
  reply({
    topics: request.body.topics.map(({ topic, partitions }) => ({
      topic,
      partitions: partitions.map(({ partition, currentLeaderEpoch, leaderEpoch }) => {
        const checked = checkLeader(
          "OffsetForLeaderEpoch",
          broker,
          cluster.topics.get(topic),
          partition,
          currentLeaderEpoch,
          ERROR.UNKNOWN_TOPIC_OR_PARTITION,
        );
        if (!checked.ok) return { partition, errorCode: checked.code };
        const end = checked.partition.log.endOfEpoch(leaderEpoch);
        const known = broker.profile.leaderEpochs;
        return { partition, leaderEpoch: epochOf(broker, end.epoch), endOffset: known ? end.end : -1n };
      }),
    })),
  });
}
