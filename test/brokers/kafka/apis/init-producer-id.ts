/** InitProducerId (key 22): ids for idempotent producers, and with an id of their own for transactions. */
import type { Call } from "./table.ts";
import { initTransactional } from "./transactions.ts";

export function initProducerId(call: Call<"InitProducerId">) {
  const { cluster, request, reply } = call;
  const { transactionalId } = request.body;
  if (transactionalId !== null) return initTransactional(call, transactionalId);
  reply({ producerId: cluster.nextProducerId++, producerEpoch: 0 });
}
