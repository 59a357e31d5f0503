/** The key-value metadata that files of a set carry: who wrote them, under which intent, for which spans. */
import type { Span } from "../../core/records/stream.ts";

export interface SetWriter {
  readonly version: string;
  readonly pipeline: string;
  readonly sink: string;
}

/**
 * All files of a set carry the set's spans: together they hold exactly those. `files`: how many they are; null where
 * a set is one file by nature.
 */
export function setMetadata(
  { version, pipeline, sink }: SetWriter,
  intent: string,
  files: number | null,
  spans: readonly Span[],
): readonly (readonly [string, string])[] {
  const text = spans.map((s) => ({ stream: s.stream, from: String(s.from), next: String(s.next) }));
  return [
    ["twg.version", version],
    ["twg.pipeline", pipeline],
    ["twg.sink", sink],
    ["twg.intent", intent],
    ...(files === null ? [] : [["twg.files", String(files)] as const]),
    ["twg.spans", JSON.stringify(text)],
  ];
}
