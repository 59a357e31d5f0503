/**
 * Goal: a health check gets the pipeline's answer or a reason, in bounded time, and tells its token to nobody else.
 * Method: the real server of telemetry, and sockets that are something else.
 */
import { afterEach, expect, test } from "bun:test";
import { createServer, type Server } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { type AskOptions, ask } from "../../../src/adapters/telemetry/ask.ts";
import { type HttpOptions, type StatusServer, startServer } from "../../../src/adapters/telemetry/server.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import { makeCertificates } from "../net/certificates.ts";

const certificates = makeCertificates();
const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

function pipeline(options: Partial<HttpOptions> = {}): string {
  const server: StatusServer = startServer(
    { listen: "127.0.0.1:0", tls: null, token: null, ...options },
    {
      live: () => ({ ok: true, reason: "ok" }),
      ready: () => ({ ok: false, reason: "source: starting" }),
      stats: () => {
        throw new Error("not asked");
      },
      metrics: () => "",
    },
  );
  open.push(() => server.stop());
  return new URL(server.url).host;
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push(() => server.close());
  const address = server.address();
  return typeof address === "object" ? `127.0.0.1:${address?.port}` : "";
}

const asked = (o: Partial<AskOptions> & { listen: string }) =>
  ask({ cert: null, token: null, path: "/live", timeoutMs: 5000, ...o });

const codeOf = (o: Partial<AskOptions> & { listen: string }) =>
  asked(o).then(
    (a) => `answered ${a.status}`,
    (e) => (e instanceof Failure ? e.code : String(e)),
  );

test("live and ready, with their reasons", async () => {
  const listen = pipeline();
  expect(await asked({ listen })).toEqual({ status: 200, body: "ok" });
  expect(await asked({ listen, path: "/ready" })).toEqual({ status: 503, body: "source: starting" });
});

test("with a token, over TLS, by the very certificate", async () => {
  const { cert, key } = certificates.server;
  const listen = pipeline({ tls: { cert, key }, token: "open sesame" });
  expect((await asked({ listen, cert, token: "open sesame", path: "/ready" })).status).toBe(503);
  expect((await asked({ listen, cert, path: "/ready" })).status).toBe(401);
});

test("a server with another certificate is not told the token", async () => {
  let heard = "";
  const { cert, key } = certificates.client;
  const listen = await listening(
    createTlsServer({ cert, key }, (socket) => {
      socket.on("data", (d) => {
        heard += d.toString();
      });
      socket.on("error", () => {});
    }),
  );
  expect(await codeOf({ listen, cert: certificates.server.cert, token: "open sesame" })).toBe(
    "net.tls_untrusted",
  );
  expect(heard).toBe("");
});

test("nobody there, somebody else there, and somebody silent", async () => {
  const gone = createServer();
  const free = await listening(gone);
  await new Promise((resolve) => gone.close(resolve));
  expect(await codeOf({ listen: free })).toBe("net.refused");
  expect(await codeOf({ listen: await listening(createServer((s) => s.end("220 mail\r\n"))) })).toBe(
    "net.closed",
  );
  const silent = await listening(createServer(() => {}));
  expect(await codeOf({ listen: silent, timeoutMs: 50 })).toBe("net.timeout");
});

test("an answer without an end is given up", async () => {
  const endless = createServer((s) => {
    s.on("error", () => {});
    const more = () => {
      while (!s.destroyed && s.write("x".repeat(8192)));
    };
    s.on("drain", more);
    more();
  });
  expect(await codeOf({ listen: await listening(endless) })).toBe("net.closed");
});
