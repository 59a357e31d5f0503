/**
 * The Kafka source against real brokers: every kind of listener, the mistakes that users make, and a broker that is
 * killed. The brokers come from the test runner (TWG_REAL_KAFKA); without them these tests are skipped loudly.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { RealHost, Writer } from "./kafka-host.ts";

interface Served {
  readonly plain: readonly string[];
  readonly tls: readonly string[];
  readonly sasl: readonly string[];
  readonly sasltls: readonly string[];
  readonly mtls: readonly string[];
  readonly ca: string;
  readonly wrongCa: string;
  readonly clientCert: string;
  readonly clientKey: string;
  readonly clusterId: string;
  readonly killNode: string;
  readonly upNode: string;
}

const servers = JSON.parse(process.env["TWG_REAL_KAFKA"] ?? "{}") as Record<string, Served>;
const versions = Object.entries(servers);
const strict = process.env["TWG_STRICT"] === "1";
if (versions.length === 0) {
  console.error("SKIP: no real Kafka brokers (TWG_REAL_KAFKA): the Kafka client was not tried against any");
}

test.skipIf(versions.length === 0 && !strict)("there are real Kafka brokers", () => {
  expect(versions.length).toBeGreaterThan(0);
});

const TIMEOUT = 60_000;
/** A broker can only die where others are left: with one there is nothing to test, so nothing to skip. */
const everyBroker = (served: Served) => (served.plain.length < 3 ? () => {} : test);
const open: RealHost[] = [];
const host = (options: Record<string, unknown>) => {
  const h = new RealHost(options);
  open.push(h);
  return h;
};

afterEach(async () => {
  for (const h of open.splice(0)) await h.source.close();
});

async function run(command: string): Promise<void> {
  const child = Bun.spawn(["sh", "-c", command], { stdout: "ignore", stderr: "inherit" });
  if ((await child.exited) !== 0) throw new Error(`${command} failed`);
}

const expected = (prefix: string, partition: number, count: number) =>
  Array.from({ length: count }, (_, i) => `<${prefix}-${partition}-${i}>`);

for (const [version, served] of versions) {
  describe(`Kafka ${version}`, () => {
    const pem = (path: string) => readFileSync(path, "utf8");
    const topic = `client-${process.pid}-${Math.floor(performance.now())}`;
    const replicas = Math.min(3, served.plain.length);
    const writer = new Writer(served.plain, topic);

    test(
      "a topic to read",
      async () => {
        await writer.create(3, replicas);
        for (let p = 0; p < 3; p++) await writer.append(p, "a", 0, 200);
      },
      TIMEOUT,
    );

    const tls = () => ({ ca: pem(served.ca) });
    const sasl = (mechanism: string, username = "alice", password = "alice-pw") => ({
      mechanism,
      username,
      password,
    });
    const listeners: [string, () => Record<string, unknown>][] = [
      ["plain text", () => ({ bootstrap: served.plain })],
      ["TLS", () => ({ bootstrap: served.tls, tls: tls() })],
      [
        "mTLS",
        () => ({
          bootstrap: served.mtls,
          tls: { ...tls(), cert: pem(served.clientCert), key: pem(served.clientKey) },
        }),
      ],
      ["PLAIN", () => ({ bootstrap: served.sasl, sasl: sasl("PLAIN", "bob", "bob,pw=1") })],
      ["SCRAM-SHA-256", () => ({ bootstrap: served.sasl, sasl: sasl("SCRAM-SHA-256") })],
      ["SCRAM-SHA-512", () => ({ bootstrap: served.sasl, sasl: sasl("SCRAM-SHA-512") })],
      [
        "PLAIN over TLS",
        () => ({ bootstrap: served.sasltls, tls: tls(), sasl: sasl("PLAIN", "bob", "bob,pw=1") }),
      ],
      [
        "SCRAM-SHA-512 over TLS",
        () => ({ bootstrap: served.sasltls, tls: tls(), sasl: sasl("SCRAM-SHA-512") }),
      ],
    ];
    for (const [name, options] of listeners) {
      test(
        `${name}: every record once, in order`,
        async () => {
          const h = host({ ...options(), topics: [topic] });
          await h.until(() => h.total >= 600);
          expect(h.failure).toBeNull();
          expect(h.gaps).toEqual([]);
          expect(h.found.map((f) => f.cluster)).toEqual(Array(3).fill(served.clusterId));
          for (let p = 0; p < 3; p++) expect(h.values[p]).toEqual(expected("a", p, 200));
        },
        TIMEOUT,
      );
    }

    const mistakes: [string, string, () => Record<string, unknown>][] = [
      [
        "a wrong password",
        "kafka.auth_failed",
        () => ({ bootstrap: served.sasl, sasl: sasl("SCRAM-SHA-512", "alice", "no") }),
      ],
      [
        "an unknown user",
        "kafka.auth_failed",
        () => ({ bootstrap: served.sasl, sasl: sasl("PLAIN", "nobody", "no") }),
      ],
      [
        "SASL at a plain listener",
        "kafka.mechanism_unsupported",
        () => ({ bootstrap: served.plain, sasl: sasl("PLAIN") }),
      ],
      ["plain text at a TLS listener", "kafka.tls_expected", () => ({ bootstrap: served.tls })],
      [
        "an authority that signed nobody",
        "net.tls_untrusted",
        () => ({ bootstrap: served.tls, tls: { ca: pem(served.wrongCa) } }),
      ],
      [
        "another server name",
        "net.tls_name",
        () => ({ bootstrap: served.tls, tls: { ...tls(), server_name: "kafka.test" } }),
      ],
      ["no client certificate", "net.tls_client_cert", () => ({ bootstrap: served.mtls, tls: tls() })],
      [
        "TLS at a plain listener",
        "kafka.unreachable",
        () => ({ bootstrap: served.plain, tls: tls(), connect_timeout_ms: 1000 }),
      ],
      [
        "no login at a SASL listener",
        "kafka.unreachable",
        () => ({ bootstrap: served.sasl, connect_timeout_ms: 1000 }),
      ],
      [
        "an unknown topic",
        "kafka.unknown_topic",
        () => ({ bootstrap: served.plain, topics: [`${topic}-not`], topic_wait_ms: 500 }),
      ],
    ];
    for (const [name, code, options] of mistakes) {
      test(
        `${name}: ${code}`,
        async () => {
          const h = host({ topics: [topic], ...options() });
          await h.until(() => false);
          expect(h.outcome).toBe(code);
          expect(h.failure?.hint ?? "").not.toBe("");
        },
        TIMEOUT,
      );
    }

    test(
      "positions that were committed are where the next run begins",
      async () => {
        const options = { bootstrap: served.plain, topics: [topic], group: `g-${topic}` };
        const first = host(options);
        await first.until(() => first.total >= 600);
        expect(first.found.map((f) => f.committed)).toEqual([null, null, null]);
        await first.source.acknowledge([
          { stream: 0, next: 120n },
          { stream: 2, next: 200n },
        ]);
        await first.source.close();
        const second = host(options);
        await second.until(() => second.total >= 280);
        expect(second.found.map((f) => f.committed)).toEqual([120n, null, 200n]);
        expect(second.values.map((v) => v.length)).toEqual([80, 200, 0]);
      },
      TIMEOUT,
    );

    everyBroker(served)(
      "whoever is in a rack is served by the replica there",
      async () => {
        const near = `${topic}-near`;
        const at = new Writer(served.plain, near);
        await at.create(3, replicas);
        for (let p = 0; p < 3; p++) await at.append(p, "a", 0, 10);
        const h = host({ bootstrap: served.plain, topics: [near], rack: "r2" });
        await h.until(() => h.total >= 30);
        const before = new Map(h.received);
        for (let p = 0; p < 3; p++) await at.append(p, "a", 10, 990);
        await h.until(() => h.total >= 3_000);
        at.close();
        const ports = served.plain.map((address) => Number(address.split(":")[1]));
        const [one = 0, two = 0, three = 0] = ports.map(
          (port) => (h.received.get(port) ?? 0) - (before.get(port) ?? 0),
        );
        // Metadata comes from anywhere; records, and the answers without any, from the broker in rack r2 alone.
        expect(two).toBeGreaterThan(10 * (one + three));
        expect(h.gaps).toEqual([]);
        for (let p = 0; p < 3; p++) expect(h.values[p]).toEqual(expected("a", p, 1_000));
      },
      TIMEOUT,
    );

    // Each partition's leader dies in turn while records are still coming; SIGKILL, so nothing is said to anybody.
    everyBroker(served)(
      "a broker killed in mid-read: every record once",
      async () => {
        const h = host({ bootstrap: served.plain, topics: [topic] });
        await h.until(() => h.total >= 600);
        await run(`${served.killNode} 2`);
        for (let p = 0; p < 3; p++) await appendThrough(served.plain, topic, p);
        await run(`${served.upNode} 2`);
        await h.until(() => h.total >= 900);
        expect(h.failure).toBeNull();
        expect(h.gaps).toEqual([]);
        for (let p = 0; p < 3; p++) {
          expect(h.values[p]!.length).toBe(300);
          expect(new Set(h.values[p]).size).toBe(300);
        }
      },
      TIMEOUT,
    );

    test("the writer leaves", () => {
      writer.close();
    });
  });
}

/** Appends 100 values; while a leader is being elected each batch is tried again until it is acknowledged. */
async function appendThrough(bootstrap: readonly string[], topic: string, partition: number): Promise<void> {
  for (let i = 0; i < 100; i += 10) {
    for (let tries = 0; ; tries++) {
      const writer = new Writer(bootstrap, topic);
      try {
        await writer.locate();
        await writer.append(partition, "b", i, 10);
        break;
      } catch (e) {
        if (tries > 100) throw e;
        await Bun.sleep(100);
      } finally {
        writer.close();
      }
    }
  }
}
