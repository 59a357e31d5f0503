/**
 * The lane's end of a sink beside the primary one. It is given what the primary sink took, and never holds the lane up:
 * what it cannot take it misses: it is detached for a while, that is told as a gap, and it goes on with what comes next.
 *
 *   open    takes rows
 *   closed  waits until the control thread says `go`
 *   going   is being sealed, however often that has to be tried
 *   sealed  the control thread brings it to its end and says `settled`
 *
 * Each set has a writer of its own, so that one is filled while others are sealed.
 */
import { containsRange } from "../coverage/ranges.ts";
import { asFailure, Failure, toWire } from "../failure/failure.ts";
import type { BranchBatch, BranchWriter } from "../ports/branch-parts.ts";
import type { Authority } from "../ports/coverage.ts";
import type { BranchStream, FromBranch, SealedSet, SealReason, ToBranch } from "../ports/lane.ts";
import type { Span, StreamKey } from "../records/stream.ts";
import type { Clock, Timer } from "../time/clock.ts";
import { BranchRetry, DROPPED } from "./branch-retry.ts";
import { BranchWriters, offsetOf, type Shaped } from "./branch-writers.ts";
import { LaneWaits } from "./lane-waits.ts";
import { SpanSet, withoutSpans } from "./span-set.ts";

export interface BranchOptions<B extends BranchBatch> {
  readonly lane: number;
  readonly name: string;
  /** `seal` makes the rows visible: a set is closed where the primary's is sealed, so that it waits for that alone. */
  readonly commits: boolean;
  /** Other sinks wait for what this one covers: it closes as often as the primary one. */
  readonly eager: boolean;
  /** Most bytes of memory. */
  readonly holdBytes: number;
  readonly rollBytes: number;
  readonly rollIntervalMs: number;
  readonly clock: Clock;
  readonly newWriter: () => BranchWriter<B>;
  readonly newSetId: () => string;
  /** The primary sink has records in an open set. */
  readonly primaryOpen: () => boolean;
  readonly post: (m: FromBranch) => void;
}

interface BranchSet<B extends BranchBatch> extends Shaped<B> {
  readonly id: string;
  readonly spans: SpanSet;
  readonly openedAt: number;
  /** Monotonic. */
  readonly since: number;
  state: "open" | "closed" | "going" | "dropped";
  reason: SealReason;
}

/** First and longest time that a branch stays detached. */
const PAUSE_FIRST_MS = 1_000;
const PAUSE_LONGEST_MS = 60_000;
/** Sets that are sealed and not settled; each is small, and their number says that the sink does not keep up. */
const MOST_UNSETTLED = 64;
/** A set that is nearly due is closed with the primary's: the next chance comes an interval later. */
const NEARLY = 0.9;

export class Branch<B extends BranchBatch> {
  readonly #o: BranchOptions<B>;
  readonly #claims = new Map<number, BranchStream>();
  /** Of each stream the end of what was given. */
  readonly #upTo = new Map<number, bigint>();
  readonly #missed = new SpanSet();
  #open: BranchSet<B> | null = null;
  /** Closed and going, in order. */
  #closed: BranchSet<B>[] = [];
  readonly #unsettled = new Set<string>();
  readonly #writers: BranchWriters<B>;
  #epoch = 0;
  #timer: Timer | null = null;
  /** Monotonic time from which it may be attached again; null: it is. */
  #until: number | null = null;
  #pauseMs = PAUSE_FIRST_MS;
  #off = false;
  #running = false;
  readonly #retry: BranchRetry;
  #flushWanted = false;
  readonly #waits: LaneWaits;
  /** Why it takes nothing now; null: it does. */
  blocked: Failure | null = null;
  /** What comes after this one must let go of its open set as well. */
  whenDetached: () => void = () => {};

  constructor(options: BranchOptions<B>) {
    this.#o = options;
    this.#writers = new BranchWriters(options.newWriter);
    this.#waits = new LaneWaits(options.clock);
    this.#retry = new BranchRetry(options.clock, (f) => {
      options.post({ t: "trouble", failure: f === null ? null : toWire(f) });
      if (f !== null) this.#waits.interrupt();
    });
  }

  get held(): number {
    return this.#closed.reduce((n, s) => n + s.writer.held, this.#open?.writer.held ?? 0);
  }

  /** It wants the primary's set sealed: only then can its own be, and its memory is not for long waits. */
  get pressing(): boolean {
    return this.#o.commits && this.#closed.length === 0 && this.#isFull;
  }

  /** A set closes early where more would not fit. */
  get #isFull(): boolean {
    const { rollBytes, holdBytes } = this.#o;
    return this.#open !== null && (this.#open.writer.largest >= rollBytes || this.held > holdBytes);
  }

  /** Ranges of the stream that it need not be given. */
  skip(stream: number): BranchStream["skip"] {
    return this.#claims.get(stream)?.skip ?? [];
  }

  /**
   * Takes the rows at once, or misses them. True if the sink will have them, or has them. The span is within one range
   * of `skip` or touches none.
   */
  give(stream: number, key: StreamKey, batch: B): boolean {
    const claim = this.#claims.get(stream);
    const { span } = batch;
    if (claim !== undefined && claim.skip.length > 0 && containsRange(claim.skip, span)) return true;
    const upTo = this.#upTo.get(stream);
    // Read a second time: what was missed before is a gap by now.
    if (upTo !== undefined && span.from < upTo) return span.next <= upTo;
    if (this.blocked !== null) this.detach(this.blocked);
    if (claim === undefined || this.blocked !== null || !this.#attached()) return this.miss(key, span);
    const hadRoom = this.held <= this.#o.holdBytes / 2;
    try {
      this.#write(key, batch, claim.authority);
      this.#upTo.set(stream, span.next);
    } catch (e) {
      this.detach(asFailure(e));
      return this.miss(key, span);
    }
    // A batch that is larger than the room for it comes as large again: it would be a gap for ever.
    if (hadRoom || this.held <= this.#o.holdBytes) return true;
    this.detach(this.#full());
    return false;
  }

  miss(key: StreamKey, span: Span): false {
    this.#missed.add(key, span.from, span.next);
    return false;
  }

  /** What was given moves on; a set that is large enough is closed. */
  bundled(): void {
    if (!this.#o.commits && this.#isFull) this.close("bytes");
    if (this.held === 0) return;
    this.#flushWanted = true;
    this.#kick();
  }

  /**
   * Resolves when there is room, the sink was let go, or after a while: a merely slow one slows the lane, one that is stuck does once.
   */
  async relief(isReplay = false): Promise<void> {
    // Raw that is read again waits for nothing else; live records do not wait for a server that is known to be away.
    if (!this.crowded || (this.#retry.isFailing && !isReplay)) return;
    this.bundled();
    const waited = this.#waits.wait(isReplay, () => this.detach(this.#full()));
    this.#relieve();
    await waited;
  }

  /** It needs a pause before it is given more. */
  get crowded(): boolean {
    // What only a seal of the primary's set moves on is not waited for: the lane seals it.
    return this.#until === null && !this.pressing && this.held > this.#o.holdBytes / 2;
  }

  /** What an open set holds once it is flushed is not waited for: no wait makes it less. */
  #relieve(): void {
    if (!this.crowded || (!this.#running && this.#closed.length === 0)) this.#waits.release();
  }

  /** The primary's set was sealed. */
  primarySealed(reason: SealReason): void {
    this.#tellMissed();
    const open = this.#open;
    if (open === null) return;
    if (reason === "drain" || reason === "revoke") return this.close(reason);
    // One that commits by itself has a connection for each set.
    if (this.#o.commits && this.#closed.length > 0) return;
    const due = this.#o.clock.monotonic() - open.since >= NEARLY * this.#o.rollIntervalMs;
    const full = open.writer.largest >= this.#o.rollBytes;
    if (due || full || this.#o.eager) this.close(full ? "bytes" : "interval");
  }

  close(reason: SealReason): void {
    const open = this.#open;
    if (open === null) return;
    try {
      open.writer.complete?.();
    } catch (e) {
      return this.detach(asFailure(e));
    }
    this.#open = null;
    this.#timer?.cancel();
    this.#timer = null;
    open.state = "closed";
    open.reason = reason;
    this.#closed.push(open);
    this.#unsettled.add(open.id);
    this.#o.post({ t: "closed", id: open.id, epoch: this.#epoch, spans: open.spans.take() });
  }

  /** Rows have another shape from now on. */
  reshape(): void {
    this.close("files");
    this.#writers.reshape();
  }

  receive(m: ToBranch): void {
    switch (m.t) {
      case "claims":
        for (const s of m.streams) this.#claims.set(s.stream, s);
        return;
      case "go":
        return this.#go(m.id);
      case "drop": {
        const set = this.#closed.find((s) => s.id === m.id);
        if (set !== undefined) this.#drop(set);
        this.#unsettled.delete(m.id);
        return;
      }
      case "settled":
        this.#unsettled.delete(m.id);
        if (m.landed) {
          this.#pauseMs = PAUSE_FIRST_MS;
          this.#waits.renew();
        } else
          this.detach(
            new Failure("sink.behind", `set ${m.id} was refused`, { at: this.#o.name, retry: true }),
          );
        return;
      case "off":
        this.#off = true;
        return this.#dropAll();
    }
  }

  forget(streams: readonly number[]): void {
    for (const s of streams) {
      this.#claims.delete(s);
      this.#upTo.delete(s);
    }
  }

  /** Everything that has not landed is dropped, every stream is forgotten. */
  reset(epoch: number): void {
    this.#tellMissed();
    this.#epoch = epoch;
    this.#claims.clear();
    this.#upTo.clear();
    this.#dropAll();
    this.#unsettled.clear();
  }

  /** What it holds open is missed, and so is what comes until it is attached again. */
  detach(failure: Failure): void {
    if (this.#until !== null) return;
    this.#until = this.#o.clock.monotonic() + this.#pauseMs;
    this.#o.post({ t: "detached", failure: toWire(failure), pauseMs: this.#pauseMs });
    this.#pauseMs = Math.min(2 * this.#pauseMs, PAUSE_LONGEST_MS);
    for (const s of this.#dropOpen()) this.miss(s.stream, s);
    // Those that are being sealed stay: they are tried again, and nothing is added to them.
    if (this.held > this.#o.holdBytes)
      for (const s of this.#closed.filter((c) => c.state === "closed")) this.#giveUp(s);
    this.#tellMissed();
    this.whenDetached();
    this.#relieve();
  }

  #attached(): boolean {
    if (this.#off) return false;
    if (this.#unsettled.size >= MOST_UNSETTLED) this.detach(this.#full());
    if (this.#until === null) return true;
    const settled = this.held <= this.#o.holdBytes / 2 && this.#unsettled.size < MOST_UNSETTLED / 2;
    if (!settled || this.#o.clock.monotonic() < this.#until) return false;
    this.#until = null;
    this.#tellMissed();
    this.#o.post({ t: "attached" });
    return true;
  }

  #full(): Failure {
    const text = `${this.#o.name} does not keep up: ${this.held} bytes and ${this.#unsettled.size} sets wait in lane ${this.#o.lane}`;
    return new Failure("sink.behind", text, { at: this.#o.name, retry: true });
  }

  #write(key: StreamKey, batch: B, authority: Authority): void {
    let at = 0;
    let from = batch.span.from;
    do {
      const set = this.#openSet(batch.ingestTs);
      const taken = batch.rows > 0 ? set.writer.write(batch, authority, at) : 0;
      const next = taken < batch.rows ? offsetOf(batch, taken) : batch.span.next;
      set.spans.add(key, from, next);
      if (taken >= batch.rows) return;
      if (taken === at && set.spans.empty)
        throw new Failure("internal.bug", "a set that was just opened takes nothing");
      this.close("files");
      if (this.#until !== null) throw this.#full();
      at = taken;
      from = next;
    } while (at < batch.rows);
  }

  #openSet(openedAt: number): BranchSet<B> {
    if (this.#open !== null) return this.#open;
    const shaped = this.#writers.take();
    const id = this.#o.newSetId();
    shaped.writer.open(id);
    const since = this.#o.clock.monotonic();
    this.#open = { ...shaped, id, spans: new SpanSet(), openedAt, since, state: "open", reason: "interval" };
    this.#arm();
    return this.#open;
  }

  #arm(): void {
    this.#timer = this.#o.clock.after(this.#o.rollIntervalMs, () => {
      // With the primary's, if that holds some of the same records.
      if (this.#o.commits && (this.#o.primaryOpen() || this.#closed.length > 0)) this.#arm();
      else this.close("interval");
    });
  }

  #go(id: string): void {
    const set = this.#closed.find((s) => s.id === id);
    if (set === undefined || set.state !== "closed") return;
    set.state = "going";
    this.#kick();
  }

  #kick(): void {
    if (!this.#running) void this.#run();
  }

  /** One thing at a time: sets that may be sealed, then pages that are complete. */
  async #run(): Promise<void> {
    this.#running = true;
    for (;;) {
      const going = this.#closed.find((s) => s.state === "going");
      if (going !== undefined) await this.#seal(going);
      else if (this.#flushWanted) {
        this.#flushWanted = false;
        // Those that were closed may wait long until they are sealed.
        const filled = [...(this.#open === null ? [] : [this.#open]), ...this.#closed];
        for (const set of filled) if (set.writer.held > 0) await this.#flush(set);
      } else break;
      this.#relieve();
    }
    this.#running = false;
    this.#relieve();
  }

  async #flush(set: BranchSet<B>): Promise<void> {
    try {
      await this.#retrying(set, () => set.writer.flush());
    } catch (e) {
      // One that is closed meets it again when it is sealed.
      if (e !== DROPPED && set.state === "open") this.#failed(set, asFailure(e));
    }
  }

  async #seal(set: BranchSet<B>): Promise<void> {
    const spans = set.spans.take();
    const start = this.#o.clock.monotonic();
    const keys = new Set(spans.map((s) => s.stream));
    const authorities = [...this.#claims.values()]
      .map((c) => c.authority)
      .filter((a) => a.stream !== undefined && keys.has(a.stream));
    // It went to another member meanwhile.
    if (authorities.length < keys.size) return this.#giveUp(set);
    try {
      const files = await this.#retrying(set, () => set.writer.seal(spans, authorities));
      if (set.state === "dropped") return;
      this.#closed = this.#closed.filter((s) => s !== set);
      this.#writers.give(set);
      const { id, reason, openedAt } = set;
      if ("refused" in files) {
        const { refused, detail } = files;
        return this.#o.post({ t: "refused", id, epoch: this.#epoch, reason: refused, detail });
      }
      const sealMs = this.#o.clock.monotonic() - start;
      const [{ lane }, epoch] = [this.#o, this.#epoch];
      const landed = withoutSpans(spans, files.leftOut?.uncovered);
      const sealed: SealedSet = { ...files, id, lane, epoch, spans: landed, openedAt, sealMs, reason };
      this.#o.post({ t: "sealed", set: sealed });
    } catch (e) {
      if (e !== DROPPED) this.#failed(set, asFailure(e));
    }
  }

  #failed(set: BranchSet<B>, failure: Failure): void {
    if (set.state === "open") return this.detach(failure);
    this.#giveUp(set, failure);
  }

  #retrying<T>(set: BranchSet<B>, fn: () => Promise<T>): Promise<T> {
    return this.#retry.run(() => set.state === "dropped", fn);
  }

  /** A set that the control thread knows. The reason comes first: a run that waits for the set alone may end with it. */
  #giveUp(set: BranchSet<B>, reason: Failure | null = null): void {
    this.#drop(set);
    this.#unsettled.delete(set.id);
    if (reason !== null) this.detach(reason);
    this.#o.post({ t: "dropped", id: set.id });
  }

  #drop(set: BranchSet<B>): void {
    // A flush of it may be under way.
    const busy = set.state === "going" || this.#running;
    set.state = "dropped";
    this.#closed = this.#closed.filter((s) => s !== set);
    void this.#writers.abort(set, busy);
    this.#retry.wake();
  }

  /** Answers what it held. */
  #dropOpen(): readonly Span[] {
    const open = this.#open;
    if (open === null) return [];
    this.#open = null;
    this.#timer?.cancel();
    this.#timer = null;
    open.state = "dropped";
    // A flush of it may be under way.
    void this.#writers.abort(open, this.#running);
    this.#retry.wake();
    return open.spans.take();
  }

  #dropAll(): void {
    for (const s of [...this.#closed]) this.#drop(s);
    this.#dropOpen();
    this.#relieve();
  }

  #tellMissed(): void {
    const spans = this.#missed.take();
    this.#missed.clear();
    if (spans.length > 0) this.#o.post({ t: "missed", epoch: this.#epoch, spans });
  }
}
