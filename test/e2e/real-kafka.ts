/** The real brokers and the independent client of the end-to-end tests, as scripts/with-servers.sh hands them over. */
import { dirname, join } from "node:path";

export interface Served {
  readonly version: string;
  readonly plain: readonly string[];
  readonly tls: readonly string[];
  readonly sasl: readonly string[];
  readonly sasltls: readonly string[];
  readonly mtls: readonly string[];
  /** Of each node a listener that clients reach through a proxy alone: see test/servers/main.ts. */
  readonly behind: readonly { readonly address: string; readonly proxyPort: number }[];
  readonly ca: string;
  readonly wrongCa: string;
  readonly clientCert: string;
  readonly clientKey: string;
  readonly clusterId: string;
  /** Shell commands to which a node number is appended. */
  readonly killNode: string;
  readonly upNode: string;
}

/** Users of every test cluster; see test/servers/kafka. */
export const ALICE = { user: "alice", password: "alice-pw" } as const;
export const BOB = { user: "bob", password: "bob,pw=1" } as const;

const python = process.env.TWG_PYTHON ?? "";
const found = JSON.parse(process.env.TWG_REAL_KAFKA ?? "{}") as Record<string, Omit<Served, "version">>;

export const CLUSTERS: readonly Served[] =
  python === "" ? [] : Object.entries(found).map(([version, served]) => ({ ...served, version }));

/** The cluster for tests that one version is enough for. */
export const MAIN: Served | null = CLUSTERS.find((c) => c.plain.length >= 3) ?? CLUSTERS[0] ?? null;

let serial = 0;

/** A name that no other test and no other run uses. */
export function fresh(prefix: string): string {
  return `${prefix}-${process.pid}-${Math.floor(performance.now())}-${serial++}`;
}

/** Runs a script of ./python to its end; its last line is its result. */
export async function python_<T>(
  script: string,
  args: readonly string[],
  program: string = python,
): Promise<T> {
  const child = Bun.spawn([program, scriptPath(script), ...args], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(`${script} ${args.slice(0, 2).join(" ")}: ${err}${out}`);
  return JSON.parse(out.trim().split("\n").at(-1) ?? "") as T;
}

export const scriptPath = (script: string): string => join(import.meta.dir, "python", script);
export const pythonPath = (): string => python;

/** A command of python/admin.py. */
export function admin<T>(served: Served, command: string, parameters: Record<string, unknown>): Promise<T> {
  return python_<T>("admin.py", [served.plain.join(","), command, JSON.stringify(parameters)]);
}

export interface TopicShape {
  readonly partitions?: number;
  readonly config?: Record<string, string>;
}

/** Retention is off: the timestamps of test records are of any age. */
export async function createTopic(served: Served, topic: string, shape: TopicShape = {}): Promise<void> {
  const replicas = Math.min(3, served.plain.length);
  const config = { "retention.ms": "-1", ...shape.config };
  await admin(served, "create", { topic, replicas, partitions: 1, ...shape, config });
}

/** Offsets by partition number. */
export type Offsets = Record<string, number>;

export const commitsOf = (served: Served, topic: string, group: string) =>
  admin<Offsets>(served, "commits", { topic, group });
export const endsOf = (served: Served, topic: string) => admin<Offsets>(served, "ends", { topic });

export async function killNode(served: Served, node: number): Promise<void> {
  await shell(`${served.killNode} ${node}`);
}

/** Nodes that run already are left alone. */
export async function upNodes(served: Served, nodes: readonly number[]): Promise<void> {
  await shell(`${served.upNode} ${nodes.join(" ")}`);
}

async function shell(command: string): Promise<void> {
  const child = Bun.spawn(["sh", "-c", command], { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const err = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`${command}: ${err}`);
}

/** Folder of a node's partitions on disk. */
export function logFolder(served: Served, node: number): string {
  return join(dirname(dirname(served.ca)), `node${node}-data`);
}

export interface Compared {
  readonly files: number;
  readonly rows: number;
  readonly kafka_rows: number;
  readonly kafka: Record<string, unknown>;
  readonly duckdb: Record<string, unknown>;
  readonly differences: readonly string[];
}

/** What librdkafka reads against what pyarrow and DuckDB find in the files: every value of every record. */
export function compareWithKafka(served: Served, topic: string, folder: string): Promise<Compared> {
  return python_<Compared>("compare.py", [served.plain.join(","), topic, folder]);
}
