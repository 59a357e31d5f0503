/** What raw files say of themselves: which set they are of, how many files that has, and what it stands for. */
import type { SetFile } from "../core/coverage/reindex.ts";
import { asFailure, Failure } from "../core/failure/failure.ts";
import type { Span } from "../core/records/stream.ts";
import { readParquetFacts } from "./parquet-file.ts";
import type { RawFile } from "./raw-files.ts";

export interface ReadFiles {
  readonly files: readonly SetFile[];
  /** Files that are of no set of this sink. */
  readonly others: readonly string[];
  readonly failures: readonly Failure[];
}

/** One that cannot be read is told, and hides no other. */
export async function readSetFiles(
  found: readonly RawFile[],
  pipeline: string,
  sink: string,
): Promise<ReadFiles> {
  const files: SetFile[] = [];
  const others: string[] = [];
  const failures: Failure[] = [];
  for (const { key, bytes, source } of found)
    try {
      const { metadata, rows } = await readParquetFacts(source, 0);
      const of = metadata["twg.pipeline"] === pipeline && metadata["twg.sink"] === sink;
      const spans = of ? spansOf(metadata["twg.spans"], key) : null;
      const set = metadata["twg.intent"] ?? "";
      if (spans === null || spans.length === 0 || set === "") others.push(key);
      else {
        const count = Number(metadata["twg.files"] ?? "1");
        files.push({ key, bytes, rows: Number(rows), set, files: count, spans });
      }
    } catch (e) {
      failures.push(asFailure(e));
    }
  return { files, others, failures };
}

function spansOf(text: string | undefined, key: string): readonly Span[] | null {
  if (text === undefined) return null;
  try {
    const spans = (JSON.parse(text) as { stream: string; from: string; next: string }[]).map((s) => ({
      stream: String(s.stream),
      from: BigInt(s.from),
      next: BigInt(s.next),
    }));
    if (spans.every((s) => s.from >= 0n && s.from < s.next)) return spans;
  } catch {
    // Told below.
  }
  throw new Failure("inspect.not_parquet", "its metadata twg.spans is not what twg writes", { at: key });
}
