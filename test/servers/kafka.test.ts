/**
 * Goal: the test clusters are what the other tests take them for: every listener lets the right client in and
 * nobody else, and a killed node comes back on its ports. Method: librdkafka as the client. Needs
 * scripts/with-servers.sh.
 */
import { expect, test } from "bun:test";
import { resolve } from "node:path";

interface Served {
  plain: string[];
  tls: string[];
  sasl: string[];
  sasltls: string[];
  mtls: string[];
  ca: string;
  wrongCa: string;
  clientCert: string;
  clientKey: string;
  killNode: string;
  upNode: string;
}

const python = process.env.TWG_PYTHON;
const servers = JSON.parse(process.env.TWG_REAL_KAFKA ?? "{}") as Record<string, Served>;
const versions = Object.entries(servers);
const there = python !== undefined && versions.length > 0;
if (!there) console.error("SKIP: no real Kafka brokers; run scripts/with-servers.sh bun test test/servers");

type Settings = Record<string, string>;
const TIMEOUT = 60_000;
let topics = 0;

const freshTopic = () => `smoke-${process.pid}-${topics++}`;

async function smoke(
  bootstrap: string[],
  settings: Settings,
  topic = freshTopic(),
): Promise<{ ok: boolean; said: string }> {
  const script = resolve(import.meta.dir, "smoke.py");
  const run = Bun.spawn([python ?? "", script, bootstrap.join(","), topic, JSON.stringify(settings)], {
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text()]);
  const ok = (await run.exited) === 0;
  return { ok, said: (ok ? out : err).trim() }; // it warns of a dead broker on stderr even when all is well
}

const sasl = (mechanism: string, username: string, password: string): Settings => ({
  "security.protocol": "SASL_PLAINTEXT",
  "sasl.mechanism": mechanism,
  "sasl.username": username,
  "sasl.password": password,
});

test.skipIf(!there)("the real brokers are there", () => {
  expect(versions.length).toBeGreaterThan(0);
});

for (const [version, s] of versions) {
  const tls = { "security.protocol": "SSL", "ssl.ca.location": s.ca };
  const bob = sasl("PLAIN", "bob", "bob,pw=1");
  const cases: [string, string[], Settings, RegExp][] = [
    ["plaintext", s.plain, {}, /^hello$/],
    ["TLS", s.tls, tls, /^hello$/],
    ["SASL PLAIN", s.sasl, bob, /^hello$/],
    ["SCRAM-SHA-256", s.sasl, sasl("SCRAM-SHA-256", "alice", "alice-pw"), /^hello$/],
    ["SCRAM-SHA-512", s.sasl, sasl("SCRAM-SHA-512", "alice", "alice-pw"), /^hello$/],
    ["SASL PLAIN over TLS", s.sasltls, { ...bob, ...tls, "security.protocol": "SASL_SSL" }, /^hello$/],
    [
      "a client certificate",
      s.mtls,
      { ...tls, "ssl.certificate.location": s.clientCert, "ssl.key.location": s.clientKey },
      /^hello$/,
    ],
    [
      "a CA that signed nobody is refused",
      s.tls,
      { ...tls, "ssl.ca.location": s.wrongCa },
      /certificate verify failed/,
    ],
    ["no client certificate is refused", s.mtls, tls, /SSL|[Dd]isconnected/],
    ["a wrong password is refused", s.sasl, sasl("PLAIN", "bob", "no"), /authentication/i],
  ];
  for (const [name, bootstrap, settings, expected] of cases) {
    test.concurrent(
      `${version}: ${name}`,
      async () => {
        const { ok, said } = await smoke(bootstrap, settings);
        expect(said).toMatch(expected);
        expect(ok).toBe(said === "hello");
      },
      TIMEOUT,
    );
  }
}

const cluster = versions.find(([, s]) => s.plain.length > 1);
test.skipIf(cluster === undefined)(
  "a node that was killed comes back and serves",
  async () => {
    const [, s] = cluster!;
    const topic = freshTopic(); // made while all nodes live: a topic cannot have three replicas on two nodes
    expect((await smoke(s.plain, {}, topic)).said).toBe("hello");
    expect(Bun.spawnSync(["bash", "-c", `${s.killNode} 2`]).exitCode).toBe(0);
    expect(await refuses(s.plain[1]!)).toBeTrue();
    expect((await smoke(s.plain, {}, topic)).said).toBe("hello"); // the others go on
    expect(Bun.spawnSync(["bash", "-c", `${s.upNode} 2`]).exitCode).toBe(0);
    expect(await refuses(s.plain[1]!)).toBeFalse();
  },
  TIMEOUT,
);

async function refuses(address: string): Promise<boolean> {
  const [hostname, port] = address.split(":") as [string, string];
  try {
    const socket = await Bun.connect({ hostname, port: Number(port), socket: { data() {} } });
    socket.end();
    return false;
  } catch {
    return true;
  }
}
