/** Server processes that outlive the command that started them, known by pid and never by name. */
import { spawn } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";

/** A pid alone may have been given to somebody else; with its start time it names one process. */
export interface ProcessId {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat, clock ticks since boot. */
  readonly startTime: string;
}

export function startDetached(argv: readonly [string, ...string[]], cwd: string, logFile: string): ProcessId {
  const log = openSync(logFile, "a");
  const [program, ...args] = argv;
  const child = spawn(program, args, { cwd, detached: true, stdio: ["ignore", log, log] });
  closeSync(log);
  child.unref();
  const { pid } = child;
  if (pid === undefined) throw new Error(`${program} could not be started`);
  return { pid, startTime: startTimeOf(pid) ?? "" };
}

export function isAlive(p: ProcessId): boolean {
  return startTimeOf(p.pid) === p.startTime;
}

export function sendSignal(p: ProcessId, name: "SIGTERM" | "SIGKILL"): void {
  if (isAlive(p)) process.kill(p.pid, name);
}

/** Asks it to end, waits, and insists after `patienceMs`. */
export async function endProcess(p: ProcessId, patienceMs: number): Promise<void> {
  sendSignal(p, "SIGTERM");
  if (await goneWithin(p, patienceMs)) return;
  sendSignal(p, "SIGKILL");
  await goneWithin(p, 5000);
}

async function goneWithin(p: ProcessId, ms: number): Promise<boolean> {
  for (const end = performance.now() + ms; performance.now() < end; await Bun.sleep(50))
    if (!isAlive(p)) return true;
  return !isAlive(p);
}

/** Null for a process that is gone, or that only waits to be reaped. */
function startTimeOf(pid: number): string | null {
  try {
    // The name in parentheses may hold spaces: count from the last parenthesis, where field 3 (state) follows.
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ").at(-1)!.split(" ");
    // After SIGKILL the first thread is a zombie while others still hold the sockets open.
    const dead = fields[0] === "Z" && readdirSync(`/proc/${pid}/task`).length <= 1;
    return dead ? null : (fields[19] ?? null);
  } catch {
    return null;
  }
}
