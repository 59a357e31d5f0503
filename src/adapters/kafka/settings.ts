/** The source's options, with their secrets, as the client's settings. */
import type { Resolved } from "../../core/config/secret.ts";
import type { KafkaSourceSettings } from "./source.ts";
import type { KafkaSourceOptions } from "./spec.ts";

/** Longest for one dial, and for its first answer; at least two are tried within the connect time-out. */
const DIAL_TIMEOUT_MS = 10_000;

/** `version` is ours, for the brokers' logs. */
export function kafkaSettings(o: Resolved<KafkaSourceOptions>, version: string): KafkaSourceSettings {
  return {
    bootstrap: o.bootstrap,
    topics: o.topics,
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
    metadataRefreshMs: o.metadata_refresh_ms,
    onOutOfRange: o.on_out_of_range,
    onRecreated: o.on_recreated,
    clientId: o.client_id,
    version,
    dialTimeoutMs: Math.min(DIAL_TIMEOUT_MS, Math.ceil(o.connect_timeout_ms / 2)),
    tls: tlsOf(o.tls),
    sasl: saslOf(o.sasl),
  };
}

function tlsOf(tls: Resolved<KafkaSourceOptions>["tls"]): KafkaSourceSettings["tls"] {
  if (tls === undefined || !tls.enabled) return null;
  return {
    section: "source.tls",
    ...(tls.ca === undefined ? {} : { ca: tls.ca.reveal() }),
    ...(tls.cert === undefined ? {} : { cert: tls.cert.reveal() }),
    ...(tls.key === undefined ? {} : { key: tls.key.reveal() }),
    ...(tls.server_name === undefined ? {} : { serverName: tls.server_name }),
  };
}

function saslOf(sasl: Resolved<KafkaSourceOptions>["sasl"]): KafkaSourceSettings["sasl"] {
  if (sasl === undefined) return null;
  return { mechanism: sasl.mechanism, username: sasl.username.reveal(), password: sasl.password.reveal() };
}
