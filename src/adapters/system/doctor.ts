/** The machine's part of `twg doctor`: kernel, memory limit, descriptors, and room on the file systems in use. */
import { access, constants, readFile, statfs } from "node:fs/promises";
import { arch, release, totalmem } from "node:os";
import { dirname, resolve } from "node:path";
import { MIB } from "../../core/config/option-types.ts";
import { formatBytes } from "../../core/observe/quantities.ts";
import { type Checkup, type Finding, failed, ok, skipped, warning } from "../../core/ports/doctor.ts";

/** What the program, its libraries and its threads take before the first record, measured; see docs/benchmarks.md. */
const BASE_BYTES = 200 * MIB;
/** Sockets, libraries, logs, coverage: beside the files that a sink keeps open. */
const OTHER_DESCRIPTORS = 128;
/** The system calls that the runtime takes for granted. */
const LEAST_KERNEL: readonly [number, number] = [4, 18];

export interface HostNeeds {
  readonly version: string;
  readonly lanes: number;
  /** `pipeline.max_bytes`. */
  readonly budgetBytes: number;
  /** What the sink holds beside that, bytes. */
  readonly sinkBytes: number;
  /** Files that a lane keeps open at once. */
  readonly filesPerLane: number;
  /** Folders that are written to; they need not be there yet. */
  readonly folders: readonly { readonly path: string; readonly leastBytes: number }[];
}

/** Where the kernel tells of itself; tests lay other folders. */
export interface HostPlaces {
  readonly proc: string;
  readonly cgroup: string;
  readonly totalMemory: number;
}

const SYSTEM: HostPlaces = { proc: "/proc", cgroup: "/sys/fs/cgroup", totalMemory: totalmem() };

export function hostCheckup(needs: HostNeeds, places: HostPlaces = SYSTEM): Checkup {
  return {
    name: "host",
    at: "this machine",
    run: async ({ report }) => {
      report(versions(needs.version));
      report(kernel(release()));
      report(memory(needs, await memoryLimit(places), places.totalMemory));
      report(await descriptors(needs, places));
      for (const { path, leastBytes } of needs.folders)
        for (const f of await room(path, leastBytes)) report(f);
    },
  };
}

function versions(version: string): Finding {
  return ok("host.program", "twg", `${version}, Bun ${Bun.version}, ${process.platform} ${arch()}`);
}

export function kernel(text: string): Finding {
  const [major = 0, minor = 0] = text.split(".").map((n) => Number.parseInt(n, 10));
  const [least, leastMinor] = LEAST_KERNEL;
  if (major > least || (major === least && minor >= leastMinor)) return ok("host.kernel", "Linux", text);
  return warning(
    "host.kernel",
    "Linux",
    text,
    `Nothing older than ${least}.${leastMinor} is tried; update the machine`,
  );
}

export function memory(
  { budgetBytes, sinkBytes, lanes }: HostNeeds,
  limit: number | null,
  total: number,
): Finding {
  const have = Math.min(limit ?? total, total);
  const need = BASE_BYTES + 2 * budgetBytes + sinkBytes;
  const what = limit === null || limit >= total ? "of memory" : "memory limit";
  const seen = `${formatBytes(have)} ${what}, about ${formatBytes(need)} needed (${lanes} lanes, max_bytes ${formatBytes(budgetBytes)}, sink ${formatBytes(sinkBytes)})`;
  const advice = "Raise the limit, or lower pipeline.max_bytes";
  if (have < BASE_BYTES + budgetBytes) return failed("host.memory", "this machine", seen, advice);
  return have < need
    ? warning("host.memory", "this machine", seen, advice)
    : ok("host.memory", "this machine", seen);
}

/** Bytes that this process's control group may take, the smallest on the way up; null: no limit, or none to be read. */
export async function memoryLimit({
  proc,
  cgroup,
}: Pick<HostPlaces, "proc" | "cgroup">): Promise<number | null> {
  const groups = await textOf(`${proc}/self/cgroup`);
  const v1 = /^\d+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(.*)$/m.exec(groups)?.[1];
  const v2 = /^0::(.*)$/m.exec(groups)?.[1];
  const [root, file, path] =
    v1 === undefined ? [cgroup, "memory.max", v2 ?? "/"] : [`${cgroup}/memory`, "memory.limit_in_bytes", v1];
  let least: number | null = null;
  // Inside a container the path may be the host's, of which only the root is shown.
  for (let at = path; ; at = dirname(at)) {
    const text = (await textOf(`${root}${at === "/" ? "" : at}/${file}`)).trim();
    const bytes = /^\d+$/.test(text) ? Number(text) : null;
    if (bytes !== null && (least === null || bytes < least)) least = bytes;
    if (at === "/" || at === ".") return least;
  }
}

async function descriptors({ filesPerLane, lanes }: HostNeeds, { proc }: HostPlaces): Promise<Finding> {
  const need = filesPerLane * lanes + OTHER_DESCRIPTORS;
  const line = /^Max open files\s+(\d+|unlimited)/m.exec(await textOf(`${proc}/self/limits`))?.[1];
  if (line === undefined) return skipped("host.descriptors", "this process", "the limit cannot be read");
  const have = line === "unlimited" ? Number.POSITIVE_INFINITY : Number(line);
  const seen = `${line} open files allowed, up to ${need} needed`;
  if (have >= need) return ok("host.descriptors", "this process", seen);
  const advice =
    "Raise it: LimitNOFILE= of the unit, ulimits of the container, or lower max_open_files of the sink";
  return warning("host.descriptors", "this process", seen, advice);
}

/** Below this share of a file system somebody should look. */
const LOW_SHARE = 0.05;

/** Space, files and the right to write where `path` is or will be made. */
export async function room(path: string, leastBytes: number): Promise<Finding[]> {
  const folder = await existing(resolve(path));
  const at = resolve(path);
  const findings: Finding[] = [];
  try {
    const s = await statfs(folder);
    findings.push(space(at, s.bavail * s.bsize, s.blocks * s.bsize, leastBytes));
    // Some file systems make entries as they need them and say 0 of 0.
    if (s.files > 0) findings.push(inodes(at, s.ffree, s.files));
  } catch (e) {
    findings.push(skipped("host.disk", at, `the file system does not tell (${codeOf(e)})`));
  }
  findings.push(await writable(at, folder));
  return findings;
}

function space(at: string, free: number, total: number, leastBytes: number): Finding {
  const seen = `${formatBytes(free)} of ${formatBytes(total)} free`;
  const advice = "Free some space, or write to a larger file system";
  if (free < leastBytes)
    return failed("host.disk", at, `${seen}, at least ${formatBytes(leastBytes)} needed`, advice);
  return free < total * LOW_SHARE ? warning("host.disk", at, seen, advice) : ok("host.disk", at, seen);
}

function inodes(at: string, free: number, total: number): Finding {
  const seen = `${free} of ${total} files free`;
  const advice = "Remove small files, or make the file system with more inodes";
  if (free === 0) return failed("host.inodes", at, seen, advice);
  return free < total * LOW_SHARE ? warning("host.inodes", at, seen, advice) : ok("host.inodes", at, seen);
}

async function writable(at: string, folder: string): Promise<Finding> {
  const made = folder === at ? "" : `; it will be made below ${folder}`;
  try {
    await access(folder, constants.W_OK | constants.X_OK);
    return ok("host.folder", at, `may be written${made}`);
  } catch (e) {
    const uid = process.getuid?.() ?? -1;
    const advice = `Give it to user ${uid} (chown), or run as its owner`;
    return failed("host.folder", at, `may not be written by user ${uid} (${codeOf(e)})${made}`, advice);
  }
}

/** The folder, or the nearest one above it that is there. */
async function existing(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    try {
      await access(at, constants.F_OK);
      return at;
    } catch (e) {
      if (at === dirname(at) || codeOf(e) !== "ENOENT") return at;
    }
  }
}

async function textOf(path: string): Promise<string> {
  return readFile(path, "utf8").catch(() => "");
}

function codeOf(e: unknown): string {
  return e instanceof Error && "code" in e ? String(e.code) : String(e);
}
