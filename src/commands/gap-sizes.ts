/**
 * How large a gap is and how old: raw says both. Bytes are those of the raw files that hold it, by its share of their
 * positions; its age is that of the file that holds its oldest position: since then the sink could have it.
 */
import { rootOf } from "../adapters/parquet/template.ts";
import { isBucketUrl } from "../core/config/bucket-url.ts";
import { IndexSegments } from "../core/coverage/index-segments.ts";
import { intersectRanges, normalRanges } from "../core/coverage/ranges.ts";
import type { IndexEntry } from "../core/coverage/state.ts";
import { parseState } from "../core/coverage/state-json.ts";
import type { Range } from "../core/ports/coverage.ts";
import type { Cli } from "./cli.ts";
import { type PipelineConfig, resolveSecrets, type SinkOf } from "./config-file.ts";
import type { Gap } from "./coverage-summary.ts";

export interface SizedGap extends Gap {
  /** Of raw, about. */
  readonly bytes: number;
  /** Null: raw does not know a file that holds its oldest position, or it is gone. */
  readonly ageMs: number | null;
  /** Until whatever removes raw files removes that one, by `retention_ms`; null: it is not known. */
  readonly expiresMs: number | null;
  /** What of it raw has no more: its files are not there. */
  readonly gone: readonly Range[];
}

type AgeOf = (key: string) => Promise<number | null>;

export interface RawOfGaps {
  readonly index: readonly IndexEntry[];
  readonly ageOf: AgeOf;
  readonly retentionMs: number | null;
}

/** Null where raw is in a sink of another kind, or nothing has landed. */
export async function rawOfGaps(loaded: PipelineConfig, cli: Cli): Promise<RawOfGaps | null> {
  const config = await resolveSecrets(loaded, cli.environment);
  const { sink, pipeline } = config;
  if (sink.type !== "parquet") return null;
  const { objectSinkStores } = await import("./object-stores.ts");
  const { versions } = objectSinkStores(pipeline.name, sink, "inspect", null);
  const newest = await versions.read();
  if (newest === null) return null;
  const state = parseState(newest.bytes, newest.name, newest.version);
  return {
    index: await new IndexSegments(versions, "inspect").all(state),
    ageOf: await agesOf(sink),
    retentionMs: sink.retention_ms ?? null,
  };
}

async function agesOf(sink: SinkOf<"parquet">): Promise<AgeOf> {
  const root = rootOf(sink.path);
  if (!isBucketUrl(root)) {
    const { fileAge } = await import("./object-stores.ts");
    return (key) => fileAge(root, key);
  }
  const { openBucket } = await import("./bucket-reader.ts");
  const listed = new Map((await openBucket(root, sink.s3).list("")).map((o) => [o.key, o.ageMs]));
  return async (key) => listed.get(key) ?? null;
}

export async function sizedGaps(
  gaps: readonly Gap[],
  { index, ageOf, retentionMs }: RawOfGaps,
): Promise<readonly SizedGap[]> {
  const sized: SizedGap[] = [];
  for (const gap of gaps) {
    const holding = index.filter((e) => sharesOf(e, gap) > 0);
    const first = gap.ranges[0]?.from ?? 0n;
    const oldest = holding.find((e) =>
      e.spans.some((s) => s.stream === gap.stream && s.from <= first && first < s.next),
    );
    const key = oldest?.targets[0]?.key;
    const bytes = Math.round(holding.reduce((n, e) => n + e.bytes * sharesOf(e, gap), 0));
    const ageMs = key === undefined ? null : await ageOf(key);
    const expiresMs = ageMs === null || retentionMs === null ? null : Math.max(0, retentionMs - ageMs);
    sized.push({ ...gap, bytes, ageMs, expiresMs, gone: await goneOf(gap, holding, ageOf) });
  }
  return sized;
}

async function goneOf(gap: Gap, holding: readonly IndexEntry[], ageOf: AgeOf): Promise<readonly Range[]> {
  const gone: Range[] = [];
  for (const { targets, spans } of holding) {
    const ages = await Promise.all(targets.map((t) => ageOf(t.key)));
    if (ages.every((a) => a !== null)) continue;
    const own = normalRanges(spans.filter((s) => s.stream === gap.stream));
    gone.push(...intersectRanges(own, normalRanges(gap.ranges)));
  }
  return normalRanges(gone);
}

/** Nothing of raw is there at all: rather than lost, it is somewhere else. */
export async function isRawThere({ index, ageOf }: RawOfGaps): Promise<boolean> {
  for (const { targets } of index.toReversed())
    for (const t of targets) if ((await ageOf(t.key)) !== null) return true;
  return index.length === 0;
}

/** Which part of the positions that a set of files stands for is in the gap, 0 to 1. */
function sharesOf({ spans }: IndexEntry, { stream, ranges }: Gap): number {
  const all = spans.reduce((n, s) => n + Number(s.next - s.from), 0);
  const own = normalRanges(spans.filter((s) => s.stream === stream));
  const inGap = intersectRanges(own, normalRanges(ranges)).reduce((n, r) => n + Number(r.next - r.from), 0);
  return all === 0 ? 0 : inGap / all;
}
