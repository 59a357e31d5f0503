/**
 * Which topics are read: those of a list, or all whose names match a pattern, as they come and go.
 *
 * A pattern is matched here, against the metadata of all topics, whoever shares the partitions: so it means the same
 * with every protocol and broker. Internal topics (`__...`) are never among them.
 */
import { Failure } from "../../core/failure/failure.ts";
import type { TopicFacts } from "./session/group-machine.ts";
import type { MatchedTopics, MetadataChange, MetadataState, TopicsWanted } from "./session/metadata-state.ts";
import { keyOf, type TopicPartition } from "./source-offsets.ts";
import type { TopicPattern } from "./topic-pattern.ts";

/** What a configuration says of topics: names, or a pattern. */
export interface TopicOptions {
  readonly topics: readonly string[];
  readonly topicsPattern: TopicPattern | null;
}

/** A topic is taken for deleted once it was missing for so long: brokers that start may not know of it yet. */
const VANISHED_MS = 30_000;
/** How often to look while nothing matches, or one is missing, should metadata be asked for less often. */
const LOOK_AGAIN_MS = 10_000;

const INTERNAL = "__";

/** Topics by a pattern, and `also` those. */
export function wantedTopics(
  { topics, topicsPattern }: TopicOptions,
  also: readonly string[] = [],
): TopicsWanted {
  if (topicsPattern === null) return also.length === 0 ? topics : [...new Set([...topics, ...also])];
  return {
    text: topicsPattern.text,
    also,
    matches: (name) => !name.startsWith(INTERNAL) && topicsPattern.matches(name),
  };
}

export class SourceTopics {
  readonly #o: TopicOptions;
  #names: readonly string[];
  /** Monotonic time since when a topic that was there is missing. */
  readonly #missing = new Map<string, number>();
  /** Partitions that were there at the first look, null before it. */
  #first: Set<string> | null = null;

  constructor(options: TopicOptions) {
    this.#o = options;
    this.#names = options.topics;
  }

  /** Those that are read now. */
  get names(): readonly string[] {
    return this.#names;
  }

  /** `also`: others that somebody has to know of. */
  wanted(also: readonly string[] = []): TopicsWanted {
    return wantedTopics(this.#o, also);
  }

  /** Takes over what a look at all topics has found. Returns those that are gone, whose partitions are not read any more. */
  found(change: MetadataChange, metadata: MetadataState, now: number): readonly string[] {
    if (this.#o.topicsPattern === null) return [];
    const wanted = wantedTopics(this.#o) as MatchedTopics;
    const names = new Set(
      [...change.topics].filter((name) => wanted.matches(name) && metadata.topics.has(name)),
    );
    const gone: string[] = [];
    for (const name of this.#names) {
      if (change.topics.has(name)) {
        this.#missing.delete(name);
        names.add(name);
        continue;
      }
      const since = this.#missing.get(name) ?? now;
      this.#missing.set(name, since);
      if (now - since < VANISHED_MS) names.add(name);
      else gone.push(name);
    }
    for (const name of gone) {
      this.#missing.delete(name);
      metadata.topics.delete(name);
    }
    this.#names = [...names].sort();
    return gone;
  }

  /** The first look is over: what is there now was there when we came. */
  settled(metadata: MetadataState): void {
    this.#first = new Set(
      this.#names.flatMap((name) =>
        [...(metadata.topics.get(name)?.partitions.keys() ?? [])].map((p) => keyOf(name, p)),
      ),
    );
  }

  /** What metadata has of ours and of those that are `watched`; with the racks of their replicas. */
  facts(metadata: MetadataState, watched: readonly string[], withRacks: boolean): TopicFacts[] {
    return [...new Set([...this.#names, ...watched])].flatMap((name) => {
      const topic = metadata.topics.get(name);
      if (topic === undefined) return [];
      const racks = withRacks ? { racks: metadata.racksOf(name) } : {};
      return [{ name, id: topic.topicId, partitions: topic.partitions.size, ...racks }];
    });
  }

  /** It came after we did: all that it holds was written since. */
  appeared({ topic, partition }: TopicPartition): boolean {
    return this.#first !== null && !this.#first.has(keyOf(topic, partition));
  }

  /** Longest pause before the next look. */
  pauseMs(refreshMs: number): number {
    const isSoon = this.isWaiting || this.#missing.size > 0;
    return isSoon ? Math.min(refreshMs, LOOK_AGAIN_MS) : refreshMs;
  }

  /** Nothing matches. */
  get isWaiting(): boolean {
    return this.#names.length === 0;
  }

  /** Null: nothing is missing. */
  get trouble(): Failure | null {
    const [name] = this.#missing.keys();
    if (name !== undefined) {
      return new Failure("kafka.unknown_topic", `topic ${name} is not there any more`, {
        at: name,
        hint: "It is read on if it comes back; what was not read of a topic that was deleted is gone",
        retry: true,
      });
    }
    if (!this.isWaiting) return null;
    const { text } = this.#o.topicsPattern!;
    return new Failure("kafka.unknown_topic", `no topic matches ${text}: waiting for one`, {
      at: "source.topics_pattern",
      hint: "The whole name must match. A user without DESCRIBE on topics does not see them",
      retry: true,
    });
  }
}
