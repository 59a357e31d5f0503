/** The broker of a torture run: ours as a process of its own, or a real one that is there already. */
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

interface Flags {
  readonly bootstrap?: string | undefined;
  readonly topic: string;
}

/** `seconds`: over how long the records of our own broker come in; a real one has them already. */
export async function startBroker(
  flags: Flags,
  records: number,
  partitions: number,
  seed: number,
  seconds: number,
): Promise<Broker> {
  const ends = Array.from({ length: partitions }, (_, p) =>
    Math.floor((records - p + partitions - 1) / partitions),
  );
  if (flags.bootstrap !== undefined) {
    return {
      topic: { bootstrap: flags.bootstrap, name: flags.topic },
      full: async () => {},
      ends: async () => ends,
      stop: async () => {},
    };
  }
  const rate = Math.max(1, Math.ceil(records / seconds));
  const args = ["--port", "0", "--topic", flags.topic, "--partitions", String(partitions)];
  const more = ["--records", String(records), "--seed", String(seed), "--rate", String(rate)];
  const served = start([process.execPath, "test/brokers/kafka/serve.ts", ...args, ...more]);
  const line = await firstLine(served, /127\.0\.0\.1:\d+/);
  const fullAt = performance.now() + (records / rate) * 1000 + 500;
  const bootstrap = /127\.0\.0\.1:\d+/.exec(line)?.[0] ?? "";
  return {
    topic: { bootstrap, name: flags.topic },
    full: () => Bun.sleep(Math.max(0, fullAt - performance.now())),
    ends: async () => ends,
    stop: async () => void (await kill(served, "SIGTERM")),
  };
}

export async function topicOf(broker: Broker): Promise<TopicEnds> {
  const ends = await broker.ends();
  return { ends, produced: ends.reduce((a, b) => a + b, 0) };
}
