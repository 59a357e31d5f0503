/**
 * What to do about a failure: the one place that decides, for broker error codes and for connections.
 */
import type { Code } from "../../core/failure/codes.ts";
import { Failure } from "../../core/failure/failure.ts";
import type { Chance } from "../../core/time/chance.ts";
import { ERROR, type ErrorAction, kafkaError } from "./wire/errors.ts";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

/** Growing pauses with jitter, so that a fleet does not come back in step. */
export class Backoff {
  readonly #chance: Chance;
  #failures = 0;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  /** 100 ms doubling up to 5 s, minus up to half by chance. */
  next(): number {
    const ms = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.#failures++, 16));
    return ms * (1 - 0.5 * this.#chance.next());
  }

  reset(): void {
    this.#failures = 0;
  }
}

const DENIED: ReadonlyMap<number, Code> = new Map([
  [ERROR.TOPIC_AUTHORIZATION_FAILED, "kafka.topic_denied"],
  [ERROR.GROUP_AUTHORIZATION_FAILED, "kafka.group_denied"],
]);

const DENIED_HINT: Partial<Record<Code, string>> = {
  "kafka.topic_denied": "Grant READ and DESCRIBE on the topics of source.topics to the user that logs in",
  "kafka.group_denied": "Grant READ on the group to this user, or leave source.group out",
};

const RETRIED: ReadonlySet<ErrorAction> = new Set([
  "retry",
  "refresh",
  "coordinator",
  "session",
  "rebootstrap",
  "rejoin",
]);

/** A broker's error code as a Failure. `what`: the request and what it was about, such as "Fetch of orders/3". */
export function brokerFailure(code: number, what: string, at: string): Failure {
  const error = kafkaError(code);
  if (error.action === "denied") {
    const denied = DENIED.get(code) ?? "kafka.cluster_denied";
    const hint = DENIED_HINT[denied];
    return new Failure(denied, `${what}: no permission (${error.name})`, {
      at,
      ...(hint === undefined ? {} : { hint }),
    });
  }
  if (error.action === "login") {
    return new Failure("kafka.auth_failed", `${what}: ${error.name}`, { at });
  }
  if (error.action === "version") {
    return new Failure("kafka.unsupported_version", `${what}: ${error.name}`, { at });
  }
  if (error.action === "corrupt") {
    return new Failure("kafka.corrupt_batch", `${what}: the broker holds damaged data (${error.name})`, {
      at,
      retry: false,
    });
  }
  return new Failure("kafka.broker_error", `${what}: ${error.name}`, {
    at,
    retry: RETRIED.has(error.action),
  });
}

/**
 * `starting`: nothing was ever reached, so a cause that will not go away by itself ends the job with a clear message.
 * `running`: it worked before, so whatever stops a connection (a broker rolled with other certificates, users not yet
 * loaded, another service on the port for a while) is an outage: it is reported, and tried again until it heals.
 */
export type Phase = "starting" | "running";

export function isWorthAnotherTry(failure: Failure, phase: Phase): boolean {
  if (failure.code === "internal.cancelled") return false;
  if (failure.retry) return true;
  return phase === "running" && CONNECTION_CODES.some((prefix) => failure.code.startsWith(prefix));
}

const CONNECTION_CODES = [
  "net.",
  "sasl.",
  "oidc.",
  "aws.",
  "kafka.auth_failed",
  "kafka.mechanism_unsupported",
  "kafka.not_kafka",
  "kafka.tls_expected",
  "kafka.response_too_large",
  "kafka.unsupported_version",
] as const;
