/**
 * What the coverage topic of a Kafka sink holds, as keys and JSON values, `1/<pipeline>/<sink>/<kind>/<name>`:
 *
 *   partition 0, written only under the sink's lock (lock.ts)
 *     owner/<instance>    who has the sink open            stream/<stream>  generation, writer, origin, losses
 *     topic/<name>        incarnation of a source's topic  lease/<window>   leases of recovery windows
 *     target/<topic>      id of a topic that was written to
 *     holder/<instance>   transactional id of a recovery process, until it is fenced: windows.ts
 *     beat/<instance>     sign of life                 head/<instance>/<stream>  see windows.ts; these two are written
 *                                                                                without the lock
 *   partition 1, written in the transactions of the records
 *     range/<stream>/<generation>  what was covered under it; a claim unites all of a stream under the new one
 *     range/<stream>/-<lease>      what was covered under a lease: negative, so that older versions read it as well
 *
 * Positions are texts: JSON's numbers would be exact here, but not in everything that may print them.
 */
import { normalRanges, type Ranges, unionRanges } from "../../../core/coverage/ranges.ts";
import {
  type CoverageState,
  EMPTY_STATE,
  type Owner,
  type StreamState,
} from "../../../core/coverage/state.ts";
import type { Window } from "../../../core/coverage/windows.ts";
import { Failure } from "../../../core/failure/failure.ts";
import type { LostRange } from "../../../core/ports/coverage.ts";
import type { HostId } from "../../../core/ports/host-identity.ts";
import type { StreamKey } from "../../../core/records/stream.ts";

const FORMAT = "1";
export const STATE_PARTITION = 0;
export const RANGE_PARTITION = 1;
export const COVERAGE_PARTITIONS = 2;

export interface SinkKey {
  readonly pipeline: string;
  readonly sink: string;
}

/** What was covered under one generation. */
export interface Landed {
  readonly ranges: Ranges;
  readonly rows: number;
  readonly bytes: number;
}

export interface SinkState {
  /** Without what is covered. */
  readonly coverage: CoverageState;
  /** Transactional id under which a stream is written; none: nobody writes it. */
  readonly writers: ReadonlyMap<StreamKey, string>;
  /** Topic id by name. */
  readonly targets: ReadonlyMap<string, string>;
  /** Transactional id of each recovery process that is there, or that nobody has fenced since it left. */
  readonly holders: ReadonlyMap<string, string>;
  /** Of owners under the generations that their streams have. Read only: owners write them themselves. */
  readonly heads: readonly Window[];
}

export type Entries = ReadonlyMap<string, string>;

const prefixOf = ({ pipeline, sink }: SinkKey): string => `${FORMAT}/${pipeline}/${sink}/`;

export const beatKey = (key: SinkKey, instance: string): string => `${prefixOf(key)}beat/${instance}`;
export const headKey = (key: SinkKey, instance: string, stream: StreamKey): string =>
  `${prefixOf(key)}head/${instance}/${stream}`;
export const rangeKey = (key: SinkKey, stream: StreamKey, generation: number): string =>
  `${prefixOf(key)}range/${stream}/${generation}`;

interface StreamJson {
  readonly generation: number;
  readonly groupEpoch: number | null;
  readonly owner: string | null;
  readonly writer: string | null;
  readonly origin: string | null;
  readonly staleCommit: string | null;
  readonly lost: readonly { readonly from: string; readonly next: string; readonly reason: string }[];
}

interface HeadJson {
  readonly generation: number;
  readonly from: string;
}

export function encodeHead(generation: number, from: bigint): string {
  const json: HeadJson = { generation, from: String(from) };
  return JSON.stringify(json);
}

const position = (text: string | null): bigint | null => (text === null ? null : BigInt(text));
const textOf = (at: bigint | null): string | null => (at === null ? null : String(at));

/** The state that the entries of partition 0 tell. Throws coverage.corrupt. */
export function decodeState(key: SinkKey, entries: Entries): SinkState {
  const owners: Owner[] = [];
  const streams = new Map<StreamKey, StreamState>();
  const writers = new Map<StreamKey, string>();
  const topics = new Map<string, { topicId: string; incarnation: number }>();
  const leases = new Map<string, { lease: number; owner: string }>();
  const targets = new Map<string, string>();
  const holders = new Map<string, string>();
  const told: { holder: string; stream: StreamKey; generation: number; from: bigint }[] = [];
  const read: Record<string, (name: string, json: unknown) => void> = {
    owner(instance, json) {
      const { host, since } = json as { host: HostId; since: number };
      owners.push({ instance, host, since, beat: Number(entries.get(beatKey(key, instance)) ?? 0) });
    },
    stream(name, json) {
      const s = json as StreamJson;
      if (s.writer !== null) writers.set(name, s.writer);
      streams.set(name, streamOf(s));
    },
    topic: (name, json) => void topics.set(name, json as { topicId: string; incarnation: number }),
    lease: (name, json) => void leases.set(name, json as { lease: number; owner: string }),
    target: (name, json) => void targets.set(name, (json as { topicId: string }).topicId),
    holder: (instance, json) => void holders.set(instance, (json as { writer: string }).writer),
    head(name, json) {
      const slash = name.indexOf("/");
      const { generation, from } = json as HeadJson;
      told.push({
        ...{ holder: name.slice(0, slash), stream: name.slice(slash + 1) },
        ...{ generation, from: BigInt(from) },
      });
    },
  };
  eachOf(key, entries, (kind, name, json) => read[kind]?.(name, json));
  owners.sort((a, b) => (a.instance < b.instance ? -1 : 1));
  // One of an earlier claim says nothing: since then its stream may have been read again from further below.
  const heads = told.flatMap(({ holder, stream, generation, from }): Window[] => {
    const s = streams.get(stream);
    return s?.owner === holder && s.generation === generation ? [{ holder, stream, from, next: null }] : [];
  });
  const coverage = { ...EMPTY_STATE, owners, streams, topics, leases };
  return { coverage, writers, targets, holders, heads };
}

function streamOf(s: StreamJson): StreamState {
  return {
    generation: s.generation,
    groupEpoch: s.groupEpoch,
    owner: s.owner,
    origin: position(s.origin),
    staleCommit: position(s.staleCommit),
    covered: [],
    lost: s.lost.map(({ from, next, reason }) => ({
      from: BigInt(from),
      next: BigInt(next),
      reason: reason as LostRange["reason"],
    })),
  };
}

function eachOf(
  key: SinkKey,
  entries: Entries,
  each: (kind: string, name: string, json: unknown) => void,
): void {
  const prefix = prefixOf(key);
  for (const [name, text] of entries) {
    if (!name.startsWith(prefix)) {
      refuseNewer(name, key);
      continue;
    }
    const rest = name.slice(prefix.length);
    const slash = rest.indexOf("/");
    try {
      each(rest.slice(0, slash), rest.slice(slash + 1), JSON.parse(text));
    } catch (e) {
      throw new Failure("coverage.corrupt", `the coverage record ${name} cannot be read`, { cause: e });
    }
  }
}

/** Of the same sink, by a version that knows more. */
function refuseNewer(name: string, { pipeline, sink }: SinkKey): void {
  const [format, of, to] = name.split("/");
  if (of !== pipeline || to !== sink || !(Number(format) > Number(FORMAT))) return;
  throw new Failure("coverage.newer_version", `coverage of format ${format}, this version knows ${FORMAT}`);
}

/** The entries for a state; without those of beats and heads. */
export function encodeState(
  key: SinkKey,
  { coverage, writers, targets, holders }: Omit<SinkState, "heads">,
): Entries {
  const entries = new Map<string, string>();
  const put = (kind: string, name: string, json: unknown) =>
    void entries.set(`${prefixOf(key)}${kind}/${name}`, JSON.stringify(json));
  for (const { instance, host, since } of coverage.owners) put("owner", instance, { host, since });
  for (const [name, s] of coverage.streams) {
    const { generation, groupEpoch, owner, origin, staleCommit, lost } = s;
    const json: StreamJson = {
      generation,
      groupEpoch,
      owner,
      writer: writers.get(name) ?? null,
      origin: textOf(origin),
      staleCommit: textOf(staleCommit),
      lost: lost.map(({ from, next, reason }) => ({ from: String(from), next: String(next), reason })),
    };
    put("stream", name, json);
  }
  for (const [name, { topicId, incarnation }] of coverage.topics)
    put("topic", name, { topicId, incarnation });
  for (const [name, lease] of coverage.leases) put("lease", name, lease);
  for (const [name, topicId] of targets) put("target", name, { topicId });
  for (const [instance, writer] of holders) put("holder", instance, { writer });
  return entries;
}

/** What has to be written for the one to become the other; null: its key ends. */
export function changedEntries(before: Entries, after: Entries): ReadonlyMap<string, string | null> {
  const changed = new Map<string, string | null>();
  for (const name of before.keys()) if (!after.has(name)) changed.set(name, null);
  for (const [name, text] of after) if (before.get(name) !== text) changed.set(name, text);
  return changed;
}

/** By stream and generation (below zero: by lease), what the entries of partition 1 tell. Throws coverage.corrupt. */
export function decodeRanges(key: SinkKey, entries: Entries): Map<StreamKey, Map<number, Landed>> {
  const found = new Map<StreamKey, Map<number, Landed>>();
  eachOf(key, entries, (kind, name, json) => {
    if (kind !== "range") return;
    const slash = name.lastIndexOf("/");
    const stream = name.slice(0, slash);
    const parts = found.get(stream) ?? new Map<number, Landed>();
    parts.set(Number(name.slice(slash + 1)), landedOf(json));
    found.set(stream, parts);
  });
  return found;
}

interface LandedJson {
  readonly ranges: readonly (readonly [from: string, next: string])[];
  readonly rows: number;
  readonly bytes: number;
}

function landedOf(json: unknown): Landed {
  const { ranges, rows, bytes } = json as LandedJson;
  const all = ranges.map(([from, next]) => ({ from: BigInt(from), next: BigInt(next) }));
  return { ranges: normalRanges(all), rows, bytes };
}

export function encodeLanded({ ranges, rows, bytes }: Landed): string {
  const json: LandedJson = { ranges: ranges.map((r) => [String(r.from), String(r.next)]), rows, bytes };
  return JSON.stringify(json);
}

/** All of a stream as one. */
export function united(parts: Iterable<Landed>): Landed {
  let all: Landed = { ranges: [], rows: 0, bytes: 0 };
  for (const p of parts) {
    all = { ranges: unionRanges(all.ranges, p.ranges), rows: all.rows + p.rows, bytes: all.bytes + p.bytes };
  }
  return all;
}
