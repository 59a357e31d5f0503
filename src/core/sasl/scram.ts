/**
 * SCRAM (RFC 5802) with SHA-256 or SHA-512 (RFC 7677), client side, with channel binding where the caller has one.
 *
 *   C: n,,n=<user>,r=<client nonce>                  (with binding: p=<its name>,,n=... and "-PLUS" mechanisms)
 *   S: r=<client nonce><server nonce>,s=<base64 salt>,i=<iterations>
 *   C: c=<base64 of "n,," or of "p=...,," and the binding's bytes>,r=<the server's whole r>,p=<base64 proof>
 *   S: v=<base64 server signature>   or   e=<error>
 *
 * The user name is escaped, the password is not: it only goes through PBKDF2. Names and passwords are taken as
 * UTF-8 without SASLprep, as Kafka's own client and server do.
 */
import { Failure } from "../failure/failure.ts";
import type { Chance } from "../time/chance.ts";
import type { Credentials, SaslCrypto, SaslHash, SaslMachine, SaslStep } from "./mechanism.ts";

/** Below: too weak to send a proof for (RFC 7677 section 4 says at least 4096). */
const MIN_ITERATIONS = 4096;
/** Above: a hostile server would keep this thread busy for more than about a second. */
const MAX_ITERATIONS = 1_000_000;
const NONCE_BYTES = 24;
const MAX_MESSAGE_BYTES = 4096;
const MAX_SALT_BYTES = 1024;
const HASH_BYTES: Record<SaslHash, number> = { sha256: 32, sha512: 64 };

/**
 * What ties the login to the TLS connection under it (RFC 5802 section 6, RFC 5929), so that nobody in the middle can
 * pass it on. `header` is "p=<name>,,"; "y,," says that we could and the server does not offer it; "n,,": we cannot.
 */
export interface ChannelBinding {
  readonly header: string;
  readonly data: Uint8Array;
}

const NO_BINDING: ChannelBinding = { header: "n,,", data: new Uint8Array(0) };

type State =
  | { readonly at: "start" }
  /** Client-first was sent. */
  | { readonly at: "first"; readonly nonce: string; readonly bare: string }
  /** The proof was sent; only this signature proves the server. */
  | { readonly at: "final"; readonly expected: Uint8Array }
  | { readonly at: "over" };

const utf8 = new TextEncoder();

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (const b of bytes) text += String.fromCharCode(b);
  return btoa(text);
}

function fromBase64(text: string, what: string): Uint8Array {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) {
    throw invalid(`${what} is not base64`);
  }
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

function invalid(what: string): Failure {
  return new Failure("sasl.server_invalid", `SCRAM: the server's message is not valid: ${what}`);
}

/** `name=value` pairs; a value may hold further equals signs. */
function attributes(message: Uint8Array): readonly (readonly [string, string])[] {
  if (message.length > MAX_MESSAGE_BYTES)
    throw invalid(`${message.length} bytes, allowed ${MAX_MESSAGE_BYTES}`);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(message);
  } catch {
    throw invalid("it is not UTF-8");
  }
  return text.split(",").map((part) => {
    if (part[1] !== "=") throw invalid("an attribute is not of the form x=value");
    return [part[0]!, part.slice(2)] as const;
  });
}

function refuseError(pairs: readonly (readonly [string, string])[]): void {
  const [name, value] = pairs[0]!;
  // RFC 5802 section 7: error values are tokens; the text is the server's, cut to a sane length.
  if (name === "e")
    throw new Failure("sasl.rejected", `the server refused the credentials: ${value.slice(0, 200)}`);
}

interface ServerFirst {
  readonly nonce: string;
  readonly salt: Uint8Array;
  readonly iterations: number;
}

function parseServerFirst(message: Uint8Array, clientNonce: string): ServerFirst {
  const pairs = attributes(message);
  refuseError(pairs);
  const names = pairs.map(([name]) => name).join("");
  if (!names.startsWith("rsi"))
    throw invalid(`attributes ${names || "none"}, expected r, s, i in this order`);
  const nonce = pairs[0]![1];
  if (!nonce.startsWith(clientNonce) || nonce.length === clientNonce.length) {
    throw invalid("its nonce does not extend ours");
  }
  if (!/^[\x21-\x2b\x2d-\x7e]+$/.test(nonce))
    throw invalid("its nonce holds a character that is not allowed");
  const salt = fromBase64(pairs[1]![1], "the salt");
  if (salt.length === 0 || salt.length > MAX_SALT_BYTES) throw invalid(`a salt of ${salt.length} bytes`);
  const text = pairs[2]![1];
  const iterations = /^\d{1,9}$/.test(text) ? Number(text) : -1;
  if (iterations < MIN_ITERATIONS || iterations > MAX_ITERATIONS) {
    throw invalid(`iteration count ${text.slice(0, 20)}, allowed ${MIN_ITERATIONS} to ${MAX_ITERATIONS}`);
  }
  return { nonce, salt, iterations };
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length;
  for (let i = 0; i < a.length; i++) difference |= a[i]! ^ (b[i] ?? 0);
  return difference === 0;
}

export function scram(
  hash: SaslHash,
  credentials: Credentials,
  crypto: SaslCrypto,
  chance: Chance,
  binding: ChannelBinding = NO_BINDING,
): SaslMachine {
  let state: State = { at: "start" };

  function clientFirst(): SaslStep {
    const nonce = toBase64(chance.bytes(NONCE_BYTES));
    const user = credentials.username.replaceAll("=", "=3D").replaceAll(",", "=2C");
    const bare = `n=${user},r=${nonce}`;
    state = { at: "first", nonce, bare };
    return { kind: "send", message: utf8.encode(binding.header + bare) };
  }

  function clientFinal(nonce: string, bare: string, message: Uint8Array): SaslStep {
    const server = parseServerFirst(message, nonce);
    const password = utf8.encode(credentials.password);
    const salted = crypto.pbkdf2(hash, password, server.salt, server.iterations, HASH_BYTES[hash]);
    const bound = toBase64(new Uint8Array([...utf8.encode(binding.header), ...binding.data]));
    const withoutProof = `c=${bound},r=${server.nonce}`;
    const auth = utf8.encode(`${bare},${new TextDecoder().decode(message)},${withoutProof}`);
    const clientKey = crypto.hmac(hash, salted, utf8.encode("Client Key"));
    const signature = crypto.hmac(hash, crypto.hash(hash, clientKey), auth);
    const proof = clientKey.map((b, i) => b ^ signature[i]!);
    const serverKey = crypto.hmac(hash, salted, utf8.encode("Server Key"));
    state = { at: "final", expected: crypto.hmac(hash, serverKey, auth) };
    return { kind: "send", message: utf8.encode(`${withoutProof},p=${toBase64(proof)}`) };
  }

  function verify(expected: Uint8Array, message: Uint8Array): SaslStep {
    const pairs = attributes(message);
    refuseError(pairs);
    const [name, value] = pairs[0]!;
    if (name !== "v") throw invalid("the last message has no signature");
    if (!equal(expected, fromBase64(value, "the signature"))) {
      throw new Failure("sasl.server_unproven", "SCRAM: the server's signature is wrong", {
        hint: "Something between here and the server may be impersonating it",
      });
    }
    state = { at: "over" };
    return { kind: "done" };
  }

  function step(server: Uint8Array | null): SaslStep {
    const now = state;
    state = { at: "over" };
    if (now.at === "start" && server === null) return clientFirst();
    if (now.at === "first" && server !== null) return clientFinal(now.nonce, now.bare, server);
    if (now.at === "final" && server !== null) return verify(now.expected, server);
    throw new Failure(
      "internal.bug",
      `SCRAM: a step in state ${now.at} with${server === null ? "out" : ""} a message`,
    );
  }

  const plus = binding.header.startsWith("p=") ? "-PLUS" : "";
  return { mechanism: `${hash === "sha256" ? "SCRAM-SHA-256" : "SCRAM-SHA-512"}${plus}`, step };
}
