/** Records that keep coming while something else happens, written by librdkafka and acknowledged by all in-sync replicas. */
import { pythonPath, type Served, scriptPath } from "./real-kafka.ts";

export interface Fed {
  readonly acknowledged: number;
  readonly failed: number;
}

export interface FeedOptions {
  /** Null: whichever the keys say, also of those that are added meanwhile. */
  readonly partitions: number | null;
  /** Records a second. */
  readonly rate: number;
  readonly codecs?: readonly string[];
  /** Ends by itself after so many. */
  readonly limit?: number;
  /** Values are JSON: of so many one is cut short, and one is missing. */
  readonly spoil?: number;
  /** So many bytes more in each value, which no codec makes smaller. */
  readonly pad?: number;
}

export interface Feeder {
  /** Stops it, and waits until every record has its acknowledgement. */
  stop(): Promise<Fed>;
  /** Ends it at once, whatever is under way. */
  abandon(): Promise<void>;
}

const running = new Set<Bun.Subprocess>();

/** Ends those that nobody stopped, as a test does not that failed. */
export async function abandonFeeders(): Promise<void> {
  for (const child of running) child.kill("SIGKILL");
  await Promise.all([...running].map((child) => child.exited));
  running.clear();
}

/** Resolves once the first record is acknowledged. */
export async function feed(served: Served, topic: string, options: FeedOptions): Promise<Feeder> {
  const bootstrap = served.plain.join(",");
  const child = Bun.spawn([pythonPath(), scriptPath("feed.py"), bootstrap, topic, JSON.stringify(options)], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  running.add(child);
  const lines = linesOf(child.stdout);
  const first = await lines.next();
  if (first.value !== "started") throw new Error(`feed.py: ${await new Response(child.stderr).text()}`);
  return {
    async stop() {
      child.stdin.end();
      const last = await lines.next();
      await child.exited;
      running.delete(child);
      return JSON.parse(last.value ?? "null") as Fed;
    },
    async abandon() {
      child.kill("SIGKILL");
      await child.exited;
      running.delete(child);
    },
  };
}

/** Writes so many records and waits for all of them. */
export async function feedAll(
  served: Served,
  topic: string,
  partitions: number,
  limit: number,
): Promise<Fed> {
  const feeder = await feed(served, topic, { partitions, rate: 1_000_000, limit });
  return feeder.stop();
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      yield text.slice(0, end);
      text = text.slice(end + 1);
    }
  }
  return undefined;
}
