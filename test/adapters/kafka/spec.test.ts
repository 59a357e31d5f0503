import { describe, expect, test } from "bun:test";
import { kafkaSettings } from "../../../src/adapters/kafka/settings.ts";
import { kafkaSourceSpec } from "../../../src/adapters/kafka/spec.ts";
import type { Resolved } from "../../../src/core/config/secret.ts";

const LEAST = { bootstrap: ["kafka:9092"], topics: ["orders"] };
const parsed = (more: object = {}) => kafkaSourceSpec.parse({ ...LEAST, ...more });
const settings = (more: object = {}) => {
  const spec = parsed(more);
  return kafkaSettings(spec as Resolved<typeof spec>, "1.2.3");
};
/** Paths of the problems. */
const problems = (more: object): string[] => {
  const result = kafkaSourceSpec.safeParse({ ...LEAST, ...more });
  return result.success ? [] : result.error.issues.map((i) => i.path.join("."));
};

describe("[source] type = kafka", () => {
  test("what is not written has the documented default", () => {
    expect(settings()).toMatchObject({
      bootstrap: [{ host: "kafka", port: 9092 }],
      group: null,
      start: "earliest",
      committedOnly: true,
      tls: null,
      sasl: null,
      clientId: "twg",
      version: "1.2.3",
      maxBytes: 8 << 20,
      partitionMaxBytes: 1 << 20,
      maxWaitMs: 500,
      connectTimeoutMs: 30_000,
      dialTimeoutMs: 10_000,
      onOutOfRange: "fail",
      onRecreated: "fail",
    });
  });

  test.each([
    ["fetch_max_bytes", { fetch_max_bytes: "256MiB" }],
    ["partition_max_bytes", { partition_max_bytes: "256MiB" }],
    ["fetch_max_bytes", { response_max_bytes: "4MiB" }],
  ])("%s above response_max_bytes is refused", (key, options) => {
    const result = kafkaSourceSpec.safeParse({ bootstrap: ["a:1"], topics: ["t"], ...options });
    expect(result.error?.issues.map((i) => [i.path, i.code])).toEqual([[[key], "custom"]]);
  });

  test("every option reaches the source", () => {
    const pem = "-----BEGIN CERTIFICATE-----\nx";
    const s = settings({
      bootstrap: ["[::1]:9093", "b:1"],
      partitions: { orders: [2, 0] },
      group: "g",
      start: { timestamp: "2026-01-31T00:00:00+01:00" },
      isolation: "read_uncommitted",
      tls: { ca: pem, cert: pem, key: pem, server_name: "k" },
      sasl: { mechanism: "SCRAM-SHA-512", username: "u", password: "p" },
      fetch_max_bytes: "2MiB",
      fetch_max_wait_ms: "1s",
      connect_timeout_ms: 500,
    });
    expect(s).toMatchObject({
      bootstrap: [
        { host: "::1", port: 9093 },
        { host: "b", port: 1 },
      ],
      group: "g",
      start: { timestamp: Date.UTC(2026, 0, 30, 23) },
      committedOnly: false,
      tls: { section: "source.tls", ca: pem, cert: pem, key: pem, serverName: "k" },
      sasl: { mechanism: "SCRAM-SHA-512", username: "u", password: "p" },
      maxBytes: 2 << 20,
      maxWaitMs: 1000,
      dialTimeoutMs: 250,
    });
    expect([...s.partitions]).toEqual([["orders", [2, 0]]]);
  });

  test("tls: an empty table means on with the system's authorities, enabled = false means off", () => {
    expect(settings({ tls: {} }).tls).toEqual({ section: "source.tls" });
    expect(settings({ tls: { enabled: false, server_name: "k" } }).tls).toBeNull();
  });

  test("what can't work is refused with its path", () => {
    const cases: [object, string][] = [
      [{ bootstrap: [] }, "bootstrap"],
      [{ bootstrap: ["kafka"] }, "bootstrap.0"],
      [{ topics: [".."] }, "topics.0"],
      [{ topics: ["a/b"] }, "topics.0"],
      [{ topics: ["orders", "orders"] }, "topics"],
      [{ topics: undefined }, "topics"],
      [{ topics_pattern: "o.*" }, "topics_pattern"],
      [{ topics: undefined, topics_pattern: "o(" }, "topics_pattern"],
      [{ topics: undefined, topics_pattern: "o.*", partitions: { orders: [0] } }, "partitions.orders"],
      [{ partitions: { clicks: [0] } }, "partitions.clicks"],
      [{ partitions: { orders: [0, 0] } }, "partitions.orders"],
      [{ partitions: { orders: [-1] } }, "partitions.orders.0"],
      [{ tls: { cert: "-----BEGIN X" } }, "tls.key"],
      [{ tls: { key: "-----BEGIN X" } }, "tls.cert"],
      [{ tls: { ca: "no pem" } }, "tls.ca"],
      [{ sasl: { mechanism: "GSSAPI", username: "u", password: "p" } }, "sasl.mechanism"],
      [{ sasl: { mechanism: "PLAIN", username: "", password: "p" } }, "sasl.username"],
      [{ start: "middle" }, "start"],
      [{ start: { timestamp: "yesterday" } }, "start.timestamp"],
      [{ fetch_max_bytes: 10 }, "fetch_max_bytes"],
      [{ on_out_of_range: "skip" }, "on_out_of_range"],
      [{ client_id: "ä" }, "client_id"],
    ];
    for (const [more, path] of cases)
      expect([JSON.stringify(more), ...problems(more)]).toEqual([JSON.stringify(more), path]);
    expect(kafkaSourceSpec.safeParse({ ...LEAST, bootstrp: [] }).success).toBe(false);
  });

  test("a pattern that can't be used is told with the place in it", () => {
    const result = kafkaSourceSpec.safeParse({ bootstrap: ["a:1"], topics_pattern: "orders(\\.eu|" });
    expect(result.error?.issues.map((i) => i.message)).toEqual([
      "at character 7 of orders(\\.eu|: the group has no end",
    ]);
  });

  test("a password never shows when settings of the file are printed", () => {
    const spec = parsed({ sasl: { mechanism: "PLAIN", username: "u", password: "hunter2" } });
    expect(JSON.stringify(spec) + Bun.inspect(spec)).not.toContain("hunter2");
  });
});

describe("[source.sasl]", () => {
  const sasl = (o: object) => ({ sasl: o });
  const oidc = { token_url: "https://id/t", client_id: "c", client_secret: "s" };

  test.each([
    ["PLAIN without a password", { mechanism: "PLAIN", username: "u" }, ["sasl.password"]],
    ["PLAIN with a token", { mechanism: "PLAIN", username: "u", password: "p", token: "t" }, ["sasl.token"]],
    ["OAUTHBEARER without a token", { mechanism: "OAUTHBEARER" }, ["sasl.token"]],
    [
      "OAUTHBEARER with two sources",
      { mechanism: "OAUTHBEARER", token_file: "/t", oidc },
      ["sasl.token_file"],
    ],
    [
      "OAUTHBEARER with a password",
      { mechanism: "OAUTHBEARER", token: "t", username: "u", password: "p" },
      ["sasl.username", "sasl.password"],
    ],
    [
      "an extension named auth",
      { mechanism: "OAUTHBEARER", token: "t", extensions: { auth: "x" } },
      ["sasl.extensions.auth"],
    ],
    [
      "a secret in plain text",
      { mechanism: "OAUTHBEARER", oidc: { ...oidc, token_url: "http://id/t" } },
      ["sasl.oidc.token_url"],
    ],
    [
      "a secret in the URL",
      { mechanism: "OAUTHBEARER", oidc: { ...oidc, token_url: "https://u:p@id/t" } },
      ["sasl.oidc.token_url"],
    ],
    ["no URL", { mechanism: "OAUTHBEARER", oidc: { ...oidc, token_url: "id" } }, ["sasl.oidc.token_url"]],
    ["IAM with a password", { mechanism: "AWS_MSK_IAM", password: "p" }, ["sasl.password"]],
    ["half a key", { mechanism: "AWS_MSK_IAM", aws: { access_key_id: "a" } }, ["sasl.aws.secret_access_key"]],
    [
      "the other half",
      { mechanism: "AWS_MSK_IAM", aws: { secret_access_key: "a" } },
      ["sasl.aws.access_key_id"],
    ],
    [
      "a session without a key",
      { mechanism: "AWS_MSK_IAM", aws: { session_token: "a" } },
      ["sasl.aws.session_token"],
    ],
    [
      "a profile and keys",
      { mechanism: "AWS_MSK_IAM", aws: { access_key_id: "a", secret_access_key: "b", profile: "p" } },
      ["sasl.aws.profile"],
    ],
  ])("%s is refused", (_, options, paths) => expect(problems(sasl(options))).toEqual(paths));

  test("http is fine on this machine", () => {
    for (const host of ["localhost", "127.0.0.1:8080", "[::1]:1"])
      expect(
        problems(sasl({ mechanism: "OAUTHBEARER", oidc: { ...oidc, token_url: `http://${host}/t` } })),
      ).toEqual([]);
  });

  test("every source of tokens and keys reaches the client", () => {
    const of = (o: object) => settings(sasl(o)).sasl;
    expect(of({ mechanism: "OAUTHBEARER", token: " t\n", extensions: { a: "b" } })).toEqual({
      mechanism: "OAUTHBEARER",
      source: { from: "literal", token: "t" },
      extensions: { a: "b" },
    });
    expect(of({ mechanism: "OAUTHBEARER", token_file: "/t" })).toMatchObject({
      source: { from: "file", path: "/t" },
    });
    const more = { scope: "a b", audience: "x", client_auth: "post", timeout_ms: "2s" };
    expect(of({ mechanism: "OAUTHBEARER", oidc: { ...oidc, ...more } })).toMatchObject({
      source: {
        from: "oidc",
        tokenUrl: "https://id/t",
        clientId: "c",
        clientSecret: "s",
        scope: "a b",
        audience: "x",
        clientAuth: "post",
        ca: null,
        timeoutMs: 2000,
      },
      extensions: {},
    });
    expect(of({ mechanism: "AWS_MSK_IAM" })).toEqual({
      mechanism: "AWS_MSK_IAM",
      keys: null,
      region: null,
      profile: null,
    });
    expect(
      of({
        mechanism: "AWS_MSK_IAM",
        aws: { region: "r-1", access_key_id: "a", secret_access_key: "b", session_token: "c" },
      }),
    ).toEqual({
      mechanism: "AWS_MSK_IAM",
      region: "r-1",
      profile: null,
      keys: { accessKeyId: "a", secretAccessKey: "b", sessionToken: "c" },
    });
  });
});
