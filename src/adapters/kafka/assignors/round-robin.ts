/**
 * `roundrobin`: all partitions in turn to all members, past those that do not subscribe to the topic. It knows no racks,
 * as Kafka's own does not.
 */
import {
  type AssignedPartition,
  type Assignor,
  byMember,
  type GroupAssignment,
  type GroupMember,
  subscribed,
} from "./assignor.ts";

export const roundRobin: Assignor = {
  name: "roundrobin",
  cooperative: false,
  assign(partitions: ReadonlyMap<string, number>, members: readonly GroupMember[]): GroupAssignment {
    const out = new Map<string, AssignedPartition[]>(members.map((m) => [m.memberId, []]));
    const sorted = [...members].sort(byMember);
    let turn = 0;
    for (const [topic, count] of subscribed(partitions, members)) {
      for (let partition = 0; partition < count; partition++) {
        // Ends: every topic here is one that somebody subscribes to.
        while (!sorted[turn % sorted.length]!.subscription.topics.includes(topic)) turn++;
        out.get(sorted[turn++ % sorted.length]!.memberId)?.push({ topic, partition });
      }
    }
    return out;
  },
};
