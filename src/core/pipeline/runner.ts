/**
 * The control thread's part of a pipeline: it joins source, lanes, committer and coverage, and decides every
 * position. It reads no record.
 *
 * Order of durable events for a set of files (design, section 5):
 *   lane seals -> committer: intent, publish, cover -> ledger commits -> source is acknowledged.
 * `#onCommitted` is the only place that lets an acknowledgement go out.
 */
import type { CommitListener, SetCommitter } from "../delivery/committer.ts";
import type { CrashHook } from "../delivery/crash-points.ts";
import type { Ledger } from "../delivery/ledger.ts";
import { asFailure, Failure, type FailureWire, toWire } from "../failure/failure.ts";
import type { Authority, StreamCoverage } from "../ports/coverage.ts";
import type { LaneCounts, LanePort, LaneStream, SealedSet } from "../ports/lane.ts";
import type { Observer } from "../ports/observer.ts";
import type { FoundStream, Source, SourceHost, StreamStart } from "../ports/source.ts";
import type { FrameBundle } from "../records/frame.ts";
import type { Span } from "../records/stream.ts";
import type { Clock } from "../time/clock.ts";
import { Acknowledger } from "./acknowledger.ts";
import type { Admission } from "./admission.ts";
import type { BufferPool } from "./buffer-pool.ts";
import { LanePool } from "./lane-pool.ts";
import { Pulse } from "./pulse.ts";
import { type StartRules, StreamTable } from "./stream-table.ts";
import { UnreadableBytes } from "./unreadable.ts";

export interface RunnerOptions {
  readonly sink: string;
  readonly lanes: number;
  readonly rules: StartRules;
  /** Ends by itself once everything that was there at the start is committed. */
  readonly untilCaughtUp: boolean;
  readonly heartbeatMs: number;
  /** Longest wait for open files at a stop. */
  readonly drainMs: number;
}

export interface RunnerParts {
  readonly clock: Clock;
  readonly source: Source;
  readonly coverage: StreamCoverage;
  /** Built by the runner, which is its listener. */
  readonly committer: (listener: CommitListener) => SetCommitter;
  readonly spawnLane: (lane: number) => LanePort;
  readonly ledger: Ledger;
  readonly admission: Admission;
  readonly buffers: BufferPool;
  readonly observer: Observer;
  /** Removes staged objects that no open intent names; called once, before the first lane writes. */
  readonly sweep: () => Promise<void>;
  /** Passed at the named points of delivery. */
  readonly hook?: CrashHook;
}

export interface RunSummary {
  readonly rows: number;
  readonly reason: string;
}

export class Runner implements SourceHost, CommitListener {
  readonly #o: RunnerOptions;
  readonly #p: RunnerParts;
  readonly #committer: SetCommitter;
  readonly #table: StreamTable;
  readonly #acks: Acknowledger;
  #pool: LanePool | null = null;
  readonly #pulse: Pulse;
  #rows = 0;
  #swept = false;
  #reason: string | null = null;
  #finished = false;
  #settle: { resolve: (reason: string) => void; reject: (f: Failure) => void } | null = null;
  /** Rows of sets that were handed to the committer. */
  readonly #underWay = new Map<string, number>();
  readonly #restarting = new Set<number>();
  /** Since when the sink has been in trouble; null: it is not. */
  #troubledAt: number | null = null;
  /** Streams whose commit an earlier run left behind what is durable, until the source knows them. */
  readonly #behind = new Set<number>();
  readonly #unreadable = new UnreadableBytes();
  /** Something went to a lane since the lanes were last told to seal what they hold. */
  #unrolled = false;

  constructor(options: RunnerOptions, parts: RunnerParts) {
    this.#o = options;
    this.#p = parts;
    this.#committer = parts.committer(this);
    this.#table = new StreamTable(options.rules, options.lanes, parts);
    this.#acks = new Acknowledger(parts);
    this.#pulse = new Pulse(options.heartbeatMs, parts, (failure) => this.#fail(failure));
  }

  get lanes(): number {
    return this.#o.lanes;
  }

  /** Runs until the source ends, `drain` is called or something fatal happens (then it rejects with the Failure). */
  async run(): Promise<RunSummary> {
    try {
      const stopped = await this.#open();
      if (stopped !== null) return { rows: 0, reason: stopped };
      const ended = new Promise<string>((resolve, reject) => {
        this.#settle = { resolve, reject };
      });
      this.#pool = new LanePool(this.#o.lanes, this.#p.spawnLane, {
        ready: (lane) => this.#p.observer.emit({ e: "lane.started", lane }),
        consumed: (lane, buffer, bytes, counts) => this.#onConsumed(lane, buffer, bytes, counts),
        sealed: (set) => this.#onSealed(set),
        void: (set) => this.#committer.discard(set),
        refused: (lane, id, reason, detail) => this.refused(id, lane, reason, detail),
        broken: (stream, attempt, position, failure) => this.#onBroken(stream, attempt, position, failure),
        sink: (_lane, failure) => this.#onSink(failure),
        died: (lane, failure, restarts) => this.#onDied(lane, failure, restarts),
        hopeless: (failure) => this.#fail(failure),
      });
      this.#pulse.start();
      this.#p.source.run(this).then(
        () => this.drain("the source ended"),
        (e) => this.#sourceFailed(asFailure(e)),
      );
      const reason = await ended;
      return { rows: this.#rows, reason };
    } finally {
      await this.#shutDown();
    }
  }

  /** The wait for a former owner's lease takes a while: why the run was stopped meanwhile, or null. */
  async #open(): Promise<string | null> {
    try {
      await this.#p.coverage.open();
    } catch (e) {
      if (this.#reason === null) throw e;
    }
    return this.#reason;
  }

  /** Stops fetching, seals, publishes, covers, acknowledges, ends. Safe to call again. */
  drain(reason: string): void {
    if (this.#reason !== null || this.#finished) return;
    this.#reason = reason;
    this.#p.observer.emit({ e: "pipeline.stopping", reason });
    if (this.#pool === null) {
      // Nothing was begun: only the wait for the store, if it is under way, has to end.
      void this.#p.coverage.close();
      return;
    }
    this.#drainBounded().then(
      () => this.#finish(() => this.#settle?.resolve(reason)),
      (e) => this.#fail(asFailure(e)),
    );
  }

  /** Nothing moved for too long although there was work: ends, so that the supervisor starts it anew. */
  stalled(ms: number): void {
    this.#fail(
      new Failure("internal.stalled", `nothing moved for ${ms} ms although there was work`, {
        hint: "Nothing is lost: what was not acknowledged is read again at the next start",
      }),
    );
  }

  // ---- SourceHost

  async begin(found: readonly FoundStream[]): Promise<readonly StreamStart[]> {
    const begun = await this.#table.begin(found);
    if (!this.#swept) {
      // Claims have settled what an earlier process left; what is still staged and named by no intent is a stray.
      this.#swept = true;
      await this.#p.sweep();
    }
    // Not as they were begun: a lane that died since then has moved its streams on.
    const now = begun.map(({ lane, start }) => ({
      lane,
      start,
      stream: this.#table.get(start.stream).laneStream,
    }));
    for (let lane = 0; lane < this.#o.lanes; lane++) {
      const streams = now.filter((b) => b.lane === lane).map((b) => b.stream);
      if (streams.length > 0) this.#lanes().place(lane, streams);
    }
    for (const b of begun) if (b.behind) this.#behind.add(b.start.stream);
    this.#checkCaughtUp();
    return now.map(({ start, stream: { position, attempt } }) => ({ ...start, position, attempt }));
  }

  room(lane: number): number {
    return this.#reason === null ? this.#p.admission.room(lane) : 0;
  }

  whenRoom(lane: number, wake: () => void): void {
    this.#p.admission.whenRoom(lane, wake);
  }

  takeBuffer(bytes: number): ArrayBuffer {
    return this.#p.buffers.take(bytes);
  }

  giveBuffer(buffer: ArrayBuffer): void {
    this.#p.buffers.give(buffer);
  }

  deliver(lane: number, bundle: FrameBundle): void {
    const held = bundle.buffer.byteLength;
    const parts = [];
    for (const f of bundle.frames) {
      if (!this.#p.ledger.deliver(f.stream, f.attempt, f.from, f.next)) continue;
      const { topic, partition } = this.#table.get(f.stream).id;
      const positions = Number(f.next - f.from);
      parts.push({ topic, partition, next: f.next, positions, bytes: f.end - f.start });
    }
    this.#p.admission.delivered(lane, held);
    this.#lanes().deliver(lane, bundle);
    // Buffers are larger than what they hold: what was fetched is the sum of the frames.
    const bytes = bundle.frames.reduce((n, f) => n + (f.end - f.start), 0);
    this.#p.observer.emit({ e: "bundle.delivered", lane, bytes, parts });
    this.#unrolled = true;
    this.#checkCaughtUp();
  }

  watermark(stream: number, end: bigint, start: bigint): void {
    this.#p.ledger.watermark(stream, end);
    if (this.#behind.delete(stream)) this.#acks.kick();
    const { topic, partition } = this.#table.get(stream).id;
    this.#p.observer.emit({ e: "stream.watermark", topic, partition, start, end });
  }

  healthy(): void {
    this.#p.observer.emit({ e: "source.healthy" });
  }

  troubled(failure: Failure): void {
    this.#p.observer.emit({ e: "source.troubled", failure: toWire(failure) });
  }

  async lost(stream: number, from: bigint, next: bigint, reason: "retention" | "truncated"): Promise<void> {
    const { key, id } = this.#table.get(stream);
    await this.#p.coverage.recordLost([{ stream: key, from, next, reason }]);
    const { topic, partition } = id;
    this.#p.observer.emit({ e: "records.lost", topic, partition, from, next, reason });
    // Moved while that was written, or about to be: from where it goes on, it will come here again if it must.
    if (this.#restarts(stream) || this.#p.ledger.state(stream).delivered !== from) return;
    this.#p.ledger.lose(stream, from, next);
    const attempt = this.#p.ledger.rewind(stream, next);
    this.#move(stream, next, attempt, `records were lost at the source (${reason})`);
    // That the loss is recorded settles its positions, and perhaps the last ones that were waited for.
    this.#acks.kick();
    this.#checkCaughtUp();
  }

  // ---- CommitListener

  committed(id: string, spans: readonly Span[]): void {
    this.#rows += this.#underWay.get(id) ?? 0;
    this.#underWay.delete(id);
    this.#p.ledger.commit(spans);
    this.#acks.kick();
    this.#checkCaughtUp();
  }

  refused(id: string, lane: number, reason: string, detail: string): void {
    this.#underWay.delete(id);
    this.#p.observer.emit({ e: "set.refused", sink: this.#o.sink, id, reason, detail });
    const fenced = this.#p.coverage.fenced;
    if (fenced !== null) return this.#fail(fenced);
    void this.#restartLane(lane, `set ${id} was refused: ${detail}`);
  }

  failed(failure: Failure): void {
    this.#fail(this.#p.coverage.fenced ?? failure);
  }

  trouble(failure: Failure | null): void {
    this.#onSink(failure === null ? null : toWire(failure));
  }

  // ---- lanes

  #onConsumed(lane: number, buffer: ArrayBuffer, bytes: number, counts: LaneCounts): void {
    this.#p.buffers.give(buffer);
    this.#p.admission.consumed(lane, bytes, counts.rows, counts.rawBytes);
    const { rows, rawBytes, decodeMs, writeMs, held } = counts;
    this.#p.observer.emit({
      e: "bundle.consumed",
      lane,
      bytes,
      rawBytes,
      rows,
      filtered: Number(counts.skipped),
      decodeMs,
      writeMs,
      held,
    });
  }

  #onSealed(set: SealedSet): void {
    if (this.#finished) return;
    void this.#p.hook?.("sealed");
    this.#p.ledger.seal(set.spans);
    const { id, rows, bytes, reason, sealMs: ms } = set;
    const files = set.targets.length;
    this.#p.observer.emit({ e: "set.sealed", sink: this.#o.sink, id, rows, bytes, files, ms, reason });
    const authorities: Authority[] = this.#table.authorities(set.spans);
    this.#underWay.set(id, rows);
    this.#committer.submit(set, authorities);
  }

  #onBroken(stream: number, before: number, position: bigint, failure: Failure): void {
    // The stream was moved after the lane had read this, or is about to be taken back to what is covered.
    if (!this.#p.ledger.current(stream, before) || this.#restarts(stream)) return;
    if (this.#unreadable.hopeless(stream, position)) return this.#sourceFailed(failure);
    this.troubled(failure);
    const attempt = this.#p.ledger.rewind(stream, position);
    this.#move(stream, position, attempt, failure.message);
  }

  #onSink(failure: FailureWire | null): void {
    const sink = this.#o.sink;
    const now = this.#p.clock.monotonic();
    if (failure === null) {
      this.#p.observer.emit({ e: "sink.recovered", sink, ms: now - (this.#troubledAt ?? now) });
      this.#troubledAt = null;
      return;
    }
    this.#troubledAt ??= now;
    this.#p.observer.emit({ e: "sink.troubled", sink, failure });
  }

  #onDied(lane: number, failure: Failure, restarts: number): void {
    this.#p.observer.emit({ e: "lane.died", lane, failure: toWire(failure) });
    this.#p.admission.laneDied(lane);
    void this.#restartLane(lane, failure.message);
    this.#p.observer.emit({ e: "lane.restarted", lane, restarts });
  }

  /**
   * Takes all streams of a lane back to what is covered. The lane forgets them first, so whatever it still gets
   * of the old attempts is dropped; sets under way are settled before coverage is read again.
   */
  async #restartLane(lane: number, why: string): Promise<void> {
    if (this.#restarting.has(lane) || this.#finished) return;
    this.#restarting.add(lane);
    try {
      this.#lanes().reset(lane, []);
      await this.#committer.idle();
      const again = await this.#table.reclaim(lane);
      if (this.#finished) return;
      this.#lanes().place(
        lane,
        again.map((b) => b.laneStream),
      );
      for (const { start, laneStream } of again) {
        const { topic, partition } = laneStream.id;
        const { position, attempt } = start;
        this.#p.observer.emit({ e: "stream.rewound", topic, partition, position, attempt, why });
        this.#p.source.seek(start.stream, position, attempt);
      }
    } catch (e) {
      this.#fail(asFailure(e));
    } finally {
      this.#restarting.delete(lane);
    }
  }

  #restarts(stream: number): boolean {
    return this.#restarting.has(this.#table.get(stream).lane);
  }

  #move(stream: number, position: bigint, attempt: number, why: string): void {
    const s = this.#table.get(stream);
    const { topic, partition } = s.id;
    this.#p.observer.emit({ e: "stream.rewound", topic, partition, position, attempt, why });
    const moved: LaneStream = { ...s.laneStream, position, attempt };
    this.#table.moved(stream, moved);
    this.#lanes().place(s.lane, [moved]);
    this.#p.source.seek(stream, position, attempt);
  }

  // ---- end of the run

  #checkCaughtUp(): void {
    if (!this.#o.untilCaughtUp || this.#reason !== null) return;
    if (this.#table.reached("committed")) return this.drain("caught up with what was there at the start");
    if (!this.#unrolled || !this.#table.reached("delivered")) return;
    // Lanes seal at once instead of at their interval. Not yet a drain: should one of them die now, or find bytes
    // that it cannot read, they are fetched again and come by here once more.
    this.#unrolled = false;
    void this.#lanes().roll("drain");
  }

  async #drainBounded(): Promise<void> {
    this.#p.source.pause();
    let late = false;
    let undone = "open files were not published";
    const timer = this.#p.clock.after(this.#o.drainMs, () => {
      late = true;
      this.#fail(
        new Failure("delivery.drain_timeout", `${undone} within ${this.#o.drainMs} ms`, {
          hint: "Nothing is lost: what was not acknowledged is read again at the next start",
        }),
      );
    });
    // A lane that restarts meanwhile holds nothing; what it had is read again after the next start.
    await this.#lanes().roll("drain");
    await this.#committer.idle();
    undone = "everything is published, but the source did not take the acknowledgement";
    if (!late) await this.#acks.flush();
    timer.cancel();
  }

  /** What was read before the source failed still lands; then the run ends with the source's failure. */
  #sourceFailed(failure: Failure): void {
    if (this.#finished) return;
    if (this.#reason !== null || this.#pool === null) return this.#fail(failure);
    this.#reason = failure.message;
    this.#p.observer.emit({ e: "failure", scope: "source", failure: toWire(failure) });
    this.#drainBounded().then(
      () => this.#fail(failure),
      () => this.#fail(failure),
    );
  }

  #fail(failure: Failure): void {
    this.#finish(() => this.#settle?.reject(failure));
  }

  #finish(how: () => void): void {
    if (this.#finished) return;
    this.#finished = true;
    how();
  }

  async #shutDown(): Promise<void> {
    this.#finished = true;
    this.#pulse.stop();
    this.#pool?.stop();
    this.#p.admission.close();
    this.#committer.close();
    this.#acks.close();
    // Together: the source waits for its work to end, which may be a claim or a loss that waits out an outage of
    // the coverage store, and that wait ends with the store.
    await Promise.all([this.#p.source.close(), this.#p.coverage.close()]);
  }

  #lanes(): LanePool {
    if (this.#pool === null) throw new Failure("internal.bug", "the lanes are not there yet");
    return this.#pool;
  }
}
