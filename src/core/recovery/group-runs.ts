/**
 * Of whom the rows of a row group are, without reading more of it than topic, partition and position: streams take
 * turns in a raw file, and each turn's positions rise.
 */
import { Int64Pages } from "../formats/parquet/read-columns.ts";
import type { ChunkInfo, ParquetFooter } from "../formats/parquet/read-footer.ts";
import { type ColumnRuns, NO_VALUE, RunsReader } from "../formats/parquet/read-runs.ts";
import { type Inflate, PageDamage, type StoredPages } from "../formats/parquet/stored-pages.ts";
import { int64At } from "../records/int64-at.ts";
import { leafOf, OWN_SHAPES, ownPages } from "./raw-columns.ts";

/** Rows of one topic and partition that follow one another. */
export interface Turn {
  readonly topic: string;
  readonly partition: number;
  /** Row after its last one. */
  readonly end: number;
}

export interface TurnPositions extends Turn {
  readonly first: bigint;
  readonly last: bigint;
}

/** Leaves that `turnPositions` reads: they stand side by side in a file. */
export const SCANNED: readonly number[] = (
  ["source_topic", "source_partition", "source_offset"] as const
).map(leafOf);

const TEXT = new TextDecoder();

/** Null: stored otherwise than `twg` does. */
export function readTurns(
  file: Uint8Array,
  footer: Pick<ParquetFooter, "leaves">,
  chunks: readonly ChunkInfo[],
  inflate: Inflate,
): readonly Turn[] | null {
  const reader = new RunsReader(inflate);
  const read = (name: "source_topic" | "source_partition"): ColumnRuns | null => {
    const pages = ownPages(file, footer, chunks, name);
    return pages === null
      ? null
      : reader.read(file, pages, { physical: OWN_SHAPES[name].physical, required: false });
  };
  const [topic, partition] = [read("source_topic"), read("source_partition")];
  return topic === null || partition === null ? null : joined(topic, partition);
}

/** Rows without a topic or partition are nobody's. */
function joined(topic: ColumnRuns, partition: ColumnRuns): readonly Turn[] {
  const topics = topic.dictionary.map((t) => TEXT.decode(t));
  const partitions = partition.dictionary.map((p) => new DataView(p.buffer).getInt32(0, true));
  const turns: Turn[] = [];
  for (let t = 0, p = 0; t < topic.count && p < partition.count; ) {
    const end = Math.min(topic.ends[t]!, partition.ends[p]!);
    const [name, number] = [topics[topic.values[t]!] ?? "", partitions[partition.values[p]!] ?? NO_VALUE];
    turns.push({ topic: name, partition: number, end });
    if (topic.ends[t] === end) t++;
    if (partition.ends[p] === end) p++;
  }
  return turns;
}

/** Null: stored otherwise than `twg` does, or the positions of a turn do not rise. */
export function turnPositions(
  file: Uint8Array,
  footer: Pick<ParquetFooter, "leaves">,
  chunks: readonly ChunkInfo[],
  inflate: Inflate,
): readonly TurnPositions[] | null {
  const turns = readTurns(file, footer, chunks, inflate);
  const pages = ownPages(file, footer, chunks, "source_offset");
  if (turns === null || pages === null) return null;
  return withPositions(file, turns, pages, inflate);
}

function withPositions(
  file: Uint8Array,
  turns: readonly Turn[],
  pages: StoredPages,
  inflate: Inflate,
): readonly TurnPositions[] | null {
  const offsets = new Int64Pages(0, inflate);
  offsets.open(file, pages);
  const found: TurnPositions[] = [];
  let row = 0;
  for (const turn of turns) {
    offsets.seek(row);
    const first = int64At(offsets.pairs, row - offsets.first);
    let last = first - 1n;
    while (row < turn.end) {
      offsets.seek(row);
      const from = row - offsets.first;
      const to = Math.min(turn.end, offsets.end) - offsets.first;
      if (int64At(offsets.pairs, from) <= last || !rises(offsets.pairs, from, to)) return null;
      last = int64At(offsets.pairs, to - 1);
      row += to - from;
    }
    found.push({ ...turn, first, last });
  }
  return found;
}

/** Int64 pairs of rows [from, to), each above the one before. */
export function rises(pairs: Int32Array, from: number, to: number): boolean {
  for (let i = 2 * from + 2; i < 2 * to; i += 2) {
    const [high, before] = [pairs[i + 1]!, pairs[i - 1]!];
    if (high < before || (high === before && pairs[i]! >>> 0 <= pairs[i - 2]! >>> 0)) return false;
  }
  return true;
}

/** What cannot be read where it stands is told with its place. */
export function orDamage<T>(read: () => T, damaged: (why: string) => Error): T {
  try {
    return read();
  } catch (e) {
    throw e instanceof PageDamage ? damaged(e.message) : e;
  }
}
