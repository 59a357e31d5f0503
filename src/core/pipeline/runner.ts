/**
 * The control thread's part of a pipeline: joins source, lanes, committer and coverage, decides every position, reads no record.
 *
 * Order of durable events for a set of files (design, section 5):
 *   lane seals -> committer: intent, publish, cover -> ledger commits -> source is acknowledged.
 * `#onCommitted` is the only place that lets an acknowledgement go out.
 */
import { leaveStore } from "../coverage/outage.ts";
import type { CommitListener, SetCommitter } from "../delivery/committer.ts";
import { asFailure, Failure, toWire } from "../failure/failure.ts";
import type { Authority } from "../ports/coverage.ts";
import type { LaneCounts, LaneStream, SealedSet } from "../ports/lane.ts";
import type { FoundStream, SourceHost, StreamStart } from "../ports/source.ts";
import type { FrameBundle } from "../records/frame.ts";
import type { Span } from "../records/stream.ts";
import { Acknowledger } from "./acknowledger.ts";
import { drainBound, drained } from "./draining.ts";
import { Handover } from "./handover.ts";
import { LanePool } from "./lane-pool.ts";
import { LaneRestarts } from "./lane-restarts.ts";
import { Losses } from "./losses.ts";
import { Pulse } from "./pulse.ts";
import type { RunnerOptions, RunnerParts, RunSummary } from "./runner-parts.ts";
import { Secondaries } from "./secondaries.ts";
import { SinkTrouble } from "./sink-trouble.ts";
import { StreamTable } from "./stream-table.ts";
import { tellSealed } from "./tell-sets.ts";
import { UnreadableBytes } from "./unreadable.ts";

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
  /** Of the source: what was fetched still lands, then the run ends with it. */
  #failure: Failure | null = null;
  #settle: { resolve: (reason: string) => void; reject: (f: Failure) => void } | null = null;
  /** Rows of sets that were handed to the committer. */
  readonly #underWay = new Map<string, number>();
  readonly #restarts: LaneRestarts;
  readonly #losses: Losses;
  readonly #handover: Handover;
  readonly #secondaries: Secondaries;
  readonly #trouble: SinkTrouble;
  /** Partitions that are known and not begun yet. */
  #awaited = 0;
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
    this.#restarts = new LaneRestarts((lane, wake) => parts.admission.whenRoom(lane, wake));
    this.#losses = new Losses(this.#table, this.#restarts, parts);
    this.#secondaries = new Secondaries(parts.secondaries ?? [], {
      ...parts,
      post: (lane, sink, m) => this.#pool?.branch(lane, sink, m),
    });
    this.#handover = new Handover({
      ...parts,
      lanes: () => this.#lanes(),
      committer: this.#committer,
      secondaries: this.#secondaries,
      table: this.#table,
      restarts: this.#restarts,
      acks: this.#acks,
      finished: () => this.#finished,
      fail: (failure) => this.#fail(failure),
      settleGone: (stream) => this.#abandon(stream),
    });
    this.#trouble = new SinkTrouble(options.sink, parts);
    const beside = () => this.#secondaries.heartbeat();
    this.#pulse = new Pulse(options.heartbeatMs, { ...parts, beside }, (failure) => this.#fail(failure));
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
        sink: (lane, failure) => this.#trouble.tell(`lane ${lane}`, failure),
        branch: (lane, sink, m, current) =>
          current ? this.#secondaries.on(lane, sink, m) : this.#secondaries.onVoid(sink, m),
        died: (lane, failure, restarts) => this.#onDied(lane, failure, restarts),
        hopeless: (failure) => this.#fail(failure),
      });
      this.#pulse.start();
      this.#p.source.run(this).then(
        () => this.drain("the source ended", true),
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
      await Promise.all([this.#p.coverage.open(), this.#secondaries.open()]);
    } catch (e) {
      if (this.#reason === null) throw e;
    }
    return this.#reason;
  }

  /** Stops fetching, seals, publishes, covers, acknowledges, ends. Safe to call again. `byItself`: nobody asked for it. */
  drain(reason: string, byItself = false): void {
    if (this.#reason !== null || this.#finished) return;
    this.#reason = reason;
    this.#p.observer.emit({ e: "pipeline.stopping", reason });
    if (this.#pool === null) {
      // Nothing was begun: only the wait for the store, if it is under way, has to end.
      void this.#p.coverage.close();
      return;
    }
    this.#drainAndEnd(reason, drainBound(byItself, this.#o.drainMs));
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

  async begin(found: readonly FoundStream[], groupEpoch: number | null): Promise<readonly StreamStart[]> {
    const begun = await this.#table.begin(found, groupEpoch, async () => {
      // Claims have settled what an earlier process left; what is still staged and named by no intent is a stray.
      if (!this.#swept) await this.#p.sweep();
      this.#swept = true;
    });
    const placed = begun.map((b) => this.#table.placed(b.start.stream));
    await this.#secondaries.claim(placed, groupEpoch);
    // Not as they were begun: a lane that died since then has moved its streams on.
    const now = begun.map(({ lane, start }) => ({
      lane,
      start,
      stream: this.#table.get(start.stream).laneStream,
    }));
    for (let lane = 0; lane < this.#o.lanes; lane++) {
      const streams = now.filter((b) => b.lane === lane).map((b) => b.stream);
      if (streams.length === 0) continue;
      this.#lanes().place(lane, streams);
      this.#secondaries.place(lane);
    }
    for (const b of begun) if (b.behind) this.#behind.add(b.start.stream);
    this.#checkCaughtUp();
    return now.map(({ start, stream: { position, attempt } }) => ({ ...start, position, attempt }));
  }

  room(lane: number): number {
    // What a lane gets while it restarts it drops: not worth fetching.
    return this.#reason === null && !this.#restarts.has(lane) ? this.#p.admission.room(lane) : 0;
  }

  whenRoom(lane: number, wake: () => void): void {
    this.#restarts.whenRoom(lane, wake);
  }

  takeBuffer(bytes: number): ArrayBuffer {
    return this.#p.buffers.take(bytes);
  }

  giveBuffer(buffer: ArrayBuffer): void {
    this.#p.buffers.give(buffer);
  }

  deliver(lane: number, bundle: FrameBundle): void {
    if (this.#restarts.has(lane)) return this.#p.buffers.give(bundle.buffer);
    const held = bundle.buffer.byteLength;
    const parts = [];
    for (const f of bundle.frames) {
      if (!this.#p.ledger.deliver(f.stream, f.attempt, f.from, f.next)) continue;
      const { topic, partition } = this.#table.get(f.stream).id;
      const positions = Number(f.next - f.from);
      parts.push({ topic, partition, next: f.next, positions, bytes: f.end - f.start });
    }
    // Buffers are larger than what they hold: what was fetched is the sum of the frames.
    const bytes = bundle.frames.reduce((n, f) => n + (f.end - f.start), 0);
    const records = parts.reduce((n, p) => n + p.positions, 0);
    this.#p.admission.delivered(lane, held, { records, bytes });
    this.#lanes().deliver(lane, bundle);
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

  awaited(partitions: number): void {
    this.#awaited = partitions;
    this.#checkCaughtUp();
  }

  async gone(stream: number): Promise<void> {
    const { topic, partition } = this.#table.end(stream).id;
    await this.#abandon(stream);
    this.#p.observer.emit({ e: "stream.ended", topic, partition, why: "its topic was deleted" });
  }

  release(streams: readonly number[], why?: string): Promise<void> {
    return this.#handover.release(streams, why).finally(() => this.#checkCaughtUp());
  }

  abandon(streams: readonly number[]): Promise<void> {
    return this.#handover.abandon(streams).finally(() => this.#checkCaughtUp());
  }

  healthy(): void {
    this.#p.observer.emit({ e: "source.healthy" });
  }

  troubled(failure: Failure): void {
    this.#p.observer.emit({ e: "source.troubled", failure: toWire(failure) });
  }

  async lost(stream: number, from: bigint, next: bigint, reason: "retention" | "truncated"): Promise<void> {
    if (!(await this.#losses.record(stream, from, next, reason))) return;
    this.#move(stream, next, `records were lost at the source (${reason})`);
    // That the loss is recorded settles its positions, and perhaps the last ones that were waited for.
    this.#acks.kick();
    this.#checkCaughtUp();
  }

  /** Of a stream that is gone nothing comes any more: what was not delivered, or has to be read again, is lost. */
  async #abandon(stream: number): Promise<void> {
    const { delivered, end } = this.#p.ledger.state(stream);
    if (end !== null && end > delivered) await this.#losses.record(stream, delivered, end, "deleted");
    this.#acks.kick();
    this.#checkCaughtUp();
  }

  // ---- CommitListener

  committed(id: string, spans: readonly Span[]): void {
    this.#rows += this.#underWay.get(id) ?? 0;
    this.#underWay.delete(id);
    this.#p.ledger.commit(this.#table.ours(spans));
    this.#secondaries.landed(spans);
    this.#trouble.landed();
    this.#acks.kick();
    this.#checkCaughtUp();
  }

  refused(id: string, lane: number, reason: string, detail: string): void {
    this.#underWay.delete(id);
    this.#p.observer.emit({ e: "set.refused", sink: this.#o.sink, id, reason, detail });
    const fenced = this.#p.coverage.fenced;
    if (fenced !== null) return this.#fail(fenced);
    void this.#handover.restart(lane, `set ${id} was refused: ${detail}`);
  }

  failed(failure: Failure): void {
    this.#fail(this.#p.coverage.fenced ?? failure);
  }

  trouble(failure: Failure | null): void {
    this.#trouble.tell("publishing", failure === null ? null : toWire(failure));
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
    tellSealed(this.#p.observer, this.#o.sink, set);
    const { id, rows } = set;
    const authorities: Authority[] = this.#table.authorities(set.spans);
    this.#underWay.set(id, rows);
    const spans = this.#table.withEpochs(
      set.spans,
      (stream, next) => this.#p.source.leaderEpochBefore?.(stream, next) ?? null,
    );
    this.#committer.submit({ ...set, spans }, authorities);
  }

  #onBroken(stream: number, before: number, position: bigint, failure: Failure): void {
    // About to be taken back to what is covered anyway, or not ours any more.
    if (this.#table.get(stream).dropped || this.#restarts.has(this.#laneOf(stream))) return;
    const moved = !this.#p.ledger.current(stream, before);
    if (moved && !this.#losses.passedBy(stream, position)) return;
    if (this.#unreadable.hopeless(stream, position)) return this.#sourceFailed(failure);
    this.troubled(failure);
    // The lane may have read on behind the loss by now: what it holds of the stream has more than one piece.
    if (moved || this.#table.get(stream).ended)
      return void this.#handover.restart(this.#laneOf(stream), failure.message);
    this.#move(stream, position, failure.message);
  }

  #onDied(lane: number, failure: Failure, restarts: number): void {
    this.#p.observer.emit({ e: "lane.died", lane, failure: toWire(failure) });
    this.#p.admission.laneDied(lane);
    this.#trouble.silent(`lane ${lane}`);
    void this.#handover.restart(lane, failure.message);
    this.#p.observer.emit({ e: "lane.restarted", lane, restarts });
  }

  #laneOf(stream: number): number {
    return this.#table.get(stream).lane;
  }

  #move(stream: number, position: bigint, why: string): void {
    const again = Number(this.#p.ledger.state(stream).delivered - position);
    const attempt = this.#p.ledger.rewind(stream, position);
    const s = this.#table.get(stream);
    const { topic, partition } = s.id;
    this.#p.observer.emit({ e: "stream.rewound", topic, partition, position, attempt, again, why });
    const moved: LaneStream = { ...s.laneStream, position, attempt };
    this.#table.moved(stream, moved);
    this.#lanes().place(s.lane, [moved]);
    this.#p.source.seek(stream, position, attempt);
  }

  // ---- end of the run

  #checkCaughtUp(): void {
    if (!this.#o.untilCaughtUp || this.#reason !== null || this.#awaited > 0) return;
    if (this.#table.reached("committed"))
      return this.drain("caught up with what was there at the start", true);
    if (!this.#unrolled || !this.#table.reached("delivered")) return;
    // Lanes seal at once instead of at their interval. Not yet a drain: should one of them die now, or find bytes
    // that it cannot read, they are fetched again and come by here once more.
    this.#unrolled = false;
    void this.#lanes().roll("drain");
  }

  /** What was fetched lands; a failure of the source, before or meanwhile, is what the run ends with then. */
  #drainAndEnd(reason: string, mostMs: number): void {
    this.#p.source.pause();
    const [clock, lanes, committer] = [this.#p.clock, this.#lanes(), this.#committer];
    const parts = { clock, lanes, committer, acks: this.#acks, secondaries: this.#secondaries };
    drained(parts, mostMs, (late) => this.#fail(this.#failure ?? late)).then(
      () => {
        if (this.#failure !== null) this.#fail(this.#failure);
        else this.#finish(() => this.#settle?.resolve(reason));
      },
      (e) => this.#fail(this.#failure ?? asFailure(e)),
    );
  }

  /** What was read before the source failed still lands; then the run ends with the source's failure. */
  #sourceFailed(failure: Failure): void {
    if (this.#finished) return;
    if (this.#pool === null) return this.#fail(failure);
    this.#failure ??= failure;
    const who = this.#table.isOfSink(failure) ? `the sink ${this.#o.sink}` : "the source";
    this.drain(`${who} failed: ${failure.message}`);
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
    // Together: work of the source that waits out an outage of the coverage store ends with the store.
    const { clock, coverage, source } = this.#p;
    await Promise.all([source.close(), leaveStore(clock, coverage), this.#secondaries.close()]);
  }

  #lanes(): LanePool {
    if (this.#pool !== null) return this.#pool;
    throw new Failure("internal.bug", "the lanes are not there yet");
  }
}
