/**
 * Two real S3 servers on 127.0.0.1 for tests: versitygw, plain and with TLS, and SeaweedFS. They differ in keys, codes
 * and races, which is why there are two. All of their state is in one folder, so every command is a new process.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTls } from "../kafka/tls.ts";
import { freePorts } from "../ports.ts";
import { endProcess, isAlive, type ProcessId, startDetached } from "../process.ts";

const VERSITYGW = "1.8.0";
const READY_MS = 60_000;
const KEYS = { accessKey: "twgtest", secretKey: "twgtestsecret" } as const;
const READ_ONLY = { accessKey: "twgread", secretKey: "twgreadsecret" } as const;

/** One endpoint. The bucket `BUCKET` is there; tests keep apart by prefixes. */
export interface S3Server {
  readonly endpoint: string;
  readonly accessKey: string;
  readonly secretKey: string;
  readonly bucket: string;
}

/** What TWG_REAL_S3 holds. */
export interface S3Servers {
  readonly versitygw: S3Server;
  readonly versitygwTls: S3Server & { readonly ca: string; readonly wrongCa: string };
  readonly seaweedfs: S3Server & { readonly readOnly: typeof READ_ONLY };
}

interface Running {
  readonly name: string;
  readonly process: ProcessId;
}

const statePath = (folder: string) => join(folder, "s3.json");

/** `weed`: the program of SeaweedFS. `cache`: where versitygw is built once and kept. */
export async function startS3(folder: string, weed: string, cache: string): Promise<S3Servers> {
  mkdirSync(folder, { recursive: true });
  const certificates = join(folder, "tls");
  const tls = makeTls(certificates);
  const vgw = buildVersitygw(cache);
  const [plain = 0, secure = 0, ...rest] = await freePorts(11);
  const running: Running[] = [];
  const began = (name: string, process: ProcessId) => {
    running.push({ name, process });
    writeFileSync(statePath(folder), JSON.stringify(running));
    return process;
  };
  const gateway = began("versitygw", startVersitygw(vgw, folder, "versitygw", plain, null));
  const gatewayTls = began(
    "versitygw-tls",
    startVersitygw(vgw, folder, "versitygw-tls", secure, certificates),
  );
  const s3Port = rest[0] ?? 0;
  const seaweed = began("seaweedfs", startSeaweed(weed, folder, rest));
  const health = async (url: string) => (await fetch(url)).ok;
  await ready(folder, "versitygw", gateway, () => health(`http://127.0.0.1:${plain}/health`));
  await ready(folder, "versitygw-tls", gatewayTls, () => isOpen(secure));
  await ready(folder, "seaweedfs", seaweed, () => health(`http://127.0.0.1:${s3Port}/healthz`));
  // Healthy is not yet writable: a volume must be there.
  await ready(folder, "seaweedfs", seaweed, () => health(`http://127.0.0.1:${rest[1]}/dir/assign`));
  const bucket = "lake";
  const at = (endpoint: string): S3Server => ({ endpoint, ...KEYS, bucket });
  return {
    versitygw: at(`http://127.0.0.1:${plain}`),
    versitygwTls: { ...at(`https://127.0.0.1:${secure}`), ca: tls.ca, wrongCa: tls.wrongCa },
    seaweedfs: { ...at(`http://127.0.0.1:${s3Port}`), readOnly: READ_ONLY },
  };
}

export async function stopS3(folder: string): Promise<void> {
  if (!existsSync(statePath(folder))) return;
  const running = JSON.parse(readFileSync(statePath(folder), "utf8")) as Running[];
  await Promise.all(running.map((r) => endProcess(r.process, 10_000)));
}

/** Built from its Go module the first time; minutes then, nothing later. */
function buildVersitygw(cache: string): string {
  const folder = join(cache, `versitygw-${VERSITYGW}`);
  const program = join(folder, "versitygw");
  if (existsSync(program)) return program;
  console.error(`servers: building versitygw ${VERSITYGW}`);
  mkdirSync(folder, { recursive: true });
  const module = `github.com/versity/versitygw/cmd/versitygw@v${VERSITYGW}`;
  const env = { ...process.env, GOBIN: folder, GOFLAGS: "-buildvcs=false" };
  const done = Bun.spawnSync(["go", "install", module], { env, stdout: "ignore", stderr: "pipe" });
  if (done.exitCode !== 0) throw new Error(`versitygw: ${done.stderr.toString().slice(-1000)}`);
  return program;
}

function startVersitygw(
  program: string,
  folder: string,
  name: string,
  port: number,
  /** Folder of the certificates; null: plain. */
  tls: string | null,
): ProcessId {
  const at = (part: string) => {
    const path = join(folder, name, part);
    mkdirSync(path, { recursive: true });
    return path;
  };
  process.env["ROOT_ACCESS_KEY"] = KEYS.accessKey;
  process.env["ROOT_SECRET_KEY"] = KEYS.secretKey;
  // A bucket is a folder of the root.
  at("root/lake");
  const server = ["--port", `127.0.0.1:${port}`, "--quiet", "--health", "/health", "--iam-dir", at("iam")];
  const secure = tls === null ? [] : ["--cert", `${tls}/server.crt`, "--key", `${tls}/server.key`];
  const names = ["--virtual-domain", `s3.localhost:${port}`];
  // Metadata beside the files: not every file system of a test machine has extended attributes.
  const store = ["posix", "--sidecar", at("meta"), at("root")];
  return startDetached(
    [program, ...server, ...names, ...secure, ...store],
    folder,
    join(folder, `${name}.log`),
  );
}

function startSeaweed(weed: string, folder: string, ports: readonly number[]): ProcessId {
  const [s3, master, masterGrpc, volume, volumeGrpc, filer, filerGrpc, s3Grpc] = ports;
  const data = join(folder, "seaweedfs");
  mkdirSync(data, { recursive: true });
  const identity = (name: string, keys: { accessKey: string; secretKey: string }, actions: string[]) => ({
    name,
    credentials: [keys],
    actions,
  });
  const all = ["Admin", "Read", "Write", "List", "Tagging"];
  const identities = [identity("full", KEYS, all), identity("readonly", READ_ONLY, ["Read", "List"])];
  const config = join(folder, "seaweedfs.json");
  writeFileSync(config, JSON.stringify({ identities }));
  process.env["GOMEMLIMIT"] = "256MiB";
  const flags = {
    dir: data,
    ip: "127.0.0.1",
    "ip.bind": "127.0.0.1",
    "master.port": master,
    "master.port.grpc": masterGrpc,
    "master.volumeSizeLimitMB": 64,
    "master.volumePreallocate": false,
    "volume.max": 0,
    "volume.port": volume,
    "volume.port.grpc": volumeGrpc,
    "filer.port": filer,
    "filer.port.grpc": filerGrpc,
    "filer.localSocket": join(folder, "filer.sock"),
    "s3.localSocket": join(folder, "s3.sock"),
    filer: true,
    s3: true,
    "s3.autoCreateBucket": false,
    "s3.cacheCapacityMB": 0,
    "s3.port": s3,
    "s3.port.grpc": s3Grpc,
    "s3.port.iceberg": 0,
    "s3.port.lance": 0,
    "s3.domainName": "s3.localhost",
    "s3.config": config,
  };
  const args = Object.entries(flags).map(([k, v]) => `-${k}=${v}`);
  return startDetached([weed, "-logtostderr=true", "server", ...args], folder, join(folder, "seaweedfs.log"));
}

async function isOpen(port: number): Promise<boolean> {
  const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {} } });
  socket.end();
  return true;
}

async function ready(
  folder: string,
  name: string,
  process: ProcessId,
  look: () => Promise<boolean>,
): Promise<void> {
  const log = () => readFileSync(join(folder, `${name}.log`), "utf8").slice(-2000);
  for (const end = performance.now() + READY_MS; performance.now() < end; await Bun.sleep(50)) {
    if (await look().catch(() => false)) return;
    if (!isAlive(process)) throw new Error(`${name} ended:\n${log()}`);
  }
  throw new Error(`${name} is not ready after ${READY_MS} ms:\n${log()}`);
}
