/**
 * Real servers for tests, by command line. Used by scripts/with-servers.sh; by hand:
 *
 *   bun test/servers/main.ts start RUN --owner PID [--full-jvm] VERSION:NODES...   prints the value of TWG_REAL_KAFKA
 *   bun test/servers/main.ts kill FOLDER NODE | up FOLDER NODE...
 *   bun test/servers/main.ts stop RUN
 *
 * RUN is a folder for everything of one run; each cluster has a folder below it. `start` first ends the servers of
 * earlier runs whose owner is gone, so that a run which was killed leaves nothing for ever.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { addresses, type Cluster, killNode, startCluster, stopCluster, upNodes } from "./kafka/cluster.ts";
import { fetchRelease, type Release } from "./kafka/release.ts";
import { stopPostgres } from "./postgres/server.ts";
import { stopS3 } from "./s3/server.ts";

const CACHE = resolve(import.meta.dir, "../../.cache/servers");

/** What TWG_REAL_KAFKA holds for each version. */
interface RealKafka {
  plain: string[];
  tls: string[];
  sasl: string[];
  sasltls: string[];
  mtls: string[];
  /** OAUTHBEARER with signed tokens: see properties.ts for issuer and audience. */
  jwt: string[];
  tokenKey: string;
  /** As sasl, but a login lasts 2 s. */
  reauth: string[];
  /** As sasl. Of each node where it listens, and the port that it names to clients: a proxy has to listen there. */
  behind: { address: string; proxyPort: number }[];
  ca: string;
  wrongCa: string;
  clientCert: string;
  clientKey: string;
  clusterId: string;
  /** Shell commands: append a node number from 1. `kill` is SIGKILL; `up` takes several and returns when they serve again. */
  killNode: string;
  upNode: string;
}

function describe(cluster: Cluster, folder: string): RealKafka {
  const command = (verb: string) =>
    `${process.execPath} ${join(import.meta.dir, "main.ts")} ${verb} ${folder}`;
  return {
    plain: addresses(cluster, "PLAIN"),
    tls: addresses(cluster, "TLS"),
    sasl: addresses(cluster, "SASL"),
    sasltls: addresses(cluster, "SASLTLS"),
    mtls: addresses(cluster, "MTLS"),
    jwt: addresses(cluster, "JWT"),
    reauth: addresses(cluster, "REAUTH"),
    behind: addresses(cluster, "BEHIND").map((address, i) => ({
      address,
      proxyPort: cluster.nodes[i]?.proxyPort ?? 0,
    })),
    tokenKey: cluster.tls.tokenKey,
    ca: cluster.tls.ca,
    wrongCa: cluster.tls.wrongCa,
    clientCert: cluster.tls.clientCert,
    clientKey: cluster.tls.clientKey,
    clusterId: cluster.clusterId,
    killNode: command("kill"),
    upNode: command("up"),
  };
}

async function start(run: string, owner: string, full: boolean, wanted: readonly string[]): Promise<void> {
  await sweep(dirname(run));
  mkdirSync(run, { recursive: true });
  writeFileSync(join(run, "owner"), owner);
  const releases = wanted.map((item) => {
    const [version, count] = item.split(":") as [string, string];
    return { release: fetchRelease(version, CACHE), count: Number(count) };
  });
  const described = releases.map(async ({ release, count }): Promise<[string, RealKafka]> => {
    const folder = join(run, `kafka-${release.version}`);
    const began = performance.now();
    const cluster = await startTwice(release, folder, count, full);
    console.error(
      `servers: Kafka ${release.version}, ${count} node(s), ready in ${Math.round(performance.now() - began)} ms`,
    );
    return [release.version, describe(cluster, folder)];
  });
  // The order is that of the call: tests take the first as the main one.
  const result = Object.fromEntries(await Promise.all(described));
  console.log(JSON.stringify(result));
}

/** Between finding a port free and a broker's bind somebody else may take it: then once more, with other ports. */
async function startTwice(release: Release, folder: string, count: number, full: boolean): Promise<Cluster> {
  try {
    return await startCluster(release, folder, count, full);
  } catch (e) {
    console.error(`servers: ${e instanceof Error ? e.message : String(e)}\nservers: trying once more`);
    await stopCluster(folder);
    rmSync(folder, { recursive: true, force: true });
    return await startCluster(release, folder, count, full);
  }
}

async function stop(run: string): Promise<void> {
  if (!existsSync(run)) return;
  await stopPostgres(join(run, "postgres"));
  await stopS3(join(run, "s3"));
  await Promise.all(readdirSync(run).map((name) => stopCluster(join(run, name))));
  rmSync(run, { recursive: true, force: true });
}

async function sweep(runs: string): Promise<void> {
  if (!existsSync(runs)) return;
  for (const name of readdirSync(runs)) {
    const owner = join(runs, name, "owner");
    if (existsSync(owner) && !existsSync(`/proc/${readFileSync(owner, "utf8").trim()}`))
      await stop(join(runs, name));
  }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    owner: { type: "string", default: String(process.ppid) },
    "full-jvm": { type: "boolean", default: false },
  },
});
const [verb, folder = "", ...rest] = positionals;
const path = resolve(folder);
switch (verb) {
  case "start":
    await start(path, values.owner, values["full-jvm"], rest);
    break;
  case "kill":
    await killNode(path, Number(rest[0]));
    break;
  case "up":
    await upNodes(path, rest.map(Number));
    break;
  case "stop":
    await stop(path);
    break;
  default:
    console.error("usage: see the head of test/servers/main.ts");
    process.exit(2);
}
