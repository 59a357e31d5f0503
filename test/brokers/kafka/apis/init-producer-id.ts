/** InitProducerId (key 22): ids for idempotent producers; transactions over the wire are not served. */
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import type { Call } from "./table.ts";

export function initProducerId({ cluster, request, reply }: Call<"InitProducerId">) {
  if (request.body.transactionalId !== null) {
    return reply({ errorCode: ERROR.INVALID_REQUEST, producerEpoch: -1 });
  }
  reply({ producerId: cluster.nextProducerId++, producerEpoch: 0 });
}
