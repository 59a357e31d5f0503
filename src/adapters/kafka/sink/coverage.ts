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
 * InitProducerId, cannot make it good again.
 */
import {
  type Change,
  claim as claimChange,
  enter,
  lease as leaseChange,
  leave,
  recordLost,
  rememberOrigins,
  rememberTopic,
  requireOwner,
} from "../../../core/coverage/changes.ts";
import { judgeOwners } from "../../../core/coverage/judge.ts";
import { passes, waitedOut } from "../../../core/coverage/outage.ts";
import { normalRanges } from "../../../core/coverage/ranges.ts";
import type { Owner } from "../../../core/coverage/state.ts";
import { Failure } from "../../../core/failure/failure.ts";
import type {
  Authority,
  Claim,
  LostRange,
  Origin,
  Range,
  StreamCoverage,
  TopicMemory,
} from "../../../core/ports/coverage.ts";
import type { HostIdentity } from "../../../core/ports/host-identity.ts";
import type { StreamKey } from "../../../core/records/stream.ts";
import { sleep } from "../../../core/time/clock.ts";
import type { KafkaClient } from "../client.ts";
import { columnsOf } from "../producer/columns.ts";
import { KafkaProducer, type ProducerParts } from "../producer/producer.ts";
import { WriterIdentities } from "./identities.ts";
import { KeyedLog } from "./keyed-log.ts";
import { type Decided, SinkLock } from "./lock.ts";
import {
  beatKey,
  decodeRanges,
  decodeState,
  encodeLanded,
  RANGE_PARTITION,
  rangeKey,
  type SinkKey,
  type SinkState,
  STATE_PARTITION,
  united,
} from "./state.ts";
import { prepareCoverageTopic, prepareTargets, type TopicRules } from "./targets.ts";

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
/** Longest that a look at the states waits for changes of others. */
const LOOK_MS = 1_000;
const MOVED_TRIES = 20;

/** Somebody else claimed one of the streams in the middle of our claim. */
class Moved extends Error {}

export class KafkaCoverage implements StreamCoverage {
  readonly #o: KafkaCoverageOptions;
  readonly #p: KafkaCoverageParts;
  readonly #life = new AbortController();
  readonly #states: KeyedLog;
  readonly #ranges: KeyedLog;
  readonly #lock: SinkLock;
  readonly #identities: WriterIdentities;
  #beats: KafkaProducer | null = null;
  #beat = 0;
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
  }

  get fenced(): Failure | null {
    return this.#fenced;
  }

  async open(): Promise<void> {
    const { instance, leaseMs, rules, shared = false } = this.#o;
    const { host, clock, waiting, client } = this.#p;
    const { signal } = this.#life;
    const me: Owner = { instance, host: host.self, since: clock.now(), beat: 0 };
    const lasting = <T>(work: () => Promise<T>) =>
      this.#waitedOut(
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
      const gone = shared
        ? new Map(there.filter((o) => host.isAlive(o.host) === "dead").map((o) => [o.instance, o.beat]))
        : await judgeOwners(judge, there);
      const change = enter(me, gone, !shared);
      const left = await lasting(() => this.#lock.change((s) => asDecided(s, change(s.coverage)), signal));
      if (left.length === 0) break;
    }
    this.#entered = true;
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
    const { targets } = decodeState(this.#o.key, this.#states.entries);
    const ids = await prepareTargets(this.#p.client, this.#o.rules, streams, targets, this.#p.clock, signal);
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
    const writers = await this.#identities.takeOver(streams, lanes, seen, signal);
    await this.#ranges.readToEnd(signal);
    const landed = decodeRanges(key, this.#ranges.entries);
    return this.#lock.change((now): Decided<readonly Claim[]> => {
      requireOwner(now.coverage, instance);
      if (streams.some((s) => isMoved(s, seen, now))) throw new Moved();
      const { state, answer } = claimChange(streams, groupEpoch, instance)(now.coverage);
      const writing = new Map(now.writers);
      const ranges = new Map<string, string | null>();
      const generations = new Map(answer.map((a) => [a.kind === "generation" ? a.stream : "", a]));
      const claims = streams.map((stream, i): Claim => {
        const authority = generations.get(stream)!;
        const writer = writers[i]!;
        writing.set(stream, writer.id);
        const parts = landed.get(stream) ?? new Map();
        const all = united(parts.values());
        if (authority.kind === "generation" && parts.size > 0) {
          for (const generation of parts.keys()) ranges.set(rangeKey(key, stream, generation), null);
          // Under the generation before, since the lane begins its own with what it lands itself.
          ranges.set(rangeKey(key, stream, authority.generation - 1), encodeLanded(all));
        }
        const { origin, staleCommit, lost } = state.streams.get(stream)!;
        return {
          stream,
          authority: { ...authority, writer } as Authority,
          covered: all.ranges,
          lost: normalRanges(lost),
          origin,
          staleCommit,
        };
      });
      const known = new Map([...now.targets, ...targets]);
      return { state: { coverage: state, writers: writing, targets: known }, ranges, answer: claims };
    }, signal);
  }

  async release(streams: readonly StreamKey[]): Promise<void> {
    const { instance } = this.#o;
    await this.#alone(() =>
      this.#lock.change(({ coverage, writers, targets }) => {
        const kept = new Map(writers);
        const all = new Map(coverage.streams);
        for (const stream of streams) {
          const s = all.get(stream);
          if (s?.owner !== instance) continue;
          all.set(stream, { ...s, owner: null });
          kept.delete(stream);
        }
        const state = { coverage: { ...coverage, streams: all }, writers: kept, targets };
        return { state, answer: undefined };
      }, this.#life.signal),
    );
  }

  async covered(stream: StreamKey): Promise<readonly Range[]> {
    return this.#alone(async () => {
      await this.#ranges.readToEnd(this.#life.signal);
      const parts = decodeRanges(this.#o.key, this.#ranges.entries).get(stream);
      return united(parts?.values() ?? []).ranges;
    });
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

  /** Without the lock, which a claim of somebody else may need just now. */
  heartbeat(): Promise<void> {
    return this.#alone(async () => {
      if (this.#fenced !== null) throw this.#fenced;
      const { signal } = this.#life;
      try {
        // A change that hangs is not waited for: the next claim or the next beat sees what came of it.
        if (await this.#states.readToEndWithin(LOOK_MS, signal))
          requireOwner(decodeState(this.#o.key, this.#states.entries).coverage, this.#o.instance);
      } catch (e) {
        throw this.#noted(e);
      }
      await this.#writeBeat(signal);
    });
  }

  async #writeBeat(signal: AbortSignal): Promise<void> {
    const { client } = this.#p;
    const { rules, key, instance } = this.#o;
    const options = { lingerMs: 0, batchBytes: 16 * 1024, deliveryTimeoutMs: REQUEST_MS };
    if (this.#beats === null) {
      this.#beats = new KafkaProducer(client, options, this.#p);
      await this.#beats.start(signal);
    }
    try {
      const record = { key: beatKey(key, instance), value: String(++this.#beat) };
      const to = { partition: STATE_PARTITION, signal };
      await (await this.#beats.send(rules.coverageTopic, columnsOf([record]), to)).done;
    } catch (e) {
      this.#beats?.abort();
      this.#beats = null;
      throw e;
    }
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
    this.#beats?.abort();
    this.#p.client.close();
  }

  /** Ends what our lanes left open: until then readers of committed records would wait. */
  async #leave(signal: AbortSignal): Promise<void> {
    await this.#identities.end(LEAVE_MS, signal);
    const { instance } = this.#o;
    await this.#lock.change((s) => {
      const { state } = leave(instance)(s.coverage);
      const free = [...state.streams].flatMap(([stream, { owner }]) => (owner === null ? [stream] : []));
      const writers = new Map(s.writers);
      for (const stream of free)
        if (s.coverage.streams.get(stream)?.owner === instance) writers.delete(stream);
      return { state: { ...s, coverage: state, writers }, answer: undefined };
    }, signal);
  }

  // ---- calls

  #owned<T>(change: Change<T>): Promise<T> {
    const { instance } = this.#o;
    return this.#waitedOut(() =>
      this.#alone(async () => {
        if (this.#fenced !== null) throw this.#fenced;
        try {
          return await this.#lock.change((s) => {
            requireOwner(s.coverage, instance);
            return asDecided(s, change(s.coverage));
          }, this.#life.signal);
        } catch (e) {
          throw this.#noted(e);
        }
      }),
    );
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

  #waitedOut<T>(fn: () => Promise<T>, passing: (f: Failure) => boolean = passing_): Promise<T> {
    const pause = (ms: number) => sleep(this.#p.clock, ms, this.#life.signal);
    const trouble = (f: Failure | null) => this.#p.trouble?.(f);
    return waitedOut({ pause, trouble }, fn, passing);
  }
}

/** What is wrong with the topics themselves nobody mends by waiting. */
const FOR_GOOD: ReadonlySet<string> = new Set([
  "kafka.sink_is_source",
  "kafka.sink_recreated",
  "kafka.coverage_topic",
  "kafka.unknown_partition",
  "kafka.unknown_topic",
]);
const passing_ = (f: Failure): boolean => passes(f) && (f.retry || !FOR_GOOD.has(f.code));

function asDecided<T>(
  s: SinkState,
  { state, answer }: { state: SinkState["coverage"]; answer: T },
): Decided<T> {
  return { state: { ...s, coverage: state }, answer };
}

function isMoved(stream: StreamKey, seen: SinkState, now: SinkState): boolean {
  const generation = (s: SinkState) => s.coverage.streams.get(stream)?.generation ?? 0;
  return seen.writers.get(stream) !== now.writers.get(stream) || generation(seen) !== generation(now);
}

function deadline(clock: ProducerParts["clock"], ms: number): AbortSignal {
  const over = new AbortController();
  clock.after(ms, () => over.abort());
  return over.signal;
}
