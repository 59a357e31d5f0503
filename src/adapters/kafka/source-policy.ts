/**
 * What to do when a position has no place in the log: below its start, beyond its end, or in a part that an unclean
 * election has cut off. Only retention may be accepted as loss, by policy. A log that was cut reuses offsets for
 * other records, so going on would mix two histories under the same positions: that always stops.
 */
import { Failure } from "../../core/failure/failure.ts";

export type OutOfRangePolicy = "fail" | "earliest" | "latest";

export interface OutOfRange {
  /** `topic/partition` */
  readonly at: string;
  readonly position: bigint;
  readonly earliest: bigint;
  /** High watermark: the true end, whatever may be read of it. */
  readonly latest: bigint;
}

export type Verdict =
  /** In range after all: the broker's view was behind. */
  | { readonly kind: "again" }
  | { readonly kind: "lost"; readonly next: bigint }
  | { readonly kind: "stop"; readonly failure: Failure };

export function judgeOutOfRange(seen: OutOfRange, policy: OutOfRangePolicy): Verdict {
  const { at, position, earliest, latest } = seen;
  if (position > latest) return { kind: "stop", failure: truncated(at, position, latest) };
  if (position >= earliest) return { kind: "again" };
  if (policy === "earliest") return { kind: "lost", next: earliest };
  if (policy === "latest") return { kind: "lost", next: latest };
  const text = `offset ${position} of ${at} is gone: the log holds ${earliest} to ${latest}`;
  return {
    kind: "stop",
    failure: new Failure("kafka.offset_out_of_range", text, {
      at,
      hint: "Retention removed records before they were read. on_out_of_range accepts the loss and records it",
    }),
  };
}

export function truncated(at: string, position: bigint, end: bigint): Failure {
  const text = `the log of ${at} was cut at ${end}, but was read up to ${position}`;
  return new Failure("kafka.truncated", text, {
    at,
    hint: "An unclean leader election lost records that were read; new ones take their offsets. Decide which to keep",
  });
}

/** Under what name troubles with a partition's leader are told. */
export const leaderOf = (topic: string, partition: number): string => `leader of ${topic}/${partition}`;

export function leaderless(topic: string, partition: number): Failure {
  const at = `${topic}/${partition}`;
  return new Failure("kafka.broker_error", `${at} has no leader: none of its in-sync replicas is up`, {
    at,
    hint: "It is read as soon as the cluster gives it a leader again",
    retry: true,
  });
}

export function recreated(topic: string, before: string, now: string): Failure {
  return new Failure(
    "kafka.topic_recreated",
    `topic ${topic} was deleted and made anew (id ${before}, now ${now})`,
    {
      at: topic,
      hint: 'Set source.on_recreated = "new_incarnation" to read the new one as another stream',
    },
  );
}
