/** What raw files say of themselves: which set they are of, how many files that has, and what it stands for. */
import type { SetFile } from "../core/coverage/reindex.ts";
import type { IndexEntry } from "../core/coverage/state.ts";
import { asFailure, Failure } from "../core/failure/failure.ts";
import type { Span } from "../core/records/stream.ts";
import { readParquetFacts } from "./parquet-file.ts";
import type { RawFile } from "./raw-files.ts";

export interface ReadFiles {
  readonly files: readonly SetFile[];
  /** Files of sets of other sinks. */
  readonly others: readonly string[];
  /** Files that are of no set. */
  readonly unknown: readonly string[];
  /** Files with another number of rows than the set has that they name: somebody put files together, or took rows out. */
  readonly misfits: readonly Pick<SetFile, "key" | "rows" | "set">[];
  readonly failures: readonly Failure[];
}

/** One that cannot be read is told, and hides no other. `index`: sets whose rows are known. */
export async function readSetFiles(
  found: readonly RawFile[],
  pipeline: string,
  sink: string,
  index: readonly IndexEntry[],
): Promise<ReadFiles> {
  const sets = new Map(index.map((e) => [e.id, e]));
  const files: SetFile[] = [];
  const others: string[] = [];
  const unknown: string[] = [];
  const misfits: SetFile[] = [];
  const failures: Failure[] = [];
  for (const { key, bytes, source } of found)
    try {
      const { metadata, rows } = await readParquetFacts(source, 0);
      const of = metadata["twg.pipeline"] === pipeline && metadata["twg.sink"] === sink;
      const spans = of ? spansOf(metadata["twg.spans"], key) : null;
      const set = metadata["twg.intent"] ?? "";
      if (!of && isOfAnother(metadata)) others.push(key);
      else if (spans === null || spans.length === 0 || set === "") unknown.push(key);
      else {
        const count = Number(metadata["twg.files"] ?? "1");
        const file = { key, bytes, rows: Number(rows), set, files: count, spans };
        (agrees(file, sets.get(set)) ? files : misfits).push(file);
      }
    } catch (e) {
      failures.push(asFailure(e));
    }
  return { files, others, unknown, misfits, failures };
}

const OF_A_SET = ["twg.pipeline", "twg.sink", "twg.intent", "twg.spans"];

const isOfAnother = (metadata: Readonly<Record<string, string>>): boolean =>
  OF_A_SET.every((key) => (metadata[key] ?? "") !== "");

/**
 * Jobs that put files together keep the metadata of the first one, most of them: its rows are those of its set no more. A set
 * never has more rows than positions; of one that the index knows each file is known.
 */
function agrees({ rows, files, spans }: SetFile, known: IndexEntry | undefined): boolean {
  const positions = spans.reduce((n, s) => n + (s.next - s.from), 0n);
  if (BigInt(rows) > positions) return false;
  if (known === undefined) return true;
  return known.targets.some((t) => t.rows === rows) || (files === 1 && rows === known.rows);
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
