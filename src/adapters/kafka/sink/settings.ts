/** The sink's options, with their secrets, as plain data: they cross to the lanes' threads. */
import type { Resolved } from "../../../core/config/secret.ts";
import type { ClientOptions } from "../client.ts";
import { saslSettings, tlsSettings } from "../security-settings.ts";
import type { KafkaSinkOptions } from "./spec.ts";

export interface KafkaSinkSettings extends ClientOptions {
  /** Longest that the start waits for brokers. */
  readonly connectTimeoutMs: number;
}

/** Longest for one dial; at least two are tried within the connect time-out. */
const DIAL_TIMEOUT_MS = 10_000;

export function kafkaSinkSettings(o: Resolved<KafkaSinkOptions>, version: string): KafkaSinkSettings {
  return {
    bootstrap: o.bootstrap,
    clientId: o.client_id,
    version,
    tls: tlsSettings(o.tls, "sink.tls"),
    sasl: saslSettings(o.sasl),
    dialTimeoutMs: Math.min(DIAL_TIMEOUT_MS, Math.ceil(o.connect_timeout_ms / 2)),
    requestTimeoutMs: o.request_timeout_ms,
    maxResponseBytes: o.response_max_bytes,
    connectTimeoutMs: o.connect_timeout_ms,
  };
}

/** A name with what stands in braces filled in. */
export function filledName(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\{([a-z]+)\}/g, (all, name: string) => values[name] ?? all);
}
