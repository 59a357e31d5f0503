/** DescribeConfigs (key 32): what a test has set on a topic, and nothing else. */
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import {
  TOPIC_CONFIG_SOURCE,
  TOPIC_RESOURCE,
} from "../../../../src/adapters/kafka/wire/messages/describe-configs.ts";
import type { Call } from "./table.ts";

export function describeConfigs({ cluster, request, reply }: Call<"DescribeConfigs">): void {
  reply({
    results: request.body.resources.map(({ resourceType, resourceName, configurationKeys }) => {
      const topic = resourceType === TOPIC_RESOURCE ? cluster.topics.get(resourceName) : undefined;
      const errorCode = topic === undefined ? ERROR.UNKNOWN_TOPIC_OR_PARTITION : ERROR.NONE;
      const wanted = (name: string) => configurationKeys === null || configurationKeys.includes(name);
      const configs = [...(topic?.configs ?? [])]
        .filter(([name]) => wanted(name))
        .map(([name, value]) => ({ name, value, configSource: TOPIC_CONFIG_SOURCE, documentation: null }));
      return { errorCode, errorMessage: null, resourceType, resourceName, configs };
    }),
  });
}
