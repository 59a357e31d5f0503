/**
 * Windows of a Kafka sink (decision 0037): recovery writes below the heads of live ingest, under a transactional id of each
 * holder. A broker compares nothing when it commits, so all that makes a window ours has to be true before it is ours:
 *
 *   1. the states are read: who is there, what is leased, up to where live ingest has let go
 *   2. InitProducerId for our own id, and for all under which somebody may write who has lost his place: former holders,
 *      owners that are gone. What they left open is aborted, and what they had begun to commit is committed
 *   3. the ranges are read to their end: below the heads of 1, and outside of the windows of 1, nothing is added to them
 *   4. under the lock, if nobody was granted anything since 1, and none of the streams was claimed, the windows become
 *      durable; else all of it again
 *
 * A holder ends its windows the same way: its own id first, then the windows. So a window that is not in the states any more
 * has had its last commit, and holders that vanished stay in the states until somebody has fenced them.
 */
import { leave, requireOwner } from "../../../core/coverage/changes.ts";
import { surelyDead } from "../../../core/coverage/judge.ts";
import type { CoverageState, StreamState } from "../../../core/coverage/state.ts";
import {
  freeWindow,
  heldByOthers,
  isRecovery,
  parseWindow,
  type Window,
  windowName,
} from "../../../core/coverage/windows.ts";
import { Failure } from "../../../core/failure/failure.ts";
import type { Authority, LeasedWindow } from "../../../core/ports/coverage.ts";
import type { HostIdentity } from "../../../core/ports/host-identity.ts";
import type { Span, StreamKey } from "../../../core/records/stream.ts";
import type { FencingIdentity, WriterIdentities } from "./identities.ts";
import type { KeyedLog } from "./keyed-log.ts";
import type { Decided, SinkLock } from "./lock.ts";
import { LOOK_MS, MOVED_TRIES, RANGES_MS } from "./patience.ts";
import {
  decodeRanges,
  decodeState,
  encodeLanded,
  type Landed,
  rangeKey,
  type SinkKey,
  type SinkState,
  united,
} from "./state.ts";

/** A lease by this name counts grants: each has a number that no other will have. */
const GRANTS = "window grants";
/** Where whatever landed under leases that are over is kept as one: no claim gives out this generation. */
const UNITED = 0;
/** Ranges of so many leases of a stream that are over are made one. */
const MOST_PARTS = 8;

/** Somebody else was granted something, or claimed one of the streams, in the middle. */
class Moved extends Error {}

const grantsOf = ({ coverage }: SinkState): number => coverage.leases.get(GRANTS)?.lease ?? 0;

/** Whether somebody was granted a window in between: then ranges that were read may be those of a lease that is over by now. */
export const isGranted = (seen: SinkState, now: SinkState): boolean => grantsOf(seen) !== grantsOf(now);

/**
 * Of parts that were read after `seen`: those that nobody adds to any more, of leases that are over. Those of generations
 * are left to whoever knows who has the stream.
 */
export function endedParts(
  parts: ReadonlyMap<number, Landed>,
  seen: SinkState,
): readonly (readonly [number, Landed])[] {
  const open = new Set(
    [...seen.coverage.leases].flatMap(([name, { lease }]) => (parseWindow(name) === null ? [] : [-lease])),
  );
  return [...parts].filter(([n]) => n < 0 && -n <= grantsOf(seen) && !open.has(n));
}

/** An owner that leaves, or is taken out, takes none of its windows along: they end once it is fenced. `of`: it is. */
export function keepingWindows(before: SinkState, after: CoverageState, of: string | null): CoverageState {
  const leases = [...before.coverage.leases].filter(([name]) => {
    const holder = parseWindow(name)?.holder ?? null;
    return holder === null || holder !== of;
  });
  return { ...after, leases: new Map(leases) };
}

/** A transactional id for another holder: the first that nobody has. So there are as many as there are holders at a time. */
export function freeWriter(idPrefix: string, { holders }: SinkState): string {
  const taken = new Set(holders.values());
  for (let n = 0; ; n++) if (!taken.has(`${idPrefix}.recovery.${n}`)) return `${idPrefix}.recovery.${n}`;
}

/** Holders that left without a word, with their ids. */
export function strayHolders({ holders, coverage }: SinkState): ReadonlyMap<string, string> {
  const there = new Set(coverage.owners.map((o) => o.instance));
  return new Map([...holders].filter(([instance]) => !there.has(instance)));
}

/** Ids of recovery processes that are there still, and are known to be dead. */
export function deadHolders({ holders, coverage }: SinkState, host: HostIdentity): readonly string[] {
  return [...surelyDead(coverage.owners, host).keys()].flatMap((i) => holders.get(i) ?? []);
}

/** Without an owner whose ids were fenced, all of them. */
export function left(state: SinkState, instance: string): SinkState {
  const coverage = keepingWindows(state, leave(instance)(state.coverage).state, instance);
  const holders = new Map(state.holders);
  holders.delete(instance);
  const mine = [...state.coverage.streams].filter(([, s]) => s.owner === instance);
  const writers = new Map(state.writers);
  for (const [stream] of mine) writers.delete(stream);
  return { ...state, coverage, holders, writers };
}

/** Without holders that were fenced, and their windows. */
export function withoutHolders(state: SinkState, fenced: ReadonlyMap<string, string>): SinkState {
  if (fenced.size === 0) return state;
  const holders = new Map([...state.holders].filter(([instance, id]) => fenced.get(instance) !== id));
  const leases = [...state.coverage.leases].filter(([name]) => {
    const holder = parseWindow(name)?.holder;
    return holder === undefined || !fenced.has(holder);
  });
  return { ...state, holders, coverage: { ...state.coverage, leases: new Map(leases) } };
}

export interface WindowLeasesOptions {
  readonly key: SinkKey;
  readonly instance: string;
  /** Of the lane that writes under what is leased next. */
  readonly laneLife: (lane: number) => string;
}

export interface WindowLeasesParts {
  readonly lock: SinkLock;
  readonly states: KeyedLog;
  readonly ranges: KeyedLog;
  readonly identities: WriterIdentities;
  /** Looks at the topics that the streams go to; their ids. */
  readonly prepare: (streams: readonly StreamKey[]) => Promise<ReadonlyMap<string, string>>;
}

/** What is fenced before anything is granted, as of one look at the states. */
interface Fencing {
  /** Owners whose beat stood still. */
  readonly out: ReadonlyMap<string, number>;
  /** Holders that are gone, or are among those. */
  readonly holders: ReadonlyMap<string, string>;
  /** Streams of owners that are gone, or are among those, with the id under which they were written. */
  readonly writers: ReadonlyMap<StreamKey, string>;
}

export class WindowLeases {
  readonly #o: WindowLeasesOptions;
  readonly #p: WindowLeasesParts;
  /** Our transactional id. */
  #writer = "";
  /** Under it nobody has written: null where it has to be asked for. */
  #fresh: FencingIdentity | null = null;
  #held: ReadonlySet<string> = new Set();

  constructor(options: WindowLeasesOptions, parts: WindowLeasesParts) {
    this.#o = options;
    this.#p = parts;
  }

  /** We are a holder by this id. */
  enter(writer: string): void {
    this.#writer = writer;
    this.#fresh = null;
  }

  /** What the states say of our windows. */
  look({ coverage }: SinkState): void {
    this.#held = new Set([...this.#held].filter((name) => coverage.leases.has(name)));
  }

  holds({ authority }: LeasedWindow): boolean {
    return authority.kind === "lease" && this.#held.has(authority.window);
  }

  /** As of the states that were read last. */
  othersHold(gone: ReadonlyMap<string, number>): readonly Span[] {
    const { key, instance } = this.#o;
    return heldByOthers(decodeState(key, this.#p.states.entries).coverage, instance, gone);
  }

  /** `gone`: owners that were judged, each with its beat then. */
  async lease(
    wanted: readonly Span[],
    gone: ReadonlyMap<string, number>,
    signal: AbortSignal,
  ): Promise<readonly LeasedWindow[]> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#try(wanted, gone, signal);
      } catch (e) {
        if (!(e instanceof Moved)) throw e;
        if (tries === MOVED_TRIES)
          throw new Failure("kafka.timeout", `others changed the same streams ${tries} times meanwhile`);
      }
    }
  }

  async #try(
    wanted: readonly Span[],
    gone: ReadonlyMap<string, number>,
    signal: AbortSignal,
  ): Promise<readonly LeasedWindow[]> {
    const { key, instance } = this.#o;
    const { states, ranges, identities, lock } = this.#p;
    // What hangs is not waited for: it is found under the lock, and then all of this is done again.
    const whole = await states.readToEndWithin(LOOK_MS, signal);
    const seen = decodeState(key, states.entries);
    if (whole) requireOwner(seen.coverage, instance);
    const fencing = fencingOf(seen, gone, instance);
    const before = decodeRanges(key, ranges.entries);
    // Ranges only grow: nobody is disturbed for what cannot be had.
    const nothing = grantable(wanted, seen, fencing, before, instance).length === 0;
    if (nothing && windowsOf(seen, instance).length === 0) return [];
    const targets = await this.#p.prepare([...new Set(wanted.map((s) => s.stream))]);
    for (const id of new Set([...fencing.holders.values(), ...fencing.writers.values()]))
      await identities.fence(id, signal);
    const identity = this.#fresh ?? (await identities.fence(this.#writer, signal));
    this.#fresh = identity;
    // Somebody's commit hangs that we may not end.
    if (!(await ranges.readToEndWithin(RANGES_MS, signal))) return [];
    const landed = decodeRanges(key, ranges.entries);
    const granted = await lock.change((now): Decided<readonly LeasedWindow[]> => {
      requireOwner(now.coverage, instance);
      if (isGranted(seen, now) || wanted.some((s) => isMoved(s.stream, seen, now))) throw new Moved();
      const decided = this.#granted(wanted, { seen, now, fencing, landed, identity });
      const known = new Map([...now.targets, ...targets]);
      return { ...decided, state: { ...decided.state, targets: known } };
    }, signal);
    // It is a lane's from now on.
    if (granted.length > 0) this.#fresh = null;
    this.#held = new Set(granted.map((g) => windowName({ holder: instance, stream: g.stream, ...g.range })));
    return granted;
  }

  #granted(
    wanted: readonly Span[],
    {
      seen,
      now,
      fencing,
      landed,
      identity,
    }: {
      readonly seen: SinkState;
      readonly now: SinkState;
      readonly fencing: Fencing;
      readonly landed: ReadonlyMap<StreamKey, ReadonlyMap<number, Landed>>;
      readonly identity: FencingIdentity;
    },
  ): Decided<readonly LeasedWindow[]> {
    const { key, instance, laneLife } = this.#o;
    const lease = grantsOf(now) + 1;
    const writer = { ...identity, life: laneLife(0) };
    // Whoever wrote in between is there after all: what he lost is his to find out.
    const still = new Map([...fencing.out].filter(([i, beat]) => beatOf(now, i) === beat));
    const certain: Fencing = { ...fencing, out: still };
    const granted = grantable(wanted, seen, certain, landed, instance).map(
      ({ stream, range, covered }): LeasedWindow => {
        const window = windowName({ holder: instance, stream, ...range });
        const authority: Authority = { kind: "lease", window, lease, stream, writer };
        return { stream, range, covered, authority };
      },
    );
    const state = disowned(withoutHolders(now, certainHolders(fencing, still)), { seen, fencing: certain });
    const leases = new Map(
      [...state.coverage.leases].filter(([name]) => parseWindow(name)?.holder !== instance),
    );
    const ranges = new Map<string, string | null>();
    if (granted.length > 0) leases.set(GRANTS, { lease, owner: instance });
    for (const { stream, authority } of granted) {
      if (authority.kind === "lease") leases.set(authority.window, { lease, owner: instance });
      for (const [name, text] of unitedParts(key, stream, landed.get(stream) ?? new Map(), seen))
        ranges.set(name, text);
    }
    return { state: { ...state, coverage: { ...state.coverage, leases } }, ranges, answer: granted };
  }

  /** Nothing is written under them when this resolves. */
  async release(signal: AbortSignal): Promise<void> {
    const { instance } = this.#o;
    if (this.#held.size === 0) return;
    this.#fresh = await this.#p.identities.fence(this.#writer, signal);
    await this.#p.lock.change((now) => {
      requireOwner(now.coverage, instance);
      return { state: { ...now, coverage: keepingWindows(now, now.coverage, instance) }, answer: undefined };
    }, signal);
    this.#held = new Set();
  }

  /** The last of us: nothing can be committed under our id any more. */
  async end(signal: AbortSignal): Promise<void> {
    await this.#p.identities.fence(this.#writer, signal);
  }
}

function fencingOf(seen: SinkState, gone: ReadonlyMap<string, number>, instance: string): Fencing {
  const { owners, streams } = seen.coverage;
  const out = new Map(
    owners.flatMap((o) =>
      o.instance !== instance && gone.get(o.instance) === o.beat ? [[o.instance, o.beat] as const] : [],
    ),
  );
  const left = (of: string | null) => of === null || out.has(of) || !owners.some((o) => o.instance === of);
  return {
    out,
    holders: new Map([...seen.holders].filter(([of]) => left(of))),
    writers: new Map([...seen.writers].filter(([stream]) => left(streams.get(stream)?.owner ?? null))),
  };
}

interface Grantable {
  readonly stream: StreamKey;
  readonly range: { readonly from: bigint; readonly next: bigint };
  readonly covered: Landed["ranges"];
}

/** As of `seen`, with those out that were fenced. */
function grantable(
  wanted: readonly Span[],
  seen: SinkState,
  { out }: Fencing,
  landed: ReadonlyMap<StreamKey, ReadonlyMap<number, Landed>>,
  instance: string,
): readonly Grantable[] {
  const there = new Set(seen.coverage.owners.map((o) => o.instance).filter((i) => !out.has(i)));
  const windows = [...windowsOf(seen, null), ...seen.heads].filter((w) => there.has(w.holder));
  return wanted.flatMap((span): Grantable[] => {
    const { stream } = span;
    const covered = united(landed.get(stream)?.values() ?? []).ranges;
    const of = seen.coverage.streams.get(stream)?.owner ?? null;
    const owner = of !== null && there.has(of) ? of : null;
    const range = freeWindow(span, { owner, covered }, windows, instance);
    return range === null ? [] : [{ stream, range, covered }];
  });
}

function windowsOf({ coverage }: SinkState, holder: string | null): readonly Window[] {
  return [...coverage.leases.keys()].flatMap((name) => {
    const w = parseWindow(name);
    return w === null || (holder !== null && w.holder !== holder) ? [] : [w];
  });
}

const beatOf = ({ coverage }: SinkState, instance: string): number | undefined =>
  coverage.owners.find((o) => o.instance === instance)?.beat;

/** Those who are gone for good, or fell silent and have not written since. */
function certainHolders(
  { out, holders }: Fencing,
  still: ReadonlyMap<string, number>,
): ReadonlyMap<string, string> {
  return new Map([...holders].filter(([i]) => !out.has(i) || still.has(i)));
}

/**
 * Streams whose writers were fenced are nobody's, and whoever had them claims them again if it lives; recovery that was judged
 * is out. What was claimed meanwhile is left as it is.
 */
function disowned(
  state: SinkState,
  { seen, fencing }: { readonly seen: SinkState; readonly fencing: Fencing },
): SinkState {
  const { out, writers: fenced } = fencing;
  const streams = new Map<StreamKey, StreamState>(state.coverage.streams);
  const writers = new Map(state.writers);
  const there = new Set(seen.coverage.owners.map((o) => o.instance).filter((i) => !out.has(i)));
  for (const [stream, s] of seen.coverage.streams) {
    if (s.owner === null || there.has(s.owner) || isMoved(stream, seen, state)) continue;
    const raised = out.has(s.owner) ? 1 : 0;
    streams.set(stream, { ...streams.get(stream)!, owner: null, generation: s.generation + raised });
  }
  for (const [stream, id] of fenced) {
    const owner = streams.get(stream)?.owner ?? null;
    if (owner === null && writers.get(stream) === id) writers.delete(stream);
  }
  const owners = state.coverage.owners.filter((o) => !isRecovery(o.instance) || !out.has(o.instance));
  return { ...state, writers, coverage: { ...state.coverage, streams, owners } };
}

export function isMoved(stream: StreamKey, seen: SinkState, now: SinkState): boolean {
  const of = (s: SinkState) => s.coverage.streams.get(stream);
  const same = seen.writers.get(stream) === now.writers.get(stream);
  return !same || of(seen)?.generation !== of(now)?.generation || of(seen)?.owner !== of(now)?.owner;
}

/** Records that make one of many parts; none: there are few. */
function unitedParts(
  key: SinkKey,
  stream: StreamKey,
  parts: ReadonlyMap<number, Landed>,
  seen: SinkState,
): ReadonlyMap<string, string | null> {
  const ended = endedParts(parts, seen);
  if (ended.length <= MOST_PARTS) return new Map();
  const all = united([...ended.map(([, part]) => part), ...(parts.has(UNITED) ? [parts.get(UNITED)!] : [])]);
  const gone = ended.map(([n]) => [rangeKey(key, stream, n), null] as const);
  return new Map([...gone, [rangeKey(key, stream, UNITED), encodeLanded(all)]]);
}
