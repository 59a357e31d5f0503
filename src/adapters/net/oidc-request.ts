/**
 * One request of the client credentials grant (RFC 6749 section 4.4) and its answer, which is not trusted: bounded in
 * time and size, never redirected (the secret would go along), and its words are cleared of the secret before anybody
 * sees them.
 */
import { Failure } from "../../core/failure/failure.ts";
import { checkToken } from "../../core/sasl/oauthbearer.ts";
import { exchange } from "./http.ts";

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
  /** Of the configuration, for messages: `source.sasl.oidc`. */
  readonly section: string;
}

export interface FetchedToken {
  readonly token: string;
  /** Milliseconds from the answer on; null where nothing says so. */
  readonly lifetimeMs: number | null;
}

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

interface TokenAnswer {
  readonly status: number;
  readonly body: string;
}

async function post(o: OidcEndpoint, signal: AbortSignal): Promise<TokenAnswer> {
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
  const { status, body } = await exchange({
    method: "POST",
    url: o.tokenUrl,
    headers,
    body: form.toString(),
    tls: o.ca === null ? null : { ca: o.ca },
    maxBytes: MAX_ANSWER_BYTES,
    signal,
    during: "the token request",
    section: o.section,
  });
  if (body === null)
    throw invalid(o, `an answer of more than ${MAX_ANSWER_BYTES / 1024} KiB (status ${status})`);
  return { status, body: new TextDecoder().decode(body) };
}

/** RFC 6749 section 2.3.1: both are form-encoded before they are joined. */
function basic({ clientId, clientSecret }: OidcEndpoint): string {
  const encoded = (text: string) => new URLSearchParams({ "": text }).toString().slice(1);
  return btoa(`${encoded(clientId)}:${encoded(clientSecret)}`);
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
    const hint = `${o.section}.token_url: name the place that it redirects to; a secret is not sent after a redirect`;
    return new Failure("oidc.answer_invalid", text, { at, hint });
  }
  if (status === 404 || status === 405) {
    return new Failure("oidc.answer_invalid", text, {
      at,
      hint: `${o.section}.token_url: is the path right?`,
    });
  }
  const hint = `Check ${o.section}.client_id, client_secret, scope and client_auth`;
  return new Failure("oidc.refused", text, { at, hint });
}

function invalid(o: OidcEndpoint, what: string): Failure {
  return new Failure("oidc.answer_invalid", `the token endpoint sent ${what}`, {
    at: o.tokenUrl,
    hint: `${o.section}.token_url: is it the token endpoint, and not a page for people?`,
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
