/** PLAIN (RFC 4616): one message, `[authzid] NUL authcid NUL passwd`. The authorisation id stays empty. */
import { Failure } from "../failure/failure.ts";
import type { Credentials, SaslMachine, SaslStep } from "./mechanism.ts";

export function plain(credentials: Credentials): SaslMachine {
  const { username, password } = credentials;
  if (username.includes("\0") || password.includes("\0")) {
    throw new Failure("sasl.credentials_invalid", "PLAIN can't carry a NUL in the user name or the password");
  }
  let sent = false;
  return {
    mechanism: "PLAIN",
    step(_server: Uint8Array | null): SaslStep {
      // Whatever a server adds to its yes is ignored: some managed brokers answer with bytes of their own.
      if (sent) return { kind: "done" };
      sent = true;
      return { kind: "send", message: new TextEncoder().encode(`\0${username}\0${password}`) };
    },
  };
}
