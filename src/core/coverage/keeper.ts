/**
 * The coverage of one sink for one process: takes the store, claims streams, settles what former owners left, and
 * hands every change to the compare-and-swap queue. What it promises is in the port (ports/coverage.ts).
 */
import { asFailure, Failure } from "../failure/failure.ts";
import type {
  Authority,
  Claim,
  CoverageStore,
  IntendResult,
  Intent,
  LeasedWindow,
  LostRange,
  Origin,
  TopicMemory,
  WindowCoverage,
} from "../ports/coverage.ts";
import type { HostIdentity } from "../ports/host-identity.ts";
import type { ObjectStore } from "../ports/object-store.ts";
import type { VersionedStore } from "../ports/versioned-store.ts";
import { isEarlierLife, type Span, type StreamKey } from "../records/stream.ts";
import { type Clock, sleep } from "../time/clock.ts";
import { CasQueue } from "./cas-queue.ts";
import {
  asOwner,
  beat,
  beatWithout,
  type Change,
  claim,
  cover,
  drop,
  enter,
  intend,
  lease,
  leave,
  recordLost,
  rememberOrigins,
  rememberTopic,
} from "./changes.ts";
import { IndexSegments } from "./index-segments.ts";
import { judgeOwners } from "./judge.ts";
import { waitedOut } from "./outage.ts";
import { normalRanges, overlapsRange, type Ranges } from "./ranges.ts";
import { type Reindexed, reindex, reindexed, type SetFile } from "./reindex.ts";
import { type Hook, settleIntent } from "./settle.ts";
import { Silence } from "./silence.ts";
import { type CoverageState, type IndexEntry, NEW_STREAM, type Owner } from "./state.ts";
import { giveBack, grant, keepHeads } from "./window-changes.ts";
import { heldByOthers, isRecovery } from "./windows.ts";

export interface KeeperOptions {
  /** Unique to this process; part of its tags. One of `recoveryInstance` fills windows, and claims no stream. */
  readonly instance: string;
  /** An owner of whom nothing else is known is dead when its beat stood still this long on our clock. */
  readonly leaseMs: number;
  /** Shortest time between two writes of the object: some stores allow one a second. */
  readonly minIntervalMs: number;
  /**
   * Without a group (the default) one process at a time has the store. With one, members enter beside each other
   * and the generations of the streams alone decide who writes what.
   */
  readonly shared?: boolean;
}

export interface KeeperParts {
  readonly versions: VersionedStore;
  readonly objects: ObjectStore;
  readonly clock: Clock;
  readonly host: HostIdentity;
  readonly hook?: Hook;
  /** Told when an owner of unknown fate is being waited for. */
  readonly waiting?: (owner: string, ms: number) => void;
  /** Told of each intent that a former owner left and that came to its end now. */
  readonly settled?: (intent: Intent, outcome: "published" | "discarded") => void;
  /** Told of an outage that a claim is waiting out (null: it is over), and of an index that can't be tidied. */
  readonly trouble?: (failure: Failure | null) => void;
}

export class CoverageKeeper implements CoverageStore, WindowCoverage {
  readonly #o: KeeperOptions;
  readonly #p: KeeperParts;
  readonly #queue: CasQueue;
  readonly #segments: IndexSegments;
  readonly #silence: Silence;
  /** Of recovery: who had fallen silent at the last heartbeat. */
  #gone: ReadonlyMap<string, number> = new Map();
  #leases = 0;
  readonly #life = new AbortController();
  /** Intents of this process that are under way. */
  readonly #own = new Set<string>();
  #entered = false;
  #tidying: Promise<void> | null = null;
  #fenced: Failure | null = null;

  constructor(options: KeeperOptions, parts: KeeperParts) {
    this.#o = options;
    this.#p = parts;
    const { instance, minIntervalMs, leaseMs } = options;
    const { clock, host } = parts;
    this.#queue = new CasQueue({ instance, minIntervalMs, versions: parts.versions, clock: parts.clock });
    this.#silence = new Silence({ clock, host, leaseMs });
    this.#segments = new IndexSegments(parts.versions, instance);
  }

  get fenced(): Failure | null {
    return this.#fenced;
  }

  /** The state as this process last saw or wrote it. */
  get state(): CoverageState {
    return this.#queue.state;
  }

  /** True if no other process works on this sink, as far as was seen last. Recovery never takes itself for alone. */
  get isAlone(): boolean {
    return !this.#recovers && this.state.owners.every((o) => o.instance === this.#o.instance);
  }

  get #recovers(): boolean {
    return isRecovery(this.#o.instance);
  }

  /** Staged objects that open intents name: those are not strays. */
  stagedNames(): ReadonlySet<string> {
    return new Set([...this.state.intents.values()].flatMap((i) => i.targets.map((t) => t.staging)));
  }

  async open(): Promise<void> {
    const { instance, shared = false } = this.#o;
    await this.#p.versions.prepare();
    const me: Owner = { instance, host: this.#p.host.self, since: this.#p.clock.now(), beat: 0 };
    for (;;) {
      await this.#queue.reload();
      const beside = shared || this.#recovers;
      const gone = beside ? this.#surelyDead() : await this.#judge();
      const inTheWay = await this.#queue.change(enter(me, gone, !beside));
      if (inTheWay.length === 0) break;
    }
    this.#entered = true;
    if (this.#recovers) this.#gone = this.#silence.gone(this.state.owners, instance);
    // Whoever put a segment that no state names can't make one name it any more: it is fenced by now.
    const named = shared ? null : new Set(this.state.segments.map((s) => s.name));
    if (this.isAlone) await this.#p.versions.sweep(named);
  }

  async claim(streams: readonly StreamKey[], groupEpoch: number | null): Promise<readonly Claim[]> {
    const authorities = await this.#waitedOut(() =>
      this.#owned(claim(streams, groupEpoch, this.#o.instance)),
    );
    await this.#settleAll(streams);
    const byStream = new Map<StreamKey, Authority>();
    for (const a of authorities) if (a.kind === "generation") byStream.set(a.stream, a);
    return streams.map((stream) => {
      const s = this.state.streams.get(stream);
      const lost: Ranges = normalRanges(s?.lost ?? []);
      const { origin, staleCommit, covered, tip } = s ?? NEW_STREAM;
      const claimed = { stream, authority: byStream.get(stream)!, covered, lost, origin, staleCommit };
      return tip === undefined ? claimed : { ...claimed, tip };
    });
  }

  intend(intents: readonly Intent[]): Promise<readonly IntendResult[]> {
    for (const { id } of intents) this.#own.add(id);
    return this.#owned(intend(intents));
  }

  async cover(ids: readonly string[]): Promise<readonly IntendResult[]> {
    const missing = new Set(await this.#owned(cover(ids)));
    const answers: IntendResult[] = [];
    for (const id of ids) {
      const known = !missing.has(id) || (await this.#segments.holds(this.state, id));
      const detail = `intent ${id} is neither open nor in the index`;
      answers.push(known ? { ok: true } : { ok: false, reason: "gone", detail });
    }
    for (const id of ids) this.#own.delete(id);
    await this.#tidy();
    return answers;
  }

  settle(id: string, _outcome: "abandoned"): Promise<void> {
    this.#own.delete(id);
    return this.#owned(drop([id]));
  }

  covered(stream: StreamKey): Promise<Ranges> {
    return Promise.resolve(this.state.streams.get(stream)?.covered ?? []);
  }

  recordLost(ranges: readonly LostRange[]): Promise<void> {
    return this.#waitedOut(() => this.#owned(recordLost(ranges)));
  }

  rememberOrigins(origins: readonly Origin[]): Promise<void> {
    return this.#waitedOut(() => this.#owned(rememberOrigins(origins)));
  }

  topic(name: string): Promise<TopicMemory | null> {
    return Promise.resolve(this.state.topics.get(name) ?? null);
  }

  rememberTopic(name: string, memory: TopicMemory): Promise<TopicMemory> {
    return this.#waitedOut(() => this.#owned(rememberTopic(name, memory)));
  }

  lease(window: string): Promise<Authority> {
    return this.#waitedOut(() => this.#owned(lease(window, this.#o.instance)));
  }

  async leaseWindows(wanted: readonly Span[]): Promise<readonly LeasedWindow[]> {
    const change = grant(wanted, this.#o.instance, ++this.#leases, this.#gone);
    const granted = await this.#owned(change);
    const within = (s: Span) => granted.some((g) => g.stream === s.stream && overlapsRange([g.range], s));
    // Nobody who lives intends anything there: it was left behind by a former holder or owner.
    await this.#settle((i) => i.spans.some(within));
    return granted.map((g) => ({ ...g, covered: this.state.streams.get(g.stream)?.covered ?? [] }));
  }

  othersHold(): Promise<readonly Span[]> {
    return Promise.resolve(heldByOthers(this.state, this.#o.instance, this.#gone));
  }

  releaseWindows(): Promise<void> {
    return this.#owned(giveBack(this.#o.instance));
  }

  holds({ authority }: LeasedWindow): boolean {
    if (this.#fenced !== null || authority.kind !== "lease") return false;
    return this.state.leases.get(authority.window)?.lease === authority.lease;
  }

  async heartbeat(heads: ReadonlyMap<StreamKey, bigint> = new Map()): Promise<void> {
    const { instance, shared = false } = this.#o;
    if (this.#recovers) {
      await this.#owned(beat);
      this.#gone = this.#silence.gone(this.state.owners, instance);
      return;
    }
    // Without a group only recovery is beside us.
    const gone = this.#silence.gone(this.state.owners, instance);
    const out = shared ? gone : new Map([...gone].filter(([other]) => isRecovery(other)));
    await this.#owned((state) => beatWithout(out)(keepHeads(instance, heads)(state).state));
  }

  /** Leaves, so that a successor need not wait for the lease. That it fails changes nothing but that. */
  async close(): Promise<void> {
    this.#life.abort(new Failure("internal.cancelled", "the coverage store was closed"));
    if (this.#fenced !== null || !this.#entered) return;
    this.#entered = false;
    await this.#queue.change(leave(this.#o.instance)).catch(() => {});
  }

  /** Sets of files that landed, oldest first. */
  index(): Promise<readonly IndexEntry[]> {
    return this.#segments.all(this.state);
  }

  /** Sets that lie there, in the order of `files`, take the place of the index, and are covered. For a sole owner. */
  async reindex(files: readonly SetFile[]): Promise<Reindexed> {
    const found = reindex(this.state, await this.index(), files);
    const segments = await this.#segments.write(found.entries);
    await this.#owned(reindexed(found.covered, segments));
    return found;
  }

  // ---- who else is there

  async #judge(): Promise<ReadonlyMap<string, number>> {
    const recovery = this.state.owners.filter((o) => isRecovery(o.instance));
    const judge = {
      instance: this.#o.instance,
      host: this.#p.host,
      clock: this.#p.clock,
      leaseMs: this.#o.leaseMs,
      place: this.#p.versions.place,
      signal: this.#life.signal,
      owners: async () => {
        await this.#queue.reload();
        return this.state.owners;
      },
      waiting: this.#p.waiting,
    };
    const gone = await judgeOwners(
      judge,
      this.state.owners.filter((o) => !isRecovery(o.instance)),
    );
    return new Map([...gone, ...this.#dead(recovery)]);
  }

  /** Of recovery only its like: a grant takes live owners out, with what that takes. */
  #surelyDead(): ReadonlyMap<string, number> {
    return this.#dead(this.state.owners.filter((o) => !this.#recovers || isRecovery(o.instance)));
  }

  #dead(owners: readonly Owner[]): ReadonlyMap<string, number> {
    const dead = owners.filter((o) => this.#p.host.isAlive(o.host) === "dead");
    return new Map(dead.map((o) => [o.instance, o.beat]));
  }

  // ---- what former owners left

  /**
   * Also of what the streams were before their topic was made anew, which nobody will claim any more; and, where nobody
   * else works, all that is open: of topics that are gone, or are not read any more. What recovery is at, it ends itself.
   */
  #settleAll(streams: readonly StreamKey[]): Promise<void> {
    const concerns = (key: StreamKey) => streams.some((s) => s === key || isEarlierLife(key, s));
    return this.#settle(
      (i) =>
        (i.spans.some((s) => concerns(s.stream)) && !underLease(this.state, i)) ||
        (this.isAlone && !this.#own.has(i.id)),
    );
  }

  async #settle(which: (intent: Intent) => boolean): Promise<void> {
    for (;;) {
      const intent = [...this.state.intents.values()].find(which);
      if (intent === undefined) return;
      const settled = async () => {
        const outcome = await settleIntent(this.#p.objects, intent, this.#p.hook);
        if (outcome === "published") await this.#owned(cover([intent.id]));
        else await this.#owned(drop([intent.id]));
        this.#p.settled?.(intent, outcome);
      };
      // Recovery has other sinks to see to.
      await (this.#recovers ? settled() : this.#waitedOut(settled));
    }
  }

  // ---- the index

  /** Housekeeping: that it fails delays no acknowledgement; the next cover tries again. One at a time. */
  #tidy(): Promise<void> {
    this.#tidying ??= this.#tidyOnce().finally(() => {
      this.#tidying = null;
    });
    return this.#tidying;
  }

  async #tidyOnce(): Promise<void> {
    try {
      for (const change of await this.#segments.tidy(this.state)) await this.#owned(change);
    } catch (e) {
      const failure = asFailure(e);
      if (failure.code !== "coverage.fenced") this.#p.trouble?.(failure);
    }
  }

  // ---- compare and swap

  async #owned<T>(change: Change<T>): Promise<T> {
    if (this.#fenced !== null) throw this.#fenced;
    try {
      return await this.#queue.change(asOwner(this.#o.instance, change));
    } catch (e) {
      const f = asFailure(e);
      if (f.code === "coverage.fenced") this.#fenced = f;
      throw f;
    }
  }

  #waitedOut<T>(fn: () => Promise<T>): Promise<T> {
    const pause = (ms: number) => sleep(this.#p.clock, ms, this.#life.signal);
    const trouble = (f: Failure | null) => this.#p.trouble?.(f);
    return waitedOut({ pause, trouble }, fn);
  }
}

/** Under a window of somebody who is there. */
function underLease({ leases }: CoverageState, { authorities }: Intent): boolean {
  return authorities.some((a) => a.kind === "lease" && leases.get(a.window)?.lease === a.lease);
}
