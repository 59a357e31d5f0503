/**
 * OAUTHBEARER (RFC 7628), client side:
 *
 *   C: n,,^Aauth=Bearer <token>^A[<extension>=<value>^A...]^A
 *   S: nothing                        or   {"status":"invalid_token",...}
 *   C:                                     ^A       ("I have read it"), upon which the server refuses in its own way
 */
import { Failure } from "../failure/failure.ts";
import type { SaslMachine, SaslStep } from "./mechanism.ts";

export interface BearerToken {
  readonly token: string;
  /** SASL extensions (KIP-342), such as `logicalCluster`. */
  readonly extensions: Readonly<Record<string, string>>;
}

/** RFC 6750 section 2.1: b64token. */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;
/** RFC 7628 section 3.1; `auth` is the token's own key. */
export const EXTENSION_KEY = /^(?!auth$)[A-Za-z]+$/;
export const EXTENSION_VALUE = /^[\x21-\x7e \t\r\n]+$/;
/** Far above any token in use, and below what a broker takes as a first message. */
const MAX_TOKEN_CHARACTERS = 256 * 1024;
const MAX_TOLD_BYTES = 1024;

/** Throws sasl.credentials_invalid: what comes from files and servers is checked before it goes on a wire. */
export function checkToken(token: string, from: string): void {
  if (TOKEN.test(token) && token.length <= MAX_TOKEN_CHARACTERS) return;
  const what =
    token.length > MAX_TOKEN_CHARACTERS
      ? `has ${token.length} characters`
      : "is empty or holds a character that no bearer token has";
  throw new Failure("sasl.credentials_invalid", `the token of ${from} ${what}`, {
    hint: "A token is one word of letters, digits and -._~+/ with equals signs at its end at most",
  });
}

export function oauthbearer({ token, extensions }: BearerToken): SaslMachine {
  checkToken(token, "OAUTHBEARER");
  let at: "start" | "asked" | "refused" = "start";
  let told: string | null = null;
  return {
    mechanism: "OAUTHBEARER",
    get told() {
      return told;
    },
    step(server: Uint8Array | null): SaslStep {
      if (at === "start") {
        at = "asked";
        const more = Object.entries(extensions).map(([k, v]) => `${k}=${v}\x01`);
        return send(`n,,\x01auth=Bearer ${token}\x01${more.join("")}\x01`);
      }
      if (server === null || server.length === 0) {
        if (at === "asked") return { kind: "done" };
        throw new Failure("sasl.rejected", `the server refused the token: ${told}`);
      }
      if (at === "refused") throw new Failure("sasl.rejected", `the server refused the token: ${told}`);
      at = "refused";
      told = printable(server);
      return send("\x01");
    },
  };
}

function send(text: string): SaslStep {
  return { kind: "send", message: new TextEncoder().encode(text) };
}

/** A server's words for people: bounded, on one line. */
function printable(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes.subarray(0, MAX_TOLD_BYTES)).replaceAll(/[^\x20-\x7e]/g, " ");
}
