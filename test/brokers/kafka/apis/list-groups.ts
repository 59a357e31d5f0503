/** ListGroups (key 16): the groups whose coordinator this broker is. */
import type { Call } from "./table.ts";

export function listGroups({ cluster, broker, request, reply }: Call<"ListGroups">): void {
  const { statesFilter, typesFilter } = request.body;
  const names = new Set([
    ...cluster.groups.keys(),
    ...[...cluster.classicGroups].filter(([, g]) => g.members.length > 0).map(([name]) => name),
    ...[...cluster.consumerGroups].filter(([, g]) => g.size > 0).map(([name]) => name),
  ]);
  const groups = [...names]
    .filter((name) => cluster.coordinatorOf(name) === broker)
    .map((groupId) => {
      const consumers = cluster.consumerGroups.get(groupId)?.size ?? 0;
      const members = consumers + (cluster.classicGroups.get(groupId)?.members.length ?? 0);
      return {
        groupId,
        protocolType: "consumer",
        groupState: members === 0 ? "Empty" : "Stable",
        groupType: consumers > 0 ? "consumer" : "classic",
      };
    })
    .filter((g) => statesFilter.length === 0 || statesFilter.includes(g.groupState))
    .filter((g) => typesFilter.length === 0 || typesFilter.includes(g.groupType));
  reply({ groups });
}
