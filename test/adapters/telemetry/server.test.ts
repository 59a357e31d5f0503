// Goal: every path answers what it promises, to whom it may, and hostile requests hurt nobody. Method: real sockets
// on loopback, any free port.
import { afterEach, expect, test } from "bun:test";
import { connect } from "node:net";
import {
  type HttpOptions,
  type StatusServer,
  type StatusSource,
  startServer,
} from "../../../src/adapters/telemetry/server.ts";
import type { Stats } from "../../../src/adapters/telemetry/stats.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import { HealthTree } from "../../../src/core/observe/health.ts";
import { ManualClock } from "../../brokers/kafka/manual-clock.ts";
import { makeCertificates } from "../net/certificates.ts";

const open: StatusServer[] = [];
afterEach(async () => {
  for (const s of open.splice(0)) await s.stop();
});

function stats(state: "ok" | "failed" = "ok"): Stats {
  const health = new HealthTree(new ManualClock());
  if (state === "ok")
    for (const p of ["source", "primary_raw", "coverage", "pipeline"] as const) health.ok(p);
  return {
    pipeline: "orders",
    version: "0.1.0",
    uptime_ms: 1000,
    bytes_in_flight: 10,
    budget_bytes: 100,
    resident_bytes: 1000,
    cpu_seconds: 1,
    health: health.report(),
    window_ms: 1000,
    records: 5,
    records_per_second: 5,
    bytes_per_second: 50,
    lag: 3,
    partitions: [],
    sinks: [],
  };
}

const SOURCE: StatusSource = {
  live: () => ({ ok: true, reason: "ok" }),
  ready: () => ({ ok: false, reason: "source: starting" }),
  stats: () => stats(),
  metrics: () => "twg_live 1\n",
};

function start(options: Partial<HttpOptions> = {}, source: StatusSource = SOURCE): StatusServer {
  const server = startServer({ listen: "127.0.0.1:0", tls: null, token: null, ...options }, source);
  open.push(server);
  return server;
}

function refused(options: Partial<HttpOptions>): Failure {
  try {
    start(options);
  } catch (e) {
    if (e instanceof Failure) return e;
    throw e;
  }
  throw new Error("it listens");
}

/** Sends bytes as they are and resolves with all that came back once the server closed or went silent. */
function raw(url: string, request: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.end(request));
    let text = "";
    socket.on("data", (d) => {
      text += d.toString("latin1");
    });
    socket.on("close", () => resolve(text));
    socket.on("error", reject);
  });
}

test("probes answer with 200 or 503 and the reason", async () => {
  const { url } = start();
  const live = await fetch(`${url}live`);
  expect([live.status, await live.text()]).toEqual([200, "ok\n"]);
  const ready = await fetch(`${url}ready`);
  expect([ready.status, await ready.text()]).toEqual([503, "source: starting\n"]);
});

test("/health is the tree, 503 once it has failed", async () => {
  const good = await fetch(`${start().url}health`);
  expect([good.status, ((await good.json()) as { state: string }).state]).toEqual([200, "ok"]);
  const bad = await fetch(`${start({}, { ...SOURCE, stats: () => stats("failed") }).url}health`);
  expect([bad.status, ((await bad.json()) as { state: string }).state]).toEqual([503, "failed"]);
});

test("/metrics and /stats carry their types and are not cached", async () => {
  const { url } = start();
  const metrics = await fetch(`${url}metrics`);
  expect(metrics.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(metrics.headers.get("cache-control")).toBe("no-store");
  expect(await metrics.text()).toBe("twg_live 1\n");
  const s = await fetch(`${url}stats`);
  expect(s.headers.get("content-type")).toBe("application/json");
  expect(await s.json()).toMatchObject({ pipeline: "orders", lag: 3 });
});

test("the page runs nothing and loads nothing", async () => {
  const page = await fetch(start().url);
  expect(page.headers.get("content-security-policy")).toStartWith("default-src 'none'");
  const html = await page.text();
  expect(html).toContain("<title>twg orders</title>");
  expect(html).not.toContain("<script");
  expect(html).not.toMatch(/\b(src|href)=/);
});

test("HEAD is answered without a body, other methods and paths are not", async () => {
  const { url } = start();
  const head = await fetch(`${url}live`, { method: "HEAD" });
  expect([head.status, await head.text()]).toEqual([200, ""]);
  expect((await fetch(`${url}live`, { method: "POST", body: "x" })).status).toBe(405);
  const lost = await fetch(`${url}constructor`);
  expect([lost.status, await lost.text()]).toEqual([
    404,
    "no such page; there are /live /ready /health /stats /metrics /\n",
  ]);
});

test("with a token every path but /live wants it, as bearer or as password", async () => {
  const { url } = start({ token: "s3cret" });
  const status = async (path: string, authorization?: string) =>
    (await fetch(url + path, authorization === undefined ? {} : { headers: { authorization } })).status;
  expect(await status("live")).toBe(200);
  for (const path of ["", "ready", "health", "stats", "metrics", "nowhere"])
    expect(await status(path)).toBe(401);
  expect(await status("metrics", "Bearer s3cret")).toBe(200);
  expect(await status("metrics", "bearer s3cret")).toBe(200);
  expect(await status("metrics", `Basic ${btoa("anyone:s3cret")}`)).toBe(200);
  for (const wrong of [
    "Bearer s3cre",
    "Bearer s3crets",
    "Bearer ",
    "s3cret",
    `Basic ${btoa("s3cret:x")}`,
    "Basic %%%",
  ]) {
    expect(await status("metrics", wrong)).toBe(401);
  }
  expect((await fetch(`${url}metrics`)).headers.get("www-authenticate")).toContain("Bearer");
});

test("beyond loopback it listens only with TLS or a token", () => {
  const f = refused({ listen: "0.0.0.0:0" });
  expect([f.code, f.kind, f.at]).toEqual(["observability.unprotected", "config", "observability.listen"]);
  expect(start({ listen: "0.0.0.0:0", token: "t" }).url).toStartWith("http://0.0.0.0:");
});

test("a port in use is named with its setting and ends with the environment's exit code", () => {
  const first = start();
  const f = refused({ listen: `127.0.0.1:${new URL(first.url).port}` });
  expect([f.code, f.kind, f.at]).toEqual([
    "observability.port_in_use",
    "environment",
    "observability.listen",
  ]);
  expect(f.message).toContain(new URL(first.url).port);
});

test("an address that is not of this machine, or none at all", () => {
  // 192.0.2.0/24 is set aside for documentation (RFC 5737), so no machine has it.
  expect(refused({ listen: "192.0.2.1:0", token: "t" }).code).toBe("observability.listen_failed");
  expect(refused({ listen: "nonsense" }).code).toBe("observability.listen_failed");
});

test("TLS is served, and key material that is none is refused by name", async () => {
  const { ca, server, named } = makeCertificates();
  const { url } = start({ tls: server });
  expect(url).toStartWith("https://");
  const answer = await fetch(`${url}live`, { tls: { ca } });
  expect(answer.status).toBe(200);
  for (const tls of [
    { cert: "nonsense", key: "nonsense" },
    { cert: server.cert, key: named.key },
  ]) {
    const f = refused({ tls });
    expect([f.code, f.at]).toEqual(["observability.tls_invalid", "observability.tls"]);
  }
});

test("a fault within an answer is a 500 without its text", async () => {
  const { url } = start(
    {},
    {
      ...SOURCE,
      metrics: () => {
        throw new Error("inner words");
      },
    },
  );
  const answer = await fetch(`${url}metrics`);
  expect([answer.status, await answer.text()]).toEqual([500, "telemetry failed to answer\n"]);
});

test("hostile requests are refused and the next one is served", async () => {
  const { url } = start();
  const hostile = [
    "\u0000\u0001\u0002\r\n\r\n",
    "GET /live HTTP/9.9\r\n\r\n",
    "GET http://[::bad/ HTTP/1.1\r\nHost: x\r\n\r\n",
    `GET /${"a".repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    `GET /live HTTP/1.1\r\nHost: x\r\nX: ${"b".repeat(100_000)}\r\n\r\n`,
    "POST /live HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n",
    "GET /live HTTP/1.1\r\nHost: x y\r\nConnection: close\r\n\r\n",
  ];
  for (const request of hostile) {
    const text = await raw(url, request).catch((e: NodeJS.ErrnoException) => String(e.code));
    expect(text).not.toContain("500");
  }
  expect((await fetch(`${url}live`)).status).toBe(200);
});
