/** Chooses the machine of a mechanism with user name and password. */
import type { Chance } from "../time/chance.ts";
import type { Credentials, PasswordMechanism, SaslCrypto, SaslMachine } from "./mechanism.ts";
import { plain } from "./plain.ts";
import { scram } from "./scram.ts";

export function startSasl(
  mechanism: PasswordMechanism,
  credentials: Credentials,
  crypto: SaslCrypto,
  chance: Chance,
): SaslMachine {
  switch (mechanism) {
    case "PLAIN":
      return plain(credentials);
    case "SCRAM-SHA-256":
      return scram("sha256", credentials, crypto, chance);
    case "SCRAM-SHA-512":
      return scram("sha512", credentials, crypto, chance);
  }
}
