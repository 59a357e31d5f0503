/** What a torture run needs to know of a sink: how it is configured, where its lives end, and what landed in it. */
import type { Landed } from "./landed.ts";

/** One life of the process. */
export interface Life {
  /** Null: a random moment. */
  readonly point: string | null;
  /** Staged files are taken away before it, as a cleaner of temporary files would: there is nothing to publish. */
  readonly unstaged?: true;
}

export const twice = (points: readonly string[]): Life[] =>
  points.flatMap((p) => [{ point: `${p}:1` }, { point: `${p}:2` }]);

export interface TortureSink {
  /** Lines of TOML: the `[[sink]]` section. */
  readonly section: string;
  /** Lives that end at each point of delivery. */
  readonly points: readonly Life[];
  before(life: Life): void | Promise<void>;
  /** Told which topic is read, before anything is. */
  reads?(topic: string): void;
  /** Time that a process takes longer to begin than with a sink on this machine, ms. */
  readonly slowMs?: number;
  /** Begins to trouble the sink's own server, if it has one; the result ends that and brings it back. */
  trouble(): () => Promise<void>;
  count(): Promise<Landed>;
  /** Where what landed lies as files; null: it is no folder. */
  landing(): Promise<string | null>;
  orphans(): Promise<readonly string[]>;
  /** What differs from what librdkafka reads. */
  compare(bootstrap: string, topic: string): Promise<readonly string[]>;
  /** Figures of its own for the result. */
  figures(): Readonly<Record<string, number | string>>;
  stop(): Promise<void>;
}
