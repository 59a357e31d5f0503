/**
 * `range`: of each topic every member takes a run of partitions, the first ones a partition more where they do not
 * divide. Topics with as many partitions and the same members are cut alike, so that equal keys meet.
 */
import {
  type AssignedPartition,
  type Assignor,
  byMember,
  type GroupAssignment,
  type GroupMember,
  subscribed,
} from "./assignor.ts";

export const range: Assignor = {
  name: "range",
  cooperative: false,
  assign(partitions: ReadonlyMap<string, number>, members: readonly GroupMember[]): GroupAssignment {
    const out = new Map<string, AssignedPartition[]>(members.map((m) => [m.memberId, []]));
    const sorted = [...members].sort(byMember);
    for (const [topic, count] of subscribed(partitions, members)) {
      const takers = sorted.filter((m) => m.subscription.topics.includes(topic));
      const each = Math.floor(count / takers.length);
      const extra = count % takers.length;
      let next = 0;
      takers.forEach((m, i) => {
        const end = next + each + (i < extra ? 1 : 0);
        for (; next < end; next++) out.get(m.memberId)?.push({ topic, partition: next });
      });
    }
    return out;
  },
};
