/**
 * Hosts a lane in a Worker. A Worker that throws while loading dies without a word in Bun unless somebody
 * listens, so every way to end is turned into one `dead` message here.
 */
import { Failure, type FailureWire, toWire } from "../../core/failure/failure.ts";
import type { FromLane, ToLane } from "../../core/ports/lane.ts";

/** What a Worker gets as its first message; the lane entry builds its parts from it. */
export interface LaneInit<Config> {
  readonly t: "init";
  readonly lane: number;
  readonly config: Config;
}

/** In a compiled binary modules live under this root and Workers are addressed by their path in the project. */
const EMBEDDED_ROOT = "/$bunfs/";

function laneEntry(): string | URL {
  const here = new URL(import.meta.url);
  if (here.pathname.startsWith(EMBEDDED_ROOT)) return "./src/lane.ts";
  return new URL("../../lane.ts", import.meta.url);
}

/** `More`: messages to the thread itself, beside those to its lane. */
export function spawnWorkerLane<Config, More = never>(
  init: LaneInit<Config>,
): Thread<ToLane | More, FromLane> {
  return spawnThread<ToLane | More, FromLane>(`lane ${init.lane}`, init);
}

interface ThreadEnd {
  readonly t: "dead";
  readonly failure: FailureWire;
}

export interface Thread<To, From> {
  post(message: To, transfer?: ArrayBuffer[]): void;
  onMessage(handler: (message: From) => void): void;
  kill(): void;
}

/** Throws lane.no_thread. */
function newWorker(name: string): Worker {
  try {
    return new Worker(laneEntry());
  } catch (cause) {
    throw new Failure("lane.no_thread", `the system gives no thread: ${(cause as Error).message}`, {
      at: name,
      cause,
      hint: "Raise the limit of processes and threads (TasksMax, ulimit -u, pids of the container), or lower `lanes`",
    });
  }
}

/** A Worker of this program that is built from its first message, whatever it does. Throws lane.no_thread. */
export function spawnThread<To, From extends { readonly t: string }>(
  name: string,
  init: unknown,
): Thread<To, From | ThreadEnd> {
  const worker = newWorker(name);
  let handler: ((message: From | ThreadEnd) => void) | null = null;
  let ended = false;
  const early: (From | ThreadEnd)[] = [];

  const tell = (message: From | ThreadEnd) => {
    if (handler === null) early.push(message);
    else handler(message);
  };
  const end = (why: string) => {
    if (ended) return;
    ended = true;
    const failure = new Failure("lane.died", `${name} ended: ${why}`, { at: name });
    tell({ t: "dead", failure: toWire(failure) });
  };

  worker.addEventListener("error", (e) => end(e.message || "an error without a message"));
  worker.addEventListener("messageerror", () => end("a message could not be read"));
  worker.addEventListener("close", () => end("the thread ended"));
  worker.addEventListener("message", (e: MessageEvent<From>) => {
    if (ended) return;
    if (e.data.t === "dead") ended = true;
    tell(e.data);
  });
  worker.postMessage(init);

  return {
    post(message: To, transfer: ArrayBuffer[] = []) {
      if (!ended) worker.postMessage(message, transfer);
    },
    onMessage(h) {
      handler = h;
      for (const m of early.splice(0)) h(m);
    },
    kill() {
      ended = true;
      worker.terminate();
    },
  };
}
