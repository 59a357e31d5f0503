/**
 * How to answer the server's demand for a login. The strongest way that both sides know is taken:
 * SCRAM-SHA-256-PLUS (bound to the TLS connection), SCRAM-SHA-256, MD5; a password in clear text only under TLS.
 */
import { Failure } from "../../../core/failure/failure.ts";
import type { SaslCrypto, SaslMachine } from "../../../core/sasl/mechanism.ts";
import { type ChannelBinding, scram } from "../../../core/sasl/scram.ts";
import type { Chance } from "../../../core/time/chance.ts";
import type { Authentication } from "../wire/backend.ts";
import * as frontend from "../wire/frontend.ts";
import { preparedPassword } from "./prepared-password.ts";

export interface LoginOptions {
  readonly at: string;
  readonly user: string;
  readonly password: string | null;
  /** Whether the peer's certificate was checked: a password in clear text goes to nobody else. */
  readonly trusted: boolean;
  /** Bytes that bind the login to the TLS connection; null where there are none. */
  readonly endPoint: Uint8Array | null;
  /** MD5 in lower-case hex. */
  readonly md5: (input: Uint8Array) => string;
  readonly channelBinding: "prefer" | "require" | "disable";
  readonly crypto: SaslCrypto;
  readonly chance: Chance;
}

/** The login of one connection; fed with each demand, gives the next message or null where none is due. */
export class Login {
  readonly #o: LoginOptions;
  #machine: SaslMachine | null = null;
  #bound = false;
  /** The server has proven that it knows the password (SCRAM), so it is no impostor. */
  #proven = false;

  constructor(options: LoginOptions) {
    this.#o = options;
  }

  answer(auth: Authentication): Uint8Array | null {
    switch (auth.kind) {
      case "ok":
        return this.#finish();
      case "cleartext":
        return this.#cleartext();
      case "md5":
        return this.#md5(auth.salt);
      case "sasl":
        return this.#sasl(auth.mechanisms);
      case "sasl_continue":
        return frontend.saslResponse(this.#step(auth.data));
      case "sasl_final":
        this.#step(auth.data);
        this.#proven = true;
        return null;
      case "other":
        throw this.#unsupported(`a login of kind ${auth.code} (GSSAPI, SSPI, Kerberos ...)`);
    }
  }

  #finish(): null {
    if (this.#machine !== null && !this.#proven) {
      throw new Failure("sasl.server_unproven", "the server ended the login without proving itself", {
        at: this.#o.at,
      });
    }
    if (this.#o.channelBinding === "require" && !this.#bound) {
      throw this.#unsupported('a login without channel binding, and channel_binding = "require"');
    }
    return null;
  }

  #cleartext(): Uint8Array {
    if (!this.#o.trusted) {
      throw this.#unsupported(
        "the password in clear text over a connection that does not prove who the server is",
        'Use sslmode = "verify-full", or scram-sha-256 in pg_hba.conf',
      );
    }
    return frontend.password(this.#password());
  }

  #md5(salt: Uint8Array): Uint8Array {
    const { user, md5 } = this.#o;
    const utf8 = (text: string) => new TextEncoder().encode(text);
    const inner = md5(utf8(this.#password() + user));
    return frontend.password(`md5${md5(new Uint8Array([...utf8(inner), ...salt]))}`);
  }

  #sasl(mechanisms: readonly string[]): Uint8Array {
    const binding = this.#binding(mechanisms);
    // PostgreSQL takes the user from the start-up message and ignores the one in here.
    const credentials = { username: "", password: preparedPassword(this.#password()) };
    const machine = scram("sha256", credentials, this.#o.crypto, this.#o.chance, binding);
    if (!mechanisms.includes(machine.mechanism)) {
      throw this.#unsupported(`one of ${mechanisms.join(", ")}`);
    }
    this.#machine = machine;
    this.#bound = binding.header.startsWith("p=");
    const first = machine.step(null);
    return frontend.saslInitial(machine.mechanism, first.kind === "send" ? first.message : new Uint8Array(0));
  }

  #binding(mechanisms: readonly string[]): ChannelBinding {
    const { endPoint: data, channelBinding } = this.#o;
    const none = { header: "n,,", data: new Uint8Array(0) };
    if (data === null || channelBinding === "disable") return none;
    if (mechanisms.includes("SCRAM-SHA-256-PLUS")) return { header: "p=tls-server-end-point,,", data };
    // Said to the server, which refuses if it did offer it: then somebody in the middle took the offer out.
    return { header: "y,,", data: new Uint8Array(0) };
  }

  #step(data: Uint8Array): Uint8Array {
    if (this.#machine === null) {
      throw new Failure("postgres.response_invalid", "a SASL message before the login began", {
        at: this.#o.at,
      });
    }
    const step = this.#machine.step(data);
    return step.kind === "send" ? step.message : new Uint8Array(0);
  }

  #password(): string {
    if (this.#o.password !== null) return this.#o.password;
    throw new Failure("postgres.auth_failed", "the server asks for a password and the url has none", {
      at: this.#o.at,
      hint: "Put it into the url; special characters as %XX",
    });
  }

  #unsupported(what: string, hint = "Allow scram-sha-256 for this user in pg_hba.conf"): Failure {
    return new Failure("postgres.auth_unsupported", `the server asks for ${what}`, { at: this.#o.at, hint });
  }
}
