/** CreateTopics (key 19). */
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import type { Call } from "./table.ts";

export function createTopics({ cluster, request, reply }: Call<"CreateTopics">): void {
  reply({
    topics: request.body.topics.map(({ name, numPartitions, assignments, configs }) => {
      const partitions = numPartitions > 0 ? numPartitions : Math.max(assignments.length, 1);
      if (cluster.topics.has(name)) {
        return {
          name,
          errorCode: ERROR.TOPIC_ALREADY_EXISTS,
          errorMessage: `Topic '${name}' already exists.`,
          configs: [],
        };
      }
      const made = request.body.validateOnly ? null : cluster.createTopic(name, { partitions });
      for (const { name: key, value } of configs ?? []) if (value !== null) made?.configs.set(key, value);
      const id = made === null ? {} : { topicId: made.id };
      return {
        name,
        ...id,
        errorMessage: null,
        numPartitions: partitions,
        replicationFactor: 1,
        configs: [],
      };
    }),
  });
}
