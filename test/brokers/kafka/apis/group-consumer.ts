/** ConsumerGroupHeartbeat (key 68): the wire of `group-consumer.ts`. */
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import type { Call } from "./table.ts";

export function consumerGroupHeartbeat({
  cluster,
  broker,
  request,
  reply,
}: Call<"ConsumerGroupHeartbeat">): void {
  const { body } = request;
  if (body.groupId === "") return reply({ errorCode: ERROR.INVALID_REQUEST });
  if (cluster.coordinatorOf(body.groupId) !== broker) return reply({ errorCode: ERROR.NOT_COORDINATOR });
  reply(cluster.consumerGroup(body.groupId).heartbeat(body));
}
