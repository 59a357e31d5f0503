/**
 * A Kafka sink's part of `twg doctor`: brokers, the topics that are written to, the one of the coverage, and the rights
 * to write transactions. Nothing is written and no topic is made; what it leaves is a transactional id of its own, which
 * brokers forget after a week.
 */
import { asFailure, Failure } from "../../../core/failure/failure.ts";
import { type Checkup, type DoctorContext, failedBy, ok, warning } from "../../../core/ports/doctor.ts";
import { topicConfigs } from "../admin.ts";
import { type ClientParts, CONTROL, KafkaClient, placeOf } from "../client.ts";
import { brokerFailure } from "../client-retry.ts";
import { loginText } from "../login/login.ts";
import { Transactions } from "../producer/transactions.ts";
import { ERROR, kafkaError } from "../wire/errors.ts";
import { filledName, type KafkaSinkSettings } from "./settings.ts";
import { checkCoverageTopic, type TopicRules } from "./targets.ts";

export interface KafkaSinkCheckupOptions {
  readonly settings: KafkaSinkSettings;
  readonly rules: TopicRules;
  /** Of the source. */
  readonly topics: readonly string[];
  readonly idPrefix: string;
  readonly transactionTimeoutMs: number;
}

/** No topic has it, so asking for it adds nothing; the right to write is looked at before. */
const NO_PARTITION = 2_147_483_647;
const ASK_MS = 5_000;

export function kafkaSinkCheckup(o: KafkaSinkCheckupOptions, parts: ClientParts): Checkup {
  return {
    name: "kafka_sink",
    at: o.settings.bootstrap.map(placeOf).join(", "),
    async run(context) {
      const client = new KafkaClient(o.settings, parts);
      const close = () => client.close();
      context.signal.addEventListener("abort", close, { once: true });
      try {
        await new SinkExamination(o, parts, client, context).run();
      } finally {
        context.signal.removeEventListener("abort", close);
        close();
      }
    },
  };
}

class SinkExamination {
  readonly #o: KafkaSinkCheckupOptions;
  readonly #parts: ClientParts;
  readonly #client: KafkaClient;
  readonly #c: DoctorContext;

  constructor(o: KafkaSinkCheckupOptions, parts: ClientParts, client: KafkaClient, context: DoctorContext) {
    this.#o = o;
    this.#parts = parts;
    this.#client = client;
    this.#c = context;
  }

  async run(): Promise<void> {
    const { settings, rules, topics, idPrefix } = this.#o;
    const { signal } = this.#c;
    const at = settings.bootstrap.map(placeOf).join(", ");
    const reached = await this.#attempt("kafka_sink.bootstrap", at, async () => {
      await this.#client.refresh([], signal);
      const how = [
        settings.tls === null ? "plain text" : "TLS",
        ...(settings.sasl === null ? [] : [loginText(settings.sasl)]),
      ];
      return `${how.join(", ")}, cluster ${this.#client.metadata.clusterId ?? "without an id"}`;
    });
    if (!reached) return;
    const targets = [...new Set(topics.map((topic) => filledName(rules.topic, { topic })))];
    const there: string[] = [];
    for (const topic of targets) if (await this.#target(topic)) there.push(topic);
    const { coverageTopic } = rules;
    await this.#attempt("kafka_sink.coverage", coverageTopic, async () => {
      const found = await checkCoverageTopic(this.#client, rules, signal);
      if (found) there.push(coverageTopic);
      return found ? "is compacted" : "does not exist yet, the first start makes it";
    });
    await this.#attempt("kafka_sink.transactions", `${idPrefix}.doctor`, () => this.#transactions(there));
  }

  async #attempt(check: string, at: string, work: () => Promise<string>): Promise<boolean> {
    try {
      this.#c.report(ok(check, at, await work()));
      return true;
    } catch (e) {
      this.#c.report(failedBy(check, at, asFailure(e)));
      return false;
    }
  }

  async #target(topic: string): Promise<boolean> {
    const { rules, topics } = this.#o;
    const { signal } = this.#c;
    const check = "kafka_sink.topic";
    let there = false;
    await this.#attempt(check, topic, async () => {
      const { errors } = await this.#client.refresh([topic], signal);
      const code = errors.get(topic);
      if (code !== undefined && kafkaError(code).action === "denied")
        throw brokerFailure(code, `Metadata of topic ${topic}`, topic);
      const found = code === undefined ? this.#client.metadata.topics.get(topic) : undefined;
      if (found === undefined) {
        if (rules.create) return "does not exist yet, the start makes it";
        throw new Failure("kafka.unknown_topic", "does not exist on the cluster", {
          hint: "Create it, or set `create = true`. A user without DESCRIBE on it sees the same",
        });
      }
      // Whether the source's cluster is this one only both together know; names that are the same are worth a look.
      if (topics.includes(topic)) this.#c.report(loopWarning(topic));
      there = true;
      return `${found.partitions.size} partitions`;
    });
    if (there) await this.#durable(topic);
    return there;
  }

  /** One replica, or one that is enough: what was confirmed may be gone with a disk. */
  async #durable(topic: string): Promise<void> {
    const { signal } = this.#c;
    const names = ["min.insync.replicas", "message.timestamp.type", "unclean.leader.election.enable"];
    try {
      const configs = (await topicConfigs(this.#client, [topic], names, signal)).get(topic);
      const least = configs?.get("min.insync.replicas") ?? null;
      if (least === "1") {
        const seen = "min.insync.replicas is 1: a record counts as written when one broker has it";
        this.#c.report(warning("kafka_sink.durability", topic, seen, "Set it to 2 with 3 replicas"));
      }
      if (configs?.get("message.timestamp.type") === "LogAppendTime") {
        const seen = "message.timestamp.type is LogAppendTime: records get another timestamp";
        this.#c.report(warning("kafka_sink.timestamps", topic, seen, "Set it to CreateTime to keep them"));
      }
    } catch (e) {
      this.#c.report({ ...failedBy("kafka_sink.durability", topic, asFailure(e)), verdict: "warning" });
    }
  }

  /** An identity is had, and each topic asked for with a partition that it does not have. */
  async #transactions(topics: readonly string[]): Promise<string> {
    const { signal } = this.#c;
    const id = `${this.#o.idPrefix}.doctor`;
    const { clock, chance } = this.#parts;
    const client = this.#client;
    const calls = { client, clock, chance, timeoutMs: ASK_MS };
    const identity = await new Transactions(id, this.#o.transactionTimeoutMs, calls).init(signal);
    const link = await client.link(await client.coordinator(id, signal, "transaction"), CONTROL, signal);
    for (const name of topics) {
      const body = {
        v3AndBelowTransactionalId: id,
        v3AndBelowProducerId: identity.id,
        v3AndBelowProducerEpoch: identity.epoch,
        v3AndBelowTopics: [{ name, partitions: [NO_PARTITION] }],
      };
      const answer = await client.ask(link, "AddPartitionsToTxn", body, signal);
      const code = answer.resultsByTopicV3AndBelow[0]?.resultsByPartition[0]?.partitionErrorCode;
      if (code !== undefined && code !== ERROR.NONE && kafkaError(code).action === "denied")
        throw brokerFailure(code, `writing to ${name}`, link.at);
    }
    return topics.length === 0 ? "may be used" : `may be used, and ${topics.join(" and ")} written`;
  }
}

function loopWarning(topic: string) {
  return warning(
    "kafka_sink.loop",
    topic,
    "is the name of a topic that is read too",
    "Of one and the same cluster the start refuses that",
  );
}
