/** FindCoordinator (key 10): the same broker for a group as long as it lives. */
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import type { FakeCluster } from "../cluster.ts";
import type { Call } from "./table.ts";

function coordinator(cluster: FakeCluster, key: string) {
  const broker = cluster.coordinatorOf(key);
  if (broker === null) {
    return {
      key,
      nodeId: -1,
      host: "",
      port: -1,
      errorCode: ERROR.COORDINATOR_NOT_AVAILABLE,
      errorMessage: null,
    };
  }
  return {
    key,
    nodeId: broker.id,
    host: broker.host,
    port: broker.port,
    errorCode: ERROR.NONE,
    errorMessage: null,
  };
}

export function findCoordinator({ cluster, request, reply }: Call<"FindCoordinator">): void {
  const { key, coordinatorKeys } = request.body;
  const { key: _, ...one } = coordinator(cluster, key);
  reply({ ...one, coordinators: coordinatorKeys.map((k) => coordinator(cluster, k)) });
}
