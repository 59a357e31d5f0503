import { describe, expect, test } from "bun:test";
import {
  BrokerSession,
  type ConnectionSettings,
  type LoginStart,
  nextCorrelationId,
} from "../../../../src/adapters/kafka/session/connection.ts";
import type { RequestReport } from "../../../../src/adapters/kafka/session/request-report.ts";
import {
  APIS,
  type ApiName,
  type DecodedRequest,
  type Draft,
  decodeRequest,
  encodeResponse,
  type ResponseOf,
} from "../../../../src/adapters/kafka/wire/protocol.ts";
import { systemSaslCrypto } from "../../../../src/adapters/system/sasl-crypto.ts";
import { Failure } from "../../../../src/core/failure/failure.ts";
import { oauthbearer } from "../../../../src/core/sasl/oauthbearer.ts";
import { startSasl } from "../../../../src/core/sasl/start.ts";

const AT = "broker.test:9092";
const chance = { next: () => 0, bytes: (n: number) => new Uint8Array(n) };
const ALL_KEYS = Object.values(APIS).map((api) => ({ apiKey: api.key, minVersion: 0, maxVersion: 9 }));

/** A session with its other side in the test's hands: requests are decoded, answers are fed in two bytes at a time. */
class Bench {
  readonly requests: DecodedRequest[] = [];
  readonly failures: Failure[] = [];
  readonly given: Uint8Array[] = [];
  readonly reports: RequestReport[] = [];
  ready = 0;
  closed = 0;
  now = 1000;
  readonly session: BrokerSession;

  constructor(settings: Partial<ConnectionSettings> = {}) {
    const { sasl = null } = settings;
    this.session = new BrokerSession(
      {
        at: AT,
        clientId: "test",
        softwareName: "twg",
        softwareVersion: "0",
        maxResponseBytes: 100_000,
        versionsCeiling: 4,
        requestTimeoutMs: 5000,
        dialTimeoutMs: 2000,
        chance,
        ...settings,
        sasl: sasl === null ? null : (ready) => sasl((machine) => ready(machine, this.now)),
      },
      {
        write: (bytes) => this.requests.push(decodeRequest(bytes.slice(4))),
        close: () => {
          this.closed++;
        },
      },
      {
        ready: () => {
          this.ready++;
        },
        done: (report) => this.reports.push(report),
        ended: (f) => this.failures.push(f),
      },
    );
  }

  get last(): DecodedRequest {
    return this.requests[this.requests.length - 1]!;
  }

  feed(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += 2) this.session.receive(bytes.slice(at, at + 2), this.now);
  }

  answer<A extends ApiName>(api: A, body: Draft<ResponseOf<A>>, request = this.last): void {
    this.feed(encodeResponse(api, request.version, request.correlationId, body));
  }

  open(): this {
    this.session.opened(this.now);
    this.answer("ApiVersions", { errorCode: 0, apiKeys: ALL_KEYS });
    return this;
  }

  /** Sends a request and says what became of it. */
  ask(timeoutMs = 3000, wanted = () => true): { outcome: string } {
    const result = { outcome: "waiting" };
    this.session.send(
      {
        api: "FindCoordinator",
        version: 1,
        body: { key: "g", keyType: 0 },
        timeoutMs,
        memory: {
          take: (size) => new Uint8Array(size),
          give: (memory) => this.given.push(memory),
        },
        wanted,
        answered: (body) => {
          result.outcome = `node ${body.nodeId}`;
        },
        failed: (f) => {
          result.outcome = f.code;
        },
      },
      this.now,
    );
    return result;
  }
}

describe("negotiation", () => {
  test("ApiVersions is the first request, and nothing else goes out before its answer", () => {
    const b = new Bench();
    b.session.opened(b.now);
    const asked = b.ask();
    expect(b.requests.map((r) => `${r.api} ${r.version}`)).toEqual(["ApiVersions 4"]);
    expect(b.session.negotiated).toBe(false);
    b.answer("ApiVersions", { errorCode: 0, apiKeys: ALL_KEYS });
    expect(b.ready).toBe(1);
    expect(b.session.negotiated).toBe(true);
    expect(b.last.api).toBe("FindCoordinator");
    b.answer("FindCoordinator", { nodeId: 7 });
    expect(asked.outcome).toBe("node 7");
  });

  /** Error 35 comes in the form of v0, whatever was asked. */
  const refuse = (b: Bench, apiKeys: { apiKey: number; minVersion: number; maxVersion: number }[]) =>
    b.feed(encodeResponse("ApiVersions", 0, b.last.correlationId, { errorCode: 35, apiKeys }));

  test("refused without a list: asked again with version 0", () => {
    const b = new Bench();
    b.session.opened(b.now);
    refuse(b, []);
    expect(b.last.version).toBe(0);
    b.answer("ApiVersions", { errorCode: 0, apiKeys: ALL_KEYS });
    expect(b.ready).toBe(1);
  });

  test("refused with its own range: asked again with the highest of it, once only", () => {
    const b = new Bench();
    b.session.opened(b.now);
    refuse(b, [{ apiKey: 18, minVersion: 0, maxVersion: 2 }]);
    expect(b.last.version).toBe(2);
    // A broker that refuses the version which it named itself would be asked for ever.
    refuse(b, [{ apiKey: 18, minVersion: 0, maxVersion: 2 }]);
    expect(b.failures.map((f) => f.code)).toEqual(["kafka.unsupported_version"]);
    expect(b.closed).toBe(1);
  });

  test("refused with the whole list: the list is used", () => {
    const b = new Bench();
    b.session.opened(b.now);
    refuse(b, ALL_KEYS);
    expect(b.ready).toBe(1);
  });

  test("another error, or a second refusal of version 0, is the end", () => {
    const b = new Bench();
    b.session.opened(b.now);
    b.answer("ApiVersions", { errorCode: 42 });
    expect(b.failures[0]?.code).toBe("kafka.unsupported_version");
    const c = new Bench({ versionsCeiling: 0 });
    c.session.opened(c.now);
    expect(c.last.version).toBe(0);
    refuse(c, []);
    expect(c.failures[0]?.code).toBe("kafka.unsupported_version");
  });

  test("the version of a request is the highest in common; none in common names the API and both ranges", () => {
    const b = new Bench();
    b.session.opened(b.now);
    const apiKeys = [
      { apiKey: 1, minVersion: 0, maxVersion: 11 },
      { apiKey: 3, minVersion: 20, maxVersion: 30 },
    ];
    b.answer("ApiVersions", { errorCode: 0, apiKeys });
    expect(b.session.version("Fetch")).toBe(11);
    expect(b.session.version("Fetch", 5)).toBe(5);
    expect(() => b.session.version("Metadata")).toThrow(
      "offers Metadata 20 to 30, this client speaks 1 to 13",
    );
    expect(() => b.session.version("OffsetCommit")).toThrow("does not offer OffsetCommit");
  });

  test("hanging up on the first request hints at TLS; later, without a login, at SASL", () => {
    const b = new Bench();
    b.session.opened(b.now);
    b.session.lost(null, b.now);
    expect(b.failures[0]?.hint).toContain("TLS");
    const c = new Bench().open();
    c.ask();
    c.session.lost(null, c.now);
    expect(c.failures[0]).toMatchObject({ code: "kafka.disconnected", retry: true });
    expect(c.failures[0]?.hint).toContain("source.sasl");
  });
});

describe("requests in flight", () => {
  test("answers go to their requests in order, and the correlation id wraps behind 2^31 - 1", () => {
    const b = new Bench().open();
    const [first, second] = [b.ask(), b.ask()];
    const [, a, c] = b.requests;
    b.answer("FindCoordinator", { nodeId: 1 }, a!);
    b.answer("FindCoordinator", { nodeId: 2 }, c!);
    expect([first.outcome, second.outcome]).toEqual(["node 1", "node 2"]);
    expect([0, 0x7ffffffe, 0x7fffffff].map(nextCorrelationId)).toEqual([1, 0x7fffffff, 0]);
  });

  test("a wrong correlation id ends the connection and gives the memory back", () => {
    const b = new Bench().open();
    const asked = b.ask();
    b.answer("FindCoordinator", { nodeId: 1 }, {
      ...b.last,
      correlationId: b.last.correlationId + 1,
    } as DecodedRequest);
    expect(asked.outcome).toBe("kafka.response_invalid");
    expect(b.given.length).toBe(1);
    expect(b.closed).toBe(1);
  });

  test("a response that nobody asked for ends the connection", () => {
    const b = new Bench().open();
    b.answer("FindCoordinator", { nodeId: 1 });
    expect(b.failures[0]?.code).toBe("kafka.response_invalid");
  });

  test("a response that ends too early ends the connection, and its request fails with it", () => {
    const b = new Bench().open();
    const asked = b.ask();
    const whole = encodeResponse("FindCoordinator", 1, b.last.correlationId, {
      nodeId: 1,
      host: "a-long-name",
    });
    const cut = whole.slice(0, whole.length - 6);
    new DataView(cut.buffer).setInt32(0, cut.length - 4);
    b.feed(cut);
    expect(asked.outcome).toBe("kafka.response_invalid");
    expect(b.given.length).toBe(1);
  });

  test("the connection's end in the middle of a response gives its memory back and fails all requests", () => {
    const b = new Bench().open();
    const [first, second] = [b.ask(), b.ask()];
    b.feed(encodeResponse("FindCoordinator", 1, b.requests[1]!.correlationId, { nodeId: 1 }).slice(0, 12));
    b.session.lost(new Failure("net.closed", "reset"), b.now);
    expect([first.outcome, second.outcome]).toEqual(["net.closed", "net.closed"]);
    expect(b.given.length).toBe(1);
    expect(b.session.failure?.code).toBe("net.closed");
    // What comes after the end changes nothing, and new requests fail at once.
    b.session.lost(null, b.now);
    b.feed(new Uint8Array(8));
    expect(b.ask().outcome).toBe("net.closed");
    expect(b.failures.length).toBe(1);
  });

  test("no first answer is waited for as long as a dial, no longer", () => {
    const b = new Bench();
    b.session.opened(b.now);
    expect(b.session.wakeAt).toBe(b.now + 2000);
    b.session.tick(b.now + 2000);
    expect(b.failures).toMatchObject([{ code: "kafka.timeout", at: AT }]);
    expect(b.failures[0]?.message).toBe(`${AT} takes connections, but said nothing for 2000 ms`);
  });

  test("no answer by the deadline ends the connection: what follows could never be told apart", () => {
    const b = new Bench().open();
    const [slow, other] = [b.ask(3000), b.ask(9000)];
    expect(b.session.wakeAt).toBe(b.now + 3000);
    b.session.tick(b.now + 2999);
    expect(slow.outcome).toBe("waiting");
    b.session.tick(b.now + 3000);
    expect([slow.outcome, other.outcome]).toEqual(["kafka.timeout", "kafka.timeout"]);
    expect(b.session.wakeAt).toBeNull();
  });

  test("a request whose caller gave up before it was sent is not sent", () => {
    const b = new Bench();
    b.session.opened(b.now);
    b.ask(3000, () => false);
    b.answer("ApiVersions", { errorCode: 0, apiKeys: ALL_KEYS });
    expect(b.requests.map((r) => r.api)).toEqual(["ApiVersions"]);
  });

  test("a body that can't be encoded fails its request alone", () => {
    const b = new Bench().open();
    const result = { code: "" };
    b.session.send(
      {
        api: "FindCoordinator",
        version: 99,
        body: {},
        timeoutMs: 1,
        memory: null,
        wanted: () => true,
        answered: () => {},
        failed: (f) => {
          result.code = f.code;
        },
      },
      b.now,
    );
    expect(result.code).toBe("internal.bug");
    expect(b.session.failure).toBeNull();
  });

  // KIP-219: the broker answers at once and then reads nothing for that time.
  test("a throttled connection stays silent for the time, which no request is charged for", () => {
    const b = new Bench().open();
    b.ask();
    const late = b.ask(3000);
    b.answer("FindCoordinator", { throttleTimeMs: 2000, nodeId: 1 }, b.requests[1]!);
    const parked = b.ask();
    expect(b.requests.length).toBe(3);
    b.session.tick(b.now + 1999);
    expect(b.requests.length).toBe(3);
    expect(b.session.wakeAt).toBe(1000 + 2000);
    b.now += 2000;
    b.session.tick(b.now);
    expect(b.requests.length).toBe(4);
    // In flight since 1000 with 3000 ms: without the throttle it would be late at 4000.
    b.session.tick(4500);
    expect([late.outcome, parked.outcome]).toEqual(["waiting", "waiting"]);
    b.session.tick(6000);
    expect(late.outcome).toBe("kafka.timeout");
  });
});

describe("reports", () => {
  test("every request that was sent, the connection's own included: time, bytes and what became of it", () => {
    const b = new Bench().open();
    b.ask();
    b.ask();
    b.now += 40;
    b.answer("FindCoordinator", { nodeId: 1 }, b.requests[1]!);
    b.now += 2;
    b.session.lost(null, b.now);
    const { sentBytes: asked, receivedBytes: told, ...first } = b.reports[0]!;
    expect(first).toEqual({ api: "ApiVersions", ms: 0, error: null });
    expect([asked > 20, told > 100]).toEqual([true, true]);
    const sentBytes = b.reports[1]!.sentBytes;
    expect(b.reports.slice(1)).toEqual([
      { api: "FindCoordinator", ms: 40, sentBytes, receivedBytes: 26, error: null },
      { api: "FindCoordinator", ms: 42, sentBytes, receivedBytes: 0, error: "kafka.disconnected" },
    ]);
    // Size, key, version, id and client id, then group and key type. The answer: size and id, throttle, error, no
    // message, node, no host, port: 4 + 4 + 4 + 2 + 2 + 4 + 2 + 4.
    expect(sentBytes).toBe(4 + 2 + 2 + 4 + 2 + 4 + 3 + 1);
  });

  test("an answer that cannot be read counts as one that failed", () => {
    const b = new Bench().open();
    b.ask();
    const { correlationId } = b.last;
    const bytes = encodeResponse("FindCoordinator", 1, correlationId, { nodeId: 1 });
    new DataView(bytes.buffer, bytes.byteOffset).setInt32(0, 8);
    b.feed(bytes.slice(0, 12));
    expect(b.reports[1]).toMatchObject({ api: "FindCoordinator", error: "kafka.response_invalid" });
    expect(b.reports.length).toBe(2);
  });
});

describe("login", () => {
  const credentials = { username: "u", password: "p" };
  const sasl: LoginStart = (ready) => ready(startSasl("PLAIN", credentials, systemSaslCrypto, chance), 0);

  function login(lifetimeMs = 0n, b = new Bench({ sasl })): Bench {
    b.open();
    b.answer("SaslHandshake", { errorCode: 0, mechanisms: ["PLAIN"] });
    b.answer("SaslAuthenticate", { errorCode: 0, sessionLifetimeMs: lifetimeMs });
    return b;
  }

  test("handshake, then the mechanism's messages, then requests", () => {
    const b = new Bench({ sasl }).open();
    const asked = b.ask();
    expect(b.last.api).toBe("SaslHandshake");
    expect(b.last.body).toEqual({ mechanism: "PLAIN" });
    b.answer("SaslHandshake", { errorCode: 0, mechanisms: ["PLAIN"] });
    expect(Buffer.from((b.last.body as { authBytes: Uint8Array }).authBytes).toString()).toBe("\0u\0p");
    expect(b.ready).toBe(0);
    b.answer("SaslAuthenticate", { errorCode: 0 });
    expect(b.ready).toBe(1);
    b.answer("FindCoordinator", { nodeId: 4 });
    expect(asked.outcome).toBe("node 4");
  });

  test("a wrong password is told at once, in the server's words", () => {
    const b = new Bench({ sasl }).open();
    b.answer("SaslHandshake", { errorCode: 0, mechanisms: ["PLAIN"] });
    b.answer("SaslAuthenticate", { errorCode: 58, errorMessage: "Invalid username or password" });
    expect(b.failures[0]).toMatchObject({ code: "kafka.auth_failed", retry: false });
    expect(b.failures[0]?.message).toContain("Invalid username or password");
  });

  test("a mechanism that the listener lacks: what it offers instead", () => {
    const b = new Bench({ sasl }).open();
    b.answer("SaslHandshake", { errorCode: 33, mechanisms: ["OAUTHBEARER", "GSSAPI"] });
    expect(b.failures[0]?.code).toBe("kafka.mechanism_unsupported");
    expect(b.failures[0]?.hint).toContain("OAUTHBEARER, GSSAPI");
  });

  test("a listener without SASL says so", () => {
    const b = new Bench({ sasl }).open();
    b.answer("SaslHandshake", { errorCode: 34, mechanisms: [] });
    expect(b.failures[0]?.message).toContain("takes no SASL");
  });

  test("a server whose proof is wrong is not talked to", () => {
    const broken: LoginStart = (ready) =>
      ready(startSasl("SCRAM-SHA-256", credentials, systemSaslCrypto, chance), 0);
    const b = new Bench({ sasl: broken }).open();
    b.answer("SaslHandshake", { errorCode: 0, mechanisms: [] });
    b.answer("SaslAuthenticate", { errorCode: 0, authBytes: Buffer.from("r=forged,s=AAAA,i=4096") });
    expect(b.failures[0]?.code).toBe("sasl.server_invalid");
    expect(b.failures[0]?.message).toContain(AT);
  });

  test("hanging up in the middle of the login is told as that", () => {
    const b = new Bench({ sasl }).open();
    b.session.lost(null, b.now);
    expect(b.failures[0]?.message).toContain("during authentication");
  });

  // KIP-368, chance 0: authenticate again from 85 % of the lifetime on, with nothing else under way.
  test("before the login ends, requests wait for a new one", () => {
    const b = login(10_000n);
    const before = b.ask();
    b.now += 8_500;
    const parked = b.ask();
    // One is in flight: nothing is sent until its answer is here.
    expect(b.last.api).toBe("FindCoordinator");
    b.answer("FindCoordinator", { nodeId: 1 });
    expect(before.outcome).toBe("node 1");
    expect(b.last.api).toBe("SaslHandshake");
    b.answer("SaslHandshake", { errorCode: 0, mechanisms: ["PLAIN"] });
    b.answer("SaslAuthenticate", { errorCode: 0, sessionLifetimeMs: 10_000n });
    expect(b.last.api).toBe("FindCoordinator");
    b.answer("FindCoordinator", { nodeId: 2 });
    expect(parked.outcome).toBe("node 2");
    expect(b.ready).toBe(2);
  });

  test("a login that lasts is not renewed", () => {
    const b = login(0n);
    b.ask();
    b.answer("FindCoordinator", { nodeId: 1 });
    b.now += 1_000_000_000;
    b.ask();
    expect(b.last.api).toBe("FindCoordinator");
  });

  // Lifetime 1010 ms, so due from 1000 ms on: the shortest pause that brokers allow.
  test("however short the lifetime, a request goes through between two logins", () => {
    const b = login(1010n);
    b.now += 1005;
    b.ask();
    expect(b.last.api).toBe("FindCoordinator");
    b.answer("FindCoordinator", { nodeId: 1 });
    b.ask();
    expect(b.last.api).toBe("SaslHandshake");
  });

  // Seen with MSK: 740 ms. A broker refuses a login within a second of the last and hangs up on requests after the end.
  test("a lifetime below a second: after its end requests wait until the next login is allowed", () => {
    const b = login(740n);
    b.ask();
    b.answer("FindCoordinator", { nodeId: 1 });
    b.now += 750;
    const parked = b.ask();
    expect(b.requests.filter((r) => r.api === "FindCoordinator").length).toBe(1);
    expect(b.session.wakeAt).toBe(1000 + 1000);
    b.now = 2000;
    b.session.tick(b.now);
    expect(b.last.api).toBe("SaslHandshake");
    b.answer("SaslHandshake", { errorCode: 0, mechanisms: ["PLAIN"] });
    b.answer("SaslAuthenticate", { errorCode: 0, sessionLifetimeMs: 0n });
    b.answer("FindCoordinator", { nodeId: 2 });
    expect(parked.outcome).toBe("node 2");
    // The limit is gone: no more logins.
    b.now += 1_000_000;
    b.ask();
    expect(b.last.api).toBe("FindCoordinator");
  });

  test("credentials that come late: nothing is sent meanwhile, and the time of their coming counts", () => {
    let give: Parameters<LoginStart>[0] = () => {};
    const b = new Bench({
      sasl: (ready) => {
        give = ready;
      },
    }).open();
    const asked = b.ask();
    expect(b.requests.map((r) => r.api)).toEqual(["ApiVersions"]);
    expect(b.session.wakeAt).toBeNull();
    b.now += 60_000;
    give(startSasl("PLAIN", credentials, systemSaslCrypto, chance), b.now);
    expect(b.last.api).toBe("SaslHandshake");
    expect(b.session.wakeAt).toBe(b.now + 5000);
    b.answer("SaslHandshake", { errorCode: 0, mechanisms: ["PLAIN"] });
    b.answer("SaslAuthenticate", { errorCode: 0 });
    b.answer("FindCoordinator", { nodeId: 3 });
    expect(asked.outcome).toBe("node 3");
  });

  test("credentials that cannot be had end the connection with their own failure", () => {
    const b = new Bench({
      sasl: (ready) => ready(new Failure("oidc.refused", "no"), 0),
    }).open();
    expect(b.failures.map((f) => f.code)).toEqual(["oidc.refused"]);
    expect(b.closed).toBe(1);
  });

  test("credentials that come after the end are dropped", () => {
    let give: Parameters<LoginStart>[0] = () => {};
    const b = new Bench({
      sasl: (ready) => {
        give = ready;
      },
    }).open();
    b.session.lost(null, b.now);
    give(startSasl("PLAIN", credentials, systemSaslCrypto, chance), b.now);
    expect(b.requests.map((r) => r.api)).toEqual(["ApiVersions"]);
    expect(b.failures.length).toBe(1);
  });

  // RFC 7628 section 3.2.3: the reason comes as JSON, is answered with ^A, and only then the broker refuses.
  test("OAUTHBEARER refused: the reason is told", () => {
    const b = new Bench({ sasl: (ready) => ready(oauthbearer({ token: "t", extensions: {} }), 0) }).open();
    b.answer("SaslHandshake", { errorCode: 0, mechanisms: ["OAUTHBEARER"] });
    const reason = '{"status":"invalid_token"}';
    b.answer("SaslAuthenticate", { errorCode: 0, authBytes: Buffer.from(reason) });
    expect([...(b.last.body as { authBytes: Uint8Array }).authBytes]).toEqual([1]);
    b.answer("SaslAuthenticate", { errorCode: 58, errorMessage: "no" });
    expect(b.failures[0]).toMatchObject({ code: "kafka.auth_failed", retry: false });
    expect(b.failures[0]?.message).toContain(`${reason}: no`);
    expect(b.failures[0]?.hint).toContain("issuer");
  });

  test("after an idle time longer than the lifetime the login comes first", () => {
    const b = login(10_000n);
    b.now += 20_000;
    b.ask();
    expect(b.last.api).toBe("SaslHandshake");
  });
});
