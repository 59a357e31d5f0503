/**
 * A sink beside the primary one, as the control thread sees it: its coverage, what its lanes have closed, and the end of
 * their sets. Nothing here holds up the primary sink: what the store of this one takes too long for is missed.
 *
 *   lane closes -> (two-phase: go, sealed) -> covered where it comes after -> (transactional: go, sealed) -> committed
 */
import { leaveStore } from "../coverage/outage.ts";
import type { CommitListener, SetCommitter } from "../delivery/committer.ts";
import { asFailure, type Failure, fromWire, toWire } from "../failure/failure.ts";
import type { Authority } from "../ports/coverage.ts";
import type { FromBranch, SealedSet } from "../ports/lane.ts";
import type { Span, StreamKey } from "../records/stream.ts";
import type { Timer } from "../time/clock.ts";
import { BegunStreams } from "./begun-streams.ts";
import {
  type Held,
  type Known,
  type PlacedStream,
  PRIMARY,
  type SecondaryParts,
  type SecondarySpec,
} from "./secondary-parts.ts";
import { SinkTrouble } from "./sink-trouble.ts";
import { withoutSpans } from "./span-set.ts";
import { StreamHeads } from "./stream-heads.ts";
import { tellGap, tellRecords, tellSealed } from "./tell-sets.ts";

const RETRY_FIRST_MS = 500;
const RETRY_LONGEST_MS = 30_000;

export class Secondary implements CommitListener {
  readonly spec: SecondarySpec;
  readonly #n: number;
  readonly #p: SecondaryParts;
  readonly #committer: SetCommitter;
  readonly #trouble: SinkTrouble;
  readonly #known = new Map<number, Known>();
  readonly #held = new Map<string, Held>();
  readonly #heads = new StreamHeads();
  readonly #begun: BegunStreams;
  readonly #waiting: (() => void)[] = [];
  #groupEpoch: number | null = null;
  #opened = false;
  #swept = false;
  #closed = false;
  /** It failed for good. */
  #broken = false;
  /** Who meets an outage of it. */
  readonly #troubles = new Set<string>();
  #claiming = false;
  #retry: Timer | null = null;
  #retryMs = RETRY_FIRST_MS;

  constructor(n: number, spec: SecondarySpec, parts: SecondaryParts) {
    this.#n = n;
    this.spec = spec;
    this.#p = parts;
    this.#committer = spec.committer(this);
    this.#trouble = new SinkTrouble(spec.name, parts);
    const says = (f: Failure | null) => this.#says("plans", f);
    this.#begun = new BegunStreams(spec.begin, { ...parts, says, moved: () => void this.#claim() });
    spec.outages.tell = (failure) => this.#says("its coverage", failure);
  }

  /** Its store is ours, and it writes there. */
  get isOpen(): boolean {
    return this.#opened && !this.#broken && !this.#closed;
  }

  // ---- what it takes to write

  /** Resolves when the store is ours, or when waiting for it makes no sense now; goes on by itself then. */
  async open(longestMs: number): Promise<void> {
    void this.#open();
    await this.#until(() => this.#opened, longestMs);
  }

  async #open(): Promise<void> {
    try {
      await this.spec.prepare();
      await this.spec.coverage.open();
      this.#opened = true;
      for (const who of ["the store", "its coverage"]) this.#says(who, null);
      this.#wake();
      void this.#claim();
    } catch (e) {
      if (this.#closed) return;
      this.#says("the store", asFailure(e));
      this.#later(() => void this.#open());
    }
  }

  /** Streams that begin, or begin again. */
  async claim(streams: readonly PlacedStream[], groupEpoch: number | null, longestMs: number): Promise<void> {
    this.#groupEpoch = groupEpoch;
    for (const s of streams) {
      this.#heads.begin(s.key, s.position);
      this.#known.set(s.stream, { ...s, authority: null, skip: [], placed: false });
    }
    this.#begun.add(streams);
    void this.#claim();
    const done = () => streams.every((s) => (this.#known.get(s.stream)?.authority ?? null) !== null);
    await this.#until(done, longestMs);
  }

  /** The lane has the streams now: it is told what is known of them here, and of the rest as soon as it is. */
  place(lane: number): void {
    const mine = [...this.#known.values()].filter((k) => k.lane === lane);
    for (const k of mine) k.placed = true;
    this.#tell(lane, mine);
  }

  async #claim(): Promise<void> {
    if (!this.#opened || this.#claiming || this.#closed || this.#broken) return;
    const open = [...this.#known.values()].filter((k) => k.authority === null && this.#begun.has(k.stream));
    if (open.length === 0) return this.#says("claims", null);
    this.#claiming = true;
    try {
      const claims = await this.spec.coverage.claim(
        open.map((k) => k.key),
        this.#groupEpoch,
        open.map((k) => k.lane),
      );
      if (this.#closed) return;
      for (const [i, k] of open.entries()) {
        // Begun anew meanwhile: it is claimed again.
        if (this.#known.get(k.stream) !== k) continue;
        const { authority, covered } = claims[i]!;
        k.authority = authority;
        k.skip = covered;
        this.#p.gate.begin(this.#n, k.key, covered);
      }
      this.#retryMs = RETRY_FIRST_MS;
      this.#says("claims", null);
      // Before a lane stages anything of what is claimed here.
      await this.#sweepOnce();
      for (const lane of new Set(open.map((k) => k.lane)))
        this.#tell(
          lane,
          open.filter((k) => k.lane === lane && k.placed && this.#known.get(k.stream) === k),
        );
    } catch (e) {
      if (this.#closed) return;
      this.#says("claims", asFailure(e));
      this.#later(() => void this.#claim());
    } finally {
      this.#claiming = false;
      this.#wake();
    }
    if (this.#retry === null) void this.#claim();
  }

  async #sweepOnce(): Promise<void> {
    if (this.#swept) return;
    this.#swept = true;
    await this.spec.sweep();
  }

  #tell(lane: number, known: readonly Known[]): void {
    const streams = known.flatMap(({ stream, authority, skip }) =>
      authority === null ? [] : [{ stream, authority, skip }],
    );
    if (streams.length > 0) this.#p.post(lane, { t: "claims", streams });
  }

  /** They are not ours any more. */
  forget(streams: readonly number[]): void {
    const keys = new Set(streams.flatMap((s) => this.#known.get(s)?.key ?? []));
    for (const s of streams) this.#known.delete(s);
    this.#begun.forget(streams);
    this.#heads.forget(keys);
    // If they come back, nobody waits for these any more.
    for (const h of [...this.#held.values()])
      if (!h.gone && h.spans.some((s) => keys.has(s.stream))) this.#drop(h);
  }

  /** Streams that go to another member in good order. */
  async release(keys: readonly StreamKey[], longestMs: number): Promise<void> {
    if (!this.#opened || this.#broken || this.spec.coverage.release === undefined) return;
    let done = false;
    void this.spec.coverage
      .release(keys)
      // Whoever gets them can do without, only less smoothly.
      .catch(() => {})
      .then(() => {
        done = true;
        this.#wake();
      });
    await this.#until(() => done, longestMs);
  }

  /** The lane was taken back: nothing that it closed and that did not go yet lands. */
  reset(lane: number): void {
    this.#silent(lane);
    for (const k of [...this.#known.values()]) {
      if (k.lane !== lane) continue;
      // Claimed anew, once the lane's streams are.
      this.#known.delete(k.stream);
      this.#heads.forget([k.key]);
      this.#p.gate.forget(this.#n, k.key);
    }
    for (const h of [...this.#held.values()]) {
      if (h.lane !== lane) continue;
      this.#held.delete(h.id);
      if (h.gone) continue;
      if (h.sealed !== null) this.#committer.discard(h.sealed);
      // The rest is read again.
      if (this.#p.gate.answer([PRIMARY], h.spans) === "open") this.#missed(h.spans);
    }
    this.#wake();
  }

  // ---- sets

  on(lane: number, m: FromBranch): void {
    switch (m.t) {
      case "closed": {
        const { id, spans } = m;
        const held: Held = { id, lane, spans, sealed: null, gone: false };
        this.#held.set(id, held);
        this.#heads.open(spans);
        if (this.#broken) return this.#drop(held);
        if (!this.spec.commits) this.#p.post(lane, { t: "go", id });
        return this.#check(held);
      }
      case "sealed":
        return this.#sealed(lane, m.set);
      case "refused":
        return this.refused(m.id, lane, m.reason, m.detail);
      case "dropped":
        return this.#ended(m.id, false);
      case "missed":
        return this.#missed(m.spans);
      case "detached": {
        const { failure, pauseMs } = m;
        this.#silent(lane);
        this.#p.observer.emit({ e: "sink.detached", sink: this.spec.name, lane, failure, pauseMs });
        return;
      }
      case "attached":
        this.#p.observer.emit({ e: "sink.attached", sink: this.spec.name, lane });
        return;
      case "undecodable":
      case "duplicates":
        return tellRecords(this.#p.observer, this.spec.name, m);
      case "trouble":
        return this.#says(`lane ${lane}`, m.failure === null ? null : fromWire(m.failure));
    }
  }

  /** A set of a life of the lane that is over. */
  void(set: SealedSet): void {
    this.#committer.discard(set);
  }

  #sealed(lane: number, set: SealedSet): void {
    const held = this.#held.get(set.id);
    if (held === undefined) return this.#committer.discard(set);
    held.sealed = set;
    this.#leftOut(held, set);
    tellSealed(this.#p.observer, this.spec.name, set);
    this.#says(`lane ${lane}`, null);
    if (this.spec.commits) return this.#committer.submit(set, []);
    this.#check(held);
  }

  /** Rows that the sink refused; positions of those that are nowhere are not covered with the set. */
  #leftOut(held: Held, { leftOut, spans }: SealedSet): void {
    if (leftOut === undefined) return;
    const missing = withoutSpans(held.spans, spans);
    held.spans = spans;
    if (missing.length > 0) this.#missed(missing);
  }

  /** The primary sink has covered them. */
  landed(spans: readonly Span[]): void {
    this.#heads.landed(spans);
  }

  /** Looks again at what waits for others. */
  check(): void {
    for (const h of [...this.#held.values()]) this.#check(h);
  }

  #check(held: Held): void {
    if (held.gone) return;
    const answer = this.#p.gate.answer(this.spec.after, held.spans);
    if (answer === "never") return this.#drop(held);
    if (answer === "shut") return;
    const authorities = this.#authorities(held.spans);
    // A stream that went to another member, or was refused: nothing proves that it may be written.
    if (authorities === null) return this.#drop(held);
    if (this.spec.commits) {
      held.gone = true;
      this.#p.post(held.lane, { t: "go", id: held.id });
    } else if (held.sealed !== null) {
      held.gone = true;
      this.#committer.submit(held.sealed, authorities);
    }
  }

  #authorities(spans: readonly Span[]): Authority[] | null {
    const keys = new Set(spans.map((s) => s.stream));
    const known = [...this.#known.values()].filter((k) => keys.has(k.key));
    const authorities = known.flatMap((k) => (k.authority === null ? [] : [k.authority]));
    return authorities.length < keys.size ? null : authorities;
  }

  /** What it comes after will not have it: nothing of it may land. */
  #drop(held: Held): void {
    if (held.sealed !== null) this.#committer.discard(held.sealed);
    this.#p.post(held.lane, { t: "drop", id: held.id });
    this.#ended(held.id, false);
  }

  #ended(id: string, landed: boolean): void {
    const held = this.#held.get(id);
    if (held === undefined) return;
    this.#held.delete(id);
    this.#heads.settled(held.spans);
    if (landed) this.#p.gate.cover(this.#n, held.spans);
    else this.#missed(held.spans);
    this.#p.moved();
    this.#wake();
  }

  #missed(spans: readonly Span[]): void {
    this.#heads.settled(spans);
    this.#p.gate.miss(this.#n, spans);
    this.tellGap(spans);
    this.#p.moved();
  }

  tellGap(spans: readonly Span[]): void {
    tellGap(this.#p.observer, this.spec.name, spans);
  }

  // ---- CommitListener

  committed(id: string): void {
    const held = this.#held.get(id);
    this.#trouble.landed();
    if (held === undefined) return;
    this.#p.post(held.lane, { t: "settled", id, landed: true });
    this.#ended(id, true);
  }

  refused(id: string, lane: number, reason: string, detail: string): void {
    this.#p.observer.emit({ e: "set.refused", sink: this.spec.name, id, reason, detail });
    const held = this.#held.get(id);
    if (held === undefined) return;
    this.#p.post(lane, { t: "settled", id, landed: false });
    this.#ended(id, false);
    if (this.spec.coverage.fenced !== null) return this.failed(this.spec.coverage.fenced);
    // Its streams may have another owner here. Where they are ours they are claimed again.
    const keys = new Set(held.spans.map((s) => s.stream));
    for (const k of [...this.#known.values()]) {
      // Streams of a lane that write under one identity lose it together.
      const shares = k.lane === lane && k.authority?.writer !== undefined;
      if (!keys.has(k.key) && !shares) continue;
      this.#known.set(k.stream, { ...k, authority: null });
    }
    this.#later(() => void this.#claim());
  }

  failed(failure: Failure): void {
    if (this.#closed || this.#broken) return;
    this.#broken = true;
    this.#p.observer.emit({ e: "sink.troubled", sink: this.spec.name, failure: toWire(failure) });
    for (const lane of new Set([...this.#known.values()].map((k) => k.lane)))
      this.#p.post(lane, { t: "off" });
    for (const h of [...this.#held.values()]) this.#ended(h.id, false);
    // It writes nothing more: what the sink lacks is recovery's from here on, and no head stands in its way.
    void this.spec.coverage.close();
  }

  trouble(failure: Failure | null): void {
    this.#says("publishing", failure);
  }

  /** What it was at will not be tried again. */
  #silent(lane: number): void {
    this.#troubles.delete(`lane ${lane}`);
    this.#trouble.silent(`lane ${lane}`);
  }

  #says(who: string, failure: Failure | null): void {
    if (failure === null) this.#troubles.delete(who);
    else this.#troubles.add(who);
    this.#trouble.tell(who, failure === null ? null : toWire(failure));
    if (failure !== null) this.#wake();
  }

  // ---- life

  async heartbeat(): Promise<void> {
    if (!this.#opened || this.#broken) return;
    try {
      const claimed = [...this.#known.values()].flatMap((k) => (k.authority === null ? [] : [k.key]));
      await this.spec.coverage.heartbeat(this.#heads.take(new Set(claimed)));
    } catch (e) {
      this.#p.observer.emit({ e: "sink.troubled", sink: this.spec.name, failure: toWire(asFailure(e)) });
    }
    if (this.spec.coverage.fenced !== null) this.failed(this.spec.coverage.fenced);
  }

  /** Until what lanes have closed so far is settled, as long as that goes without trouble. */
  idle(longestMs: number, lane?: number): Promise<void> {
    const now = [...this.#held.values()].filter((h) => lane === undefined || h.lane === lane);
    return this.#until(() => !now.some((h) => this.#held.has(h.id)), longestMs);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#begun.close();
    this.#retry?.cancel();
    this.#committer.close();
    this.#wake();
    await leaveStore(this.#p.clock, this.spec.coverage);
  }

  #later(fn: () => void): void {
    if (this.#closed || this.#retry !== null) return;
    this.#retry = this.#p.clock.after(this.#retryMs, () => {
      this.#retry = null;
      fn();
    });
    this.#retryMs = Math.min(2 * this.#retryMs, RETRY_LONGEST_MS);
  }

  /** Waits for it, no longer than that, and not while the sink is in trouble. */
  async #until(done: () => boolean, longestMs: number): Promise<void> {
    const end = this.#p.clock.monotonic() + longestMs;
    while (!done() && !this.#closed && !this.#broken && this.#troubles.size === 0) {
      const left = end - this.#p.clock.monotonic();
      if (left <= 0) return;
      await new Promise<void>((resolve) => {
        const timer = this.#p.clock.after(left, resolve);
        this.#waiting.push(() => {
          timer.cancel();
          resolve();
        });
      });
    }
  }

  #wake(): void {
    for (const w of this.#waiting.splice(0)) w();
  }
}
