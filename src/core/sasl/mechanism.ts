/**
 * A SASL mechanism as a machine over messages (RFC 4422): the transport carries them, the machine knows nothing
 * of it. `step(null)` gives the client's first message, each further `step` takes the server's answer.
 */
export type SaslStep =
  | { readonly kind: "send"; readonly message: Uint8Array }
  /** The exchange is over and, where the mechanism can, the server has proven itself. */
  | { readonly kind: "done" };

export interface SaslMachine {
  readonly mechanism: string;
  /** Throws a Failure (sasl.*), after which the machine is of no use. */
  step(server: Uint8Array | null): SaslStep;
  /** What the server gave as its reason before it refused, where the mechanism has such words. */
  readonly told?: string | null;
}

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

export type SaslHash = "sha256" | "sha512";

/** The hash functions come in through this port; the core does not choose a crypto library. */
export interface SaslCrypto {
  hash(name: SaslHash, input: Uint8Array): Uint8Array;
  hmac(name: SaslHash, key: Uint8Array, input: Uint8Array): Uint8Array;
  pbkdf2(
    name: SaslHash,
    password: Uint8Array,
    salt: Uint8Array,
    iterations: number,
    bytes: number,
  ): Uint8Array;
}

/** Those that take a user name and a password. */
export const PASSWORD_MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] as const;
export type PasswordMechanism = (typeof PASSWORD_MECHANISMS)[number];

export const SASL_MECHANISMS = [...PASSWORD_MECHANISMS, "OAUTHBEARER", "AWS_MSK_IAM"] as const;
export type SaslMechanism = (typeof SASL_MECHANISMS)[number];

export function takesPassword(mechanism: SaslMechanism): mechanism is PasswordMechanism {
  return (PASSWORD_MECHANISMS as readonly SaslMechanism[]).includes(mechanism);
}
