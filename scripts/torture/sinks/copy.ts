/** A topic beside the primary sink: brokers that clients reach through proxies alone, and that refuse what is written. */
import { ALICE, admin, createTopic, type Served } from "../../../test/e2e/real-kafka.ts";
import type { SeededChance } from "../../../test/sim/chance.ts";
import { openTransactions } from "../kafka-sink.ts";
import { TcpProxy } from "../tcp-proxy.ts";
import { type Place, transactionPoints } from "./place.ts";
import { proxyTroubles } from "./proxied.ts";

/** The only one that may write, in the place of those who may while nobody is named. */
const NOBODY_ELSE = "torture-nobody";
const MESSAGE_BYTES = 1 << 20;

export async function copyPlace(
  served: Served,
  topic: string,
  partitions: number,
  chance: SeededChance,
): Promise<Place> {
  const target = `${topic}-copy`;
  const coverage = `${topic}-coverage`;
  const replicas = Math.min(3, served.plain.length);
  const config = { "max.message.bytes": String(MESSAGE_BYTES) };
  await createTopic(served, target, { partitions, config });
  const proxies = await Promise.all(
    served.behind.map(({ address, proxyPort }) => {
      const [host = "", port = ""] = address.split(":");
      return TcpProxy.start({ host, port: Number(port) }, chance, proxyPort);
    }),
  );
  const limit = (bytes: number) =>
    admin(served, "alter", { topic: target, config: { "max.message.bytes": String(bytes) } });
  return {
    name: "copy",
    section: `type = "kafka"
bootstrap = ${JSON.stringify(proxies.map((p) => `127.0.0.1:${p.port}`))}
topic = "${target}"
metadata = "locator"
coverage_topic = "${coverage}"
coverage_replicas = ${replicas}
hold_bytes = "4MiB"
commit_bytes = "256KiB"
commit_interval_ms = 200
transaction_timeout_ms = "10s"
connect_timeout_ms = "5s"
request_timeout_ms = "4s"
[sink.sasl]
mechanism = "SCRAM-SHA-512"
username = "${ALICE.user}"
password = "${ALICE.password}"`,
    points: transactionPoints("copy"),
    troubles: {
      ...proxyTroubles(proxies),
      denied: async () => {
        await admin(served, "acl", { kind: "TOPIC", name: target, user: NOBODY_ELSE, operation: "WRITE" });
        return async () => void (await admin(served, "no_acls", { kind: "TOPIC", name: target }));
      },
      too_large: async () => {
        await limit(100);
        return async () => void (await limit(MESSAGE_BYTES));
      },
    },
    judged: { kind: "copy", bootstrap: served.plain.join(","), topic: target },
    orphans: () => openTransactions(served, [target, coverage]),
    async stop() {
      await Promise.all(proxies.map((p) => p.stop()));
      await admin(served, "no_acls", { kind: "TOPIC", name: target }).catch(() => {});
      for (const t of [target, coverage]) await admin(served, "delete", { topic: t }).catch(() => {});
    },
  };
}
