/**
 * A real PostgreSQL on 127.0.0.1 for tests, with pgbouncer in transaction mode before it where that can be had:
 * started, killed and brought back. All of its state is in one folder, so every command is a new process.
 */
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { makeTls, type TlsFiles } from "../kafka/tls.ts";
import { freePorts } from "../ports.ts";
import { endProcess, isAlive, type ProcessId, sendSignal, startDetached } from "../process.ts";

const READY_MS = 60_000;
/** The superuser of the test servers. */
export const SUPERUSER = { user: "twg", password: "pw of twg's" } as const;
/** Databases: any connection; TLS only; TLS and a client certificate. */
const DATABASES = ["twg", "tlsonly", "certonly"] as const;

export interface PostgresServer {
  readonly version: string;
  readonly bin: string;
  readonly port: number;
  /** Port of pgbouncer; null: there is none. */
  readonly bouncerPort: number | null;
  readonly tls: TlsFiles;
  /** User of the operating system that the server runs as; null: ours. */
  readonly runAs: { readonly uid: number; readonly gid: number } | null;
  readonly processes: { readonly postgres?: ProcessId; readonly pgbouncer?: ProcessId };
}

const statePath = (folder: string) => join(folder, "postgres.json");

export function loadPostgres(folder: string): PostgresServer | null {
  return existsSync(statePath(folder))
    ? (JSON.parse(readFileSync(statePath(folder), "utf8")) as PostgresServer)
    : null;
}

function save(folder: string, server: PostgresServer): void {
  writeFileSync(`${statePath(folder)}.new`, JSON.stringify(server));
  renameSync(`${statePath(folder)}.new`, statePath(folder));
}

/** Folder of the newest server programs on this machine; null: none. */
export function findPrograms(): string | null {
  const root = "/usr/lib/postgresql";
  const versions = existsSync(root) ? readdirSync(root).map(Number).filter(Number.isInteger) : [];
  const newest = versions.sort((a, b) => b - a).find((v) => existsSync(join(root, String(v), "bin/initdb")));
  return newest === undefined ? null : join(root, String(newest), "bin");
}

/** PostgreSQL refuses to run as root. */
function userToRunAs(): PostgresServer["runAs"] {
  if (process.geteuid?.() !== 0) return null;
  for (const name of ["postgres", "nobody"]) {
    const line = readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .find((l) => l.startsWith(`${name}:`));
    const [, , uid, gid] = line?.split(":") ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error("there is no user that PostgreSQL could run as");
}

function as(server: Pick<PostgresServer, "runAs">, argv: readonly string[]): [string, ...string[]] {
  const [program = "", ...args] = argv;
  if (server.runAs === null) return [program, ...args];
  const { uid, gid } = server.runAs;
  return ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups", program, ...args];
}

function give(server: Pick<PostgresServer, "runAs">, path: string, mode: number): void {
  if (server.runAs !== null) chownSync(path, server.runAs.uid, server.runAs.gid);
  chmodSync(path, mode);
}

function run(cwd: string, argv: readonly string[], env: Record<string, string> = {}): string {
  const done = Bun.spawnSync([...argv], { cwd, env: { ...process.env, ...env }, stdin: "ignore" });
  if (!done.success) throw new Error(`${argv.join(" ")}: ${done.stderr}${done.stdout}`);
  return done.stdout.toString();
}

export async function startPostgres(folder: string): Promise<PostgresServer> {
  const bin = findPrograms();
  if (bin === null) throw new Error("there are no PostgreSQL server programs");
  mkdirSync(folder, { recursive: true });
  const tls = makeTls(join(folder, "tls"));
  const [port, bouncerPort] = (await freePorts(2)) as [number, number];
  const runAs = userToRunAs();
  const version = run(folder, [join(bin, "postgres"), "--version"]).replace(/[^0-9.]*([0-9.]+).*\s*/, "$1");
  const pgbouncer = existsSync("/usr/sbin/pgbouncer");
  let server: PostgresServer = {
    version,
    bin,
    port,
    bouncerPort: pgbouncer ? bouncerPort : null,
    tls,
    runAs,
    processes: {},
  };
  passable(folder);
  initialise(folder, server);
  server = await launchPostgres(folder, server);
  for (const name of DATABASES) psql(server, "postgres", `create database ${name}`);
  if (pgbouncer) server = await launchBouncer(folder, server);
  return server;
}

/** The server's user must be able to walk down to its data. */
function passable(folder: string): void {
  for (let p = folder; p !== dirname(p); p = dirname(p)) {
    try {
      chmodSync(p, 0o755);
    } catch {
      return;
    }
    if (p.endsWith("/.cache")) return;
  }
}

function initialise(folder: string, server: PostgresServer): void {
  const at = (name: string) => join(folder, name);
  for (const name of ["data", "sock"]) {
    mkdirSync(at(name));
    give(server, at(name), 0o700);
  }
  writeFileSync(at("pw"), SUPERUSER.password);
  give(server, at("pw"), 0o600);
  const options = ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"];
  const init = [join(server.bin, "initdb"), "-D", at("data"), "-U", SUPERUSER.user, `--pwfile=${at("pw")}`];
  run(folder, as(server, [...init, ...options]));
  for (const [from, to] of [
    ["server.key", "server.key"],
    ["server.crt", "server.crt"],
    ["ca.crt", "ca.crt"],
  ] as const) {
    copyFileSync(join(folder, "tls", from), at(`data/${to}`));
    give(server, at(`data/${to}`), 0o600);
  }
  writeFileSync(
    at("data/postgresql.auto.conf"),
    `listen_addresses = '127.0.0.1'
port = ${server.port}
unix_socket_directories = '${at("sock")}'
ssl = on
ssl_cert_file = 'server.crt'
ssl_key_file = 'server.key'
ssl_ca_file = 'ca.crt'
password_encryption = scram-sha-256
shared_buffers = 64MB
max_connections = 100
max_prepared_transactions = 10
wal_level = minimal
max_wal_senders = 0
# A killed server process loses nothing that the kernel has: only a machine that stops would.
fsync = off
`,
  );
  give(server, at("data/postgresql.auto.conf"), 0o600);
  writeFileSync(
    at("data/pg_hba.conf"),
    `local all all scram-sha-256
hostssl certonly all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca
hostnossl tlsonly,certonly all 127.0.0.1/32 reject
host all md5user 127.0.0.1/32 md5
host all plainuser 127.0.0.1/32 password
host all all 127.0.0.1/32 scram-sha-256
`,
  );
}

async function launchPostgres(folder: string, server: PostgresServer): Promise<PostgresServer> {
  const argv = as(server, [join(server.bin, "postgres"), "-D", join(folder, "data")]);
  const postgres = startDetached(argv, folder, join(folder, "postgres.log"));
  const started = { ...server, processes: { ...server.processes, postgres } };
  save(folder, started);
  const isReady = [join(server.bin, "pg_isready"), "-q", "-h", "127.0.0.1", "-p", String(server.port)];
  await ready(folder, "postgres", postgres, () => Bun.spawnSync(isReady).success);
  return started;
}

async function launchBouncer(folder: string, server: PostgresServer): Promise<PostgresServer> {
  const file = join(folder, "pgbouncer.ini");
  const users = join(folder, "users.txt");
  writeFileSync(users, `"${SUPERUSER.user}" "${SUPERUSER.password}"\n`);
  writeFileSync(
    file,
    `[databases]
* = host=127.0.0.1 port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${server.bouncerPort}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = transaction
max_client_conn = 200
default_pool_size = 4
server_login_retry = 1
logfile = ${join(folder, "pgbouncer.own.log")}
`,
  );
  writeFileSync(join(folder, "pgbouncer.own.log"), "");
  for (const f of [file, users, join(folder, "pgbouncer.own.log")]) give(server, f, 0o600);
  const argv = as(server, ["/usr/sbin/pgbouncer", "-q", file]);
  const pgbouncer = startDetached(argv, folder, join(folder, "pgbouncer.log"));
  const started = { ...server, processes: { ...server.processes, pgbouncer } };
  save(folder, started);
  await ready(folder, "pgbouncer", pgbouncer, () => listens(server.bouncerPort ?? 0));
  return started;
}

async function listens(port: number): Promise<boolean> {
  try {
    const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {} } });
    socket.end();
    return true;
  } catch {
    return false;
  }
}

async function ready(
  folder: string,
  name: string,
  process: ProcessId,
  is: () => boolean | Promise<boolean>,
): Promise<void> {
  const log = join(folder, `${name}.log`);
  for (const end = performance.now() + READY_MS; performance.now() < end; await Bun.sleep(50)) {
    if (await is()) return;
    if (!isAlive(process)) throw new Error(`${name} ended at its start:\n${readFileSync(log, "utf8")}`);
  }
  throw new Error(`${name} was not ready within ${READY_MS / 1000} s:\n${readFileSync(log, "utf8")}`);
}

/** One statement as the superuser, by the server's own client; its output as text. */
export function psql(
  server: Pick<PostgresServer, "port" | "bin">,
  database: string,
  statement: string,
): string {
  const target = `host=127.0.0.1 port=${server.port} user=${SUPERUSER.user} dbname=${database}`;
  return run("/", ["psql", "-qtAX", "-v", "ON_ERROR_STOP=1", target, "-c", statement], {
    PGPASSWORD: SUPERUSER.password,
  }).trim();
}

/** SIGKILL of the server's first process; its others end by themselves when they notice. */
export async function killPostgres(folder: string): Promise<void> {
  const process = existing(folder).processes.postgres;
  if (process === undefined) throw new Error("the server was never started");
  sendSignal(process, "SIGKILL");
  await endProcess(process, 5000);
}

/** Brings a server that was killed back, on its port and data. */
export async function upPostgres(folder: string): Promise<void> {
  const server = existing(folder);
  const process = server.processes.postgres;
  if (process !== undefined && isAlive(process)) return;
  // Former backends that have not noticed yet hold the shared memory: then the start fails and is tried again.
  for (let tries = 1; ; tries++) {
    try {
      await launchPostgres(folder, server);
      return;
    } catch (e) {
      if (tries === 20) throw e;
      await Bun.sleep(250);
    }
  }
}

export async function stopPostgres(folder: string): Promise<void> {
  const server = loadPostgres(folder);
  if (server === null) return;
  const { postgres, pgbouncer } = server.processes;
  // SIGINT: a fast shutdown, which ends the sessions that are still open.
  if (postgres !== undefined && isAlive(postgres)) process.kill(postgres.pid, "SIGINT");
  await Promise.all([pgbouncer, postgres].map((p) => (p === undefined ? undefined : endProcess(p, 10_000))));
}

function existing(folder: string): PostgresServer {
  const server = loadPostgres(folder);
  if (server === null) throw new Error(`there is no PostgreSQL server in ${folder}`);
  return server;
}
