/** Runs a command to its end and says what it cost. */
import { readFile } from "node:fs/promises";

export interface Ran {
  readonly stdout: string;
  readonly seconds: number;
  /** User + system, with all its threads. */
  readonly cpu: number;
  /** Largest resident size, MB; null: it was over too soon to be seen. */
  readonly rssMb: number | null;
}

const LOOK_MS = 20;

/**
 * The largest resident size of a process, by its own account, looked at until it ends. `ru_maxrss` will not do: it
 * begins with the size of the process that started it.
 */
async function watchRss(child: Bun.Subprocess): Promise<number | null> {
  let kib: number | null = null;
  while (child.exitCode === null && child.signalCode === null) {
    const status = await readFile(`/proc/${child.pid}/status`, "utf8").catch(() => "");
    const peak = /^VmHWM:\s+(\d+) kB/m.exec(status)?.[1];
    if (peak !== undefined) kib = Math.max(kib ?? 0, Number(peak));
    await Promise.race([child.exited, Bun.sleep(LOOK_MS)]);
  }
  return kib === null ? null : Math.round(kib / 1024);
}

const running = new Set<Bun.Subprocess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

export async function runProcess(
  command: readonly string[],
  environment: Record<string, string> = {},
): Promise<Ran> {
  const begun = performance.now();
  const child = Bun.spawn([...command], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, ...environment },
  });
  running.add(child);
  const ended = child.exited.then(() => (performance.now() - begun) / 1000);
  const [stdout, stderr, code, seconds, rssMb] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
    ended,
    watchRss(child),
  ]);
  running.delete(child);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}:\n${stderr.slice(-2000)}`);
  const usage = child.resourceUsage();
  if (usage === undefined) throw new Error(`${command[0]}: no resource usage`);
  return {
    stdout,
    seconds,
    cpu: Number(usage.cpuTime.total) / 1e6,
    rssMb,
  };
}

/** What a consumer prints as its last line: ours and the peer alike. */
export interface Consumed {
  readonly records: number;
  readonly bytes: number;
  /** From the first connection to the last record. */
  readonly seconds: number;
  readonly hash: string;
}

export function lastLine<T>(stdout: string): T {
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as T;
}

/** A process that serves until `stop`; resolves with the first line that matches. */
export async function serveProcess(
  command: readonly string[],
  ready: RegExp,
): Promise<{ readonly line: string; stop(): Promise<void> }> {
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
  running.add(child);
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of child.stdout) {
    text += decoder.decode(chunk, { stream: true });
    const line = text.split("\n").find((l) => ready.test(l));
    if (line === undefined) continue;
    return {
      line,
      async stop() {
        child.kill("SIGTERM");
        await child.exited;
        running.delete(child);
      },
    };
  }
  throw new Error(`${command.join(" ")} ended before it was ready`);
}

/** A process that serves until `stop`, and says nothing. */
export function startProcess(command: readonly string[]): {
  readonly ended: () => boolean;
  stop(): Promise<void>;
} {
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
  running.add(child);
  return {
    ended: () => child.exitCode !== null,
    async stop() {
      child.kill("SIGTERM");
      await child.exited;
      running.delete(child);
    },
  };
}
