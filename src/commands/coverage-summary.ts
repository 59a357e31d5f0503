/** What `inspect coverage` shows of a coverage state: per stream what is covered, where holes are, what is lost. */
import { holes, normalRanges, subtractRanges, unionRanges } from "../core/coverage/ranges.ts";
import type { CoverageState, StreamState } from "../core/coverage/state.ts";
import { isRecovery, windowsOf } from "../core/coverage/windows.ts";
import type { LostRange, Range } from "../core/ports/coverage.ts";
import type { HostId, Life } from "../core/ports/host-identity.ts";
import { fileCoverage, isFileStream } from "../core/records/file-stream.ts";
import { type Span, type StreamKey, streamParts } from "../core/records/stream.ts";

export interface StreamSummary {
  readonly stream: StreamKey;
  readonly topic: string;
  readonly incarnation: number;
  readonly partition: number;
  readonly generation: number;
  readonly covered: readonly Range[];
  /** Between covered ranges, and not lost. */
  readonly holes: readonly Range[];
  readonly lost: readonly Omit<LostRange, "stream">[];
  /** Positions in `covered`; those of holes that compaction left count, too. */
  readonly positions: bigint;
}

/** Of one stream what a sink lacks. */
export interface Gap {
  readonly stream: StreamKey;
  readonly topic: string;
  readonly incarnation: number;
  readonly partition: number;
  readonly ranges: readonly Range[];
}

/** What is covered in `primary` and not in `other`, but for what that has lost for ever. */
export function gapsBetween(primary: readonly StreamSummary[], other: readonly StreamSummary[]): Gap[] {
  const settled = (s: StreamSummary) => unionRanges(normalRanges(s.covered), normalRanges(s.lost));
  const covered = new Map(other.map((s) => [s.stream, settled(s)]));
  return primary.flatMap(({ stream, topic, incarnation, partition, covered: all }) => {
    const ranges = subtractRanges(normalRanges(all), covered.get(stream) ?? []);
    return ranges.length === 0 ? [] : [{ stream, topic, incarnation, partition, ranges }];
  });
}

export interface CoverageSummary {
  readonly version: number;
  readonly streams: readonly StreamSummary[];
  readonly openIntents: number;
  /** What is being published, or was when its owner ended. */
  readonly intents: readonly {
    readonly set: string;
    readonly files: number;
    readonly rows: number;
    readonly spans: readonly Span[];
  }[];
  readonly owners: number;
  /** Processes that have the sink open. */
  readonly holders: readonly HolderSummary[];
  /** Windows that recovery fills, and from where on streams are live ingest's own. */
  readonly leases: readonly LeaseSummary[];
  /** Published files that the index knows, with their rows and bytes. */
  readonly files: number;
  readonly rows: number;
  readonly bytes: number;
}

export interface HolderSummary {
  readonly instance: string;
  readonly role: "ingest" | "recovery";
  readonly hostname: string;
  readonly pid: number;
  /** Whether it runs; of another machine that is not known. */
  readonly life: Life;
  /** Wall time at which it entered, ms. */
  readonly since: number;
  /** Writes since then: one that stands still is followed after a lease. */
  readonly beat: number;
}

export interface LeaseSummary {
  readonly kind: "window" | "head";
  /** Instance of its holder. */
  readonly holder: string;
  readonly stream: StreamKey;
  readonly topic: string;
  readonly incarnation: number;
  readonly partition: number;
  readonly from: bigint;
  /** Null: a head, which has no end. */
  readonly next: bigint | null;
}

/** `life`: of a process by what it says of itself. */
export function summarizeCoverage(
  state: CoverageState,
  life: (host: HostId) => Life = () => "unknown",
): CoverageSummary {
  const streams = [...state.streams].map(([key, s]) => streamSummary(key, s));
  const sums = { files: 0, rows: 0, bytes: 0 };
  for (const e of state.index) addTo(sums, { files: e.targets.length, rows: e.rows, bytes: e.bytes });
  for (const s of state.segments) addTo(sums, s);
  return {
    version: state.serial,
    streams: streams.sort(byTopic),
    openIntents: state.intents.size,
    intents: [...state.intents.values()].map(({ id: set, targets, rows, spans }) => ({
      ...{ set, files: targets.length, rows },
      spans: spans.map(({ stream, from, next }) => ({ stream, from, next })),
    })),
    owners: state.owners.length,
    holders: state.owners.map(({ instance, host, since, beat }) => ({
      ...{ instance, since, beat, life: life(host) },
      ...{ role: isRecovery(instance) ? "recovery" : "ingest", hostname: host.hostname, pid: host.pid },
    })),
    leases: leasesOf(state),
    ...sums,
  };
}

/** Windows first, each in the order of its stream. */
export function leasesOf(state: Pick<CoverageState, "leases" | "owners">): readonly LeaseSummary[] {
  const leases = windowsOf(state).map(({ holder, stream, from, next }): LeaseSummary => {
    const { topic, incarnation, partition } = streamParts(stream);
    const kind = next === null ? "head" : "window";
    return { kind, holder, stream, topic, incarnation, partition, from, next };
  });
  const rank = ({ kind }: LeaseSummary) => (kind === "window" ? 0 : 1);
  return leases.sort((a, b) => rank(a) - rank(b) || byTopic(a, b) || (a.from < b.from ? -1 : 1));
}

interface Sums {
  files: number;
  rows: number;
  bytes: number;
}

function addTo(sums: Sums, more: Readonly<Sums>): void {
  sums.files += more.files;
  sums.rows += more.rows;
  sums.bytes += more.bytes;
}

/** A file is shown by its digest; the mark of its end is no position of a row. */
function fileSummary(stream: StreamKey, s: StreamState): StreamSummary {
  const { rows, total } = fileCoverage(s.covered);
  const end = total === null ? [] : [{ from: 0n, next: total }];
  return {
    stream,
    topic: stream.split("/").slice(0, 2).join("/"),
    incarnation: 0,
    partition: 0,
    generation: s.generation,
    covered: rows,
    holes: total === null ? holes(rows) : subtractRanges(normalRanges(end), normalRanges(rows)),
    lost: [],
    positions: rows.reduce((n, r) => n + (r.next - r.from), 0n),
  };
}

function streamSummary(stream: StreamKey, s: StreamState): StreamSummary {
  if (isFileStream(stream)) return fileSummary(stream, s);
  const { topic, incarnation, partition } = streamParts(stream);
  const missing = subtractRanges(holes(s.covered), normalRanges(s.lost));
  return {
    stream,
    topic,
    incarnation,
    partition,
    generation: s.generation,
    covered: s.covered,
    holes: missing,
    lost: s.lost,
    positions: s.covered.reduce((n, r) => n + (r.next - r.from), 0n),
  };
}

type Partition = Pick<StreamSummary, "topic" | "incarnation" | "partition">;

function byTopic(a: Partition, b: Partition): number {
  if (a.topic !== b.topic) return a.topic < b.topic ? -1 : 1;
  return a.incarnation - b.incarnation || a.partition - b.partition;
}
