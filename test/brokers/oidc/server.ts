/**
 * A small OpenID Connect provider on a real socket: the client credentials grant, tokens signed with RS256. It checks what a strict provider checks, and misbehaves on order.
 */
import { createSign } from "node:crypto";
import { TOKEN_KEY_ID } from "../../servers/kafka/tls.ts";

export interface OidcServerOptions {
  /** PEM, PKCS#8. */
  readonly key: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly issuer: string;
  readonly audience: string;
  readonly lifetimeSeconds: number;
  readonly tls?: { readonly cert: string; readonly key: string };
}

/** What a request gets in place of a token. */
export type Misbehaviour = (request: Request) => Response | Promise<Response>;

export interface OidcRequest {
  readonly form: Readonly<Record<string, string>>;
  readonly authorization: string | null;
}

export class OidcServer {
  readonly #options: OidcServerOptions;
  readonly #server: Bun.Server<undefined>;
  /** Requests so far, the misbehaved ones included. */
  readonly requests: OidcRequest[] = [];
  /** For the requests to come, the oldest first; null: in order. */
  readonly script: (Misbehaviour | null)[] = [];
  lifetimeSeconds: number;
  /** Left out of the answer: the token alone says when it ends. */
  tellExpiry = true;
  #serial = 0;

  constructor(options: OidcServerOptions) {
    this.#options = options;
    this.lifetimeSeconds = options.lifetimeSeconds;
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      idleTimeout: 60,
      ...(options.tls === undefined ? {} : { tls: options.tls }),
      fetch: (request) => this.#answer(request),
    });
  }

  get url(): string {
    const scheme = this.#options.tls === undefined ? "http" : "https";
    return `${scheme}://127.0.0.1:${this.#server.port}/token`;
  }

  async close(): Promise<void> {
    await this.#server.stop(true);
  }

  /** A token as it would be given now. */
  sign(claims: Record<string, unknown> = {}): string {
    const now = Math.floor(Date.now() / 1000);
    const { issuer, audience, clientId, key } = this.#options;
    return signToken(key, {
      iss: issuer,
      aud: audience,
      sub: clientId,
      iat: now,
      exp: now + this.lifetimeSeconds,
      jti: String(++this.#serial),
      ...claims,
    });
  }

  async #answer(request: Request): Promise<Response> {
    const form = Object.fromEntries(new URLSearchParams(await request.clone().text()));
    const authorization = request.headers.get("authorization");
    this.requests.push({ form, authorization });
    const misbehave = this.script.shift() ?? null;
    if (misbehave !== null) return await misbehave(request);
    if (new URL(request.url).pathname !== "/token") return new Response("no such page", { status: 404 });
    if (form["grant_type"] !== "client_credentials") return refused("unsupported_grant_type");
    if (!this.#known(form, authorization)) return refused("invalid_client", 401);
    return Response.json({
      access_token: this.sign(form["scope"] === undefined ? {} : { scope: form["scope"] }),
      token_type: "Bearer",
      ...(this.tellExpiry ? { expires_in: this.lifetimeSeconds } : {}),
    });
  }

  #known(form: Readonly<Record<string, string>>, authorization: string | null): boolean {
    const { clientId, clientSecret } = this.#options;
    if (authorization === null)
      return form["client_id"] === clientId && form["client_secret"] === clientSecret;
    const [id = "", secret = ""] = atob(authorization.replace(/^Basic /, "")).split(":");
    const plain = (text: string) => decodeURIComponent(text.replaceAll("+", " "));
    return plain(id) === clientId && plain(secret) === clientSecret;
  }
}

function refused(error: string, status = 400): Response {
  return Response.json({ error, error_description: `${error} it is` }, { status });
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A JWT signed with RS256. */
export function signToken(key: string, claims: Record<string, unknown>): string {
  const text = `${part({ alg: "RS256", typ: "JWT", kid: TOKEN_KEY_ID })}.${part(claims)}`;
  return `${text}.${createSign("RSA-SHA256").update(text).sign(key, "base64url")}`;
}
