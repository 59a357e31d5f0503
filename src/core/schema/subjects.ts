/** Names under which a registry keeps the schemas of a topic: the three strategies of Confluent's serializers. */

export const SUBJECT_STRATEGIES = ["topic", "record", "topic_record"] as const;
export type SubjectStrategy = (typeof SUBJECT_STRATEGIES)[number];

export interface SubjectParts {
  readonly topic: string;
  readonly part: "key" | "value";
  /** Full name of the record or message, title of a JSON schema; null where it is not known. */
  readonly record: string | null;
}

/** Null: the strategy needs the record's name, and it is not known. */
export function subjectOf(strategy: SubjectStrategy, { topic, part, record }: SubjectParts): string | null {
  switch (strategy) {
    case "topic":
      return `${topic}-${part}`;
    case "record":
      return record;
    case "topic_record":
      return record === null ? null : `${topic}-${record}`;
  }
}
