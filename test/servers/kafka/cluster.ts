/**
 * A real Kafka cluster on 127.0.0.1 for tests: started, and its single nodes killed and brought back. All of its
 * state is in one folder, so every command is a new process.
 */
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { freePorts } from "../ports.ts";
import { endProcess, isAlive, type ProcessId, sendSignal, startDetached } from "../process.ts";
import { jwksUrl, LISTENERS, type Listener, type Node, nodeProperties } from "./properties.ts";
import type { Release } from "./release.ts";
import { makeTls, type TlsFiles } from "./tls.ts";

/** The SCRAM user of the test clusters; bob (PLAIN) is in properties.ts. */
const SCRAM = ["SCRAM-SHA-256", "SCRAM-SHA-512"].map((m) => `${m}=[name=alice,password=alice-pw]`);

/** 512 MB of heap at most. The quick compiler alone: a test cluster lives for minutes and shares two cores. */
const JVM = ["-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
/** For benchmarks: the compiler as in production. */
const JVM_FULL = ["-Xms256m", "-Xmx1g"];

const READY_MS = 120_000;

export interface Cluster {
  readonly release: Release;
  readonly clusterId: string;
  readonly nodes: readonly Node[];
  readonly tls: TlsFiles;
  readonly jvm: readonly string[];
  /** By node id; a node that was killed keeps its last process. */
  readonly processes: Readonly<Record<number, ProcessId>>;
}

const statePath = (folder: string) => join(folder, "cluster.json");
const nodeFile = (folder: string, node: Node, suffix: string) => join(folder, `node${node.id}${suffix}`);

export function loadCluster(folder: string): Cluster | null {
  return existsSync(statePath(folder))
    ? (JSON.parse(readFileSync(statePath(folder), "utf8")) as Cluster)
    : null;
}

function saveCluster(folder: string, cluster: Cluster): void {
  writeFileSync(`${statePath(folder)}.new`, JSON.stringify(cluster));
  renameSync(`${statePath(folder)}.new`, statePath(folder));
}

export async function startCluster(
  release: Release,
  folder: string,
  count: number,
  full: boolean,
): Promise<Cluster> {
  mkdirSync(folder, { recursive: true });
  const tls = makeTls(join(folder, "tls"));
  const each = LISTENERS.length + 1;
  const ports = await freePorts(count * each);
  const nodes = Array.from({ length: count }, (_, i) => numbered(i + 1, ports.splice(0, each)));
  // Not with a hyphen in front, which the storage tool takes for an option.
  const clusterId = Buffer.of(7, ...crypto.getRandomValues(Buffer.alloc(15))).toString("base64url");
  let cluster: Cluster = { release, clusterId, nodes, tls, jvm: full ? JVM_FULL : JVM, processes: {} };
  await Promise.all(nodes.map((node) => format(cluster, folder, node)));
  // Saved after every start: whatever fails from here on, `stop` finds what runs.
  for (const node of nodes) {
    cluster = launched(cluster, folder, node);
    saveCluster(folder, cluster);
  }
  for (const node of nodes) await ready(cluster, folder, node);
  return cluster;
}

function numbered(id: number, ports: readonly number[]): Node {
  return {
    id,
    ports: Object.fromEntries(LISTENERS.map((l, i) => [l, ports[i]])) as Record<Listener, number>,
    proxyPort: ports[LISTENERS.length] ?? 0,
  };
}

async function format(cluster: Cluster, folder: string, node: Node): Promise<void> {
  const properties = nodeFile(folder, node, ".properties");
  writeFileSync(
    properties,
    nodeProperties(node, cluster.nodes, nodeFile(folder, node, "-data"), cluster.tls),
  );
  const users = SCRAM.flatMap((s) => ["--add-scram", s]);
  const storage = ["kafka.tools.StorageTool", "format", "-t", cluster.clusterId, "-c", properties, ...users];
  const run = Bun.spawn(
    java(cluster.release, ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"], storage),
    {
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  const [out, err] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text()]);
  if ((await run.exited) !== 0) throw new Error(`formatting node ${node.id} failed:\n${out}${err}`);
}

function java(release: Release, flags: readonly string[], main: readonly string[]): [string, ...string[]] {
  return ["java", ...flags, release.logFlag, "-cp", `${release.libs}/*`, ...main];
}

/** A broker reads signing keys from places on this list alone. */
const allowedKeys = (tls: TlsFiles) => `-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=${jwksUrl(tls)}`;

function launched(cluster: Cluster, folder: string, node: Node): Cluster {
  const main = ["kafka.Kafka", nodeFile(folder, node, ".properties")];
  writeFileSync(nodeFile(folder, node, ".log"), "");
  const started = startDetached(
    java(cluster.release, [...cluster.jvm, allowedKeys(cluster.tls)], main),
    folder,
    nodeFile(folder, node, ".log"),
  );
  return { ...cluster, processes: { ...cluster.processes, [node.id]: started } };
}

async function ready(cluster: Cluster, folder: string, node: Node): Promise<void> {
  const log = nodeFile(folder, node, ".log");
  for (const end = performance.now() + READY_MS; performance.now() < end; await Bun.sleep(50)) {
    if (tail(log, 1 << 20).includes("Kafka Server started")) return;
    const p = cluster.processes[node.id];
    if (p === undefined || !isAlive(p))
      throw new Error(`node ${node.id} ended at its start:\n${trouble(log)}`);
  }
  throw new Error(`node ${node.id} was not ready within ${READY_MS / 1000} s:\n${trouble(log)}`);
}

/** What a broker's log says went wrong, or its end. */
function trouble(log: string): string {
  const lines = tail(log, 1 << 20).split("\n");
  const errors = lines.flatMap((l, i) =>
    / (ERROR|FATAL) |^Caused by|Exception/.test(l) ? lines.slice(i, i + 3) : [],
  );
  return (errors.length > 0 ? errors : lines.slice(-30)).slice(0, 40).join("\n");
}

function tail(file: string, bytes: number): string {
  const size = statSync(file).size;
  const buffer = Buffer.alloc(Math.min(size, bytes));
  const fd = openSync(file, "r");
  const n = readSync(fd, buffer, 0, buffer.length, size - buffer.length);
  closeSync(fd);
  return buffer.toString("utf8", 0, n);
}

/** SIGKILL, and waits until it is gone. */
export async function killNode(folder: string, id: number): Promise<void> {
  const process = existing(folder).processes[id];
  if (process === undefined) throw new Error(`there is no node ${id}`);
  sendSignal(process, "SIGKILL");
  await endProcess(process, 5000);
}

/**
 * Brings killed nodes back, on their old ports and data, and waits until they serve. Several at a time where no
 * quorum is left: none of them would serve alone.
 */
export async function upNodes(folder: string, ids: readonly number[]): Promise<void> {
  let cluster = existing(folder);
  const begun: Node[] = [];
  for (const id of ids) {
    const node = cluster.nodes.find((n) => n.id === id);
    if (node === undefined) throw new Error(`there is no node ${id}`);
    const process = cluster.processes[id];
    if (process !== undefined && isAlive(process)) continue;
    cluster = launched(cluster, folder, node);
    saveCluster(folder, cluster);
    begun.push(node);
  }
  for (const node of begun) await ready(cluster, folder, node);
}

export async function stopCluster(folder: string): Promise<void> {
  const cluster = loadCluster(folder);
  if (cluster === null) return;
  await Promise.all(Object.values(cluster.processes).map((p) => endProcess(p, 10_000)));
}

function existing(folder: string): Cluster {
  const cluster = loadCluster(folder);
  if (cluster === null) throw new Error(`there is no cluster in ${folder}`);
  return cluster;
}

/** Bootstrap addresses of one listener. */
export function addresses(cluster: Cluster, listener: Listener): string[] {
  return cluster.nodes.map((n) => `127.0.0.1:${n.ports[listener]}`);
}
