/** ListOffsets (key 2). */
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import {
  EARLIEST_TIMESTAMP,
  LATEST_TIMESTAMP,
  MAX_TIMESTAMP,
} from "../../../../src/adapters/kafka/wire/messages/list-offsets.ts";
import type { PartitionLog } from "../partition-log.ts";
import { checkLeader, epochOf } from "./leadership.ts";
import type { Call } from "./table.ts";

const READ_COMMITTED = 1;
/** Start of the local part of a tiered log (v8), and the end of its remote part (v9). */
const LOCAL_START = -4n;
const TIERED_END = -5n;

interface Found {
  readonly offset: bigint;
  readonly timestamp: bigint;
}

const NOTHING: Found = { offset: -1n, timestamp: -1n };

function look(log: PartitionLog, timestamp: bigint, committed: boolean): Found {
  const end = committed ? log.lastStable : log.highWatermark;
  if (timestamp === LATEST_TIMESTAMP) return { offset: end, timestamp: -1n };
  if (timestamp === EARLIEST_TIMESTAMP || timestamp === LOCAL_START)
    return { offset: log.start, timestamp: -1n };
  if (timestamp === TIERED_END || timestamp < TIERED_END) return NOTHING;
  if (timestamp === MAX_TIMESTAMP) {
    const entry = log.largestTimestamp();
    return entry === null ? NOTHING : { offset: entry.next - 1n, timestamp: entry.maxTimestamp };
  }
  const entry = log.findTimestamp(timestamp);
  if (entry === null || entry.base >= end) return NOTHING;
  const inside = entry.base >= log.start;
  return { offset: inside ? entry.base : log.start, timestamp: entry.baseTimestamp };
}

export function listOffsets({ cluster, broker, request, reply }: Call<"ListOffsets">): void {
  const committed = request.body.isolationLevel === READ_COMMITTED;
  reply({
    topics: request.body.topics.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map(({ partitionIndex, currentLeaderEpoch, timestamp }) => {
        const checked = checkLeader(
          "ListOffsets",
          broker,
          cluster.topics.get(name),
          partitionIndex,
          currentLeaderEpoch,
          ERROR.UNKNOWN_TOPIC_OR_PARTITION,
        );
        if (!checked.ok) return { partitionIndex, errorCode: checked.code };
        const { log, leaderEpoch } = checked.partition;
        const found = look(log, timestamp, committed);
        const epoch = found.offset < 0n ? -1 : epochOf(broker, leaderEpoch);
        return { partitionIndex, ...found, leaderEpoch: epoch };
      }),
    })),
  });
}
