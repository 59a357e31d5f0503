/** A refused authentication, in the user's words: which setting to look at. */
import { Failure } from "../../../core/failure/failure.ts";
import type { SaslMachine } from "../../../core/sasl/mechanism.ts";
import type { SaslAuthenticateResponse, SaslHandshakeResponse } from "../wire/messages/sasl.ts";

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

/** The broker's own words, behind those that the mechanism carried. */
export function refusalOf(response: SaslAuthenticateResponse, machine: SaslMachine): Failure {
  const words = response.errorMessage ?? `error ${response.errorCode}`;
  const told = machine.told ?? null;
  return new Failure("sasl.rejected", told === null || words.includes(told) ? words : `${told}: ${words}`);
}

const HINT: Readonly<Record<string, string>> = {
  OAUTHBEARER: "Check the token: its issuer, audience, key and end, and the listener's own settings for them",
  AWS_MSK_IAM:
    "The credentials' identity needs kafka-cluster:Connect on this cluster; check region and this machine's clock",
};

/** `seen` holds the server's words or the machine's verdict on them. */
export function authRefused(seen: Failure, mechanism: string, at: string): Failure {
  if (seen.code === "sasl.rejected") {
    const text = seen.message.slice(0, 300);
    return new Failure("kafka.auth_failed", `${at} refused the ${mechanism} login: ${text}`, {
      at,
      hint: HINT[mechanism] ?? "Check source.sasl.username, password and mechanism",
    });
  }
  return new Failure(seen.code, `${at}: ${seen.message}`, {
    at,
    ...(seen.hint === null ? {} : { hint: seen.hint }),
  });
}
