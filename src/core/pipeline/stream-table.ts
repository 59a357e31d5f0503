/**
 * The streams of this run: who they are, which lane has them, under which authority they are written, and where
 * they begin. Beginning is claim first, then the start rule on what the claim says is covered: nobody else can
 * add to it any more.
 */
import { firstUncovered, unionRanges } from "../coverage/ranges.ts";
import type { Ledger } from "../delivery/ledger.ts";
import { planStart, type StartPlan } from "../delivery/start.ts";
import { asFailure, Failure } from "../failure/failure.ts";
import type {
  Authority,
  Claim,
  LostRange,
  Origin,
  Range,
  StreamCoverage,
  TopicMemory,
} from "../ports/coverage.ts";
import type { LaneStream } from "../ports/lane.ts";
import type { Observer } from "../ports/observer.ts";
import type { FoundStream, StreamStart } from "../ports/source.ts";
import { type Span, type StreamId, type StreamKey, streamKey } from "../records/stream.ts";

import type { PlacedStream } from "./secondary-parts.ts";

export interface StartRules {
  /** Where a stream begins that has neither a commit nor coverage; "timestamp": where the source resolved it. */
  readonly start: "earliest" | "latest" | "timestamp";
  readonly acceptGap: boolean;
  /** Records that retention removed before they were read: stop, or record them as lost and go on. */
  readonly retention: "fail" | "skip";
  /** A topic that was made anew under its name: stop, or begin a new incarnation from its start. */
  readonly onRecreated: "fail" | "new_incarnation";
}

export interface TableStream {
  readonly key: StreamKey;
  readonly id: StreamId;
  readonly lane: number;
  readonly laneStream: LaneStream;
  readonly authority: Authority;
  /** End of the log when the stream was found. */
  readonly latest: bigint;
  /** It is gone at the source: nothing more of it is delivered. */
  readonly ended: boolean;
  /** It is not ours any more: nothing is known of it but who it was. */
  readonly dropped: boolean;
}

export interface Begun {
  readonly lane: number;
  readonly start: StreamStart;
  readonly laneStream: LaneStream;
  /** The broker has not been told of everything that is durable. */
  readonly behind: boolean;
  /** Positions that a lane had already. */
  readonly again: number;
}

export interface StreamTableParts {
  readonly coverage: StreamCoverage;
  readonly ledger: Ledger;
  readonly observer: Observer;
}

interface Named {
  readonly found: FoundStream;
  readonly id: StreamId;
  /** The broker's commit; it may have been made for an earlier incarnation. */
  readonly committed: bigint | null;
  /** Made anew since the last run: every record of it is new. */
  readonly renewed: boolean;
}

/** What is known of a stream before it begins. */
interface Planned {
  readonly found: FoundStream;
  readonly id: StreamId;
  readonly key: StreamKey;
  readonly claim: Claim;
  readonly plan: StartPlan;
  readonly committed: bigint | null;
  /** To be recorded; null: it has one. */
  readonly origin: Origin | null;
  readonly stale: boolean;
}

export class StreamTable {
  readonly #streams: TableStream[] = [];
  readonly #byKey = new Map<StreamKey, number>();
  readonly #rules: StartRules;
  readonly #lanes: number;
  /** Lanes are dealt out in turn. */
  #nextLane = 0;
  readonly #p: StreamTableParts;
  /** Of claims: the sink's, though the source is told of them as well. */
  readonly #refused = new WeakSet<Failure>();

  constructor(rules: StartRules, lanes: number, parts: StreamTableParts) {
    this.#rules = rules;
    this.#lanes = lanes;
    this.#p = parts;
  }

  get(stream: number): TableStream {
    const s = this.#streams[stream];
    if (s === undefined) throw new Failure("internal.bug", `there is no stream ${stream}`);
    return s;
  }

  /** Whom the sinks beside the primary one have to know. */
  placed(stream: number): PlacedStream {
    const { key, lane, laneStream } = this.get(stream);
    const { position, skip, authority } = laneStream;
    const generation = authority.kind === "generation" ? authority.generation : 0;
    return { stream, key, lane, position, skip, generation };
  }

  /**
   * `groupEpoch`: under which the group gave them to us, null: no group. `settled` runs once they are claimed; if it
   * fails, as if anything else does, none has begun and all may be tried again.
   */
  async begin(
    found: readonly FoundStream[],
    groupEpoch: number | null = null,
    settled: () => Promise<void> = async () => {},
  ): Promise<readonly Begun[]> {
    const named = await this.#name(found);
    const lanes = named.map(() => this.#nextLane++ % this.#lanes);
    const keys = named.map((n) => streamKey(n.id));
    const claims = await this.#p.coverage.claim(keys, groupEpoch, lanes).catch((e) => {
      const failure = asFailure(e);
      this.#refused.add(failure);
      throw failure;
    });
    const planned = named.map((n, i) => ({ ...this.#plan(n, claims[i]!), lane: lanes[i]! }));
    const lost = planned.flatMap((p) => p.plan.newLost);
    const origins = planned.flatMap((p) => (p.origin === null ? [] : [p.origin]));
    if (lost.length > 0) await this.#p.coverage.recordLost(lost);
    // Before anything is read: who dies before the first cover must not begin at a later "latest".
    if (origins.length > 0) await this.#p.coverage.rememberOrigins(origins);
    await settled();
    // Not before all that is durable: from here on a position above them may be acknowledged.
    const begun = planned.map((p) => this.#add(p));
    for (const l of lost) this.#tellLost(l);
    return begun;
  }

  /** Whether the sink refused streams by it. */
  isOfSink(failure: Failure): boolean {
    return this.#refused.has(failure);
  }

  /** Claims a lane's streams anew and begins them at what is covered now. */
  async reclaim(lane: number, groupEpoch: number | null = null): Promise<readonly Begun[]> {
    const all = this.#streams.map((s, stream) => ({ s, stream }));
    const mine = all.filter(({ s }) => s.lane === lane && !s.dropped);
    const claims = await this.#p.coverage.claim(
      mine.map((x) => x.s.key),
      groupEpoch,
      mine.map(() => lane),
    );
    return mine.flatMap(({ s, stream }, i) => {
      // Lost while we claimed: the claim that follows it, by its owner, is the higher one.
      if (this.get(stream).dropped) return [];
      const claim = claims[i]!;
      const before = this.#p.ledger.state(stream);
      const settled = unionRanges(claim.covered, claim.lost);
      const position = firstUncovered(settled, before.committed);
      const skip = above(settled, position);
      const attempt = before.attempt + 1;
      this.#p.ledger.end(stream);
      this.#p.ledger.begin({
        stream,
        key: s.key,
        position,
        acknowledged: before.acknowledged,
        covered: skip,
        attempt,
      });
      if (before.end !== null) this.#p.ledger.watermark(stream, before.end);
      const { authority } = claim;
      const laneStream: LaneStream = { stream, id: s.id, position, attempt, authority, skip };
      this.#streams[stream] = { ...s, laneStream, authority };
      const start = { id: s.id, stream, lane, position, attempt, stale: false };
      const again = before.delivered > position ? Number(before.delivered - position) : 0;
      return [{ lane, laneStream, start, behind: false, again }];
    });
  }

  /** It is somebody else's. Should it come back it is another stream, under the same key. */
  drop(stream: number): void {
    const s = this.get(stream);
    this.#streams[stream] = { ...s, dropped: true };
    this.#byKey.delete(s.key);
  }

  /** Those of streams that are ours still. */
  ours(spans: readonly Span[]): readonly Span[] {
    return spans.filter((s) => this.#byKey.has(s.stream));
  }

  /** It is gone at the source. */
  end(stream: number): TableStream {
    const ended = { ...this.get(stream), ended: true };
    this.#streams[stream] = ended;
    return ended;
  }

  moved(stream: number, laneStream: LaneStream): void {
    this.#streams[stream] = { ...this.get(stream), laneStream };
  }

  /** Each with the leader epoch that its end was written in, as far as the source knows. */
  withEpochs(
    spans: readonly Span[],
    epochBefore: (stream: number, next: bigint) => number | null,
  ): readonly Span[] {
    return spans.map((s) => {
      const stream = this.#byKey.get(s.stream);
      const leaderEpoch = stream === undefined ? null : epochBefore(stream, s.next);
      return leaderEpoch === null ? s : { ...s, leaderEpoch };
    });
  }

  /** The rights under which a set may be written: one per stream of its spans. */
  authorities(spans: readonly Span[]): Authority[] {
    const keys = new Set(spans.map((s) => s.stream));
    return [...keys].map((key) => {
      const stream = this.#byKey.get(key);
      if (stream === undefined)
        throw new Failure("internal.bug", "a set claims a stream that is not ours", { at: key });
      return this.get(stream).authority;
    });
  }

  /**
   * True once everything that was there when the streams were found has gone to a lane, or is covered. Of a stream
   * that is gone: all that ever went to a lane, with the rest recorded as lost.
   */
  reached(how: "delivered" | "committed"): boolean {
    return this.#streams.every((s, stream) => {
      if (s.dropped) return true;
      const state = this.#p.ledger.state(stream);
      return state[how] >= (s.ended ? most(state.delivered, state.end ?? state.delivered) : s.latest);
    });
  }

  #plan(n: Named, claim: Claim): Planned {
    const { found, id } = n;
    const key = streamKey(id);
    const untouched = claim.covered.length === 0 && claim.lost.length === 0;
    // We commit only what is covered, so a commit for an incarnation of which nothing is covered is one of the topic
    // that was deleted: an earlier run died between noticing that and landing the first records.
    const renewed = n.renewed || (id.incarnation > 0 && untouched);
    const stale = n.committed !== null && (renewed || n.committed === claim.staleCommit);
    const committed = stale ? null : n.committed;
    const plan = planStart({
      stream: key,
      place: `${found.topic}/${found.partition}`,
      committed,
      covered: claim.covered,
      lost: claim.lost,
      origin: claim.origin,
      start: renewed ? "earliest" : this.#start(found),
      earliest: found.earliest,
      latest: found.latest,
      acceptGap: this.#rules.acceptGap,
      retention: this.#rules.retention,
    });
    const staleCommit = stale ? n.committed : null;
    const origin = claim.origin === null ? { stream: key, position: plan.origin, staleCommit } : null;
    return { found, id, key, claim, plan, committed, origin, stale };
  }

  #add({ found, id, key, claim, plan, committed, stale, lane }: Planned & { readonly lane: number }): Begun {
    const stream = this.#streams.length;
    const { position } = plan;
    // A commit that is missing is behind too, where an earlier run has landed something and died before its commit.
    const told = committed ?? claim.covered[0]?.from ?? position;
    const acknowledged = told < position ? told : null;
    const attempt = 0;
    this.#p.ledger.begin({ stream, key, position, acknowledged, covered: plan.skip, attempt });
    this.#p.ledger.watermark(stream, found.latest);
    const { authority } = claim;
    const laneStream: LaneStream = { stream, id, position, attempt, authority, skip: plan.skip };
    const { latest } = found;
    this.#streams.push({ key, id, lane, laneStream, authority, latest, ended: false, dropped: false });
    this.#byKey.set(key, stream);
    this.#tellBegun(laneStream, lane, plan);
    const behind = acknowledged !== null;
    const { tip } = claim;
    const known = tip !== undefined && tip.position === position ? { leaderEpoch: tip.epoch } : {};
    const start = { id, stream, lane, position, attempt, stale, ...known };
    return { lane, laneStream, start, behind, again: 0 };
  }

  #start(found: FoundStream): "earliest" | "latest" | bigint {
    if (this.#rules.start === "latest" && found.appeared === true) return "earliest";
    if (this.#rules.start !== "timestamp") return this.#rules.start;
    return found.startAt ?? found.latest;
  }

  #tellBegun(s: LaneStream, lane: number, plan: StartPlan): void {
    const { topic, partition } = s.id;
    const { position, why } = plan;
    this.#p.observer.emit({ e: "stream.begun", topic, partition, position, lane, why });
    for (const { from, next } of [...plan.passed, ...plan.skip]) {
      const records = Number(next - from);
      this.#p.observer.emit({ e: "records.skipped", topic, partition, from, next, records });
    }
  }

  #tellLost(l: LostRange): void {
    const stream = this.#byKey.get(l.stream);
    if (stream === undefined) return;
    const { topic, partition } = this.get(stream).id;
    this.#p.observer.emit({
      e: "records.lost",
      topic,
      partition,
      from: l.from,
      next: l.next,
      reason: l.reason,
    });
  }

  /** Gives each topic its incarnation: what we remember of its id decides whether it is still the same topic. */
  async #name(found: readonly FoundStream[]): Promise<readonly Named[]> {
    const incarnations = new Map<string, { readonly incarnation: number; readonly renewed: boolean }>();
    const named: Named[] = [];
    for (const f of found) {
      const name = `${f.transport}/${f.cluster}/${f.topic}`;
      let known = incarnations.get(name);
      if (known === undefined) {
        known = await this.#incarnation(name, f);
        incarnations.set(name, known);
      }
      const { transport, cluster, topic, partition } = f;
      const id = { transport, cluster, topic, partition, incarnation: known.incarnation };
      const { renewed } = known;
      named.push({ found: f, id, renewed, committed: f.committed });
    }
    return named;
  }

  /** Until what we would remember holds: another member may have seen the same topic a moment before us. */
  async #incarnation(
    name: string,
    f: FoundStream,
  ): Promise<{ readonly incarnation: number; readonly renewed: boolean }> {
    for (let memory = await this.#p.coverage.topic(name); ; ) {
      const next = this.#next(memory, f);
      if (next === null) return { incarnation: memory!.incarnation, renewed: false };
      const held = await this.#p.coverage.rememberTopic(name, next);
      const { incarnation, topicId } = next;
      if (held.incarnation === incarnation && held.topicId === topicId)
        return { incarnation, renewed: memory !== null && incarnation > memory.incarnation };
      memory = held;
    }
  }

  /** What is to be remembered; null: it is. */
  #next(memory: TopicMemory | null, { topic, topicId }: FoundStream): TopicMemory | null {
    if (memory === null) return { topicId: topicId ?? "", incarnation: 0 };
    const { incarnation } = memory;
    if (topicId === null || memory.topicId === topicId) return null;
    // A broker that knew no ids was upgraded: from now on a topic that is made anew is noticed.
    if (memory.topicId === "") return { topicId, incarnation };
    if (this.#rules.onRecreated === "new_incarnation") return { topicId, incarnation: incarnation + 1 };
    throw new Failure("kafka.topic_recreated", `topic ${topic} was deleted and made anew`, {
      at: topic,
      hint: `Its id was ${memory.topicId} and is ${topicId} now. Set source.on_recreated = "new_incarnation" to read the new topic from its start beside the old data`,
    });
  }
}

const most = (a: bigint, b: bigint): bigint => (a > b ? a : b);

function above(ranges: readonly Range[], position: bigint): readonly Range[] {
  return ranges
    .filter((r) => r.next > position)
    .map((r) => (r.from < position ? { from: position, next: r.next } : r));
}
