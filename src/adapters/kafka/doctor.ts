/**
 * The Kafka part of `twg doctor`: each bootstrap address and each broker is logged in to, each topic described, listed
 * and read from, and the group asked whether we might commit. Nothing is committed and nobody joins the group.
 */
import { asFailure, Failure } from "../../core/failure/failure.ts";
import { type Checkup, type DoctorContext, failedBy, ok, warning } from "../../core/ports/doctor.ts";
import { type ClientParts, CONTROL, KafkaClient, placeOf } from "./client.ts";
import { brokerFailure } from "./client-retry.ts";
import { loginText } from "./login/login.ts";
import type { BrokerAddress } from "./session/metadata-state.ts";
import type { KafkaSourceSettings } from "./source.ts";
import { gatherFacts, knownPartitions } from "./source-discovery.ts";
import { SourceTopics, wantedTopics } from "./source-topics.ts";
import { ERROR, kafkaError } from "./wire/errors.ts";

/** Highest versions that name topics instead of ids, which every broker takes. */
const FETCH_BY_NAME = 12;
const COMMIT_BY_NAME = 9;
/** No topic has it, so a commit for it can have no effect; the right to commit is looked at before. */
const NO_PARTITION = 2_147_483_647;

export function kafkaCheckup(settings: KafkaSourceSettings, parts: ClientParts): Checkup {
  return {
    name: "kafka",
    at: settings.bootstrap.map(placeOf).join(", "),
    run: (context) => new Examination(settings, parts, context).run(),
  };
}

class Examination {
  readonly #s: KafkaSourceSettings;
  readonly #parts: ClientParts;
  readonly #c: DoctorContext;

  constructor(settings: KafkaSourceSettings, parts: ClientParts, context: DoctorContext) {
    this.#s = settings;
    this.#parts = parts;
    this.#c = context;
  }

  async run(): Promise<void> {
    const clients: KafkaClient[] = [];
    const close = () => {
      for (const c of clients) c.close();
    };
    this.#c.signal.addEventListener("abort", close, { once: true });
    try {
      const client = await this.#firstContact(clients);
      if (client === null) return;
      await this.#brokers(client);
      const topics = await this.#topics(client);
      await this.#positions(client, topics);
      for (const topic of topics) await this.#reading(client, topic);
      if (this.#s.group !== null) await this.#commits(client, this.#s.group, topics[0] ?? this.#s.topics[0]);
    } finally {
      this.#c.signal.removeEventListener("abort", close);
      close();
    }
  }

  /** Every address by itself, at once; the client of the first one that answered. */
  async #firstContact(clients: KafkaClient[]): Promise<KafkaClient | null> {
    const one = async (address: BrokerAddress) => {
      const client = new KafkaClient({ ...this.#s, bootstrap: [address] }, this.#parts);
      clients.push(client);
      try {
        await client.refresh(wantedTopics(this.#s), this.#c.signal);
        return { client, address, failure: null };
      } catch (e) {
        return { client, address, failure: asFailure(e) };
      }
    };
    const tried = await Promise.all(this.#s.bootstrap.map(one));
    const good = tried.find((t) => t.failure === null)?.client ?? null;
    for (const { client, address, failure } of tried) {
      const at = placeOf(address);
      if (failure === null)
        this.#c.report(
          ok(
            "kafka.bootstrap",
            at,
            `${this.#how()}, cluster ${client.metadata.clusterId ?? "without an id"}`,
          ),
        );
      else {
        const finding = failedBy("kafka.bootstrap", at, failure);
        // One that answers is enough to start; the next start may ask another.
        this.#c.report(good === null ? finding : { ...finding, verdict: "warning" });
      }
    }
    return good;
  }

  #how(): string {
    const { tls, sasl } = this.#s;
    return [tls === null ? "plain text" : "TLS", ...(sasl === null ? [] : [loginText(sasl)])].join(", ");
  }

  /** What a broker advertises may be another address than the one that was dialled: the usual trap of containers. */
  async #brokers(client: KafkaClient): Promise<void> {
    const one = async ([id, address]: [number, BrokerAddress]) => {
      const at = `broker ${id} ${placeOf(address)}`;
      try {
        const link = await client.link(id, CONTROL, this.#c.signal);
        const versions = (["Fetch", "Metadata"] as const).map((api) => `${api} v${link.version(api)}`);
        this.#c.report(ok("kafka.broker", at, versions.join(", ")));
      } catch (e) {
        const finding = failedBy("kafka.broker", at, asFailure(e));
        const advice =
          finding.advice ??
          "Brokers name this address themselves: advertised.listeners must be reachable from here";
        this.#c.report({ ...finding, advice });
      }
    };
    await Promise.all([...client.metadata.brokers].map(one));
  }

  /** Names of those that are there. */
  async #topics(client: KafkaClient): Promise<string[]> {
    const { errors, topics } = await client.refresh(wantedTopics(this.#s), this.#c.signal);
    const there: string[] = [];
    const { topicsPattern } = this.#s;
    if (topicsPattern !== null && topics.size === 0) {
      const advice = "The whole name must match, and the user needs DESCRIBE on topics to see them";
      this.#c.report(
        warning("kafka.topic", topicsPattern.text, "no topic matches: a start waits for one", advice),
      );
    }
    for (const topic of topicsPattern === null ? this.#s.topics : [...topics].sort()) {
      const code = errors.get(topic);
      const known = client.metadata.topics.get(topic);
      if (known !== undefined && code === undefined) {
        const leaderless = [...known.partitions.values()].filter((p) => p.leader < 0).length;
        const seen = `${known.partitions.size} partitions`;
        const advice = "Look at the brokers: these partitions are read as soon as one leads them";
        this.#c.report(
          leaderless === 0
            ? ok("kafka.topic", topic, seen)
            : warning("kafka.topic", topic, `${seen}, ${leaderless} without a leader`, advice),
        );
        there.push(topic);
      } else this.#c.report(failedBy("kafka.topic", topic, unknownTopic(topic, code)));
    }
    return there;
  }

  /** Start and end of the logs, and commits, as a start would ask for them. */
  async #positions(client: KafkaClient, topics: readonly string[]): Promise<void> {
    const { signal, clock } = this.#c;
    const { group } = this.#s;
    const named = new SourceTopics({ topics, topicsPattern: null });
    const parts = {
      ...this.#parts,
      client,
      topics: named,
      phase: () => "starting" as const,
      troubled: () => {},
    };
    const at = group === null ? topics.join(", ") : `group ${group}`;
    try {
      const facts = await gatherFacts(
        this.#s,
        parts,
        knownPartitions(this.#s, parts),
        clock.monotonic() + this.#s.requestTimeoutMs,
        signal,
      );
      const records = facts.reduce((n, { found: f }) => n + (f.latest - (f.committed ?? f.earliest)), 0n);
      const committed = facts.filter((f) => f.found.committed !== null).length;
      const commits = group === null ? "" : `, ${committed} with a commit`;
      this.#c.report(
        ok("kafka.positions", at, `${facts.length} partitions${commits}, ${records} positions to read`),
      );
    } catch (e) {
      this.#c.report(failedBy("kafka.positions", at, asFailure(e)));
    }
  }

  /** One request for a byte: the right to describe a topic is not the right to read it. */
  async #reading(client: KafkaClient, topic: string): Promise<void> {
    const [partition, { leader }] = [...(client.metadata.topics.get(topic)?.partitions ?? [])].find(
      ([, p]) => p.leader >= 0,
    ) ?? [-1, { leader: -1 }];
    if (partition < 0) return;
    try {
      const link = await client.link(leader, CONTROL, this.#c.signal);
      const body = {
        replicaId: -1,
        maxWaitMs: 0,
        minBytes: 0,
        maxBytes: 1,
        isolationLevel: this.#s.committedOnly ? 1 : 0,
        sessionId: 0,
        sessionEpoch: -1,
        topics: [{ topic, partitions: [{ partition, fetchOffset: 0n, partitionMaxBytes: 1 }] }],
        forgottenTopicsData: [],
        rackId: "",
      };
      const response = await client.ask(link, "Fetch", body, this.#c.signal, FETCH_BY_NAME);
      const answer = response.responses[0]?.partitions[0];
      const code = response.errorCode === ERROR.NONE ? (answer?.errorCode ?? ERROR.NONE) : response.errorCode;
      // Offset 0 may be long gone; whoever may not read is told that instead.
      if (code !== ERROR.NONE && code !== ERROR.OFFSET_OUT_OF_RANGE)
        throw brokerFailure(code, `Fetch of ${topic}/${partition}`, link.at);
      this.#c.report(ok("kafka.read", topic, "may be read"));
    } catch (e) {
      this.#c.report(failedBy("kafka.read", topic, asFailure(e)));
    }
  }

  /** `topic`: any that is there. */
  async #commits(client: KafkaClient, group: string, topic: string | undefined): Promise<void> {
    const at = `group ${group}`;
    try {
      const { signal } = this.#c;
      const link = await client.link(await client.coordinator(group, signal), CONTROL, signal);
      const partition = {
        partitionIndex: NO_PARTITION,
        committedOffset: 0n,
        committedLeaderEpoch: -1,
        committedMetadata: "",
      };
      const body = {
        groupId: group,
        generationIdOrMemberEpoch: -1,
        memberId: "",
        groupInstanceId: null,
        topics: [{ name: topic ?? "", partitions: [partition] }],
      };
      const response = await client.ask(link, "OffsetCommit", body, signal, COMMIT_BY_NAME);
      const code = response.topics[0]?.partitions[0]?.errorCode ?? ERROR.NONE;
      if (kafkaError(code).action === "denied") throw brokerFailure(code, `OffsetCommit of ${at}`, link.at);
      this.#c.report(ok("kafka.commit", at, "may commit"));
    } catch (e) {
      this.#c.report(failedBy("kafka.commit", at, asFailure(e)));
    }
  }
}

function unknownTopic(topic: string, code: number | undefined): Failure {
  if (code !== undefined && kafkaError(code).action === "denied")
    return brokerFailure(code, `Metadata of topic ${topic}`, topic);
  return new Failure("kafka.unknown_topic", "does not exist on the cluster", {
    at: topic,
    hint: "Check its spelling, or create it. A user without DESCRIBE on it sees the same",
  });
}
