/** What every request to a partition's leader is checked for first. */
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import type { ApiName } from "../../../../src/adapters/kafka/wire/protocol.ts";
import type { Broker, Partition, Topic } from "../cluster.ts";

export type Checked =
  | { readonly ok: true; readonly partition: Partition }
  | { readonly ok: false; readonly code: number };

/** Who may answer: the leader alone, or any replica as well. */
type Who = "leader" | "replica";

/** `unknown`: the error for a topic that is not there, by name or by id. `epoch`: the client's, -1 if it has none. */
export function checkLeader(
  api: ApiName,
  broker: Broker,
  topic: Topic | undefined,
  index: number,
  epoch: number,
  unknown: number,
  who: Who = "leader",
): Checked {
  if (topic === undefined) return { ok: false, code: unknown };
  if (topic.error !== 0) return { ok: false, code: topic.error };
  const partition = topic.partitions[index];
  if (partition === undefined) return { ok: false, code: ERROR.UNKNOWN_TOPIC_OR_PARTITION };
  const fault = takeFault(partition, api);
  if (fault !== 0) return { ok: false, code: fault };
  const follows = who === "replica" && partition.replicas.includes(broker.id);
  if (partition.leader !== broker.id && !follows) return { ok: false, code: ERROR.NOT_LEADER_OR_FOLLOWER };
  if (epoch >= 0 && broker.profile.leaderEpochs) {
    if (epoch < partition.leaderEpoch) return { ok: false, code: ERROR.FENCED_LEADER_EPOCH };
    if (epoch > partition.leaderEpoch) return { ok: false, code: ERROR.UNKNOWN_LEADER_EPOCH };
  }
  return { ok: true, partition };
}

/** The error that a test has set for the next request, 0 for none. */
export function takeFault(partition: Partition, api: ApiName): number {
  const fault = partition.faults.find((f) => f.times > 0 && (f.api === null || f.api === api));
  if (fault === undefined) return 0;
  fault.times--;
  return fault.code;
}

export function epochOf(broker: Broker, epoch: number): number {
  return broker.profile.leaderEpochs ? epoch : -1;
}
