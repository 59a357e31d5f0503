/** Processes of a torture run: each ended by the pid that was started, none left behind. */
import type { Subprocess } from "bun";

export interface Started {
  readonly pid: number;
  readonly process: Subprocess<"ignore", "pipe", "pipe">;
  /** All of stderr so far, for messages. */
  readonly log: () => string;
}

const running = new Set<Started>();

/** `line`: told of each whole line of stderr. */
export function start(
  command: readonly string[],
  environment: Record<string, string> = {},
  line: (text: string) => void = () => {},
): Started {
  const process_ = Bun.spawn([...command], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, ...environment },
  });
  let text = "";
  void (async () => {
    const decoder = new TextDecoder();
    let partial = "";
    for await (const chunk of process_.stderr) {
      const more = decoder.decode(chunk, { stream: true });
      text = (text + more).slice(-20_000);
      const lines = (partial + more).split("\n");
      partial = lines.pop() ?? "";
      lines.forEach(line);
    }
  })();
  const started: Started = { pid: process_.pid, process: process_, log: () => text };
  running.add(started);
  void process_.exited.then(() => running.delete(started));
  return started;
}

/** Resolves with the first line of standard output that the pattern matches; rejects if the process ends before. */
export async function firstLine(s: Started, pattern: RegExp): Promise<string> {
  let text = "";
  for await (const chunk of s.process.stdout) {
    text += new TextDecoder().decode(chunk);
    for (const line of text.split("\n")) if (pattern.test(line)) return line;
  }
  throw new Error(`process ${s.pid} ended without a line like ${pattern}: ${s.log()}`);
}

export async function kill(s: Started, signal: "SIGKILL" | "SIGTERM"): Promise<number> {
  if (s.process.exitCode === null) s.process.kill(signal);
  return await s.process.exited;
}

/** Whatever happens, nothing that we started outlives us. */
process.on("exit", () => {
  for (const s of running) s.process.kill("SIGKILL");
});
