/** What it means that a peer hung up, fell silent or sent what cannot be read, by how far the connection had come. */
import { asFailure, Failure } from "../../../core/failure/failure.ts";

export interface HungUp {
  readonly at: string;
  readonly during: "negotiation" | "login" | "requests";
  /** Nothing but the versions was ever answered, nobody logged in, and requests are waiting. */
  readonly mute: boolean;
}

export function hungUp({ at, during, mute }: HungUp): Failure {
  switch (during) {
    case "negotiation":
      return new Failure("kafka.disconnected", `${at} hung up on the first request`, {
        at,
        hint: "The port may want TLS, or belong to another service",
      });
    case "login":
      return new Failure("kafka.disconnected", `${at} hung up during authentication`, { at });
    case "requests": {
      const hint = "The listener may want authentication: set [source.sasl]";
      return new Failure("kafka.disconnected", `${at} closed the connection`, {
        at,
        ...(mute ? { hint } : {}),
      });
    }
  }
}

/** `silentMs`: how long the first answer was waited for; null once there was one. */
export function tooLate(at: string, api: string, silentMs: number | null): Failure {
  if (silentMs === null) return new Failure("kafka.timeout", `${at} did not answer ${api} in time`, { at });
  return new Failure("kafka.timeout", `${at} takes connections, but said nothing for ${silentMs} ms`, {
    at,
    hint: "Is it a Kafka listener? One that wants TLS, a proxy without brokers behind it and a broker that hangs look like this",
  });
}

/** What is thrown while reading: our own verdicts stay, a shortage of bytes becomes the connection's failure. */
export function unreadable(e: unknown, at: string): Failure {
  const f = asFailure(e);
  if (!f.code.startsWith("bytes.")) return f;
  return new Failure("kafka.response_invalid", `${at}: ${f.message}`, { at, cause: f });
}
