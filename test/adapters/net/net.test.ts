import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Socket } from "node:net";
import { createNet, type Resolve, systemResolve } from "../../../src/adapters/net/net.ts";
import { netFailure } from "../../../src/adapters/net/net-failure.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { asFailure, type Failure } from "../../../src/core/failure/failure.ts";
import type { Connection, ConnectionEvents, TlsOptions } from "../../../src/core/ports/net.ts";
import { type Certificates, makeCertificates } from "./certificates.ts";
import { listen } from "./server.ts";

const net = createNet(systemClock);
const quiet: ConnectionEvents = { data: () => {}, close: () => {} };
const closers: (() => void)[] = [];
let certs: Certificates;

beforeAll(() => {
  certs = makeCertificates();
});
afterAll(() => {
  for (const close of closers) close();
});

const serve = (onSocket: (socket: Socket) => void) => listen(closers, onSocket);

/** A TLS server that echoes; `seen` gets what arrives. */
function listenTls(tls: Bun.TLSOptions, seen: string[] = []): number {
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    tls,
    socket: {
      data(socket, bytes) {
        seen.push(bytes.toString());
        socket.write(bytes);
      },
      error() {},
    },
  });
  closers.push(() => server.stop(true));
  return server.port;
}

interface Dialled {
  readonly host?: string;
  readonly port: number;
  readonly tls?: TlsOptions | null;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  readonly events?: ConnectionEvents;
  readonly resolve?: Resolve;
}

function dial(d: Dialled): Promise<Connection> {
  const dialler = d.resolve === undefined ? net : createNet(systemClock, d.resolve);
  const { host = "127.0.0.1", port, tls = null, timeoutMs = 5000 } = d;
  const signal = d.signal ?? new AbortController().signal;
  return dialler.dial({ host, port, tls, timeoutMs, signal }, d.events ?? quiet);
}

const failure = (d: Dialled): Promise<Failure> =>
  dial(d).then(
    (c) => {
      c.close();
      throw new Error("it connected");
    },
    (e) => asFailure(e),
  );

/** Sends a line and waits for its echo, or for the end of the connection. */
async function echo(d: Dialled): Promise<string | Failure | null> {
  let heard: (answer: string | Failure | null) => void = () => {};
  const answer = new Promise<string | Failure | null>((resolve) => {
    heard = resolve;
  });
  const events: ConnectionEvents = {
    data: (chunk) => heard(Buffer.from(chunk).toString()),
    close: (error) => heard(error === null ? null : asFailure(error)),
  };
  const connection = await dial({ ...d, events });
  connection.write(Buffer.from("hello"));
  const got = await answer;
  connection.close();
  return got;
}

describe("plain TCP", () => {
  test("bytes go both ways, by address and by name", async () => {
    const port = await serve((s) => s.pipe(s));
    expect(await echo({ port })).toBe("hello");
    expect(await echo({ port, host: "localhost" })).toBe("hello");
  });

  // Goal: write never loses or reorders what the kernel does not take. Method: 32 MB against a reader that starts late,
  // and as much again, which is kept in the memory of what was sent before.
  test("what the kernel does not take is queued, in order", async () => {
    const round = 32 * 1024 * 1024;
    let got = 0;
    let wrong = 0;
    let awaited = round;
    let done: () => void = () => {};
    const port = await serve((s) => {
      s.pause();
      s.once("error", () => {});
      s.on("data", (chunk) => {
        for (let i = 0; i < chunk.length; i += 4093) if (chunk[i] !== (got + i) % 251) wrong++;
        got += chunk.length;
        if (got === awaited) done();
      });
      // The client has written everything by now: its first write filled the kernel's buffers.
      setImmediate(() => s.resume());
    });
    const connection = await dial({ port });
    const piece = Buffer.alloc(1024 * 1024);
    for (let from = 0; from < 2 * round; from += round) {
      const all = new Promise<void>((resolve) => {
        done = resolve;
      });
      awaited = from + round;
      for (let at = from; at < awaited; at += piece.length) {
        for (let i = 0; i < piece.length; i++) piece[i] = (at + i) % 251;
        connection.write(piece); // The same array again: the adapter must have copied what it kept.
      }
      await all;
    }
    expect({ got, wrong }).toEqual({ got: 2 * round, wrong: 0 });
    connection.close();
    connection.close();
    connection.write(piece);
  });

  test("paused, nothing arrives until resumed", async () => {
    const port = await serve((s) => s.on("data", () => s.write("answer")));
    const heard: string[] = [];
    let arrived: () => void = () => {};
    const first = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const events = {
      data: (chunk: Uint8Array) => {
        heard.push(Buffer.from(chunk).toString());
        arrived();
      },
      close: () => {},
    };
    const connection = await dial({ port, events });
    connection.pause();
    connection.write(Buffer.from("?"));
    // Another round trip on a second connection: the first one's answer had the time to arrive.
    await echo({ port: await serve((s) => s.pipe(s)) });
    expect(heard).toEqual([]);
    connection.resume();
    await first;
    expect(heard).toEqual(["answer"]);
    connection.close();
  });

  test("the peer's close in order is told once, without an error", async () => {
    const port = await serve((s) => s.end());
    const closes: (Error | null)[] = [];
    await new Promise<void>((resolve) => {
      void dial({
        port,
        events: {
          data: () => {},
          close: (e) => {
            closes.push(e);
            resolve();
          },
        },
      });
    });
    expect(closes).toEqual([null]);
  });

  test("nothing listens: net.refused names the address", async () => {
    const port = await serve(() => {});
    closers.pop()!();
    const f = await failure({ port });
    expect({ code: f.code, at: f.at, kind: f.kind, retry: f.retry }).toEqual({
      code: "net.refused",
      at: `127.0.0.1:${port}`,
      kind: "environment",
      retry: true,
    });
  });

  test("a name that does not resolve, and one without addresses", async () => {
    expect((await failure({ port: 1, host: "nowhere.invalid" })).code).toBe("net.unresolved");
    expect((await failure({ port: 1, host: "empty", resolve: async () => [] })).code).toBe("net.unresolved");
    expect(await systemResolve("localhost")).toContain("127.0.0.1");
  });

  // 127.0.0.2 is loopback too, and nothing listens there: the first address fails, the second answers.
  test("all addresses of a name are tried", async () => {
    const port = await serve((s) => s.pipe(s));
    const resolve: Resolve = async () => ["127.0.0.2", "127.0.0.1"];
    expect(await echo({ port, host: "two.test", resolve })).toBe("hello");
  });

  test("a resolver that never answers ends in the time-out, or with the caller", async () => {
    const never: Resolve = () => new Promise(() => {});
    expect((await failure({ port: 1, host: "slow.test", resolve: never, timeoutMs: 20 })).code).toBe(
      "net.timeout",
    );
    const stop = new AbortController();
    const cut = failure({ port: 1, host: "slow.test", resolve: never, signal: stop.signal });
    stop.abort();
    expect((await cut).code).toBe("internal.cancelled");
    expect((await failure({ port: 1, signal: AbortSignal.abort() })).code).toBe("internal.cancelled");
  });
});

describe("TLS", () => {
  const tls = (more: TlsOptions = {}): TlsOptions => ({ ca: certs.ca, ...more });

  test("a trusted server by address and by name, trailing dot included", async () => {
    const port = listenTls(certs.server);
    expect(await echo({ port, tls: tls() })).toBe("hello");
    expect(await echo({ port, tls: tls(), host: "localhost" })).toBe("hello");
    expect(await echo({ port, tls: tls(), host: "localhost.", resolve: async () => ["127.0.0.1"] })).toBe(
      "hello",
    );
    expect(await echo({ port, tls: tls({ serverName: "localhost" }) })).toBe("hello");
  });

  test("what the certificate does not vouch for is refused, and not one byte is sent to it", async () => {
    const seen: string[] = [];
    const cases: [Dialled, string][] = [
      [{ port: listenTls(certs.server, seen), tls: {} }, "net.tls_untrusted"],
      [{ port: listenTls(certs.server, seen), tls: { ca: certs.otherCa } }, "net.tls_untrusted"],
      [{ port: listenTls(certs.named, seen), tls: tls() }, "net.tls_name"],
      [{ port: listenTls(certs.server, seen), tls: tls({ serverName: "kafka.test" }) }, "net.tls_name"],
      [{ port: listenTls(certs.expired, seen), tls: tls() }, "net.tls_expired"],
    ];
    for (const [d, code] of cases) {
      const f = await failure(d);
      expect({ code: f.code, retry: f.retry, kind: f.kind }).toEqual({
        code: code as never,
        retry: false,
        kind: "environment",
      });
    }
    expect(seen).toEqual([]);
  });

  test("NODE_TLS_REJECT_UNAUTHORIZED does not switch verification off", async () => {
    const before = process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    try {
      expect((await failure({ port: listenTls(certs.server), tls: {} })).code).toBe("net.tls_untrusted");
    } finally {
      if (before === undefined) delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
      else process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = before;
    }
  });

  test("a server that wants a client certificate: with ours it talks, without it says so", async () => {
    const port = listenTls({ ...certs.server, ca: certs.ca, requestCert: true, rejectUnauthorized: true });
    expect(await echo({ port, tls: tls(certs.client) })).toBe("hello");
    // In TLS 1.3 the client learns of the refusal only after its own handshake: the end of the connection tells it.
    const told = await echo({ port, tls: tls() }).catch((e) => asFailure(e));
    expect(told).toMatchObject({ code: "net.tls_client_cert" });
  });

  test("material that can't be used is a configuration error", async () => {
    const port = listenTls(certs.server);
    for (const bad of [{ ca: "garbage" }, tls({ cert: certs.client.cert, key: certs.server.key })]) {
      const f = await failure({ port, tls: bad });
      expect({ code: f.code, kind: f.kind }).toEqual({ code: "net.tls_material", kind: "config" });
    }
  });

  test("plain text on the port: told apart by whether it answers or hangs up", async () => {
    const talks = await serve((s) => s.once("data", () => s.write("HTTP/1.1 400 Bad Request\r\n\r\n")));
    const f = await failure({ port: talks, tls: tls() });
    expect(f.code).toBe("net.tls_handshake");
    expect(f.hint).toContain("plain text");
    const hangsUp = await serve((s) => s.once("data", () => s.end()));
    const g = await failure({ port: hangsUp, tls: tls() });
    expect({ code: g.code, retry: g.retry }).toEqual({ code: "net.closed", retry: true });
    expect(g.hint).toContain("plain text");
  });

  test("a server that stays silent ends in the time-out, or with the caller", async () => {
    const port = await serve(() => {});
    const f = await failure({ port, tls: tls(), timeoutMs: 30 });
    expect(f.code).toBe("net.timeout");
    expect(f.message).toContain("TLS handshake");
    const stop = new AbortController();
    const cut = failure({ port, tls: tls(), signal: stop.signal });
    stop.abort();
    expect((await cut).code).toBe("internal.cancelled");
  });

  // RFC 6066 section 3: SNI holds names only. Method: look for the literal in the ClientHello.
  test("a name goes out as SNI, an address does not", async () => {
    const hello = async (host: string): Promise<string> => {
      let got: (text: string) => void = () => {};
      const first = new Promise<string>((resolve) => {
        got = resolve;
      });
      const port = await serve((s) =>
        s.once("data", (b) => {
          got(b.toString("latin1"));
          s.end();
        }),
      );
      await failure({ port, host, tls: tls(), resolve: async () => ["127.0.0.1"] });
      return await first;
    };
    expect(await hello("localhost")).toContain("localhost");
    expect(await hello("127.0.0.1")).not.toContain("127.0.0.1");
  });
});

describe("what the runtime calls an error", () => {
  const of = (code: string, message: string, during = "connect") =>
    netFailure(Object.assign(new Error(message), { code }), "::1", 9092, during);

  // Names as errno(3) and OpenSSL's verify(1) give them; each must end in a code that an operator can act on.
  const cases: [string, string, string][] = [
    ["EAI_AGAIN", "getaddrinfo EAI_AGAIN", "net.unresolved"],
    ["ETIMEDOUT", "connect ETIMEDOUT", "net.timeout"],
    ["ENETUNREACH", "connect ENETUNREACH", "net.unreachable"],
    ["EPIPE", "write EPIPE", "net.closed"],
    ["SELF_SIGNED_CERT_IN_CHAIN", "self signed certificate in certificate chain", "net.tls_untrusted"],
    ["CERT_NOT_YET_VALID", "certificate is not yet valid", "net.tls_expired"],
    [
      "EPROTO",
      "error:10000410:SSL routines:OPENSSL_internal:SSLV3_ALERT_HANDSHAKE_FAILURE",
      "net.tls_handshake",
    ],
    [
      "EPROTO",
      "error:10000412:SSL routines:OPENSSL_internal:SSLV3_ALERT_BAD_CERTIFICATE",
      "net.tls_client_cert",
    ],
    ["EMFILE", "too many open files", "net.failed"],
  ];
  for (const [code, message, expected] of cases) {
    test(`${code} (${message.slice(-30)}) is ${expected}`, () => {
      const f = of(code, message);
      expect(f.code).toBe(expected as never);
      expect(f.message).toContain("[::1]:9092");
    });
  }

  test("a failure of ours passes as it is, and what is no error gets a message", () => {
    const mine = of("ECONNREFUSED", "x");
    expect(netFailure(mine, "h", 1, "connect")).toBe(mine);
    expect(netFailure("odd", "h", 1, "connect").message).toContain("odd");
  });
});
