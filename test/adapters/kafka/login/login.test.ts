/**
 * Goal: every mechanism logs the client in, renews its login, and tells a refusal once and clearly. Method: the client
 * against the test broker on sockets, which checks each as strictly as the real ones.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KafkaClient } from "../../../../src/adapters/kafka/client.ts";
import { loginText, type SaslSettings } from "../../../../src/adapters/kafka/login/login.ts";
import { readTokenFile } from "../../../../src/adapters/kafka/login/token-file.ts";
import { createNet } from "../../../../src/adapters/net/net.ts";
import { systemChance } from "../../../../src/adapters/system/chance.ts";
import { systemClock } from "../../../../src/adapters/system/clock.ts";
import { systemSaslCrypto } from "../../../../src/adapters/system/sasl-crypto.ts";
import { asFailure, type Failure } from "../../../../src/core/failure/failure.ts";
import { FakeCluster } from "../../../brokers/kafka/cluster.ts";
import type { SaslServer } from "../../../brokers/kafka/sasl-server.ts";
import { listenCluster } from "../../../brokers/kafka/sockets.ts";

const MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM"] as const;
const seen: string[] = [];
const server: SaslServer = {
  mechanisms: MECHANISMS,
  users: { bob: "pw" },
  token: (token, extensions) => {
    seen.push(token, ...extensions);
    return token.startsWith("good") ? 0 : null;
  },
  iam: { region: "eu-west-9", keys: { AK: { secret: "s", sessionToken: null } } },
};
const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
  seen.length = 0;
});

function client(
  sasl: SaslSettings,
  offered: SaslServer = server,
): { client: KafkaClient; cluster: FakeCluster } {
  const cluster = new FakeCluster({ clock: systemClock, sasl: offered });
  cluster.createTopic("t");
  const listening = listenCluster(cluster);
  const [host = "", port] = listening.bootstrap[0]!.split(":");
  const c = new KafkaClient(
    {
      bootstrap: [{ host, port: Number(port) }],
      clientId: "c",
      version: "0",
      tls: null,
      sasl,
      dialTimeoutMs: 5000,
      requestTimeoutMs: 5000,
      maxResponseBytes: 1 << 20,
    },
    { net: createNet(systemClock), clock: systemClock, chance: systemChance, crypto: systemSaslCrypto },
  );
  closing.push(
    () => c.close(),
    () => listening.close(),
  );
  return { client: c, cluster };
}

const token = (text: string): SaslSettings => ({
  mechanism: "OAUTHBEARER",
  source: { from: "literal", token: text },
  extensions: { pool: "p-1" },
});
const keys = (secretAccessKey: string): SaslSettings => ({
  mechanism: "AWS_MSK_IAM",
  region: "eu-west-9",
  profile: null,
  keys: { accessKeyId: "AK", secretAccessKey, sessionToken: null },
});
const signal = new AbortController().signal;
const refused = (c: KafkaClient): Promise<Failure> =>
  c.refresh(["t"], signal).then(
    () => Promise.reject(new Error("let in")),
    (e) => asFailure(e),
  );

const good: [string, SaslSettings][] = [
  ["PLAIN as bob", { mechanism: "PLAIN", username: "bob", password: "pw" }],
  ["SCRAM-SHA-256 as bob", { mechanism: "SCRAM-SHA-256", username: "bob", password: "pw" }],
  ["OAUTHBEARER with a token", token("good")],
  ["AWS_MSK_IAM", keys("s")],
];
for (const [text, settings] of good) {
  test(`${text}: let in`, async () => {
    expect(loginText(settings)).toBe(text);
    const { client: c, cluster } = client(settings);
    await c.refresh(["t"], signal);
    expect(c.metadata.topics.has("t")).toBe(true);
    expect(cluster.complaints).toEqual([]);
  });
}

const bad: [string, SaslSettings, RegExp, RegExp][] = [
  ["PLAIN", { mechanism: "PLAIN", username: "bob", password: "no" }, /Invalid username/, /password/],
  ["OAUTHBEARER", token("bad"), /invalid_token/, /issuer/],
  ["AWS_MSK_IAM", keys("no"), /signature is wrong/, /kafka-cluster:Connect/],
];
for (const [name, settings, message, hint] of bad) {
  test(`${name}: refused in the server's words`, async () => {
    const failure = await refused(client(settings).client);
    expect(failure).toMatchObject({ code: "kafka.auth_failed", retry: false });
    expect(failure.message).toMatch(message);
    expect(failure.hint).toMatch(hint);
  });
}

test("a token's extensions go with it", async () => {
  await client(token("good")).client.refresh(["t"], signal);
  expect(seen).toEqual(["good", "pool=p-1"]);
});

test("the oidc login is named by its client, never by its secret", () => {
  const text = loginText({
    mechanism: "OAUTHBEARER",
    extensions: {},
    source: {
      from: "oidc",
      tokenUrl: "https://h/t",
      clientId: "cli",
      clientSecret: "hush",
      scope: null,
      audience: null,
      clientAuth: "basic",
      ca: null,
      timeoutMs: 1,
      section: "source.sasl.oidc",
    },
  });
  expect(text).toBe("OAUTHBEARER as cli");
});

describe("a token file", () => {
  const folder = mkdtempSync(join(tmpdir(), "twg-token-"));
  const path = join(folder, "token");

  test("is read at every login", async () => {
    writeFileSync(path, "good-1\n");
    const sasl: SaslSettings = { mechanism: "OAUTHBEARER", source: { from: "file", path }, extensions: {} };
    const { client: c, cluster } = client(sasl);
    await c.refresh(["t"], signal);
    writeFileSync(path, " good-2 ");
    cluster.cutConnections(1);
    while (seen.length < 2) await c.refresh(["t"], signal).catch(() => {});
    expect(seen).toEqual(["good-1", "good-2"]);
  });

  const codeOf = (file: string) =>
    readTokenFile(file).then(
      () => "none",
      (e) => `${e.code}`,
    );
  test("that is no use is told by its path", async () => {
    mkdirSync(join(folder, "folder"));
    writeFileSync(join(folder, "empty"), "\n");
    writeFileSync(join(folder, "large"), "a".repeat((1 << 20) + 1));
    expect(await codeOf(join(folder, "absent"))).toBe("sasl.token_unreadable");
    expect(await codeOf(join(folder, "folder"))).toBe("sasl.token_unreadable");
    expect(await codeOf(join(folder, "large"))).toBe("sasl.token_unreadable");
    expect(await codeOf(join(folder, "empty"))).toBe("sasl.credentials_invalid");
  });
});

describe("renewed settings", () => {
  test("serve the logins that follow; the same ones change nothing", async () => {
    const { client: c, cluster } = client(token("good-1"));
    await c.refresh(["t"], signal);
    const options = {
      bootstrap: [],
      clientId: "c",
      version: "0",
      tls: null,
      dialTimeoutMs: 5000,
      requestTimeoutMs: 5000,
      maxResponseBytes: 1 << 20,
    };
    const [host = "", port] = cluster.bootstrap[0]!.split(":");
    const bootstrap = [{ host, port: Number(port) }];
    c.renew({ ...options, bootstrap, sasl: token("good-1") });
    c.renew({ ...options, bootstrap, sasl: token("good-2") });
    cluster.cutConnections(1);
    while (seen.length < 4) await c.refresh(["t"], signal).catch(() => {});
    expect(seen).toEqual(["good-1", "pool=p-1", "good-2", "pool=p-1"]);
  });
});
