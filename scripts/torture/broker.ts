/** The broker of a torture run: ours as a process of its own; real-broker.ts has the real ones. */
import { firstLine, kill, start } from "./process.ts";

export interface Topic {
  readonly bootstrap: string;
  readonly name: string;
}

export interface Broker {
  readonly topic: Topic;
  /** Resolves when every record is there. */
  full(): Promise<void>;
  /** Records per partition; asked when the run is over. */
  ends(): Promise<readonly number[]>;
  stop(): Promise<void>;
}

export interface TopicEnds {
  readonly ends: readonly number[];
  readonly produced: number;
}

/** `seconds`: over how long the records come in. */
export async function startBroker(
  name: string,
  records: number,
  partitions: number,
  seed: number,
  seconds: number,
): Promise<Broker> {
  const ends = Array.from({ length: partitions }, (_, p) =>
    Math.floor((records - p + partitions - 1) / partitions),
  );
  const rate = Math.max(1, Math.ceil(records / seconds));
  const args = ["--port", "0", "--topic", name, "--partitions", String(partitions)];
  const more = ["--records", String(records), "--seed", String(seed), "--rate", String(rate)];
  const served = start([process.execPath, "test/brokers/kafka/serve.ts", ...args, ...more]);
  const line = await firstLine(served, /127\.0\.0\.1:\d+/);
  const fullAt = performance.now() + (records / rate) * 1000 + 500;
  const bootstrap = /127\.0\.0\.1:\d+/.exec(line)?.[0] ?? "";
  return {
    topic: { bootstrap, name },
    full: () => Bun.sleep(Math.max(0, fullAt - performance.now())),
    ends: async () => ends,
    stop: async () => void (await kill(served, "SIGTERM")),
  };
}

export async function topicOf(broker: Broker): Promise<TopicEnds> {
  const ends = await broker.ends();
  return { ends, produced: ends.reduce((a, b) => a + b, 0) };
}
