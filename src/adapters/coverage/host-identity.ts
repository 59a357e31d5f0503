/**
 * Who we are on this machine, and whether another process of it still runs, by Linux's /proc. A pid alone proves
 * nothing (it is given out again), and neither does one of another container: boot, namespace and start time must fit.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import type { HostId, HostIdentity, Life } from "../../core/ports/host-identity.ts";

export function linuxIdentity(pid: number = process.pid): HostIdentity {
  const self: HostId = {
    hostname: hostname(),
    pid,
    bootId: text("/proc/sys/kernel/random/boot_id"),
    pidNamespace: namespace(),
    startTime: startOf(statOf(pid)) ?? "",
  };
  return { self, isAlive: (other) => lifeOf(self, other) };
}

function lifeOf(self: HostId, other: HostId): Life {
  const unknown = [self.bootId, self.pidNamespace, other.startTime].includes("");
  if (unknown || other.bootId === "" || other.pidNamespace === "") return "unknown";
  // A machine that was booted anew runs no process of before; but another machine may share the folder.
  if (other.bootId !== self.bootId || other.pidNamespace !== self.pidNamespace) return "unknown";
  const stat = statOf(other.pid);
  // With hidepid set, /proc shows other users' processes as absent; a signal of nothing still finds them.
  if (stat === "") return exists(other.pid) ? "unknown" : "dead";
  return startOf(stat) === other.startTime ? "alive" : "dead";
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (e) {
    return !(e instanceof Error && "code" in e && e.code === "ESRCH");
  }
}

function statOf(pid: number): string {
  return text(`/proc/${pid}/stat`);
}

/** Start of a process in clock ticks since boot (field 22 of /proc/PID/stat); null for none and for a zombie. */
function startOf(stat: string): string | null {
  // The second field is the command in parentheses and may hold anything; count from its end.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (fields.length < 20 || fields[0] === "Z") return null;
  return fields[19] ?? null;
}

function namespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return "";
  }
}

function text(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return "";
  }
}
