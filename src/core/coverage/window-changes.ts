/** Changes of the coverage state that concern windows: see windows.ts, and changes.ts for what a change is. */
import type { Authority, Range } from "../ports/coverage.ts";
import type { Span, StreamKey } from "../records/stream.ts";
import { type Change, leave } from "./changes.ts";
import { type CoverageState, NEW_STREAM, type StreamState } from "./state.ts";
import { freeWindow, isRecovery, parseWindow, tidiedLeases, windowName, windowsOf } from "./windows.ts";

export interface Granted {
  readonly stream: StreamKey;
  readonly range: Range;
  readonly authority: Authority;
}

/**
 * Ends what owners hold that were judged gone and have not written since. One of recovery is out, and finds itself fenced
 * if it lives. One of live ingest stays, but its streams are nobody's and have a new generation: if it lives it claims
 * them again.
 */
function evict(state: CoverageState, gone: ReadonlyMap<string, number>): CoverageState {
  let next = state;
  for (const { instance, beat } of state.owners) {
    if (gone.get(instance) !== beat) continue;
    if (isRecovery(instance)) next = leave(instance)(next).state;
    else next = disowned(next, instance);
  }
  return next;
}

function disowned(state: CoverageState, instance: string): CoverageState {
  const mine = [...state.streams].filter(([, s]) => s.owner === instance);
  if (mine.length === 0) return state;
  const streams = new Map<StreamKey, StreamState>(state.streams);
  for (const [key, s] of mine) streams.set(key, { ...s, owner: null, generation: s.generation + 1 });
  return { ...state, streams };
}

/** One window at most of each span, and no others for the holder. `serial`: never given twice by the holder. */
export function grant(
  wanted: readonly Span[],
  holder: string,
  serial: number,
  gone: ReadonlyMap<string, number>,
): Change<readonly Granted[]> {
  return (state) => {
    const swept = dropped(evict(state, gone), holder);
    const there = new Set(swept.owners.map((o) => o.instance));
    const leases = new Map(tidiedLeases(swept));
    const windows = windowsOf(swept);
    const granted = wanted.flatMap((span): Granted[] => {
      const { owner, covered } = swept.streams.get(span.stream) ?? NEW_STREAM;
      const living = owner !== null && there.has(owner) ? owner : null;
      const range = freeWindow(span, { owner: living, covered }, windows, holder);
      if (range === null) return [];
      const { stream } = span;
      const window = windowName({ holder, stream, ...range });
      leases.set(window, { lease: serial, owner: holder });
      return [{ stream, range, authority: { kind: "lease", window, lease: serial, stream } }];
    });
    // Nothing to be had is no reason to write.
    if (granted.length === 0) return { state: swept, answer: granted };
    return { state: { ...swept, leases }, answer: granted };
  };
}

/** All windows of the holder end. */
export function giveBack(holder: string): Change<void> {
  return (state) => ({ state: dropped(state, holder), answer: undefined });
}

function dropped(state: CoverageState, holder: string): CoverageState {
  const leases = [...state.leases].filter(([name]) => {
    const w = parseWindow(name);
    return w === null || w.holder !== holder || w.next === null;
  });
  return leases.length === state.leases.size ? state : { ...state, leases: new Map(leases) };
}

/** From where on the holder's streams are its own, in the place of what it said before of them. */
export function keepHeads(holder: string, heads: ReadonlyMap<StreamKey, bigint>): Change<void> {
  return (state) => {
    const leases = new Map(state.leases);
    let changed = false;
    const kept = new Set<StreamKey>();
    for (const name of state.leases.keys()) {
      const w = parseWindow(name);
      if (w === null || w.holder !== holder || w.next !== null || !heads.has(w.stream)) continue;
      if (heads.get(w.stream) === w.from) kept.add(w.stream);
      else changed = leases.delete(name) || changed;
    }
    for (const [stream, from] of heads) {
      if (kept.has(stream)) continue;
      leases.set(windowName({ holder, stream, from, next: null }), { lease: 0, owner: holder });
      changed = true;
    }
    return { state: changed ? { ...state, leases } : state, answer: undefined };
  };
}
