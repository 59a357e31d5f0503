/** A refused authentication, in the user's words: which setting to look at. */
import { Failure } from "../../../core/failure/failure.ts";
import type { SaslHandshakeResponse } from "../wire/messages/sasl.ts";

const ILLEGAL_SASL_STATE = 34;

export function mechanismRefused(response: SaslHandshakeResponse, mechanism: string, at: string): Failure {
  if (response.errorCode === ILLEGAL_SASL_STATE) {
    return new Failure("kafka.mechanism_unsupported", `${at}: the listener takes no SASL`, {
      at,
      hint: "Leave [source.sasl] out, or use the port of a SASL listener",
    });
  }
  const offered = response.mechanisms.slice(0, 20).join(", ");
  return new Failure("kafka.mechanism_unsupported", `${at} does not offer ${mechanism}`, {
    at,
    hint: `source.sasl.mechanism: the listener offers ${offered === "" ? "nothing" : offered}`,
  });
}

/** `seen` holds the server's words or the machine's verdict on them. */
export function authRefused(seen: Failure, mechanism: string, at: string): Failure {
  if (seen.code === "sasl.rejected") {
    const text = seen.message.slice(0, 300);
    return new Failure("kafka.auth_failed", `${at} refused the ${mechanism} login: ${text}`, {
      at,
      hint: "Check source.sasl.username, password and mechanism",
    });
  }
  return new Failure(seen.code, `${at}: ${seen.message}`, {
    at,
    ...(seen.hint === null ? {} : { hint: seen.hint }),
  });
}
