/**
 * Every change of the coverage state as a pure function: state in, next state and an answer out. They are applied
 * again to a newer state whenever a compare-and-swap is lost, and possibly a second time to a state that holds
 * them already (a write whose outcome was never known). So each is safe to apply twice.
 */
import { Failure } from "../failure/failure.ts";
import type {
  Authority,
  IntendResult,
  Intent,
  LostRange,
  Origin,
  Tip,
  TopicMemory,
} from "../ports/coverage.ts";
import type { Span, StreamKey } from "../records/stream.ts";
import { normalRanges, overlapsRange, unionRanges } from "./ranges.ts";
import {
  type CoverageState,
  type IndexEntry,
  NEW_STREAM,
  type Owner,
  type SegmentRef,
  type StreamState,
} from "./state.ts";
import { isRecovery, parseWindow, tidiedLeases, windowInTheWay, windowsOf } from "./windows.ts";

export interface Changed<T> {
  /** The same object as before if nothing changed. */
  readonly state: CoverageState;
  readonly answer: T;
}

export type Change<T> = (state: CoverageState) => Changed<T>;

function withStream(
  state: CoverageState,
  key: StreamKey,
  edit: (s: StreamState) => StreamState,
): CoverageState {
  const streams = new Map(state.streams);
  streams.set(key, edit(streams.get(key) ?? NEW_STREAM));
  return { ...state, streams };
}

export function ownerText(o: Owner): string {
  const since = new Date(o.since);
  // A stored number may be beyond what a date can be; that must not hide the message.
  const text = Number.isNaN(since.getTime()) ? "an unknown time" : since.toISOString();
  return `pid ${o.host.pid} on ${o.host.hostname}, since ${text}`;
}

/** Throws coverage.fenced if the instance no longer has the store: the first line of every change but `enter`. */
export function requireOwner(state: CoverageState, instance: string): void {
  if (state.owners.some((o) => o.instance === instance)) return;
  const by = state.owners.map(ownerText).join("; ");
  throw new Failure(
    "coverage.fenced",
    `another process took over${by === "" ? " and left again" : `: ${by}`}`,
    {
      hint: "Was this process stopped or cut off for longer than the lease? What it had not covered is read again by its successor",
    },
  );
}

/** Puts the requirement in front of a change. */
export function asOwner<T>(instance: string, change: Change<T>): Change<T> {
  return (state) => {
    requireOwner(state, instance);
    return change(state);
  };
}

/**
 * Enters the store. `gone` names owners judged dead, each with the beat at which it was judged: if one has
 * written since, the judgement is void. An exclusive owner enters only if nobody else is left but recovery; then the
 * answer is empty, else the owners that stand in the way.
 */
export function enter(
  me: Owner,
  gone: ReadonlyMap<string, number>,
  exclusive: boolean,
): Change<readonly Owner[]> {
  return (state) => {
    const others = state.owners.filter((o) => o.instance !== me.instance && gone.get(o.instance) !== o.beat);
    const inTheWay = exclusive ? others.filter((o) => !isRecovery(o.instance)) : [];
    if (inTheWay.length > 0) return { state, answer: inTheWay };
    if (state.owners.some((o) => o.instance === me.instance) && others.length + 1 === state.owners.length) {
      return { state, answer: [] };
    }
    const owners = [...others, me];
    return { state: { ...state, owners, leases: tidiedLeases({ ...state, owners }) }, answer: [] };
  };
}

export function leave(instance: string): Change<void> {
  return (state) => {
    if (!state.owners.some((o) => o.instance === instance)) return { state, answer: undefined };
    const streams = new Map(state.streams);
    for (const [key, s] of streams) if (s.owner === instance) streams.set(key, { ...s, owner: null });
    const owners = state.owners.filter((o) => o.instance !== instance);
    const leases = tidiedLeases({ ...state, owners });
    return { state: { ...state, owners, streams, leases }, answer: undefined };
  };
}

/** A write for its own sake: every write carries the owner's beat. */
export const beat: Change<void> = (state) => ({ state: { ...state }, answer: undefined });

/** A beat that takes owners out that were judged dead and have not written since. */
export function beatWithout(gone: ReadonlyMap<string, number>): Change<void> {
  return (state) => {
    const out = state.owners.filter((o) => gone.get(o.instance) === o.beat);
    const next = out.reduce((s, o) => leave(o.instance)(s).state, state);
    return { state: { ...next }, answer: undefined };
  };
}

/** Raises the generation of each stream. Throws coverage.epoch_behind, and then raises none. */
export function claim(
  streams: readonly StreamKey[],
  groupEpoch: number | null,
  instance: string,
): Change<readonly Authority[]> {
  return (state) => {
    let next = state;
    const answer: Authority[] = [];
    for (const stream of new Set(streams)) {
      next = withStream(next, stream, (s) => {
        checkEpoch(stream, groupEpoch, s.groupEpoch);
        return {
          ...s,
          generation: s.generation + 1,
          groupEpoch: groupEpoch ?? s.groupEpoch,
          owner: instance,
        };
      });
      answer.push({ kind: "generation", stream, generation: next.streams.get(stream)?.generation ?? 0 });
    }
    return { state: next, answer };
  };
}

function checkEpoch(stream: StreamKey, epoch: number | null, stored: number | null): void {
  if (epoch === null || stored === null || epoch >= stored) return;
  throw new Failure(
    "coverage.epoch_behind",
    `claim with group epoch ${epoch}, the stream was claimed with ${stored}`,
    {
      at: stream,
      hint: "Another member of the group owns it by now; claim again after a heartbeat confirmed the membership",
    },
  );
}

export function lease(window: string, instance: string): Change<Authority> {
  return (state) => {
    const number = (state.leases.get(window)?.lease ?? 0) + 1;
    const leases = new Map(state.leases).set(window, { lease: number, owner: instance });
    return { state: { ...state, leases }, answer: { kind: "lease", window, lease: number } };
  };
}

/** One answer per intent; those that are refused leave no trace. */
export function intend(intents: readonly Intent[]): Change<readonly IntendResult[]> {
  return (state) => {
    let next = state;
    const answer = intents.map((intent): IntendResult => {
      if (stands(next, intent)) return { ok: true };
      const refusal = refuse(next, intent);
      if (refusal !== null) return refusal;
      next = { ...next, intents: new Map(next.intents).set(intent.id, intent) };
      return { ok: true };
    });
    return { state: next, answer };
  };
}

/** True if the same work stands under this id already. Other work under it would be covered without being intended. */
function stands(state: CoverageState, intent: Intent): boolean {
  const { id } = intent;
  const known = state.intents.get(id) ?? state.index.find((e) => e.id === id);
  if (known === undefined) return false;
  const spans = (of: readonly Span[]): string => of.map(spanText).join();
  const keys = (of: readonly { readonly key: string }[]): string => of.map((t) => t.key).join();
  if (spans(known.spans) !== spans(intent.spans) || keys(known.targets) !== keys(intent.targets)) {
    throw new Failure("internal.bug", `intent ${id} is used again for other spans or files`);
  }
  return true;
}

function refuse(state: CoverageState, intent: Intent): IntendResult | null {
  checkSpans(intent);
  const fenced = heldBack(state, intent);
  if (fenced !== null) return { ok: false, reason: "fenced", detail: fenced };
  const overlap = collision(state, intent.spans) ?? leased(state, intent);
  return overlap === null ? null : { ok: false, reason: "overlap", detail: overlap };
}

/** What a caller must never hand in, as the stored state could not be read again. */
function checkSpans(intent: Intent): void {
  intent.spans.forEach((span, i) => {
    const before = intent.spans.slice(0, i).filter((s) => s.stream === span.stream);
    if (span.from >= span.next || overlapsRange(before, span)) {
      throw new Failure("internal.bug", `intent ${intent.id} has an empty or doubled span ${spanText(span)}`);
    }
  });
}

const spanText = (s: Span): string => `${s.stream} [${s.from}, ${s.next})`;

/** Why the intent's authorities do not cover its spans any more; null if they do. */
function heldBack(state: CoverageState, intent: Intent): string | null {
  for (const a of intent.authorities) {
    if (a.kind === "lease") {
      const held = state.leases.get(a.window)?.lease ?? "none";
      if (held !== a.lease) return `lease ${a.lease} of window ${a.window} was superseded by ${held}`;
    } else {
      const held = state.streams.get(a.stream)?.generation ?? 0;
      if (held !== a.generation) return `generation ${a.generation} of ${a.stream} was superseded by ${held}`;
    }
  }
  const bare = intent.spans.find((s) => !intent.authorities.some((a) => allows(a, s)));
  return bare === undefined ? null : `no authority over ${spanText(bare)}`;
}

/** A lease that is of no window is one of whatever its holder meant by it. */
function allows(a: Authority, span: Span): boolean {
  if (a.kind === "generation") return a.stream === span.stream;
  const w = parseWindow(a.window);
  if (w === null) return true;
  return w.stream === span.stream && w.from <= span.from && w.next !== null && span.next <= w.next;
}

/** Live ingest keeps out of what recovery has leased, and one recovery out of another's. */
function leased(state: CoverageState, intent: Intent): string | null {
  if (state.leases.size === 0) return null;
  const windows = windowsOf(state);
  const holders = intent.authorities.flatMap((a) =>
    a.kind === "lease" ? [parseWindow(a.window)?.holder] : [],
  );
  for (const span of intent.spans) {
    const hit = windowInTheWay(windows, span, holders[0] ?? null);
    if (hit !== null) return `${spanText(span)} is leased by ${hit.holder}`;
  }
  return null;
}

function collision(state: CoverageState, spans: readonly Span[]): string | null {
  for (const span of spans) {
    const stream = state.streams.get(span.stream);
    if (stream !== undefined && overlapsRange(stream.covered, span))
      return `${spanText(span)} is covered in part`;
  }
  for (const open of state.intents.values()) {
    const hit = spans.find((s) =>
      open.spans.some((o) => o.stream === s.stream && o.from < s.next && s.from < o.next),
    );
    if (hit !== undefined) return `${spanText(hit)} is in the open intent ${open.id}`;
  }
  return null;
}

/**
 * Intents that are published become ranges and index entries. Answers the ids that are neither open nor in the
 * part of the index that the state holds: those are in a segment, or were dropped.
 */
export function cover(ids: readonly string[]): Change<readonly string[]> {
  return (state) => {
    let next = state;
    const missing: string[] = [];
    for (const id of ids) {
      const intent = next.intents.get(id);
      if (intent !== undefined) next = coverOne(next, intent);
      else if (!next.index.some((e) => e.id === id)) missing.push(id);
    }
    return { state: next, answer: missing };
  };
}

function coverOne(state: CoverageState, intent: Intent): CoverageState {
  const intents = new Map(state.intents);
  intents.delete(intent.id);
  let next: CoverageState = { ...state, intents, index: [...state.index, entryOf(intent)] };
  for (const span of intent.spans) {
    next = withStream(next, span.stream, (s) => ({
      ...s,
      covered: unionRanges(s.covered, [{ from: span.from, next: span.next }]),
      ...tipAfter(s.tip, span),
    }));
  }
  return next;
}

function tipAfter(before: Tip | undefined, { next, leaderEpoch }: Span): { tip?: Tip } {
  if (leaderEpoch === undefined || (before !== undefined && before.position >= next)) return {};
  return { tip: { position: next, epoch: leaderEpoch } };
}

function entryOf(intent: Intent): IndexEntry {
  const targets = intent.targets.map(({ key, bytes, rows }) => ({ key, bytes, rows }));
  return { id: intent.id, targets, spans: intent.spans, rows: intent.rows, bytes: intent.bytes };
}

/** Drops intents of which nothing is or can become visible. */
export function drop(ids: readonly string[]): Change<void> {
  return (state) => {
    const intents = new Map(state.intents);
    for (const id of ids) intents.delete(id);
    return { state: intents.size === state.intents.size ? state : { ...state, intents }, answer: undefined };
  };
}

export function recordLost(ranges: readonly LostRange[]): Change<void> {
  return (state) => {
    let next = state;
    for (const r of ranges) {
      next = withStream(next, r.stream, (s) => {
        const others = s.lost.filter((l) => l.reason !== r.reason);
        const same = normalRanges([...s.lost.filter((l) => l.reason === r.reason), r]);
        return { ...s, lost: [...others, ...same.map((l) => ({ ...l, reason: r.reason }))] };
      });
    }
    return { state: next, answer: undefined };
  };
}

/** Where streams began that nobody has begun before. A second start, wherever it would be, changes nothing. */
export function rememberOrigins(origins: readonly Origin[]): Change<void> {
  return (state) => {
    let next = state;
    for (const { stream, position, staleCommit } of origins) {
      if ((next.streams.get(stream)?.origin ?? null) !== null) continue;
      next = withStream(next, stream, (s) => ({ ...s, origin: position, staleCommit }));
    }
    return { state: next, answer: undefined };
  };
}

export function rememberTopic(name: string, { topicId, incarnation }: TopicMemory): Change<TopicMemory> {
  return (state) => {
    const old = state.topics.get(name);
    // An id that was not known may be added.
    const isAhead =
      old !== undefined &&
      (old.incarnation > incarnation || (old.incarnation === incarnation && old.topicId !== ""));
    if (isAhead) return { state, answer: old };
    const answer = { topicId, incarnation };
    return { state: { ...state, topics: new Map(state.topics).set(name, answer) }, answer };
  };
}

/** Moves index entries to a segment that holds them already. Void if one of them moved before. */
export function spill(segment: SegmentRef, ids: ReadonlySet<string>): Change<void> {
  return (state) => {
    const index = state.index.filter((e) => !ids.has(e.id));
    if (state.index.length - index.length !== ids.size) return { state, answer: undefined };
    return { state: { ...state, index, segments: [...state.segments, segment] }, answer: undefined };
  };
}

/** Puts one segment in the place of those that it was merged from. Void if one of them is gone. */
export function mergeSegments(merged: SegmentRef, parts: ReadonlySet<string>): Change<void> {
  return (state) => {
    const at = state.segments.findIndex((s) => parts.has(s.name));
    const rest = state.segments.filter((s) => !parts.has(s.name));
    if (state.segments.length - rest.length !== parts.size) return { state, answer: undefined };
    return {
      state: { ...state, segments: [...rest.slice(0, at), merged, ...rest.slice(at)] },
      answer: undefined,
    };
  };
}
