/**
 * The topics of a member of a classic group: what it subscribes to, and, while it leads, how many partitions each topic
 * of any member had at the last assignment. Says when one of both has changed, and the group has to form anew.
 */
import type { TopicRacks } from "../assignors/racks.ts";
import type { TopicFacts } from "./group-machine.ts";

const UNCOUNTED = -1;

export class GroupTopics {
  #names: readonly string[];
  /** What the last join told. */
  #subscribed: ReadonlySet<string> = new Set();
  #known: ReadonlyMap<string, number> = new Map();
  /** Null: we do not lead. UNCOUNTED: of a topic whose partitions nobody knows yet. */
  #counted: Map<string, number> | null = null;
  #racks = new Map<string, string>();
  #knownRacks: ReadonlyMap<string, string> = new Map();

  constructor(names: readonly string[]) {
    this.#names = names;
  }

  know(names: readonly string[], facts: readonly TopicFacts[]): void {
    this.#names = names;
    this.#known = new Map(facts.map((t) => [t.name, t.partitions]));
    this.#knownRacks = new Map(
      facts.flatMap((t): [string, string][] => (t.racks === undefined ? [] : [[t.name, textOf(t.racks)]])),
    );
  }

  /** A join tells these. */
  subscribe(): readonly string[] {
    this.#subscribed = new Set(this.#names);
    return this.#names;
  }

  isSubscribed(topic: string): boolean {
    return this.#subscribed.has(topic);
  }

  follow(): void {
    this.#counted = null;
  }

  /** Partitions by topic, of all members' topics, as they were assigned, and in which racks they were then. */
  lead(partitions: ReadonlyMap<string, number>, racks: TopicRacks): void {
    this.#counted = new Map(partitions);
    this.#racks = new Map([...racks].map(([topic, sets]) => [topic, textOf(sets)]));
  }

  /** What stands was made for the topics as they were: from now on changes are ours to see (KIP-814). */
  leadAgain(topics: readonly string[]): void {
    this.#racks = new Map(this.#knownRacks);
    this.#counted = new Map([...topics.map((t): [string, number] => [t, UNCOUNTED]), ...this.#known]);
  }

  /** Topics that only others read. */
  get watched(): readonly string[] {
    return [...(this.#counted?.keys() ?? [])].filter((topic) => !this.#names.includes(topic));
  }

  /** Why the group has to form anew; null: it has not. */
  change(): string | null {
    const { size } = this.#subscribed;
    if (size !== this.#names.length || this.#names.some((t) => !this.#subscribed.has(t)))
      return `${this.#names.length} topics to read, and had ${size}`;
    if (this.#counted === null) return null;
    for (const [topic, n] of this.#known) {
      const before = this.#counted.get(topic) ?? 0;
      if (before === UNCOUNTED) this.#counted.set(topic, n);
      else if (before !== n) return `topic ${topic} has ${n} partitions, and had ${before}`;
    }
    for (const [topic, racks] of this.#knownRacks) {
      const before = this.#racks.get(topic);
      if (before === undefined) this.#racks.set(topic, racks);
      else if (before !== racks) return `replicas of topic ${topic} are in other racks now`;
    }
    return null;
  }
}

const textOf = (racks: readonly ReadonlySet<string>[]): string =>
  JSON.stringify(racks.map((set) => [...set].sort()));
