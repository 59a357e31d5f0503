/**
 * Server side of PLAIN (RFC 4616), SCRAM (RFC 5802, as strict as Kafka 4: the final nonce must be the server's own),
 * OAUTHBEARER (RFC 7628) and AWS_MSK_IAM.
 */
import { createHash, createHmac, pbkdf2Sync, timingSafeEqual } from "node:crypto";
import { type IamServer, judgeIam } from "./msk-iam.ts";

export type SaslMechanismName = "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512" | "OAUTHBEARER" | "AWS_MSK_IAM";

export interface SaslServer {
  readonly mechanisms: readonly SaslMechanismName[];
  readonly users: Readonly<Record<string, string>>;
  /** 0: a login lasts. Otherwise requests after this many milliseconds end the connection (KIP-368). */
  readonly lifetimeMs?: number;
  readonly iterations?: number;
  /** OAUTHBEARER: milliseconds that a token is good for from now on, null for one that is not good. */
  readonly token?: (token: string, extensions: readonly string[]) => number | null;
  readonly iam?: IamServer;
  /** Spoils the server's proof, to see that clients check it. */
  readonly forgeSignature?: boolean;
}

export type SaslAnswer =
  | { readonly kind: "continue"; readonly message: Uint8Array }
  /** `lifetimeMs`: of this login, where it ends with its token. */
  | { readonly kind: "done"; readonly message: Uint8Array; readonly lifetimeMs?: number }
  | { readonly kind: "refused"; readonly reason: string };

export type SaslExchange = (client: Uint8Array) => SaslAnswer;

const refused = (mechanism: string): SaslAnswer => ({
  kind: "refused",
  reason: `Authentication failed during authentication due to invalid credentials with SASL mechanism ${mechanism}`,
});

export function startExchange(
  server: SaslServer,
  mechanism: SaslMechanismName,
  serial: number,
  nowMs: number,
): SaslExchange {
  if (mechanism === "PLAIN") return (client) => plain(server, client);
  if (mechanism === "OAUTHBEARER") return bearer(server);
  if (mechanism === "AWS_MSK_IAM") return (client) => iam(server, client, nowMs);
  return scram(server, mechanism === "SCRAM-SHA-256" ? "sha256" : "sha512", mechanism, serial);
}

function plain(server: SaslServer, client: Uint8Array): SaslAnswer {
  const parts = Buffer.from(client).toString("utf8").split("\0");
  const [, user, password] = parts;
  const known = parts.length === 3 && user !== undefined && Object.hasOwn(server.users, user);
  return known && server.users[user] === password
    ? { kind: "done", message: new Uint8Array(0) }
    : { kind: "refused", reason: "Authentication failed: Invalid username or password" };
}

const CONTROL_A = "\x01";

/** A bad token is told as JSON, which the client answers with ^A; only then it is refused. */
function bearer(server: SaslServer): SaslExchange {
  let told = false;
  return (client) => {
    const text = Buffer.from(client).toString("utf8");
    if (told)
      return {
        kind: "refused",
        reason: text === CONTROL_A ? '{"status":"invalid_token"}' : "no ^A after the error",
      };
    const [header, auth = "", ...rest] = text.split(CONTROL_A);
    // Extensions, then two empty ones: the message ends with two ^A.
    const extensions = rest.slice(0, -2);
    const whole =
      header === "n,," &&
      auth.startsWith("auth=Bearer ") &&
      rest.slice(-2).join() === "," &&
      extensions.every((e) => /^[A-Za-z]+=./.test(e));
    const lifetimeMs = whole ? server.token?.(auth.slice("auth=Bearer ".length), extensions) : null;
    if (lifetimeMs !== null && lifetimeMs !== undefined)
      return { kind: "done", message: new Uint8Array(0), lifetimeMs };
    told = true;
    return { kind: "continue", message: Buffer.from('{"status":"invalid_token"}') };
  };
}

function iam(server: SaslServer, client: Uint8Array, nowMs: number): SaslAnswer {
  const why = server.iam === undefined ? "no IAM here" : judgeIam(server.iam, client, nowMs);
  if (why !== null) return { kind: "refused", reason: `Access denied: ${why}` };
  return { kind: "done", message: Buffer.from('{"version":"2020_10_22","request-id":"r-1"}') };
}

/** "a=1,b=2=" -> a, b; values may hold "=". */
function attributes(text: string): Map<string, string> {
  return new Map(text.split(",").map((part) => [part[0] ?? "", part.slice(2)]));
}

function scram(server: SaslServer, hash: "sha256" | "sha512", name: string, serial: number): SaslExchange {
  const hmac = (key: Uint8Array, text: string | Uint8Array) => createHmac(hash, key).update(text).digest();
  const iterations = server.iterations ?? 4096;
  const salt = createHash("sha256").update(`salt ${serial}`).digest().subarray(0, 16);
  let firstBare = "";
  let serverFirst = "";
  let nonce = "";
  let user = "";

  function first(text: string): SaslAnswer {
    const match = /^(?:n|y),(?:a=[^,]*)?,(n=([^,]*),r=([^,]+).*)$/.exec(text);
    if (match === null) return refused(name);
    firstBare = match[1]!;
    user = match[2]!.replaceAll("=2C", ",").replaceAll("=3D", "=");
    nonce = match[3]! + createHash("sha256").update(`nonce ${serial}`).digest("base64").slice(0, 24);
    if (!Object.hasOwn(server.users, user)) return refused(name);
    serverFirst = `r=${nonce},s=${salt.toString("base64")},i=${iterations}`;
    return { kind: "continue", message: Buffer.from(serverFirst) };
  }

  function final(text: string): SaslAnswer {
    const at = text.lastIndexOf(",p=");
    const fields = attributes(text.slice(0, at));
    if (at < 0 || fields.get("c") !== "biws" || fields.get("r") !== nonce) return refused(name);
    const size = hash === "sha256" ? 32 : 64;
    const salted = pbkdf2Sync(server.users[user]!, salt, iterations, size, hash);
    const clientKey = hmac(salted, "Client Key");
    const storedKey = createHash(hash).update(clientKey).digest();
    const message = `${firstBare},${serverFirst},${text.slice(0, at)}`;
    const signature = hmac(storedKey, message);
    const proof = Buffer.from(text.slice(at + 3), "base64");
    const expected = clientKey.map((byte, i) => byte ^ signature[i]!);
    if (proof.length !== size || !timingSafeEqual(proof, expected)) return refused(name);
    const own = hmac(hmac(salted, "Server Key"), message);
    if (server.forgeSignature) own[0] = own[0]! ^ 1;
    return { kind: "done", message: Buffer.from(`v=${own.toString("base64")}`) };
  }

  return (client) => {
    const text = Buffer.from(client).toString("utf8");
    return serverFirst === "" ? first(text) : final(text);
  };
}
