/**
 * The coverage state as JSON, version 1. Persisted: a change of shape is a new version with its own reader and a
 * new golden file. Maps are lists of entries, as a topic may have any name, `__proto__` too.
 */
import { Failure } from "../failure/failure.ts";
import type { Authority, Intent, LostRange, Range, Tip } from "../ports/coverage.ts";
import type { HostId } from "../ports/host-identity.ts";
import type { Target } from "../ports/object-store.ts";
import type { Span } from "../records/stream.ts";
import {
  corrupt,
  count,
  fields,
  fieldsOf,
  int64,
  keyed,
  list,
  nullable,
  oneOf,
  type Place,
  parseJson,
  text,
} from "./json-place.ts";
import type { Ranges } from "./ranges.ts";
import {
  type CoverageState,
  type IndexEntry,
  type IndexedFile,
  MAX_STATE_BYTES,
  type Owner,
  type SegmentRef,
  STATE_FORMAT,
  STATE_VERSION,
  type StreamState,
} from "./state.ts";

const SEGMENT_FORMAT = "twg.coverage.index";
const SEGMENT_VERSION = 1;
/** A merged segment of the highest level stays below a few 16 MiB; see index-segments.ts. */
const MAX_SEGMENT_BYTES = 256 * 1024 * 1024;

const encoder = new TextEncoder();

/** Throws coverage.too_large. */
export function encodeState(state: CoverageState): Uint8Array {
  const bytes = encoder.encode(`${JSON.stringify(plain(state))}\n`);
  if (bytes.length > MAX_STATE_BYTES) {
    throw new Failure(
      "coverage.too_large",
      `the coverage state would have ${bytes.length} bytes, allowed are ${MAX_STATE_BYTES}`,
      { hint: `It holds ${state.streams.size} streams and ${state.intents.size} open intents` },
    );
  }
  return bytes;
}

/** Text of positions; the order of keys is part of the golden file. */
function plain(s: CoverageState): object {
  return {
    format: STATE_FORMAT,
    version: STATE_VERSION,
    serial: s.serial,
    owners: s.owners.map(plainOwner),
    streams: [...s.streams].map(([stream, v]) => ({
      stream,
      generation: v.generation,
      groupEpoch: v.groupEpoch,
      owner: v.owner,
      origin: v.origin === null ? null : String(v.origin),
      // Left out where there is none, as in every state that was written before the field was there.
      ...(v.staleCommit === null ? {} : { staleCommit: String(v.staleCommit) }),
      covered: v.covered.map(plainRange),
      lost: v.lost.map((r) => [String(r.from), String(r.next), r.reason]),
      ...(v.tip === undefined ? {} : { tip: [String(v.tip.position), v.tip.epoch] }),
    })),
    leases: [...s.leases].map(([window, v]) => ({ window, lease: v.lease, owner: v.owner })),
    topics: [...s.topics].map(([topic, v]) => ({ topic, topicId: v.topicId, incarnation: v.incarnation })),
    intents: [...s.intents.values()].map((i) => ({
      id: i.id,
      targets: i.targets.map(({ key, staging, bytes, rows }) => ({ key, staging, bytes, rows })),
      spans: i.spans.map((s) => [...plainSpan(s), ...(s.leaderEpoch === undefined ? [] : [s.leaderEpoch])]),
      authorities: i.authorities.map(plainAuthority),
      rows: i.rows,
      bytes: i.bytes,
    })),
    index: s.index.map(plainEntry),
    segments: s.segments,
    writers: s.writers,
  };
}

const plainRange = (r: Range): string[] => [String(r.from), String(r.next)];
const plainSpan = (s: Span): string[] => [s.stream, String(s.from), String(s.next)];
const plainEntry = (e: IndexEntry): object => ({
  id: e.id,
  targets: e.targets.map(({ key, bytes, rows }) => ({ key, bytes, rows })),
  spans: e.spans.map(plainSpan),
  rows: e.rows,
  bytes: e.bytes,
});

function plainOwner({ instance, host: h, since, beat }: Owner): object {
  const { hostname, pid, bootId, pidNamespace, startTime } = h;
  return { instance, host: { hostname, pid, bootId, pidNamespace, startTime }, since, beat };
}

function plainAuthority(a: Authority): object {
  return a.kind === "lease"
    ? { kind: a.kind, window: a.window, lease: a.lease }
    : { kind: a.kind, stream: a.stream, generation: a.generation };
}

/** Bytes that an entry takes in the state. */
export function entryBytes(entry: IndexEntry): number {
  return JSON.stringify(plainEntry(entry)).length;
}

export function encodeSegment(entries: readonly IndexEntry[]): Uint8Array {
  const body = { format: SEGMENT_FORMAT, version: SEGMENT_VERSION, entries: entries.map(plainEntry) };
  return encoder.encode(`${JSON.stringify(body)}\n`);
}

/** `object` is the segment's name for messages. Throws coverage.corrupt and coverage.newer_version. */
export function parseSegment(bytes: Uint8Array, object: string): readonly IndexEntry[] {
  const at = limited(bytes, object, MAX_SEGMENT_BYTES);
  checkVersion(at, SEGMENT_FORMAT, SEGMENT_VERSION);
  const f = fields(at, "format", "version", "entries");
  return [...keyed(f.entries, (e) => entryOf(e)).values()];
}

/**
 * `version` is the one that the object is stored under. Throws coverage.corrupt (naming object and place) for
 * anything damaged, foreign or stored under another version, and coverage.newer_version.
 */
export function parseState(bytes: Uint8Array, object: string, version: number): CoverageState {
  const at = limited(bytes, object, MAX_STATE_BYTES);
  checkVersion(at, STATE_FORMAT, STATE_VERSION);
  const f = fields(
    at,
    "format",
    "version",
    "serial",
    "owners",
    "streams",
    "leases",
    "topics",
    "intents",
    "index",
    "segments",
    "writers",
  );
  const serial = count(f.serial);
  if (serial !== version) throw corrupt(f.serial, `serial ${serial}`, `${version}, by its name`);
  return {
    serial,
    owners: [...keyed(f.owners, ownerOf).values()],
    streams: keyed(f.streams, streamOf),
    leases: keyed(f.leases, leaseOf),
    topics: keyed(f.topics, topicOf),
    intents: keyed(f.intents, intentOf),
    index: [...keyed(f.index, entryOf).values()],
    segments: [...keyed(f.segments, segmentOf).values()],
    writers: list(f.writers, text),
  };
}

export function limited(bytes: Uint8Array, object: string, most: number): Place {
  if (bytes.length > most) {
    throw corrupt({ value: null, object, path: "$" }, `${bytes.length} bytes`, `at most ${most}`);
  }
  return parseJson(bytes, object);
}

/** Looks at format and version alone, since a newer version may have any other shape. */
export function checkVersion(at: Place, format: string, newest: number): void {
  const v = at.value;
  if (typeof v !== "object" || v === null || !("format" in v) || v.format !== format) {
    throw corrupt(at, "no object of this format", `"format": "${format}"`);
  }
  const version = "version" in v ? v.version : undefined;
  if (typeof version === "number" && Number.isSafeInteger(version) && version > newest) {
    throw new Failure(
      "coverage.newer_version",
      `written in version ${version}, this twg reads up to ${newest}`,
      {
        at: at.object,
        hint: "Run the twg that wrote it, or a newer one",
      },
    );
  }
  if (version !== newest) throw corrupt(at, `version ${JSON.stringify(version)}`, `1 to ${newest}`);
}

function hostOf(at: Place): HostId {
  const f = fields(at, "hostname", "pid", "bootId", "pidNamespace", "startTime");
  return {
    hostname: text(f.hostname),
    pid: count(f.pid),
    bootId: text(f.bootId),
    pidNamespace: text(f.pidNamespace),
    startTime: text(f.startTime),
  };
}

function ownerOf(at: Place): readonly [string, Owner] {
  const f = fields(at, "instance", "host", "since", "beat");
  const instance = text(f.instance);
  return [instance, { instance, host: hostOf(f.host), since: count(f.since), beat: count(f.beat) }];
}

/** A list of exactly `n` items. */
function items(at: Place, n: number, allowed: string): readonly Place[] {
  const found = list(at, (item) => item);
  if (found.length !== n) throw corrupt(at, `${found.length} items`, allowed);
  return found;
}

function rangeOf(at: Place): Range {
  const [from, next] = items(at, 2, "[from, next]").map(int64) as [bigint, bigint];
  if (from >= next) throw corrupt(at, `an empty range [${from}, ${next})`, "from below next");
  return { from, next };
}

function rangesOf(at: Place): Ranges {
  let last: Range | null = null;
  return list(at, (item) => {
    const r = rangeOf(item);
    if (last !== null && r.from <= last.next) {
      throw corrupt(
        item,
        `[${r.from}, ${r.next}) after [${last.from}, ${last.next})`,
        "ascending ranges with holes between",
      );
    }
    last = r;
    return r;
  });
}

function lostOf(at: Place): Omit<LostRange, "stream"> {
  const [from, next, reason] = items(at, 3, "[from, next, reason]") as [Place, Place, Place];
  const range = rangeOf({ value: [from.value, next.value], object: at.object, path: at.path });
  return { ...range, reason: oneOf(reason, ["accepted_gap", "retention", "truncated", "deleted"]) };
}

function streamOf(at: Place): readonly [string, StreamState] {
  const f = fieldsOf(
    at,
    ["stream", "generation", "groupEpoch", "owner", "origin", "covered", "lost"],
    ["staleCommit", "tip"],
  );
  const state: StreamState = {
    generation: count(f.generation),
    groupEpoch: nullable(f.groupEpoch, count),
    owner: nullable(f.owner, text),
    origin: nullable(f.origin, int64),
    staleCommit: f.staleCommit === undefined ? null : int64(f.staleCommit),
    covered: rangesOf(f.covered),
    lost: list(f.lost, lostOf),
    ...(f.tip === undefined ? {} : { tip: tipOf(f.tip) }),
  };
  return [text(f.stream), state];
}

function tipOf(at: Place): Tip {
  const [position, epoch] = items(at, 2, "[position, epoch]") as [Place, Place];
  return { position: int64(position), epoch: count(epoch) };
}

function leaseOf(at: Place): readonly [string, { lease: number; owner: string }] {
  const f = fields(at, "window", "lease", "owner");
  return [text(f.window), { lease: count(f.lease), owner: text(f.owner) }];
}

function topicOf(at: Place): readonly [string, { topicId: string; incarnation: number }] {
  const f = fields(at, "topic", "topicId", "incarnation");
  return [text(f.topic), { topicId: text(f.topicId), incarnation: count(f.incarnation) }];
}

function spanOf(at: Place): Span {
  // The epoch is left out where it is not known, and in what was written before it was there.
  const parts = Array.isArray(at.value) && at.value.length === 4 ? 4 : 3;
  const [stream, from, next, epoch] = items(at, parts, "[stream, from, next, epoch?]") as [
    Place,
    Place,
    Place,
    Place | undefined,
  ];
  const range = rangeOf({ value: [from.value, next.value], object: at.object, path: at.path });
  return { stream: text(stream), ...range, ...(epoch === undefined ? {} : { leaderEpoch: count(epoch) }) };
}

/** Spans of one intent; two that overlap would count a record twice. */
function spansOf(at: Place): readonly Span[] {
  const spans = list(at, spanOf).map((span, i) => ({ span, i }));
  // Sorted, since a hostile list of many spans must not cost the square of their number.
  const sorted = [...spans].sort((x, y) => compareSpans(x.span, y.span));
  for (const [k, { span, i }] of sorted.entries()) {
    const before = sorted[k - 1];
    if (before?.span.stream !== span.stream || before.span.next <= span.from) continue;
    const item = { ...at, path: `${at.path}[${Math.max(i, before.i)}]` };
    throw corrupt(item, "a span that overlaps another", "disjoint spans");
  }
  return spans.map((s) => s.span);
}

function compareSpans(a: Span, b: Span): number {
  if (a.stream !== b.stream) return a.stream < b.stream ? -1 : 1;
  return a.from < b.from ? -1 : a.from > b.from ? 1 : 0;
}

function authorityOf(at: Place): Authority {
  const kind =
    typeof at.value === "object" && at.value !== null && "kind" in at.value ? at.value.kind : undefined;
  if (kind === "lease") {
    const f = fields(at, "kind", "window", "lease");
    return { kind, window: text(f.window), lease: count(f.lease) };
  }
  const f = fields(at, "kind", "stream", "generation");
  return { kind: oneOf(f.kind, ["generation"]), stream: text(f.stream), generation: count(f.generation) };
}

function targetOf(at: Place): Target {
  const f = fields(at, "key", "staging", "bytes", "rows");
  return { key: text(f.key), staging: text(f.staging), bytes: count(f.bytes), rows: count(f.rows) };
}

function intentOf(at: Place): readonly [string, Intent] {
  const f = fields(at, "id", "targets", "spans", "authorities", "rows", "bytes");
  const id = text(f.id);
  return [
    id,
    {
      id,
      targets: list(f.targets, targetOf),
      spans: spansOf(f.spans),
      authorities: list(f.authorities, authorityOf),
      rows: count(f.rows),
      bytes: count(f.bytes),
    },
  ];
}

function fileOf(at: Place): IndexedFile {
  const f = fields(at, "key", "bytes", "rows");
  return { key: text(f.key), bytes: count(f.bytes), rows: count(f.rows) };
}

function entryOf(at: Place): readonly [string, IndexEntry] {
  const f = fields(at, "id", "targets", "spans", "rows", "bytes");
  const id = text(f.id);
  const targets = list(f.targets, fileOf);
  return [id, { id, targets, spans: spansOf(f.spans), rows: count(f.rows), bytes: count(f.bytes) }];
}

function segmentOf(at: Place): readonly [string, SegmentRef] {
  const f = fields(at, "name", "entries", "files", "rows", "bytes", "level");
  const name = text(f.name);
  const numbers = {
    entries: count(f.entries),
    files: count(f.files),
    rows: count(f.rows),
    bytes: count(f.bytes),
  };
  return [name, { name, ...numbers, level: count(f.level) }];
}
