/** `[source] type = "kafka"`: every option of the Kafka source, declared once. */
import * as z from "zod";
import { byteSize, durationMs, formatBytes, hostPort, MIB } from "../../core/config/option-types.ts";
import { ASSIGNOR_NAMES } from "./assignors/table.ts";
import { clientId } from "./client-id.ts";
import { kafkaSasl, kafkaTls } from "./security-spec.ts";
import { PatternError, TopicPattern } from "./topic-pattern.ts";

/** Kafka's own rule for topic names; `.` and `..` are not allowed either. */
const TOPIC = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}$/;
const topicName = () =>
  z.string().regex(TOPIC).meta({ allowed: "a topic name: 1 to 249 of A-Z, a-z, 0-9, '.', '_' and '-'" });

const PATTERN_ALLOWED =
  "characters, ., classes such as [a-z0-9] and \\d, groups ( ), |, ?, *, + and {2,5}; no references and no looking around, so that matching takes linear time";
const PARTITIONS_ALLOWED = "a list of partition numbers for each topic, each number once";

const start = z
  .union([
    z.enum(["earliest", "latest"]),
    z.strictObject({
      timestamp: z.union([z.int().min(0), z.iso.datetime({ offset: true })]),
    }),
  ])
  .transform((v): "earliest" | "latest" | { readonly timestamp: number } => {
    if (typeof v === "string") return v;
    const { timestamp } = v;
    return { timestamp: typeof timestamp === "number" ? timestamp : Date.parse(timestamp) };
  })
  .meta({
    allowed: `"earliest", "latest", or { timestamp = "2026-01-31T00:00:00Z" } (or milliseconds since 1970)`,
  });

interface GroupOptions {
  readonly group?: string | undefined;
  readonly group_protocol: "none" | "classic" | "consumer";
  readonly partitions?: unknown;
  readonly assignors: readonly string[];
  readonly session_timeout_ms: number;
  readonly heartbeat_interval_ms?: number | undefined;
}

function groupIssues(o: GroupOptions) {
  const issue = (path: string, message: string, allowed: string) => ({
    path: [path],
    message,
    params: { code: "config.conflict", allowed },
  });
  if (o.group_protocol === "none") return [];
  const issues = [];
  if (o.group === undefined)
    issues.push(issue("group_protocol", "there is no group", '`group`, or group_protocol = "none"'));
  if (o.partitions !== undefined)
    issues.push(
      issue("partitions", "the group decides who reads what", 'group_protocol = "none" with `partitions`'),
    );
  if (new Set(o.assignors).size < o.assignors.length)
    issues.push(issue("assignors", "one is named twice", "each assignor once"));
  if ((o.heartbeat_interval_ms ?? 0) * 2 > o.session_timeout_ms)
    issues.push(
      issue(
        "heartbeat_interval_ms",
        "the session ends between two heartbeats",
        "at most half of session_timeout_ms",
      ),
    );
  return issues;
}

interface TopicsOptions {
  readonly topics?: readonly string[] | undefined;
  readonly topics_pattern?: string | undefined;
}

function topicIssues({ topics, topics_pattern }: TopicsOptions) {
  const issue = (key: keyof TopicsOptions, code: string, message: string, allowed: string) => ({
    path: [key],
    message,
    params: { code, allowed },
  });
  const both = "one of `topics` and `topics_pattern`";
  if (topics !== undefined && topics_pattern !== undefined)
    return [issue("topics_pattern", "config.conflict", "topics are named as well", both)];
  if (topics === undefined && topics_pattern === undefined)
    return [issue("topics", "config.missing", "nothing says what to read", both)];
  if (topics !== undefined && new Set(topics).size < topics.length)
    return [issue("topics", "config.conflict", "a topic is named twice", "each topic once")];
  if (topics_pattern === undefined) return [];
  try {
    new TopicPattern(topics_pattern);
    return [];
  } catch (e) {
    if (!(e instanceof PatternError)) throw e;
    const message = `at character ${e.at + 1} of ${topics_pattern}: ${e.message}`;
    return [issue("topics_pattern", "config.range", message, PATTERN_ALLOWED)];
  }
}

export const kafkaSourceSpec = z
  .strictObject({
    bootstrap: z
      .array(hostPort())
      .min(1)
      .describe("Addresses of some brokers; the others are learned from whichever answers first.")
      .meta({ allowed: `a list of "host:port"`, examples: [["kafka:9092"]] }),
    topics: z
      .array(topicName())
      .min(1)
      .optional()
      .describe(
        "Topics to read, all their partitions unless `partitions` names some. This or `topics_pattern`.",
      )
      .meta({ first: true, examples: [["orders"]] }),
    topics_pattern: z
      .string()
      .min(1)
      .optional()
      .describe(
        "In place of `topics`: a regular expression that the whole name of a topic must match. Topics that come later are read from their first record, whatever `start` says; internal ones (`__...`) never.",
      )
      .meta({
        instead: true,
        allowed: PATTERN_ALLOWED,
        examples: ["orders\\..*"],
      }),
    partitions: z
      .record(topicName(), z.array(z.int().min(0).max(1_000_000)).min(1))
      .optional()
      .describe("For topics of `topics`, the partitions to read. Topics that it leaves out are read whole.")
      .meta({
        allowed: PARTITIONS_ALLOWED,
        examples: [{ orders: [0, 1] }],
        why: "Without it: all partitions, also those that are added later.",
      }),
    group: z
      .string()
      .min(1)
      .max(255)
      .optional()
      .describe(
        "Consumer group to which positions are committed once records are durable, so that Kafka's own tools show the lag.",
      )
      .meta({
        examples: ["twg-orders"],
        why: "Without it nothing is committed: coverage alone knows where to go on.",
      }),
    group_protocol: z
      .enum(["none", "classic", "consumer"])
      .default("none")
      .describe(
        'How the partitions are shared with other processes of the group. "none": not at all, this process reads all of them and a second one is refused. "classic": by rebalances among the members. "consumer": by the brokers (KIP-848), or classic where they lack it.',
      )
      .meta({
        examples: ["consumer"],
        why: "One process is enough for most pipelines, has no rebalances, and starts at once.",
      }),
    assignors: z
      .array(z.enum(ASSIGNOR_NAMES))
      .min(1)
      .default(["cooperative-sticky"])
      .describe(
        "Classic groups: how the leader shares the partitions, the most wanted first; all members need one in common.",
      )
      .meta({
        examples: [["cooperative-sticky"]],
        why: "Partitions that stay are read on during a rebalance. A list with others is for groups that are being moved.",
      }),
    server_assignor: z
      .string()
      .min(1)
      .max(255)
      .optional()
      .describe("KIP-848 groups: name of the brokers' assignor.")
      .meta({ examples: ["uniform"], why: "Without it: the brokers' own first choice." }),
    group_instance_id: z
      .string()
      .regex(TOPIC)
      .optional()
      .describe(
        "Name of this process in the group, different for each. With it a restart within the session moves no partition.",
      )
      .meta({ allowed: "1 to 249 of A-Z, a-z, 0-9, '.', '_' and '-'", examples: ["twg-0"] }),
    rack: z
      .string()
      .min(1)
      .max(255)
      .optional()
      .describe(
        "Rack, or availability zone, of this process: brokers that may then serve it from a replica in the same rack, and assign by it.",
      )
      .meta({ examples: ["eu-1a"] }),
    session_timeout_ms: durationMs({ min: 1000, max: 1_800_000 })
      .default(45_000)
      .describe("Classic groups: longest silence after which the brokers give our partitions to others.")
      .meta({
        unit: "ms",
        examples: ["45s"],
        why: "Kafka's own default. KIP-848 groups have it at the brokers.",
      }),
    heartbeat_interval_ms: durationMs({ min: 100, max: 600_000 })
      .optional()
      .describe("Classic groups: pause between heartbeats.")
      .meta({
        unit: "ms",
        examples: ["3s"],
        why: "Without it: 3 s, or a third of a session that is shorter than 9 s.",
      }),
    rebalance_timeout_ms: durationMs({ min: 1000, max: 3_600_000 })
      .default(120_000)
      .describe(
        "Longest that a rebalance waits for us to land and commit what was read of partitions that we give up; beyond it they are abandoned and read again by others.",
      )
      .meta({
        unit: "ms",
        examples: ["2m"],
        why: "Covers closing and uploading large files; a dead member holds a rebalance up no longer.",
      }),
    start: start
      .default("earliest")
      .describe("Where to begin a partition for which there is neither a commit of the group nor coverage.")
      .meta({ examples: ["earliest"], why: "Nothing is left out unless somebody says so." }),
    isolation: z
      .enum(["read_committed", "read_uncommitted"])
      .default("read_committed")
      .describe("Whether records of transactions that are open or were aborted are read.")
      .meta({ why: "What a producer took back must not land." }),
    tls: kafkaTls.optional().describe("TLS. Absent: plain text."),
    sasl: kafkaSasl.optional().describe("Login. Absent: none."),
    fetch_max_bytes: byteSize({ min: 1024, max: 1024 * MIB })
      .default(8 * MIB)
      .describe("Most bytes of one fetch; a single larger batch still passes.")
      .meta({
        unit: "bytes",
        examples: ["8MiB"],
        why: "Large enough to keep a connection busy, small beside the budget.",
      }),
    partition_max_bytes: byteSize({ min: 1024, max: 1024 * MIB })
      .default(MIB)
      .describe("Most bytes of one partition in a fetch; grows by itself for a larger batch.")
      .meta({
        unit: "bytes",
        examples: ["1MiB"],
        why: "Kafka's own default: lets all partitions have their share.",
      }),
    fetch_max_wait_ms: durationMs({ min: 0, max: 60_000 })
      .default(500)
      .describe("Longest that a broker holds a fetch back while there is nothing to read.")
      .meta({ unit: "ms", examples: ["500ms"], why: "Kafka's own default." }),
    connect_timeout_ms: durationMs({ min: 100, max: 3_600_000 })
      .default(30_000)
      .describe(
        "At the start: longest that no broker at all is reached before the job fails. Later outages are waited out.",
      )
      .meta({
        unit: "ms",
        examples: ["30s"],
        why: "Survives a broker's restart, yet a wrong address shows soon.",
      }),
    topic_wait_ms: durationMs({ min: 0, max: 3_600_000 })
      .default(10_000)
      .describe("At the start: longest wait for a topic that the brokers do not know.")
      .meta({ unit: "ms", examples: ["10s"], why: "A new topic takes moments to spread over a cluster." }),
    request_timeout_ms: durationMs({ min: 1000, max: 600_000 })
      .default(30_000)
      .describe("Longest that an answer may take, apart from the wait that a fetch asks for.")
      .meta({ unit: "ms", examples: ["30s"], why: "Kafka's own default." }),
    metadata_refresh_ms: durationMs({ min: 1000, max: 86_400_000 })
      .default(300_000)
      .describe("How often to look for new partitions when nothing else asks for metadata.")
      .meta({ unit: "ms", examples: ["5m"], why: "Kafka's own default." }),
    on_out_of_range: z
      .enum(["fail", "earliest", "latest"])
      .default("fail")
      .describe(
        "When retention has removed records that were not read: stop, or record them as lost and go on at the start or the end of the log.",
      )
      .meta({ why: "Loss is somebody's decision." }),
    on_recreated: z
      .enum(["fail", "new_incarnation"])
      .default("fail")
      .describe(
        "When a topic was deleted and made anew under its name: stop, or read the new one as another stream.",
      )
      .meta({ why: "Usually a mistake, and positions of one mean nothing in the other." }),
    client_id: clientId,
    response_max_bytes: byteSize({ min: MIB, max: 2047 * MIB })
      .default(128 * MIB)
      .describe("A response larger than this is refused before memory is taken for it.")
      .meta({
        unit: "bytes",
        examples: ["128MiB"],
        why: "Above any batch that a broker with common settings holds; a broken peer can't take the memory.",
      }),
  })
  .superRefine((o, ctx) => {
    for (const [topic, partitions] of Object.entries(o.partitions ?? {})) {
      const repeated = new Set(partitions).size < partitions.length;
      if (o.topics?.includes(topic) === true && !repeated) continue;
      ctx.addIssue({
        code: "custom",
        path: ["partitions", topic],
        message: repeated ? "a partition is named twice" : "the topic is not in `topics`",
        params: { code: "config.conflict", allowed: PARTITIONS_ALLOWED },
      });
    }
    for (const key of ["fetch_max_bytes", "partition_max_bytes"] as const) {
      if (o[key] <= o.response_max_bytes) continue;
      ctx.addIssue({
        code: "custom",
        path: [key],
        message: "more is asked for than is accepted",
        params: {
          code: "config.conflict",
          allowed: `at most response_max_bytes (${formatBytes(o.response_max_bytes)})`,
        },
      });
    }
    for (const issue of groupIssues(o)) ctx.addIssue({ code: "custom", ...issue });
    for (const issue of topicIssues(o)) ctx.addIssue({ code: "custom", ...issue });
  });

export type KafkaSourceOptions = z.output<typeof kafkaSourceSpec>;
