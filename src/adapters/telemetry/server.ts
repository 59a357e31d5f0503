/**
 * The HTTP side of telemetry: probes, metrics, statistics and the status page, read-only. Loopback by default;
 * anywhere else only with TLS or a token, which is checked here again although the configuration checks it first.
 * Answers are made from memory, so a scrape never waits for the pipeline nor the pipeline for a scrape.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { parseHostPort } from "../../core/config/option-types.ts";
import { isLoopback } from "../../core/config/sections.ts";
import { Failure } from "../../core/failure/failure.ts";
import type { Verdict } from "../../core/observe/health.ts";
import { PROMETHEUS_TYPE } from "./prometheus.ts";
import type { Stats } from "./stats.ts";
import { PAGE_POLICY, statusPage } from "./status-page.ts";

export interface HttpOptions {
  /** `host:port`; port 0 takes any free one. */
  readonly listen: string;
  /** PEM. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
  /** Every request but `/live` must carry it: as a bearer token, or as the password of basic authentication. */
  readonly token: string | null;
}

export interface StatusSource {
  live(): Verdict;
  ready(): Verdict;
  stats(): Stats;
  /** Prometheus text. */
  metrics(): string;
}

export interface StatusServer {
  /** Where it listens, as a URL. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Requests have no body and short headers; Bun itself refuses headers above 16 KiB. */
const MAX_BODY_BYTES = 1024;
/** A client that sends nothing for this long is cut off. */
const IDLE_S = 10;
const SETTING = "observability.listen";

export function startServer(options: HttpOptions, source: StatusSource): StatusServer {
  const at = parseHostPort(options.listen);
  if (at === null) {
    throw new Failure("observability.listen_failed", `"${options.listen}" is not host:port`, { at: SETTING });
  }
  if (!isLoopback(options.listen) && options.tls === null && options.token === null) {
    throw new Failure("observability.unprotected", `${options.listen} is reachable from other machines`, {
      at: SETTING,
      hint: "Listen on a loopback address, or set observability.tls or observability.token",
    });
  }
  const allowed = options.token === null ? () => true : tokenCheck(options.token);
  const server = listen(at.host, at.port, options, (request) => answer(request, source, allowed));
  const scheme = options.tls === null ? "http" : "https";
  const host = at.host.includes(":") ? `[${at.host}]` : at.host;
  return { url: `${scheme}://${host}:${server.port}/`, stop: () => server.stop(true) };
}

function listen(
  host: string,
  port: number,
  o: HttpOptions,
  fetch: (r: Request) => Response,
): Bun.Server<undefined> {
  try {
    return Bun.serve({
      hostname: host,
      port,
      fetch,
      maxRequestBodySize: MAX_BODY_BYTES,
      idleTimeout: IDLE_S,
      // The development error page would show source text.
      development: false,
      // Without development mode Bun shares a port (SO_REUSEPORT), and two processes would answer by turns.
      reusePort: false,
      error: () => plain(500, "telemetry failed to answer\n"),
      ...(o.tls === null ? {} : { tls: o.tls }),
    });
  } catch (e) {
    throw listenFailure(e, o);
  }
}

/** Bun gives the system's error name for sockets and nothing but BoringSSL's words for bad key material. */
function listenFailure(e: unknown, o: HttpOptions): Failure {
  const code = e instanceof Error && "code" in e ? String(e.code) : "";
  if (code === "EADDRINUSE") {
    return new Failure("observability.port_in_use", `${o.listen} is in use by another process`, {
      at: SETTING,
      hint: 'Choose another port, port 0 for any free one, or "off"',
      cause: e,
    });
  }
  const message = e instanceof Error ? e.message : String(e);
  if (o.tls !== null && !/^E[A-Z]+$/.test(code)) {
    return new Failure("observability.tls_invalid", "certificate and key were refused", {
      at: "observability.tls",
      hint: "Both must be PEM, and the key must belong to the first certificate",
      cause: e,
    });
  }
  return new Failure("observability.listen_failed", `cannot listen on ${o.listen}: ${code || message}`, {
    at: SETTING,
    cause: e,
  });
}

/** Compares digests, so that neither the length nor the first wrong byte shows in the time it takes. */
function tokenCheck(token: string): (request: Request) => boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text, "utf8").digest();
  const wanted = digest(token);
  return (request) => timingSafeEqual(digest(presented(request.headers.get("authorization") ?? "")), wanted);
}

/** The credential of either scheme; empty if there is none. Tokens are never empty: the configuration refuses that. */
function presented(header: string): string {
  const bearer = /^bearer +(\S+)$/i.exec(header)?.[1];
  if (bearer !== undefined) return bearer;
  const basic = /^basic +([A-Za-z0-9+/=]+)$/i.exec(header)?.[1];
  if (basic === undefined) return "";
  const pair = Buffer.from(basic, "base64").toString("utf8");
  return pair.slice(pair.indexOf(":") + 1);
}

function plain(status: number, body: string, headers: Record<string, string> = {}): Response {
  return reply(status, body, "text/plain; charset=utf-8", headers);
}

function json(status: number, value: unknown): Response {
  return reply(status, `${JSON.stringify(value)}\n`, "application/json");
}

function reply(status: number, body: string, type: string, headers: Record<string, string> = {}): Response {
  const fixed = { "content-type": type, "cache-control": "no-store", "x-content-type-options": "nosniff" };
  return new Response(body, { status, headers: { ...fixed, ...headers } });
}

const verdict = (v: Verdict): Response => plain(v.ok ? 200 : 503, `${v.reason}\n`);

function health(source: StatusSource): Response {
  const { health: report } = source.stats();
  return json(report.state === "failed" ? 503 : 200, report);
}

const ROUTES: Readonly<Record<string, (s: StatusSource) => Response>> = {
  "/live": (s) => verdict(s.live()),
  "/ready": (s) => verdict(s.ready()),
  "/health": health,
  "/stats": (s) => json(200, s.stats()),
  "/metrics": (s) => reply(200, s.metrics(), PROMETHEUS_TYPE),
  "/": (s) =>
    reply(200, statusPage(s.stats()), "text/html; charset=utf-8", { "content-security-policy": PAGE_POLICY }),
};

/** Null for targets and Host headers that make no URL. */
function pathOf(url: string): string | null {
  return URL.canParse(url) ? new URL(url).pathname : null;
}

function answer(request: Request, source: StatusSource, allowed: (r: Request) => boolean): Response {
  if (request.method !== "GET" && request.method !== "HEAD") {
    return plain(405, "only GET and HEAD\n", { allow: "GET, HEAD" });
  }
  const path = pathOf(request.url);
  if (path === null) return plain(400, "not a request target\n");
  if (path !== "/live" && !allowed(request)) {
    return plain(401, "a token is needed\n", {
      "www-authenticate": 'Bearer, Basic realm="twg", charset="UTF-8"',
    });
  }
  const route = Object.hasOwn(ROUTES, path) ? ROUTES[path] : undefined;
  if (route === undefined) return plain(404, `no such page; there are ${Object.keys(ROUTES).join(" ")}\n`);
  return route(source);
}
