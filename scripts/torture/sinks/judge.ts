/** What a run with several sinks is judged by, besides the comparison of raw with the topic. */
import { python_ } from "../../../test/e2e/real-kafka.ts";
import type { Place } from "./place.ts";
import type { Witness } from "./run.ts";

export interface SinkVerdict {
  readonly rows: number;
  readonly lost: number;
  readonly doubled: number;
  /** Rows of no raw record. */
  readonly foreign: number;
  readonly differing: number;
  readonly samples: readonly string[];
}

/** Each sink beside the primary one against raw, row for row, by readers that are not ours. */
export function compareSinks(
  landing: string,
  topic: string,
  places: readonly Place[],
): Promise<{ readonly raw: number; readonly sinks: Readonly<Record<string, SinkVerdict>> }> {
  const sinks = Object.fromEntries(places.map((p) => [p.name, p.judged]));
  return python_("compare_sinks.py", [landing, JSON.stringify({ topic, sinks })]);
}

/**
 * Positions from which somebody read again what raw had: covered before the process began, or acknowledged by another
 * one before it began the partition. Who was stopped for a while may do the second when it wakes. `canary`: as if the
 * last one had begun at the start of each partition.
 */
export function askedAgain(witnesses: readonly Witness[], canary: boolean): string[] {
  const found: string[] = [];
  const acknowledged = witnesses.flatMap(({ life }) => life.acknowledged);
  const last = witnesses.at(-1)?.life;
  for (const { life, before } of witnesses)
    for (const { partition, position: told, at } of life.asked) {
      const position = canary && life === last ? 0 : told;
      const range = (before.get(partition) ?? []).find(([from, next]) => from <= position && position < next);
      if (range !== undefined)
        found.push(`${life.name} asked for ${partition}@${position}, and raw had [${range.join(", ")})`);
      if (life.stopped) continue;
      const mark = acknowledged.find((m) => m.partition === partition && m.at < at && m.position > position);
      if (mark !== undefined)
        found.push(`${life.name} asked for ${partition}@${position}, and ${mark.position} was acknowledged`);
    }
  return found;
}
