/**
 * One request of the client credentials grant (RFC 6749 section 4.4) and its answer, which is not trusted: bounded in
 * time and size, never redirected (the secret would go along), and its words are cleared of the secret before anybody
 * sees them.
 */
import { asFailure, Failure } from "../../../core/failure/failure.ts";
import { checkToken } from "../../../core/sasl/oauthbearer.ts";
import { netFailure } from "../../net/net-failure.ts";

export interface OidcEndpoint {
  readonly tokenUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly scope: string | null;
  readonly audience: string | null;
  /** How the client proves itself: in the Authorization header, or in the body. */
  readonly clientAuth: "basic" | "post";
  /** PEM; null: the system's roots. */
  readonly ca: string | null;
  readonly timeoutMs: number;
}

export interface FetchedToken {
  readonly token: string;
  /** Milliseconds from the answer on; null where nothing says so. */
  readonly lifetimeMs: number | null;
}

const SECTION = "source.sasl.oidc";
const MAX_ANSWER_BYTES = 512 * 1024;
const MAX_WORDS = 300;

export async function requestToken(
  o: OidcEndpoint,
  signal: AbortSignal,
  nowMs: () => number,
): Promise<FetchedToken> {
  const { status, body } = await post(o, signal);
  if (status === 200) return readToken(o, body, nowMs());
  throw refusal(o, status, body);
}

interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

async function post(o: OidcEndpoint, signal: AbortSignal): Promise<HttpAnswer> {
  const form = new URLSearchParams({ grant_type: "client_credentials" });
  if (o.scope !== null) form.set("scope", o.scope);
  if (o.audience !== null) form.set("audience", o.audience);
  const headers: Record<string, string> = {
    accept: "application/json",
    "content-type": "application/x-www-form-urlencoded",
  };
  if (o.clientAuth === "basic") headers["authorization"] = `Basic ${basic(o)}`;
  else {
    form.set("client_id", o.clientId);
    form.set("client_secret", o.clientSecret);
  }
  try {
    const response = await fetch(o.tokenUrl, {
      method: "POST",
      headers,
      body: form.toString(),
      redirect: "manual",
      keepalive: false,
      signal,
      ...(o.ca === null ? {} : { tls: { ca: o.ca } }),
    });
    return { status: response.status, body: await bounded(o, response) };
  } catch (e) {
    if (e instanceof Failure) throw e;
    if (signal.aborted) throw asFailure(signal.reason);
    const url = new URL(o.tokenUrl);
    const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
    throw netFailure(named(e), url.hostname, port, "the token request", SECTION);
  }
}

/** What the runtime calls by names of its own, by the names that everybody knows. */
function named(e: unknown): unknown {
  const code = e instanceof Error && "code" in e ? String(e.code) : "";
  const known: Record<string, string> = {
    ConnectionRefused: "ECONNREFUSED",
    ConnectionClosed: "ECONNRESET",
    FailedToOpenSocket: "ENOTFOUND",
    Timeout: "ETIMEDOUT",
  };
  return known[code] === undefined ? e : Object.assign(new Error(`${code}`), { code: known[code] });
}

/** RFC 6749 section 2.3.1: both are form-encoded before they are joined. */
function basic({ clientId, clientSecret }: OidcEndpoint): string {
  const encoded = (text: string) => new URLSearchParams({ "": text }).toString().slice(1);
  return btoa(`${encoded(clientId)}:${encoded(clientSecret)}`);
}

async function bounded(o: OidcEndpoint, response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const body: AsyncIterable<Uint8Array> | null = response.body;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    // Leaving the loop closes the connection.
    if (size > MAX_ANSWER_BYTES)
      throw invalid(o, `an answer of more than ${MAX_ANSWER_BYTES / 1024} KiB (status ${response.status})`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function readToken(o: OidcEndpoint, body: string, nowMs: number): FetchedToken {
  const answer = objectIn(body);
  if (answer === null) throw invalid(o, `no JSON object, it begins: ${words(o, body).slice(0, 80)}`);
  const { access_token: token, token_type: type, expires_in: seconds } = answer;
  if (typeof token !== "string") throw invalid(o, "an answer without access_token");
  if (type !== undefined && String(type).toLowerCase() !== "bearer")
    throw invalid(o, `a token of type ${words(o, String(type))}`);
  checkToken(token, "the token endpoint");
  const lifetimeMs = lifetimeOf(seconds, token, nowMs);
  if (lifetimeMs !== null && lifetimeMs <= 0) throw invalid(o, "a token that has ended already");
  return { token, lifetimeMs };
}

function objectIn(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

/** `expires_in` is only recommended; a JWT says itself when it ends. Some servers send the number as text. */
function lifetimeOf(expiresIn: unknown, token: string, nowMs: number): number | null {
  const seconds =
    typeof expiresIn === "string" && /^\d{1,10}$/.test(expiresIn) ? Number(expiresIn) : expiresIn;
  if (typeof seconds === "number" && Number.isFinite(seconds)) return seconds * 1000;
  const end = objectIn(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"))?.["exp"];
  return typeof end === "number" && Number.isFinite(end) ? end * 1000 - nowMs : null;
}

function refusal(o: OidcEndpoint, status: number, body: string): Failure {
  const at = o.tokenUrl;
  const answer = objectIn(body);
  const told = [answer?.["error"], answer?.["error_description"]].filter((t) => typeof t === "string");
  const said = told.length === 0 ? "" : `: ${words(o, told.join(": "))}`;
  const text = `the token endpoint answered ${status}${said}`;
  if (status >= 500 || status === 429 || status === 408) return new Failure("oidc.unavailable", text, { at });
  if (status >= 300 && status < 400) {
    const hint = `${SECTION}.token_url: name the place that it redirects to; a secret is not sent after a redirect`;
    return new Failure("oidc.answer_invalid", text, { at, hint });
  }
  if (status === 404 || status === 405) {
    return new Failure("oidc.answer_invalid", text, { at, hint: `${SECTION}.token_url: is the path right?` });
  }
  const hint = `Check ${SECTION}.client_id, client_secret, scope and client_auth`;
  return new Failure("oidc.refused", text, { at, hint });
}

function invalid(o: OidcEndpoint, what: string): Failure {
  return new Failure("oidc.answer_invalid", `the token endpoint sent ${what}`, {
    at: o.tokenUrl,
    hint: `${SECTION}.token_url: is it the token endpoint, and not a page for people?`,
  });
}

/** A server's words for people: short, on one line, without what must not be printed even if it echoes it. */
function words(o: OidcEndpoint, text: string): string {
  return text
    .replaceAll(o.clientSecret, "***")
    .replaceAll(encodeURIComponent(o.clientSecret), "***")
    .replaceAll(/[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*/g, "***")
    .replaceAll(/[^\x20-\x7e]+/g, " ")
    .slice(0, MAX_WORDS);
}
