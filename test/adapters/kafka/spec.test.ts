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

  test("a password never shows when settings of the file are printed", () => {
    const spec = parsed({ sasl: { mechanism: "PLAIN", username: "u", password: "hunter2" } });
    expect(JSON.stringify(spec) + Bun.inspect(spec)).not.toContain("hunter2");
  });
});
