/**
 * Goal: secrets and certificates that are replaced in their files heal a connection that is refused for the old ones,
 * with no signal and no restart, and nothing is lost. Method: a running twg and the test broker on sockets, whose
 * password and whose trusted authority change under it.
 */
import { expect, test } from "bun:test";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { buildBatch } from "../brokers/kafka/batch-builder.ts";
import { FakeCluster } from "../brokers/kafka/cluster.ts";
import { listenCluster } from "../brokers/kafka/sockets.ts";
import { makeTls } from "../servers/kafka/tls.ts";
import { pipeline, SECRETS, stream, workFolder } from "./twg.ts";
import { until } from "./until.ts";

const LIMIT = 60_000;
const [FIRST, SECOND] = ["first-password-7a", "second-password-9c"] as const;

function fill(cluster: FakeCluster): void {
  cluster.append("t", 0, buildBatch({ records: Array.from({ length: 10 }, (_, i) => ({ value: `v${i}` })) }));
}

test(
  "a password: replaced at the broker and in its file",
  async () => {
    SECRETS.add(FIRST).add(SECOND);
    const users: Record<string, string> = { twg: FIRST };
    const cluster = new FakeCluster({ clock: systemClock, sasl: { mechanisms: ["SCRAM-SHA-256"], users } });
    cluster.createTopic("t");
    fill(cluster);
    const listening = listenCluster(cluster);
    const secrets = join(workFolder(), "secrets");
    mkdirSync(secrets);
    writeFileSync(join(secrets, "kafka-password"), FIRST);
    const p = pipeline({
      served: { plain: listening.bootstrap },
      topics: ["t"],
      group: "g",
      source: `sasl = { mechanism = "SCRAM-SHA-256", username = "twg", password = { secret = "kafka-password" } }`,
      more: `[secrets]\ndir = "${secrets}"`,
    });
    const twg = stream(p);
    await until("the first records are committed", () => cluster.committed("g", "t", 0)?.offset === 10n);
    users["twg"] = SECOND;
    writeFileSync(join(secrets, "kafka-password"), SECOND);
    cluster.cutConnections(1);
    fill(cluster);
    expect((await twg.saw("secrets.reread")).fields).toMatchObject({ changed: 1 });
    await until("the next records are committed", () => cluster.committed("g", "t", 0)?.offset === 20n);
    twg.kill("SIGTERM");
    expect((await twg.ended()).code).toBe(0);
    listening.close();
  },
  LIMIT,
);

test(
  "a client certificate: of another authority from now on, replaced in its files",
  async () => {
    const [old, next] = [makeTls(join(workFolder(), "old")), makeTls(join(workFolder(), "next"))];
    const cluster = new FakeCluster({ clock: systemClock });
    cluster.createTopic("t");
    fill(cluster);
    const pem = (path: string) => readFileSync(path, "utf8");
    const listen = (tls: typeof old, port: number) =>
      listenCluster(cluster, port, { cert: pem(tls.serverPem), key: pem(tls.serverPem), ca: pem(tls.ca) });
    let listening = listen(old, 0);
    const mine = workFolder();
    const install = (tls: typeof old) => {
      copyFileSync(tls.ca, join(mine, "ca.crt"));
      copyFileSync(tls.clientCert, join(mine, "client.crt"));
      copyFileSync(tls.clientKey, join(mine, "client.key"));
    };
    install(old);
    const file = (name: string) => `{ file = "${join(mine, name)}" }`;
    const p = pipeline({
      served: { plain: listening.bootstrap },
      topics: ["t"],
      group: "g",
      source: `tls = { ca = ${file("ca.crt")}, cert = ${file("client.crt")}, key = ${file("client.key")} }`,
    });
    const twg = stream(p);
    await until("the first records are committed", () => cluster.committed("g", "t", 0)?.offset === 10n);
    const { port } = cluster.broker(1);
    listening.close();
    install(next);
    listening = listen(next, port);
    fill(cluster);
    expect((await twg.saw("secrets.reread")).fields).toMatchObject({ changed: 1 });
    await until("the next records are committed", () => cluster.committed("g", "t", 0)?.offset === 20n);
    twg.kill("SIGTERM");
    expect((await twg.ended()).code).toBe(0);
    listening.close();
  },
  LIMIT,
);
