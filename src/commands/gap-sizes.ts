/**
 * How large a gap is and how old: raw says both. Bytes are those of the raw files that hold it, by its share of their
 * positions; its age is that of the file that holds its oldest position: since then the sink could have it.
 */
import { rootOf } from "../adapters/parquet/template.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { isBucketUrl } from "../core/config/bucket-url.ts";
import { IndexSegments } from "../core/coverage/index-segments.ts";
import { intersectRanges, normalRanges, type Ranges, unionRanges } from "../core/coverage/ranges.ts";
import type { IndexEntry } from "../core/coverage/state.ts";
import { parseState } from "../core/coverage/state-json.ts";
import type { Range } from "../core/ports/coverage.ts";
import type { Cli } from "./cli.ts";
import { type PipelineConfig, type ResolvedConfig, resolveSecrets, type SinkOf } from "./config-file.ts";
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

/** Null: it is not known, or there is no such file. */
type AgeOf = (key: string) => Promise<number | null>;
type IsThere = (key: string) => Promise<boolean>;

export interface RawOfGaps {
  readonly index: readonly IndexEntry[];
  readonly ageOf: AgeOf;
  readonly isThere: IsThere;
  /** False: nothing of raw at all is there. Rather than lost, it is somewhere else. */
  readonly anyThere: () => Promise<boolean>;
  readonly retentionMs: number | null;
}

/**
 * Null where raw is in a sink that cannot be read again, or nothing has landed. `gaps`: those that are looked at. `counted`: rows of a
 * table are counted, since some of them may be gone; that files are there is always looked at.
 */
export async function rawOfGaps(
  loaded: PipelineConfig,
  cli: Cli,
  gaps: readonly Gap[],
  counted: boolean,
): Promise<RawOfGaps | null> {
  const config = await resolveSecrets(loaded, cli.environment);
  const { sink, pipeline } = config;
  if (sink.type === "postgres" && sink.mode === "append") return tableOfGaps(config, sink, gaps, counted);
  if (sink.type !== "parquet") return null;
  const { objectSinkStores } = await import("./object-stores.ts");
  const { versions } = objectSinkStores(pipeline.name, sink, "inspect", null);
  const newest = await versions.read();
  if (newest === null) return null;
  const state = parseState(newest.bytes, newest.name, newest.version);
  const index = await new IndexSegments(versions, "inspect").all(state);
  const ageOf = await agesOf(sink);
  const isThere = async (key: string) => (await ageOf(key)) !== null;
  const anyThere = () => isAnyThere(index, isThere);
  return { index, ageOf, isThere, anyThere, retentionMs: sink.retention_ms ?? null };
}

async function tableOfGaps(
  config: ResolvedConfig,
  sink: SinkOf<"postgres">,
  gaps: readonly Gap[],
  counted: boolean,
): Promise<RawOfGaps> {
  const { RawTable } = await import("./raw-table.ts");
  const table = new RawTable(config, sink);
  const wanted = new Map<string, Ranges>();
  for (const { stream, ranges } of gaps)
    wanted.set(stream, unionRanges(wanted.get(stream) ?? [], normalRanges(ranges)));
  const index = await table.stretches(wanted);
  const byKey = new Map(index.map((e) => [e.targets[0]?.key, e]));
  const ageOf = async (key: string) => {
    const at = byKey.get(key)?.at ?? null;
    return at === null ? null : Math.max(0, systemClock.now() - at);
  };
  const isThere = async (key: string) => {
    const entry = byKey.get(key);
    return !counted || (entry !== undefined && (await table.isWhole(entry)));
  };
  return { index, ageOf, isThere, anyThere: () => table.hasRows(), retentionMs: null };
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
  { index, ageOf, isThere, retentionMs }: RawOfGaps,
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
    sized.push({ ...gap, bytes, ageMs, expiresMs, gone: await goneOf(gap, holding, isThere) });
  }
  return sized;
}

async function goneOf(gap: Gap, holding: readonly IndexEntry[], isThere: IsThere): Promise<readonly Range[]> {
  const gone: Range[] = [];
  for (const { targets, spans } of holding) {
    const there = await Promise.all(targets.map((t) => isThere(t.key)));
    if (!there.includes(false)) continue;
    const own = normalRanges(spans.filter((s) => s.stream === gap.stream));
    gone.push(...intersectRanges(own, normalRanges(gap.ranges)));
  }
  return normalRanges(gone);
}

async function isAnyThere(index: readonly IndexEntry[], isThere: IsThere): Promise<boolean> {
  for (const { targets } of index.toReversed())
    for (const t of targets) if (await isThere(t.key)) return true;
  return index.length === 0;
}

/** Which part of the positions that a set of files stands for is in the gap, 0 to 1. */
function sharesOf({ spans }: IndexEntry, { stream, ranges }: Gap): number {
  const all = spans.reduce((n, s) => n + Number(s.next - s.from), 0);
  const own = normalRanges(spans.filter((s) => s.stream === stream));
  const inGap = intersectRanges(own, normalRanges(ranges)).reduce((n, r) => n + Number(r.next - r.from), 0);
  return all === 0 ? 0 : inGap / all;
}
