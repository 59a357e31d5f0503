/**
 * One HTTP request and its answer, which is not trusted: bounded in size as it comes, in time by the caller's signal, and
 * never redirected (credentials would go along). Over the runtime's fetch; each request has a connection of its own, so
 * that none meets one that the peer has left, or one of other certificates.
 */
import { asFailure, Failure } from "../../core/failure/failure.ts";
import type { TlsOptions } from "../../core/ports/net.ts";
import { netFailure } from "./net-failure.ts";

export interface HttpRequest {
  readonly method: "GET" | "POST";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** Of https; null: the system's roots and no certificate of ours. */
  readonly tls: TlsOptions | null;
  readonly maxBytes: number;
  /** Aborts with a Failure as reason. */
  readonly signal: AbortSignal;
  /** What was being done, for messages: "the token request". */
  readonly during: string;
  /** Of the configuration, for messages. */
  readonly section: string;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Null: it is larger than `maxBytes`. */
  readonly body: Uint8Array | null;
}

/** Rejects with a Failure: net.*, or the signal's reason. */
export async function exchange(r: HttpRequest): Promise<HttpAnswer> {
  try {
    const response = await fetch(r.url, {
      method: r.method,
      // What is not compressed has the size that it seems to have.
      headers: { "accept-encoding": "identity", ...r.headers },
      ...(r.body === null ? {} : { body: r.body }),
      redirect: "manual",
      keepalive: false,
      signal: r.signal,
      tls: tlsOf(r.tls),
    });
    return { status: response.status, headers: response.headers, body: await bounded(response, r.maxBytes) };
  } catch (e) {
    if (e instanceof Failure) throw e;
    if (r.signal.aborted) throw asFailure(r.signal.reason);
    const url = new URL(r.url);
    const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
    throw netFailure(named(e), url.hostname.replace(/^\[(.*)\]$/, "$1"), port, r.during, r.section);
  }
}

/** The certificate is looked at whatever NODE_TLS_REJECT_UNAUTHORIZED says. */
function tlsOf(tls: TlsOptions | null): Bun.TLSOptions {
  return {
    rejectUnauthorized: true,
    ...(tls?.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls?.cert === undefined ? {} : { cert: tls.cert }),
    ...(tls?.key === undefined ? {} : { key: tls.key }),
    ...(tls?.serverName === undefined ? {} : { serverName: tls.serverName }),
  };
}

async function bounded(response: Response, maxBytes: number): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const body: AsyncIterable<Uint8Array> | null = response.body;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    // Leaving the loop closes the connection.
    if (size > maxBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
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
