/** `twg inspect kafka`: topics, partitions, leaders and replicas, watermarks, and how far a group is behind. Reads only. */
import {
  type ClusterDescription,
  type CommittedOffset,
  committedOffsets,
  describeCluster,
  type GroupListing,
  listGroups,
  type TopicDescription,
  topicConfigs,
  type Watermarks,
  watermarks,
} from "../adapters/kafka/admin.ts";
import {
  type DescribedMember,
  describeGroup,
  type GroupDescription,
} from "../adapters/kafka/admin-groups.ts";
import { KafkaClient } from "../adapters/kafka/client.ts";
import type { TopicsWanted } from "../adapters/kafka/session/metadata-state.ts";
import { kafkaSettings } from "../adapters/kafka/settings.ts";
import { wantedTopics } from "../adapters/kafka/source-topics.ts";
import { Failure } from "../core/failure/failure.ts";
import { formatCount } from "../core/observe/quantities.ts";
import { type Cli, outJson } from "./cli.ts";
import { loadConfig, resolveSecrets } from "./config-file.ts";
import { kafkaParts } from "./kafka-parts.ts";
import { printable, styled } from "./style.ts";
import { type Cell, renderTable } from "./table.ts";
import { VERSION } from "./version.ts";

export interface InspectKafkaOptions {
  readonly config: string;
  /** Other topics than the pipeline's. */
  readonly topic: readonly string[];
  /** Every topic of the cluster. */
  readonly all: boolean;
  /** Another group than the pipeline's. */
  readonly group?: string;
  /** The groups of the cluster, too. */
  readonly groups: boolean;
  readonly timeout: number;
  readonly json: boolean;
}

/** Of a topic, what decides how long its records are there. */
const SETTINGS = [
  "cleanup.policy",
  "retention.ms",
  "retention.bytes",
  "min.insync.replicas",
  "max.message.bytes",
];

interface Seen {
  readonly cluster: ClusterDescription;
  readonly marks: ReadonlyMap<string, Watermarks>;
  readonly group: string | null;
  readonly committed: ReadonlyMap<string, CommittedOffset>;
  readonly configs: ReadonlyMap<string, ReadonlyMap<string, string | null>>;
  readonly groups: readonly GroupListing[] | null;
  /** Of the group; null: there is none, or the brokers know none. */
  readonly described: GroupDescription | null;
}

/** Throws the configuration's Failure and those of the brokers. Exit 1: a topic is missing or a partition has no leader. */
export async function runInspectKafka(options: InspectKafkaOptions, cli: Cli): Promise<number> {
  const config = await resolveSecrets(await loadConfig(options.config), cli.environment);
  const settings = kafkaSettings(config.source, VERSION);
  const client = new KafkaClient(settings, kafkaParts());
  const limit = AbortSignal.timeout(options.timeout);
  try {
    const isNamed = options.topic.length > 0;
    const wanted = isNamed ? options.topic : wantedTopics(settings);
    const seen = await look(
      client,
      options.all ? null : wanted,
      options.group ?? settings.group,
      options.groups,
      limit,
    );
    if (options.json) outJson(cli, jsonOf(seen));
    else cli.out(textOf(seen, cli.outColour));
    const bad = (t: TopicDescription) => t.error !== null || t.partitions.some((p) => p.leader < 0);
    return seen.cluster.topics.some(bad) ? 1 : 0;
  } catch (e) {
    if (!limit.aborted) throw e;
    throw new Failure("kafka.timeout", `the brokers did not answer within ${options.timeout} ms`, {
      cause: e,
    });
  } finally {
    client.close();
  }
}

const key = (topic: string, partition: number): string => `${partition} ${topic}`;

async function look(
  client: KafkaClient,
  topics: TopicsWanted | null,
  group: string | null,
  groups: boolean,
  signal: AbortSignal,
): Promise<Seen> {
  const cluster = await describeCluster(client, topics, signal);
  const there = cluster.topics.filter((t) => t.error === null);
  const [marks, committed, configs, listed, described] = await Promise.all([
    watermarks(client, there, signal),
    group === null ? [] : committedOffsets(client, group, signal),
    topicConfigs(
      client,
      there.map((t) => t.name),
      SETTINGS,
      signal,
    ),
    groups ? listGroups(client, signal) : null,
    group === null ? null : describeGroup(client, group, signal),
  ]);
  return {
    cluster,
    marks: new Map(marks.map((m) => [key(m.topic, m.partition), m])),
    group,
    committed: new Map(committed.map((c) => [key(c.topic, c.partition), c])),
    configs,
    groups: listed,
    described,
  };
}

interface Row {
  readonly earliest: bigint | null;
  readonly latest: bigint | null;
  readonly committed: bigint | null;
  /** Records that the group has yet to read; null: not known. */
  readonly lag: bigint | null;
}

function rowOf(seen: Seen, topic: string, partition: number): Row {
  const { earliest = null, latest = null } = seen.marks.get(key(topic, partition)) ?? {};
  const committed = seen.committed.get(key(topic, partition))?.offset ?? null;
  // Without a commit the whole partition is yet to be read.
  const from = committed ?? (seen.group === null ? null : earliest);
  const lag = from === null || latest === null ? null : latest > from ? latest - from : 0n;
  return { earliest, latest, committed, lag };
}

/** Offsets as text: they do not fit a JSON number. */
const text = (n: bigint | null): string | null => (n === null ? null : String(n));

function jsonOf(seen: Seen) {
  const { cluster, group, groups } = seen;
  return {
    cluster: cluster.clusterId,
    brokers: cluster.brokers,
    group,
    ...(seen.described === null ? {} : { members: seen.described }),
    topics: cluster.topics.map((t) => ({
      name: t.name,
      id: t.id,
      internal: t.internal,
      error: t.error,
      settings: Object.fromEntries(seen.configs.get(t.name) ?? []),
      partitions: t.partitions.map((p) => {
        const { earliest, latest, committed, lag } = rowOf(seen, t.name, p.partition);
        return {
          ...p,
          earliest: text(earliest),
          latest: text(latest),
          committed: text(committed),
          lag: text(lag),
        };
      }),
    })),
    ...(groups === null ? {} : { groups }),
  };
}

function textOf(seen: Seen, colour: boolean): string {
  const { cluster, group, groups } = seen;
  const bold = (t: string) => styled(t, "bold", colour);
  const brokers = cluster.brokers.map(
    (b) => `${b.id} ${b.host}:${b.port}${b.rack === null ? "" : ` (${b.rack})`}`,
  );
  const parts = [
    `${bold(`cluster ${printable(cluster.clusterId ?? "without an id")}`)}  brokers ${printable(brokers.join(", "))}\n`,
  ];
  for (const topic of cluster.topics) parts.push(topicText(seen, topic, colour));
  if (group !== null) parts.push(`group ${printable(group)}: ${lagText(seen)}\n${membersText(seen, colour)}`);
  if (groups !== null) parts.push(groupsText(groups, colour));
  return parts.join("\n");
}

function topicText(seen: Seen, topic: TopicDescription, colour: boolean): string {
  const settings = [...(seen.configs.get(topic.name) ?? [])].map(([n, v]) => `${n}=${v ?? "?"}`).join(" ");
  const head = `${styled(`topic ${printable(topic.name)}`, "bold", colour)}  ${styled(printable(settings), "dim", colour)}\n`;
  if (topic.error !== null) return `${head}${styled(topic.error, "red", colour)}\n`;
  const rows = topic.partitions.map((p): (string | Cell)[] => {
    const { earliest, latest, committed, lag } = rowOf(seen, topic.name, p.partition);
    const shrunk = p.isr.length < p.replicas.length;
    return [
      String(p.partition),
      p.leader < 0 ? { text: "none", style: "red" } : String(p.leader),
      p.replicas.join(","),
      shrunk ? { text: p.isr.join(","), style: "yellow" } : p.isr.join(","),
      text(earliest) ?? "?",
      text(latest) ?? "?",
      text(committed) ?? "-",
      text(lag) ?? "-",
    ];
  });
  const right = { align: "right" } as const;
  const columns = [
    { head: "PARTITION", ...right },
    { head: "LEADER", ...right },
    { head: "REPLICAS" },
    { head: "IN SYNC" },
    { head: "EARLIEST", ...right },
    { head: "LATEST", ...right },
    { head: "COMMITTED", ...right },
    { head: "LAG", ...right },
  ];
  return head + renderTable(columns, rows, colour);
}

function lagText(seen: Seen): string {
  const lags = seen.cluster.topics.flatMap((t) =>
    t.partitions.map((p) => rowOf(seen, t.name, p.partition).lag),
  );
  const known = lags.filter((l) => l !== null);
  const behind = known.reduce((sum, l) => sum + l, 0n);
  const unknown = lags.length - known.length;
  const rest = unknown === 0 ? "" : `; ${unknown} partitions not known`;
  return `${formatCount(Number(behind))} records behind${rest}`;
}

/** Who reads what of the group, and where it runs. */
function membersText({ described }: Seen, colour: boolean): string {
  if (described === null) return "no members: the brokers know of no such group\n";
  const { type, state, protocol, members } = described;
  const how = [type, printable(state), ...(protocol === "" ? [] : [printable(protocol)])].join(", ");
  if (members.length === 0) return `no members (${how})\n`;
  const columns = [
    { head: "MEMBER", max: 60 },
    { head: "HOST", max: 40 },
    { head: "CLIENT", max: 30 },
    { head: "PARTITIONS", max: 100 },
  ];
  const rows = members.map((m) => [
    m.instanceId === null ? m.memberId : `${m.instanceId} (${m.memberId})`,
    m.host,
    m.clientId,
    partitionsText(m.partitions),
  ]);
  return `${members.length} members (${how})\n${renderTable(columns, rows, colour)}`;
}

function partitionsText(topics: DescribedMember["partitions"]): string {
  if (topics === null) return "?";
  if (topics.every((t) => t.partitions.length === 0)) return "-";
  return topics.map((t) => `${t.topic}/${[...t.partitions].sort((a, b) => a - b).join(",")}`).join(" ");
}

function groupsText(groups: readonly GroupListing[], colour: boolean): string {
  const columns = [{ head: "GROUP", max: 80 }, { head: "STATE" }, { head: "TYPE" }, { head: "PROTOCOL" }];
  const rows = groups.map((g) => [g.group, g.state, g.type, g.protocol]);
  return renderTable(columns, rows, colour);
}
