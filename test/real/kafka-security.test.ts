/**
 * Goal: logins that end, or whose credentials change, against real brokers: signed tokens from every source, sessions
 * of two seconds (KIP-368), rotated tokens and certificates; no connection and no record is lost over them.
 * Method: a source reads while a writer appends for some seconds; the brokers come from TWG_REAL_KAFKA, the tokens
 * from a provider of ours on a real socket.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { kafkaSettings } from "../../src/adapters/kafka/settings.ts";
import { kafkaSourceSpec } from "../../src/adapters/kafka/spec.ts";
import { OidcServer, signToken } from "../brokers/oidc/server.ts";
import { TOKEN_AUDIENCE, TOKEN_ISSUER } from "../servers/kafka/properties.ts";
import { RealHost, Writer } from "./kafka-host.ts";

interface Served {
  readonly plain: readonly string[];
  readonly mtls: readonly string[];
  readonly jwt: readonly string[];
  readonly reauth: readonly string[];
  readonly tokenKey: string;
  readonly ca: string;
  readonly clientCert: string;
  readonly clientKey: string;
}

const servers = JSON.parse(process.env["TWG_REAL_KAFKA"] ?? "{}") as Record<string, Served>;
const versions = Object.entries(servers);
if (versions.length === 0)
  console.error("SKIP: no real Kafka brokers (TWG_REAL_KAFKA): logins were not tried against any");

const TIMEOUT = 60_000;
/** Several lifetimes of a login. */
const READ_MS = 6_000;
const closing: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

function host(options: Record<string, unknown>): RealHost {
  const h = new RealHost(options);
  closing.push(() => h.source.close());
  return h;
}

function settingsOf(options: Record<string, unknown>): ReturnType<typeof kafkaSettings> {
  return kafkaSettings(kafkaSourceSpec.parse(options) as Parameters<typeof kafkaSettings>[0], "0");
}

for (const [version, served] of versions) {
  describe(`Kafka ${version}`, () => {
    const pem = (path: string) => readFileSync(path, "utf8");
    const key = pem(served.tokenKey);
    const topic = `login-${process.pid}-${Math.floor(performance.now())}`;
    const writer = new Writer(served.plain, topic);
    let written = 0;

    const provider = (lifetimeSeconds: number) => {
      const s = new OidcServer({
        key,
        clientId: "twg",
        clientSecret: "s3cret",
        issuer: TOKEN_ISSUER,
        audience: TOKEN_AUDIENCE,
        lifetimeSeconds,
      });
      closing.push(() => s.close());
      return s;
    };
    const token = (claims: Record<string, unknown> = {}) =>
      signToken(key, {
        iss: TOKEN_ISSUER,
        aud: TOKEN_AUDIENCE,
        sub: "twg",
        iat: Math.floor(Date.now() / 1000) - 1,
        exp: Math.floor(Date.now() / 1000) + 60,
        ...claims,
      });
    const bearer = (source: Record<string, unknown>) => ({
      bootstrap: served.jwt,
      topics: [topic],
      sasl: { mechanism: "OAUTHBEARER", ...source },
    });
    const oidc = (s: OidcServer, secret = "s3cret") => ({
      oidc: { token_url: s.url, client_id: "twg", client_secret: secret },
    });

    async function write(ms: number): Promise<void> {
      const end = performance.now() + ms;
      do {
        await writer.append(0, "a", written, 10);
        written += 10;
        await Bun.sleep(100);
      } while (performance.now() < end);
    }

    /** All that was ever written, once and in order, over the connections of the start. */
    async function read(h: RealHost, begun: number): Promise<void> {
      await h.until(() => h.total >= written);
      expect(h.failure).toBeNull();
      expect(h.troubles).toEqual([]);
      expect(h.gaps).toEqual([]);
      expect(h.values[0]).toEqual(Array.from({ length: written }, (_, i) => `<a-0-${i}>`));
      expect(h.events.filter((e) => e.e === "connection.closed")).toEqual([]);
      expect(opened(h)).toBe(begun);
      expect(begun).toBeGreaterThan(0);
    }

    const opened = (h: RealHost) => h.events.filter((e) => e.e === "connection.opened").length;

    async function readAll(h: RealHost): Promise<void> {
      await h.until(() => h.total >= written);
      await read(h, opened(h));
    }

    test(
      "a topic to read",
      async () => {
        await writer.create(1, 1);
        await write(0);
      },
      TIMEOUT,
    );

    test("OAUTHBEARER, a token as it is", () => readAll(host(bearer({ token: token() }))), TIMEOUT);

    test(
      "OAUTHBEARER with extensions",
      () => readAll(host(bearer({ token: token(), extensions: { logicalCluster: "lkc-1" } }))),
      TIMEOUT,
    );

    // Tokens of three seconds, with which a session ends too; logins of two seconds; a user changed in mid-run.
    test(
      "logins are renewed on their connections, whatever they are of, and a new secret serves the next",
      async () => {
        const file = join(mkdtempSync(join(tmpdir(), "twg-token-")), "token");
        const fresh = () => writeFileSync(file, `${token({ exp: Math.floor(Date.now() / 1000) + 3 })}\n`);
        fresh();
        const s = provider(3);
        const since = performance.now();
        const short = { bootstrap: served.reauth, topics: [topic] };
        const alice = (mechanism: string) => ({ mechanism, username: "alice", password: "alice-pw" });
        const steady = [
          host(bearer({ token_file: file })),
          host(bearer(oidc(s))),
          host({ ...short, sasl: alice("PLAIN") }),
          host({ ...short, sasl: alice("SCRAM-SHA-512") }),
        ];
        const moved = host({ ...short, sasl: alice("SCRAM-SHA-256") });
        for (const h of [...steady, moved]) await h.until(() => h.total >= written);
        const begun = steady.map(opened);
        const bob = { mechanism: "PLAIN", username: "bob", password: "bob,pw=1" };
        expect(moved.source.renew(settingsOf({ ...short, sasl: bob }))).toBe(true);
        const timer = setInterval(fresh, 500);
        await write(READ_MS);
        clearInterval(timer);
        for (const [i, h] of steady.entries()) await read(h, begun[i]!);
        // Renewed at 70 to 85 % of their life, shared by all connections.
        expect(s.requests.length).toBeGreaterThanOrEqual(3);
        expect(s.requests.length).toBeLessThanOrEqual(4 + (performance.now() - since) / 1_000);
        // A broker lets nobody become another on a connection: it is a new one, and no record is lost over it.
        await moved.until(() => moved.total >= written);
        expect(moved.failure).toBeNull();
        expect(moved.gaps).toEqual([]);
        expect(moved.values[0]?.length).toBe(written);
      },
      TIMEOUT,
    );

    // The same client as the sink's: every mechanism appends too.
    const appending: [string, () => readonly string[], () => Record<string, unknown>][] = [
      ["OAUTHBEARER", () => served.jwt, () => bearer(oidc(provider(60)))],
      [
        "mTLS",
        () => served.mtls,
        () => ({ tls: { ca: pem(served.ca), cert: pem(served.clientCert), key: pem(served.clientKey) } }),
      ],
      ...["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"].map(
        (mechanism): [string, () => readonly string[], () => Record<string, unknown>] => [
          mechanism,
          () => served.reauth,
          () => ({ sasl: { mechanism, username: "alice", password: "alice-pw" } }),
        ],
      ),
    ];
    for (const [name, bootstrap, options] of appending) {
      test(
        `${name}: appends`,
        async () => {
          const { tls, sasl } = settingsOf({ bootstrap: bootstrap(), topics: [topic], ...options() });
          const w = new Writer(bootstrap(), topic, { tls, sasl });
          closing.push(() => w.close());
          await w.locate();
          await w.append(0, "a", written, 10);
          written += 10;
          await readAll(host({ bootstrap: served.plain, topics: [topic] }));
        },
        TIMEOUT,
      );
    }

    const mistakes: [string, string, RegExp, () => Record<string, unknown>][] = [
      [
        "a token for others",
        "kafka.auth_failed",
        /invalid_token/,
        () => bearer({ token: token({ aud: "others" }) }),
      ],
      [
        "a token that has ended",
        "kafka.auth_failed",
        /invalid_token/,
        () => bearer({ token: token({ exp: Math.floor(Date.now() / 1000) - 100 }) }),
      ],
      [
        "a token that somebody changed",
        "kafka.auth_failed",
        /invalid_token/,
        () => bearer({ token: `${token().slice(0, -8)}AAAAAAAA` }),
      ],
      ["a wrong client secret", "oidc.refused", /invalid_client/, () => bearer(oidc(provider(60), "no"))],
      ["no token file", "sasl.token_unreadable", /ENOENT/, () => bearer({ token_file: "/nowhere/token" })],
      [
        "a password where tokens are wanted",
        "kafka.mechanism_unsupported",
        /PLAIN/,
        () => ({ ...bearer({}), sasl: { mechanism: "PLAIN", username: "bob", password: "bob,pw=1" } }),
      ],
    ];
    for (const [name, code, text, options] of mistakes) {
      test(
        `${name}: ${code}`,
        async () => {
          const h = host(options());
          await h.until(() => false);
          expect(h.outcome).toBe(code);
          expect(h.failure?.message).toMatch(text);
          expect(h.failure?.hint ?? "").not.toBe("");
          expect(JSON.stringify(h.failure)).not.toContain("eyJ");
        },
        TIMEOUT,
      );
    }

    test("the writer leaves", () => writer.close());
  });
}
