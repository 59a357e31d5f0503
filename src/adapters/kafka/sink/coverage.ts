/**
 * The coverage of a Kafka sink: records of a compacted topic in the cluster that it writes to. Lanes write ranges, in
 * the transactions of the records (set.ts); this is the control thread's end, which writes everything else under the
 * sink's lock (lock.ts).
 *
 * A claim is what makes the rest safe. Each lane writes with a transactional id, which the stream's record names, and
 * under an identity (producer id and epoch) that only a claim gives out. In this order:
 *
 *   1. InitProducerId for every id under which a claimed stream was written, and for our own: no former owner can
 *      commit any more, what it left open is aborted, and what it had begun to commit is committed
 *   2. the ranges are read to their end: nothing can be added to what they say of the claimed streams
 *   3. under the lock, if generation and writer of each stream are still those of 1, the new ones become durable;
 *      else all of it again
 *
 * So an identity that was superseded is of no use however late its bytes arrive, and a lane, which never calls
 * InitProducerId, cannot make it good again. Recovery leases windows in the same way: window-leases.ts.
 */
import {
  type Change,
  enter,
  lease as leaseChange,
  recordLost,
  rememberOrigins,
  rememberTopic,
  requireOwner,
} from "../../../core/coverage/changes.ts";
import { displacedOwners, judgeOwners } from "../../../core/coverage/judge.ts";
import { waitedOut } from "../../../core/coverage/outage.ts";
import { Silence } from "../../../core/coverage/silence.ts";
import type { Owner } from "../../../core/coverage/state.ts";
import { isRecovery } from "../../../core/coverage/windows.ts";
import { Failure } from "../../../core/failure/failure.ts";
import type {
  Authority,
  Claim,
  LeasedWindow,
  LostRange,
  Origin,
  Range,
  TopicMemory,
  WindowCoverage,
} from "../../../core/ports/coverage.ts";
import type { HostIdentity } from "../../../core/ports/host-identity.ts";
import type { Span, StreamKey } from "../../../core/records/stream.ts";
import { sleep } from "../../../core/time/clock.ts";
import type { KafkaClient } from "../client.ts";
import type { ProducerParts } from "../producer/producer.ts";
import { claimChange } from "./claim-change.ts";
import { WriterIdentities } from "./identities.ts";
import { KeyedLog } from "./keyed-log.ts";
import { type Decided, SinkLock } from "./lock.ts";
import { LOOK_MS, MOVED_TRIES, RANGES_MS } from "./patience.ts";
import { OwnerSigns } from "./signs.ts";
import {
  decodeRanges,
  decodeState,
  RANGE_PARTITION,
  type SinkKey,
  type SinkState,
  STATE_PARTITION,
  united,
} from "./state.ts";
import { passesAtTopics, prepareCoverageTopic, prepareTargets, type TopicRules } from "./targets.ts";
import {
  deadHolders,
  freeWriter,
  isGranted,
  isMoved,
  keepingWindows,
  left,
  strayHolders,
  WindowLeases,
  withoutHolders,
} from "./window-leases.ts";

export interface KafkaCoverageOptions {
  readonly key: SinkKey;
  readonly rules: TopicRules;
  /** Beginning of every transactional id. */
  readonly idPrefix: string;
  /** Unique to this process. */
  readonly instance: string;
  readonly leaseMs: number;
  readonly transactionTimeoutMs: number;
  /**
   * Without a group (the default) one process at a time has the sink, and its transactional ids are the same in each
   * run. With one, members enter beside each other, each with ids of its own.
   */
  readonly shared?: boolean;
}

export interface KafkaCoverageParts extends ProducerParts {
  readonly client: KafkaClient;
  readonly host: HostIdentity;
  /** Which thread a lane's number stands for now: one that was replaced writes under another identity. */
  readonly laneLife: (lane: number) => string;
  readonly waiting?: (owner: string, ms: number) => void;
  /** Told of an outage that a call is waiting out; null: it is over. */
  readonly trouble?: (failure: Failure | null) => void;
}

/** Longest that leaving may take. */
const LEAVE_MS = 3_000;
const REQUEST_MS = 30_000;
/** Longest that recovery, which has other sinks to see to, waits for brokers that move. */
const RECOVERY_MS = 5_000;

/** Somebody else claimed one of the streams in the middle of our claim. */
class Moved extends Error {}

export class KafkaCoverage implements WindowCoverage {
  readonly #o: KafkaCoverageOptions;
  readonly #p: KafkaCoverageParts;
  readonly #life = new AbortController();
  readonly #states: KeyedLog;
  readonly #ranges: KeyedLog;
  readonly #lock: SinkLock;
  readonly #identities: WriterIdentities;
  readonly #windows: WindowLeases;
  readonly #silence: Silence;
  /** Of recovery: who had fallen silent at the last heartbeat. */
  #gone: ReadonlyMap<string, number> = new Map();
  readonly #signs: OwnerSigns;
  /** The end of the line of calls: one at a time. */
  #line: Promise<unknown> = Promise.resolve();
  #entered = false;
  #fenced: Failure | null = null;

  constructor(options: KafkaCoverageOptions, parts: KafkaCoverageParts) {
    this.#o = options;
    this.#p = parts;
    const { coverageTopic: topic } = options.rules;
    // Whoever holds the end of the log back does so no longer than its transaction may last.
    const logParts = { ...parts, stableMs: options.transactionTimeoutMs + REQUEST_MS };
    this.#states = new KeyedLog(topic, STATE_PARTITION, logParts);
    this.#ranges = new KeyedLog(topic, RANGE_PARTITION, logParts);
    const { idPrefix, instance, transactionTimeoutMs, shared = false } = options;
    const { laneLife } = parts;
    const identity = { idPrefix, instance, transactionTimeoutMs, shared, laneLife };
    this.#identities = new WriterIdentities(identity, parts);
    const transactionalId = `${idPrefix}.coverage`;
    this.#lock = new SinkLock({ topic, key: options.key, transactionalId }, { ...parts, log: this.#states });
    this.#signs = new OwnerSigns({ topic, key: options.key, instance }, parts);
    this.#silence = new Silence({ clock: parts.clock, host: parts.host, leaseMs: options.leaseMs });
    this.#windows = new WindowLeases(
      { key: options.key, instance, laneLife },
      {
        ...{ lock: this.#lock, states: this.#states, ranges: this.#ranges, identities: this.#identities },
        prepare: (streams) => this.#prepared(streams, this.#life.signal),
      },
    );
  }

  get #recovers(): boolean {
    return isRecovery(this.#o.instance);
  }

  get fenced(): Failure | null {
    return this.#fenced;
  }

  async open(): Promise<void> {
    const { instance, leaseMs, rules, idPrefix } = this.#o;
    const { host, clock, waiting, client } = this.#p;
    const { signal } = this.#life;
    const me: Owner = { instance, host: host.self, since: clock.now(), beat: 0 };
    const lasting = <T>(work: () => Promise<T>) =>
      this.#recovers
        ? this.#briefly(() => this.#alone(work))
        : this.#waitedOut(
            () => this.#alone(work),
            (f) => f.retry,
          );
    await lasting(() => prepareCoverageTopic(client, rules, clock, signal));
    // Whatever an earlier process was in the middle of is over, so that it cannot hold up the reading.
    const owners = () =>
      lasting(() => this.#lock.change((s) => ({ state: s, answer: s.coverage.owners }), signal));
    for (;;) {
      const place = `${rules.coverageTopic}, sink ${this.#o.key.sink} of ${this.#o.key.pipeline}`;
      const judge = { instance, host, clock, leaseMs, place, signal, owners, waiting };
      const there = await owners();
      const shared = this.#o.shared === true;
      const gone = await displacedOwners({ instance, host, shared }, there, (ingest) =>
        judgeOwners(judge, ingest),
      );
      const change = enter(me, gone, !shared && !this.#recovers);
      const enters = (s: SinkState): Decided<readonly Owner[]> => {
        const { state, answer } = change(s.coverage);
        const coverage = keepingWindows(s, state, null);
        if (!this.#recovers) return { state: { ...s, coverage }, answer };
        const writer = s.holders.get(instance) ?? freeWriter(idPrefix, s);
        this.#windows.enter(writer);
        return { state: { ...s, coverage, holders: new Map(s.holders).set(instance, writer) }, answer };
      };
      const left = await lasting(() => this.#lock.change(enters, signal));
      if (left.length === 0) break;
    }
    this.#entered = true;
    if (this.#recovers) await lasting(() => this.#look());
  }

  claim(
    streams: readonly StreamKey[],
    groupEpoch: number | null,
    lanes: readonly number[] = [],
  ): Promise<readonly Claim[]> {
    return this.#waitedOut(() => this.#alone(() => this.#claim(streams, groupEpoch, lanes)));
  }

  async #claim(
    streams: readonly StreamKey[],
    groupEpoch: number | null,
    lanes: readonly number[],
  ): Promise<readonly Claim[]> {
    const { signal } = this.#life;
    await this.#states.read(signal);
    const ids = await this.#prepared(streams, signal);
    for (let tries = 1; ; tries++) {
      try {
        return await this.#tryClaim(streams, groupEpoch, lanes, ids);
      } catch (e) {
        if (!(e instanceof Moved)) throw this.#noted(e);
        if (tries === MOVED_TRIES)
          throw new Failure("kafka.timeout", `others claimed the same streams ${tries} times meanwhile`);
      }
    }
  }

  /** Looks at the topics that the streams go to; their ids. */
  #prepared(streams: readonly StreamKey[], signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    const { targets } = decodeState(this.#o.key, this.#states.entries);
    return prepareTargets(this.#p.client, this.#o.rules, streams, targets, this.#p.clock, signal);
  }

  async #tryClaim(
    streams: readonly StreamKey[],
    groupEpoch: number | null,
    lanes: readonly number[],
    targets: ReadonlyMap<string, string>,
  ): Promise<readonly Claim[]> {
    const { key, instance } = this.#o;
    const { signal } = this.#life;
    // What hangs is not waited for: it is found under the lock, and then all of this is done again.
    const whole = await this.#states.readToEndWithin(LOOK_MS, signal);
    const seen = decodeState(key, this.#states.entries);
    // Whoever was displaced must not fence those that have the sink now.
    if (whole) requireOwner(seen.coverage, instance);
    const strays = strayHolders(seen);
    // What a recovery that is gone left open would hold the reading up.
    for (const id of [...strays.values(), ...deadHolders(seen, this.#p.host)])
      await this.#identities.fence(id, signal);
    const writers = await this.#identities.takeOver(streams, lanes, seen, signal);
    await this.#ranges.readToEnd(signal);
    const landed = decodeRanges(key, this.#ranges.entries);
    const wish = { key, instance, streams, groupEpoch, writers, seen, landed, targets };
    const claims = await this.#lock.change((found): Decided<readonly Claim[]> => {
      requireOwner(found.coverage, instance);
      if (isGranted(seen, found) || streams.some((s) => isMoved(s, seen, found))) throw new Moved();
      return claimChange(withoutHolders(found, strays), wish);
    }, signal);
    this.#signs.claimed(claims);
    return claims;
  }

  async release(streams: readonly StreamKey[]): Promise<void> {
    const { instance } = this.#o;
    await this.#alone(() =>
      this.#lock.change((now) => {
        const { coverage, writers } = now;
        const kept = new Map(writers);
        const all = new Map(coverage.streams);
        for (const stream of streams) {
          const s = all.get(stream);
          if (s?.owner !== instance) continue;
          all.set(stream, { ...s, owner: null });
          kept.delete(stream);
        }
        const state = { ...now, coverage: { ...coverage, streams: all }, writers: kept };
        return { state, answer: undefined };
      }, this.#life.signal),
    );
    this.#identities.released(streams);
  }

  covered(stream: StreamKey): Promise<readonly Range[]> {
    const look = () => this.#alone(() => this.#covered(stream, this.#life.signal));
    return this.#recovers ? this.#briefly(look) : look();
  }

  async #covered(stream: StreamKey, signal: AbortSignal): Promise<readonly Range[]> {
    if (this.#recovers) await this.#ranges.readToEndWithin(RANGES_MS, signal);
    else await this.#ranges.readToEnd(signal);
    const parts = decodeRanges(this.#o.key, this.#ranges.entries).get(stream);
    return united(parts?.values() ?? []).ranges;
  }

  recordLost(ranges: readonly LostRange[]): Promise<void> {
    return this.#owned(recordLost(ranges));
  }

  rememberOrigins(origins: readonly Origin[]): Promise<void> {
    return this.#owned(rememberOrigins(origins));
  }

  topic(name: string): Promise<TopicMemory | null> {
    return this.#waitedOut(() =>
      this.#alone(async () => {
        await this.#states.readToEnd(this.#life.signal);
        return decodeState(this.#o.key, this.#states.entries).coverage.topics.get(name) ?? null;
      }),
    );
  }

  rememberTopic(name: string, memory: TopicMemory): Promise<TopicMemory> {
    return this.#owned(rememberTopic(name, memory));
  }

  lease(window: string): Promise<Authority> {
    return this.#owned(leaseChange(window, this.#o.instance));
  }

  leaseWindows(wanted: readonly Span[]): Promise<readonly LeasedWindow[]> {
    return this.#briefly(() =>
      this.#noting(() => this.#windows.lease(wanted, this.#gone, this.#life.signal)),
    );
  }

  othersHold(): Promise<readonly Span[]> {
    return Promise.resolve(this.#windows.othersHold(this.#gone));
  }

  releaseWindows(): Promise<void> {
    return this.#briefly(() => this.#noting(() => this.#windows.release(this.#life.signal)));
  }

  holds(window: LeasedWindow): boolean {
    return this.#fenced === null && this.#windows.holds(window);
  }

  /** Without the lock, which a claim of somebody else may need just now. */
  async heartbeat(heads: ReadonlyMap<StreamKey, bigint> = new Map()): Promise<void> {
    if (this.#fenced !== null) throw this.#fenced;
    const { signal } = this.#life;
    const told = this.#signs.moved(heads);
    // That recovery lives is seen whatever it is waiting for here.
    if (this.#recovers) await this.#signs.tell(told, signal);
    return this.#noting(async () => {
      await this.#look();
      if (!this.#recovers) await this.#signs.tell(told, signal);
    });
  }

  /** A change that hangs is not waited for: the next claim or the next beat sees what came of it. */
  async #look(): Promise<void> {
    const { key, instance } = this.#o;
    if (!(await this.#states.readToEndWithin(LOOK_MS, this.#life.signal))) return;
    const state = decodeState(key, this.#states.entries);
    requireOwner(state.coverage, instance);
    if (!this.#recovers) return;
    this.#gone = this.#silence.gone(state.coverage.owners, instance);
    this.#windows.look(state);
  }

  /** Leaves, so that a successor need not wait for the lease. That it fails changes nothing but that. */
  async close(): Promise<void> {
    const entered = this.#entered && this.#fenced === null;
    this.#entered = false;
    this.#life.abort(new Failure("internal.cancelled", "the coverage was closed"));
    await this.#line.catch(() => {});
    if (entered) {
      const until = AbortSignal.any([this.#p.client.life, deadline(this.#p.clock, LEAVE_MS)]);
      await this.#leave(until).catch(() => {});
    }
    this.#lock.close();
    this.#signs.close();
    this.#p.client.close();
  }

  /** Ends what our lanes left open: until then readers of committed records would wait. */
  async #leave(signal: AbortSignal): Promise<void> {
    await this.#identities.end(LEAVE_MS, signal);
    if (this.#recovers) await this.#windows.end(signal);
    const { instance } = this.#o;
    await this.#lock.change((s) => ({ state: left(s, instance), answer: undefined }), signal);
  }

  // ---- calls

  #owned<T>(change: Change<T>): Promise<T> {
    const { instance } = this.#o;
    return this.#waitedOut(() =>
      this.#noting(() =>
        this.#lock.change((s) => {
          requireOwner(s.coverage, instance);
          return asDecided(s, change(s.coverage));
        }, this.#life.signal),
      ),
    );
  }

  #noting<T>(work: () => Promise<T>): Promise<T> {
    return this.#alone(async () => {
      if (this.#fenced !== null) throw this.#fenced;
      try {
        return await work();
      } catch (e) {
        throw this.#noted(e);
      }
    });
  }

  #noted(e: unknown): unknown {
    if (e instanceof Failure && e.code === "coverage.fenced") this.#fenced = e;
    return e;
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#line.then(work);
    this.#line = turn.catch(() => {});
    return turn;
  }

  /** Recovery waits for no outage, but for a moment in which leaders move. */
  #briefly<T>(fn: () => Promise<T>): Promise<T> {
    const { clock } = this.#p;
    const until = clock.monotonic() + RECOVERY_MS;
    return this.#waitedOut(fn, (f) => f.retry && clock.monotonic() < until);
  }

  #waitedOut<T>(fn: () => Promise<T>, passing: (f: Failure) => boolean = passesAtTopics): Promise<T> {
    const pause = (ms: number) => sleep(this.#p.clock, ms, this.#life.signal);
    const trouble = (f: Failure | null) => this.#p.trouble?.(f);
    return waitedOut({ pause, trouble }, fn, passing);
  }
}

function asDecided<T>(
  s: SinkState,
  { state, answer }: { state: SinkState["coverage"]; answer: T },
): Decided<T> {
  return { state: { ...s, coverage: state }, answer };
}

function deadline(clock: ProducerParts["clock"], ms: number): AbortSignal {
  const over = new AbortController();
  clock.after(ms, () => over.abort());
  return over.signal;
}
