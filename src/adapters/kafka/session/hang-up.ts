/** What it means that a peer hung up, by how far the connection had come. */
import { Failure } from "../../../core/failure/failure.ts";

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
