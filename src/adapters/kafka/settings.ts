/** The source's options, with their secrets, as the client's settings. */
import type { Resolved } from "../../core/config/secret.ts";
import { ASSIGNORS } from "./assignors/table.ts";
import { saslSettings, tlsSettings } from "./security-settings.ts";
import type { KafkaSourceSettings } from "./source.ts";
import type { KafkaSourceOptions } from "./spec.ts";
import { TopicPattern } from "./topic-pattern.ts";

/** Longest for one dial, and for its first answer; at least two are tried within the connect time-out. */
const DIAL_TIMEOUT_MS = 10_000;

/** `version` is ours, for the brokers' logs. */
export function kafkaSettings(o: Resolved<KafkaSourceOptions>, version: string): KafkaSourceSettings {
  return {
    bootstrap: o.bootstrap,
    topics: o.topics ?? [],
    topicsPattern: o.topics_pattern === undefined ? null : new TopicPattern(o.topics_pattern),
    partitions: new Map(Object.entries(o.partitions ?? {})),
    group: o.group ?? null,
    start: o.start,
    committedOnly: o.isolation === "read_committed",
    connectTimeoutMs: o.connect_timeout_ms,
    topicWaitMs: o.topic_wait_ms,
    maxWaitMs: o.fetch_max_wait_ms,
    maxBytes: o.fetch_max_bytes,
    partitionMaxBytes: o.partition_max_bytes,
    requestTimeoutMs: o.request_timeout_ms,
    maxResponseBytes: o.response_max_bytes,
    rackId: o.rack ?? "",
    metadataRefreshMs: o.metadata_refresh_ms,
    onOutOfRange: o.on_out_of_range,
    onRecreated: o.on_recreated,
    sharing: sharingOf(o),
    clientId: o.client_id,
    version,
    dialTimeoutMs: Math.min(DIAL_TIMEOUT_MS, Math.ceil(o.connect_timeout_ms / 2)),
    tls: tlsSettings(o.tls, "source.tls"),
    sasl: saslSettings(o.sasl),
  };
}

/** As in Kafka's own clients; in a short session so often that two may be lost. */
const HEARTBEAT_MS = 3_000;
const HEARTBEATS_A_SESSION = 3;

function sharingOf(o: Resolved<KafkaSourceOptions>): KafkaSourceSettings["sharing"] {
  if (o.group === undefined || o.group_protocol === "none") return null;
  return {
    protocol: o.group_protocol,
    assignors: o.assignors.map((name) => ASSIGNORS[name]),
    serverAssignor: o.server_assignor ?? null,
    instanceId: o.group_instance_id ?? null,
    rackId: o.rack ?? null,
    sessionTimeoutMs: o.session_timeout_ms,
    heartbeatIntervalMs:
      o.heartbeat_interval_ms ??
      Math.min(HEARTBEAT_MS, Math.floor(o.session_timeout_ms / HEARTBEATS_A_SESSION)),
    rebalanceTimeoutMs: o.rebalance_timeout_ms,
  };
}
